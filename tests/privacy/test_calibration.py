"""From public numbers to noise scales: within budget, no larger than needed, refused when unsafe."""

from __future__ import annotations

import dataclasses
import math
import pickle
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fliphat import FLIPHAT
from fliphat.privacy import accounting as acc
from fliphat.privacy.calibration import ROW_SENSITIVITY, NoiseScales, calibrate
from fliphat.privacy.scales import FitShape

PUBLIC = {
    "rows": 2048,
    "dim": 400,
    "sparsity": 10,
    "iterations": 3,
    "step_size": 1.0,
    "l1_radius": 4.0,
    "clip": 2.0,
    "delta": 0.01,
    "epsilon": 1.0,
}
PAPER = {name: PUBLIC[name] for name in PUBLIC if name != "clip"} | {"step_size": 1e-4}


def scales(**changes):
    return calibrate(**(PUBLIC | changes))


@pytest.mark.parametrize(("iterations", "most"), [(1, 9.9), (5, 22.1), (10, 31.2), (20, 44.1)])
def test_noise_at_equal_split_is_within_the_promised_multiples(iterations, most):
    found = scales(iterations=iterations, split=0.5)
    assert found.pick_scale <= most * found.sensitivity
    assert found.value_scale <= most * found.sensitivity


def spent_by_hand(found):
    """The design's formulas, typed again."""
    shift, count = found.sensitivity, found.iterations * found.sparsity
    pick, value = Fraction(shift, found.pick_scale), Fraction(shift, found.value_scale)
    if found.delta == 0:
        return count * (2 * pick + value)
    pick_cost = pick**2 / 2 if found.mechanism == "exponential" else min(2 * pick**2, 2 * pick)
    value_cost = value**2 / 2 if found.value_noise != "laplace" else min(value**2 / 2, value)
    return count * (pick_cost + value_cost)


@settings(max_examples=200)
@given(
    epsilon=st.floats(0.2, 200),
    delta=st.one_of(st.just(0.0), st.floats(1e-12, 0.5)),
    sparsity=st.integers(1, 60),
    iterations=st.integers(1, 40),
    rounds=st.integers(1, 20),
    mechanism=st.sampled_from(["exponential", "laplace"]),
    laplace=st.booleans(),
    split=st.one_of(st.none(), st.floats(0.05, 0.95)),
)
def test_cost_is_within_budget_and_each_scale_is_the_smallest(
    epsilon, delta, sparsity, iterations, rounds, mechanism, laplace, split
):
    found = scales(
        epsilon=epsilon,
        delta=delta,
        sparsity=sparsity,
        iterations=iterations,
        rounds_per_user=rounds,
        mechanism=mechanism,
        value_noise="laplace" if laplace or delta == 0 else "gaussian",
        split=split,
        accounting="zcdp",
    )
    budget = Fraction(epsilon) if delta == 0 else Fraction(acc.rho_from_epsilon(epsilon, delta))
    spent = found.pure_epsilon if delta == 0 else found.rho
    assert spent == spent_by_hand(found)
    assert spent <= budget
    assume(found.pick_scale > 1 and found.value_scale > 1)
    fields = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    smaller = {"pick_scale": found.pick_scale - 1, "value_scale": found.value_scale - 1}
    with pytest.raises(ValueError, match=r"pick_scale = .* allows"):
        NoiseScales(**(fields | smaller))


def test_the_default_split_makes_both_scales_equal():
    for changes in (
        {},
        {"value_noise": "laplace"},
        {"mechanism": "laplace"},
        {"mechanism": "laplace", "value_noise": "laplace"},
        {"delta": 0.0},
        {"delta": 0.0, "mechanism": "laplace"},
    ):
        found = scales(**changes)
        assert abs(found.pick_scale - found.value_scale) <= 1, changes


def test_a_larger_share_for_picks_moves_noise_to_values():
    few, even, many = (scales(split=split) for split in (0.2, 0.5, 0.8))
    assert few.pick_scale > even.pick_scale > many.pick_scale
    assert few.value_scale < even.value_scale < many.value_scale


def test_exact_values():
    found = scales(delta=0.0, epsilon=3.0, iterations=1, sparsity=1)
    assert (found.pick_scale, found.value_scale) == (ROW_SENSITIVITY, ROW_SENSITIVITY)
    assert found.pure_epsilon == 3
    assert found.value_noise == "laplace"
    found = scales(rho=Fraction(1, 100), epsilon=None, iterations=1, sparsity=1)
    assert (found.pick_scale, found.value_scale) == (10 * ROW_SENSITIVITY, 10 * ROW_SENSITIVITY)
    assert found.rho == Fraction(1, 100)
    assert found.epsilon >= acc.epsilon_from_rho(Fraction(1, 100), 0.01)


