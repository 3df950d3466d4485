"""Every constant of pursuit, and what it was chosen on. Public.

``docs/constants.md`` lists all of them with their values and what each was chosen on: simulated worlds and
made tables, by their seeds, or by hand. What is reported is of other seeds: see ``docs/reproduction.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

#: Budgets below this mu are small.
SMALL_BELOW: Final = 1.3

# Integers and digits.

#: Largest size of one row's integer.
LIMIT: Final = 2**15
#: Radius of the ball of the rows' integers whose second moments are added up. Rounding toward zero takes less
#: than a thousandth off a coordinate, and products of a hundred rows still fit 32 bits, which is fast.
RADIUS: Final = 2**12 - 1
#: Scales are first written down in so many parts of one: what matters is their ratio.
SCALE_DIGITS: Final = 2**8
#: Rounded scales of episodes with the same shares are closer to each other than this.
ROUNDED_APART: Final = 1.001
#: Added to a number of picks before it is rounded down, so that 3 x 1/3 counts as 1.
ROUNDED_PICKS: Final = 1e-9
#: Precision, in 1/x^4, that every second moment has at least.
FAINT: Final = 1e-12
#: Root mean square of a normal number over the mean of its absolute value.
MEAN_SIZE: Final = 1.2533

# The first episode.

#: The sparsity that rules for picks and lengths are written for; others are compared with it.
USUAL_SPARSITY: Final = 10
#: Sparsities below this share of it make the first episode no shorter.
NARROWEST: Final = 0.3
#: Rows that it has at least.
FEWEST_ROWS: Final = 4.0
#: No later episode is shorter than this share of it.
SHORTEST_LATER: Final = 0.5
#: What a coefficient of typical size moves a mean gradient by, in clips.
FIRST_SIGNAL: Final = 0.235
#: It picks at most so much of the sparsity.
MOST_FIRST_PICKS: Final = 0.4
#: Its length grows with the sparsity to this power.
WIDE_ROWS: Final = 0.24

# Limits of a plan.

#: Residuals of clicks are at most this large in the mean: those of even odds.
EVEN_ODDS: Final = 0.5
#: What a candidate has of its own square at least, after what the public columns say of it.
LEAST_OWN: Final = 0.1
#: Mean products of two typical columns, in x^2: many columns of size x can't have every one.
PRODUCTS_BETWEEN: Final = (-0.02, 0.95)
#: Log odds count up to this, where the sigmoid is 1 to thirteen digits.
MOST_LOG_ODDS: Final = 30.0
#: Smallest mean slope of the sigmoid: coefficients are divided by it.
LEAST_SLOPE: Final = 0.02
#: Largest variance of a score.
MOST_VARIANCE: Final = 1e6
#: Share of an episode's picks that must stand out, or the next one is longer and picks fewer.
FOUND_ENOUGH: Final = 0.5
#: The number of picks grows to at most so many sparsities; `most_picks` bounds what an episode takes of it.
MOST_PICKS_KEPT: Final = 2.0

# What a release says of sizes.

#: Half the width of the range that rewards are expected in, in standard deviations of a reward.
REWARD_WIDTH: Final = 4.0
#: Residuals whose measured size is more than this share of the cap were too large to be measured: they are
#: taken for so many times as large, and may grow by as much.
AT_CAP: Final = 0.75
BEYOND_CAP: Final = 3.0
#: Smallest size of residuals, in caps; what is left of their square where all is explained, in squares.
SMALLEST_SIZE: Final = 0.02
NEVER_EXPLAINED: Final = 0.001
#: Relative deviation of the residuals' size from the one that was told, before the first fit.
FIRST_SIZE_DOUBT: Final = 1.0
#: The rows' sizes are never taken for another scale if they are within this power of two of what was told.
SAME_SCALE: Final = 1.0
#: Deviations of the rows' sizes from which they are asked for again.
UNCLEAR_SIZE: Final = 1.5
#: The square of a context's size moves by at most this factor in an episode, and by its square in all.
MOST_MOVED: Final = 4.0

# The pilot.

#: Its counts are scored in this many steps, so that a scale has digits enough.
PILOT_STEPS: Final = 2**10
#: Rounds times mu, and the fewest.
PILOT_ROUNDS: Final = 45.0
PILOT_FEWEST: Final = 60
#: Distances reach from 2**-20 to 2**20 scales, by quarters of a factor of two.
PILOT_OCTAVES, PILOT_QUARTERS = 20, 4
#: Places reach this many steps to either side.
PILOT_PLACES: Final = 2**21
#: Distances within this factor count for a candidate: most of a normal law's, and hardly any of a far one's.
PILOT_FACTOR: Final = math.sqrt(8.0)
#: The distance near which most distances of two draws from a normal law are, in standard deviations.
PILOT_DISTANCE: Final = 1.02
#: Places are multiples of this many distances, and what is within two of these steps counts for them.
PILOT_STEP: Final = 0.7
#: What counts as near a candidate, of both picks.
PILOT_NEAR: Final = (PILOT_FACTOR, PILOT_STEP)

# The parts of a regression.

#: Where all columns are kept nothing is dropped, and second moments are worth more.
WHOLE_PRUNE, WHOLE_MOMENTS = 0.0, 0.1
#: Prior deviation of a coefficient where all columns are kept, in sizes of a residual over a column's.
WHOLE_DOUBT: Final = 0.4
#: Share of the sparsity that the first part picks, at least.
PART_FIRST_PICKS: Final = 0.25
#: Parts for up to so many rows times mu over the sparsity.
MORE_PARTS: Final = ((20.0, 2), (40.0, 3), (200.0, 4), (500.0, 6), (math.inf, 8))
#: Where all columns are kept: rows times mu over the columns for each part more, and most parts.
WHOLE_BUDGET, WHOLE_MOST_PARTS = 8, 6.0
#: Of so many parts the last one only measures what the others found.
ONE_MEASURES: Final = 4
#: No part is shorter, on average.
SHORTEST_PART: Final = 8
#: Labels say less than numbers: with fewer rows times mu, or fewer rows, for each column that may be kept,
#: hard thresholding has the better classes.
LOGISTIC_BUDGET: Final = 50.0
LOGISTIC_ROWS: Final = 100


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Every constant of the rule. Shares are shares of mu^2; sizes are in units of r, x or r/x."""

    #: Candidates are columns with a sign: the sign comes for the price of ln 2.
    signed: bool
    #: Shares for picks in the first `early` episodes, and after.
    pick_share: float
    late_pick_share: float
    early: int
    #: Shares of second moments, of the residuals' size, and where they are asked for of the rows' sizes.
    moment_share: float
    size_share: float
    row_share: float
    #: Prior mean (times the picked sign) and deviation of a new coefficient.
    guess: float
    doubt: float
    #: Bounds on a row's gradient: of candidates in units of their size times r, whitened in units of r.
    pick_clip: float
    value_clip: float
    #: First episode: rows so that picks stand out of the privacy noise, and rows for each ln d so that they
    #: stand out of what rows differ by. Variances add up, so the root of the sum of both squares is taken.
    rows_for_noise: float
    rows_for_sampling: float
    #: Of an episode whose picks stood out, of one whose did not, and after `patience` of those in a row.
    growth: float
    slow_growth: float
    fast_growth: float = 1.2
    patience: int = 4
    #: The first episode picks ``max(1, picks_for_budget * mu) * sqrt(s / 10)`` columns, at most 0.4 s.
    #: If s is more than 10, `wide_first` is the power instead of a half.
    picks_for_budget: float = 2.25
    wide_first: float = 0.5
    more_picks: float = 1.5  # times as many where all of them stood out
    wide_picks: float = 0.0  # and that times (s / 10) to this power, if s is more than 10
    pursued: float = 0.0  # assumed coefficient of a pick while later ones are chosen, in r/x; 0: none
    fewer_picks: float = 1.5
    most_picks: float = 0.5  # of s
    stand_out: float = 1.96  # standard deviations from which a pick counts as found
    prune: float = 0.8  # standard deviations below which a column is dropped
    gain: float = 0.65  # what clipping leaves of a gradient
    sampling: float = 0.5  # variance of a clipped gradient, in clips squared
    drift: float = 0.003  # added to P an episode: the model is never quite right
    moment_prior: float = 0.05  # variance of a second moment about a typical column's, in x^4
    typical_prior: float = 0.25  # variance of e and c before anything is known, in x^2 and x^4
    typical_out: float = 1.63  # deviations that e and c are drawn to zero by
    smallest_eigenvalue: float = 0.15  # in x^2
    ball: float = 1.5  # squared radius of the rows' ball, in mean squared norms
    most_residual: float = 0.0  # r is at most this much of the range of rewards, if that is told; 0: no bound
    size_cap: float = 2.2  # residuals are measured up to this many r
    size_doubt: float = 0.2  # relative deviation of the next residual size from the one foreseen
    largest_growth: float = 1.3  # of r in an episode, 3 if the measure was at its cap
    intercept_prior: float = 0.58  # deviation of the mean reward, in r
    context_prior: float = 0.15  # variance of x^2 as told, in x^4
    far_size: float = 2.7  # deviations from which the rows' sizes are taken for another scale than was told
    octaves: float = 3.5  # the rows' sizes are measured up to this factor, in powers of two
    # Of clicks; as they are here they change nothing, as for policies that were made without them.
    log_odds: float = math.inf  # that a column which is there may move, before anything is known of it
    whole_residuals: float = 0.0  # the clip on A, in largest residuals
    whitened_from: float = 0.0  # columns are whitened as if their squares were at least this, if not 0
    fewest_picks: float = 0.0  # of s
    whole_picks: float = 0.0  # the clip of candidates, in largest residuals of a value that is there
    mean_scores: bool = False  # a typical score is that of columns at their means, and not at zero
    drift_of_one: float = 1.0  # drift of the intercept, in drifts of a coefficient
    shrink: float = 0.0  # standard deviations that coefficients are drawn to zero by where arms are scored


