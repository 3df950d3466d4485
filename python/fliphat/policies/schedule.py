"""Defaults of the policy: every number that is chosen for the user, as a pure function of public numbers.

Nothing here may see a row, a reward or a count of rewards. Two scales are public knowledge of the caller:
``context_scale``, the typical size of one context coordinate, and ``reward_scale``, of a reward; both 1.0
unless said otherwise.

The schedules work with one number, the *detectable* signal: noise of a pick, with one iteration, times
``ln d``, in units of the gradient clip. A coordinate tends to be found when its mean gradient beats it.

| default | value |
|---|---|
| ``context_scale``, ``reward_scale`` | 1.0 |
| ``gradient_clip`` | 0.8 * context_scale * reward_scale |
| ``l1_radius`` | 2 sqrt(s) * reward_scale / context_scale (logistic: 4 times that) |
| ``reward_clip`` | none: the gradient clip bounds every row (paper: x_max b_max + sqrt(2 ln(1 + n))) |
| ``episodes``, ``warm_start`` | planned, True |
| share of the budget spent on picks | 0.8 |
| *enough rows* | detectable signal 0.235 when half the coordinates are picked; at least 11 ln d |
| first planned episode n_0 | enough rows |
| ``growth`` of planned episodes | 1.25, or 2 with cold starts |
| coordinates picked | s; with warm starts ceil(s/2) until two episodes have had enough rows |
| warm start | from the last estimate, once an episode has had enough rows |
| warm fits: M, eta | 1, max(0.3, 1 / (1 + k/4)) with k the episodes before that had enough rows |
| warm fits: released values | shrunk by 1 - (noise / value)^2, or to 0: post-processing |
| cold fits: M, eta | detectable above 0.17: 1, 0.5; above 0.05: 2, 1; else 3, 1 |
| unit of eta | 1 / context_scale^2 (logistic: 4 / context_scale^2, whose curvature is a quarter) |
| paper: M, eta | floor(0.16 ln(1 + n b_max^2)), 1e-4 |
| paper: ``context_bound`` | sqrt(2 ln d) |

Why: nearly all regret falls before the first good estimate, and what decides that one is which coordinates
are picked. So picks get most of the budget, the first fits pick fewer coordinates, and episodes grow
slowly. Steps that shrink like those of stochastic approximation average the noise of many small fits, and
stay stable where contexts are correlated or the greedy choice among many arms stretches them: a step of 1
diverges there. How these numbers were found, and how they do elsewhere, is in ``docs/reproduction.md``.

The l1 radius is where Cauchy-Schwarz puts an s-sparse coefficient vector that explains rewards of twice the
stated scale: it should not bind. The second bound on n_0 is about sampling, not privacy: with fewer rows the
gradients themselves are too rough to rank d coordinates.
"""

from __future__ import annotations

import math
from typing import Final

from fliphat.privacy.paper import paper_iterations

__all__ = [
    "PICK_SHARE",
    "cold_fit",
    "detectable",
    "enough_rows",
    "first_picks",
    "gradient_clip",
    "growth",
    "l1_radius",
    "paper_fit",
    "picks",
    "warm_fit",
]

#: Share of the budget spent on choosing coordinates; the rest is spent on their values.
PICK_SHARE: Final = 0.8

_CLIP_FACTOR: Final = 0.8
_RADIUS_FACTOR: Final = 2.0
_FIRST_DETECTABLE: Final = 0.235
_FEWEST_PER_LOG_DIM: Final = 11.0
_EARLY_EPISODES: Final = 2
_SLOW_GROWTH, _FAST_GROWTH = 1.25, 2.0
_SMALLEST_STEP: Final = 0.3
_ONE_ITERATION_ABOVE: Final = 0.17
_TWO_ITERATIONS_ABOVE: Final = 0.05
_PAPER_STEP: Final = 1e-4


def gradient_clip(context_scale: float, reward_scale: float) -> float:
    """Return the bound on each coordinate of a row's gradient."""
    return _CLIP_FACTOR * context_scale * reward_scale


def l1_radius(sparsity: int, context_scale: float, reward_scale: float, loss: str) -> float:
    """Return the radius of the l1 ball estimates are projected on."""
    return _RADIUS_FACTOR * math.sqrt(sparsity) * reward_scale / context_scale * curvature(loss)


def curvature(loss: str) -> float:
    """Return how many times flatter than a square the loss is at its steepest bend: 4 for the logistic."""
    return 4.0 if loss == "logistic" else 1.0


def growth(*, warm_start: bool) -> float:
    """Return how many times longer a planned episode is than the one before.

    Warm fits carry over what was learned, so short episodes lose nothing; a cold fit must learn all from its
    own rows.
    """
    return _SLOW_GROWTH if warm_start else _FAST_GROWTH


def detectable(noise: float, rows: int, dim: int) -> float:
    """Return the mean gradient, in clips, that a pick with one iteration can tell from noise.

    Parameters
    ----------
    noise : float
        Scale of a pick's noise with one iteration, in clips times rows: ``pick_scale / 2**15``.

    Examples
    --------
    >>> detectable(10.0, rows=1000, dim=1) < detectable(10.0, rows=500, dim=400)
    True
    """
    return noise * _log_dim(dim) / rows


def enough_rows(noise: float, dim: int) -> int:
    """Return the rows from which a fit is worth playing by, given the noise of :func:`first_picks` picks.

    Examples
    --------
    >>> from math import sqrt
    >>> enough_rows(2 * sqrt(5 / (1.6 * 0.1034)), dim=400)  # epsilon = 1, delta = 0.01, s = 10
    281
    """
    sampling = _FEWEST_PER_LOG_DIM * _log_dim(dim)
    return math.ceil(max(noise * _log_dim(dim) / _FIRST_DETECTABLE, sampling))


def first_picks(sparsity: int) -> int:
    """Return the coordinates that the first warm fits pick: the strongest half, with less noise each."""
    return (sparsity + 1) // 2


def picks(sparsity: int, good: int) -> int:
    """Return the coordinates that a warm fit picks after `good` episodes with enough rows."""
    return first_picks(sparsity) if good < _EARLY_EPISODES else sparsity


def warm_fit(good: int, *, context_scale: float, loss: str) -> tuple[int, float]:
    """Return M and eta of a warm fit after `good` episodes with enough rows.

    Examples
    --------
    >>> [warm_fit(good, context_scale=1.0, loss="squared")[1] for good in (0, 1, 4, 100)]
    [1.0, 0.8, 0.5, 0.3]
    """
    return 1, max(_SMALLEST_STEP, 1 / (1 + good / 4)) * curvature(loss) / context_scale**2


def cold_fit(signal: float, *, context_scale: float, loss: str) -> tuple[int, float]:
    """Return M and eta of a fit from zero whose detectable signal is `signal`.

    Examples
    --------
    >>> cold_fit(0.2, context_scale=1.0, loss="squared"), cold_fit(0.1, context_scale=1.0, loss="squared")
    ((1, 0.5), (2, 1.0))
    """
    if signal > _ONE_ITERATION_ABOVE:
        iterations, step = 1, 0.5
    elif signal > _TWO_ITERATIONS_ABOVE:
        iterations, step = 2, 1.0
    else:
        iterations, step = 3, 1.0
    return iterations, step * curvature(loss) / context_scale**2


def paper_fit(rows: int, radius: float) -> tuple[int, float]:
    """Return M and eta of the published simulations; M may be 0, which leaves the estimate as it is."""
    return paper_iterations(rows, l1_radius=radius), _PAPER_STEP


def _log_dim(dim: int) -> float:
    return math.log(max(dim, 2))
