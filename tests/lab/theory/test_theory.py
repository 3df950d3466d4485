"""The paper's formulas: against numbers worked out by hand, against each other, and how they scale."""

import itertools
import math

import numpy as np
import pytest

from fliphat.environments.hard import hard_coefficient
from fliphat.lab import theory

PROBLEM = {"horizon": 20_000, "dim": 400, "sparsity": 5}
FLIPHAT = {"horizon": 20_000, "dim": 400, "sparsity": 10, "true_sparsity": 5, "delta": 0.01}
FIT = {"upper_eigenvalue": 1.2, "lower_eigenvalue": 0.8, "true_sparsity": 5, "noise_scale": 0.1}


def test_lower_bounds_by_hand():
    # ln(400/5) = 4.382027; 5 * 4.382027^1.5 = 45.8652; sqrt(5 * 20000 * 4.382027) = 661.969.
    pure = theory.regret_lower_bound(epsilon=0.5, **PROBLEM)
    assert pure.private == pytest.approx(91.7304, rel=1e-5)
    assert pure.non_private == pytest.approx(661.969, rel=1e-5)
    assert pure.total == pure.non_private
    # 4.382027 * sqrt(5 * 4.605170) / 0.5 = 42.0545.
    approximate = theory.regret_lower_bound(epsilon=0.5, delta=0.01, **PROBLEM)
    assert approximate.private == pytest.approx(42.0545, rel=1e-5)
    assert approximate.non_private == pure.non_private


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_lower_bounds_scale(delta):
    base = theory.regret_lower_bound(epsilon=0.5, delta=delta, **PROBLEM)
    tighter = theory.regret_lower_bound(epsilon=0.25, delta=delta, **PROBLEM)
    longer = theory.regret_lower_bound(epsilon=0.5, delta=delta, **(PROBLEM | {"horizon": 80_000}))
    wider = theory.regret_lower_bound(epsilon=0.5, delta=delta, **(PROBLEM | {"dim": 32_000}))
    assert tighter.private == pytest.approx(2 * base.private) and tighter.non_private == base.non_private
    assert longer.non_private == pytest.approx(2 * base.non_private) and longer.private == base.private
    # ln(d/s) doubles: its power is 3/2, 1 and 1/2.
    assert wider.private / base.private == pytest.approx(2**1.5 if delta == 0 else 2)
    assert wider.non_private / base.non_private == pytest.approx(math.sqrt(2))
    scaled = theory.regret_lower_bound(epsilon=0.5, delta=delta, noise_scale=3.0, constant=0.5, **PROBLEM)
    assert scaled.total == pytest.approx(1.5 * base.total)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_lower_bounds_threshold_is_where_its_terms_meet(delta):
    threshold = theory.lower_bound_threshold(delta=delta, **PROBLEM)
    at = theory.regret_lower_bound(epsilon=threshold, delta=delta, **PROBLEM)
    assert at.private == pytest.approx(at.non_private)
    below = theory.regret_lower_bound(epsilon=0.9 * threshold, delta=delta, **PROBLEM)
    assert below.total == below.private > below.non_private


def test_the_gap_in_the_proof_that_the_docstring_names():
    # "Choice of rho": a root of t^4/4 + sqrt(ln 1/delta) t^2 - 5t - eps at most 20^(1/3) sqrt(eps) / ln(1/delta)^(1/4).
    def positive_root(epsilon, delta):
        roots = np.roots([0.25, 0, math.sqrt(-math.log(delta)), -5, -epsilon])
        return float(max(root.real for root in roots if abs(root.imag) < 1e-9))

    def claimed(epsilon, delta):
        return 20 ** (1 / 3) * math.sqrt(epsilon) / (-math.log(delta)) ** 0.25

    assert positive_root(0.01, 1e-5) > 4 * claimed(0.01, 1e-5)
    assert positive_root(1e-6, 1e-5) > 1
    assert positive_root(5.0, 1e-5) <= claimed(5.0, 1e-5)  # where epsilon^2 > ln(1/delta), it holds


