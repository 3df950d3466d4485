"""What is known before anything is released, and the plan of an episode from what is known."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.board import BOARD_SHARE
from fliphat.fit.pursuit.constants import Tuning
from fliphat.fit.pursuit.known import Episode, KnownSparse, Told
from fliphat.fit.pursuit.scores import largest_residual, mean_slope, rare_residual, size_where_there
from fliphat.fit.pursuit.typical import moments_of_typical, typical_column, typical_of_support

__all__ = ["FAINT", "begin", "centred", "fewest_picks", "open_episode"]

_Vector = npt.NDArray[np.float64]

#: Precision, in 1/x^4, that every second moment has at least.
FAINT: Final = 1e-12

#: Half the width of the range that rewards are expected in, in standard deviations of a reward.
_REWARD_WIDTH: Final = 4.0


def begin(told: Told) -> KnownSparse:
    """Return what is known before anything is released."""
    t = told.tuning
    wide = told.sparsity / 10
    wider = math.sqrt(wide) if wide <= 1 or t.wide_first == 0.5 else wide**t.wide_first
    picks = max(1.0, t.picks_for_budget * told.mu) * wider
    picks = max(min(picks, 0.4 * told.sparsity), fewest_picks(told))
    log_dim = math.log(max(told.dim, 2))
    noise = 2 * math.sqrt(int(picks) / t.pick_share) / told.mu
    # A coefficient of typical size moves a mean gradient by about 0.235 clips.
    rows = math.hypot(t.rows_for_noise * noise * log_dim / 0.235, t.rows_for_sampling * log_dim)
    rows = max(rows * max(wide, 0.3) ** 0.24, 4.0) if told.first_rows is None else float(told.first_rows)
    known = KnownSparse(
        dim=told.dim,
        episodes=0,
        fits=0,
        rows=rows,
        shortest=rows / 2,
        picks=picks,
        columns=np.zeros(0, np.int64),
        units=np.zeros(0),
        theta=np.zeros(1),
        covariance=np.zeros((1, 1)),
        moments=np.ones((1, 1)),
        precision=np.zeros((1, 1)),
        residual_size=told.reward_scale,
        context_size=told.context_scale,
        start_size=told.context_scale,
        told_size=told.context_scale,
        shrink=t.shrink,
    )
    if not told.intercept:
        return known
    centre = sum(told.reward_range) / 2 if told.reward_range and told.loss == "squared" else 0.0
    return centred(known, told, centre, told.reward_scale)


def centred(known: KnownSparse, told: Told, centre: float, size: float) -> KnownSparse:
    """Return what is known when rewards are about `centre`, give or take `size`."""
    deviation = told.tuning.intercept_prior * size / mean_slope(known, told)
    return replace(known, theta=np.array([centre]), covariance=np.array([[deviation**2]]), residual_size=size)


def fewest_picks(told: Told) -> float:
    """Return how many columns an episode picks at least, as far as there are any."""
    return max(1.0, told.tuning.fewest_picks * told.sparsity)


def open_episode(known: KnownSparse, told: Told) -> Episode:
    """Return the next episode, from what is known."""
    t, x, r, k = told.tuning, known.context_size, known.residual_size, len(known.columns)
    picks = int(min(known.picks + 1e-9, max(1.0, t.most_picks * told.sparsity), told.dim - k))
    rare = rare_residual(known, told)
    mean, product = typical_column(known, t)
    prior = moments_of_typical(k + 1, x, *typical_of_support(known, t))
    on_support = _drawn(_in_units(known.moments, x), known.precision, x, prior, t, sampling=0.0)
    on_support = _positive(on_support, t.smallest_eigenvalue * x * x)
    across = np.concatenate([[mean * x], np.full(k, product)])
    shift = np.linalg.solve(on_support, across)
    own = math.sqrt(max(x * x - float(across @ shift), 0.1 * x * x))
    m = 1 + k + picks
    typical = moments_of_typical(m, x, mean, product)
    foreseen = typical.copy()
    foreseen[: k + 1, : k + 1] = on_support
    typical[: k + 1, : k + 1] = prior
    eigenvalues, vectors = _raised_eigenvalues(foreseen, t.smallest_eigenvalue * x * x)
    foreseen = (vectors * eigenvalues) @ vectors.T
    value_clip, pick_clip = max(t.value_clip * r, rare), own * max(t.pick_clip * r, rare)
    if told.loss == "logistic":
        largest, there = largest_residual(known, told), size_where_there(known)
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
    if told.board:
        shares["board"] = BOARD_SHARE
    shares["gradient"] = 1 - sum(shares.values())
    return Episode(
        rows=math.ceil(known.rows),
        picks=picks,
        one=x,
        shift=shift if np.any(across) else None,
        pick_clip=pick_clip,
        value_clip=value_clip,
        whiten=(vectors / np.sqrt(eigenvalues)) @ vectors.T,
        foreseen=foreseen,
        ball=math.sqrt(t.ball * float(np.trace(foreseen))),
        size_cap=t.size_cap * r,
        shares=shares,
        typical=typical,
        assumed=t.pursued * r if t.signed and told.loss == "squared" else 0.0,
        reward_range=_expected_rewards(known, told) if told.board else None,
    )


def _expected_rewards(known: KnownSparse, told: Told) -> tuple[float, float]:
    """Return where rewards are expected: the range that was told, or about the mean that is known."""
    if told.reward_range is not None:
        return told.reward_range
    center, x = known.intercept, known.context_size
    spread = known.residual_size**2 + x * x * float(known.theta[1:] @ known.theta[1:])
    half = _REWARD_WIDTH * math.sqrt(spread + float(known.covariance[0, 0]))
    if known.earned.recent is not None:
        mean, error = known.earned.recent.reward
        if error < half / _REWARD_WIDTH:
            center = mean
    return center - half, center + half


def _in_units(moments: _Vector, x: float) -> _Vector:
    """Return moments with the intercept's column at the value x instead of 1."""
    unit = np.ones(len(moments))
    unit[0] = x
    return moments * np.outer(unit, unit)


def _drawn(
    moments: _Vector, precision: _Vector, x: float, typical: _Vector, t: Tuning, sampling: float
) -> _Vector:
    """Return moments drawn to those of typical columns by what is noise in them."""
    spread = t.moment_prior * x**4
    trust = spread / (spread + 1 / np.maximum(precision, FAINT / x**4) + sampling * x**4)
    trust[0, 0] = 1.0
    return trust * moments + (1 - trust) * typical


def _positive(H: _Vector, smallest: float) -> _Vector:
    eigenvalues, vectors = _raised_eigenvalues(H, smallest)
    raised: _Vector = (vectors * eigenvalues) @ vectors.T
    return raised


def _raised_eigenvalues(H: _Vector, smallest: float) -> tuple[_Vector, _Vector]:
    """Return eigenvalues, none below `smallest`, and eigenvectors of a matrix's symmetric part."""
    eigenvalues, vectors = np.linalg.eigh((H + H.T) / 2)
    return np.maximum(eigenvalues, smallest), vectors
