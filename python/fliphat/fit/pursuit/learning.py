"""What is known after a release: a Kalman step, pruning, and the scales of the next episode."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc

from fliphat import _native
from fliphat.fit.pursuit import constants as c
from fliphat.fit.pursuit.constants import FAINT, MEAN_SIZE, Tuning
from fliphat.fit.pursuit.known import EpisodeSteps, Given, KnownSparse, ReleasedMeans
from fliphat.fit.pursuit.plan import averaged, centred, fewest_picks
from fliphat.kernels._fits import KalmanRule, KalmanStep

__all__ = ["learn"]

_Vector = npt.NDArray[np.float64]


def learn(known: KnownSparse, given: Given, episode: EpisodeSteps, released: ReleasedMeans) -> KnownSparse:
    """Return what is known after an episode: a Kalman step, pruning, and the scales of the next."""
    t, x, n = given.tuning, episode.constant, episode.rows
    new, slope, p = released.columns, episode.slope, len(released.columns)
    # Rows cut to the ball are shorter.
    cut = _share_in_ball(len(released.gradient), t.ball)
    fresh, weight = released.moments / cut, (cut / released.moment_noise) ** 2
    coefficient = episode.coefficient
    rule = KalmanRule(
        one=x,
        weight=weight,
        spread=t.moment_prior * x**4,
        sampling=2 / n * x**4,
        faint=FAINT / x**4,
        smallest=t.smallest_eigenvalue * x * x,
        gain=t.gain * slope,
        noise=released.gradient_noise**2 + t.sampling * episode.value_clip**2 / n,
        doubt=(t.doubt * coefficient) ** 2,
        drift_of_one=given.intercept * (t.drift_of_one * t.drift) * coefficient**2,
        drift=t.drift * coefficient**2,
        prune=t.prune,
        stand_out=t.stand_out,
    )
    # The native function itself: all of these arrays were made here, in the types that it takes.
    start: _Vector = released.signs * np.float64(t.guess * coefficient)
    step = KalmanStep(
        *_native.kalman_step(
            known.theta,
            known.covariance,
            known.moments,
            known.precision,
            released.gradient,
            fresh,
            start,
            episode.whiten,
            episode.typical,
            rule,
            given.sparsity,
        )
    )
    found = step.found
    picks, rows, quiet = known.picks, known.rows, 0 if found >= c.FOUND_ENOUGH * p > 0 else known.quiet + 1
    if p and found == p:
        picks = max(picks, p) * t.more_picks * max(given.sparsity / c.USUAL_SPARSITY, 1.0) ** t.wide_picks
    elif found <= c.FOUND_ENOUGH * p:
        picks = max(fewest_picks(given), picks / t.fewer_picks)
    picks = min(picks, c.MOST_PICKS_KEPT * given.sparsity)
    rows *= t.growth if quiet == 0 else t.slow_growth if quiet < t.patience else t.fast_growth
    rows = max(rows, known.shortest)
    # Scales.
    explained, unknown = slope**2 * step.explained, slope**2 * step.unknown
    at_cap = released.size > c.AT_CAP * episode.size_cap
    residual = _residual_size(known, episode, released, explained, unknown, at_cap, t)
    if given.reward_range is not None and given.loss == "squared" and t.most_residual:
        # What is not known of columns that arms no longer show is no reason to expect more than there can be.
        residual = min(residual, t.most_residual * (given.reward_range[1] - given.reward_range[0]))
    if given.intercept and at_cap:
        # Gradients were cut, too: how far off the mean reward is, they did not say.
        doubt = (t.intercept_prior * residual / slope) ** 2
        step.covariance[0, 0] = max(step.covariance[0, 0], doubt)
    of_new = _of_new(fresh, len(known.columns))
    earned = known.earned
    if released.board is not None:
        earned = earned.after(released.board, uniform=known.fits == 0, guard=given.guard)
    context = _context_size(known, released, of_new, weight, t)
    typical = _typical_measured(known, released, of_new, weight, context["context_size"])
    kept = step.keep[1:]
    learned = known.but(
        episodes=known.episodes + 1,
        fits=known.fits + 1,
        rows=rows,
        picks=picks,
        columns=np.concatenate((known.columns, new))[kept],
        units=np.concatenate((known.units, released.units))[kept],
        theta=step.theta,
        covariance=step.covariance,
        moments=step.moments,
        precision=step.precision,
        residual_size=residual,
        quiet=quiet,
        found=(*known.found, found),
        earned=earned,
        **context,
        **typical,
    )
    if known.doubted and known.start_size != known.told_size == learned.start_size:
        return _forgotten(learned, given)
    return learned


def _forgotten(known: KnownSparse, given: Given) -> KnownSparse:
    """Return what is known without its columns: they were fitted as if contexts had another size."""
    nothing = replace(
        known,
        columns=np.zeros(0, np.int64),
        units=np.zeros(0),
        theta=known.theta[:1],
        moments=np.ones((1, 1)),
        precision=np.zeros((1, 1)),
    )
    return (
        centred(nothing, given, known.intercept, known.residual_size)
        if given.intercept
        else replace(nothing, theta=np.zeros(1), covariance=np.zeros((1, 1)))
    )


@lru_cache(maxsize=256)
def _share_in_ball(m: int, ball: float) -> float:
    """Return what cutting to a ball of squared radius ``ball * m`` leaves of m normal columns' moments."""
    inside = gammainc(m / 2 + 1, ball * m / 2)
    return float(inside + ball * (1 - gammainc(m / 2, ball * m / 2)))


