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
from typing import Any

from fliphat.lab.peers.peer import FAILURE, RidgePeer
from fliphat.lab.peers.rules import ReleasedSums, Tree
from fliphat.lab.peers.sums import SecondMoments
from fliphat.privacy.priced import VectorNoise


def paper_deviation(horizon: int, radius_squared: float, epsilon: float, delta: float) -> float:
    """Return s, the published standard deviation of a node's noise."""
    levels = math.ceil(math.log2(horizon)) + 1
    return 4 * math.sqrt(levels) * radius_squared * math.log(4 / delta) / epsilon


class ShariffSheffet(RidgePeer):
    """Tree LinUCB: jointly private, every prefix of rounds a sum of few noisy nodes.

    Parameters
    ----------
    horizon : int
        T: the tree is made for so many rounds.
    leaf : int
        Rounds between releases; the paper has 1.
    options
        See :class:`fliphat.lab.peers.peer.RidgePeer`. Greedy (``optimistic=False``) is far better: the
        published width is far larger than what it bounds.

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
        self, dim: int, epsilon: float, delta: float, *, horizon: int, leaf: int = 128, **options: Any
    ) -> None:
        rule = Tree(leaf=leaf, horizon=horizon)
        super().__init__(dim, epsilon, delta, rule=rule, horizon=horizon, **options)

    def _published(
        self, dim: int, rule: Tree, norm: float, reward_clip: float, epsilon: float, delta: float
    ) -> tuple[SecondMoments, VectorNoise]:
        share = (reward_clip / norm) ** 2
        statistic = SecondMoments(dim, context_norm=norm, reward_clip=reward_clip, reward_share=share)
        deviation = paper_deviation(rule.horizon, norm**2 + reward_clip**2, epsilon, delta)
        return statistic, statistic.noise(rule.nodes, math.ceil(deviation * statistic.context_scale**2))

    def _upsilon(self, released: ReleasedSums) -> float:
        if self.calibration == "proven":
            return super()._upsilon(released)
        levels = math.ceil(math.log2(self.horizon)) + 1
        deviation = self.statistic.gram_deviation(self.noise)
        spread = 4 * math.sqrt(self.dim) + 2 * math.log(2 * self.horizon / FAILURE)
        return math.sqrt(2 * levels) * deviation * spread

    def _nodes(self, released: ReleasedSums) -> float:
        return self.rule.nodes