def test_hard_coefficients_by_hand():
    # sqrt(4.382027 / 160000) = 0.00523332
    assert hard_coefficient(**PROBLEM) == pytest.approx(0.00523332, rel=1e-5)
    # sqrt(5 * 5.991465) * 4.382027 / (20 * 0.5 * 20000) = 0.000119922
    assert hard_coefficient(epsilon=0.5, **PROBLEM) == pytest.approx(0.000119922, rel=1e-5)
    # rho = 20^(4/3) * 0.25 / (4 * 4.605170) = 0.736785; sqrt(4.382027 * 5.991465 / (16 rho)) / 20000 = 7.46180e-5
    assert hard_coefficient(epsilon=0.5, delta=0.01, **PROBLEM) == pytest.approx(7.46180e-5, rel=1e-5)
    assert hard_coefficient(noise_scale=2.0, **PROBLEM) == pytest.approx(2 * 0.00523332, rel=1e-5)


def test_upper_bound_without_margin_by_hand():
    bound = theory.regret_upper_bound(epsilon=1.0, context_bound=2.0, l1_radius=3.0, **FLIPHAT)
    # 6 * 15 * ln 400 = 539.232; (sqrt(20000) - 1) * 15 * sqrt(ln 400) = 5155.71
    assert bound.start == pytest.approx(539.232, rel=1e-5)
    assert bound.non_private == pytest.approx(5155.71, rel=1e-5)
    # 1 + 4 + ... + 15^2 = 1240; 1240 * sqrt(3375 * 35.89765 * 4.605170) = 926221
    assert bound.private == pytest.approx(926221, rel=1e-5)
    assert bound.total == bound.start + bound.private


def test_upper_bound_with_margins_by_hand():
    one = theory.regret_upper_bound(epsilon=2.0, alpha=1.0, width=0.5, **FLIPHAT)
    # ln(20000)/2 * 225 * ln(400) / 0.5 = 13350.6
    assert one.non_private == pytest.approx(13350.6, rel=1e-5)
    series = sum(n**4 / 2**n for n in range(16))
    assert one.private == pytest.approx(series / 0.5 * 3375 * math.log(400) ** 2 * math.log(100) / 4)
    sure = theory.regret_upper_bound(epsilon=2.0, alpha=math.inf, **FLIPHAT)
    assert sure.non_private == pytest.approx(225 * math.log(400))
    assert sure.private == pytest.approx(3375 * math.log(400) ** 2 * math.log(100) / 4)


def test_upper_bound_is_continuous_at_one_and_finite_beyond():
    around = [
        theory.regret_upper_bound(epsilon=1.0, alpha=alpha, **FLIPHAT).non_private
        for alpha in (1 - 1e-7, 1.0, 1 + 1e-7)
    ]
    assert around == pytest.approx([around[1]] * 3, rel=1e-4)
    three = theory.regret_upper_bound(epsilon=1.0, alpha=3.0, **FLIPHAT).non_private
    assert three == pytest.approx((1 - 1 / 20_000) / 2 * (225 * math.log(400)) ** 2)
    assert theory.regret_upper_bound(epsilon=1.0, alpha=300.0, **FLIPHAT).private == math.inf


@pytest.mark.parametrize(("alpha", "power"), [(0.0, 1), (1.0, 2), (2.5, 3.5), (math.inf, 2)])
def test_the_cost_of_privacy_scales_with_epsilon(alpha, power):
    one, half = (theory.regret_upper_bound(epsilon=e, alpha=alpha, **FLIPHAT) for e in (1.0, 0.5))
    assert half.private / one.private == pytest.approx(2**power)
    assert half.non_private == one.non_private and half.start == one.start


def test_growth_with_the_horizon():
    def at(horizon, alpha):
        return theory.regret_upper_bound(epsilon=1.0, alpha=alpha, **(FLIPHAT | {"horizon": horizon}))

    assert at(4 * 10**8, 0.0).non_private / at(10**8, 0.0).non_private == pytest.approx(2, rel=1e-3)
    assert at(10**8, 1.0).non_private / at(10**4, 1.0).non_private == pytest.approx(2)
    # Without a margin the cost of privacy grows as log^3 T: 2^54 rounds have 3 times the episodes of 2^18.
    assert at(2**54, 0.0).private / at(2**18, 0.0).private == pytest.approx(27, rel=0.2)
    assert at(2**54, 2.0).private / at(2**18, 2.0).private == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 4.0, math.inf])
def test_the_privacy_threshold_is_where_the_terms_meet(alpha):
    threshold = theory.privacy_threshold(alpha=alpha, **FLIPHAT)
    at = theory.regret_upper_bound(epsilon=threshold, alpha=alpha, width=0.7, **FLIPHAT)
    assert at.private == pytest.approx(at.non_private)
    below = theory.regret_upper_bound(epsilon=0.9 * threshold, alpha=alpha, **FLIPHAT)
    assert below.private > below.non_private


