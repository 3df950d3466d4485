import math

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chisquare
from sklearn.linear_model import Lasso

from fliphat.environments import SparseLinear
from fliphat.lab.baselines import (
    DoublyRobustLasso,
    ExploreThenCommit,
    GreedyIHT,
    LassoBandit,
    LinUCB,
    ThresholdedLasso,
    UniformRandom,
)
from fliphat.policies import Policy

ALL = [
    lambda: UniformRandom(30, seed=1),
    lambda: LassoBandit(30, seed=1),
    lambda: LinUCB(30, seed=1),
    lambda: GreedyIHT(30, 5, reward_scale=1.5, seed=1),
    lambda: ThresholdedLasso(30, seed=1),
    lambda: ExploreThenCommit(30, 4, 400, seed=1),
]
LEARNERS = [
    *ALL[1:],
    lambda: GreedyIHT(30, 5, learn_from="episode", reward_scale=1.5, seed=1),
]


def world(**options):
    return SparseLinear(**{"dim": 30, "arms": 4, "sparsity": 4, "seed": 5, **options})


def through_the_api(policy, environment, rounds):
    """Play through `select_batch` and `update_batch`; the rows and rewards learned from, and the regret."""
    rows, rewards, regret = [], [], []
    while sum(map(len, regret)) < rounds:
        drawn = environment.draw(min(policy.remaining, rounds - sum(map(len, regret))))
        decisions = policy.select_batch(drawn.contexts)
        outcome = drawn.settle(decisions.arms)
        assert policy.update_batch(decisions, outcome.rewards) == len(outcome)
        rows.append(outcome.rows), rewards.append(outcome.rewards), regret.append(outcome.regret)
    return np.concatenate(rows), np.concatenate(rewards), np.concatenate(regret)


def test_random_regret_is_the_mean_gap_and_arms_are_uniform():
    played = UniformRandom(30, seed=1).play(world(), 40_000)
    gaps = world().draw(20_000).means
    expected = (gaps.max(axis=1) - gaps.mean(axis=1)).mean()
    assert played.regret.mean() == pytest.approx(expected, rel=0.03)
    assert chisquare(np.bincount(played.arms)).pvalue > 1e-4
    arms = UniformRandom(30, seed=1).select_batch(world().draw(4000).contexts).arms
    assert chisquare(np.bincount(arms)).pvalue > 1e-4


@pytest.mark.parametrize("make", LEARNERS)
def test_learners_learn_in_simulations_and_through_the_api(make):
    random = UniformRandom(30).play(world(), 2000).regret.mean()
    lazy = make().play(world(), 2000).regret
    *_, honest = through_the_api(make(), world(), 2000)
    for regret in (lazy, honest):
        assert regret[-500:].mean() < 0.02 * random
        assert regret[:10].mean() > 0.2 * random  # nobody knows anything yet


@pytest.mark.parametrize("make", ALL)
def test_every_baseline_is_a_policy(make):
    policy = make()
    assert isinstance(policy, Policy)
    contexts = np.random.default_rng(1).standard_normal((4, 30))
    decision = policy.select(contexts)
    assert decision.arm in range(4) and decision.valid
    assert policy.update(decision, 1.0) and policy.rounds == 1
    with pytest.raises(ValueError, match="have no reward yet"):
        policy.update(decision, 1.0)
    with pytest.raises(ValueError, match="rewards must be finite"):
        policy.update(policy.select(contexts), math.nan)
    with pytest.raises(TypeError, match="contexts must be dense"):
        policy.select(csr_array(contexts))
    with pytest.raises(ValueError, match=r"policy's dim = 30, got dim = 31"):
        policy.play(world(dim=31), 5)


def test_batches_end_where_the_estimate_changes():
    policy = LassoBandit(30)
    assert policy.remaining == 1
    with pytest.raises(ValueError, match=r"at most policy.remaining = 1 rounds, got 2"):
        policy.select_batch(world().draw(2).contexts)
    policy.play(world(), 5000)
    assert 1 <= policy.remaining <= 200


def test_rows_are_copied_when_they_are_chosen():
    policy, contexts = LassoBandit(30), np.ones((1, 30))
    decision = policy.select(contexts)
    contexts[:] = 1e9
    policy.update(decision, 1.0)
    assert policy._gram.max() == 1.0


