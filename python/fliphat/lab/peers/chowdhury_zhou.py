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

from fliphat import arguments
from fliphat.lab.peers.base import CALIBRATIONS, FAILURE, RidgePeer, default_norm
from fliphat.lab.peers.statistics import Batches, GramAndMoment, Released, SecondMoments
from fliphat.lab.peers.statistics.moments import RADIUS

__all__ = ["ChowdhuryZhou", "paper_deviation"]


def paper_deviation(batch: int, epsilon: float, delta: float) -> float:
    """Return the standard deviation of a batch's noise, for contexts and rewards within 1.

    Examples
    --------
    >>> round(paper_deviation(380, 1.0, 0.01), 2)
    3.39
    """
    return math.sqrt(math.log(2.5 * batch / delta)) / epsilon


class ChowdhuryZhou(RidgePeer):
    """LinUCB on noisy sums of batches. Jointly private; in the paper the noise is added before a shuffler.

    Parameters
    ----------
    dim : int
    epsilon, delta : float
    horizon : int
        T: batches have T^(3/5) rounds.
    context_norm, reward_clip : float
        L (by default sqrt(d)) and R, to which rows are scaled.
    calibration : {"proven", "paper"}
        The smallest noise for the claim, or that of the authors' code for the amplification protocol.
    optimistic : bool
    truth_norm, reward_noise : float
        S and sigma of the width.
    seed : int, optional

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
        truth_norm: float = 2.0,
        reward_noise: float = 0.1,
        seed: int | None = None,
    ) -> None:
        arguments.choice("calibration", calibration, CALIBRATIONS)
        norm, rule = default_norm(dim, context_norm), Batches(max(1, math.floor(horizon**0.6)))
        statistic: GramAndMoment | SecondMoments
        if calibration == "paper":
            statistic = GramAndMoment(dim, context_norm=norm, reward_clip=reward_clip)
            deviation = paper_deviation(rule.size, epsilon, delta)
            noise = statistic.noise(1, math.ceil(deviation * RADIUS**2), math.ceil(deviation * RADIUS))
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
        self.horizon, self._norm = horizon, norm
        self._truth_norm, self._reward_noise = truth_norm, reward_noise

    def _shift(self, released: Released) -> float:
        return (2.0 if self.optimistic else 1.0) * self._noise_norm(released, self.horizon)

    def _width(self, released: Released) -> float:
        least = self._noise_norm(released, self.horizon)
        spread = self.dim * math.log(3 + released.rows * self._norm**2 / (self.dim * least))
        sampling = self._reward_noise * math.sqrt(2 * math.log(2 / FAILURE) + spread)
        return sampling + 2 * self._truth_norm * math.sqrt(3 * least)
