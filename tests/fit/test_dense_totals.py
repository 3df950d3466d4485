"""Discounted totals: the price of a row's whole life, and every way to break it that must be refused."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from fliphat import PrivateLinear
from fliphat.fit.dense import parts
from fliphat.fit.dense.chain import MOST_WEIGHT, Chain, Step, next_step
from fliphat.kernels import _fits as fit_kernels
from fliphat.reference import _fits as fit_twins

FIRST = (0.0, 0.5, 0.65, 0.75)


def chain_of(releases, growth=1.2, variances=None):
    """Return the steps of a total's life."""
    chain, steps = Chain(), []
    for index in range(releases):
        variance = 10**18 if variances is None else variances[index]
        steps.append(next_step(chain, variance, FIRST, 1 / growth))
        chain = steps[-1].after
    return steps


def price(steps, block):
    """Return what a row of a block pays, over c^2: squared shifts of all releases that it is in."""
    total, index = Fraction(0), block
    while index < len(steps) and (index == block or steps[index].before.releases):
        total += Fraction(steps[block].weight ** 2) / steps[index].noise_squared
        index += 1
    return total


@pytest.mark.parametrize("growth", [1.0, 1.05, 1.2, 1.5, 2.0, 16.0])
def test_a_row_pays_for_one_gaussian_in_all_releases_of_its_life(growth):
    steps = chain_of(60, growth)
    for block in range(60):
        paid = price(steps, block) * steps[block].variance
        assert paid <= 1
        assert paid > Fraction(95, 100) or block > 30  # nearly all of it, once it is old


def test_shares_that_shrink_are_sound_and_those_that_grow_begin_anew():
    variances = [10**18] * 5 + [2 * 10**18] * 5 + [10**18] * 5
    steps = chain_of(15, variances=variances)
    assert [step.before.releases for step in steps] == [*range(10), *range(5)]
    for block in range(15):
        assert price(steps, block) * variances[block] <= 1


def test_weights_begin_anew_before_they_are_too_large():
    steps = chain_of(400)
    assert max(step.weight for step in steps) < MOST_WEIGHT
    begun = [index for index, step in enumerate(steps) if step.before.releases == 0]
    assert len(begun) == 4 and begun[1] > 120
    assert all(price(steps, block) * 10**18 <= 1 for block in (0, begun[1] - 1, begun[1], begun[1] + 1, 250))


def test_control_a_discount_above_the_promised_one_is_refused():
    chain = chain_of(3)[-1].after
    with pytest.raises(ValueError, match="weight must be at least 16806, which the last release promised"):
        Step(chain, chain.promised - 1, 10**9, 10**18)
    # A larger weight, a smaller discount, is always allowed; so is an empty total.
    Step(chain, chain.promised + 5, 10**9, 10**18)
    Step(Chain(), 4096, 8192, 1)


def test_control_a_variance_that_falls_is_refused():
    chain = chain_of(3)[-1].after
    with pytest.raises(ValueError, match="variance must not fall while a total lives"):
        Step(chain, chain.promised, 2 * chain.promised, 10**18 - 1)


