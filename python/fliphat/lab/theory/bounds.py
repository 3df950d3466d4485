"""What no private policy can beat, what FLIPHAT is shown to reach, and where privacy dominates."""

from __future__ import annotations

import math
from typing import NamedTuple

from fliphat import arguments
from fliphat.environments.hard import MAX_DIM, MAX_HORIZON, checked_delta, checked_privacy, hard_problem


class LowerBound(NamedTuple):
    """The two terms of the lower bound on the minimax regret; the bound is the larger one."""

    private: float
    non_private: float

    @property
    def total(self) -> float:
        """The bound: the larger of the two terms."""
        return max(self)


def regret_lower_bound(
    *,
    horizon: int,
    dim: int,
    sparsity: int,
    epsilon: float,
    delta: float = 0.0,
    noise_scale: float = 1.0,
    constant: float = 1.0,
) -> LowerBound:
    """Return the lower bound on the minimax regret under (epsilon, delta)-joint-DP.

    With ``L = ln(d/s*)``: the non-private term is ``sqrt(s* T L)``; the private one is
    ``s* L^(3/2) / epsilon`` for delta = 0 and ``L sqrt(s* ln(1/delta)) / epsilon`` for delta > 0 (Theorem
    "Lower Bound").

    Notes
    -----
    The term for delta > 0 is the paper's claim; its proof has a gap (:func:`gap_in_proof`).

    Examples
    --------
    >>> bound = regret_lower_bound(horizon=20_000, dim=400, sparsity=5, epsilon=0.01)
    >>> round(bound.private), round(bound.non_private), round(bound.total)
    (4587, 662, 4587)
    """
    rounds, scale_log = hard_problem(horizon, dim, sparsity)
    epsilon, delta = checked_privacy(epsilon, delta)
    factor = arguments.positive("noise_scale", noise_scale) * arguments.positive("constant", constant)
    if delta == 0:
        private = sparsity * scale_log**1.5 / epsilon
    else:
        private = scale_log * math.sqrt(sparsity * -math.log(delta)) / epsilon
    return LowerBound(factor * private, factor * math.sqrt(sparsity * rounds * scale_log))


def gap_in_proof(*, epsilon: float, delta: float = 0.0) -> str | None:
    """Return why the private term of the lower bound is not proven as printed, or None where it is.

    The half for delta = 0 stands. The half for delta > 0 does not, for any epsilon that its theorem is about:
    the paragraph "Choice of rho" needs ``epsilon^2 >= ln(1/delta)``, the opposite of what the theorem assumes
    (below that, the root it bounds does not go to 0 with epsilon); and the lemma by which it passes from
    (epsilon, delta)-DP to zCDP asks for (epsilon(delta), delta)-DP at all delta at once, not at one pair.

    Examples
    --------
    >>> gap_in_proof(epsilon=1.0) is None
    True
    >>> print(gap_in_proof(epsilon=1.0, delta=0.01))
    the choice of rho needs epsilon^2 = 1 to be at least ln(1/delta) = 4.605; the theorem assumes it is below
    """
    epsilon, delta = checked_privacy(epsilon, delta)
    if delta == 0:
        return None
    return (
        f"the choice of rho needs epsilon^2 = {epsilon**2:.4g} to be at least ln(1/delta) = "
        f"{-math.log(delta):.4g}; the theorem assumes it is below"
    )


def lower_bound_threshold(*, horizon: int, dim: int, sparsity: int, delta: float = 0.0) -> float:
    """Return the epsilon below which the private term of the lower bound is the larger one.

    ``sqrt(s*) ln(d/s*) / sqrt(T)`` for delta = 0, ``sqrt(ln(d/s*) ln(1/delta) / T)`` for delta > 0
    (implication (ii) of Theorem "Lower Bound"); constants that the paper leaves open are taken as equal.

    Examples
    --------
    >>> round(lower_bound_threshold(horizon=20_000, dim=400, sparsity=5, delta=0.01), 4)
    0.0318
    """
    rounds, scale_log = hard_problem(horizon, dim, sparsity)
    delta = checked_delta(delta)
    if delta == 0:
        return math.sqrt(sparsity / rounds) * scale_log
    return math.sqrt(scale_log * -math.log(delta) / rounds)


class UpperBound(NamedTuple):
    """The terms of the regret bound."""

    #: Before anything is known: ``x_max b_max (s + s*) ln d``.
    start: float
    #: ``I_alpha``, the statistical part.
    non_private: float
    #: ``J_alpha(epsilon, delta)``, the cost of privacy.
    private: float

    @property
    def total(self) -> float:
        """The bound: `start` plus the larger of the other two."""
        return self.start + max(self.non_private, self.private)


