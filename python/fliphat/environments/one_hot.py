"""Categories as columns of zeros and ones, with rewards linear in a sparse truth."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.environments.environment import Environment, Outcome, Pairs, Rounds, row_buffer, sparse_pairs
from fliphat.environments.linear import sparse_truth

# Words that one step of the generator's counter gives.
_STEP: Final = 4
_TO_UNIT: Final = 2.0**-53


class OneHot(Environment):
    """K arms described by categories; each category is a group of columns of which one is 1.

    The mean reward is ``x'beta`` with a sparse beta. Groups are as even as can be, and every level of a group
    is equally likely.

    Parameters
    ----------
    dim : int, default 400
    arms : int, default 3
    groups : int, default 20
        Categories, which is also the number of non-zeros a row; at most `dim`.
    sparsity : int, default 5
        s*, for drawing coefficients; not used if they are given.
    coefficients : array_like, shape (dim,), or pair (columns, values), optional
        The truth. By default drawn by :func:`~fliphat.environments.sparse_truth` from `seed`, on columns
        that it draws too.
    noise_scale : float, default 0.1
        Standard deviation of the normal noise in rewards.
    seed : int, default 0

    Examples
    --------
    >>> env = OneHot(dim=40, groups=4, seed=1)
    >>> outcome = env.play(100)
    >>> outcome.rows.shape, set(outcome.rows.sum(axis=1).tolist())
    ((100, 40), {4.0})
    """

    def __init__(
        self,
        dim: int = 400,
        arms: int = 3,
        *,
        groups: int = 20,
        sparsity: int = 5,
        coefficients: Any = None,
        noise_scale: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(dim, arms, seed)
        self.groups = arguments.integer("groups", groups, 1, self.dim)
        if coefficients is None:
            self._truth = sparse_truth(self.dim, sparsity, positions="random", seed=self.seed)
        else:
            self._truth = sparse_pairs("coefficients", coefficients, self.dim)
        self.noise_scale = arguments.within("noise_scale", noise_scale, 0.0, 1e300)
        # First columns of the groups, and the end of the last one.
        self._starts = np.arange(self.groups + 1, dtype=np.int64) * self.dim // self.groups

    @property
    def truth(self) -> Pairs:
        """Columns (ascending) and values of the true coefficients."""
        return self._truth

    def _words(self, first: int, rounds: int) -> npt.NDArray[np.uint64]:
        """Return each round's words: two for the reward's noise, one for ties, one for every level."""
        needed = 3 + self.arms * self.groups
        steps = -(-needed // _STEP)
        generator = np.random.Philox(key=self.seed)
        generator.advance(first * steps)
        return generator.random_raw(rounds * steps * _STEP).reshape(rounds, steps * _STEP)[:, :needed]

    def _levels(self, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Return the columns that are 1, shape (rounds, arms, groups)."""
        sizes = np.diff(self._starts).astype(np.uint64)
        high = (words[:, 3:] >> np.uint64(32)).reshape(len(words), self.arms, self.groups)
        return (high * sizes >> np.uint64(32)).astype(np.int64) + self._starts[:-1]

    def _noise(self, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
        """Return normal noise by the method of Box and Muller."""
        radius, angle = ((words[:, i] >> np.uint64(11)) * _TO_UNIT for i in (0, 1))
        # The radius comes from (0, 1]: its logarithm is finite.
        noise: npt.NDArray[np.float64] = np.sqrt(-2 * np.log1p(-radius)) * np.cos(2 * np.pi * angle)
        return self.noise_scale * noise

    def _scores(self, pairs: Pairs, levels: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        dense = np.zeros(self.dim)
        dense[pairs[0]] = pairs[1]
        scores: npt.NDArray[np.float64] = dense[levels].sum(axis=2)
        return scores

    def _play(self, first: int, rounds: int, estimate: Pairs, rows: bool, out: Any) -> Outcome:
        buffer = row_buffer(out, rounds, self.dim) if rows else None
        words = self._words(first, rounds)
        levels = self._levels(words)
        means, scores = self._scores(self._truth, levels), self._scores(estimate, levels)
        arms = _best(scores, words[:, 2])
        each = np.arange(rounds)
        if buffer is not None:
            buffer[:] = 0
            buffer[each[:, None], levels[each, arms]] = 1
        mean = means[each, arms]
        return Outcome(arms, mean + self._noise(words), means.max(axis=1) - mean, buffer)

    def _draw(self, first: int, rounds: int) -> Rounds:
        words = self._words(first, rounds)
        levels = self._levels(words)
        contexts = np.zeros((rounds, self.arms, self.dim), np.float32)
        np.put_along_axis(contexts, levels, np.float32(1), axis=2)
        return Rounds(contexts, self._scores(self._truth, levels), self._noise(words), False)


def _best(scores: npt.NDArray[np.float64], words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return each round's best arm, one of the equals chosen by the round's word."""
    # Sums of the same coefficients in another order may differ in their last bits.
    top = scores.max(axis=1, keepdims=True)
    equal = scores >= top - 1e-9 * np.maximum(1.0, np.abs(top))
    count = equal.sum(axis=1).astype(np.uint64)
    which = ((words >> np.uint64(32)) * count >> np.uint64(32)).astype(np.int64)
    found: npt.NDArray[np.int64] = (np.cumsum(equal, axis=1) == which[:, None] + 1).argmax(axis=1)
    return found
