"""Explore the sparsity, then commit: uniform rounds, one Lasso, greedy ever after. Without privacy.

| Hao, Lattimore, Wang (algorithm ESTC) | here |
|---|---|
| n_1 ~ T^(2/3) (s^2 ln d)^(1/3) | `exploration_rounds` |
| lambda_1 ~ 4 sigma sqrt(ln d / n_1) | `_level` |
"""

from __future__ import annotations

import math

from fliphat import arguments
from fliphat.lab.baselines.lasso import LassoBandit


class ExploreThenCommit(LassoBandit):
    """Uniform for a public number of rounds, then greedy on one Lasso fit. Not private.

    Parameters
    ----------
    dim, sparsity, horizon : int
        d, s and T, which set the number of rounds that explore.
    reward_noise : float
        sigma.

    References
    ----------
    B. Hao, T. Lattimore, M. Wang, "High-Dimensional Sparse Linear Bandits", NeurIPS 2020.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.baselines import ExploreThenCommit
    >>> policy = ExploreThenCommit(dim=100, sparsity=5, horizon=1000, seed=1)
    >>> played = policy.play(SparseLinear(dim=100, seed=1), 1000)
    >>> policy.exploration_rounds, bool(played.regret[-100:].mean() < 0.02)
    (486, True)
    """

    def __init__(
        self, dim: int, sparsity: int, horizon: int, *, reward_noise: float = 0.1, seed: int | None = None
    ) -> None:
        super().__init__(dim, penalty=reward_noise, seed=seed)
        self.sparsity = arguments.integer("sparsity", sparsity, 1, self.dim)
        self.horizon = arguments.integer("horizon", horizon, 1, 2**40)
        wanted = self.horizon ** (2 / 3) * (self.sparsity**2 * math.log(max(self.dim, 2))) ** (1 / 3)
        self.exploration_rounds = max(1, min(math.floor(wanted), self.horizon // 2))
        self._next = self.exploration_rounds
        self._committed = False

    @property
    def remaining(self) -> int:
        """Rounds until the fit; after it there is no other."""
        return 2**31 - 1 if self._committed else super().remaining

    def _learn(self, rows: object, rewards: object) -> None:
        if not self._committed:
            super()._learn(rows, rewards)  # type: ignore[arg-type]
            self._committed = self.rounds >= self.exploration_rounds

    def _level(self, rounds: int) -> float:
        return 4 * self.penalty * math.sqrt(math.log(max(self.dim, 2)) / rounds)
