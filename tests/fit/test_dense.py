"""The dense fit's parts: how far one row moves them, what they cost, and what they say without noise."""

import dataclasses
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from fliphat import PrivateLinear, _native, kernels, reference
from fliphat.fit.dense import KnownLinear, parts
from fliphat.fit.dense.chain import Chain, Step
from fliphat.fit.dense.parts import RADIUS, RowMap, entry_weights, sensitivity_squared
from fliphat.fit.dense.settings import fewest_rounds, too_wide
from fliphat.kernels import _fits as fit_kernels
from fliphat.privacy import composition
from fliphat.reference import _fits as fit_twins

ALL = ("arms", "columns", "moments", "squares", "board")
MAP = RowMap(np.zeros(2), np.ones(2), 1.0)
SQUARES = 2**14


def sums(rows, slots, rewards, present=None, row_map=MAP, groups=3, radius=SQUARES):
    present = np.ones(len(rows), bool) if present is None else np.asarray(present)
    noise = _native.RecordingNoise()
    parts.release(
        np.column_stack([np.asarray(rows, float), slots]),
        np.asarray(slots),
        np.asarray(rewards, float),
        present,
        row_map=row_map,
        groups=groups,
        reward_range=(-0.5, 0.5),
        steps={name: Step(Chain(), 1, 0, 1) for name in ALL},
        radius=radius,
        secret=None,
        noise=noise,
    )
    return {name: call[2] for name, call in zip(ALL, noise.calls, strict=True)}


def weighed(vectors, name, groups=3):
    """Return vectors whose plain distances are those that the noise counts, as floats."""
    weights = entry_weights(name, 2, groups)
    return vectors * np.repeat([math.sqrt(one) for one, _ in weights], [count for _, count in weights])


def neighbours():
    """Return the sums of rows that differ in one row: along axes, at ends, long, absent, anything."""
    rng = np.random.default_rng(5)
    base = rng.normal(size=(4, 2)), np.array([0, 1, 2, 0]), rng.random(4) - 0.5
    directions = np.array([(1, 0), (0, 1), (-1, 0), (1, 1), (0.6, -0.8)])
    grid = itertools.product(directions, (0.0, 0.3, 1e3, 1e150), (0, 1, 2), (-0.5, 0.5, 7.0, np.nan))
    candidates = [(direction * size, arm, y) for direction, size, arm, y in grid]
    for _ in range(60):
        candidates.append((rng.normal(size=2) * 10 ** rng.uniform(-2, 4), int(rng.integers(3)), rng.normal()))
    for here in (True, False):
        for x, arm, y in candidates:
            rows, slots, rewards = (part.copy() for part in base)
            rows[1], slots[1], rewards[1] = x, arm, y
            yield sums(rows, slots, rewards, [True, here, True, True])


def test_neighbours_found_by_search_never_move_a_part_further_and_some_reach_it():
    found = list(neighbours())
    for name in ALL:
        vectors = weighed(np.array([one[name] for one in found], float), name)
        largest = max(float(((vectors - one) ** 2).sum(axis=1).max()) for one in vectors)
        bound = float(sensitivity_squared(name, SQUARES))
        assert 0.99 * bound < largest <= bound * (1 + 1e-12), name


def test_both_kinds_of_neighbours_reach_the_bound_of_the_arms():
    """One arm with opposite rewards, one with opposite rows, and two arms: the weights make all three equal."""
    bound = float(sensitivity_squared("arms", SQUARES))
    one = weighed(sums([[1e3, 0.0]], [0], [0.5])["arms"], "arms")
    for x, arm, y in (((1e3, 0.0), 0, -0.5), ((-1e3, 0.0), 0, 0.5), ((0.0, 1e3), 1, 0.5)):
        other = weighed(sums([x], [arm], [y])["arms"], "arms")
        assert ((one - other) ** 2).sum() == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "sides"),
    [
        ("moments", ([1e3, 0.0], [0.0, 1e3])),
        ("columns", ([1e3, 1e3], [-1e3, -1e3])),
        ("squares", ([1e3, 0.0], [0.0, 1e3])),
    ],
)
def test_control_a_part_priced_for_a_row_that_is_only_added_is_refuted_by_two_rows(name, sides):
    one, other = (weighed(sums([x], [0], [0.5])[name], name) for x in sides)
    moved, alone = ((one - other) ** 2).sum(), (one**2).sum()
    bound = float(sensitivity_squared(name, SQUARES))
    assert moved > 0.98 * bound > 0.9 * bound > alone


