"""A support that grows: few of many columns are public, and more are picked. Public: nothing here sees rows.

Arms' constants are known from the start. An episode whose support has room picks some columns more by scores
that add up what all arms say of a column (``rust/core/src/private/candidates.rs``): a row has one arm, so K
arms cost what one does. Then it releases the vector of all columns that are public now, with fresh noise.

Each episode is learned from on its own, as sums of *one* set of rows go together: of an arm ``sum z r`` is
``n E[z z'] b`` and noise for its coefficients b of ``z = (w - centers, 1)``, where ``E[z z']`` follows from
second moments of everybody and from the mean of the arm's rows. That adds to the precision of b; a column
that came later has had less of it. A column that does not stand out of its doubt makes room when columns are
picked again.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.board import Board
from fliphat.fit.dense.known import DRAWS, ArmScores, KnownGrown, with_groups
from fliphat.fit.dense.parts import RADIUS, STEPS, Released
from fliphat.privacy.priced import PickNoise

__all__ = ["PICKED", "arm_values", "clip", "explained", "grown", "kept_columns", "learned", "pick_template"]

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]

#: Stands for columns that are not picked yet.
PICKED: Final = -1

#: By how much one row moves a score, at most.
PICK_SENSITIVITY: Final = 2**16

#: A clip, in standard deviations of a reward times the size of a column; how many of them a typical residual
#: is, which even the largest one of rewards in a range exceeds only by so much.
_CLIP: Final = 1.3
_TYPICAL: Final = 0.8

#: Prior variance of a coefficient, of an arm's mean reward, and how far an arm's rows are from everybody's,
#: as a share of a column's variance.
_PRIOR: Final = 0.25
_LEVEL_PRIOR: Final = 0.02
_APART: Final = 0.05

#: Smallest variance of a column, and what it has of that of all columns, and an eigenvalue of that.
_LEAST_VARIANCE: Final = 1e-3
_SHARE: Final = 0.2

#: Radius of the ball in root mean squares of rows, and at least: one value of the stated size is not cut.
_BALL: Final = 1.5
_SMALLEST_BALL: Final = 0.7

#: Standard deviation of a reward, in the range, at least; at most it is `EVEN`.
_LEAST_SPREAD: Final = 0.1
EVEN: Final = 0.5


def pick_template(count: int, share: float, digits: int) -> PickNoise:
    """Return picks whose squared size is `share` of ``4**-digits``."""
    scale = PICK_SENSITIVITY * math.sqrt(count / share) * 2**digits
    return PickNoise(PICK_SENSITIVITY, math.ceil(scale), count)


def kept_columns(known: KnownGrown, room: int, least: float) -> _Integers:
    """Return which public columns stay, at most `room`: those whose coefficients stand out of their doubt."""
    if not known.dim:
        return np.zeros(0, np.int64)
    _, covariance = _posterior(known)
    doubt = np.diagonal(covariance, axis1=1, axis2=2)[:, :-1]
    stands_out: _Floats = (known.coefficients[:, :-1] ** 2 / doubt).sum(axis=0)
    enough = stands_out > known.groups + least * math.sqrt(2 * known.groups)
    order = np.argsort(-stands_out, kind="stable")
    return np.sort(order[enough[order]][:room])


def grown(known: KnownGrown, kept: _Integers, new: _Integers) -> KnownGrown:
    """Return what is known with some of its columns, and new ones behind them of which nothing is known."""
    more, d, m = len(new), len(kept), len(kept) + len(new)
    places = np.append(np.arange(d), m)
    old = np.append(kept, known.dim)
    precision, told = np.zeros((known.groups, m + 1, m + 1)), np.zeros((known.groups, m + 1))
    precision[:, places[:, None], places] = known.precision[:, old[:, None], old]
    told[:, places] = known.told[:, old]
    coefficients, draws = np.zeros((known.groups, m + 1)), np.zeros((DRAWS, known.groups, m + 1))
    coefficients[:, places], draws[:, :, places] = known.coefficients[:, old], known.draws[:, :, old]

    def pairs(values: _Floats) -> _Floats:
        return np.pad(values[np.ix_(kept, kept)], (0, more))

    ball = known.ball * math.sqrt(m / known.dim) if d else known.constants.first_ball * math.sqrt(m)
    return replace(
        known,
        columns=np.concatenate([known.columns[kept], new]),
        precision=precision,
        told=told,
        coefficients=coefficients,
        draws=draws,
        products=pairs(known.products),
        product_weights=pairs(known.product_weights),
        middles=np.append(known.middles[kept], np.zeros(more)),
        centers=np.append(known.centers[kept], np.zeros(more)),
        center=np.zeros(m),
        size=np.ones(m),
        ball=max(ball, 1.0),
    )


def clip(known: KnownGrown, scale: float) -> float:
    """Return the clip of a value times a residual, for columns of size `scale` and rewards from -1/2 to 1/2.

    Rare large residuals carry what there is to learn of rare rewards: they are not cut.
    """
    low, high = known.reward_range
    spread, middle = 0.5, 0.0
    if known.earned.whole is not None:
        spread = min(known.earned.whole.spread() / (high - low), 0.5)
        mean = (known.earned.whole.reward.mean - (low + high) / 2) / (high - low)
        middle = min(max(mean, -0.5), 0.5)
    return scale * max(_CLIP * spread, 0.5 + abs(middle) - _TYPICAL * spread)


def explained(known: KnownGrown, kept: _Integers, groups: int, ball: float) -> _Floats:
    """Return what columns that stay explain: for each arm a weight of their integers each, and a level."""
    weights = np.zeros((groups, len(kept) + 1))
    found, gone = known.coefficients, np.delete(np.arange(known.dim), kept)
    weights[: known.groups, :-1] = found[:, kept] * ball / RADIUS
    # What goes is in the level with what it has in the mean.
    weights[: known.groups, -1] = found[:, -1] + found[:, gone] @ known.centers[gone]
    return weights


def learned(
    known: KnownGrown, released: dict[str, Released], rows: int, groups: int, board: Board, width: float
) -> KnownGrown:
    """Return what is known after an episode.

    Parameters
    ----------
    known : KnownGrown
        With the columns that were picked.
    width : float
        Standard deviations of the posterior that draws are apart.
    """
    known, d = _with_groups(known, groups), known.dim
    unit, reward = known.ball / RADIUS, 1 / (2 * STEPS)
    units = np.concatenate([np.full(d, unit * reward), [reward], np.full(d, unit), [1.0]])
    arms = released["arms"].values.reshape(groups, 2 * d + 2) * units
    noise = released["arms"].noise[: 2 * d + 2] * units
    score = ArmScores(arms[:, -1], arms[:, d], float(noise[-1]), float(noise[d]))
    present = max(float(arms[:, -1].sum()), math.sqrt(groups) * float(noise[-1]), 1.0)
    common = arms[:, d + 1 : -1].sum(axis=0) / present
    # Centers of new columns are what their first rows have in the mean, as far as it is not noise, and stay.
    new = np.diag(known.product_weights) == 0
    doubt = groups * (noise[d + 1 : -1] / present) ** 2
    clear = common * np.maximum(common**2 - doubt, 0.0) / np.maximum(common**2, 1e-300)
    known = replace(known, centers=np.where(new, clear, known.centers))
    known = _with_products(known, released["moments"], common, present, unit)
    low, high = known.reward_range
    spread = min(max(board.spread(0.0) / (high - low), _LEAST_SPREAD), EVEN) ** 2
    counts = np.maximum(arms[:, -1], 0.5 * noise[-1])
    covariance = _covariance(known)
    variances = np.diag(covariance)
    # Means of an arm's rows, as far as they are not noise, less the center.
    means = arms[:, d + 1 : -1] / counts[:, None] - known.centers
    doubt = (noise[d + 1 : -1] / counts[:, None]) ** 2 + variances / counts[:, None]
    means *= _APART * variances / (_APART * variances + doubt)
    gram = np.zeros((groups, d + 1, d + 1))
    gram[:, :d, :d] = covariance + means[:, :, None] * means[:, None, :]
    gram[:, :d, -1] = gram[:, -1, :d] = means
    gram[:, -1, -1] = 1.0
    gram *= counts[:, None, None]
    level = np.clip(arms[:, d] / counts, -0.5, 0.5)
    # Sums of z r, with that of the mean of rows taken off where it is noise.
    sums = np.concatenate([arms[:, :d] - known.centers * arms[:, [d]], arms[:, [d]]], axis=1)
    sums[:, :d] -= level[:, None] * (arms[:, d + 1 : -1] - counts[:, None] * (means + known.centers))
    variance = np.concatenate(
        [
            noise[:d] ** 2 + (level[:, None] * noise[d + 1 : -1]) ** 2,
            np.full((groups, 1), noise[d] ** 2) + (level[:, None] * noise[-1]) ** 2,
        ],
        axis=1,
    )
    pair = math.sqrt(known.product_noise / max(float(known.product_weights.max(initial=0.0)), 1e-300))
    error = (counts * pair) ** 2 * float((known.coefficients[:, :-1] ** 2).sum(axis=1).max(initial=0.0))
    variance[:, :d] += error[:, None]
    whole = spread * gram
    places = np.arange(d + 1)
    whole[:, places, places] += variance
    weighted = np.linalg.solve(whole, np.concatenate([gram, sums[:, :, None]], axis=2))
    known = replace(
        known,
        episodes=known.episodes + 1,
        rows=known.rows + rows,
        scores=(*known.scores, score),
        precision=known.precision + gram @ weighted[:, :, :-1],
        told=known.told + (gram @ weighted[:, :, -1:])[:, :, 0],
        ball=max(_BALL * math.sqrt(float((variances + known.centers**2).sum())), _SMALLEST_BALL),
    )
    return _with_draws(known, width)


def _with_groups(known: KnownGrown, groups: int) -> KnownGrown:
    """Return what is known with nothing about arms that came later."""
    longer = with_groups(known, groups)
    assert isinstance(longer, KnownGrown)
    return longer


def _with_products(
    known: KnownGrown, released: Released, common: _Floats, present: float, unit: float
) -> KnownGrown:
    d = known.dim
    whole = np.zeros((d, d))
    upper = np.triu_indices(d)
    whole[upper] = released.values * unit**2 / present
    whole = whole + np.triu(whole, 1).T
    middle = np.outer(common, known.centers)
    whole += np.outer(known.centers, known.centers) - middle - middle.T
    noise = (float(released.noise.min()) * unit**2 / present) ** 2
    weight = 1 / (noise + 1 / present**2)
    return replace(
        known,
        products=known.products + weight * whole,
        product_weights=known.product_weights + weight,
        middles=known.middles + weight * (common - known.centers),
        product_noise=noise * weight,
    )


def _covariance(known: KnownGrown) -> _Floats:
    """Return the covariance of columns, as far as it is not noise, with no eigenvalue that is too small."""
    d = known.dim
    found = known.products / known.product_weights
    noise = known.product_noise / known.product_weights
    off = ~np.eye(d, dtype=bool)
    size = float((found[off] ** 2).mean()) if d > 1 else 1.0
    found[off] *= max(size - float(noise[off].mean() if d > 1 else 0.0), 0.0) / max(size, 1e-300)
    diagonal = np.diag(found).copy()
    typical = max(float(diagonal.mean()), _LEAST_VARIANCE)
    least = max(_SHARE * typical, _LEAST_VARIANCE)
    np.fill_diagonal(found, np.maximum(diagonal, least))
    values, vectors = np.linalg.eigh(found)
    values = np.maximum(values, _SHARE * least)
    raised: _Floats = (vectors * values) @ vectors.T
    return raised


def _posterior(known: KnownGrown) -> tuple[_Floats, _Floats]:
    """Return means of all arms' coefficients, and their covariances."""
    d = known.dim
    prior = np.append(np.full(d, 1 / _PRIOR), 1 / _LEVEL_PRIOR)
    covariance = np.linalg.inv(known.precision + np.diag(prior)).astype(np.float64)
    # Arms' levels are drawn to what arms have in common, which all of them tell.
    told = known.told.copy()
    own = known.told[:, -1] / np.maximum(known.precision[:, -1, -1], 1e-300)
    sure = 1 / (_LEVEL_PRIOR + 1 / np.maximum(known.precision[:, -1, -1], 1e-300))
    common = float(np.clip(own, -0.5, 0.5) @ sure / sure.sum()) if sure.sum() else 0.0
    told[:, -1] += common / _LEVEL_PRIOR
    means = (covariance @ told[:, :, None])[:, :, 0]
    return means, covariance


