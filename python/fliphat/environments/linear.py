"""Dense contexts with rewards linear (or logistic) in a sparse truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from fliphat import _check, _native
from fliphat.environments.base import Outcome, Pairs, Rounds, row_buffer, sparse_pairs
from fliphat.environments.contexts import (
    AR1,
    ContextDistribution,
    Equicorrelated,
    Independent,
    TruncatedNormal,
    Uniform,
)
from fliphat.environments.native import NativeEnvironment
from fliphat.environments.truth import sparse_truth

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
    contexts : AR1, Equicorrelated, Independent, Uniform or TruncatedNormal, default AR1(0.1)
    context_scale : float, default 1.0
        Multiplies every context.
    reward : {"linear", "binary"}
        ``x'beta`` plus noise, or 1 with probability ``1/(1 + exp(-x'beta))`` and else 0. For binary rewards
        regret is a difference of probabilities.
    noise : {"gaussian", "uniform", "rademacher"}
        Noise of linear rewards.
    noise_scale : float, default 0.1
        Standard deviation, half width, or size of the noise; 0 for none.
    seed : int, default 0

    Notes
    -----
    Means, rewards and regret are computed in float64 from the float32 rows. In a round, the coordinates on
    the truth's support are drawn first, so that means do not depend on the policy or on how rows are drawn.

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
        reward: str = "linear",
        noise: str = "gaussian",
        noise_scale: float = 0.1,
        seed: int = 0,
        _margin: tuple[float, float | None] | None = None,
    ) -> None:
        super().__init__(dim, arms, seed)
        if coefficients is None:
            self._truth = sparse_truth(self.dim, sparsity, seed=self.seed)
        else:
            self._truth = sparse_pairs("coefficients", coefficients, self.dim)
        self.contexts = AR1() if contexts is None else contexts
        if not isinstance(self.contexts, AR1 | Equicorrelated | Independent | Uniform | TruncatedNormal):
            raise TypeError(
                "contexts must be AR1, Equicorrelated, Independent, Uniform or TruncatedNormal, "
                f"got {type(contexts).__name__}"
            )
        self.context_scale = _check.positive("context_scale", context_scale)
        self.reward = _check.choice("reward", reward, ("linear", "binary"))
        self.noise = _check.choice("noise", noise, NOISES)
        self.noise_scale = _check.within("noise_scale", noise_scale, 0.0, 1e300)
        self._margin = _margin
        self._simulator = self._make_simulator()

    _simulator: _native.LinearWorld

    def _make_simulator(self) -> _native.LinearWorld:
        kind, shape = self.contexts._native
        return _native.LinearWorld(
            dim=self.dim,
            arms=self.arms,
            truth=self._truth,
            contexts=kind,
            shape=shape,
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
        return Outcome(*self._simulator.play(first, rounds, estimate, buffer), buffer)

    def _draw(self, first: int, rounds: int) -> Rounds:
        contexts = np.empty((rounds, self.arms, self.dim), np.float32)
        means, noise = self._simulator.draw(first, contexts)
        return Rounds(contexts, means.reshape(rounds, self.arms), noise, self.reward == "binary")
