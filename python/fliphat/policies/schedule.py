"""Defaults of the policy: every number that is chosen for the user, as a pure function of public numbers.

Nothing here may see a row, a reward or a count of rewards. Two scales are public knowledge of the caller:
``context_scale``, the typical size of one context coordinate, and ``reward_scale``, of a reward; both 1.0
unless said otherwise.

The schedules work with one number, the *detectable* signal: noise of a pick, with one iteration, times
``ln d``, in units of the gradient clip. A coordinate tends to be found when its mean gradient beats it. With
the exponential mechanism it is ``2 sqrt(s / rho) ln(d) / n``.

| default | value |
|---|---|
| ``context_scale``, ``reward_scale`` | 1.0 |
| ``gradient_clip`` | 1.3 * context_scale * reward_scale |
| ``l1_radius`` | 2 sqrt(s) * reward_scale / context_scale (logistic: 4 times that) |
| ``reward_clip`` | none: the gradient clip bounds every row (paper: x_max b_max + sqrt(2 ln(1 + n))) |
| ``episodes``, ``warm_start`` | planned, True |
| first planned episode n_0 | detectable signal 0.27 at n_0, and at least 13 ln d + 1 rounds |
| iterations M, step eta | signal above 0.172: M = 1, eta = 0.5; above 0.0316: M = 2, eta = 1; else 3, 1 |
| warm start | from the last estimate if its detectable signal was below 0.253: M - 1 (at least 1), eta = 1 |
| unit of eta | 1 / context_scale^2 (logistic: 4 / context_scale^2, whose curvature is a quarter) |
| paper: M, eta | floor(0.16 ln(1 + n b_max^2)), 1e-4 |
| paper: ``context_bound`` | sqrt(2 ln d) |

The l1 radius is where Cauchy-Schwarz puts an s-sparse coefficient vector that explains rewards of twice the
stated scale: it should not bind. The second bound on n_0 is about sampling, not privacy: with fewer rows the
gradients themselves are too rough to rank d coordinates.
"""

from __future__ import annotations

import math
from typing import Final

from fliphat.privacy.paper import paper_iterations

__all__ = [
    "detectable",
    "first_episode",
    "gradient_clip",
    "iterations_and_step",
    "l1_radius",
    "paper_iterations_and_step",
    "start_is_useful",
]

_CLIP_FACTOR: Final = 1.3
_RADIUS_FACTOR: Final = 2.0
_FIRST_DETECTABLE: Final = 0.27
_FEWEST_PER_LOG_DIM: Final = 13.0
_ONE_ITERATION_ABOVE: Final = 0.172
_TWO_ITERATIONS_ABOVE: Final = 0.0316
_USEFUL_BELOW: Final = 0.253
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
    return noise * math.log(max(dim, 2)) / rows


def first_episode(noise: float, dim: int) -> int:
    """Return n_0, the rounds played uniformly before the first estimate.

    Examples
    --------
    >>> from math import sqrt
    >>> first_episode(2 * sqrt(10 / 0.1034), dim=400)  # epsilon = 1, delta = 0.01, s = 10
    437
    """
    log_dim = math.log(max(dim, 2))
    return max(math.ceil(noise * log_dim / _FIRST_DETECTABLE), math.ceil(_FEWEST_PER_LOG_DIM * log_dim) + 1)


def start_is_useful(signal: float | None) -> bool:
    """Return whether an estimate is worth starting from, given the detectable signal of its own fit."""
    return signal is not None and signal < _USEFUL_BELOW


def iterations_and_step(signal: float, *, warm: bool, context_scale: float, loss: str) -> tuple[int, float]:
    """Return M and eta of a fit whose detectable signal is `signal`.

    Examples
    --------
    >>> iterations_and_step(0.2, warm=False, context_scale=1.0, loss="squared")
    (1, 0.5)
    >>> iterations_and_step(0.1, warm=True, context_scale=1.0, loss="squared")
    (1, 1.0)
    """
    if signal > _ONE_ITERATION_ABOVE:
        iterations, step = 1, 0.5
    elif signal > _TWO_ITERATIONS_ABOVE:
        iterations, step = 2, 1.0
    else:
        iterations, step = 3, 1.0
    if warm:
        iterations, step = max(1, iterations - 1), 1.0
    return iterations, step * curvature(loss) / context_scale**2


def paper_iterations_and_step(rows: int, radius: float) -> tuple[int, float]:
    """Return M and eta of the published simulations; M may be 0, which leaves the estimate as it is."""
    return paper_iterations(rows, l1_radius=radius), _PAPER_STEP