_SMALL: Final = Tuning(
    signed=True,
    pick_share=0.76,
    late_pick_share=0.5,
    early=8,
    moment_share=0.044,
    size_share=0.0245,
    row_share=0.06,
    guess=0.4,
    doubt=0.4,
    pick_clip=0.35,
    value_clip=0.55,
    rows_for_noise=1.0,
    rows_for_sampling=7.4,
    growth=1.0,
    slow_growth=1.03,
    wide_first=1.0,
    more_picks=1.25,
    wide_picks=0.26,
    pursued=0.35,
    far_size=3.2,
    most_residual=0.5,
)
_LARGE: Final = Tuning(
    signed=True,
    pick_share=0.633,
    late_pick_share=0.456,
    early=3,
    moment_share=0.083,
    size_share=0.03,
    row_share=0.03,
    guess=0.0,
    doubt=0.64,
    pick_clip=0.7,
    value_clip=1.0,
    rows_for_noise=1.1,
    rows_for_sampling=6.5,
    growth=0.91,
    slow_growth=1.05,
    more_picks=1.1,
    pursued=0.4,
    far_size=3.2,
    most_residual=0.5,
    prune=0.9,
    sampling=0.62,
    drift=0.006,
    ball=1.1,
    size_cap=2.5,
    stand_out=2.0,
    typical_out=1.85,
    intercept_prior=1.0,
    gain=0.75,
)

