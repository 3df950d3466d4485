"""Defaults of a private regression: pure functions of public numbers, never of the rows.

Symbols: ``relative_noise`` nu/c, the noise of a one-iteration fit in units of the gradient clip; ``dim`` d.

A coordinate is found when its mean gradient beats the noise times ``ln d`` (the largest of d noises), so
``relative_noise * ln d`` says how hard a fit is, whatever its size, its budget and its mechanism. Noise
grows with the number of iterations; bias falls with it. The thresholds were chosen on simulated rows (5 of
50 to 400 coefficients, neighbouring features correlated by 0.1 to 0.7): few iterations while noise
dominates, then more and shorter ones, which still converge where features are correlated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

__all__ = ["DEFAULT_SPARSITY", "Schedule", "default_clip", "default_l1_radius", "default_schedule"]

DEFAULT_SPARSITY: Final = 10

#: Largest difficulty, iterations and step of each regime, the easiest first.
_REGIMES: Final = {
    "squared": (
        (0.01, 16, 0.5),
        (0.04, 12, 0.5),
        (0.12, 4, 0.7),
        (0.25, 2, 1.0),
        (0.5, 1, 1.0),
        (math.inf, 1, 0.5),
    ),
    # Its second derivative in the score is at most 1/4, so its steps are four times as long and more.
    "logistic": (
        (0.04, 8, 4.0),
        (0.1, 5, 4.0),
        (0.15, 2, 4.0),
        (0.5, 1, 4.0),
        (math.inf, 1, 2.0),
    ),
}


@dataclass(frozen=True)
class Schedule:
    """How many iterations, and their step in units of ``1 / feature_scale**2``."""

    iterations: int
    step_size: float


def default_schedule(*, relative_noise: float, dim: int, loss: str, pure: bool = False) -> Schedule:
    """Return the schedule for a fit whose single iteration would have the given noise.

    Parameters
    ----------
    relative_noise : float
        Noise of one iteration, in the mean clipped gradient, over the clip.
    dim : int
        Coordinates to choose from.
    loss : {"squared", "logistic"}
    pure : bool
        Whether costs add up as pure epsilons do. Then M iterations have M times the noise of one, otherwise
        ``sqrt(M)`` times, which is what the thresholds are for.

    Examples
    --------
    >>> default_schedule(relative_noise=0.001, dim=400, loss="squared")
    Schedule(iterations=16, step_size=0.5)
    >>> default_schedule(relative_noise=0.1, dim=400, loss="logistic")
    Schedule(iterations=1, step_size=2.0)
    """
    difficulty = relative_noise * math.log(max(dim, 3))
    return next(
        Schedule(iterations, step)
        for most, iterations, step in _REGIMES[loss]
        if difficulty * (math.sqrt(iterations) if pure else 1.0) <= most
    )


def default_clip(*, feature_scale: float, residual_scale: float) -> float:
    """Return the bound on a coordinate of one row's gradient: 1.3 times a feature times a residual.

    Smaller clips bias the gradient, larger ones cost noise in proportion.

    Examples
    --------
    >>> default_clip(feature_scale=2.0, residual_scale=1.0)
    2.6
    """
    return 1.3 * feature_scale * residual_scale


def default_l1_radius(*, sparsity: int, feature_scale: float, score_scale: float) -> float:
    """Return ``2 sqrt(sparsity) * score_scale / feature_scale``.

    Uncorrelated features of size `feature_scale` that make up a score of size `score_scale` have coefficients
    of Euclidean norm ``score_scale / feature_scale``, hence of l1 norm ``sqrt(sparsity)`` times that at most;
    the factor 2 leaves room for correlated features and for scales declared too small.

    Examples
    --------
    >>> default_l1_radius(sparsity=4, feature_scale=1.0, score_scale=1.5)
    6.0
    """
    return 2.0 * math.sqrt(sparsity) * score_scale / feature_scale
