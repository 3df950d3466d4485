"""The paper's episodes with proven noise: doubling episodes, cold starts, the previous episode alone."""

import numpy as np
import pytest

from flat_options import nested
from fliphat import FLIPHAT, Iht, _native, kernels
from fliphat.kernels import _niht
from fliphat.privacy import calibrate
from policy_model import DIM, Fits


def paper_policy(**changes):
    arguments = {"dim": DIM, "sparsity": 2, "epsilon": 1.0, "delta": 0.01}
    return FLIPHAT(**nested(arguments | {"episodes": "doubling", "warm_start": False} | changes))


def test_episode_l_spans_two_to_the_l_rounds_and_uses_only_the_one_before(monkeypatch):
    # Lines 1-5: round 1 is episode 0. Lines 6-14: episode l is t = 2^l .. 2^(l+1) - 1.
    fits, policy, rng = Fits(monkeypatch), paper_policy(), np.random.default_rng(0)
    rows, rewards, estimates = {}, {}, []
    for t in range(1, 128):
        X = rng.standard_normal((3, DIM)).astype(np.float32)
        before = len(fits.calls)
        decision = policy.select(X)
        episode = t.bit_length() - 1
        assert decision.episode == policy.episode == episode
        # Line 8: the estimate is computed at t = 2^l, and nowhere else.
        assert len(fits.calls) - before == (t > 1 and t == 2**episode)
        # Line 11: greedy on that estimate, which does not change inside the episode.
        estimates.append((episode, policy.estimate.to_dense().tolist()))
        if episode:
            assert decision.arm == np.argmax(X @ policy.estimate.to_dense())
        reward = float(np.float32(rng.standard_normal()))
        policy.update(decision, reward)
        rows.setdefault(episode, []).append(X[decision.arm])
        rewards.setdefault(episode, []).append(reward)
    assert len(set(map(str, estimates))) == 7
    # Line 8 again: X_{l-1} and y_{l-1}, all of them and nothing else (line 9 forgets them).
    for episode, (X, y, present), _ in fits.calls:
        np.testing.assert_array_equal(X, rows[episode])
        np.testing.assert_array_equal(y, rewards[episode])
        assert present.all()


def test_the_first_round_and_a_zero_estimate_play_uniformly():
    X = np.random.default_rng(0).standard_normal((3, DIM))
    arms = [paper_policy(seed=seed).select(X).arm for seed in range(900)]
    assert (abs(np.bincount(arms, minlength=3) - 300) < 5 * np.sqrt(900 * 2 / 9)).all()
    policy = FLIPHAT(
        dim=DIM,
        sparsity=1,
        epsilon=1.0,
        delta=0.01,
        first_episode=900,
        fit=Iht(warm_start=False, iterations=0),
        seed=0,
    )
    policy.select_batch(np.repeat(X[None], 900, 0))
    counts = np.bincount(policy.select_batch(np.repeat(X[None], 900, 0)).arms, minlength=3)
    assert policy.episode == 1 and not policy.estimate.to_dense().any()
    assert (abs(counts - 300) < 5 * np.sqrt(900 * 2 / 9)).all()


def test_the_estimate_is_n_iht_with_the_calibrated_noise():
    policy = paper_policy(
        seed=7, iterations=2, step_size=0.5, gradient_clip=2.0, l1_radius=3.0, reward_clip=1.5
    )
    rng = np.random.default_rng(1)
    X = rng.standard_normal((15, 3, DIM)).astype(np.float32)
    rows, rewards = [], []
    for x in X:
        decision = policy.select(x)
        rows.append(x[decision.arm])
        rewards.append(float(np.float32(2 * rng.standard_normal())))
        policy.update(decision, rewards[-1])
    policy.select(X[0])
    for facts in policy.history:
        n, first = facts.rounds, facts.first_round - 1
        public = {"sparsity": 2, "iterations": 2, "step_size": 0.5, "l1_radius": 3.0, "clip": 2.0}
        noise = calibrate(epsilon=1.0, delta=0.01, rows=n, dim=DIM, split=0.8, **public)
        expected = _niht.fit(
            np.array(rows[first : first + n]),
            rewards[first : first + n],
            **public,
            pick_scale=noise.pick_scale,
            value_scale=noise.value_scale,
            reward_clip=1.5,
            noise=_native.SeededNoise(7, facts.episode),
        )[-1]
        np.testing.assert_array_equal(facts.estimate.to_dense(), expected)
    assert [facts.rounds for facts in policy.history] == [1, 2, 4, 8]


