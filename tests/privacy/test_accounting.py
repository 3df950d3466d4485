"""Costs and conversions: exact values, safe rounding, and mistakes that the same checks must reject."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr
from scipy.stats import binom

from fliphat.privacy import accounting as acc
from fliphat.privacy.conversion import float_down, float_up

EPSILONS = (0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
DELTAS = (1e-12, 1e-9, 1e-6, 1e-4, 0.01, 0.1)
GRID = list(itertools.product(EPSILONS, DELTAS))
ORDERS = (1.0001, 1.01, 1.1, 1.5, 2.0, 4.0, 16.0, 64.0, 512.0)


# Costs of the mechanisms, against the mechanisms' own distributions ----------------------------------------


def excess(p: np.ndarray, q: np.ndarray, rho: float) -> float:
    """How far the Renyi divergence of p from q passes rho-zCDP: max over orders of D_a/a - rho."""
    log_p, log_q = np.log(p), np.log(q)
    divergences = [np.logaddexp.reduce(a * log_p + (1 - a) * log_q) / (a - 1) / a for a in ORDERS]
    return max(divergences) - rho


def exponential_law(scores: np.ndarray, scale: int) -> np.ndarray:
    weights = np.exp((scores - scores.max()) / scale)
    return weights / weights.sum()


@pytest.mark.parametrize("scale", [3, 10, 40, 200])
def test_exponential_pick_costs_no_more_than_charged(scale):
    rng = np.random.default_rng(scale)
    charged = float(acc.exponential_pick_zcdp(10, scale))
    worst = -math.inf
    for _ in range(300):
        scores = rng.integers(-3 * scale, 3 * scale, size=rng.integers(2, 8))
        other = scores + rng.choice([-10, 10], size=scores.size)
        p, q = exponential_law(scores, scale), exponential_law(other, scale)
        worst = max(worst, excess(p, q, charged))
        assert np.ptp(np.log(p / q)) <= float(acc.exponential_pick_epsilon(10, scale)) * (1 + 1e-9)
    assert worst <= 1e-9


def test_control_half_the_charge_for_a_pick_is_rejected():
    p, q = exponential_law(np.array([0, 0]), 100), exponential_law(np.array([10, -10]), 100)
    assert excess(p, q, float(acc.exponential_pick_zcdp(10, 100)) / 2) > 0


def test_control_permute_and_flip_charged_as_exponential_is_rejected():
    # Two candidates, 2 L apart: the weaker one wins only if it is proposed first and its coin lands.
    coin = math.exp(-float(acc.exponential_pick_epsilon(10, 100)))
    p, q = np.array([0.5, 0.5]), np.array([coin / 2, 1 - coin / 2])
    assert excess(p, q, float(acc.exponential_pick_zcdp(10, 100))) > 0
    assert excess(p, q, float(acc.pure_dp_zcdp(acc.exponential_pick_epsilon(10, 100)))) <= 1e-12


def integers_law(log_weight, shift: int) -> np.ndarray:
    weights = np.exp(log_weight(np.abs(np.arange(-3000, 3001) - shift).astype(float)))
    return np.maximum(weights, 1e-300) / weights.sum()


@pytest.mark.parametrize("scale", [90, 150, 300])
def test_gaussian_value_costs_exactly_what_is_charged(scale):
    def law(shift):
        return integers_law(lambda z: -(z**2) / (2 * scale**2), shift)

    charged = float(acc.gaussian_value_zcdp(3, scale))
    with np.errstate(under="ignore"):
        assert abs(excess(law(0), law(3), charged)) <= 1e-6 * charged
        assert excess(law(0), law(4), charged) > 0  # control: a sensitivity of 4 charged as 3


@pytest.mark.parametrize("scale", [1, 2, 5, 40])
def test_laplace_value_costs_no_more_than_charged(scale):
    def law(shift):
        return integers_law(lambda z: np.maximum(-z / scale, -600), shift)

    assert excess(law(0), law(3), float(acc.laplace_value_zcdp(3, scale))) <= 1e-9
    if scale == 40:
        assert excess(law(0), law(3), float(acc.laplace_value_zcdp(3, scale)) / 2) > 0


@pytest.mark.parametrize("scale", [4, 9, 30])
def test_noisy_max_pick_costs_no_more_than_charged_and_needs_both_shifts(scale):
    z = np.arange(-1500, 1501)
    noise = np.exp(-np.abs(z) / scale)
    noise /= noise.sum()
    tail = np.cumsum(noise[::-1])[::-1]  # P(Z >= z)

    def second_wins(gap):  # second is ``gap`` ahead; ties go to the first
        need = np.clip(z + 1 - gap - z[0], 0, z.size - 1)
        return float(noise @ tail[need])

    epsilon = float(acc.noisy_max_pick_epsilon(3, scale))
    losses = [math.log(second_wins(g + 6) / second_wins(g)) for g in range(-200, 1)]
    assert max(losses) <= epsilon * (1 + 1e-9)
    assert max(losses) > epsilon / 2  # control: one shift of L is not enough


def test_costs_are_exact():
    third = Fraction(1, 3)
    assert acc.exponential_pick_epsilon(2, 6) == acc.noisy_max_pick_epsilon(2, 6) == 2 * third
    assert (
        acc.exponential_pick_zcdp(2, 6)
        == acc.gaussian_value_zcdp(2, 6)
        == acc.laplace_value_zcdp(2, 6)
        == third**2 / 2
    )
    assert acc.noisy_max_pick_zcdp(2, 6) == 2 * third**2
    assert acc.laplace_value_epsilon(2, 6) == third
    assert acc.laplace_value_zcdp(9, 1) == 9  # the pure bound, below 81/2
    assert acc.compose([third] * 9) == 3
    assert acc.compose([]) == 0


def test_costs_refuse_what_is_not_exact():
    with pytest.raises(TypeError, match=r"costs must be fractions\.Fraction, which is exact, got float"):
        acc.compose([0.1])
    with pytest.raises(ValueError, match=r"eta must be at least 0, got -1"):
        acc.bounded_range_zcdp(Fraction(-1))
    with pytest.raises(ValueError, match=r"scale must be an integer from 1 to 1099511627775, got 0"):
        acc.gaussian_value_zcdp(1, 0)
    with pytest.raises(TypeError, match=r"scale must be an integer, got float"):
        acc.gaussian_value_zcdp(1, 2.0)


# The conversions, against 60 digits ------------------------------------------------------------------------


def smallest(function, low=-40, high=40):
    """Minimum over alpha > 1 of a unimodal function, by golden section on log(alpha - 1), in 60 digits."""
    ratio = (Decimal(5).sqrt() - 1) / 2
    low, high = Decimal(low), Decimal(high)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(1 + left.exp()), function(1 + right.exp())
    for _ in range(140):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(1 + left.exp())
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(1 + right.exp())
    return min(at_left, at_right)


def oracle(kind, first, second):
    """Best delta, epsilon or rho by the formula as printed, alpha optimised."""
    with localcontext() as context:
        context.prec = 60
        first, second = Decimal(first), Decimal(second)

        def entropy(a):
            return -(a - 1).ln() + a * (1 - 1 / a).ln()

        if kind == "delta":  # rho, epsilon
            return smallest(lambda a: (a - 1) * (a * first - second) + entropy(a)).exp()
        log_delta = second.ln()
        if kind == "epsilon":  # rho, delta
            return smallest(lambda a: a * first + (entropy(a) - log_delta) / (a - 1))
        # epsilon, delta
        return -smallest(lambda a: -(first + (log_delta - entropy(a)) / (a - 1)) / a)


NARROW = [(e, d) for e, d in GRID if e in (0.01, 0.5, 2.0, 50.0) and d in (1e-12, 1e-4, 0.1)]


@pytest.mark.parametrize(
    ("epsilon", "delta"), [*NARROW, (1e-6, 1e-300), (1e3, 0.99), (1e-6, 0.99), (1e3, 1e-300)]
)
def test_conversions_are_on_the_safe_side_of_the_oracle_and_close(epsilon, delta):
    rho = acc.rho_from_epsilon(epsilon, delta)
    best = oracle("rho", epsilon, delta)
    assert Decimal(rho) <= best <= Decimal(rho) * (1 + Decimal("1e-13"))
    best = oracle("epsilon", rho, delta)
    found = acc.epsilon_from_rho(rho, delta)
    assert best <= Decimal(found) <= best + Decimal("1e-13") * max(1, Decimal(found))
    best = oracle("delta", rho, epsilon)
    assert best <= Decimal(acc.delta_from_rho(rho, epsilon)) <= best * (1 + Decimal("1e-13"))


def test_control_rounding_to_nearest_would_be_caught():
    best = [oracle("rho", e, d) for e, d in NARROW]
    assert any(Decimal(float(b)) > b for b in best)
    assert all(Decimal(acc.rho_from_epsilon(e, d)) <= b for (e, d), b in zip(NARROW, best, strict=True))


def test_known_largest_rho():
    known = {0.5: 0.0352, 1.0: 0.1034, 2.0: 0.3050, 5.0: 1.236, 10.0: 3.398}
    for epsilon, rho in known.items():
        assert rho <= acc.rho_from_epsilon(epsilon, 0.01) <= rho * 1.0009


def gaussian_delta(rho, epsilon):
    """Exact delta of the Gaussian mechanism that costs exactly rho."""
    mu = math.sqrt(2 * rho)
    log_first = float(log_ndtr(mu / 2 - epsilon / mu))
    log_second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(log_first) * -math.expm1(log_second - log_first)


def refuted_by_gaussian(rho, epsilon, delta):
    return gaussian_delta(rho, epsilon) > delta * (1 + 1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_never_less_than_what_the_gaussian_mechanism_needs(epsilon, delta):
    rho = acc.rho_from_epsilon(epsilon, delta)
    assert not refuted_by_gaussian(rho, epsilon, delta)
    assert not refuted_by_gaussian(rho, epsilon, acc.delta_from_rho(rho, epsilon))
    assert not refuted_by_gaussian(rho, acc.epsilon_from_rho(rho, delta), delta)
    # and never worse than the older bound epsilon = rho + 2 sqrt(rho log(1/delta))
    assert acc.epsilon_from_rho(rho, delta) <= (rho + 2 * math.sqrt(rho * math.log(1 / delta))) * (1 + 1e-12)


def without_the_order(epsilon, delta):
    """The mistake of reading rho-zCDP as (alpha, rho)-RDP: any rho below epsilon would do."""
    return epsilon * 0.9


def without_the_linear_term(epsilon, delta):
    """The mistake of dropping rho from epsilon = rho + 2 sqrt(rho log(1/delta))."""
    return epsilon**2 / (4 * math.log(1 / delta))


def textbook_gaussian(epsilon, delta):
    """The mistake of sigma = sqrt(2 log(1.25/delta))/epsilon beyond epsilon = 1."""
    return epsilon**2 / (4 * math.log(1.25 / delta))


@pytest.mark.parametrize("mistake", [without_the_order, without_the_linear_term, textbook_gaussian])
def test_control_classic_mistakes_are_refuted(mistake):
    assert any(refuted_by_gaussian(mistake(e, d), e, d) for e, d in GRID)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_agrees_with_dp_accounting(epsilon, delta):
    rho = acc.rho_from_epsilon(epsilon, delta)
    best_order = 1 + math.sqrt(math.log(1 / delta) / rho)
    accountant = RdpAccountant(orders=1 + (best_order - 1) * np.geomspace(0.02, 2, 400))
    accountant.compose(dp_accounting.ZCDpEvent(rho))
    theirs = accountant.get_epsilon(delta)
    assert acc.epsilon_from_rho(rho, delta) == pytest.approx(theirs, rel=1e-3, abs=1e-6)
    assert accountant.get_delta(epsilon) == pytest.approx(acc.delta_from_rho(rho, epsilon), rel=5e-3)
    # control: with a tenth less rho they disagree
    assert acc.epsilon_from_rho(rho * 0.9, delta) != pytest.approx(theirs, rel=1e-3, abs=1e-6)


def composed_delta(p, losses, count, epsilon):
    """Exact delta of ``count`` independent two-outcome releases with P = (p, 1-p) and the given losses."""
    hits = np.arange(count + 1)
    total = hits * losses[0] + (count - hits) * losses[1]
    return float(binom.pmf(hits, count, p) @ np.maximum(0, -np.expm1(epsilon - total)))


@pytest.mark.parametrize("count", [10, 50, 200])
def test_composition_covers_exact_bounded_range_releases_but_not_pure_ones(count):
    eta = 0.3
    charged = acc.compose([acc.bounded_range_zcdp(Fraction(3, 10))] * count)
    covered, refuted = [], []
    for epsilon in np.linspace(0.1, 6, 25):
        delta = acc.delta_from_rho(charged, epsilon)
        # Bounded range: losses t and t + eta, with P(low) fixed by both laws summing to 1.
        for t in np.linspace(-0.9 * eta, -0.1 * eta, 9):
            p_high = -math.expm1(-t) / (math.exp(-t - eta) - math.exp(-t))
            covered.append(composed_delta(p_high, (t + eta, t), count, epsilon) <= delta)
        # Control: randomised response is eta-DP, its losses span 2 eta.
        p_true = 1 / (1 + math.exp(-eta))
        refuted.append(composed_delta(p_true, (eta, -eta), count, epsilon) > delta)
    assert all(covered)
    assert any(refuted)


# Shape, extremes, messages ---------------------------------------------------------------------------------

epsilons = st.floats(1e-6, 1e3)
deltas = st.floats(-300, -0.005).map(lambda x: 10.0**x)
rhos = st.floats(-12, 4).map(lambda x: 10.0**x)


@settings(max_examples=150)
@given(epsilons, deltas, st.floats(1.000001, 100))
def test_more_epsilon_or_delta_buys_more_rho(epsilon, delta, factor):
    rho = acc.rho_from_epsilon(epsilon, delta)
    assert rho > 0
    assert acc.rho_from_epsilon(epsilon * factor, delta) >= rho
    assert acc.rho_from_epsilon(epsilon, min(delta * factor, 0.999)) >= rho
    assert acc.epsilon_from_rho(rho * factor, delta) >= acc.epsilon_from_rho(rho, delta)
    assert acc.delta_from_rho(rho * factor, epsilon) >= acc.delta_from_rho(rho, epsilon)


@settings(max_examples=150)
@given(rhos, deltas)
def test_there_and_back_never_gains(rho, delta):
    epsilon = acc.epsilon_from_rho(rho, delta)
    assert acc.delta_from_rho(rho, epsilon) <= delta * (1 + 1e-9)
    if epsilon > 1e-9:
        assert acc.rho_from_epsilon(epsilon * (1 - 1e-9), delta) < rho


def test_extremes_do_not_crash_and_stay_safe():
    assert acc.delta_from_rho(0.0, 1.0) == acc.epsilon_from_rho(Fraction(0), 0.1) == 0.0
    assert acc.delta_from_rho(1e300, 1.0) == 1.0
    assert acc.delta_from_rho(1e-300, 1.0) == math.ulp(0.0)
    assert acc.epsilon_from_rho(1e300, 0.1) >= 1e300
    assert acc.epsilon_from_rho(1.7976931348623157e308, 1e-300) == math.inf
    assert acc.rho_from_epsilon(0.0, 1e-300) == 0.0
    assert 0 < acc.rho_from_epsilon(0.0, 0.1) < 0.1
    assert acc.rho_from_epsilon(1.0, math.ulp(0.0)) > 0


def test_deltas_below_the_normal_floats_are_still_rounded_up():
    for rho in np.linspace(3.36e-4, 3.4e-4, 9):
        best = oracle("delta", float(rho), 1.0)
        assert best <= Decimal(acc.delta_from_rho(float(rho), 1.0)) <= best * 2 + Decimal("5e-324")


def test_an_exact_rho_is_not_rounded_before_conversion():
    just_above = Fraction(0.1) + Fraction(1, 10**30)
    assert acc.epsilon_from_rho(just_above, 0.01) >= acc.epsilon_from_rho(0.1, 0.01)
    assert acc.epsilon_from_rho(Fraction(1, 10), 0.01) == acc.epsilon_from_rho(0.1, 0.01)


@given(st.fractions())
def test_float_up_and_down_enclose(exact):
    low, high = float_down(exact), float_up(exact)
    assert Fraction(low) <= exact <= Fraction(high)
    assert high in (low, math.nextafter(low, math.inf))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: acc.rho_from_epsilon(-1.0, 0.1), "epsilon must be a finite number of at least 0, got -1.0"),
        (
            lambda: acc.rho_from_epsilon(math.nan, 0.1),
            "epsilon must be a finite number of at least 0, got nan",
        ),
        (lambda: acc.rho_from_epsilon(1.0, 0.0), "delta must be above 0 and below 1 .*, got 0.0"),
        (lambda: acc.epsilon_from_rho(1.0, 1.0), "delta must be above 0 and below 1 .*, got 1.0"),
        (lambda: acc.delta_from_rho(math.inf, 1.0), "rho must be a finite number of at least 0, got inf"),
    ],
)
def test_messages_name_parameter_rule_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
