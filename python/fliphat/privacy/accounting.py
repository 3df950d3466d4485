"""What each mechanism costs, in exact rationals, and how costs add up.

Costs are :class:`fractions.Fraction` functions of integers: the sensitivity (how far replacing one person's
rows can move any integer sum) and the noise scale. No float takes part, so no rounding can make a cost look
smaller.

=========================================  =========================  ==================
mechanism                                  zCDP                       pure DP
=========================================  =========================  ==================
exponential pick, scale beta               (L/beta)^2 / 2             2 L/beta
report-noisy-max pick, Laplace scale t     at most 2 (L/t)^2          2 L/t
Gaussian value, standard deviation sigma   (L/sigma)^2 / 2            none
Laplace value, scale t                     at most (L/t)^2 / 2        L/t
=========================================  =========================  ==================

with L the sensitivity. Gaussian and Laplace are the discrete laws on the integers. Costs of the steps of a
fit add up even though each step sees the results of the earlier ones (adaptive composition).

Permute-and-flip is epsilon-DP but *not* bounded-range: charging it ``epsilon^2/8`` would be wrong, and the
tests hold a control that shows by how much.

References
----------
J. Dong, D. Durfee, R. Rogers (2020). Optimal Differential Privacy Composition for Exponential Mechanisms.
ICML, PMLR 119, arXiv:1909.13830 (bounded range, defined by Durfee and Rogers 2019, arXiv:1905.04273).
M. Cesar, R. Rogers (2021). Bounding, Concentrating, and Truncating: Unifying Privacy Loss Composition for
Data Analytics. ALT, PMLR 132, arXiv:2004.07223 (bounded range eta costs eta^2/8 in zCDP).
C. Canonne, G. Kamath, T. Steinke (2020). The Discrete Gaussian for Differential Privacy. NeurIPS 33,
arXiv:2004.00010 (cost of the discrete Gaussian).
M. Bun, T. Steinke (2016). Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds.
TCC 2016-B, arXiv:1605.02065 (composition; pure DP as zCDP).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from fliphat import arguments
from fliphat.privacy.conversion import delta_from_rho, epsilon_from_rho, rho_from_epsilon

__all__ = [
    "MAX_SCALE",
    "bounded_range_zcdp",
    "check_delta",
    "compose",
    "delta_from_rho",
    "epsilon_from_rho",
    "exponential_pick_epsilon",
    "exponential_pick_zcdp",
    "gaussian_value_zcdp",
    "laplace_value_epsilon",
    "laplace_value_zcdp",
    "noisy_max_pick_epsilon",
    "noisy_max_pick_zcdp",
    "pure_dp_zcdp",
    "rho_from_epsilon",
]

MAX_SCALE = 2**40 - 1
"""Largest noise scale the exact samplers accept."""


def check_delta(value: float) -> float:
    """Return ``value`` as a float in ``[0, 1)``."""
    number = arguments.real("delta", value)
    if not 0 <= number < 1:
        raise ValueError(f"delta must be at least 0 and below 1, got {value!r}")
    return number


def bounded_range_zcdp(eta: Fraction) -> Fraction:
    """Return ``eta^2/8``, the zCDP cost of an eta-bounded-range mechanism.

    Bounded range: for neighbours with output laws P and Q, the loss ``f = log(P/Q)`` stays in some interval
    ``[t, t + eta]``.

    Proof. Let ``K(a) = log E_Q[exp(a f)]``. Then ``K(0) = 0``, and ``K(1) = log E_Q[P/Q] = 0``. ``K''(a)``
    is the variance of f under the law proportional to ``Q exp(a f)``; f stays in an interval of length eta,
    so its variance is at most ``eta^2/4`` (Popoviciu; the step inside Hoeffding's lemma). So ``g(a) = K(a)
    - a (a-1) eta^2/8`` has ``g'' <= 0`` and ``g(0) = g(1) = 0``: it is concave with two zeros, hence at
    most 0 outside them. For every ``a > 1`` the Renyi divergence is ``K(a)/(a-1) <= a eta^2/8``, which is
    the definition of ``eta^2/8``-zCDP.

    Examples
    --------
    >>> bounded_range_zcdp(Fraction(2, 10))
    Fraction(1, 200)
    """
    return _cost("eta", eta) ** 2 / 8


def pure_dp_zcdp(epsilon: Fraction) -> Fraction:
    """Return ``min(epsilon^2/2, epsilon)``, a zCDP cost of any epsilon-DP mechanism.

    Proof. The loss lies in ``[-epsilon, epsilon]``, so the mechanism is 2 epsilon-bounded-range: ``(2
    epsilon)^2/8``. And a Renyi divergence of order a is at most the largest loss: ``epsilon <= a epsilon``.
    """
    epsilon = _cost("epsilon", epsilon)
    return min(epsilon**2 / 2, epsilon)


def exponential_pick_epsilon(sensitivity: int, scale: int) -> Fraction:
    """Return the pure-DP cost, and the bounded range, of one exponential-mechanism pick: ``2 L / beta``.

    Coordinate j is drawn with probability ``exp(u_j/beta) / sum_i exp(u_i/beta)`` where each score u_j
    moves by at most L. The log-ratio of two neighbours' probabilities is ``(u_j - u'_j)/beta`` minus a
    constant that is the same for all j, so it spans at most ``2 L/beta``. Both laws sum to 1, so that span
    contains 0, and no log-ratio exceeds its length.
    """
    return 2 * _ratio(sensitivity, scale)


def exponential_pick_zcdp(sensitivity: int, scale: int) -> Fraction:
    """Return the zCDP cost of one exponential-mechanism pick: ``(2 L/beta)^2/8 = (L/beta)^2/2``."""
    return bounded_range_zcdp(exponential_pick_epsilon(sensitivity, scale))


def noisy_max_pick_epsilon(sensitivity: int, scale: int) -> Fraction:
    """Return the pure-DP cost of one report-noisy-max pick with discrete Laplace noise: ``2 L / t``.

    Fix the noise of all other coordinates (and the tie order). Coordinate j wins exactly when its own noise
    reaches some integer threshold m, and for a neighbour that threshold is at most ``m + 2 L``: j's score and
    its best rival's each move by at most L. For the discrete Laplace law
    ``P(Z >= m + 2 L) >= exp(-2 L/t) P(Z >= m)``.
    """
    return 2 * _ratio(sensitivity, scale)


def noisy_max_pick_zcdp(sensitivity: int, scale: int) -> Fraction:
    """Return a zCDP cost of one report-noisy-max pick: at most ``2 (L/t)^2``, four exponential picks."""
    return pure_dp_zcdp(noisy_max_pick_epsilon(sensitivity, scale))


def gaussian_value_zcdp(sensitivity: int, scale: int) -> Fraction:
    """Return the zCDP cost of one integer plus discrete Gaussian noise: ``(L/sigma)^2 / 2``."""
    return _ratio(sensitivity, scale) ** 2 / 2


def laplace_value_epsilon(sensitivity: int, scale: int) -> Fraction:
    """Return the pure-DP cost of one integer plus discrete Laplace noise: ``L / t``."""
    return _ratio(sensitivity, scale)


def laplace_value_zcdp(sensitivity: int, scale: int) -> Fraction:
    """Return a zCDP cost of one integer plus discrete Laplace noise: at most ``(L/t)^2 / 2``."""
    return pure_dp_zcdp(laplace_value_epsilon(sensitivity, scale))


def compose(costs: Iterable[Fraction]) -> Fraction:
    """Return the cost of running mechanisms one after another, each seeing what came before: the exact sum.

    Holds for zCDP and for pure DP, as long as all costs are of the same kind.
    """
    return sum((_cost("costs", cost) for cost in costs), Fraction(0))


def _ratio(sensitivity: int, scale: int) -> Fraction:
    return Fraction(
        arguments.integer("sensitivity", sensitivity, 0, 2**63 - 1),
        arguments.integer("scale", scale, 1, MAX_SCALE),
    )


def _cost(name: str, value: Fraction) -> Fraction:
    # Floats are refused: a cost that was rounded somewhere may have been rounded the wrong way.
    if not isinstance(value, Fraction):
        raise TypeError(f"{name} must be fractions.Fraction, which is exact, got {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} must be at least 0, got {value}")
    return value
