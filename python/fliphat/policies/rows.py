"""Where an episode's chosen rows are kept: dense or sparse, in memory or in a nameless file. Private.

Dense rows go to a file if the whole episode would take more than the limit: a matter of public numbers.
Sparse rows move to one when the values stored so far would take more. That moment depends on the rows, and so
does the size of any file that holds them: both are the operator's to see, as the rows are. Everyone else
sees arms and estimates, whose bits are the same wherever rows are.

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
from fliphat.policies.growing import Growing
from fliphat.policies.spill import SpillFile

__all__ = [
    "DenseRows",
    "RowStore",
    "SparseRows",
    "SpilledRows",
    "csr_matrix",
    "make_rows",
    "play_dense",
    "play_sparse",
]

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

    def emptied(self, filled: int) -> RowStore:
        """Return what takes the place of these rows when the first `filled` of them are forgotten.

        Unless that is the same object, these rows are left as they are.
        """

    def wipe(self) -> None:
        """Overwrite rows that nothing will read again before their memory is given back."""

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

    def emptied(self, filled: int) -> DenseRows:
        """See :class:`RowStore`."""
        self.array[:filled] = 0
        return self

    def wipe(self) -> None:
        """See :class:`RowStore`."""
        self.array[:] = 0

    def matrix(self) -> Any:
        """See :class:`RowStore`."""
        return self.array

    def parts(self, filled: int) -> dict[str, npt.NDArray[Any]]:
        """See :class:`RowStore`."""
        return {"rows": self.array[:filled]}


class SpilledRows:
    """Dense rows in a nameless file; only what one call stages is in memory."""

    layout = "dense"

    def __init__(self, length: int, dim: int, dtype: str) -> None:
        self._length = length
        self._dim = dim
        self._buffer: npt.NDArray[Any] = np.zeros((1, dim), dtype)
        self.file = SpillFile(dtype)

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
        count = len(words)
        buffer = self._buffer if count == 1 else np.empty((count, self._dim), self._buffer.dtype)
        chosen = play_dense(estimate, contexts, arms, words, keep, buffer, 0)
        self.stage(at, buffer)
        return chosen

    def stage(self, at: int, rows: npt.NDArray[Any]) -> None:
        """Write rows behind those that count."""
        self.file.write(at * self._dim, rows)

    def advance(self, at: int, count: int) -> None:
        """See :class:`RowStore`."""
        self._buffer[:] = 0

    def emptied(self, filled: int) -> SpilledRows:
        """See :class:`RowStore`."""
        fresh = SpilledRows(self._length, self._dim, self._buffer.dtype.name)
        fresh.file.clear(filled * self._dim)
        return fresh

    def wipe(self) -> None:
        """See :class:`RowStore`."""
        self.file.clear(0)

    def matrix(self) -> Any:
        """See :class:`RowStore`."""
        return self.file.mapped((self._length, self._dim))

    def parts(self, filled: int) -> dict[str, npt.NDArray[Any]]:
        """See :class:`RowStore`."""
        return {"rows": self.file.mapped((filled, self._dim))}


class SparseRows:
    """Sparse rows, 8 bytes a stored value and 4 a row (float32); in a file once they pass `limit` bytes."""

    layout = "csr"

    def __init__(self, length: int, dim: int, dtype: str, limit: int | None = None) -> None:
        self._dim = dim
        self._double = dtype == "float64"
        self._limit = limit
        self.lengths: npt.NDArray[np.uint32] = np.zeros(length, np.uint32)
        self._columns = Growing(np.int32)
        self._values = Growing(dtype)
        self._room = 0
        # (rows, values before the last of them were added, values): what counts, and what is staged to.
        self._counted = self._staged = (0, 0, 0)

    @property
    def stored(self) -> int:
        """Values of the rows that count."""
        return self._counted[2]

    @property
    def columns(self) -> npt.NDArray[np.int32]:
        """Columns of stored values, with room behind them."""
        return self._columns.array

    @property
    def values(self) -> npt.NDArray[Any]:
        """Stored values, with room behind them."""
        return self._values.array

    @property
    def spilled(self) -> bool:
        """Whether rows have moved to a file."""
        return self._values.file is not None

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
        rows, before, stored = self._counted
        # Rows that were made to count and then not played, because of an interrupt, are written over.
        start = before if at < rows else stored
        end = start + len(values)
        if end > self._room:
            self._make_room(end)
        self.lengths[at : at + len(lengths)] = lengths
        self._columns.put(start, columns)
        self._values.put(start, values)
        self._staged = (at + len(lengths), start, end)

    def advance(self, at: int, count: int) -> None:
        """See :class:`RowStore`."""
        self._counted = self._staged
        if at + count == len(self.lengths):
            self._resize(self.stored)

    def emptied(self, filled: int) -> SparseRows:
        """See :class:`RowStore`."""
        fresh = SparseRows(len(self.lengths), self._dim, self._values.array.dtype.name, self._limit)
        fresh._counted = fresh._staged = (filled, 0, 0)
        return fresh

    def wipe(self) -> None:
        """See :class:`RowStore`."""
        self._columns.clear()
        self._values.clear()

    def matrix(self) -> Any:
        """See :class:`RowStore`."""
        columns, values = self._columns.first(self.stored), self._values.first(self.stored)
        return csr_matrix(self.lengths, columns, values, self._dim)

    def parts(self, filled: int) -> dict[str, npt.NDArray[Any]]:
        """See :class:`RowStore`."""
        return {
            "lengths": self.lengths[:filled],
            "columns": self._columns.first(self.stored),
            "values": self._values.first(self.stored),
        }

    def _make_room(self, end: int) -> None:
        each = self._columns.array.itemsize + self._values.array.itemsize
        if self._limit is not None and (self.spilled or end * each > self._limit):
            # Each of the two is whole wherever it is, should only the first move succeed.
            self._columns.spill(self.stored)
            self._values.spill(self.stored)
            return
        room = max(end, int(self._room * _GROWTH), 1024)
        if self._limit is not None:
            room = max(end, min(room, self._limit // each))
        self._resize(room)

    def _resize(self, size: int) -> None:
        self._room = min(self._room, size)  # first: cut off below, there is no less room than it says
        self._columns.reserve(size)
        self._values.reserve(size)
        if not self.spilled:
            self._room = size


def make_rows(
    layout: str, length: int, dim: int, dtype: str, limit: int | None
) -> DenseRows | SpilledRows | SparseRows:
    """Return an empty container for an episode, in a file if it would take more than `limit` bytes."""
    if layout == "csr":
        return SparseRows(length, dim, dtype, limit)
    if limit is not None and length * dim * np.dtype(dtype).itemsize > limit:
        return SpilledRows(length, dim, dtype)
    return DenseRows(length, dim, dtype)


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