#: Budgets at which the clips are those of small and of large ones; between them they follow ln mu. The more
#: budget, the less of a row need be cut: what rows differ by, and not the noise, is then what hides a column.
_CLIPS_BETWEEN: Final = (0.53, 2.86)


@lru_cache(maxsize=64)
def tuning(mu: float) -> Tuning:
    """Return the constants for a budget of `mu`, that of one Gaussian release."""
    low, high = (math.log(end) for end in _CLIPS_BETWEEN)
    share = min(max((math.log(mu) - low) / (high - low), 0.0), 1.0)

    def between(small: float, large: float) -> float:
        return (1 - share) * small + share * large

    return replace(
        _SMALL if mu < SMALL_BELOW else _LARGE,
        pick_clip=between(_SMALL.pick_clip, _LARGE.pick_clip),
        value_clip=between(_SMALL.value_clip, _LARGE.value_clip),
        gain=between(_SMALL.gain, _LARGE.gain),
    )


def at_once(constants: Tuning, mu: float) -> Tuning:
    """Return constants with which an episode's picks do not follow one another, for a budget of `mu`.

    Then a sign is worth its price only where the budget is small.
    """
    return replace(constants, signed=mu < SMALL_BELOW, wide_first=0.5, pursued=0.0)


#: Clicks say less than numbers: so many times as many rows until picks stand out, and less is asked of them.
_CLICK_ROWS: Final = 2.0


@lru_cache(maxsize=64)
def click_tuning(mu: float) -> Tuning:
    """Return the constants of a bandit's logistic loss for a budget of `mu`.

    A residual of clicks that is cut is biased wherever odds are not even, and the bias falls on every column
    that has a mean. So nothing is cut, more columns are picked at once and given time to show what they are,
    those that may be noise count for less where arms are scored, and the intercept may follow columns that
    come and go.
    """
    usual = tuning(mu)
    return replace(
        class_tuning(mu),
        rows_for_noise=_CLICK_ROWS * usual.rows_for_noise,
        rows_for_sampling=_CLICK_ROWS * usual.rows_for_sampling,
        growth=1.1,
        moment_share=0.022,
        prune=0.3,
        drift=0.012,
        drift_of_one=20.0,
        shrink=0.5,
        mean_scores=True,
        whole_residuals=1.2,
        whole_picks=1.0,
        fewest_picks=min(0.1 + 0.8 * mu, 0.3),
    )


#: The same for classes of one data set, all of whose rows are there.
_CLASS_ROWS: Final = 4.0


@lru_cache(maxsize=64)
def class_tuning(mu: float) -> Tuning:
    """Return the constants of the logistic loss over one data set for a budget of `mu`."""
    usual = at_once(tuning(mu), mu)
    return replace(
        usual,
        rows_for_noise=_CLASS_ROWS * usual.rows_for_noise,
        rows_for_sampling=_CLASS_ROWS * usual.rows_for_sampling,
        stand_out=1.6,
        patience=1,
        fast_growth=1.4,
        gain=0.9,
        log_odds=1.0,
        whole_residuals=1.0,
        whitened_from=0.5,
        fewest_picks=min(0.05 + 0.12 * mu, 0.4),
    )
