"""The dense fit's statistics: how far one row moves them, what they cost, and what they say without noise."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from fliphat import PrivateLinear
from fliphat.fit import dense_model, dense_sums, draw
from fliphat.fit.dense_sums import RADIUS, SENSITIVITY_SQUARED, RowMap
from fliphat.fit.dense_tuning import DenseTuning
from fliphat.privacy import composition
from fliphat.privacy.priced import Part, VectorNoise

ALL = ("gradient", "columns", "moments", "each")
MAP = RowMap(np.zeros(2), np.ones(2), 1.0)


def sums(rows, slots, rewards, present=None, row_map=MAP, groups=3):
    present = np.ones(len(rows), bool) if present is None else np.asarray(present)
    return dense_sums.integer_sums(
        np.asarray(rows, float),
        np.asarray(slots),
        np.asarray(rewards, float),
        present,
        row_map=row_map,
        groups=groups,
        parts=ALL,
    )


def as_vector(found, name):
    return found[name].ravel()


def moved_by(one, other, name):
    """Squared distance, in the weights that a part's noise has; int64 holds it, for integers below 2**15."""
    apart = ((one - other) ** 2).sum(axis=-1)
    # The whole of a symmetric matrix counts what is off the diagonal twice, as its noise does: half of it.
    return apart if name in ("gradient", "columns") else apart / 2


def test_neighbours_found_by_search_never_move_a_part_further_and_some_reach_it():
    rng = np.random.default_rng(5)
    base = rng.normal(size=(4, 2)), np.array([0, 1, 2, 0]), rng.random(4) - 0.5
    directions = np.array([(1, 0), (0, 1), (-1, 0), (1, 1), (0.6, -0.8)])
    grid = itertools.product(directions, (0.0, 0.3, 1e3, 1e200, 1e308), (0, 1, 2), (-0.5, 0.5, 7.0, np.nan))
    candidates = [(direction * size, arm, y) for direction, size, arm, y in grid]
    for _ in range(60):
        candidates.append((rng.normal(size=2) * 10 ** rng.uniform(-2, 4), int(rng.integers(3)), rng.normal()))
    found = []
    for here in (True, False):
        for x, arm, y in candidates:
            rows, slots, rewards = (part.copy() for part in base)
            rows[1], slots[1], rewards[1] = x, arm, y
            found.append(sums(rows, slots, rewards, [True, here, True, True]))
    for name in ALL:
        vectors = np.array([as_vector(one, name) for one in found])
        largest = max(float(moved_by(vectors, one, name).max()) for one in vectors)
        assert 0.99 * SENSITIVITY_SQUARED[name] < largest <= SENSITIVITY_SQUARED[name], name


def test_control_half_the_sensitivity_of_moments_is_refuted_by_two_rows():
    one = sums([[1e3, 0.0]], [0], [0.5])
    other = sums([[0.0, 1e3]], [0], [0.5])
    # B^2 for sqrt(2) B^2: an error that a row that is only added, not replaced, would not show.
    moved = moved_by(as_vector(one, "moments"), as_vector(other, "moments"), "moments")
    assert moved > 0.99 * RADIUS**4 > RADIUS**4 // 2


def test_control_columns_priced_for_a_row_that_is_only_added_are_refuted_by_two_rows():
    # q+ and q- of opposite rows are at right angles: they move the sums by sqrt(2) R, not by R.
    one, other = sums([[1e3, 1e3]], [0], [0.5]), sums([[-1e3, -1e3]], [0], [0.5])
    moved = moved_by(as_vector(one, "columns"), as_vector(other, "columns"), "columns")
    assert moved > 0.99 * SENSITIVITY_SQUARED["columns"] > RADIUS**2


def test_halves_of_columns_are_one_vector_in_the_ball_and_not_two():
    rng = np.random.default_rng(8)
    for x in [*rng.normal(size=(50, 2)) * 10 ** rng.uniform(-3, 5, (50, 1)), np.array([1e308, -1e308])]:
        found = sums([x], [0], [0.5])["columns"].astype(object)
        assert (found >= 0).all()
        assert (found**2).sum() <= RADIUS**2
        assert not (found[0] * found[1]).any()


