"""Garcelon's shuffled bits and Hanna's phased elimination: what they release, what it buys, what they learn."""

import math

import numpy as np
import pytest

from fliphat.environments import SparseLinear
from fliphat.lab.audit import audit_case
from fliphat.lab.audit.peers import peer_cases
from fliphat.lab.baselines import UniformRandom
from fliphat.lab.peers import GarcelonShuffle, HannaElimination, garcelon, hanna
from fliphat.policies import Policy

DELTA, T = 0.01, 20_000
NEW = ("bits", "coins", "reward sums")


@pytest.mark.parametrize("case", [case for case in peer_cases() if any(word in case.name for word in NEW)])
def test_the_audit_refutes_the_controls_alone(case):
    found = audit_case(case, runs=40_000 * case.cost, seed=1)
    assert found.refuted == (case.broken is not None), case.name


# Garcelon


def test_published_constants_send_the_bits_as_they_are():
    """The theorem is for epsilon below .0031 at this horizon; at 1 a person's bits are true but for 1 in 10^23."""
    assert pytest.approx(0.0031, abs=1e-4) == 1 / (27 * T**0.25)
    policy = GarcelonShuffle(20, 1.0, DELTA, horizon=T, calibration="paper")
    assert policy.entries == 230 and policy.coins < 1e-20
    assert not policy.privacy.kept and policy.privacy.epsilon == math.inf
    assert policy.local_epsilon == pytest.approx(garcelon.published_local_epsilon(20, 1.0, T))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 10.0])
def test_calibrated_coins_keep_the_claim_and_fewer_would_not(epsilon):
    policy = GarcelonShuffle(20, epsilon, DELTA, horizon=T)
    assert policy.privacy.kept and not policy.privacy.proven
    fewer = garcelon.bought(policy.entries, policy.batch, 0.97 * policy.coins, DELTA)
    assert fewer > epsilon


def test_the_bound_is_above_the_exact_hockey_stick_of_one_entry():
    coins, batch, few = 0.6, 400, 200
    k = np.arange(few + 2)
    fair = np.array([math.comb(few, int(j)) / 2**few if j <= few else 0.0 for j in k])
    shifted = np.concatenate([[0.0], fair[:-1]])
    one, zero = ((1 - q) * shifted + q * fair for q in (coins / 2, 1 - coins / 2))
    epsilon = garcelon.bought(1, batch, coins, DELTA)
    # A batch of 400 has at least 200 coins but for a share far below delta.
    assert np.maximum(one - math.exp(epsilon) * zero, 0).sum() <= DELTA


def test_debiased_sums_are_the_entries():
    policy = GarcelonShuffle(3, 5.0, DELTA, horizon=T, context_norm=2.0, reward_clip=1.0, seed=0)
    rng = np.random.default_rng(0)
    rows, rewards = rng.standard_normal((40_000, 3)), rng.uniform(-2, 2, 40_000)
    policy._rng = np.random.default_rng(1)
    sums = policy._bits(rows, rewards)
    x = rows * np.minimum(1, 2 / np.linalg.norm(rows, axis=1))[:, None]
    upper = np.triu_indices(3)
    exact = np.concatenate([(x[:, upper[0]] * x[:, upper[1]]).sum(0) / 4, x.T @ np.clip(rewards, -1, 1) / 2])
    found = (2 * sums - 40_000) / (1 - policy.coins)
    assert np.abs(found - exact).max() < 5 * math.sqrt(40_000) / (1 - policy.coins)


def test_it_learns_where_bits_are_true_and_dimensions_beyond_its_reach_are_refused():
    world = SparseLinear(dim=5, sparsity=3, seed=1)
    policy = GarcelonShuffle(5, 1.0, DELTA, horizon=8000, calibration="paper", optimistic=False, seed=1)
    assert isinstance(policy, Policy)
    regret = policy.play(world, 8000).regret
    assert regret[-2000:].mean() < 0.3 * regret[:140].mean()
    with pytest.raises(ValueError, match="dim must be at most 198"):
        GarcelonShuffle(400, 1.0, DELTA, horizon=T)


# Hanna


def test_laplace_delta_is_the_sum_over_all_outcomes():
    for shift, scale, epsilon in [(10, 7, 0.5), (10, 30, 0.1), (25, 10, 2.0), (8, 8, 1.0)]:
        z = np.arange(-2000, 2000)
        first = np.exp(-np.abs(z) / scale)
        second = np.exp(-np.abs(z - shift) / scale)
        exact = np.maximum(first - math.exp(epsilon) * second, 0).sum() / first.sum()
        assert hanna.laplace_delta(shift, scale, epsilon) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 10.0])
def test_noise_of_reward_sums_is_the_smallest_that_the_claim_allows(epsilon):
    paper = HannaElimination(5, epsilon, DELTA, horizon=T, calibration="paper")
    assert paper.noise_scale == math.ceil(2**16 / epsilon)
    # Pure noise at delta = .01 buys a little less than was claimed.
    assert paper.privacy.kept and epsilon - 0.03 < paper.privacy.epsilon < epsilon
    proven = HannaElimination(5, epsilon, DELTA, horizon=T)
    assert proven.noise_scale < paper.noise_scale and proven.privacy.kept and proven.privacy.proven
    assert hanna._delta(2**16, proven.noise_scale - 1, epsilon) > DELTA


def test_one_reward_moves_one_sum_by_at_most_what_is_priced():
    totals = []
    for reward in (1e9, -1e9):
        policy = HannaElimination(3, 1.0, DELTA, horizon=T, seed=0)
        policy.rounds = 2
        policy._learn(np.zeros((2, 3)), np.array([0.3, reward]))
        totals.append(policy._totals.copy())
    moved = np.abs(totals[0] - totals[1])
    assert moved.max() == 2**16 and np.count_nonzero(moved) == 1


@pytest.mark.parametrize("arms", [2, 3, 8])
def test_the_law_of_chosen_contexts_is_that_of_the_simulator(arms):
    dim, theta = 6, np.array([1.0, -0.5, 0.0, 0.3, 0.0, 2.0])
    drawn = SparseLinear(dim=dim, arms=arms, sparsity=2, seed=0).draw(60_000).contexts
    chosen = drawn[np.arange(len(drawn)), (drawn @ theta).argmax(axis=1)].mean(axis=0)
    steps = np.arange(dim)
    sigma = 0.1 ** np.abs(steps[:, None] - steps)
    law = hanna.largest_of(arms) * sigma @ theta / math.sqrt(theta @ sigma @ theta)
    np.testing.assert_allclose(chosen, law, atol=0.025)


def test_elimination_plays_ever_closer_to_the_best_direction():
    policy = HannaElimination(5, 10.0, DELTA, horizon=T, optimistic=False, seed=1)
    assert isinstance(policy, Policy)
    world = SparseLinear(dim=5, sparsity=3, seed=1)
    regret = policy.play(world, T).regret
    random = UniformRandom(5, seed=1).play(SparseLinear(dim=5, sparsity=3, seed=1), T).regret
    assert regret[-4000:].mean() < 0.3 * random.mean() < regret[:200].mean()
    cap = policy._directions
    np.testing.assert_allclose(np.linalg.norm(cap, axis=1), 1.0)
    assert np.linalg.matrix_rank(cap) == 5
