"""An episode's rows on disk: staged in memory for one call, mapped for the fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat._native import Estimate
from fliphat.policies.contexts import Contexts
from fliphat.policies.journal import Journal
from fliphat.policies.rows import csr_matrix, play_dense, play_sparse

__all__ = ["FileRows"]


class FileRows:
    """Rows of a journal. `staged` and `lengths` are what the call under way will append."""

    def __init__(self, journal: Journal, length: int) -> None:
        self.layout = journal.layout
        self._journal = journal
        self._length = length
        self._buffer: npt.NDArray[Any] = np.zeros((1, journal.dim), journal.dtype)
        self.staged: list[npt.NDArray[Any]] = []
        self.staged_lengths: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        sparse = self.layout == "csr"
        self.lengths: npt.NDArray[np.uint32] = np.zeros(length if sparse else 0, np.uint32)

    def take(
        self,
        estimate: Estimate,
        contexts: Contexts,
        arms: int,
        words: npt.NDArray[np.uint64],
        keep: npt.NDArray[np.uint8] | None,
        at: int,
    ) -> npt.NDArray[np.int64]:
        """See :class:`fliphat.policies.rows.RowStore`."""
        count = len(words)
        if self.layout == "dense":
            buffer = self._buffer if count == 1 else np.empty((count, self._journal.dim), self._journal.dtype)
            chosen = play_dense(estimate, contexts, arms, words, keep, buffer, 0)
            self.staged = [buffer]
            return chosen
        double = self._journal.dtype == np.float64
        chosen, self.staged_lengths, columns, values = play_sparse(
            estimate, contexts, arms, words, keep, double
        )
        self.staged = [columns, values]
        return chosen

    def advance(self, at: int, count: int) -> None:
        """See :class:`fliphat.policies.rows.RowStore`."""
        if self.layout == "csr":
            self.lengths[at : at + count] = self.staged_lengths
        self.staged = []
        self._buffer[:] = 0

    def emptied(self, filled: int) -> FileRows:
        """See :class:`fliphat.policies.rows.RowStore`; the store has made files without contents."""
        return self

    def wipe(self) -> None:
        """See :class:`fliphat.policies.rows.RowStore`; the store has unlinked the files."""

    def matrix(self) -> Any:
        """See :class:`fliphat.policies.rows.RowStore`."""
        matrix = self._mapped()
        self._journal.check_rows()
        return matrix

    def _mapped(self) -> Any:
        if self.layout == "dense":
            return self._journal.mapped(1, self._journal.dtype, (self._length, self._journal.dim))
        stored = int(self.lengths.sum(dtype=np.int64))
        return csr_matrix(
            self.lengths,
            self._journal.mapped(1, np.int32, (stored,)),
            self._journal.mapped(2, self._journal.dtype, (stored,)),
            self._journal.dim,
        )

    def parts(self, filled: int) -> dict[str, npt.NDArray[Any]]:
        """See :class:`fliphat.policies.rows.RowStore`."""
        parts = self._mapped_parts(filled)
        self._journal.check_rows()
        return parts

    def _mapped_parts(self, filled: int) -> dict[str, npt.NDArray[Any]]:
        if self.layout == "dense":
            return {"rows": self._journal.mapped(1, self._journal.dtype, (filled, self._journal.dim))}
        stored = int(self.lengths[:filled].sum(dtype=np.int64))
        return {
            "lengths": self.lengths[:filled],
            "columns": self._journal.mapped(1, np.int32, (stored,)),
            "values": self._journal.mapped(2, self._journal.dtype, (stored,)),
        }
