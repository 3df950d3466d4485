"""Plays rounds by few of many columns: draws vote on those, and the rows that are kept are whole.

A row that is kept is the context with the slot of its arm behind it, dense or sparse as contexts come. What
is no number anywhere in a context, seen by the votes or not, makes the round one that can't be used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native

__all__ = ["GrownChooser"]

_Flags = npt.NDArray[np.uint8]
_Words = npt.NDArray[np.uint64]
_Choice = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]


class GrownChooser:
    """See `fliphat.policies.engine.rule.Chooser`; `public` is what `_native.Votes` takes last."""

    def __init__(
        self,
        dim: int,
        columns: npt.NDArray[np.int64],
        draws: npt.NDArray[np.float64],
        slots: npt.NDArray[np.int64],
        inverse: npt.NDArray[np.float32],
        shift: npt.NDArray[np.float32],
        *public: Any,
    ) -> None:
        self._dim, self._columns, self._arms = dim, columns, len(slots)
        self._order = np.argsort(columns)
        self._sorted = columns[self._order]
        if not len(columns):  # a column of zeros stands for the empty support
            draws = np.concatenate([0 * draws, draws], axis=2)
            inverse, shift = np.ones(1, np.float32), np.zeros(1, np.float32)
        self._votes = _native.Votes(draws, slots, inverse, shift, *public)

    def _vote(
        self,
        support: npt.NDArray[Any],
        valid: npt.NDArray[np.bool_],
        words: _Words,
        explored: _Flags | None,
    ) -> _Choice:
        if not len(self._columns):
            support = np.zeros((len(words), 1), support.dtype)
        support = np.ascontiguousarray(support)  # indexing columns leaves them in Fortran's order
        support[~valid] = np.nan
        out = np.empty((len(words), support.shape[1] + 1), support.dtype)
        return self._votes.choose_dense(support, self._arms, words, None, out, 0, explored)

    def choose_one(
        self,
        contexts: npt.NDArray[Any],
        word: int,
        keep: bool,
        out: npt.NDArray[Any],
        at: int,
        explored: bool = False,
    ) -> tuple[int, int]:
        """Play one round and write its row to ``out[at]``."""
        flags = np.array([keep], np.uint8), out, at, np.array([explored], np.uint8)
        arms, votes = self.choose_dense(contexts, self._arms, np.array([word], np.uint64), *flags)
        return int(arms[0]), int(votes[0])

    def choose_dense(
        self,
        contexts: npt.NDArray[Any],
        arms: int,
        words: _Words,
        keep: _Flags | None,
        out: npt.NDArray[Any],
        at: int,
        explored: _Flags | None = None,
    ) -> _Choice:
        """Play rounds and write their rows to `out` from `at` on."""
        rows = out[at : at + len(words)]
        with np.errstate(over="ignore"):
            rows[:, :-1] = contexts
            rows[:, -1] = 0
            valid = np.all(np.isfinite(rows.astype(np.float32)), axis=1)
        chosen, votes = self._vote(rows[:, self._columns], valid, words, explored)
        rows[:, -1] = chosen
        rows[~valid if keep is None else ~valid | (keep == 0)] = 0
        return chosen, votes

    def choose_csr(
        self,
        indptr: npt.NDArray[Any],
        indices: npt.NDArray[Any],
        data: npt.NDArray[Any],
        arms: int,
        words: _Words,
        keep: _Flags | None,
        out: npt.NDArray[Any],
        at: int,
        explored: _Flags | None = None,
    ) -> _Choice:
        """Play rounds whose contexts are sparse, in an episode whose first ones were dense."""
        rows, columns, values, valid = self._usable(indptr, indices, data)
        contexts = np.zeros((len(words), self._dim), values.dtype)
        contexts[rows, columns] = values
        contexts[~valid] = np.nan
        return self.choose_dense(contexts, arms, words, keep, out, at, explored)

    def _usable(
        self, indptr: npt.NDArray[Any], indices: npt.NDArray[Any], data: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return rows, columns and values of what can be used, and which rows that are.

        As everywhere, columns of a row must increase and be in range, and values finite in single precision.
        """
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        # Copied, so that nobody else can write to them between this check and their use.
        columns, values = np.array(indices[: len(rows)]), np.array(data[: len(rows)])
        with np.errstate(over="ignore"):
            wrong = (columns < 0) | (columns >= self._dim) | ~np.isfinite(values.astype(np.float32))
        wrong[1:] |= (rows[1:] == rows[:-1]) & (columns[1:] <= columns[:-1])
        valid = np.bincount(rows[wrong], minlength=len(indptr) - 1) == 0
        stays = valid[rows]
        return rows[stays], columns[stays], values[stays], valid

    def choose_dense_to_csr(
        self,
        contexts: npt.NDArray[Any],
        arms: int,
        words: _Words,
        keep: _Flags | None,
        double: bool,
        explored: _Flags | None = None,
    ) -> Any:
        """Play rounds and return their rows sparse."""
        at, columns = np.nonzero(contexts)
        indptr = np.append(0, np.cumsum(np.bincount(at, minlength=len(contexts))))
        values = contexts[at, columns]
        return self.choose_csr_to_csr(indptr, columns, values, arms, words, keep, double, explored)

    def choose_csr_to_csr(
        self,
        indptr: npt.NDArray[Any],
        indices: npt.NDArray[Any],
        data: npt.NDArray[Any],
        arms: int,
        words: _Words,
        keep: _Flags | None,
        double: bool,
        explored: _Flags | None = None,
    ) -> Any:
        """Play rounds whose contexts are sparse, and return their rows sparse."""
        n = len(words)
        at, indices, values, valid = self._usable(indptr, indices, data)
        values = values.astype(np.float64 if double else np.float32)
        support = np.zeros((n, len(self._columns)), values.dtype)
        if len(self._columns):
            place = np.minimum(np.searchsorted(self._sorted, indices), len(self._sorted) - 1)
            found = self._sorted[place] == indices
            support[at[found], self._order[place[found]]] = values[found]
        chosen, votes = self._vote(support, valid, words, explored)
        learned = valid if keep is None else valid & (keep != 0)
        lengths = np.where(learned, np.bincount(at, minlength=n) + 1, 0)
        ends = np.cumsum(lengths)
        columns, kept = np.full(ends[-1], self._dim, np.int32), np.zeros(ends[-1], values.dtype)
        slots = (ends - 1)[learned]
        others = np.ones(ends[-1], bool)
        others[slots] = False
        stays = learned[at]
        columns[others], kept[others] = indices[stays], values[stays]
        kept[slots] = chosen[learned]
        return chosen, votes, lengths.astype(np.uint32), columns, kept
