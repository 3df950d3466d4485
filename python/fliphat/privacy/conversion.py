"""Between rho-zCDP and (epsilon, delta)-DP, each way rounded so that the claim stays true.

The bound, and why it holds
---------------------------
A mechanism is rho-zCDP when, for neighbours with output laws P and Q and every order ``alpha > 1``, the loss
``Z = log(P/Q)`` has ``E_P[exp((alpha-1) Z)] <= exp((alpha-1) alpha rho)``. The smallest delta of
(epsilon, delta)-DP is ``E_P[max(0, 1 - exp(epsilon - Z))]``. For every z,

    max(0, 1 - exp(epsilon - z)) <= exp((alpha-1)(z - epsilon)) / (alpha-1) * (1 - 1/alpha)^alpha,

because ``(1 - u) u^(alpha-1)`` on ``0 < u < 1``, with ``u = exp(epsilon - z)``, is largest at
``u = 1 - 1/alpha``. Taking expectations, for *every* ``alpha > 1``,

    delta <= exp((alpha-1)(alpha rho - epsilon)) / (alpha-1) * (1 - 1/alpha)^alpha,

or with ``b = alpha - 1``:  ``log delta <= b (1+b) rho - b epsilon + b log b - (1+b) log(1+b)``.
It is linear in log delta, epsilon and rho, so each of the three is a closed form of the other two and b.

How the direction of rounding is proven
---------------------------------------
Floats only *choose* b, and any b is valid: a bad choice costs noise, never privacy. At the chosen b the
closed form is evaluated in 100-digit decimal arithmetic. Four facts bound its error:

1. b has at most 17 digits and lies in 1e-30..1e30, so ``1 + b`` is exact; epsilon and delta are floats, which
   have exact decimal expansions; so both logarithms see exact arguments.
2. ``decimal`` rounds ``+ - * / ln exp`` correctly: relative error at most 5e-100 each.
3. Every summand is a product or quotient of at most four such results, and three additions join them, so the
   error of the sum is below 10 * 5e-100 times the sum of the absolute summands, whatever cancels.
4. We move the sum by 1e-90 times that same total, then round to a float in the same direction.

References
----------
C. Canonne, G. Kamath, T. Steinke (2020). The Discrete Gaussian for Differential Privacy. NeurIPS 33,
arXiv:2004.00010, section 2.3 (this conversion).
M. Bun, T. Steinke (2016). Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds.
TCC 2016-B, arXiv:1605.02065 (zCDP).
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    localcontext,
)
from fractions import Fraction

from fliphat import arguments

__all__ = ["delta_from_rho", "epsilon_from_rho", "float_down", "float_up", "rho_from_epsilon"]

# A context of our own: the caller's may be less precise, or trap inexact results.
_PRECISE = Context(
    prec=100,
    rounding=ROUND_HALF_EVEN,
    Emin=MIN_EMIN,
    Emax=MAX_EMAX,
    traps=[InvalidOperation, DivisionByZero, Overflow],
)
_ERROR = Decimal("1e-90")
_SMALLEST_POSITIVE = math.ulp(0.0)


def delta_from_rho(rho: float | Fraction, epsilon: float) -> float:
    """Return a delta, rounded up, at which every rho-zCDP mechanism is (epsilon, delta)-DP.

    Examples
    --------
    >>> delta_from_rho(0.1034, 1.0) <= 0.01
    True
    """
    rho, epsilon = _rho(rho), arguments.not_negative("epsilon", epsilon)
    if rho == 0:
        return 0.0
    rough = float(rho)
    b = _order_minus_one(lambda b: (2 * b + 1) * rough - epsilon - math.log1p(1 / b))
    with localcontext(_PRECISE):
        log_delta = _above(b * (1 + b) * _decimal(rho), -b * Decimal(epsilon), *_entropy_terms(b))
        if log_delta >= 0:
            return 1.0
        # Below the logarithm of the smallest float (-744.4) that float is the tightest upper bound there is.
        if log_delta < -745:
            return _SMALLEST_POSITIVE
        return min(1.0, float_up(Fraction(_above(log_delta.exp()))))


def epsilon_from_rho(rho: float | Fraction, delta: float) -> float:
    """Return an epsilon, rounded up, at which every rho-zCDP mechanism is (epsilon, delta)-DP.

    Examples
    --------
    >>> round(epsilon_from_rho(0.1034, 0.01), 3)
    1.0
    """
    rho, delta = _rho(rho), _delta(delta)
    if rho == 0:
        return 0.0
    rough, target = float(rho), -math.log(delta)
    b = _order_minus_one(lambda b: rough * b * b + math.log1p(b) - target)
    with localcontext(_PRECISE):
        terms = ((1 + b) * _decimal(rho), -Decimal(delta).ln() / b, *(term / b for term in _entropy_terms(b)))
        return max(0.0, float_up(Fraction(_above(*terms))))


def rho_from_epsilon(epsilon: float, delta: float) -> float:
    """Return a rho, rounded down, such that every rho-zCDP mechanism is (epsilon, delta)-DP.

    It is the largest such rho this conversion can show, up to rounding.

    Examples
    --------
    >>> [round(rho_from_epsilon(epsilon, 0.01), 4) for epsilon in (0.5, 1, 5)]
    [0.0352, 0.1034, 1.2363]
    """
    return _rho_from_epsilon(arguments.not_negative("epsilon", epsilon), _delta(delta))


@functools.cache
def _rho_from_epsilon(epsilon: float, delta: float) -> float:
    # Cached: a policy asks the same for every episode, and 100 digits take a while.
    target = -math.log(delta)
    # The two stationarity conditions above, with rho eliminated between them.
    b = _order_minus_one(
        lambda b: b * b * (epsilon + math.log1p(1 / b)) / (2 * b + 1) + math.log1p(b) - target
    )
    with localcontext(_PRECISE):
        terms = (Decimal(epsilon), Decimal(delta).ln() / b, *(-term / b for term in _entropy_terms(b)))
        return max(0.0, float_down(Fraction(_below(*(term / (1 + b) for term in terms)))))


def float_up(exact: Fraction) -> float:
    """Return the smallest float at or above ``exact`` (infinity beyond the largest).

    Examples
    --------
    >>> float_up(Fraction(1, 3)) >= Fraction(1, 3) > float_down(Fraction(1, 3))
    True
    """
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -sys.float_info.max
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


def float_down(exact: Fraction) -> float:
    """Return the largest float at or below ``exact`` (minus infinity beyond the most negative)."""
    return -float_up(-exact)


def _order_minus_one(increasing: Callable[[float], float]) -> Decimal:
    """Return the root b of an increasing function by bisection, short enough that 1 + b is exact.

    All three derivatives of the bound that callers pass are increasing in b, so the root is the best order.
    """
    low, high = math.log(1e-30), math.log(1e30)
    for _ in range(70):
        middle = (low + high) / 2
        if increasing(math.exp(middle)) < 0:
            low = middle
        else:
            high = middle
    return Decimal(repr(math.exp(low)))


def _entropy_terms(b: Decimal) -> tuple[Decimal, Decimal]:
    return b * b.ln(), -(1 + b) * (1 + b).ln()


def _above(*terms: Decimal) -> Decimal:
    return sum(terms, Decimal(0)) + _ERROR * sum(map(abs, terms), Decimal(0))


def _below(*terms: Decimal) -> Decimal:
    return sum(terms, Decimal(0)) - _ERROR * sum(map(abs, terms), Decimal(0))


def _decimal(exact: Fraction) -> Decimal:
    return Decimal(exact.numerator) / Decimal(exact.denominator)


def _rho(value: float | Fraction) -> Fraction:
    number = arguments.not_negative("rho", value)
    return value if isinstance(value, Fraction) else Fraction(number)


def _delta(value: float) -> float:
    number = arguments.real("delta", value)
    if not 0 < number < 1:
        raise ValueError(f"delta must be above 0 and below 1 to convert to or from zCDP, got {value!r}")
    return number
