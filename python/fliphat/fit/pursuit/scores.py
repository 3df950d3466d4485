"""What a weighted sum of columns, a score, says of a reward: itself, or how likely a click is."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from fliphat.fit.pursuit.known import KnownSparse, Told

__all__ = [
    "MEAN_SIZE",
    "largest_residual",
    "mean_slope",
    "rare_residual",
    "size_where_there",
    "typical_score",
    "within_odds",
]

#: Root mean square of a normal number over the mean of its absolute value.
MEAN_SIZE: Final = 1.2533


def mean_slope(known: KnownSparse, told: Told) -> float:
    """Return the mean slope of the rewards' mean in the scores: 1, or that of the sigmoid."""
    if told.loss == "squared":
        return 1.0
    score, spread = typical_score(known, told)
    likely = 1 / (1 + math.exp(-min(abs(score), 30.0)))
    return max(likely * (1 - likely) / spread, 0.02)


def size_where_there(known: KnownSparse) -> float:
    """Return the size of a context's values that are not zero."""
    return float(known.told_size * 2.0**known.octaves)


def within_odds(known: KnownSparse, told: Told) -> float:
    """Return the factor that keeps a coefficient of typical size, r/x, within log odds that are usual.

    A column that is zero in most rows is small, and a coefficient of r/x would let it explain all there is to
    explain. But log odds are not larger for being moved rarely.
    """
    if told.loss == "squared":
        return 1.0
    typical = known.residual_size / known.context_size / mean_slope(known, told)
    return min(1.0, told.tuning.log_odds / size_where_there(known) / typical)


def typical_score(known: KnownSparse, told: Told) -> tuple[float, float]:
    """Return the typical score, made smaller as its spread makes a mean of sigmoids, and by how much."""
    weights, moments, middle = known.theta[1:], known.moments[1:, 1:], known.intercept
    if told.tuning.mean_scores:
        # Columns that are 0 or 1 are never near 0 all at once: their means are part of the score.
        means = known.moments[0, 1:]
        middle, moments = middle + float(weights @ means), moments - np.outer(means, means)
    variance = max(float(weights @ moments @ weights), 0.0)
    spread = math.sqrt(1 + math.pi * min(variance, 1e6) / 8)
    return middle / spread, spread


def largest_residual(known: KnownSparse, told: Told) -> float:
    """Return how far a click can be from how likely it is on average."""
    return 1 / (1 + math.exp(-min(abs(float(typical_score(known, told)[0])), 30.0)))


def rare_residual(known: KnownSparse, told: Told) -> float:
    """Return a bound below which residuals must not be cut: rare large ones carry what there is to learn.

    Of rewards in a range, the largest residual less a typical one: nothing for even odds, nearly all of the
    range for rare clicks.
    """
    if told.reward_range is None:
        return 0.0
    low, high = told.reward_range
    middle = known.intercept
    if told.loss == "logistic":
        middle = 1 / (1 + math.exp(-min(max(typical_score(known, told)[0], -30.0), 30.0)))
    middle = min(max(middle, low), high)
    return max(max(high - middle, middle - low) - known.residual_size / MEAN_SIZE, 0.0)