def test_report_noisy_max_needs_1_58_times_the_noise():
    zcdp = {"accounting": "zcdp"}
    ratio = scales(mechanism="laplace", value_noise="laplace", **zcdp).pick_scale / scales(**zcdp).pick_scale
    assert ratio == pytest.approx(math.sqrt(2.5), rel=1e-4)


def test_rounds_per_user_scale_the_noise():
    for how in ({"accounting": "zcdp"}, {"fits": ()}):
        assert scales(rounds_per_user=3, **how).sensitivity == 3 * ROW_SENSITIVITY
        assert scales(rounds_per_user=3, **how).pick_scale == pytest.approx(
            3 * scales(**how).pick_scale, rel=1e-5
        )


@settings(max_examples=100)
@given(st.floats(1e-9, 100), st.floats(1e-12, 0.5))
def test_a_budget_in_rho_states_an_epsilon_that_covers_it(rho, delta):
    found = scales(epsilon=None, rho=rho, delta=delta, iterations=1, sparsity=1)
    assert found.rho <= Fraction(rho) <= Fraction(acc.rho_from_epsilon(found.epsilon, delta))
    assert found.epsilon <= acc.epsilon_from_rho(rho, delta) * (1 + 1e-12) + 1e-9


@pytest.mark.parametrize("delta", [1e-9, 0.01, 0.3])
def test_a_budget_in_rho_spent_to_the_last_fraction_is_still_covered(delta):
    # One pick and one value at k times the sensitivity cost exactly 1/k^2: no slack absorbs rounding.
    for k in range(2, 40):
        found = scales(epsilon=None, rho=Fraction(1, k * k), delta=delta, iterations=1, sparsity=1)
        assert found.rho == Fraction(1, k * k) <= Fraction(acc.rho_from_epsilon(found.epsilon, delta))


def test_gradient_noise_is_the_planners_formula():
    found = scales(iterations=2, accounting="zcdp")
    nu = 2 * 2.0 * math.sqrt(2 * 10 / acc.rho_from_epsilon(1.0, 0.01)) / 2048
    assert found.pick_gradient_noise == pytest.approx(nu, rel=1e-5)
    assert found.value_gradient_noise == found.value_scale * 2.0 / (2**15 * 2048)


@pytest.mark.parametrize(
    "weaker",
    [
        {"pick_scale": 900_000},
        {"value_scale": 900_000},
        {"rounds_per_user": 2},
        {"iterations": 4},
        {"sparsity": 11},
        {"epsilon": 0.99},
        {"delta": 0.009},
        {"mechanism": "laplace"},
        {"delta": 0.0},
        {"delta": 0.0, "value_noise": "laplace"},
    ],
)
@pytest.mark.parametrize("accounting", ["exact", "zcdp"])
def test_control_scales_that_do_not_support_the_claim_cannot_be_built(weaker, accounting):
    with pytest.raises(ValueError, match=r"but epsilon|do not support the claim: the noise costs delta"):
        dataclasses.replace(scales(accounting=accounting), **weaker)


def test_scales_cannot_be_changed():
    found = scales()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.pick_scale = 1
    assert pickle.loads(pickle.dumps(found)) == found


