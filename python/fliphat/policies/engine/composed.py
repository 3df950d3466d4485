"""Contexts that are not one matrix: crossed features, and rounds with different numbers of arms.

Both are played by the same native code as matrices are, on parts of them, so that arms, ties and rows have
the bits that whole matrices would give.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native
from fliphat.contexts import Crossed
from fliphat.fit.known import SparseEstimate
from fliphat.kernels._rows import Sparse

__all__ = ["CrossedByEstimate", "Ragged", "stacked"]


class CrossedByEstimate:
    """Crossed features of one or several rounds, and the estimate that scores them.

    A score looks at the estimate's columns alone, in ascending order. A matrix of just those has the same
    scores, bit for bit; the row that is kept is built for the arm that was chosen.
    """

    def __init__(self, crossed: Crossed, estimate: SparseEstimate) -> None:
        self._crossed = crossed
        self.dim = crossed.dim
        self._columns = estimate.indices
        self._narrow = _native.Estimate(
            np.arange(len(self._columns), dtype=np.int64), estimate.values, max(len(self._columns), 1)
        )

    def play(
        self,
        words: npt.NDArray[np.uint64],
        learned: npt.NDArray[np.uint8] | None,
        explored: npt.NDArray[np.uint8] | None,
        out: npt.NDArray[Any],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
        """Play the rounds, and write the chosen rows to `out`."""
        crossed, arms = self._crossed, self._crossed.arms
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = crossed.columns(self._columns)
        if not len(self._columns):
            narrow = np.zeros((crossed.rounds * arms, 1), narrow.dtype)
        # A value that can't be kept makes its round invalid, wherever in the row it is.
        narrow[np.repeat(~crossed.usable(), arms)] = np.nan
        unused = np.zeros((crossed.rounds, narrow.shape[1]), out.dtype)
        chosen, tied = self._narrow.choose_dense(narrow, arms, words, learned, unused, 0, explored)
        out[:] = 0
        for i in np.flatnonzero(chosen >= 0 if learned is None else (chosen >= 0) & (learned != 0)):
            out[i] = crossed.row(int(i), int(chosen[i]))
        return chosen, tied


@dataclass(frozen=True)
class Ragged:
    """Rounds with different numbers of arms: contexts of each, all dense or all sparse."""

    rounds: list[npt.NDArray[Any]] | list[Sparse]
    arms: npt.NDArray[np.int64]

    def groups(self) -> Iterator[tuple[npt.NDArray[np.int64], int, npt.NDArray[Any] | Sparse]]:
        """Yield rounds with the same number of arms: where they are, that number, and their rows."""
        for arms in np.unique(self.arms):
            at = np.flatnonzero(self.arms == arms)
            yield at, int(arms), stacked([self.rounds[i] for i in at])


def stacked(parts: list[Any]) -> npt.NDArray[Any] | Sparse:
    """Return the rows of several rounds as one matrix."""
    if not isinstance(parts[0], Sparse):
        return np.ascontiguousarray(np.concatenate(parts))
    sizes = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)])
    # Only what the offsets name: SciPy allows more behind it.
    indices = [part.indices[: part.indptr[-1]] for part in parts]
    data = [part.data[: part.indptr[-1]] for part in parts]
    together = np.concatenate(indices)
    offsets = np.cumsum(sizes).astype(together.dtype)
    shape = (len(offsets) - 1, parts[0].shape[1])
    return Sparse(offsets, together, np.concatenate(data), shape)