def test_privacy_thresholds_of_the_papers_remarks():
    order = math.sqrt(15 * math.log(400) * math.log(100))
    assert theory.privacy_threshold(alpha=math.inf, **FLIPHAT) == pytest.approx(order)
    horizon = 2**60
    sum_of_squares = 61 * 62 * 123 / 6
    found = theory.privacy_threshold(**(FLIPHAT | {"horizon": horizon}))
    assert found == pytest.approx(sum_of_squares / 2**30 * order)
    # Remark 3, in T: easy instances feel privacy at any horizon, hard ones less and less.
    assert theory.privacy_threshold(alpha=math.inf, **(FLIPHAT | {"horizon": horizon})) > 1000 * found


def test_tuning_by_hand():
    fit = theory.tuning(rows=1024, context_bound=3.0, l1_radius=4.0, **FIT)
    # 12 + 0.1 sqrt(2 ln 1024) = 12.372330; 28 * 1.5 * ln(16384) = 407.57
    assert fit.reward_clip == pytest.approx(12.372330, rel=1e-6)
    assert (fit.iterations, fit.l1_radius, fit.sparsity) == (408, 4.0, 12)
    assert fit.step_size == pytest.approx(1 / 2.4) and fit.condition == pytest.approx(1.5)
    assert theory.tuning(rows=1, context_bound=3.0, l1_radius=0.5, **FIT).iterations == 1
    assert theory.tuning(rows=1024, context_bound=3.0, l1_radius=4.0, constant=2.0, **FIT).sparsity == 23


def test_estimation_error_by_hand_and_scaling():
    problem = {"dim": 400, "sparsity": 10, "delta": 0.01} | FIT
    error = theory.estimation_error(rows=4096, epsilon=1.0, **problem)
    # 0.0225 * 15 * 5.991465 / (0.64 * 4096) = 0.000771377
    assert error.non_private == pytest.approx(0.000771377, rel=1e-5)
    logs = math.log(4096)
    expected = 0.0225 * (10 * math.log(400)) ** 2 * math.log(logs / 0.01) * logs**3 / 4096**2
    assert error.private == pytest.approx(expected) and error.total == pytest.approx(expected + 0.000771377)
    tighter = theory.estimation_error(rows=4096, epsilon=0.5, **problem)
    assert tighter.private == pytest.approx(4 * error.private)


def test_arm_eigenvalues():
    assert theory.arm_eigenvalues(8, constant=2.0) == pytest.approx((2 * math.log(8), 0.25))


@pytest.mark.parametrize("phi", [0.1, 0.7, -0.4])
@pytest.mark.parametrize("sparsity", [1, 2, 3, 5])
def test_chain_eigenvalues_are_exact(phi, sparsity):
    place = np.arange(9)
    enumerated = theory.sparse_eigenvalues(phi ** np.abs(place[:, None] - place), sparsity)
    found = theory.ar1_sparse_eigenvalues(phi, sparsity)
    assert found == pytest.approx(enumerated, rel=1e-10)
    bound = (1 - abs(phi)) / (1 + abs(phi))
    assert bound < found[0] <= 1 <= found[1] < 1 / bound


@pytest.mark.parametrize("sparsity", [1, 2, 4])
def test_equal_correlations_are_exact(sparsity):
    enumerated = theory.sparse_eigenvalues(np.full((7, 7), 0.3) + 0.7 * np.eye(7), sparsity)
    assert theory.equicorrelated_sparse_eigenvalues(0.3, sparsity) == pytest.approx(enumerated, rel=1e-10)