@pytest.mark.parametrize("warm", [False, True])
def test_a_warm_fit_starts_from_the_released_estimate_and_a_cold_one_from_zero(monkeypatch, warm):
    starts, real = [], _niht.fit
    monkeypatch.setattr(
        _niht, "fit", lambda *a, start, **k: starts.append(start) or real(*a, start=start, **k)
    )
    policy = FLIPHAT(
        dim=DIM, sparsity=2, epsilon=50.0, delta=0.01, fit=Iht(warm_start=warm), first_episode=400
    )
    rng = np.random.default_rng(0)
    for _ in range(3):
        X = rng.standard_normal((policy.remaining, 3, DIM))
        decisions = policy.select_batch(X)
        policy.update_batch(decisions, X[np.arange(len(X)), decisions.arms, 0])
    assert starts[0] is None
    if warm:
        np.testing.assert_array_equal(starts[1], policy.history[0].estimate.to_dense())
    else:
        assert starts[1] is None


def test_it_learns_and_missing_rewards_do_not_stop_it():
    policy = FLIPHAT(dim=30, sparsity=3, epsilon=2.0, delta=0.01, seed=1)
    rng = np.random.default_rng(0)
    beta = np.zeros(30)
    beta[[4, 9]] = 0.8, -0.7
    for _ in range(20):
        X = rng.standard_normal((policy.remaining, 3, 30), dtype=np.float32)
        decisions = policy.select_batch(X)
        mean = X[np.arange(len(X)), decisions.arms] @ beta
        came = rng.random(len(X)) < 0.8
        policy.update_batch(decisions.ids[came], (mean + 0.1 * rng.standard_normal(len(X)))[came])
    theta = policy.estimate.to_dense()
    X = rng.standard_normal((2000, 3, 30))
    regret = np.max(X @ beta, 1) - (X @ beta)[np.arange(2000), kernels.select_arms(X, theta, rng)]
    assert regret.mean() < 0.1  # playing at random costs 0.9
    control = (X @ beta)[np.arange(2000), kernels.select_arms(X, np.zeros(30), rng)]
    assert (np.max(X @ beta, 1) - control).mean() > 0.5


def test_a_seed_repeats_everything_and_proves_nothing():
    runs = []
    for seed in (1, 1, 2):
        policy, rng = (
            FLIPHAT(dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, seed=seed),
            np.random.default_rng(0),
        )
        arms = []
        for _ in range(2):
            X = rng.standard_normal((policy.remaining, 2, DIM))
            decisions = policy.select_batch(X)
            policy.update_batch(decisions, X[:, 0, 0])
            arms.append(decisions.arms.tolist())
        assert not policy.guarantee.proven
        runs.append((arms, policy.estimate.to_dense().tolist()))
    assert runs[0] == runs[1] != runs[2]


def test_without_a_seed_noise_is_fresh():
    estimates = set()
    for _ in range(5):
        policy = FLIPHAT(dim=50, sparsity=2, epsilon=1.0, delta=0.01, first_episode=5)
        assert policy.guarantee.proven
        policy.select_batch(np.ones((5, 2, 50))), policy.select(np.ones((2, 50)))
        estimates.add(str(policy.estimate.to_dense()))
    assert len(estimates) == 5
