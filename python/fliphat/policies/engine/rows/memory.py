"""Rows in memory: dense, or sparse until they pass a limit. Private."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.policies.engine.inputs import Contexts
from fliphat.policies.engine.rows.base import (
    Chosen,
    ChosenRows,
    DenseStore,
    Rounds,
    RowStore,
    SparseChosen,
    csr_matrix,
    stored_at,
)
from fliphat.policies.engine.rows.growing import Growing
from fliphat.policies.engine.rows.spill import SpilledRows
from fliphat.policies.engine.rule import Chooser

__all__ = ["DenseRows", "SparseRows", "make_rows"]

#: Sparse rows grow by this share: untouched pages cost nothing, and growing moves pages without copying.
_GROWTH = 1.25


class DenseRows(DenseStore):
    """Dense rows in one array, allocated for the whole episode; the system gives pages as they are used."""

    in_place = True

    def __init__(self, length: int, dim: int, dtype: npt.DTypeLike) -> None:
        self.length, self.dim, self.dtype = length, dim, np.dtype(dtype)
        self.array: npt.NDArray[Any] = np.zeros((length, dim), dtype)

    def play_one(
        self,
        estimate: Chooser,
        contexts: Contexts,
        arms: int,
        word: int,
        learned: bool,
        explored: bool,
        at: int,
    ) -> tuple[int, int]:
        """See :class:`RowStore`; the common case, in one native call."""
        if type(contexts) is np.ndarray:
            return estimate.choose_one(contexts, word, learned, self.array, at, explored)
        return super().play_one(estimate, contexts, arms, word, learned, explored, at)

    def place(self, at: int, count: int) -> npt.NDArray[Any]:
        """See :class:`DenseStore`."""
        return self.array[at : at + count]

    def put(self, at: int, rows: ChosenRows) -> None:
        """See :class:`RowStore`."""
        assert isinstance(rows, np.ndarray)
        if rows.base is not self.array:
            self.array[at : at + len(rows)] = rows

    def staged(self, at: int, count: int) -> npt.NDArray[Any]:
        """See :class:`RowStore`."""
        return self.array[at : at + count]

    def advance(self, at: int, count: int) -> None:
        """See :class:`RowStore`."""

    def emptied(self, filled: int) -> DenseRows:
        """See :class:`RowStore`."""
        self.array[:filled] = 0
        return self

    def empty(self, rows: npt.NDArray[np.int64]) -> None:
        """See :class:`RowStore`."""
        self.array[rows] = 0

    def wipe(self) -> None:
        """See :class:`RowStore`."""
        self.array[:] = 0

    def matrix(self) -> Any:
        """See :class:`RowStore`."""
        return self.array

    def first(self, filled: int) -> npt.NDArray[Any]:
        """See :class:`RowStore`."""
        return self.array[:filled]


class SparseRows(RowStore):
    """Sparse rows, 8 bytes a stored value and 4 a row (float32); in a file once they pass `limit` bytes."""

    layout = "csr"

    def __init__(self, length: int, dim: int, dtype: npt.DTypeLike, limit: int | None = None) -> None:
        super().__init__(length, dim, dtype)
        self._limit = limit
        self.lengths: npt.NDArray[np.uint32] = np.zeros(length, np.uint32)
        self._columns = Growing(np.int32)
        self._values = Growing(dtype)
        self._room = 0
        # (rows, values before the last of them were added, values): what counts, and what is staged to.
        self._counted = self._staged = (0, 0, 0)
        self._last: SparseChosen | None = None

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

    def play(self, rounds: Rounds, at: int) -> Chosen:
        """See :class:`RowStore`."""
        chosen, rows = rounds.sparse(self.dtype == np.float64)
        self.put(at, rows)
        return chosen

    def put(self, at: int, rows: ChosenRows) -> None:
        """See :class:`RowStore`."""
        assert isinstance(rows, SparseChosen)
        lengths, columns, values = rows.lengths, rows.columns, rows.values
        counted, before, stored = self._counted
        # Rows that were made to count and then not played, because of an interrupt, are written over.
        start = before if at < counted else stored
        end = start + len(values)
        if end > self._room:
            self._make_room(end)
        self.lengths[at : at + len(lengths)] = lengths
        self._columns.put(start, columns)
        self._values.put(start, values)
        self._staged, self._last = (at + len(lengths), start, end), rows

    def staged(self, at: int, count: int) -> SparseChosen:
        """See :class:`RowStore`."""
        assert self._last is not None
        return self._last

    def advance(self, at: int, count: int) -> None:
        """See :class:`RowStore`."""
        self._counted, self._last = self._staged, None
        if at + count == len(self.lengths):
            self._resize(self.stored)

    def emptied(self, filled: int) -> SparseRows:
        """See :class:`RowStore`."""
        fresh = SparseRows(self.length, self.dim, self.dtype, self._limit)
        fresh._counted = fresh._staged = (filled, 0, 0)
        return fresh

    def empty(self, rows: npt.NDArray[np.int64]) -> None:
        """See :class:`RowStore`; how many values a row had stays, columns and values do not."""
        for begin, end in stored_at(self.lengths, rows):
            self._values.put(begin, np.zeros(end - begin, self.dtype))
            self._columns.put(begin, np.arange(end - begin, dtype=np.int32))

    def wipe(self) -> None:
        """See :class:`RowStore`."""
        self._columns.clear()
        self._values.clear()

    def matrix(self) -> Any:
        """See :class:`RowStore`."""
        columns, values = self._columns.first(self.stored), self._values.first(self.stored)
        return csr_matrix(self.lengths, columns, values, self.dim)

    def first(self, filled: int) -> SparseChosen:
        """See :class:`RowStore`."""
        return SparseChosen(
            self.lengths[:filled], self._columns.first(self.stored), self._values.first(self.stored)
        )

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


def make_rows(layout: str, length: int, dim: int, dtype: str, limit: int | None) -> RowStore:
    """Return an empty place for an episode's rows, in a file if they would take more than `limit` bytes."""
    if layout == "csr":
        return SparseRows(length, dim, dtype, limit)
    if limit is not None and length * dim * np.dtype(dtype).itemsize > limit:
        return SpilledRows(length, dim, dtype)
    return DenseRows(length, dim, dtype)