@pytest.mark.parametrize("rounds", [50, 700])
def test_the_lasso_bandits_estimate_is_the_stated_lasso_of_all_past_rows(rounds):
    # Refits come at 10 % more rounds: stop at one, and compare with a fit that saw every row at once.
    policy, X, y = LassoBandit(30, penalty=0.1, seed=1), np.empty((0, 30)), np.empty(0)
    environment = world()
    while policy.rounds < rounds:
        rows, rewards, _ = through_the_api(policy, environment, policy.remaining)
        X, y = np.concatenate([X, rows]), np.concatenate([y, rewards])
    t = len(y)
    assert t == policy.rounds >= rounds
    level = 2 * 0.1 * math.sqrt((4 * math.log(t) + 2 * math.log(30)) / t)
    expected = Lasso(level / 2, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y).coef_
    assert np.allclose(policy.estimate, expected, atol=2e-3)
    assert np.count_nonzero(expected) >= 4


def test_linucb_is_ridge_with_optimism():
    policy = LinUCB(30, optimism=0.0, ridge=2.0, refit_every=1)
    rows, rewards, _ = through_the_api(policy, world(), 60)
    policy._solve()
    expected = np.linalg.solve(rows.T @ rows + 2.0 * np.eye(30), rows.T @ rewards)
    assert np.allclose(policy.estimate, expected, atol=1e-6)
    unseen, seen = np.zeros(30), rows[0].copy()
    unseen[0] = 10.0
    before = LinUCB(30, optimism=5.0)
    for _ in range(50):
        before.update(before.select(seen[None]), 0.01)
    assert before.select(np.stack([seen, unseen])).arm == 1
    greedy = LinUCB(30, optimism=0.0)
    for _ in range(50):
        greedy.update(greedy.select(seen[None]), 0.01)
    assert greedy.select(np.stack([seen, -seen])).arm == 0


def test_iht_learns_from_all_rounds_or_from_the_last_episode():
    every, last = GreedyIHT(30, 5, seed=1), GreedyIHT(30, 5, learn_from="episode", seed=1)
    for policy in (every, last):
        policy.play(world(), 1000)
        assert np.count_nonzero(policy.estimate) <= 5
    assert every._kept == 1000 and last._kept < 1000
    with pytest.raises(ValueError, match="learn_from must be one of 'all', 'episode', got 'none'"):
        GreedyIHT(30, 5, learn_from="none")


@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_iht_needs_scales_and_then_behaves_the_same(scale):
    policy = GreedyIHT(30, 5, reward_scale=1.5 * scale, context_scale=scale, seed=1)
    regret = policy.play(world(context_scale=scale), 2000).regret
    assert regret[-500:].mean() < 0.02 * regret[:30].mean()


def test_the_thresholded_lasso_refits_on_what_stands_out():
    policy = ThresholdedLasso(30, seed=1)
    through_the_api(policy, world(), 200)
    kept = np.flatnonzero(policy.estimate)
    assert set(kept) == set(world().truth[0])
    assert np.allclose(policy.estimate[kept], world().truth[1], atol=0.05)


def test_explore_then_commit_fits_once():
    policy = ExploreThenCommit(30, 4, 2000, seed=1)
    wanted = 2000 ** (2 / 3) * (16 * math.log(30)) ** (1 / 3)
    assert policy.exploration_rounds == math.floor(wanted) == policy.remaining
    policy.play(world(), policy.exploration_rounds)
    fitted = policy.estimate.copy()
    assert np.count_nonzero(fitted) >= 4
    policy.play(world(), 1000)
    assert (policy.estimate == fitted).all()


def test_the_doubly_robust_lasso_explores_and_learns():
    policy = DoublyRobustLasso(30, seed=1)
    assert isinstance(policy, Policy)
    random = UniformRandom(30).play(world(), 2000).regret.mean()
    assert policy.play(world(), 4000).regret[-500:].mean() < 0.5 * random
    *_, honest = through_the_api(DoublyRobustLasso(30, seed=1), world(), 1500)
    assert honest[-300:].mean() < 0.7 * random
    # Pseudo-rewards are unbiased for the mean context, whatever the estimate is.
    contexts = world().draw(4000).contexts
    policy = DoublyRobustLasso(30, exploration=1e9, seed=2)
    policy._estimate[:] = 0.3
    _, kept = policy._choose(contexts)
    truth = world().coefficients
    rows, mean, weight = kept[:, :30], kept[:, 30:60], kept[:, 60]
    pseudo = mean @ policy._estimate + ((rows @ truth) - rows @ policy._estimate) / weight
    assert abs((pseudo - mean @ truth).mean()) < 0.05
