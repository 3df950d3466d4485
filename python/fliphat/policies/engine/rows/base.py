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

from fliphat._native import Estimate
from fliphat.kernels._rows import Sparse
from fliphat.policies.engine.inputs import Contexts

__all__ = [
    "Chosen",
    "ChosenRows",
    "DenseStore",
    "Rounds",
    "RowStore",
    "SparseChosen",
    "SparseStore",
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
    arms : int
        Rows a round.
    words : ndarray of uint64, shape (n,)
        Each round's randomness.
    learned : ndarray of uint8, shape (n,), or None
        0 where the row must be one of zeros; None if there is no such round.
    explored : ndarray of uint8, shape (n,), or None
        1 where a uniform arm is played; None if there is no such round.
    """

    estimate: Estimate
    contexts: Contexts
    arms: int
    words: npt.NDArray[np.uint64]
    learned: npt.NDArray[np.uint8] | None
    explored: npt.NDArray[np.uint8] | None = None

    def into(self, out: npt.NDArray[Any]) -> Chosen:
        """Write the chosen rows to `out`; return what was played."""
        given, flags = self.contexts, (self.words, self.learned, out, 0, self.explored)
        if isinstance(given, Sparse):
            return self.estimate.choose_csr(given.indptr, given.indices, given.data, self.arms, *flags)
        return self.estimate.choose_dense(given, self.arms, *flags)

    def sparse(self, double: bool) -> tuple[Chosen, SparseChosen]:
        """Return what was played, and the chosen rows sparse."""
        given, flags = self.contexts, (self.words, self.learned, double, self.explored)
        if isinstance(given, Sparse):
            arms, tied, *rows = self.estimate.choose_csr_to_csr(
                given.indptr, given.indices, given.data, self.arms, *flags
            )
        else:
            arms, tied, *rows = self.estimate.choose_dense_to_csr(given, self.arms, *flags)
        return (arms, tied), SparseChosen(*rows)


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
        estimate: Estimate,
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


class SparseStore(RowStore):
    """Rows that are lists of columns and values."""

    layout = "csr"

    def play(self, rounds: Rounds, at: int) -> Chosen:
        """See :class:`RowStore`."""
        chosen, rows = rounds.sparse(self.dtype == np.float64)
        self.put(at, rows)
        return chosen


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
