"""The plan of an episode: everything its fit will do, from what is known and nothing else. Public.

`begin` says what is known before anything is released, `open_episode` what the next episode does, and
`priced_noise` which noise it is charged for. What these and `learning` share is here, too: what a weighted
sum of columns, a score, says of a reward (itself, or how likely a click is), and what columns are like that
were not picked.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.fit.board import BOARD_SHARE, BOARD_SQUARED
from fliphat.fit.pursuit import constants as c
from fliphat.fit.pursuit.constants import FAINT, LIMIT, MOST_LOG_ODDS, RADIUS, REWARD_WIDTH, Tuning
from fliphat.fit.pursuit.known import EpisodeSteps, Given, KnownSparse
from fliphat.privacy.priced import Claim, Part, PickNoise, PricedRelease, price
from fliphat.privacy.scales import ROW_SENSITIVITY

__all__ = [
    "PursuitPlan",
    "averaged",
    "begin",
    "centred",
    "fewest_picks",
    "largest_residual",
    "open_episode",
    "priced_noise",
    "rare_residual",
    "typical_score",
]

_Vector = npt.NDArray[np.float64]


def begin(given: Given) -> KnownSparse:
    """Return what is known before anything is released."""
    t = given.tuning
    wide = given.sparsity / c.USUAL_SPARSITY
    wider = math.sqrt(wide) if wide <= 1 or t.wide_first == 0.5 else wide**t.wide_first
    picks = max(1.0, t.picks_for_budget * given.mu) * wider
    picks = max(min(picks, c.MOST_FIRST_PICKS * given.sparsity), fewest_picks(given))
    log_dim = math.log(max(given.dim, 2))
    noise = 2 * math.sqrt(int(picks) / t.pick_share) / given.mu
    rows = math.hypot(t.rows_for_noise * noise * log_dim / c.FIRST_SIGNAL, t.rows_for_sampling * log_dim)
    rows = max(rows * max(wide, c.NARROWEST) ** c.WIDE_ROWS, c.FEWEST_ROWS)
    if given.first_rows is not None:
        rows = float(given.first_rows)
    known = KnownSparse(
        dim=given.dim,
        episodes=0,
        fits=0,
        rows=rows,
        shortest=c.SHORTEST_LATER * rows,
        picks=picks,
        columns=np.zeros(0, np.int64),
        units=np.zeros(0),
        theta=np.zeros(1),
        covariance=np.zeros((1, 1)),
        moments=np.ones((1, 1)),
        precision=np.zeros((1, 1)),
        residual_size=given.reward_scale,
        context_size=given.context_scale,
        start_size=given.context_scale,
        told_size=given.context_scale,
        shrink=t.shrink,
    )
    if not given.intercept:
        return known
    centre = sum(given.reward_range) / 2 if given.reward_range and given.loss == "squared" else 0.0
    return centred(known, given, centre, given.reward_scale)


def centred(known: KnownSparse, given: Given, centre: float, size: float) -> KnownSparse:
    """Return what is known when rewards are about `centre`, give or take `size`."""
    deviation = given.tuning.intercept_prior * size / _mean_slope(known, given)
    return replace(known, theta=np.array([centre]), covariance=np.array([[deviation**2]]), residual_size=size)


def fewest_picks(given: Given) -> float:
    """Return how many columns an episode picks at least, as far as there are any."""
    return max(1.0, given.tuning.fewest_picks * given.sparsity)


def open_episode(known: KnownSparse, given: Given) -> EpisodeSteps:
    """Return the next episode, from what is known."""
    t, x, r, k = given.tuning, known.context_size, known.residual_size, len(known.columns)
    slope = _mean_slope(known, given)
    picks = int(min(known.picks + c.ROUNDED_PICKS, max(1.0, t.most_picks * given.sparsity), given.dim - k))
    rare, smallest = rare_residual(known, given), t.smallest_eigenvalue * x * x
    (mean, product), typical_of_public = _typical_columns(known, t)
    prior = _moments_of_typical(k + 1, x, *typical_of_public)
    # Second moments of the public columns, drawn to those of typical ones by what is noise in them.
    spread = t.moment_prior * x**4
    trust = spread / (spread + 1 / np.maximum(known.precision, FAINT / x**4))
    trust[0, 0] = 1.0
    unit = np.ones(k + 1)
    unit[0] = x
    on_support = trust * (known.moments * np.outer(unit, unit)) + (1 - trust) * prior
    eigenvalues, vectors = _raised_eigenvalues(on_support, smallest)
    on_support = (vectors * eigenvalues) @ vectors.T
    across = np.concatenate([[mean * x], np.full(k, product)])
    shift = np.linalg.solve(on_support, across)
    own = math.sqrt(max(x * x - float(across @ shift), c.LEAST_OWN * x * x))
    m = 1 + k + picks
    typical = _moments_of_typical(m, x, mean, product)
    foreseen = typical.copy()
    foreseen[: k + 1, : k + 1] = on_support
    typical[: k + 1, : k + 1] = prior
    eigenvalues, vectors = _raised_eigenvalues(foreseen, smallest)
    foreseen = (vectors * eigenvalues) @ vectors.T
    value_clip, pick_clip = max(t.value_clip * r, rare), own * max(t.pick_clip * r, rare)
    if given.loss == "logistic":
        largest, there = largest_residual(known, given), _size_where_there(known)
        # Cut residuals say which class is more likely and not how likely: coefficients would diverge until a
        # class is certain. So they are left whole, and a column that is rarely there does not grow.
        eigenvalues = np.maximum(eigenvalues, t.whitened_from * there**2)
        value_clip = max(value_clip, t.whole_residuals * largest)
        # Where odds are not even the larger residuals are the rarer ones: cut, they have another mean than 0,
        # and columns are picked for having a mean themselves.
        pick_clip = max(pick_clip, t.whole_picks * largest * own / x * max(x, there))
    shares = {
        "picks": 0.0 if picks == 0 else t.pick_share if known.fits < t.early else t.late_pick_share,
        "moments": t.moment_share,
        "size": t.size_share,
    }
    if known.fits == 0 or known.doubted:
        shares["rows"] = t.row_share
    if given.board:
        shares["board"] = BOARD_SHARE
    shares["gradient"] = 1 - sum(shares.values())
    return EpisodeSteps(
        rows=math.ceil(known.rows),
        picks=picks,
        constant=x,
        shift=shift if np.any(across) else None,
        pick_clip=pick_clip,
        value_clip=value_clip,
        whiten=(vectors / np.sqrt(eigenvalues)) @ vectors.T,
        foreseen=foreseen,
        ball=math.sqrt(t.ball * float(np.trace(foreseen))),
        size_cap=t.size_cap * r,
        shares=shares,
        typical=typical,
        slope=slope,
        coefficient=r / x / slope * _within_odds(known, given, slope),
        assumed=t.pursued * r if t.signed and given.loss == "squared" else 0.0,
        reward_range=_expected_rewards(known, given) if given.board else None,
    )


def _expected_rewards(known: KnownSparse, given: Given) -> tuple[float, float]:
    """Return where rewards are expected: the range that was told, or about the mean that is known."""
    if given.reward_range is not None:
        return given.reward_range
    center, x = float(known.theta[0]), known.context_size
    spread = known.residual_size**2 + x * x * float(known.theta[1:] @ known.theta[1:])
    half = REWARD_WIDTH * math.sqrt(spread + float(known.covariance[0, 0]))
    if known.earned.recent is not None:
        mean, error = known.earned.recent.reward
        if error < half / REWARD_WIDTH:
            center = mean
    return center - half, center + half


def _raised_eigenvalues(H: _Vector, smallest: float) -> tuple[_Vector, _Vector]:
    """Return eigenvalues, none below `smallest`, and eigenvectors of a matrix's symmetric part."""
    eigenvalues, vectors = np.linalg.eigh((H + H.T) / 2)
    return np.maximum(eigenvalues, smallest), vectors