def test_control_breaking_either_rule_would_cost_more_than_was_charged():
    """What is refused is not refused for nothing."""
    half = Step(Chain(), 4096, 8192, 10**18)
    late = [Step(Chain(), round(4096 / 0.85**k), round(4096 / 0.85 ** (k + 1)), 10**18) for k in range(1, 40)]
    paid = Fraction(4096**2) / half.noise_squared + sum(4096**2 / one.noise_squared for one in late)
    assert paid * 10**18 > Fraction(14, 10)
    falling = [Step(Chain(), 4096 * 2**k, 8192 * 2**k, 10**18 // (2 if k > 0 else 1)) for k in range(20)]
    assert sum(4096**2 / one.noise_squared for one in falling) * 10**18 > Fraction(12, 10)


@pytest.mark.parametrize("weights", [(0, 5), (5, 5), (6, 5), (MOST_WEIGHT, 0)])
def test_weights_increase_and_are_bounded(weights):
    with pytest.raises(ValueError, match=r"weights must be below 2\*\*48 and increase"):
        Step(Chain(), *weights, 1)


# The secret


def part(added, weight, before, name=0, kept=True, sigma=1):
    return fit_kernels.TotalPart(
        name, np.array(added), weight, before, np.full(len(added), sigma, np.uint64), 0, kept
    )


def test_controls_rows_twice_old_totals_and_parts_that_are_filled_in_later_are_refused():
    _, first = fit_kernels.release_totals(None, [part([5], 4, (0, 0))])
    _, second = fit_kernels.release_totals(first, [part([5], 8, (1, 4))])
    for secret, asked in (
        (second, part([5], 8, (1, 4))),  # these rows are in it
        (first, part([5], 16, (2, 8))),  # an old total with newer rows
        (second, part([5], 16, (2, 8), name=3)),  # a part that was not there before
        (None, part([5], 8, (1, 4))),
    ):
        with pytest.raises(ValueError, match="secret must hold the total of the last release"):
            fit_kernels.release_totals(secret, [asked])
    with pytest.raises(ValueError, match="secret must be what a release returned"):
        fit_kernels.release_totals(b"something else", [part([5], 8, (1, 4))])
    with pytest.raises(ValueError, match="weight must be above the last one"):
        fit_kernels.release_totals(second, [part([5], 8, (2, 8))])


def test_totals_are_exact_beyond_64_bits():
    exact, secret, before, weight = 0, None, (0, 0), 4096
    for index in range(90):
        added = (-1) ** index * (2**56 + index)
        exact += weight * added
        drawn, secret = fit_kernels.release_totals(
            secret, [part([added], weight, before, sigma=1)._replace(shift=50)]
        )
        assert abs(drawn[0] - exact / 2**50) < 12
        before, weight = (index + 1, weight), -(-weight * 6 // 5)
    assert abs(exact) > 2**80


def test_the_secret_is_that_of_the_twin_bit_for_bit():
    rng, own, twin, before, weight = np.random.default_rng(1), None, None, (0, 0), 4096
    for index in range(12):
        added = rng.integers(-(2**40), 2**40, 3 + index // 4).tolist()
        # A part that gets longer, and one that begins anew every time.
        asked = [part(added, weight, before), part(added[:2], weight, (0, 0), name=7)._replace(shift=9)]
        _, own = fit_kernels.release_totals(own, asked)
        _, twin = fit_twins.release_totals(twin, asked, rng)
        assert own == twin
        before, weight = (index + 1, weight), weight * 5 // 4


def test_noise_has_the_size_that_was_asked_for_around_fractions():
    for shift in (0, 3, 20):
        sigma, added = 50, np.full(40_000, 12_345)
        asked = fit_kernels.TotalPart(0, added, 7, (0, 0), np.full(40_000, sigma, np.uint64), shift, False)
        drawn, secret = fit_kernels.release_totals(None, [asked], seeded=(5, shift))
        errors = drawn - 7 * 12_345 / 2**shift
        assert abs(errors.mean()) < 5 * sigma / 200
        assert errors.std() == pytest.approx(sigma, rel=0.02)
        assert len(secret) == 8  # nothing is kept


# The fit


def fit_and_rows(**given):
    fit = PrivateLinear(2, 3, epsilon=5.0, delta=1e-3, context_norm=1.0, **given)._fit
    rng = np.random.default_rng(0)

    def episode(known, secret):
        plan = fit.plan(known.episodes, known)
        rows = np.column_stack([rng.normal(size=(plan.rows, 3)) / 3, rng.integers(0, 2, plan.rows)])
        return plan, fit.run_totals(
            plan, rows, rng.random(plan.rows), np.ones(plan.rows, bool), known, secret
        )

    return fit, episode


def test_totals_go_on_from_the_secret_of_the_episode_before_and_from_no_other():
    fit, episode = fit_and_rows()
    known, secret, secrets = fit.begin(), None, []
    for _ in range(7):
        _, (known, secret) = episode(known, secret)
        secrets.append(secret)
    assert known.chains["arms"].releases >= 4
    _, (went_on, _) = episode(known, secret)
    assert went_on.chains["arms"].releases == known.chains["arms"].releases + 1
    # Nothing, or another episode's: they begin anew, with everything that was released still known.
    for other in (None, secrets[-2], b"\0" * 8 + secret[8:]):
        _, (anew, _) = episode(known, other)
        assert anew.chains["arms"].releases == 1
        assert anew.rows == went_on.rows
    # What names the right episode and is damaged is refused: nothing is released.
    with pytest.raises(ValueError, match="secret must be what a release returned"):
        episode(known, secret[:-1])


def test_without_totals_nothing_is_kept_and_every_release_is_of_its_own_rows():
    fit, episode = fit_and_rows(totals=False)
    known, secret = fit.begin(), None
    for _ in range(7):
        plan, (known, secret) = episode(known, secret)
        assert secret is None
        assert not known.chains
        assert all(not step.kept and step.before == Chain() for step in plan.steps.values())
    assert known.settled


def test_arms_that_come_later_have_totals_that_begin_with_zeros():
    fit, episode = fit_and_rows()
    known, secret = fit.begin(), None
    for _ in range(6):
        _, (known, secret) = episode(known, secret)
    fit.use_arms(fit.table.with_arm("new"))
    _, (later, secret) = episode(known, secret)
    assert later.chains["arms"].releases == known.chains["arms"].releases + 1
    assert later.groups == 3
    assert abs(later.scores[-1].counts[2]) < 6 * later.scores[-1].count_noise
    _, (later, secret) = episode(later, secret)
    assert later.groups == 3


def test_the_secret_is_never_part_of_what_is_known():
    fit, episode = fit_and_rows()
    known, secret = fit.begin(), None
    for _ in range(6):
        _, (known, secret) = episode(known, secret)
    fields = {field.name for field in dataclasses.fields(known)}
    assert "secret" not in fields
    assert secret.hex()[:64] not in str(known.to_record())


def test_sensitivities_do_not_depend_on_how_many_arms_or_columns_there_are():
    assert parts.sensitivity_squared("arms", 1) == Fraction(4 * 34, 25) * parts.RADIUS**2 * parts.STEPS**2