def test_a_row_without_a_reward_leaves_nothing_in_any_part():
    rows, slots, rewards = np.ones((2, 2)), np.array([0, 1]), np.array([0.5, 0.5])
    with_it = sums(rows, slots, rewards, [True, False])
    rows[1], slots[1], rewards[1] = [-7.0, 3.0], 2, -0.5
    other = sums(rows, slots, rewards, [True, False])
    assert all(np.array_equal(with_it[name], other[name]) for name in ALL)
    assert not with_it["arms"].reshape(3, -1)[1:].any()


def test_integers_of_a_row_do_not_depend_on_its_place():
    rng = np.random.default_rng(1)
    rows, slots, rewards = rng.normal(size=(40, 2)), rng.integers(0, 3, 40), rng.random(40) - 0.5
    order = rng.permutation(40)
    whole, other = sums(rows, slots, rewards), sums(rows[order], slots[order], rewards[order])
    halves = [sums(rows[part], slots[part], rewards[part]) for part in (slice(0, 13), slice(13, 40))]
    for name in ALL:
        assert np.array_equal(whole[name], other[name])
        assert np.array_equal(whole[name], halves[0][name] + halves[1][name])


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arm_sums_are_those_of_the_twin(layout, dtype):
    from scipy import sparse

    rng = np.random.default_rng(2)
    for n, d, k in ((1, 1, 1), (50, 3, 2), (300, 17, 4), (40, 70, 3)):
        X = (rng.normal(size=(n, d + 1)) * 10.0 ** rng.integers(-2, 3)).astype(dtype)
        X[rng.random(X.shape) < 0.4] = 0
        given = sparse.csr_array(X) if layout == "csr" else X
        rewards = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
        asked = {
            "count": k,
            "center": rng.normal(size=d),
            "scale": rng.uniform(10, 5000, d),
            "radius": RADIUS,
            "halves": True,
            "squares": 2**13,
            "present": rng.random(n) < 0.8,
        }
        arms = rng.integers(0, k, n)
        found = fit_kernels.arm_sums(given, rewards, arms, **asked)
        assert all(
            np.array_equal(a, b)
            for a, b in zip(found, fit_twins.arm_sums(given, rewards, arms, **asked), strict=True)
        )
        moved = {name: asked[name] for name in ("center", "scale", "radius", "present")}
        assert np.array_equal(
            kernels.second_moments(given, np.arange(d), **moved),
            reference.second_moments(given, np.arange(d), **moved),
        )


@pytest.mark.parametrize("users", [1, 3])
def test_every_plan_is_within_one_gaussian_that_the_claim_was_priced_for(users):
    policy = PrivateLinear(3, 4, 2.0, 1e-3, context_norm=1.0, rounds_per_user=users, first_episode=400)
    fit = policy._fit
    known, secret, rng = fit.begin(), None, np.random.default_rng(0)
    # A user's rows, in whichever episodes, are one Gaussian of k times the size.
    assert composition.delta(2.0, [composition.Gaussian(users * fit.mu)]) <= 1e-3
    for episode in range(9):
        plan = fit.plan(episode, known)
        assert fit.cap * Fraction(99, 100) < plan.mu_squared <= fit.cap
        rows = np.column_stack([rng.normal(size=(plan.rows, 4)) / 4, rng.integers(0, 3, plan.rows)])
        known, secret = fit.run_totals(
            plan, rows, rng.random(plan.rows), np.ones(plan.rows, bool), known, secret
        )
    assert list(plan.steps) == ["arms", "board", "moments", "squares"]
    assert plan.steps["arms"].before.releases > 0
    assert policy.guarantee.proven
    assert policy.guarantee.release is fit.claim


def test_noise_is_what_the_steps_ask_for_in_exact_fractions():
    """Every number's sigma, over its weight, is at least what its step says and at most a shade more."""
    for variance, weight, promised in ((10**19, 4096, 0), (10**19, 2**40, 2**40 + 2**37), (7, 4096, 8192)):
        step = Step(Chain(), weight, promised, variance)
        for name in ALL:
            weights = entry_weights(name, 3, 2)
            sigmas, shift = parts.noise_steps(name, step, 3, 2)
            each = np.repeat([weight for weight, _ in weights], [count for _, count in weights])
            for sigma, weight_ in zip(sigmas.tolist(), each, strict=True):
                needed = step.noise_squared / weight_
                assert sigma**2 * 4**shift >= needed > (sigma - 1) ** 2 * 4**shift
    diagonal = [weight for weight, _ in entry_weights("moments", 3, 1)][::2]
    assert diagonal == [Fraction(1, 2)] * 3  # sqrt(2) times the noise: the bound R^4 counts on it


