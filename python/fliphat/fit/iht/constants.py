"""Defaults: every number that is chosen for the user, as a pure function of public numbers.

Nothing here may see a row, a reward or a count of rewards. Two scales are public knowledge of the caller: the
typical size of one context coordinate (a feature), and of a reward (a target); both 1.0 unless said
otherwise. The bandit calls them ``context_scale`` and ``reward_scale``, the regression ``feature_scale`` and
``target_scale``.

The schedules work with one number, the *detectable* signal: noise of a pick, with one iteration, times
``ln d``, in units of the gradient clip. A coordinate tends to be found when its mean gradient beats it.

The regimes of M and eta, and all other numbers, are below and in ``docs/constants.md``.

**Why these, in the bandit.** Nearly all regret falls before the first good estimate, and what decides that
one is which coordinates are picked. So picks get most of the budget, the first fits pick fewer coordinates,
and episodes grow slowly. Steps that shrink like those of stochastic approximation average the noise of many
small fits, and stay stable where contexts are correlated or the greedy choice among many arms stretches them:
a step of 1 diverges there. How these numbers were found, and how they do elsewhere, is in
``docs/reproduction.md``.

**Why a regression's differ.** A bandit's arm depends on which coordinates an estimate has and on their
proportions; a small clip and a large share for picks buy just that, and the values may be too small. A
regression is judged by its values. Each was measured in the other's place (``docs/reproduction.md``): the
regression with the bandit's numbers has 3 to about 30 times the squared error, the bandit with the
regression's up to a fifth more regret in the published setting and up to 28 times as much where all contexts
are correlated.

The l1 radius is where Cauchy-Schwarz puts an s-sparse coefficient vector that explains rewards of twice the
stated scale: it should not bind, and leaves room for correlated features and for scales declared too small.
The second bound on n_0 is about sampling, not privacy: with fewer rows the gradients themselves are too rough
to rank d coordinates.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

__all__ = [
    "BANDIT_PICK_SHARE",
    "LOG_ODDS_SCALE",
    "REGRESSION_SPARSITY",
    "RESIDUAL_SCALE",
    "Steps",
    "bandit_clip",
    "cold_fit",
    "cold_iterations",
    "curvature",
    "detectable",
    "enough_rows",
    "first_picks",
    "growth",
    "l1_radius",
    "one_fit",
    "picks",
    "regression_clip",
    "warm_fit",
]

#: Share of the budget that the bandit spends on choosing coordinates; the rest is spent on their values.
BANDIT_PICK_SHARE: Final = 0.8

#: Coefficients that a regression keeps.
REGRESSION_SPARSITY: Final = 10

#: A classifier's residual before it knows anything: each probability is 1/2.
RESIDUAL_SCALE: Final = 0.5

#: Typical log-odds of a case that is fairly clear: a probability of 0.88.
LOG_ODDS_SCALE: Final = 2.0

_BANDIT_CLIP: Final = 0.8
_REGRESSION_CLIP: Final = 1.3
_RADIUS_FACTOR: Final = 2.0
_FIRST_DETECTABLE: Final = 0.235
_FEWEST_PER_LOG_DIM: Final = 11.0
_EARLY_EPISODES: Final = 2
_SLOW_GROWTH, _FAST_GROWTH = 1.25, 2.0
_SMALLEST_STEP: Final = 0.3
_SLOWER_STEPS: Final = 4
_LOGISTIC_CURVATURE: Final = 4.0

#: Largest detectable signal, iterations and step of each regime of a fit from zero, the easiest first.
_BANDIT_REGIMES: Final = ((0.05, 3, 1.0), (0.17, 2, 1.0), (math.inf, 1, 0.5))
_REGRESSION_REGIMES: Final = {
    # Chosen on simulated rows (5 of 50 to 400 coefficients, neighbouring features correlated by 0.1 to 0.7):
    # few iterations while noise dominates, then more and shorter ones, which converge with correlations.
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


class Steps(NamedTuple):
    """M and eta of one fit."""

    iterations: int
    step_size: float


# Both


def detectable(noise: float, rows: int, dim: int) -> float:
    """Return the mean gradient, in clips, that a pick with one iteration can tell from noise.

    `noise` is the scale of such a pick in clips times rows: ``pick_scale / 2**15``.
    """
    return noise * _log_dim(dim) / rows


def l1_radius(sparsity: int, context_scale: float, score_scale: float) -> float:
    """Return the radius of the l1 ball estimates are projected on: ``2 sqrt(s) * score / context``.

    Uncorrelated contexts of size `context_scale` that make up a score of size `score_scale` have coefficients
    of Euclidean norm ``score_scale / context_scale``, hence of l1 norm ``sqrt(s)`` times that at most.

    """
    return _RADIUS_FACTOR * math.sqrt(sparsity) * score_scale / context_scale


def curvature(loss: str) -> float:
    """Return how many times flatter than a square the loss is at its steepest bend: 4 for the logistic."""
    return _LOGISTIC_CURVATURE if loss == "logistic" else 1.0


# The bandit


def bandit_clip(context_scale: float, reward_scale: float) -> float:
    """Return the bound on each coordinate of a row's gradient."""
    return _BANDIT_CLIP * context_scale * reward_scale


def growth(*, warm_start: bool) -> float:
    """Return how many times longer a planned episode is than the one before.

    Warm fits carry over what was learned, so short episodes lose nothing; a cold fit must learn all from its
    own rows.
    """
    return _SLOW_GROWTH if warm_start else _FAST_GROWTH


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


def warm_fit(good: int, *, context_scale: float, loss: str) -> Steps:
    """Return M and eta of a warm fit after `good` episodes with enough rows."""
    return Steps(1, max(_SMALLEST_STEP, 1 / (1 + good / _SLOWER_STEPS)) * curvature(loss) / context_scale**2)


def cold_iterations() -> set[int]:
    """Return every M that :func:`cold_fit` may give."""
    return {iterations for _, iterations, _ in _BANDIT_REGIMES}


def cold_fit(signal: float, *, context_scale: float, loss: str) -> Steps:
    """Return M and eta of a bandit's fit from zero whose detectable signal is `signal`."""
    iterations, step = next((m, eta) for most, m, eta in _BANDIT_REGIMES if signal <= most)
    return Steps(iterations, step * curvature(loss) / context_scale**2)


# The regression


def regression_clip(feature_scale: float, residual_scale: float) -> float:
    """Return the bound on a coordinate of one row's gradient: 1.3 times a feature times a residual.

    Smaller clips bias the gradient, larger ones cost noise in proportion.
    """
    return _REGRESSION_CLIP * feature_scale * residual_scale


def one_fit(signal: float, *, loss: str, pure: bool) -> Steps:
    """Return M and eta of a regression whose detectable signal is `signal`.

    eta is in units of ``1 / feature_scale**2``. Where costs add up as `pure` epsilons do M iterations have M
    times the noise of one, otherwise ``sqrt(M)`` times, which is what the thresholds are for.
    """
    return next(
        Steps(iterations, step)
        for most, iterations, step in _REGRESSION_REGIMES[loss]
        if signal * (math.sqrt(iterations) if pure else 1.0) <= most
    )


def _log_dim(dim: int) -> float:
    return math.log(max(dim, 2))