def test_a_row_without_a_reward_leaves_nothing_in_any_part():
    rows, slots, rewards = np.ones((2, 2)), np.array([0, 1]), np.array([0.5, 0.5])
    with_it = sums(rows, slots, rewards, [True, False])
    rows[1], slots[1], rewards[1] = [-7.0, 3.0], 2, -0.5
    assert all(np.array_equal(with_it[name], other) for name, other in
               sums(rows, slots, rewards, [True, False]).items())  # fmt: skip
    assert with_it["gradient"][1:].any() == with_it["each"][1:].any() == False  # noqa: E712


def test_scales_are_the_formulas_as_fractions_and_the_smallest_integers():
    cap = Fraction(9, 100)
    parts = dense_sums.noise_for({"gradient": 0.75, "moments": 0.25}, cap)
    for name, share in (("gradient", Fraction(3, 4)), ("moments", Fraction(1, 4))):
        exact = Fraction(SENSITIVITY_SQUARED[name]) / (share * cap)
        assert parts[name].sigma ** 2 >= exact > (parts[name].sigma - 1) ** 2
        assert parts[name].sensitivity_squared == SENSITIVITY_SQUARED[name]
    assert {**SENSITIVITY_SQUARED} == {
        "gradient": (2 * RADIUS) ** 2,
        "columns": 2 * RADIUS**2,
        "moments": RADIUS**4,
        "each": RADIUS**4,
    }
    assert VectorNoise(*parts.values()).mu_squared <= cap
    with pytest.raises(ValueError, match="shares must add up to at most 1"):
        dense_sums.noise_for({"gradient": 0.8, "moments": 0.3}, cap)


@pytest.mark.parametrize("users", [1, 3])
def test_every_plan_is_within_one_gaussian_that_the_claim_was_priced_for(users):
    policy = PrivateLinear(
        3, 4, epsilon=2.0, delta=1e-3, context_norm=1.0, rounds_per_user=users, first_episode=40
    )
    fit = policy._fit
    known = fit.begin()
    for episode in range(4):
        plan = fit.plan(episode, known)
        mu = math.sqrt(VectorNoise(*plan.parts.values()).mu_squared)
        assert mu <= fit.mu
        # All rows of a person in one episode, or spread over several: each is a Gaussian of the same menu.
        assert composition.delta(2.0, [composition.Gaussian(users * mu)], users=users) <= 1e-3
        known = fit.run(
            plan, np.zeros((plan.rows, 5), np.float32), np.zeros(plan.rows), np.zeros(plan.rows, bool), known
        )
    assert policy.guarantee.proven
    assert policy.guarantee.release is fit.claim


