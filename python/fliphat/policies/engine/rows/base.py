"""What every place for an episode's chosen rows has in common. Private.

A place is filled in two steps, so that a failure between them changes nothing: `play` or `put` stages rows at
the end, `advance` makes them count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat.contexts import Crossed
from fliphat.kernels._rows import Sparse
from fliphat.policies.engine.composed import CrossedByEstimate, Ragged
from fliphat.policies.engine.inputs import Contexts
from fliphat.policies.engine.rule import Chooser

__all__ = [
    "Chosen",
    "ChosenRows",
    "DenseStore",
    "Rounds",
    "RowStore",
    "SparseChosen",
    "csr_matrix",
    "stored_at",
]

_YES, _NO = np.ones(1, np.uint8), np.zeros(1, np.uint8)


@dataclass(frozen=True, slots=True)
class SparseChosen:
    """Chosen rows, one after the other: stored values of each row, their columns, the values."""

    lengths: npt.NDArray[np.uint32]
    columns: npt.NDArray[np.int32]
    values: npt.NDArray[Any]


#: Arms (``-1 - arm`` if invalid), and how many share the first place with each (0 if it is not a best one).
Chosen: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]

#: Rows as they are staged: an array of shape (n, dim), or sparse ones.
ChosenRows: TypeAlias = npt.NDArray[Any] | SparseChosen


@dataclass(frozen=True, slots=True)
class Rounds:
    """Rounds to be played by one estimate.

    Attributes
    ----------
    contexts : rows of all arms of all rounds
    arms : int, or ndarray of int64 for ragged ones
        Rows a round.
    words : ndarray of uint64, shape (n,)
        Each round's randomness.
    learned : ndarray of uint8, shape (n,), or None
        0 where the row must be one of zeros; None if there is no such round.
    explored : ndarray of uint8, shape (n,), or None
        1 where a uniform arm is played; None if there is no such round.
    """

    estimate: Chooser
    contexts: Contexts
    arms: int | npt.NDArray[np.int64]
    words: npt.NDArray[np.uint64]
    learned: npt.NDArray[np.uint8] | None
    explored: npt.NDArray[np.uint8] | None = None

    def into(self, out: npt.NDArray[Any]) -> Chosen:
        """Write the chosen rows to `out`; return what was played."""
        given, flags = self.contexts, (self.words, self.learned, out, 0, self.explored)
        if isinstance(given, CrossedByEstimate):
            return given.play(self.words, self.learned, self.explored, out)
        if isinstance(given, Ragged):
            arms, tied = _nothing_chosen(len(self.words))
            for at, rounds in self._groups(given):
                rows = np.zeros((len(at), out.shape[1]), out.dtype)
                arms[at], tied[at] = rounds.into(rows)
                out[at] = rows
            return arms, tied
        assert isinstance(self.arms, int)
        assert not isinstance(given, Crossed)
        if isinstance(given, Sparse):
            return self.estimate.choose_csr(given.indptr, given.indices, given.data, self.arms, *flags)
        return self.estimate.choose_dense(given, self.arms, *flags)

    def sparse(self, double: bool) -> tuple[Chosen, SparseChosen]:
        """Return what was played, and the chosen rows sparse."""
        given, flags = self.contexts, (self.words, self.learned, double, self.explored)
        if isinstance(given, CrossedByEstimate):
            out = np.zeros((len(self.words), given.dim), np.float64 if double else np.float32)
            return given.play(self.words, self.learned, self.explored, out), _sparse_rows(out)
        if isinstance(given, Ragged):
            return self._sparse_in_groups(given, double)
        assert isinstance(self.arms, int)
        assert not isinstance(given, Crossed)
        if isinstance(given, Sparse):
            arms, tied, *rows = self.estimate.choose_csr_to_csr(
                given.indptr, given.indices, given.data, self.arms, *flags
            )
        else:
            arms, tied, *rows = self.estimate.choose_dense_to_csr(given, self.arms, *flags)
        return (arms, tied), SparseChosen(*rows)

    def _groups(self, given: Ragged) -> Iterator[tuple[npt.NDArray[np.int64], Rounds]]:
        """Yield where rounds with the same number of arms are, and those rounds."""
        for at, arms, contexts in given.groups():
            learned = None if self.learned is None else self.learned[at]
            explored = None if self.explored is None else self.explored[at]
            yield at, Rounds(self.estimate, contexts, arms, self.words[at], learned, explored)

    def _sparse_in_groups(self, given: Ragged, double: bool) -> tuple[Chosen, SparseChosen]:
        arms, tied = _nothing_chosen(len(self.words))
        lengths = np.zeros(len(self.words), np.uint32)
        parts: list[Any] = [None] * len(self.words)
        for at, rounds in self._groups(given):
            (arms[at], tied[at]), rows = rounds.sparse(double)
            lengths[at] = rows.lengths
            for i, (begin, end) in zip(at, stored_at(rows.lengths, np.arange(len(at))), strict=True):
                parts[i] = rows.columns[begin:end], rows.values[begin:end]
        columns, values = zip(*parts, strict=True)
        return (arms, tied), SparseChosen(lengths, np.concatenate(columns), np.concatenate(values))


class RowStore(ABC):
    """An episode's rows, in whatever layout and place."""

    layout: ClassVar[str]
    #: Whether `place` is where rows are kept, so that nothing is copied.
    in_place: ClassVar[bool] = False

    def __init__(self, length: int, dim: int, dtype: npt.DTypeLike) -> None:
        self.length = length
        self.dim = dim
        self.dtype = np.dtype(dtype)

    @abstractmethod
    def play(self, rounds: Rounds, at: int) -> Chosen:
        """Play rounds, stage their rows after the first `at`, and return what was played."""

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
        """Play one round as `play` does."""
        flags, words = _YES if learned else _NO, np.array([word], np.uint64)
        uniform = _YES if explored else None
        (arm,), (tied,) = self.play(Rounds(estimate, contexts, arms, words, flags, uniform), at)
        return int(arm), int(tied)

    @abstractmethod
    def put(self, at: int, rows: ChosenRows) -> None:
        """Stage rows after the first `at`, over whatever an interrupted call left there."""

    @abstractmethod
    def staged(self, at: int, count: int) -> ChosenRows:
        """Return the rows that the last `play` or `put` staged."""

    @abstractmethod
    def advance(self, at: int, count: int) -> None:
        """Make `count` staged rows count."""

    @abstractmethod
    def emptied(self, filled: int) -> RowStore:
        """Return what takes the place of these rows when the first `filled` of them are forgotten.

        Unless that is the same object, these rows are left as they are.
        """

    @abstractmethod
    def empty(self, rows: npt.NDArray[np.int64]) -> None:
        """Make some of the rows that count read as zeros; done again, it changes nothing."""

    @abstractmethod
    def wipe(self) -> None:
        """Overwrite rows that nothing will read again before their memory is given back."""

    @abstractmethod
    def matrix(self) -> Any:
        """Return all rows for the fit, uncopied."""

    @abstractmethod
    def first(self, filled: int) -> ChosenRows:
        """Return the first `filled` rows, to be saved; `put` takes them back."""


class DenseStore(RowStore):
    """Rows that are arrays of shape (n, dim)."""

    layout = "dense"

    @abstractmethod
    def place(self, at: int, count: int) -> npt.NDArray[Any]:
        """Return where `count` rows can be written to before they are `put`."""

    def play(self, rounds: Rounds, at: int) -> Chosen:
        """See :class:`RowStore`."""
        place = self.place(at, len(rounds.words))
        chosen = rounds.into(place)
        self.put(at, place)
        return chosen


def _nothing_chosen(count: int) -> Chosen:
    return np.zeros(count, np.int64), np.zeros(count, np.uint32)


def _sparse_rows(rows: npt.NDArray[Any]) -> SparseChosen:
    """Return dense rows without their zeros, as the native code keeps them."""
    at, columns = np.nonzero(rows)
    lengths = np.bincount(at, minlength=len(rows)).astype(np.uint32)
    return SparseChosen(lengths, columns.astype(np.int32), rows[at, columns])


def stored_at(lengths: npt.NDArray[np.uint32], rows: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield where the stored values of each of some sparse rows begin and end."""
    ends = np.cumsum(lengths, dtype=np.int64)
    for row in rows.tolist():
        yield int(ends[row] - lengths[row]), int(ends[row])


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
