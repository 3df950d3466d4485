"""Dense contexts with rewards linear (or logistic) in a sparse truth."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.environments.contexts import AR1, ContextDistribution
from fliphat.environments.environment import (
    MAX_SEED,
    NativeEnvironment,
    Outcome,
    Pairs,
    Rounds,
    row_buffer,
    sparse_pairs,
)

# Keeps these draws apart from any other use of the same seed.
_STREAM = 0x7472757468


def sparse_truth(
    dim: int,
    sparsity: int,
    *,
    positions: str = "first",
    low: float = 0.5,
    high: float = 1.0,
    seed: int = 0,
) -> Pairs:
    """Draw true coefficients: magnitudes uniform in [low, high], random signs.

    Parameters
    ----------
    dim, sparsity : int
        d, and s*, the number of coefficients that are not zero.
    positions : {"first", "random"}
        The first coordinates, as in the paper, or a uniformly random set.
    low, high : float
        Range of magnitudes, 0 < low <= high.
    seed : int

    Returns
    -------
    columns : ndarray of int64, shape (sparsity,)
        Ascending.
    values : ndarray of float64, shape (sparsity,)

    Examples
    --------
    >>> columns, values = sparse_truth(400, 5, seed=3)
    >>> columns
    array([0, 1, 2, 3, 4])
    >>> bool(((abs(values) >= 0.5) & (abs(values) <= 1.0)).all())
    True
    """
    dim = arguments.integer("dim", dim, 1, 2**31 - 1)
    sparsity = arguments.integer("sparsity", sparsity, 0, dim)
    arguments.choice("positions", positions, ("first", "random"))
    low, high = arguments.positive("low", low), arguments.positive("high", high)
    if low > high:
        raise ValueError(f"low must be at most high, got {low!r} and {high!r}")
    rng = np.random.default_rng([_STREAM, arguments.integer("seed", seed, 0, MAX_SEED)])
    values = rng.uniform(low, high, sparsity) * rng.choice([-1.0, 1.0], sparsity)
    columns = np.arange(sparsity)
    if positions == "random":
        columns = np.sort(rng.choice(dim, sparsity, replace=False, shuffle=False))
    return columns.astype(np.int64), values


NOISES = ("gaussian", "uniform", "rademacher")


class SparseLinear(NativeEnvironment):
    """K arms with dense contexts; the mean reward is ``x'beta`` with a sparse beta.

    The defaults are the setting of the paper's first experiment.

    Parameters
    ----------
    dim : int, default 400
    arms : int, default 3
    sparsity : int, default 5
        s*, for drawing coefficients; not used if they are given.
    coefficients : array_like, shape (dim,), or pair (columns, values), optional
        The truth. By default drawn by :func:`~fliphat.environments.sparse_truth` from `seed`.
    contexts : AR1, Blocks, Equicorrelated, HeavyTailed, Independent, TruncatedNormal or Uniform
        AR1(0.1) by default.
    context_scale : float, default 1.0
        Multiplies every context.
    context_mean : float, default 0.0
        Added to every coordinate of every context.
    column_scales : array_like, shape (dim,), optional
        Units of the columns: each is multiplied by its own, after everything above. Coefficients that are
        drawn are divided by them, so that rewards stay the same.
    reward : {"linear", "binary"}
        ``x'beta`` plus noise, or 1 with probability ``1/(1 + exp(-x'beta))`` and else 0. For binary rewards
        regret is a difference of probabilities.
    noise : {"gaussian", "uniform", "rademacher"}
        Noise of linear rewards.
    noise_scale : float, default 0.1
        Standard deviation, half width, or size of the noise; 0 for none.
    reward_offset : float, default 0.0
        Added to linear rewards; a binary reward has none, and no context mean.
    seed : int, default 0

    Notes
    -----
    Means, rewards and regret are computed in float64 from the float32 rows. In a round, the coordinates on
    the truth's support are drawn first, so that means do not depend on the policy or on how rows are drawn.

    A context mean moves every arm's score by the same amount, and units of columns are units of coefficients:
    neither changes which arm is best or chosen. So rounds are drawn without them, and only rows, means and
    rewards are moved.

    Examples
    --------
    >>> env = SparseLinear(dim=400, arms=3, sparsity=5, seed=1)
    >>> outcome = env.play(100, rows=True)
    >>> outcome.rows.shape, outcome.rewards.shape
    ((100, 400), (100,))
    """

    def __init__(
        self,
        dim: int = 400,
        arms: int = 3,
        *,
        sparsity: int = 5,
        coefficients: Any = None,
        contexts: ContextDistribution | None = None,
        context_scale: float = 1.0,
        context_mean: float = 0.0,
        column_scales: npt.ArrayLike | None = None,
        reward: str = "linear",
        noise: str = "gaussian",
        noise_scale: float = 0.1,
        reward_offset: float = 0.0,
        seed: int = 0,
        _margin: tuple[float, float | None] | None = None,
    ) -> None:
        super().__init__(dim, arms, seed)
        self.column_scales = _units(column_scales, self.dim)
        if coefficients is None:
            drawn = sparse_truth(self.dim, sparsity, seed=self.seed)
            self._truth = drawn[0], drawn[1] / self._unit(drawn[0])
        else:
            self._truth = sparse_pairs("coefficients", coefficients, self.dim)
        self.contexts = AR1() if contexts is None else contexts
        if not isinstance(self.contexts, ContextDistribution):
            allowed = ", ".join(kind.__name__ for kind in get_args(ContextDistribution))
            raise TypeError(f"contexts must be one of {allowed}, got {type(contexts).__name__}")
        self.context_scale = arguments.positive("context_scale", context_scale)
        self.context_mean = arguments.within("context_mean", context_mean, -1e30, 1e30)
        self.reward_offset = arguments.within("reward_offset", reward_offset, -1e300, 1e300)
        self.reward = arguments.choice("reward", reward, ("linear", "binary"))
        self.noise = arguments.choice("noise", noise, NOISES)
        self.noise_scale = arguments.within("noise_scale", noise_scale, 0.0, 1e300)
        if self.reward == "binary" and (self.context_mean or self.reward_offset):
            raise ValueError(
                "context_mean and reward_offset must be 0 for binary rewards, "
                f"got {context_mean!r} and {reward_offset!r}"
            )
        self._margin = _margin
        self._simulator = self._make_simulator()

    _simulator: _native.LinearWorld

    def _make_simulator(self) -> _native.LinearWorld:
        return _native.LinearWorld(
            dim=self.dim,
            arms=self.arms,
            truth=self._without_units(self._truth),
            **self.contexts._native,
            scale=self.context_scale,
            reward="binary" if self.reward == "binary" else self.noise,
            noise_scale=self.noise_scale,
            seed=self.seed,
            margin=self._margin,
        )

    @property
    def truth(self) -> Pairs:
        """Columns (ascending) and values of the true coefficients."""
        return self._truth

    def _play(self, first: int, rounds: int, estimate: Pairs, rows: bool, out: Any) -> Outcome:
        buffer = row_buffer(out, rounds, self.dim) if rows else None
        arms, rewards, regret = self._simulator.play(first, rounds, self._without_units(estimate), buffer)
        if buffer is not None:
            self._move(buffer)
        return Outcome(arms, rewards + self._raised(), regret, buffer)

    def _draw(self, first: int, rounds: int) -> Rounds:
        contexts = np.empty((rounds, self.arms, self.dim), np.float32)
        means, noise = self._simulator.draw(first, contexts)
        self._move(contexts)
        means = means.reshape(rounds, self.arms) + self._raised()
        return Rounds(contexts, means, noise, self.reward == "binary")

    def _unit(self, columns: npt.NDArray[np.int64]) -> Any:
        return 1.0 if self.column_scales is None else self.column_scales[columns].astype(np.float64)

    def _without_units(self, pairs: Pairs) -> Pairs:
        """Return coefficients for columns that are not multiplied by their units."""
        return pairs if self.column_scales is None else (pairs[0], pairs[1] * self._unit(pairs[0]))

    def _raised(self) -> float:
        """Return what the mean of contexts and the offset add to every arm's mean reward."""
        return self.context_mean * float(self._without_units(self._truth)[1].sum()) + self.reward_offset

    def _move(self, rows: npt.NDArray[np.float32]) -> None:
        """Give rows that were just drawn their mean and their units."""
        if self.context_mean:
            rows += np.float32(self.context_mean)
        if self.column_scales is not None:
            rows *= self.column_scales


def _units(column_scales: npt.ArrayLike | None, dim: int) -> npt.NDArray[np.float32] | None:
    if column_scales is None:
        return None
    units = np.array(column_scales, dtype=np.float32)
    if units.shape != (dim,):
        raise ValueError(f"column_scales must have shape ({dim},), got {units.shape}")
    if not (np.isfinite(units).all() and (units > 0).all()):
        raise ValueError("column_scales must be finite and above 0")
    return units
