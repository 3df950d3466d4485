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

from fliphat import arguments
from fliphat.lab.peers.base import CALIBRATIONS, FAILURE, RidgePeer, default_norm
from fliphat.lab.peers.statistics import GramAndMoment, Local, Released, SecondMoments
from fliphat.lab.peers.statistics.moments import RADIUS

__all__ = ["ZhengLocal", "local_noise", "paper_deviation"]


def paper_deviation(epsilon: float, delta: float) -> float:
    """Return s, the published standard deviation for contexts in the unit ball and rewards within 2.

    Examples
    --------
    >>> round(paper_deviation(1.0, 0.01), 1)
    19.9
    """
    return 6 * math.sqrt(2 * math.log(2.5 / delta)) / epsilon


def local_noise(statistic: GramAndMoment, epsilon: float, delta: float) -> tuple[int, int]:
    """Return the published noise in integers: s times L^2 on x x', and s times L R / 2 on x y."""
    deviation = paper_deviation(epsilon, delta)
    return math.ceil(deviation * RADIUS**2), math.ceil(deviation * RADIUS / 2)


class ZhengLocal(RidgePeer):
    """LinUCB on what every person releases alone. Locally private: nobody is trusted.

    Parameters
    ----------
    dim : int
    epsilon, delta : float
    horizon : int
        T, of the widths.
    context_norm, reward_clip : float
        L (by default sqrt(d)) and R; the paper has 1 and 2, to which rows are scaled.
    calibration : {"proven", "paper"}
    optimistic : bool
    seed : int, optional

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

    def __init__(
        self,
        dim: int,
        epsilon: float,
        delta: float,
        *,
        horizon: int,
        context_norm: float | None = None,
        reward_clip: float = 4.0,
        calibration: str = "proven",
        optimistic: bool = True,
        seed: int | None = None,
    ) -> None:
        arguments.choice("calibration", calibration, CALIBRATIONS)
        norm, rule = default_norm(dim, context_norm), Local()
        statistic: GramAndMoment | SecondMoments
        if calibration == "paper":
            statistic = GramAndMoment(dim, context_norm=norm, reward_clip=reward_clip)
            noise = statistic.noise(1, *local_noise(statistic, epsilon, delta))
        else:
            statistic = SecondMoments(dim, context_norm=norm, reward_clip=reward_clip)
            noise = self._proven(statistic, rule, epsilon, delta)
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
        self.calibration, self.horizon, self._norm = calibration, horizon, norm

    def _upsilon(self, released: Released) -> float:
        if self.calibration == "proven":
            return self._noise_norm(released, self.horizon)
        deviation = self.statistic.gram_deviation(self.noise)
        spread = 4 * math.sqrt(self.dim) + 2 * math.log(2 * self.horizon / FAILURE)
        return deviation * math.sqrt(released.rows) * spread

    def _shift(self, released: Released) -> float:
        return (2.0 if self.optimistic else 1.0) * self._upsilon(released)

    def _width(self, released: Released) -> float:
        # The paper's units: contexts within 1.
        deviation = self.statistic.gram_deviation(self.noise) / self._norm**2
        upsilon = self._upsilon(released) / self._norm**2
        log_horizon = math.log(self.horizon)
        noise = math.sqrt(3 * upsilon) + deviation * math.sqrt(self.dim * released.rows / upsilon)
        width = 2 * deviation * math.sqrt(self.dim * log_horizon) + noise * self.dim * log_horizon
        return width * self._norm