# Typical columns


def _typical_columns(known: KnownSparse, t: Tuning) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return e and c of columns that are not public, and of those that are, as far as they are not noise.

    Arms are chosen by the public ones, which moves their means and products.
    """
    x, above = known.context_size, _above_diagonal(len(known.columns))
    means, products = known.typical_mean, known.typical_product
    sure_means, sure_products = known.typical_mean_weight, known.typical_product_weight
    of_others = _certain(means, sure_means, x * x, t), _certain(products, sure_products, x**4, t)
    # Precisions are of moments with a constant column of x, and not of 1.
    weights, entries = known.precision[0, 1:] * x * x, known.precision[1:, 1:][above]
    mean = averaged(means, sure_means, float(weights @ known.moments[0, 1:]), float(weights.sum()))
    moments = known.moments[1:, 1:][above]
    product = averaged(products, sure_products, float(entries @ moments), float(entries.sum()))
    of_public = _certain(*mean, x * x, t), _certain(*product, x**4, t)
    low, high = c.PRODUCTS_BETWEEN[0] * x * x, c.PRODUCTS_BETWEEN[1] * x * x
    return (
        (of_others[0], min(max(of_others[1], low), high)),
        (of_public[0], min(max(of_public[1], low), high)),
    )


@functools.lru_cache(maxsize=256)
def _above_diagonal(k: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    return np.triu_indices(k, 1)


def averaged(mean: float, weight: float, more: float, sure: float) -> tuple[float, float]:
    """Return a mean with more values in it, and its precision.

    Of those values, `more` is their sum, each times its precision, and `sure` the sum of these.
    """
    total = weight + sure
    return (weight * mean + more) / total if total > 0 else 0.0, total


def _certain(value: float, weight: float, unit: float, t: Tuning) -> float:
    """Return a measured value drawn to zero by what may be noise in it."""
    drawn = value * weight / (weight + 1 / (t.typical_prior * unit))
    if drawn != 0:
        drawn *= max(0.0, 1 - t.typical_out**2 / (weight * drawn * drawn))
    return drawn


def _moments_of_typical(m: int, x: float, mean: float, product: float) -> _Vector:
    """Return the second moments of the intercept's column and m - 1 typical ones."""
    moments = np.full((m, m), product)
    moments[0, :] = moments[:, 0] = mean * x
    np.fill_diagonal(moments, x * x)
    return moments


