"""LinUCB with local privacy: every person sends a noisy context matrix and a noisy moment.

| Zheng et al., for abs(x) <= 1 and abs(y) <= 2 | here |
|---|---|
| s = 6 sqrt(2 ln(2.5/delta)) / epsilon, on each entry of x x' and of x y | `paper_deviation` |
| Upsilon_t = s sqrt(t) (4 sqrt d + 2 ln(2 T/alpha)) | `_upsilon` |
| V_t = sum + 2 Upsilon_t I | `_shift` |
| beta_t = 2 s sqrt(d ln T) + (sqrt(3 Upsilon_t) + s sqrt(d t/Upsilon_t)) d ln T | `_width` |

Sensitivities are added there, 2 + 2 * 2 = 6; together they are at most sqrt(18), so s costs 9/s^2 in zCDP.
"""

from __future__ import annotations

import math
from typing import Any

from fliphat.lab.peers.peer import FAILURE, RidgePeer
from fliphat.lab.peers.rules import Local, ReleasedSums
from fliphat.lab.peers.sums import RADIUS, GramAndMoment
from fliphat.privacy.priced import VectorNoise


def paper_deviation(epsilon: float, delta: float) -> float:
    """Return s, the published standard deviation for contexts in the unit ball and rewards within 2."""
    return 6 * math.sqrt(2 * math.log(2.5 / delta)) / epsilon


def local_noise(statistic: GramAndMoment, epsilon: float, delta: float) -> tuple[int, int]:
    """Return the published noise in integers: s times L^2 on x x', and s times L R / 2 on x y."""
    deviation = paper_deviation(epsilon, delta)
    return math.ceil(deviation * RADIUS**2), math.ceil(deviation * RADIUS / 2)


def published_statistic(
    dim: int, norm: float, reward_clip: float, epsilon: float, delta: float
) -> tuple[GramAndMoment, VectorNoise]:
    """Return x x' and x y apart, with the published noise on both."""
    statistic = GramAndMoment(dim, context_norm=norm, reward_clip=reward_clip)
    return statistic, statistic.noise(1, *local_noise(statistic, epsilon, delta))


class ZhengLocal(RidgePeer):
    """LinUCB on what every person releases alone. Locally private: nobody is trusted.

    Parameters
    ----------
    horizon : int
        T, of the widths.
    options
        See :class:`fliphat.lab.peers.peer.RidgePeer`. Rows are scaled to the paper's L = 1, R = 2.

    References
    ----------
    K. Zheng, T. Cai, W. Huang, Z. Li, L. Wang, "Locally Differentially Private (Contextual) Bandits
    Learning", NeurIPS 2020.

    Examples
    --------
    >>> from fliphat.lab.peers import ZhengLocal
    >>> for epsilon in (1.0, 10.0, 30.0):
    ...     bought = ZhengLocal(5, epsilon, 0.01, horizon=1000, calibration="paper").privacy
    ...     print(bought.claimed_epsilon, round(bought.epsilon, 2), bought.kept)
    1.0 0.29 True
    10.0 6.55 True
    30.0 34.38 False
    """

    notion = "local"
    protects = "a round's chosen context and reward, from the server too"

    def __init__(self, dim: int, epsilon: float, delta: float, *, horizon: int, **options: Any) -> None:
        super().__init__(dim, epsilon, delta, rule=Local(), horizon=horizon, **options)

    def _published(
        self, dim: int, rule: Any, norm: float, reward_clip: float, epsilon: float, delta: float
    ) -> tuple[GramAndMoment, VectorNoise]:
        return published_statistic(dim, norm, reward_clip, epsilon, delta)

    def _upsilon(self, released: ReleasedSums) -> float:
        if self.calibration == "proven":
            return super()._upsilon(released)
        deviation = self.statistic.gram_deviation(self.noise)
        spread = 4 * math.sqrt(self.dim) + 2 * math.log(2 * self.horizon / FAILURE)
        return deviation * math.sqrt(released.rows) * spread

    def _width(self, released: ReleasedSums) -> float:
        # The paper's units: contexts within 1.
        deviation = self.statistic.gram_deviation(self.noise) / self._norm**2
        upsilon = self._upsilon(released) / self._norm**2
        log_horizon = math.log(self.horizon)
        noise = math.sqrt(3 * upsilon) + deviation * math.sqrt(self.dim * released.rows / upsilon)
        width = 2 * deviation * math.sqrt(self.dim * log_horizon) + noise * self.dim * log_horizon
        return width * self._norm