def test_sparse_eigenvalues_bound_every_sparse_vector_and_are_reached():
    rng = np.random.default_rng(1)
    root = rng.standard_normal((8, 8))
    matrix = root @ root.T
    low, high = theory.sparse_eigenvalues(matrix, 3)
    quotients = []
    for _ in range(2000):
        u = np.zeros(8)
        u[rng.permutation(8)[:3]] = rng.standard_normal(3)
        quotients.append(u @ matrix @ u / (u @ u))
    assert low <= min(quotients) < 3 * low + 0.5 and high * 0.8 < max(quotients) <= high
    whole = np.linalg.eigvalsh(matrix)
    assert theory.sparse_eigenvalues(matrix, 8) == pytest.approx((whole[0], whole[-1]))
    nested = [theory.sparse_eigenvalues(matrix, s) for s in range(1, 9)]
    assert all(a[0] >= b[0] and a[1] <= b[1] for a, b in itertools.pairwise(nested))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: theory.regret_lower_bound(epsilon=0.0, **PROBLEM),
            "epsilon must be a finite number above 0, got 0.0",
        ),
        (
            lambda: theory.regret_lower_bound(epsilon=3.0, delta=0.01, **PROBLEM),
            r"epsilon must be below sqrt\(ln\(1/delta\)\) = 2.146 for the theorem to apply, got 3.0",
        ),
        (
            lambda: theory.regret_lower_bound(epsilon=1.0, delta=1.0, **PROBLEM),
            "delta must be at least 0 and below 1, got 1.0",
        ),
        (
            lambda: theory.regret_lower_bound(horizon=10, dim=5, sparsity=5, epsilon=1.0),
            "sparsity must be an integer from 1 to 4, got 5",
        ),
        (
            lambda: theory.lower_bound_threshold(horizon=0, dim=5, sparsity=2),
            "horizon must be an integer from 1",
        ),
        (lambda: hard_coefficient(horizon=9, dim=2, sparsity=1), "dim must be an integer from 3"),
        (
            lambda: hard_coefficient(delta=0.1, **PROBLEM),
            "delta must be 0 where epsilon is None, got 0.1",
        ),
        (
            lambda: theory.regret_upper_bound(epsilon=1.0, **(FLIPHAT | {"delta": 0.4})),
            "delta must be above 0 and below 1/e = 0.3679 for the theorem to apply, got 0.4",
        ),
        (
            lambda: theory.regret_upper_bound(epsilon=1.0, alpha=-0.5, **FLIPHAT),
            "alpha must be a number of at least 0, or math.inf, got -0.5",
        ),
        (lambda: theory.privacy_threshold(**(FLIPHAT | {"horizon": 1})), "horizon must be an integer from 2"),
        (
            lambda: theory.tuning(rows=0, context_bound=1.0, l1_radius=1.0, **FIT),
            "rows must be an integer from 1",
        ),
        (
            lambda: theory.tuning(
                rows=9, context_bound=1.0, l1_radius=1.0, **(FIT | {"lower_eigenvalue": 2.0})
            ),
            "lower_eigenvalue must be at most upper_eigenvalue = 1.2, got 2.0",
        ),
        (
            lambda: theory.estimation_error(rows=9, dim=9, sparsity=2, epsilon=1.0, delta=0.0, **FIT),
            "delta must be above 0 and below 1, got 0.0",
        ),
        (lambda: theory.arm_eigenvalues(1), "arms must be an integer from 2"),
        (
            lambda: theory.sparse_eigenvalues([[1.0, 2.0]], 1),
            r"covariance must be a square matrix, got shape \(1, 2\)",
        ),
        (
            lambda: theory.sparse_eigenvalues([[1.0, 2.0], [0.0, 1.0]], 1),
            "covariance must be finite and symmetric",
        ),
        (lambda: theory.sparse_eigenvalues(np.eye(3), 4), "sparsity must be an integer from 1 to 3, got 4"),
        (
            lambda: theory.sparse_eigenvalues(np.eye(30), 15, limit=1000),
            "sparsity must leave at most 1000 supports to go through, got 155117520",
        ),
        (lambda: theory.ar1_sparse_eigenvalues(1.0, 2), "phi must be above -1 and below 1, got 1.0"),
        (
            lambda: theory.equicorrelated_sparse_eigenvalues(-0.1, 2),
            "rho must be at least 0 and below 1, got -0.1",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("delta", [0.1, 0.01, 1e-6])
def test_only_the_pure_half_of_the_lower_bound_is_proven_as_printed(delta):
    assert theory.gap_in_proof(epsilon=5.0) is None
    edge = math.sqrt(math.log(1 / delta))
    for epsilon in (0.01, 0.5 * edge, 0.999 * edge):
        assert epsilon**2 < math.log(1 / delta)  # what the theorem assumes, and its proof excludes
        assert "the theorem assumes it is below" in theory.gap_in_proof(epsilon=epsilon, delta=delta)
    with pytest.raises(ValueError, match="for the theorem to apply"):
        theory.gap_in_proof(epsilon=edge, delta=delta)
