"""Rare switching with private contexts: Azize and Basu's blueprint made jointly private.

| Azize and Basu, AdaC-OFUL | here |
|---|---|
| V_t = sum of a a' + lambda I, exact | noisy: contexts are private, so X'X is released with noise |
| episode ends where det V_t > (1 + C) det V_tau | at a public boundary, or by Rayleigh quotients |
| theta-tilde = V^-1 (u + Y_1 + ... + Y_l) | the same, of weighted noisy sums of blocks |
| beta-tilde | `_width` |

A determinant of private contexts must not end an episode, and one of noisy matrices bounds the volume and
not the worst direction. Zhou's rule is sound: switch where the largest eigenvalue of ``V_tau^(-1/2) V_t
V_tau^(-1/2)`` passes a factor. It reads released matrices alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.lab.peers.base import FAILURE, RidgePeer, default_norm
from fliphat.lab.peers.statistics import Blocks, Released, SecondMoments, Tree

__all__ = ["RareSwitching"]

_SWITCHING = ("public", "rayleigh")


class RareSwitching(RidgePeer):
    """LinUCB (or greedy ridge) on noisy second moments of public blocks. Jointly private.

    Parameters
    ----------
    dim : int
    epsilon, delta : float
    context_norm, reward_clip, reward_share : float
        L (by default sqrt(d)), R and kappa; see :class:`fliphat.lab.peers.statistics.SecondMoments`.
    optimistic : bool
    first : int
        Rounds before the first release; blocks double from there.
    switching : {"public", "rayleigh"}
        Whether the estimate changes with every block, or a tree is released and the estimate changes where a
        Rayleigh quotient of released matrices passes `factor`.
    factor : float
    leaf, horizon : int
        Of the tree.
    truth_norm, reward_noise : float
        S and sigma of the width.
    seed : int, optional

    References
    ----------
    A. Azize, D. Basu, "Concentrated Differential Privacy for Bandits", SaTML 2024 (rewards alone are private
    there: :class:`AdaCOFUL`).

    X. Zhou, arXiv:2605.23131 (2026), on switching under noise.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.peers import RareSwitching
    >>> policy = RareSwitching(10, 10.0, 0.01, optimistic=False, seed=1)
    >>> played = policy.play(SparseLinear(dim=10, seed=1), 4000)
    >>> bool(played.regret[-1000:].mean() < 0.2 * played.regret[:64].mean())
    True
    """

    def __init__(
        self,
        dim: int,
        epsilon: float,
        delta: float,
        *,
        context_norm: float | None = None,
        reward_clip: float = 4.0,
        reward_share: float = 0.5,
        optimistic: bool = True,
        first: int = 64,
        switching: str = "public",
        factor: float = 2.0,
        leaf: int = 128,
        horizon: int = 2**20,
        truth_norm: float = 2.0,
        reward_noise: float = 0.1,
        seed: int | None = None,
    ) -> None:
        arguments.choice("switching", switching, _SWITCHING)
        norm = default_norm(dim, context_norm)
        statistic = SecondMoments(dim, context_norm=norm, reward_clip=reward_clip, reward_share=reward_share)
        rule: Any = Blocks(first) if switching == "public" else Tree(leaf=leaf, horizon=horizon)
        noise = self._proven(statistic, rule, epsilon, delta)
        if switching == "public":
            rule = Blocks(first, noise_rows=statistic.noise_rows(noise))
        super().__init__(
            dim,
            statistic=statistic,
            rule=rule,
            noise=noise,
            epsilon=epsilon,
            delta=delta,
            seed=seed,
            optimistic=optimistic,
        )
        self.switching, self.switches = switching, 0
        self.factor = arguments.within("factor", factor, 1.0, 1e9)
        self._horizon, self._norm, self._truth_norm = horizon, norm, truth_norm
        self._reward_noise = reward_noise
        self._at: npt.NDArray[np.float64] | None = None

    def _shift(self, released: Released) -> float:
        return (2.0 if self.optimistic else 1.0) * self._noise_norm(released, self._horizon)

    def _use(
        self, matrix: npt.NDArray[np.float64], moment: npt.NDArray[np.float64], released: Released
    ) -> None:
        before = self._at if self.switching == "rayleigh" else None
        if before is not None and largest_quotient(before, matrix) <= self.factor:
            return
        self._at = matrix
        self.switches += 1
        super()._use(matrix, moment, released)

    def _width(self, released: Released) -> float:
        least = self._noise_norm(released, self._horizon)
        spread = self.dim * math.log(3 + released.rows * self._norm**2 / (self.dim * least))
        sampling = self._reward_noise * math.sqrt(2 * math.log(2 / FAILURE) + spread)
        deviation = self.statistic.gram_deviation(self.noise) * math.sqrt(released.nodes / least)
        gamma = deviation * (math.sqrt(self.dim) + math.sqrt(2 * math.log(2 * self._horizon / FAILURE)))
        return sampling + self._truth_norm * math.sqrt(3 * least) + gamma


def largest_quotient(before: npt.NDArray[np.float64], now: npt.NDArray[np.float64]) -> float:
    """Return the largest ``x' now x / x' before x``; infinite if `before` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> largest_quotient(np.diag([1.0, 4.0]), np.diag([3.0, 4.0]))
    3.0
    """
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(before))
    except np.linalg.LinAlgError:
        return math.inf
    return float(np.linalg.eigvalsh(inverse @ now @ inverse.T)[-1])
