"""AdaC-OFUL: rewards are private, contexts are NOT.

| Azize and Basu, AdaC-OFUL | here |
|---|---|
| V_t = lambda I + sum of a a' | `_matrix`, exact: contexts are public |
| new episode where det V_t > (1 + C) det V_tau | `growth` = 1 + C; a function of public contexts |
| Y_l ~ N(0, (2/rho) I), for abs(a) <= 1, abs(r) <= 1 | one noise a block of rewards, scaled by L R |
| theta-tilde = V^-1 (sum of a r + Y_1 + ... + Y_l) | `estimate` |
| beta_t = sqrt(2 ln(1/alpha) + d ln(1 + t/(lambda d))) + sqrt(lambda) S, plus the noise's share | `_width` |

A determinant that doubles needs d ln(T) episodes, not ln(T): at d = 400 hundreds, each with a full noise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.lab.peers.peer import CALIBRATIONS, FAILURE, OptimisticPeer, default_norm
from fliphat.lab.peers.rules import Batches, ReleasedSums
from fliphat.lab.peers.sums import Moments
from fliphat.privacy import rho_from_epsilon


class AdaCOFUL(OptimisticPeer):
    """OFUL with exact public contexts and noisy sums of rewards. Only rewards are protected.

    Parameters
    ----------
    context_norm, reward_clip : float
        L (by default sqrt(d)) and R; products are cut to L R.
    calibration : {"proven", "paper"}
        The smallest noise for the claim, or the published one for the rho that zCDP gives the claim.
    growth : float
        1 + C: how much the determinant grows in an episode.
    check_every : int
        Rounds between looks at the determinant; the paper has 1.
    ridge, truth_norm, reward_noise : float
        lambda in units of L^2, S and sigma.

    References
    ----------
    A. Azize, D. Basu, "Concentrated Differential Privacy for Bandits", SaTML 2024; A. Azize, PhD thesis,
    Lille 2024, algorithm 9.

    Examples
    --------
    >>> from fliphat.lab.peers import AdaCOFUL
    >>> print(AdaCOFUL(10, 1.0, 0.01).privacy)
    rewards only privacy of rewards (contexts are public): epsilon = 1 at delta = 0.01; it keeps the claimed 1
    """

    notion = "rewards only"
    protects = "rewards (contexts are public)"
    statistic: Moments

    def __init__(
        self,
        dim: int,
        epsilon: float,
        delta: float,
        *,
        context_norm: float | None = None,
        reward_clip: float = 4.0,
        calibration: str = "proven",
        optimistic: bool = True,
        growth: float = 2.0,
        check_every: int = 16,
        ridge: float = 0.1,
        truth_norm: float = 2.0,
        reward_noise: float = 0.1,
        seed: int | None = None,
    ) -> None:
        arguments.choice("calibration", calibration, CALIBRATIONS)
        norm = default_norm(dim, context_norm)
        clip = norm * arguments.positive("reward_clip", reward_clip)
        statistic, rule = Moments(dim, product_clip=clip), Batches(check_every)
        if calibration == "paper":
            deviation = math.sqrt(2 / rho_from_epsilon(epsilon, delta)) * clip
            noise = statistic.noise(1, math.ceil(deviation * statistic.scale))
        else:
            noise = self._proven(statistic, rule, epsilon, delta)
        made: dict[str, Any] = {"statistic": statistic, "rule": rule, "noise": noise}
        super().__init__(dim, epsilon, delta, optimistic=optimistic, seed=seed, **made)
        self.episodes = 0
        self._growth = math.log(arguments.within("growth", growth, 1.001, 1e9))
        self._ridge, self._truth_norm, self._reward_noise = ridge * norm**2, truth_norm, reward_noise
        self._matrix = self._ridge * np.eye(self.dim)
        self._log_determinant = self.dim * math.log(self._ridge)
        self._waiting_sums, self._waiting_rows = np.zeros(self.dim, np.int64), 0

    def _release(self, sums: npt.NDArray[np.int64], rows: list[npt.NDArray[Any]]) -> ReleasedSums | None:
        """Release the rewards of an episode where the determinant of public contexts has grown enough."""
        wide = np.concatenate(rows).astype(np.float64)
        self._matrix += wide.T @ wide
        self._waiting_sums += sums
        self._waiting_rows += len(wide)
        now = float(np.linalg.slogdet(self._matrix)[1])
        if now <= self._log_determinant + self._growth:
            return None
        released = self._running.add(self._waiting_sums, self._waiting_rows)
        self._waiting_sums, self._waiting_rows = np.zeros(self.dim, np.int64), 0
        self._log_determinant = now
        self.episodes += 1
        return released

    def _read(self, released: ReleasedSums) -> None:
        self._use(self._matrix, self.statistic.read(released.values), released)

    def _width(self, released: ReleasedSums) -> float:
        least = float(np.linalg.eigvalsh(self._matrix)[0])
        spread = self.dim * math.log(1 + self.rounds / (self._ridge * self.dim))
        sampling = self._reward_noise * math.sqrt(2 * math.log(1 / FAILURE) + spread)
        length = self.dim + 2 * math.sqrt(self.dim * math.log(1 / FAILURE))
        length += 2 * math.log(self.rounds / FAILURE)
        deviation = self.statistic.deviation(self.noise) * math.sqrt(released.nodes)
        return sampling + math.sqrt(self._ridge) * self._truth_norm + deviation * math.sqrt(length / least)
