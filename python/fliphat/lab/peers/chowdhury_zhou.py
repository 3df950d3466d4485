"""LinUCB on batches whose noisy sums a shuffler makes.

| Chowdhury and Zhou | here |
|---|---|
| batches of B ~ T^(3/5) users, the model frozen within | `Batches` |
| amplification: a user's noise sqrt(ln(2.5 B/delta)) / (epsilon sqrt(B)), unit ball | `paper_deviation` |
| V = sum + lambda I, lambda = 2 Gamma, Gamma >= norm of the noise | `_shift` |

The shuffler is not simulated: a batch's noise is drawn at once, as if an aggregator were trusted with the
sum. What is computed is what the released sums buy against everyone who sees them, joint privacy.
"""

from __future__ import annotations

import math
from typing import Any

from fliphat.lab.peers.peer import RidgePeer
from fliphat.lab.peers.rules import Batches, ReleasedSums
from fliphat.lab.peers.sums import RADIUS, GramAndMoment
from fliphat.privacy.priced import VectorNoise


def paper_deviation(batch: int, epsilon: float, delta: float) -> float:
    """Return the standard deviation of a batch's noise, for contexts and rewards within 1."""
    return math.sqrt(math.log(2.5 * batch / delta)) / epsilon


class ChowdhuryZhou(RidgePeer):
    """LinUCB on noisy sums of batches. Jointly private; in the paper the noise is added before a shuffler.

    Parameters
    ----------
    horizon : int
        T: batches have T^(3/5) rounds.
    options
        See :class:`fliphat.lab.peers.peer.RidgePeer`. The published noise is that of the authors' code
        for the amplification protocol.

    References
    ----------
    S. Chowdhury, X. Zhou, "Shuffle Private Linear Contextual Bandits", ICML 2022.

    Examples
    --------
    >>> from fliphat.lab.peers import ChowdhuryZhou
    >>> policy = ChowdhuryZhou(5, 1.0, 0.01, horizon=20_000, calibration="paper")
    >>> policy.rule.size, policy.privacy.kept, round(policy.privacy.epsilon, 2)
    (380, False, 1.5)
    """

    def __init__(self, dim: int, epsilon: float, delta: float, *, horizon: int, **options: Any) -> None:
        rule = Batches(max(1, math.floor(horizon**0.6)))
        super().__init__(dim, epsilon, delta, rule=rule, horizon=horizon, **options)

    def _published(
        self, dim: int, rule: Batches, norm: float, reward_clip: float, epsilon: float, delta: float
    ) -> tuple[GramAndMoment, VectorNoise]:
        statistic = GramAndMoment(dim, context_norm=norm, reward_clip=reward_clip)
        deviation = paper_deviation(rule.size, epsilon, delta)
        return statistic, statistic.noise(1, math.ceil(deviation * RADIUS**2), math.ceil(deviation * RADIUS))

    def _width(self, released: ReleasedSums) -> float:
        least = self._upsilon(released)
        return self._sampling(released, least) + 2 * self._truth_norm * math.sqrt(3 * least)