def regret_upper_bound(
    *,
    horizon: int,
    dim: int,
    sparsity: int,
    true_sparsity: int,
    epsilon: float,
    delta: float,
    alpha: float = 0.0,
    width: float = 1.0,
    context_bound: float = 1.0,
    l1_radius: float = 1.0,
    constant: float = 1.0,
) -> UpperBound:
    """Return the bound on FLIPHAT's expected regret (Theorem "Regret bounds for FLIPHAT").

    With ``S = s + s*``, for finite alpha::

        I = width^-alpha (T^((1-alpha)/2) - 1)/(1-alpha) (S^2 ln d)^((1+alpha)/2)
        J = Psi_alpha(T) (S^3 ln(d)^2 ln(1/delta) / epsilon^2)^((1+alpha)/2)
        Psi_alpha(T) = width^-alpha sum over n = 0 .. floor(log2 T) + 1 of n^(2 alpha + 2) / 2^(n alpha)

    and for alpha = infinity ``I = S^2 ln d``, ``J = S^3 ln(d)^2 ln(1/delta) / epsilon^2``.

    Notes
    -----
    The theorem prints ``T^((1-alpha)/2 - 1)`` in I; the appendix (cases 2 to 4) has the -1 outside the
    exponent, which is what is used here, with its limit ``ln(T)/2`` at alpha = 1. The upper end of Psi's sum
    counts doubling episodes, hence the logarithm to base 2, which the paper does not state.

    Examples
    --------
    >>> bound = regret_upper_bound(horizon=20_000, dim=400, sparsity=10, true_sparsity=5,
    ...                            epsilon=1.0, delta=0.01)
    >>> round(bound.start), round(bound.non_private), round(bound.private)
    (90, 5156, 926221)
    """
    both, dim_log = _size(dim, sparsity, true_sparsity)
    epsilon, log_delta = arguments.positive("epsilon", epsilon), _log_delta(delta)
    width = arguments.positive("width", width)
    constant = arguments.positive("constant", constant)
    bounds = arguments.positive("context_bound", context_bound) * arguments.positive("l1_radius", l1_radius)
    growth, psi = _growth(horizon, alpha)
    statistical, privacy = both**2 * dim_log, both**3 * dim_log**2 * log_delta / epsilon**2
    non_private, private = statistical, privacy
    if not math.isinf(alpha):
        power = (1 + alpha) / 2
        spread = -alpha * math.log(width)
        non_private = growth * _exp(spread + power * math.log(statistical))
        private = psi * _exp(spread + power * math.log(privacy))
    return UpperBound(constant * bounds * both * dim_log, constant * non_private, constant * private)


def privacy_threshold(
    *, horizon: int, dim: int, sparsity: int, true_sparsity: int, delta: float, alpha: float = 0.0
) -> float:
    """Return epsilon-bar(alpha): below it the private term of the regret bound is the larger one.

    Where ``J_alpha = I_alpha``: with ``S = s + s*``, ``sqrt(S ln(d) ln(1/delta))`` times
    ``(Psi_alpha(T) (1-alpha)/(T^((1-alpha)/2) - 1))^(1/(1+alpha))`` for finite alpha, times 1 for alpha =
    infinity. Remark 2 after the theorem gives the same with ``ln(T)^3 / sqrt(T)`` as the order of that factor
    at alpha = 0. The open constants of both terms are taken as equal. Remark 3 (the threshold grows with
    alpha) is about orders in T: the constants in Psi make the values of moderate alpha larger than that of
    infinity.

    Examples
    --------
    >>> import math
    >>> common = dict(horizon=10**9, dim=400, sparsity=10, true_sparsity=5, delta=0.01)
    >>> [round(privacy_threshold(alpha=alpha, **common), 2) for alpha in (0, 1, math.inf)]
    [6.08, 77.4, 20.34]
    """
    both, dim_log = _size(dim, sparsity, true_sparsity)
    log_delta = _log_delta(delta)
    arguments.integer("horizon", horizon, 2, MAX_HORIZON)
    growth, psi = _growth(horizon, alpha)
    order = math.sqrt(both * dim_log * log_delta)
    return order if math.isinf(alpha) else order * (psi / growth) ** (1 / (1 + alpha))


def _size(dim: int, sparsity: int, true_sparsity: int) -> tuple[int, float]:
    """Return ``s + s*`` and ``ln d``."""
    dim = arguments.integer("dim", dim, 2, MAX_DIM)
    sparsity = arguments.integer("sparsity", sparsity, 1, dim)
    return sparsity + arguments.integer("true_sparsity", true_sparsity, 1, dim), math.log(dim)


def _log_delta(delta: float) -> float:
    delta = arguments.real("delta", delta)
    if not 0 < delta < math.exp(-1):
        raise ValueError(
            f"delta must be above 0 and below 1/e = 0.3679 for the theorem to apply, got {delta!r}"
        )
    return -math.log(delta)


def _growth(horizon: int, alpha: float) -> tuple[float, float]:
    """Return how I and J grow with T, for a width of 1; finite alpha only."""
    horizon = arguments.integer("horizon", horizon, 1, MAX_HORIZON)
    alpha = arguments.real("alpha", alpha)
    if not alpha >= 0:
        raise ValueError(f"alpha must be a number of at least 0, or math.inf, got {alpha!r}")
    if math.isinf(alpha):
        return 1.0, 1.0
    exponent = (1 - alpha) / 2 * math.log(horizon)
    growth = math.log(horizon) / 2 * (math.expm1(exponent) / exponent if exponent else 1.0)
    last = horizon.bit_length()  # floor(log2 T) + 1, exactly
    terms = [(2 * alpha + 2) * math.log(n) - n * alpha * math.log(2) for n in range(1, last + 1)]
    return growth, math.fsum(_exp(term) for term in terms)


def _exp(x: float) -> float:
    """Return exp(x), infinity beyond the range of float64: such a bound says nothing."""
    return math.inf if x > 709 else math.exp(x)