def _with_draws(known: KnownGrown, width: float) -> KnownGrown:
    """Return what is known with coefficients of ``(w, 1)``, and draws of them, for the next episode."""
    constants, middle = known.constants, np.append(-known.centers, 1.0)
    means, covariance = _posterior(known)
    rng = np.random.default_rng([known.episodes, 16])
    z = rng.normal(size=(DRAWS, known.groups, known.dim + 1))
    apart = np.einsum("kij,skj->ski", np.linalg.cholesky(covariance), z) * width
    apart[:, :, -1] *= constants.level_width
    apart[:, :, -1] += 1e-9 * z[:, :, -1]
    draws = means + apart
    draws[:, :, -1], means[:, -1] = draws @ middle, means @ middle
    return replace(known, coefficients=means, draws=draws)


def arm_values(known: KnownGrown) -> tuple[_Floats, _Floats]:
    """Return what each arm would earn if everybody was shown it, from -1/2 to 1/2, and variances of that."""
    means, covariance = _posterior(known)
    weights = np.diag(known.product_weights)
    middle = np.append(known.middles / np.maximum(weights, 1e-300), 1.0)
    # What noise in a mean of rows moves a score by, about: that of a mean product, in columns of size 1.
    error = known.product_noise / np.maximum(weights, 1e-300)
    variances = np.einsum("i,kij,j->k", middle, covariance, middle) + means[:, :-1] ** 2 @ error
    return means @ middle, variances