def test_control_a_plan_with_less_noise_or_a_smaller_sensitivity_cannot_be_made():
    fit = PrivateLinear(2, 3, epsilon=1.0, delta=1e-3, context_norm=1.0)._fit
    plan = fit.plan(0, fit.begin())
    from dataclasses import replace

    part = plan.parts["gradient"]
    less = {**plan.parts, "gradient": Part(part.sensitivity_squared, part.sigma * 2 // 3)}
    with pytest.raises(ValueError, match=r"the noise costs mu\^2 = .*, but the claim allows"):
        replace(plan, parts=less)
    smaller = {**plan.parts, "gradient": Part(part.sensitivity_squared // 4, part.sigma)}
    with pytest.raises(ValueError, match="gradient must be charged a squared sensitivity of"):
        replace(plan, parts=smaller)


def test_the_diagonal_has_sqrt_two_times_the_noise_of_what_is_above_it():
    class Recorded(draw.Drawn):
        def __init__(self):
            super().__init__(None)

        def vector(self, values, sigmas):
            self.sigmas = sigmas
            return values.astype(float)

    noise, parts = Recorded(), {name: Part(SENSITIVITY_SQUARED[name], 1000 + i) for i, name in enumerate(ALL)}
    found = sums([[0.3, 0.4]], [1], [0.25])
    dense_sums.release(found, parts, noise, MAP)
    at = 3 * 4 + 2 * 2
    assert (noise.sigmas[: 3 * 4] == 1000).all()
    assert (noise.sigmas[3 * 4 : at] == 1001).all()
    upper = np.triu_indices(3)
    for start, sigma in ((at, 1002), *((at + 6 * (1 + k), 1003) for k in range(3))):
        own = noise.sigmas[start : start + 6]
        assert (own[upper[0] != upper[1]] == sigma).all()
        assert (own[upper[0] == upper[1]].astype(object) ** 2 >= 2 * sigma**2).all()


def test_without_noise_released_sums_are_those_of_the_rows():
    class Silent(draw.Drawn):
        def vector(self, values, sigmas):
            return values.astype(float)

    rng = np.random.default_rng(0)
    rows, slots, rewards = rng.normal(size=(50, 2)) / 4, rng.integers(0, 3, 50), rng.random(50) - 0.5
    row_map = RowMap(np.array([0.1, -0.2]), np.array([1.0, 2.0]), 4.0)
    parts = {name: Part(SENSITIVITY_SQUARED[name], 1) for name in ALL}
    found = dense_sums.release(sums(rows, slots, rewards, row_map=row_map), parts, Silent(None), row_map)
    u = np.column_stack([(rows - row_map.center) * row_map.inverse, np.ones(50)])
    for k in range(3):
        own = slots == k
        assert np.allclose(found.gradient[k], u[own].T @ rewards[own], atol=0.01)
        assert found.counts[k] == own.sum()
        assert np.allclose(found.each[k], u[own].T @ u[own], atol=0.02)
    assert np.allclose(found.moments, u.T @ u, atol=0.05)
    assert np.allclose(found.columns[0], np.maximum(u[:, :-1], 0).sum(axis=0), atol=0.02)
    assert np.allclose(found.columns[1], np.maximum(-u[:, :-1], 0).sum(axis=0), atol=0.02)


def test_integers_of_a_row_do_not_depend_on_the_block_it_is_in(monkeypatch):
    rng = np.random.default_rng(1)
    rows, slots, rewards = rng.normal(size=(40, 2)), rng.integers(0, 3, 40), rng.random(40) - 0.5
    whole = sums(rows, slots, rewards)
    monkeypatch.setattr(dense_sums, "_BLOCK", 7)
    order = rng.permutation(40)
    parts = sums(rows[order], slots[order], rewards[order])
    assert all(np.array_equal(whole[name], parts[name]) for name in ALL)


def test_with_little_noise_coefficients_are_found():
    rng = np.random.default_rng(3)
    truth = np.array([[0.3, 0.0, -0.1], [-0.2, 0.2, 0.1]])
    policy = PrivateLinear(2, 2, epsilon=1e4, delta=1e-3, context_norm=2.0, seed=1, first_episode=4000)
    for _ in range(3):
        contexts = rng.normal(size=(policy.remaining, 2)) * 0.5
        decisions = policy.select_batch(contexts)
        means = (np.column_stack([contexts, np.ones(len(contexts))]) @ truth.T) + 0.5
        chosen = means[np.arange(len(contexts)), decisions.arms]
        policy.update_batch(decisions, chosen)
    policy.select(np.zeros(2))
    for arm, found in policy.coefficients.items():
        # Rows that are cut make coefficients larger than they are; their direction stays.
        off = found - [0, 0, 0.5]
        assert off @ truth[arm] > 0.97 * np.linalg.norm(off) * np.linalg.norm(truth[arm]), (arm, found)


LOG_ODDS = np.array([[2.0, -1.0, 0.5, -1.0], [-1.5, 1.5, 0.0, 0.5]])


def clicked(loss, rounds=30_000):
    """Return the coefficients of a policy after rounds whose rewards are 1 with the chances of LOG_ODDS."""
    rng = np.random.default_rng(3)
    policy = PrivateLinear(
        2, 3, epsilon=5.0, delta=1e-3, context_norm=3**0.5, loss=loss, exploration=1.0, seed=1
    )
    while policy.rounds < rounds:
        contexts = rng.uniform(-1, 1, size=(policy.remaining, 3))
        decisions = policy.select_batch(contexts)
        scores = (np.column_stack([contexts, np.ones(len(contexts))]) * LOG_ODDS[decisions.arms]).sum(axis=1)
        chances = 1 / (1 + np.exp(-scores))
        policy.update_batch(decisions, (rng.random(len(scores)) < chances).astype(float))
    policy.select(np.zeros(3))
    return np.stack([policy.coefficients[arm] for arm in (0, 1)])


def test_with_the_logistic_loss_coefficients_are_log_odds():
    assert np.abs(clicked("logistic") - LOG_ODDS).max() < 0.3
    # Control: a first step from zero, a fourfold of the squared loss's, is not enough.
    assert np.abs(4 * (clicked("squared") - [0, 0, 0, 0.5]) - LOG_ODDS).max() > 0.6


def test_the_logistic_loss_releases_the_same_sums_with_the_same_noise(monkeypatch):
    """A loss is read off what was released: it changes no integer, no noise and no price."""
    seen, original = [], dense_sums.integer_sums

    def watched(*given, **named):
        seen.append(original(*given, **named))
        return seen[-1]

    monkeypatch.setattr(dense_sums, "integer_sums", watched)
    plans, made = [], []
    for loss in ("squared", "logistic"):
        fit = PrivateLinear(2, 3, epsilon=1.0, delta=1e-3, context_norm=1.0, loss=loss, seed=1)._fit
        plan, rng = fit.plan(0, fit.begin()), np.random.default_rng(4)
        rows = np.column_stack([rng.normal(size=(plan.rows, 3)), rng.integers(0, 2, plan.rows)])
        rewards = rng.integers(0, 2, plan.rows).astype(float)
        plans.append((plan.parts, fit.cap))
        made.append(fit.run(plan, rows, rewards, np.ones(plan.rows, bool), fit.begin()).coefficients)
    one, other = seen
    assert plans[0] == plans[1] and one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert not np.allclose(*made)  # what is made of them differs
    # Control: residuals of the rows would be other sums.
    residuals = rewards - 1 / (1 + np.exp(-rows[:, 0]))
    slots, present = rows[:, -1].astype(np.int64), np.ones(plan.rows, bool)
    asked = {"row_map": plan.row_map, "groups": 2, "parts": tuple(plan.parts)}
    broken = original(rows[:, :-1], slots, residuals, present, **asked)
    assert not np.array_equal(broken["gradient"], other["gradient"])


def test_first_steps_of_both_losses_are_the_same_but_for_units_and_priors():
    """From zero a sigmoid has the slope 1/4: the released sums say a fourfold of log odds."""
    rows = np.random.default_rng(4).normal(size=(400, 3)) / 4
    found = {}
    for loss in ("squared", "logistic"):
        fit = PrivateLinear(
            2, 3, epsilon=1e3, delta=1e-3, context_norm=1.0, loss=loss, seed=1, first_episode=400
        )._fit
        kept = np.column_stack([rows, np.arange(400) % 2])
        rewards = (rows[:, 0] > 0).astype(float)
        known = fit.run(fit.plan(0, fit.begin()), kept, rewards, np.ones(400, bool), fit.begin())
        found[loss] = known.coefficients[:, 0]
    assert found["logistic"] / found["squared"] == pytest.approx(4.0, rel=0.5)


def test_what_is_known_survives_json_bit_for_bit():
    import json

    known = dense_model.begin(3, 2, DenseTuning())
    fit = PrivateLinear(2, 3, epsilon=1.0, delta=1e-3, context_norm=1.0)._fit
    plan = fit.plan(0, known)
    rng = np.random.default_rng(2)
    rows = np.column_stack([rng.normal(size=(plan.rows, 3)), rng.integers(0, 2, plan.rows)])
    known = fit.run(plan, rows, rng.random(plan.rows), np.ones(plan.rows, bool), known)
    again = fit.recall(json.loads(json.dumps(known.to_record())))
    assert json.dumps(again.to_record()) == json.dumps(known.to_record())
    assert np.array_equal(again.draws, known.draws)
    assert fit.plan(1, again).rows == fit.plan(1, known).rows


def test_second_moments_of_each_arm_are_released_where_rows_are_enough():
    fit = PrivateLinear(
        ["a", "b"], dim=5, epsilon=10.0, delta=1e-3, context_norm=1.0, first_episode=50_000
    )._fit
    plan = fit.plan(0, fit.begin())
    assert list(plan.parts) == ["gradient", "each"]
    assert VectorNoise(*plan.parts.values()).mu_squared <= fit.mu**2
    few = PrivateLinear(["a", "b"], dim=5, epsilon=1.0, delta=1e-3, context_norm=1.0, first_episode=100)._fit
    assert "each" not in few.plan(0, few.begin()).parts