def test_the_lattice_limit_is_exact():
    # C/unit = n 2^15 C/(eta c), so with n = 2^20 and eta = c = 1 the sum is 2^35 (C + 1).
    room = {"rows": 2**20, "step_size": 1.0, "clip": 1.0}
    assert scales(**room, l1_radius=2.0**27 - 2).pick_scale > 0
    with pytest.raises(ValueError, match=r"must be below 2\*\*62.*got about 2\*\*62\.0 from l1_radius"):
        scales(**room, l1_radius=2.0**27 - 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number above 0, got 0.0"),
        ({"epsilon": -1.0}, "epsilon must be a finite number above 0, got -1.0"),
        ({"epsilon": None}, "epsilon or rho must be given, and not both"),
        ({"rho": 0.1}, "epsilon or rho must be given, and not both"),
        ({"epsilon": None, "rho": 0.1, "delta": 0.0}, "delta must be above 0 when rho is given"),
        ({"epsilon": None, "rho": -0.1}, "rho must be a finite number above 0, got -0.1"),
        ({"delta": 1.0}, "delta must be at least 0 and below 1, got 1.0"),
        ({"delta": -0.1}, "delta must be at least 0 and below 1, got -0.1"),
        ({"delta": math.nan}, "delta must be at least 0 and below 1, got nan"),
        ({"sparsity": 401}, "sparsity must be an integer from 1 to 400, got 401"),
        ({"sparsity": 0}, "sparsity must be an integer from 1 to 400, got 0"),
        ({"iterations": 0}, "iterations must be an integer from 1 .*, got 0"),
        ({"rows": 0}, "rows must be an integer from 1 .*, got 0"),
        ({"rounds_per_user": 0}, "rounds_per_user must be an integer from 1 .*, got 0"),
        ({"step_size": 0.0}, "step_size must be a finite number above 0, got 0.0"),
        ({"clip": math.inf}, "clip must be a finite number above 0, got inf"),
        ({"l1_radius": math.nan}, "l1_radius must be a finite number above 0, got nan"),
        ({"clip": 1e-200, "step_size": 1e-200}, r"step_size \* clip .* must be a normal float64"),
        ({"clip": 1e200, "step_size": 1e200}, r"step_size \* clip .* must be a normal float64"),
        ({"split": 0.0}, "split must be above 0 and below 1, got 0.0"),
        ({"split": 1.0}, "split must be above 0 and below 1, got 1.0"),
        ({"split": math.nan}, "split must be above 0 and below 1, got nan"),
        ({"mechanism": "flip"}, "mechanism must be one of 'exponential', 'laplace', got 'flip'"),
        (
            {"value_noise": "uniform"},
            "value_noise must be one of 'rounded_gaussian', 'gaussian', 'laplace', got 'uniform'",
        ),
        ({"delta": 0.0, "value_noise": "gaussian"}, "value_noise must be 'laplace' when delta is 0"),
        ({"accounting": "rdp"}, "accounting must be one of 'exact', 'zcdp', got 'rdp'"),
        ({"accounting": "exact", "value_noise": "gaussian"}, "the discrete Gaussian has a zCDP cost only"),
        (
            {"accounting": "exact", "rounds_per_user": 2},
            "fits must say which fits rows of one user may enter",
        ),
        ({"accounting": "exact", "iterations": 1000}, "a fit of 20000 releases takes too long to price"),
        ({"accounting": "exact", "rounds_per_user": 9, "fits": [(10, 3)]}, "at most 8 are priced"),
        ({"rounds_per_user": 2, "fits": [(0, 1)]}, "fits must be an integer from 1 .*, got 0"),
        (
            {"epsilon": 1e-7, "delta": 1e-12},
            "epsilon = 1e-07 .* needs pick_scale = .* the samplers stop at 1099511627775",
        ),
        ({"epsilon": 1e-40, "delta": 1e-300}, "the samplers stop at 1099511627775: raise epsilon"),
    ],
)
def test_bad_numbers_are_refused_by_name_and_rule(changes, message):
    with pytest.raises(ValueError, match=message):
        scales(**changes)


# The exact price --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes", [{}, {"value_noise": "laplace"}, {"mechanism": "laplace"}, {"iterations": 1}]
)
def test_the_exact_price_asks_for_less_noise_and_its_scales_are_nearly_the_smallest(changes):
    exact, zcdp = scales(**changes), scales(accounting="zcdp", **changes)
    assert (exact.accounting, zcdp.accounting) == ("exact", "zcdp")
    assert zcdp.pick_scale > 1.1 * exact.pick_scale
    assert exact.release.price <= 0.01
    smaller = {name: round(0.9999 * getattr(exact, name)) for name in ("pick_scale", "value_scale")}
    with pytest.raises(ValueError, match="do not support the claim"):
        dataclasses.replace(exact, **smaller)


def test_events_are_priced_in_the_order_the_kernel_releases_them():
    found = scales(iterations=2, sparsity=3)
    kinds = [type(event).__name__ for event in found.release.events]
    assert kinds == ["Pick", "Pick", "Pick", "Gaussian"] * 2
    (pick, *_, gaussian) = found.release.events
    assert pick.eta == pytest.approx(2 * ROW_SENSITIVITY / found.pick_scale, rel=1e-12)
    assert gaussian.mu == pytest.approx(math.sqrt(3) * ROW_SENSITIVITY / found.value_scale, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "accounting"),
    [
        ({}, "exact"),
        ({"delta": 0.0}, "pure"),
        ({"value_noise": "gaussian"}, "zcdp"),
        ({"epsilon": None, "rho": 0.1}, "zcdp"),
        ({"rounds_per_user": 3}, "zcdp"),
        ({"rounds_per_user": 3, "fits": ()}, "exact"),
        ({"rounds_per_user": 3, "iterations": 1, "fits": [(10, 1), (5, 1)]}, "exact"),
        ({"rounds_per_user": 300, "fits": ()}, "exact"),
        ({"rounds_per_user": 9, "fits": [(10, 3)]}, "zcdp"),
        ({"rounds_per_user": 2, "fits": [(s, 1) for s in range(1, 6)]}, "zcdp"),
        ({"iterations": 1000}, "zcdp"),
    ],
)
def test_the_accounting_is_named(changes, accounting):
    assert scales(**changes).accounting == accounting


