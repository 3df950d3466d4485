"""Lower bounds on epsilon from counts.

If a mechanism is (epsilon, delta)-DP then ``P(event) <= exp(epsilon) * Q(event) + delta`` for every event,
where P and Q are its output on two neighbouring inputs. So an event that is likely under P and rare under Q
bounds epsilon from below. The event is chosen on one half of the runs and bounded on the other: choosing
costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: Counts that a bin needs before its ratio is believed.
_FEW = 50.0

#: Counts of one view on the two sides, one entry a bin.
Counts = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]


@dataclass(frozen=True)
class Event:
    """A set of bins of one view, and the side on which it is the likelier one."""

    view: int
    likelier_side: int
    bins: npt.NDArray[np.bool_]


def clopper_pearson(
    hits: npt.ArrayLike, runs: int, confidence: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return lower and upper bounds on a probability, each of which fails with ``(1 - confidence) / 2``.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 1000, 0.999)
    >>> float(low), round(float(high), 5)
    (0.0, 0.00757)
    """
    from scipy.special import betaincinv

    k = np.asarray(hits, dtype=np.float64)
    tail = (1 - confidence) / 2
    # The quantiles are undefined at the ends, where the bound is 0 or 1.
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), runs - k + 1, tail), 0.0)
    high = np.where(k < runs, betaincinv(k + 1, np.maximum(runs - k, 1), 1 - tail), 1.0)
    return low, high


def choose_event(counts: Sequence[Counts], runs: int, delta: float, confidence: float) -> Event:
    """Return the event with the highest bound on these runs, over all views and both directions.

    For each view the candidates are its tails (scores are made so that they grow with the likelihood ratio)
    and the bins with the largest ratios of counts, from one bin to all. Bins with few counts are drawn
    towards a ratio of one: the best of many accidents on this half would prove nothing on the other.
    """
    best, chosen = -1.0, Event(0, 0, np.zeros(len(counts[0][0]), dtype=bool))
    for view, sides in enumerate(counts):
        for likelier in (0, 1):
            p, q = (sides[side].astype(np.float64) for side in (likelier, 1 - likelier))
            upwards = np.arange(len(p))
            for order in (upwards, upwards[::-1], np.argsort(-(p + _FEW) / (q + _FEW), kind="stable")):
                bounds = epsilon_bound(np.cumsum(p[order]), np.cumsum(q[order]), runs, delta, confidence)
                size = int(np.argmax(bounds))
                if bounds[size] > best:
                    bins = np.zeros(len(p), dtype=bool)
                    bins[order[: size + 1]] = True
                    best, chosen = float(bounds[size]), Event(view, likelier, bins)
    return chosen


def epsilon_bound(
    p_hits: npt.ArrayLike, q_hits: npt.ArrayLike, runs: int, delta: float, confidence: float
) -> npt.NDArray[np.float64]:
    """Return the epsilon that the hits of an event in `runs` runs of each side prove, at least 0."""
    p_low, _ = clopper_pearson(p_hits, runs, confidence)
    _, q_high = clopper_pearson(q_hits, runs, confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.log((p_low - delta) / q_high)
    result: npt.NDArray[np.float64] = np.where(p_low > delta, np.maximum(bound, 0.0), 0.0)
    return result


def bound_event(event: Event, counts: Sequence[Counts], runs: int, delta: float, confidence: float) -> float:
    """Return the bound that fresh runs give for an event chosen before."""
    sides = counts[event.view]
    p, q = (int(sides[side][event.bins].sum()) for side in (event.likelier_side, 1 - event.likelier_side))
    bound = float(epsilon_bound(p, q, runs, delta, confidence))
    return bound if math.isfinite(bound) else 0.0
