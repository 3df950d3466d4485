"""LinUCB with second moments from a private tree.

| Shariff and Sheffet | here |
|---|---|
| M_t = sum of v v', v = (x, y) | `SecondMoments` |
| L-tilde^2 = L^2 + R^2 | the ball's radius, `reward_share` = R^2 / L^2 |
| m = ceil(log2 T) + 1 | levels, leaves of one round |
| N(0, s^2), s^2 = 16 m L-tilde^4 ln(4/delta)^2 / epsilon^2 | `paper_deviation` |
| Upsilon = sqrt(2 m) s (4 sqrt d + 2 ln(2 T/alpha)) | `_upsilon` |
| rho_min = Upsilon, rho_max = 3 Upsilon, V_t = G + noise + 2 Upsilon I | `_shift` |
| gamma = s sqrt(m/Upsilon) (sqrt d + sqrt(2 ln(2 T/alpha))) | in `_width` |
| beta_t = sigma sqrt(2 ln(2/alpha) + d ln(3 + t L^2/(d rho_min))) + S sqrt(rho_max) + gamma | `_width` |

With ``calibration="proven"`` the noise is the smallest that the claim allows, and Upsilon a bound on the
operator norm of that noise.
"""

from __future__ import annotations

import math

from fliphat import arguments
from fliphat.lab.peers.base import CALIBRATIONS, FAILURE, RidgePeer, default_norm
from fliphat.lab.peers.statistics import Released, SecondMoments, Tree

__all__ = ["ShariffSheffet", "paper_deviation"]


def paper_deviation(horizon: int, radius_squared: float, epsilon: float, delta: float) -> float:
    """Return s, the published standard deviation of a node's noise.

    Examples
    --------
    >>> round(paper_deviation(20_000, 1.0, 1.0, 0.01), 1)
    95.9
    """
    levels = math.ceil(math.log2(horizon)) + 1
    return 4 * math.sqrt(levels) * radius_squared * math.log(4 / delta) / epsilon


class ShariffSheffet(RidgePeer):
    """Tree LinUCB: jointly private, every prefix of rounds a sum of few noisy nodes.

    Parameters
    ----------
    dim : int
    epsilon, delta : float
    horizon : int
        T: the tree is made for so many rounds.
    context_norm, reward_clip : float
        L (by default sqrt(d)) and R: what is longer is cut.
    calibration : {"proven", "paper"}
        The smallest noise for the claim, or the published one.
    optimistic : bool
        False plays greedily: the published width is far larger than what it bounds.
    leaf : int
        Rounds between releases; the paper has 1.
    truth_norm, reward_noise : float
        S and sigma of the width.
    seed : int, optional
        Simulated noise; without one, noise as people would get.

    References
    ----------
    R. Shariff, O. Sheffet, "Differentially Private Contextual Linear Bandits", NeurIPS 2018.

    Examples
    --------
    >>> from fliphat.lab.peers import ShariffSheffet
    >>> policy = ShariffSheffet(20, 1.0, 0.01, horizon=20_000, calibration="paper")
    >>> round(policy.privacy.epsilon, 3), policy.rule.nodes
    (0.004, 8)
    """

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
        leaf: int = 128,
        truth_norm: float = 2.0,
        reward_noise: float = 0.1,
        seed: int | None = None,
    ) -> None:
        arguments.choice("calibration", calibration, CALIBRATIONS)
        norm = default_norm(dim, context_norm)
        published = calibration == "paper"
        share = (reward_clip / norm) ** 2 if published else 0.5
        statistic = SecondMoments(dim, context_norm=norm, reward_clip=reward_clip, reward_share=share)
        rule = Tree(leaf=leaf, horizon=horizon)
        if published:
            deviation = paper_deviation(horizon, norm**2 + reward_clip**2, epsilon, delta)
            noise = statistic.noise(rule.nodes, math.ceil(deviation * statistic.context_scale**2))
        else:
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
        self.calibration, self.horizon = calibration, horizon
        self._norm, self._truth_norm, self._reward_noise = norm, truth_norm, reward_noise

    def _upsilon(self, released: Released) -> float:
        if self.calibration == "proven":
            return self._noise_norm(released, self.horizon)
        levels = math.ceil(math.log2(self.horizon)) + 1
        deviation = self.statistic.gram_deviation(self.noise)
        spread = 4 * math.sqrt(self.dim) + 2 * math.log(2 * self.horizon / FAILURE)
        return math.sqrt(2 * levels) * deviation * spread

    def _shift(self, released: Released) -> float:
        return (2.0 if self.optimistic else 1.0) * self._upsilon(released)

    def _width(self, released: Released) -> float:
        least = self._upsilon(released)
        levels = self.rule.nodes
        deviation = self.statistic.gram_deviation(self.noise)
        gamma = deviation * math.sqrt(levels / least)
        gamma *= math.sqrt(self.dim) + math.sqrt(2 * math.log(2 * self.horizon / FAILURE))
        spread = self.dim * math.log(3 + released.rows * self._norm**2 / (self.dim * least))
        sampling = self._reward_noise * math.sqrt(2 * math.log(2 / FAILURE) + spread)
        return sampling + self._truth_norm * math.sqrt(3 * least) + gamma