def test_rows_that_may_be_spread_are_priced_over_all_kinds_of_fits():
    fits = [(10, 1), (5, 1)]
    many = scales(rounds_per_user=3, iterations=1, fits=fits)
    few = scales(rounds_per_user=3, iterations=1, sparsity=5, fits=fits)
    assert [shape[:2] for shape in many.beside] == [(5, 1)]
    assert many.beside[0].pick_scale == few.pick_scale and few.beside[0].pick_scale == many.pick_scale
    assert many.release.users == 3 and many.release.price <= 0.01
    # Spreading costs next to nothing more than one fit with all rows.
    together = scales(rounds_per_user=3, iterations=1, fits=())
    assert together.pick_scale <= many.pick_scale <= 1.01 * together.pick_scale
    loud = many.beside[0]._replace(pick_scale=1000)
    with pytest.raises(ValueError, match="do not support the claim"):
        dataclasses.replace(many, beside=(loud,))


class TestKindsOfFits:
    """Rows of a person that may be spread: each fit is priced beside the scales that the others really have."""

    KINDS = ((1, 1), (10, 3))

    def both(self, **given):
        usual = {"rows": 1000, "dim": 100, "step_size": 1.0, "l1_radius": 4.0, "clip": 2.0}
        return [
            calibrate(**usual | given, sparsity=s, iterations=m, rounds_per_user=4, fits=self.KINDS)
            for s, m in self.KINDS
        ]

    @pytest.mark.parametrize(
        ("epsilon", "mechanism", "accounting"),
        [(1.0, "exponential", "exact"), (1.0, "laplace", "exact"), (20.0, "laplace", "zcdp")],
    )
    def test_all_are_priced_in_the_same_way(self, epsilon, mechanism, accounting):
        # For the last of them zCDP asks less of the small fit and more of the large one.
        small, large = self.both(epsilon=epsilon, delta=0.01, mechanism=mechanism)
        assert small.accounting == large.accounting == accounting
        if accounting == "exact":
            for one, other in ((small, large), (large, small)):
                ((_, _, picks, values),) = one.beside
                assert (picks, values) == (other.pick_scale, other.value_scale)

    def test_control_a_fit_at_its_zcdp_scale_is_not_covered_by_the_other_ones_exact_price(self):
        _, large = self.both(epsilon=20.0, delta=0.01, mechanism="laplace", accounting="exact")
        small, _ = self.both(epsilon=20.0, delta=0.01, mechanism="laplace", accounting="zcdp")
        assert small.pick_scale < large.beside[0].pick_scale
        ran = FitShape(1, 1, small.pick_scale, small.value_scale)
        with pytest.raises(ValueError, match="do not support the claim"):
            dataclasses.replace(large, beside=(ran,))

    def test_scales_are_found_where_rounding_moves_the_grid(self):
        large = calibrate(
            rows=1000, dim=100, sparsity=40, iterations=2, step_size=1.0, l1_radius=4.0, clip=2.0, delta=0.01,
            epsilon=60.0, rounds_per_user=2, fits=[(1, 1), (40, 2)],
        )  # fmt: skip
        assert large.accounting == "exact"


def test_a_delta_too_small_for_exact_prices_is_charged_in_zcdp():
    usual = {"rows": 1000, "dim": 100, "sparsity": 3, "iterations": 1, "step_size": 1.0, "l1_radius": 4.0}
    tiny = calibrate(**usual, clip=2.0, epsilon=1.0, delta=1e-40)
    assert tiny.accounting == "zcdp"
    assert calibrate(**usual, clip=2.0, epsilon=1.0, delta=1e-28).accounting == "exact"
    with pytest.raises(ValueError, match="sharp for delta from 1e-28 on"):
        calibrate(**usual, clip=2.0, epsilon=1.0, delta=1e-40, accounting="exact")
    policy = FLIPHAT(dim=20, sparsity=3, epsilon=1.0, delta=1e-40)
    assert policy.guarantee.accounting == "zcdp" and policy.guarantee.proven