# Scores


def _mean_slope(known: KnownSparse, given: Given) -> float:
    """Return the mean slope of the rewards' mean in the scores: 1, or that of the sigmoid."""
    if given.loss == "squared":
        return 1.0
    score, spread = typical_score(known, given)
    likely = 1 / (1 + math.exp(-min(abs(score), MOST_LOG_ODDS)))
    return max(likely * (1 - likely) / spread, c.LEAST_SLOPE)


def _size_where_there(known: KnownSparse) -> float:
    """Return the size of a context's values that are not zero."""
    return float(known.told_size * 2.0**known.octaves)


def _within_odds(known: KnownSparse, given: Given, slope: float) -> float:
    """Return the factor that keeps a coefficient of typical size, r/x, within log odds that are usual.

    A column that is zero in most rows is small, and a coefficient of r/x would let it explain all there is to
    explain. But log odds are not larger for being moved rarely.
    """
    if given.loss == "squared":
        return 1.0
    typical = known.residual_size / known.context_size / slope
    return min(1.0, given.tuning.log_odds / _size_where_there(known) / typical)


def typical_score(known: KnownSparse, given: Given) -> tuple[float, float]:
    """Return the typical score, made smaller as its spread makes a mean of sigmoids, and by how much."""
    weights, moments, middle = known.theta[1:], known.moments[1:, 1:], known.intercept
    if given.tuning.mean_scores:
        # Columns that are 0 or 1 are never near 0 all at once: their means are part of the score.
        means = known.moments[0, 1:]
        middle, moments = middle + float(weights @ means), moments - np.outer(means, means)
    variance = max(float(weights @ moments @ weights), 0.0)
    spread = math.sqrt(1 + math.pi * min(variance, c.MOST_VARIANCE) / 8)
    return middle / spread, spread