def _residual_size(
    known: KnownSparse,
    episode: EpisodeSteps,
    released: ReleasedMeans,
    explained: float,
    unknown: float,
    at_cap: bool,
    t: Tuning,
) -> float:
    """Return r for the next episode: as measured, less what the step explains, plus what is not known."""
    r = known.residual_size
    size = max(released.size, c.SMALLEST_SIZE * episode.size_cap)
    if at_cap:
        size *= c.BEYOND_CAP
    else:
        foreseen = r / MEAN_SIZE
        prior = ((c.FIRST_SIZE_DOUBT if known.fits == 0 else t.size_doubt) * foreseen) ** 2
        size = (size * prior + foreseen * released.size_noise**2) / (prior + released.size_noise**2)
    square = (MEAN_SIZE * size) ** 2
    after = math.sqrt(max(square - explained, 0.0) + unknown + c.NEVER_EXPLAINED * square)
    return min(after, (c.BEYOND_CAP if at_cap else t.largest_growth) * r)


class _OfNew(NamedTuple):
    """How many columns are new, and sums of their released second moments."""

    columns: int
    with_one: float
    with_others: float
    squares: float


def _of_new(fresh: _Vector, k: int) -> _OfNew:
    """Return the sums of the columns behind the first k; each pair of columns counts once."""
    with_one = with_others = squares = 0.0
    for i, row in enumerate(new := fresh[k + 1 :].tolist(), k + 1):
        with_one += row[0]
        with_others += sum(row[1:i])
        squares += row[i]
    return _OfNew(len(new), with_one, with_others, squares)


def _context_size(
    known: KnownSparse, released: ReleasedMeans, new: _OfNew, weight: float, t: Tuning
) -> dict[str, Any]:
    """Return x for the next episode, from the columns that were new: those of A are chosen by the arms."""
    x, start = known.context_size, known.start_size
    doubt: dict[str, Any] = {"doubted": False}
    if released.rows is not None and released.rows_noise is not None:
        # One measure in a hundred or two is noise that looks like another size, and some hide one: whenever
        # it is not clear, it is asked for a second time.
        declared, weight_now = known.told_size or known.start_size, float(released.rows_noise[0]) ** -2
        sure = known.octaves_weight + weight_now
        octaves = float(released.rows[0]) + math.log2(x / declared)
        octaves = (known.octaves * known.octaves_weight + octaves * weight_now) / sure
        far = abs(octaves) > max(c.SAME_SCALE, t.far_size / math.sqrt(sure))
        unclear = abs(octaves) > max(c.SAME_SCALE, c.UNCLEAR_SIZE / math.sqrt(sure))
        doubt = {"octaves": octaves, "octaves_weight": sure, "doubted": bool(unclear) and not known.doubted}
        if far or start != declared:
            # Columns measured in a ball of another size say nothing.
            size = declared * 2.0**octaves if far else declared
            again = {"context_size": size, "start_size": size, "size_weight": 0.0}
            return {**again, **doubt}
    # Relative to x: in other units a size that is too small would have smaller noise, and the more say.
    each = weight * x**4 / 2
    sure = known.size_weight + new.columns * each
    moved = each * (new.squares / (x * x) - new.columns) / (1 / t.context_prior + sure)
    square = x * x * min(max(1 + moved, 1 / c.MOST_MOVED), c.MOST_MOVED)
    size = math.sqrt(min(max(square, start**2 / c.MOST_MOVED**2), c.MOST_MOVED**2 * start**2))
    return {"context_size": size, "start_size": start, "size_weight": sure, **doubt}


def _typical_measured(
    known: KnownSparse, released: ReleasedMeans, new: _OfNew, weight: float, x: float
) -> dict[str, Any]:
    """Return e and c with their precisions, from whole rows and from the columns that were new."""
    mean, sure_mean = known.typical_mean, known.typical_mean_weight
    product, sure_product = known.typical_product, known.typical_product_weight
    if released.rows is not None and released.rows_noise is not None:
        mean, sure_mean = released.rows[1] * x, (released.rows_noise[1] * x) ** -2
        product, sure_product = released.rows[2] * x**2, (released.rows_noise[2] * x**2) ** -2
    one, p = known.context_size, new.columns
    pairs = p * len(known.columns) + p * (p - 1) // 2
    mean, sure_mean = averaged(mean, sure_mean, weight * one * new.with_one, weight * one * one * p)
    product, sure_product = averaged(product, sure_product, weight * new.with_others, weight * pairs)
    return {
        "typical_mean": mean,
        "typical_mean_weight": sure_mean,
        "typical_product": product,
        "typical_product_weight": sure_product,
    }
