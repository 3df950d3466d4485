"""Where an episode's chosen rows are kept: dense or sparse, in memory. Private.

A container is filled in two steps, so that a failure between them changes nothing: `take` plays rounds and
stages their rows at the end, `advance` makes them count.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fliphat._native import Estimate
from fliphat.kernels._rows import Sparse
from fliphat.policies.contexts import Contexts

__all__ = ["DenseRows", "RowStore", "SparseRows", "csr_matrix", "play_dense", "play_sparse"]

#: Sparse rows grow by this share: untouched pages cost nothing, and growing moves pages without copying.
_GROWTH = 1.25


class RowStore(Protocol):
    """An episode's rows, in whatever layout and place."""

    layout: str

    def take(
        self,
        estimate: Estimate,
        contexts: Contexts,
        arms: int,
        words: npt.NDArray[np.uint64],
        keep: npt.NDArray[np.uint8] | None,
        at: int,
    ) -> npt.NDArray[np.int64]:
        """Play rounds, stage their rows after the first `at`, and return arms (``-1 - arm`` if invalid)."""

    def advance(self, at: int, count: int) -> None:
        """Make `count` staged rows count."""

    def forget(self, filled: int) -> None:
        """Turn the first `filled` rows into zeros."""

    def matrix(self) -> Any:
        """Return all rows for the fit, uncopied."""

    def parts(self, filled: int) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that hold the first `filled` rows, to be saved."""


def play_dense(
    estimate: Estimate,
    contexts: Contexts,
    arms: int,
    words: npt.NDArray[np.uint64],
    keep: npt.NDArray[np.uint8] | None,
    out: npt.NDArray[Any],
    at: int,
) -> npt.NDArray[np.int64]:
    """Play rounds whose rows go to ``out[at:]``."""
    if isinstance(contexts, Sparse):
        return estimate.choose_csr(
            contexts.indptr, contexts.indices, contexts.data, arms, words, keep, out, at
        )
    return estimate.choose_dense(contexts, arms, words, keep, out, at)


def play_sparse(
    estimate: Estimate,
    contexts: Contexts,
    arms: int,
    words: npt.NDArray[np.uint64],
    keep: npt.NDArray[np.uint8] | None,
    double: bool,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Play rounds whose rows come back sparse: arms, lengths, columns, values."""
    if isinstance(contexts, Sparse):
        return estimate.choose_csr_to_csr(
            contexts.indptr, contexts.indices, contexts.data, arms, words, keep, double
        )
    return estimate.choose_dense_to_csr(contexts, arms, words, keep, double)


class DenseRows:
    """Dense rows in one array, allocated for the whole episode; the system gives pages as they are used."""

    layout = "dense"

    def __init__(self, length: int, dim: int, dtype: str) -> None:
        self.array: npt.NDArray[Any] = np.zeros((length, dim), dtype)

    def take(
        self,
        estimate: Estimate,
        contexts: Contexts,
        arms: int,
        words: npt.NDArray[np.uint64],
        keep: npt.NDArray[np.uint8] | None,
        at: int,
    ) -> npt.NDArray[np.int64]:
        """See :class:`RowStore`."""
        return play_dense(estimate, contexts, arms, words, keep, self.array, at)

    def advance(self, at: int, count: int) -> None:
        """See :class:`RowStore`."""

    def forget(self, filled: int) -> None:
        """See :class:`RowStore`."""
        self.array[:filled] = 0

    def matrix(self) -> Any:
        """See :class:`RowStore`."""
        return self.array

    def parts(self, filled: int) -> dict[str, npt.NDArray[Any]]:
        """See :class:`RowStore`."""
        return {"rows": self.array[:filled]}


class SparseRows:
    """Sparse rows, 8 bytes a stored value and 4 a row (float32)."""

    layout = "csr"

    def __init__(self, length: int, dim: int, dtype: str) -> None:
        self._dim = dim
        self._double = dtype == "float64"
        self.lengths: npt.NDArray[np.uint32] = np.zeros(length, np.uint32)
        self.columns: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.values: npt.NDArray[Any] = np.zeros(0, dtype)
        self.stored = 0
        self._staged = 0

    def take(
        self,
        estimate: Estimate,
        contexts: Contexts,
        arms: int,
        words: npt.NDArray[np.uint64],
        keep: npt.NDArray[np.uint8] | None,
        at: int,
    ) -> npt.NDArray[np.int64]:
        """See :class:`RowStore`."""
        chosen, lengths, columns, values = play_sparse(estimate, contexts, arms, words, keep, self._double)
        self.stage(at, lengths, columns, values)
        return chosen

    def stage(
        self,
        at: int,
        lengths: npt.NDArray[np.uint32],
        columns: npt.NDArray[np.int32],
        values: npt.NDArray[Any],
    ) -> None:
        """Copy rows behind those that count."""
        end = self.stored + len(values)
        if end > len(self.values):
            self._resize(max(end, int(len(self.values) * _GROWTH), 1024))
        self.lengths[at : at + len(lengths)] = lengths
        self.columns[self.stored : end] = columns
        self.values[self.stored : end] = values
        self._staged = end

    def advance(self, at: int, count: int) -> None:
        """See :class:`RowStore`."""
        self.stored = self._staged
        if at + count == len(self.lengths):
            self._resize(self.stored)

    def forget(self, filled: int) -> None:
        """See :class:`RowStore`."""
        self.values[:] = 0  # what realloc leaves behind should not be rows
        self.columns[:] = 0
        self.lengths[:filled] = 0
        self.stored = 0
        self._resize(0)

    def matrix(self) -> Any:
        """See :class:`RowStore`."""
        stored = self.stored
        return csr_matrix(self.lengths, self.columns[:stored], self.values[:stored], self._dim)

    def parts(self, filled: int) -> dict[str, npt.NDArray[Any]]:
        """See :class:`RowStore`."""
        return {
            "lengths": self.lengths[:filled],
            "columns": self.columns[: self.stored],
            "values": self.values[: self.stored],
        }

    def _resize(self, size: int) -> None:
        # No view of these arrays leaves this object while rows still arrive, so none can be left dangling.
        self.columns.resize(size, refcheck=False)
        self.values.resize(size, refcheck=False)


def csr_matrix(
    lengths: npt.NDArray[np.uint32],
    columns: npt.NDArray[np.int32],
    values: npt.NDArray[Any],
    dim: int,
) -> Any:
    """Return rows as a SciPy matrix that shares `columns` and `values`."""
    from scipy.sparse import csr_array

    # Past 2**31 stored values SciPy needs 64 bits: a copy of the columns, and the same result.
    wide = len(values) >= 2**31
    offsets = np.zeros(len(lengths) + 1, np.int64 if wide else np.int32)
    np.cumsum(lengths, out=offsets[1:])
    matrix: Any = csr_array((len(lengths), dim), dtype=values.dtype)
    matrix.indptr, matrix.data = offsets, values
    matrix.indices = columns.astype(np.int64) if wide else columns
    return matrix