def largest_residual(known: KnownSparse, given: Given) -> float:
    """Return how far a click can be from how likely it is on average."""
    return 1 / (1 + math.exp(-min(abs(float(typical_score(known, given)[0])), MOST_LOG_ODDS)))


def rare_residual(known: KnownSparse, given: Given) -> float:
    """Return a bound below which residuals must not be cut: rare large ones carry what there is to learn.

    Of rewards in a range, the largest residual less a typical one: nothing for even odds, nearly all of the
    range for rare clicks.
    """
    if given.reward_range is None:
        return 0.0
    low, high = given.reward_range
    middle = known.intercept
    if given.loss == "logistic":
        middle = 1 / (1 + math.exp(-min(max(typical_score(known, given)[0], -MOST_LOG_ODDS), MOST_LOG_ODDS)))
    middle = min(max(middle, low), high)
    return max(max(high - middle, middle - low) - known.residual_size / c.MEAN_SIZE, 0.0)


# Noise


@dataclass(frozen=True, eq=False, kw_only=True)
class PursuitPlan:
    """One episode's fit: everything it will do."""

    episode: int
    #: Rows, picks, clips and coordinates.
    steps: EpisodeSteps
    #: In the first episode, or where those are asked for again, three numbers of whole rows; then picks; then
    #: one vector: gradients, second moments above the diagonal, the residuals' size and, in a bandit, what
    #: the episode earned.
    release: PricedRelease
    given: Given
    #: Public sizes of columns, if there are any.
    units: npt.NDArray[np.float64] | None
    #: Rows of the fit, with or without a reward.
    rows: int
    #: Noise of the three numbers of whole rows, which come first; none where they are not asked for.
    row_parts: tuple[Part, ...]
    #: Noise of the picks; None where every column is public already.
    picks: PickNoise | None
    #: Noise of the vector's parts, in order.
    parts: tuple[Part, ...]


@functools.lru_cache(maxsize=4096)
def priced_noise(claim: Claim, m: int, picks: int, shares: tuple[tuple[str, float], ...]) -> PricedRelease:
    """Return the noise of an episode of m columns: that of all with the same shares of the budget."""
    # The search starts where it ended for the fewest columns with these shares, and not where the last one of
    # this process did: noise does not depend on what else ran. What is found has a price of its own.
    return price(_template(m, picks, dict(shares)), claim, factor=_factor(claim, picks, shares))


@functools.lru_cache(maxsize=1024)
def _factor(claim: Claim, picks: int, shares: tuple[tuple[str, float], ...]) -> float | None:
    proof = price(_template(1 + picks, picks, dict(shares)), claim).proof
    return proof.factor if proof else None


def _template(m: int, picks: int, share: dict[str, float]) -> list[Any]:
    template: list[Any] = []
    if "rows" in share:
        template.append(_scaled([(2 * LIMIT) ** 2, (2 * LIMIT) ** 2, LIMIT**2], [share["rows"] / 3] * 3))
    if picks:
        ((_, scale),) = _scaled([picks * ROW_SENSITIVITY**2], [share["picks"]])
        template.append((ROW_SENSITIVITY, scale, picks))
    squares = [m * ROW_SENSITIVITY**2, RADIUS**4, LIMIT**2, BOARD_SQUARED]
    of_vector = [share["gradient"], share["moments"], share["size"]]
    template.append(_scaled(squares, of_vector + ([share["board"]] if "board" in share else [])))
    return template


def _scaled(squares: list[int], shares: list[float]) -> list[tuple[int, int]]:
    """Return squared sensitivities with scales that cost such shares of the budget, not yet priced."""
    found = []
    for square, share in zip(squares, shares, strict=False):  # the board is the last, if there is one
        found.append((square, math.ceil(c.SCALE_DIGITS * math.sqrt(square / share))))
    return found
