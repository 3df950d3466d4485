"""An episode's rows in the files of a journal: staged in memory for one call, mapped for the fit."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat.policies.engine.rows.base import (
    ChosenRows,
    DenseStore,
    SparseChosen,
    SparseStore,
    csr_matrix,
    stored_at,
)
from fliphat.policies.store.directory.journal import Journal

__all__ = ["FileRows", "emptied_rows", "file_rows", "part_of"]


class DenseFileRows(DenseStore):
    """Dense rows of a journal. `staged` is what the call under way will append."""

    def __init__(self, journal: Journal, length: int) -> None:
        super().__init__(length, journal.dim, journal.dtype)
        self._journal = journal
        self._one_row: npt.NDArray[Any] = np.zeros((1, self.dim), self.dtype)
        self.staged: list[npt.NDArray[Any]] = []
        self.staged_lengths: None = None
        self._empty: list[int] = []  # rows of cancelled rounds, whose contents are still in the file

    def stage_again(self, lengths: npt.NDArray[np.uint32]) -> None:
        """Stage rows that are in the files already; their sizes are known."""

    def place(self, at: int, count: int) -> npt.NDArray[Any]:
        """See :class:`DenseStore`."""
        return self._one_row if count == 1 else np.empty((count, self.dim), self.dtype)

    def put(self, at: int, rows: ChosenRows) -> None:
        """See :class:`RowStore`."""
        assert isinstance(rows, np.ndarray)
        self.staged = [rows]

    def advance(self, at: int, count: int) -> None:
        """See :class:`RowStore`."""
        self.staged = []
        self._one_row[:] = 0

    def emptied(self, filled: int) -> DenseFileRows:
        """See :class:`RowStore`; the store has made files without contents."""
        return self

    def empty(self, rows: npt.NDArray[np.int64]) -> None:
        """See :class:`RowStore`; whoever reads the files gets zeros there."""
        self._empty += rows.tolist()

    def wipe(self) -> None:
        """See :class:`RowStore`; the store has unlinked the files."""

    def matrix(self) -> Any:
        """See :class:`RowStore`."""
        return self.first(self.length)

    def first(self, filled: int) -> npt.NDArray[Any]:
        """See :class:`RowStore`."""
        rows = self._journal.mapped(1, self.dtype, (filled, self.dim))
        self._journal.check_rows()
        rows[self._empty] = 0
        return rows


class SparseFileRows(SparseStore):
    """Sparse rows of a journal. `staged` and `staged_lengths` are what the call under way will append."""

    def __init__(self, journal: Journal, length: int) -> None:
        super().__init__(length, journal.dim, journal.dtype)
        self._journal = journal
        self._lengths: npt.NDArray[np.uint32] = np.zeros(length, np.uint32)
        self.staged: list[npt.NDArray[Any]] = []
        self.staged_lengths: npt.NDArray[np.uint32] | None = None
        self._empty: list[int] = []  # rows of cancelled rounds, whose contents are still in the files

    def stage_again(self, lengths: npt.NDArray[np.uint32]) -> None:
        """Stage rows that are in the files already: how many values each has."""
        self.staged_lengths = lengths

    def put(self, at: int, rows: ChosenRows) -> None:
        """See :class:`RowStore`."""
        assert isinstance(rows, SparseChosen)
        self.staged, self.staged_lengths = [rows.columns, rows.values], rows.lengths

    def advance(self, at: int, count: int) -> None:
        """See :class:`RowStore`."""
        assert self.staged_lengths is not None
        self._lengths[at : at + count] = self.staged_lengths
        self.staged = []

    def emptied(self, filled: int) -> SparseFileRows:
        """See :class:`RowStore`; the store has made files without contents."""
        return self

    def empty(self, rows: npt.NDArray[np.int64]) -> None:
        """See :class:`RowStore`; whoever reads the files gets zeros there."""
        self._empty += rows.tolist()

    def wipe(self) -> None:
        """See :class:`RowStore`; the store has unlinked the files."""

    def matrix(self) -> Any:
        """See :class:`RowStore`."""
        rows = self.first(self.length)
        return csr_matrix(rows.lengths, rows.columns, rows.values, self.dim)

    def first(self, filled: int) -> SparseChosen:
        """See :class:`RowStore`."""
        lengths = self._lengths[:filled]
        stored = int(lengths.sum(dtype=np.int64))
        columns = self._journal.mapped(1, np.int32, (stored,))
        values = self._journal.mapped(2, self.dtype, (stored,))
        self._journal.check_rows()
        for begin, end in stored_at(lengths, np.array(self._empty, np.int64)):
            columns[begin:end], values[begin:end] = np.arange(end - begin), 0
        return SparseChosen(lengths, columns, values)


FileRows: TypeAlias = DenseFileRows | SparseFileRows


def file_rows(journal: Journal, length: int) -> FileRows:
    """Return the rows of a journal, in its layout."""
    return (DenseFileRows if journal.layout == "dense" else SparseFileRows)(journal, length)


def part_of(rows: ChosenRows, at: int, lengths: npt.NDArray[np.uint32], stored: int) -> ChosenRows:
    """Return the rows of one call: from row `at` on, after `stored` values, with `lengths` values each."""
    if not isinstance(rows, SparseChosen):
        return rows[at : at + len(lengths)]
    values = slice(stored, stored + int(lengths.sum(dtype=np.int64)))
    return SparseChosen(lengths, rows.columns[values], rows.values[values])


def emptied_rows(
    journal: Journal, rows: ChosenRows | None, these: npt.NDArray[np.bool_]
) -> list[npt.NDArray[Any]]:
    """Return rows as a journal's files take them, without the contents of some; None if all are empty."""
    if journal.layout == "dense":
        if rows is None:
            return [np.zeros((len(these), journal.dim), journal.dtype)]
        assert isinstance(rows, np.ndarray)
        return [np.where(these[:, None], journal.dtype.type(0), rows)]
    if rows is None:
        return [np.zeros(0, np.int32), np.zeros(0, journal.dtype)]
    assert isinstance(rows, SparseChosen)
    stays = np.repeat(~these, rows.lengths)
    return [rows.columns[stays], rows.values[stays]]