def test_control_a_plan_with_less_noise_cannot_be_made():
    fit = PrivateLinear(2, 3, epsilon=1.0, delta=1e-3, context_norm=1.0)._fit
    plan = fit.plan(0, fit.begin())
    step = plan.steps["arms"]
    less = {**plan.steps, "arms": dataclasses.replace(step, variance=step.variance * 4 // 9)}
    with pytest.raises(ValueError, match=r"the noise costs mu\^2 = .*, but the claim allows"):
        dataclasses.replace(plan, steps=less)


def test_without_noise_released_sums_are_those_of_the_rows():
    rng = np.random.default_rng(0)
    rows, slots, rewards = rng.normal(size=(50, 2)) / 4, rng.integers(0, 3, 50), rng.random(50) - 0.5
    row_map = RowMap(np.array([0.1, -0.2]), np.array([1.0, 2.0]), 4.0)
    found = sums(rows, slots, rewards, row_map=row_map, radius=2**15)
    v, unit = (rows - row_map.center) * row_map.inverse, 1 / row_map.scale
    arms = found["arms"].reshape(3, 6)
    squares = found["squares"].reshape(3, 2) * unit**2 * parts.SQUARE_UNIT
    for k in range(3):
        own = slots == k
        assert np.allclose(arms[k, :2] * unit / (2 * parts.STEPS), v[own].T @ rewards[own], atol=0.02)
        assert arms[k, 2] / (2 * parts.STEPS) == pytest.approx(rewards[own].sum(), abs=0.02)
        assert np.allclose(arms[k, 3:5] * unit, v[own].sum(axis=0), atol=0.02)
        assert arms[k, 5] == own.sum()
        assert np.allclose(squares[k], (v[own] ** 2).sum(axis=0), atol=0.02)
    assert np.allclose(found["moments"] * unit**2, (v.T @ v)[np.triu_indices(2)], atol=0.02)
    halves = found["columns"].reshape(2, 2) * unit
    assert np.allclose(halves, [np.maximum(v, 0).sum(axis=0), np.maximum(-v, 0).sum(axis=0)], atol=0.02)


def played(policy, rounds, reward, rng, dim):
    while policy.rounds < rounds:
        contexts = rng.normal(size=(policy.remaining, dim)) * 0.5
        decisions = policy.select_batch(contexts)
        policy.update_batch(decisions, reward(contexts, decisions.arms))
    policy.select(np.zeros(dim))
    return policy


def test_with_little_noise_coefficients_are_found():
    truth = np.array([[0.3, 0.0, -0.1], [-0.2, 0.2, 0.1]])

    def reward(contexts, arms):
        means = np.column_stack([contexts, np.ones(len(contexts))]) @ truth.T + 0.5
        return means[np.arange(len(contexts)), arms]

    policy = PrivateLinear(
        2, 2, epsilon=1e3, delta=1e-3, context_norm=2.0, seed=1, first_episode=2000, exploration=2
    )
    played(policy, 12_000, reward, np.random.default_rng(3), 2)
    for arm, found in policy.coefficients.items():
        off = found - [0, 0, 0.5]
        # Rows that are cut make coefficients larger than they are; their direction stays.
        assert off[:2] @ truth[arm, :2] > 0.97 * np.linalg.norm(off[:2]) * np.linalg.norm(truth[arm, :2]), (
            arm,
            found,
        )


def test_scores_of_arms_are_each_episodes_own_counts_and_rewards():
    policy = PrivateLinear(2, 2, epsilon=1e3, delta=1e-3, context_norm=2.0, seed=1, first_episode=500)
    rng, told = np.random.default_rng(3), []
    for _ in range(8):
        contexts = rng.normal(size=(policy.remaining, 2))
        decisions = policy.select_batch(contexts)
        rewards = rng.random(len(contexts))
        policy.update_batch(decisions, rewards)
        own = [decisions.arms == arm for arm in (0, 1)]
        told.append(([one.sum() for one in own], [(rewards[one] - 0.5).sum() for one in own]))
    policy.select(np.zeros(2))
    assert policy._engine.known.chains["arms"].releases > 4
    for score, (counts, rewards) in zip(policy.arm_scores, told, strict=True):
        assert np.all(np.abs(score.counts - counts) < 5 * score.count_noise)
        assert np.all(np.abs(score.rewards - rewards) < 5 * score.reward_noise + 0.5)
        assert score.count_noise < 3


def test_what_is_known_survives_json_bit_for_bit():
    fit = PrivateLinear(2, 3, epsilon=5.0, delta=1e-3, context_norm=1.0)._fit
    known, secret, rng = fit.begin(), None, np.random.default_rng(2)
    for episode in range(6):
        plan = fit.plan(episode, known)
        rows = np.column_stack([rng.normal(size=(plan.rows, 3)), rng.integers(0, 2, plan.rows)])
        known, secret = fit.run_totals(
            plan, rows, rng.random(plan.rows), np.ones(plan.rows, bool), known, secret
        )
    again = fit.recall(json.loads(json.dumps(known.to_record())))
    assert isinstance(again, KnownLinear)
    assert json.dumps(again.to_record()) == json.dumps(known.to_record())
    assert np.array_equal(again.draws, known.draws)
    assert fit.plan(6, again).steps == fit.plan(6, known).steps


def test_columns_are_moved_again_when_rows_leave_the_map_they_were_settled_with():
    policy = PrivateLinear(2, 4, epsilon=20.0, delta=1e-3, context_norm=4.0, seed=1, first_episode=200)
    rng, settled = np.random.default_rng(0), []
    for episode in range(14):
        contexts = rng.normal(size=(policy.remaining, 4)) * 0.3 + (1.5 if episode > 7 else 0.0)
        decisions = policy.select_batch(contexts)
        policy.update_batch(decisions, rng.random(len(contexts)))
        settled.append(policy._engine.known.settled)
    assert settled[7] == settled[3] > 0
    assert 0 in settled[8:], settled  # learned again
    assert settled[-1] > 8


def test_contexts_that_are_too_wide_are_told_beforehand_from_public_sizes_alone():
    assert fewest_rounds(100, 10, 1.0, 1e-5) > 5 * fewest_rounds(10, 10, 1.0, 1e-5)
    assert fewest_rounds(100, 10, 10.0, 1e-5) < fewest_rounds(100, 10, 1.0, 1e-5) / 4
    assert fewest_rounds(100, 10, 1.0, 1e-5, 4) > 3 * fewest_rounds(100, 10, 1.0, 1e-5)
    with pytest.warns(
        UserWarning, match=r"with 3,000 columns and 50 arms.*rounds.*or FLIPHAT.* if only few of them matter"
    ):
        PrivateLinear(50, 3000, 0.5, 1e-6, context_norm=1.0)
    PrivateLinear(10, 500, 1.0, 1e-6, context_norm=1.0)  # warnings are errors here: none


@pytest.mark.parametrize(("dim", "low", "high"), [(80, -1.0, 0.3), (4, 0.5, 2.0)])
def test_what_is_called_too_wide_does_not_learn_and_the_rest_does(dim, low, high):
    """Share of what contexts are worth that is earned in the second half, on both sides of the rule."""
    rng, rounds = np.random.default_rng(11), 3000
    contexts = rng.uniform(-1, 1, (rounds, dim))
    scores = contexts @ rng.normal(size=(dim, 4)) * (12 / dim) ** 0.5
    labels = (scores + 0.5 * rng.gumbel(size=scores.shape)).argmax(axis=1)
    assert (too_wide(rounds, dim, 4, 1.0, 1e-4) is not None) == (dim == 80)
    policy = PrivateLinear(4, dim, 1.0, 1e-4, context_norm=(dim / 3) ** 0.5, seed=11)
    won, at = np.zeros(rounds), 0
    while at < rounds:
        part = slice(at, at + min(policy.remaining, rounds - at))
        decisions = policy.select_batch(contexts[part])
        won[part] = decisions.arms == labels[part]
        policy.update_batch(decisions, won[part])
        at = part.stop
    constant = np.bincount(labels).max() / rounds
    gain = (won[rounds // 2 :].mean() - constant) / ((scores.argmax(axis=1) == labels).mean() - constant)
    assert low < gain < high
