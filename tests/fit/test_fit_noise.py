"""The noise that a policy's fits really draw: in every episode, for every k, and whatever rewards came.

Nothing here looks at a plan. Fits are recorded where they reach the kernel, and their noise is measured.
"""

import math

import numpy as np
import pytest

from flat_options import nested
from fliphat import FLIPHAT, _native

ROUNDS = 6


def make(**changes):
    arguments = {
        "dim": 2,
        "sparsity": 1,
        "epsilon": 1.0,
        "delta": 0.01,
        "first_episode": ROUNDS,
        "growth": 1.0,
        "warm_start": False,
        "iterations": 1,
        "step_size": 1.0,
        "gradient_clip": 1.0,
        "l1_radius": 1e6,
    }
    return FLIPHAT(**nested(arguments | changes))


def play(policy, episodes, contexts=None, rewards=None):
    """Play some episodes, and the first round of the next, which releases the last estimate."""
    for _ in range(episodes):
        rounds = policy.remaining
        X = np.zeros((rounds, 1, policy.estimate.dim), np.float32) if contexts is None else contexts
        decisions = policy.select_batch(X)
        if rewards is not None:
            policy.update_batch(decisions, rewards)
    policy.select(np.zeros((1, policy.estimate.dim)))
    return policy


def fits_of(policy, episodes):
    noise = _native.RecordingNoise()
    policy._fit.noise = lambda episode: noise
    play(policy, episodes)
    assert len(noise.fits) == episodes
    return noise.fits


def released(call, seed, start=None):
    """Return what one fit of the recorded call releases, its rows being zeros."""
    rows, rewards, zero, settings, present = call
    start = zero if start is None else start
    columns, values = _native.niht_fit(
        rows, rewards, start, settings, present, None, _native.SeededNoise(seed, 0)
    )[-1]
    return int(columns[0]), float(values[0])


def value_noise(call, draws=2000):
    return np.array([released(call, seed)[1] for seed in range(draws)])


def pick_scale(call, lead, draws=4000):
    """Return the scale of a pick's noise: a lead of the first coordinate is divided by the log-odds it gives."""
    first = np.mean([released(call, seed, np.array([lead, 0.0]))[0] == 0 for seed in range(draws)])
    return lead / math.log(first / (1 - first))


def test_every_episode_draws_the_noise_that_k_rounds_of_a_user_need():
    scales = {}
    for k in (1, 3):
        policy = make(rounds_per_user=k)
        calls = fits_of(policy, 4)
        stated = [facts.noise_scale for facts in policy.history]
        assert len(set(stated)) == 1
        values = [value_noise(call).std() for call in calls]
        # 2 000 draws are within 1.6 % of their spread, 4 000 picks within 4 % of their log-odds.
        assert values == pytest.approx(stated, rel=0.08)
        picks = [pick_scale(call, stated[0] / 2) for call in calls]
        # What a pick can tell from noise is stated, too: its scale times ln d.
        expected = [facts.smallest_coefficient / math.log(2) for facts in policy.history]
        assert picks == pytest.approx(expected, rel=0.15)
        scales[k] = stated[0], float(np.mean(picks))
    assert scales[3][0] == pytest.approx(3 * scales[1][0], rel=0.001)
    assert scales[3][1] == pytest.approx(3 * scales[1][1], rel=0.1)


def test_iterations_given_as_a_function_cost_what_the_number_costs():
    contexts = np.random.default_rng(0).normal(size=(ROUNDS, 1, 2)).astype(np.float32)
    runs = [
        play(make(iterations=given, seed=5), 3, contexts, np.ones(ROUNDS))
        for given in (3, (3, 3), lambda rows: 3, lambda rows: 1)
    ]
    number, *same, one = [[facts.estimate.to_dense().tolist() for facts in run.history] for run in runs]
    assert same == [number, number]
    assert one != number
    assert [facts.iterations for facts in runs[2].history] == [3, 3, 3]
    # Three iterations share the budget: each has more noise than one alone.
    assert runs[2].history[0].noise_scale > 1.3 * runs[3].history[0].noise_scale
    # ... and that noise is drawn three times over: one coordinate, whose value is the sum of them.
    policy = make(dim=1, iterations=lambda rows: 3)
    (call,) = fits_of(policy, 1)
    assert value_noise(call).std() == pytest.approx(3**0.5 * policy.history[0].noise_scale, rel=0.08)


@pytest.mark.parametrize("mechanism", ["exponential", "laplace"])
def test_pure_privacy_releases_laplace_values_and_only_it(mechanism):
    # The mean size of Laplace draws is 0.707 of their root mean square, that of Gaussian ones 0.798.
    for delta, expected in ((0.0, 0.707), (0.01, 0.798)):
        policy = make(delta=delta, mechanism=mechanism)
        for call in fits_of(policy, 2):
            draws = value_noise(call, 6000)
            assert np.abs(draws).mean() / np.sqrt((draws**2).mean()) == pytest.approx(expected, abs=0.03)
        # Only rho-zCDP has Gaussian values: a pure claim that had them would be false.
        assert (policy.guarantee.delta == 0) == (delta == 0)


@pytest.mark.parametrize("warm_start", [True, False])
def test_how_many_rewards_came_moves_no_estimate_of_rows_that_say_nothing(warm_start):
    # Contexts are all zeros, so no reward can move a sum: the same noise must give the same estimate whether
    # all rewards came, some or none, and it must be fitted in each case.
    settings = {"dim": 5, "sparsity": 3, "warm_start": warm_start, "iterations": None, "step_size": None}
    contexts = np.zeros((ROUNDS, 1, 5), np.float32)
    some = np.where(np.arange(ROUNDS) % 2, 1.0, np.nan)  # NaN is left out by `update_batch`
    seen = []
    for rewards in (np.ones(ROUNDS), some, None):
        policy = play(make(**settings, seed=8), 4, contexts, rewards)
        assert len(policy.history) == 4
        seen.append([facts.estimate.to_dense().tolist() for facts in policy.history])
    assert seen[0] == seen[1] == seen[2]
    assert all(any(estimate) for estimate in seen[0])


def test_without_a_reward_noise_is_released_all_the_same():
    # An estimate of zeros would tell that nobody's reward came.
    policy = play(make(), 3)
    assert [len(facts.estimate.values) for facts in policy.history] == [1, 1, 1]
    assert len({float(facts.estimate.values[0]) for facts in policy.history}) == 3
