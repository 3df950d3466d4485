"""The peers: each equals its non-private form without noise, and buys what its noise buys."""

import math

import numpy as np
import pytest

from fliphat.environments import SparseLinear
from fliphat.fit.statistics import rules
from fliphat.policies import Policy, UniformRandom
from fliphat.policies.peers import MomentGreedy, RareSwitching, ShariffSheffet
from fliphat.policies.peers import base as peers_base
from fliphat.policies.peers.rare_switching import largest_quotient
from fliphat.policies.peers.shariff_sheffet import paper_deviation

DELTA = 0.01


def world(dim=6, seed=3, **options):
    return SparseLinear(**{"dim": dim, "arms": 3, "sparsity": 2, "seed": seed, **options})


def make_tree(**options):
    return ShariffSheffet(
        6, **{"epsilon": 1.0, "delta": DELTA, "horizon": 2048, "leaf": 64, "seed": 1, **options}
    )


def make_blocks(**options):
    return RareSwitching(6, **{"epsilon": 1.0, "delta": DELTA, "seed": 1, **options})


def make_moment(**options):
    return MomentGreedy(6, **{"epsilon": 1.0, "delta": DELTA, "seed": 1, **options})


PEERS = [make_tree, make_blocks, make_moment]


@pytest.fixture
def no_noise(monkeypatch):
    """Peers whose noise is zero, whatever its scale."""
    monkeypatch.setattr(peers_base, "Noise", lambda *given: lambda sums, times=1: sums.astype(np.float64))


def played_rows(policy, environment, rounds):
    """Play through the policy's calls; all rows and rewards it has learned from."""
    rows, rewards = [], []
    while sum(map(len, rewards)) < rounds:
        drawn = environment.draw(min(policy.remaining, rounds - sum(map(len, rewards))))
        decisions = policy.select_batch(drawn.contexts)
        outcome = drawn.settle(decisions.arms)
        policy.update_batch(decisions, outcome.rewards)
        rows.append(outcome.rows.astype(np.float64))
        rewards.append(outcome.rewards)
    return np.concatenate(rows), np.concatenate(rewards)


@pytest.mark.parametrize("make", PEERS)
def test_every_peer_is_a_policy_and_learns(make):
    policy = make(epsilon=20.0)
    assert isinstance(policy, Policy)
    random = UniformRandom(6).play(world(), 2000).regret.mean()
    assert policy.play(world(), 2048).regret[-512:].mean() < 0.5 * random
    one = make()
    contexts = np.random.default_rng(1).standard_normal((3, 6))
    assert one.update(one.select(contexts), 1.0) and one.rounds == 1


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("make", [make_tree, make_blocks])
def test_without_noise_second_moments_give_the_ridge_regression_of_all_rows(make):
    # Norms that no row reaches: nothing is cut, and what is left is the rounding to integers.
    policy = make(context_norm=9.0, reward_clip=9.0, optimistic=False, epsilon=1e4)
    rows, rewards = played_rows(policy, world(), 512)
    if isinstance(policy.rule, rules.Blocks):
        assert policy.rule.noise_rows < 0.01  # weights of blocks are 1
    released = rules.Released(np.zeros(0), 512.0, 1.0)
    ridge = np.linalg.solve(rows.T @ rows + policy._shift(released) * np.eye(6), rows.T @ rewards)
    assert np.allclose(policy.estimate, ridge, rtol=0.02, atol=2e-3)


@pytest.mark.usefixtures("no_noise")
def test_without_noise_optimism_is_that_of_linucb():
    policy = make_tree(context_norm=9.0, reward_clip=9.0, epsilon=1e4)
    rows, rewards = played_rows(policy, world(), 512)
    matrix = rows.T @ rows + policy._shift(rules.Released(np.zeros(0), 512.0, 1.0)) * np.eye(6)
    contexts = world(seed=8).draw(200).contexts.astype(np.float64)
    width = np.sqrt(np.einsum("nki,ij,nkj->nk", contexts, np.linalg.inv(matrix), contexts))
    bounds = contexts @ np.linalg.solve(matrix, rows.T @ rewards) + policy._bonus * width
    assert (policy._arms(contexts) == bounds.argmax(axis=1)).mean() > 0.98


@pytest.mark.usefixtures("no_noise")
def test_without_noise_the_moment_is_that_of_all_rows_and_the_threshold_keeps_the_largest():
    plain, top = (
        make_moment(reward_scale=50.0, epsilon=1e4),
        make_moment(reward_scale=50.0, epsilon=1e4, sparsity=2),
    )
    rows, rewards = played_rows(plain, world(), 256)
    assert np.allclose(plain.estimate, rows.T @ rewards / 256, atol=5e-3)
    played_rows(top, world(), 64)
    kept = np.flatnonzero(top.estimate)
    assert len(kept) == 2 and set(kept) == set(world().truth[0])


def test_calibrated_noise_is_what_the_claim_needs_and_is_the_formula():
    tree, blocks, moment = make_tree(), make_blocks(), make_moment()
    assert [policy.rule.nodes for policy in (tree, blocks, moment)] == [6, 1, 1]
    for policy in (tree, blocks, moment):
        privacy = policy.privacy
        assert privacy.kept and privacy.epsilon == pytest.approx(1.0, rel=1e-4)
        assert privacy.notion == "joint" and "keeps the claimed 1" in str(privacy)
        assert policy.noise == policy.statistic.noise(policy.rule.nodes, policy.noise.parts[0].sigma)
    # sqrt(m) times the noise of one release.
    ratio = tree.noise.parts[0].sigma / blocks.noise.parts[0].sigma
    assert ratio == pytest.approx(math.sqrt(6), rel=1e-4)


def test_published_noise_of_the_tree_is_the_formula_and_far_more_than_its_claim_needs():
    horizon, norm, clip = 20_000, math.sqrt(20), 4.0
    policy = ShariffSheffet(20, 1.0, DELTA, horizon=horizon, calibration="paper", leaf=1)
    levels = 16  # ceil(log2 T) + 1
    s = math.sqrt(16 * levels * (norm**2 + clip**2) ** 2 * math.log(4 / DELTA) ** 2)
    assert paper_deviation(horizon, norm**2 + clip**2, 1.0, DELTA) == pytest.approx(s, rel=1e-12)
    assert policy.statistic.gram_deviation(policy.noise) == pytest.approx(s, rel=1e-6)
    # rho = eps^2 / (32 ln^2(4/delta)) with one level more than a row needs: 15 of 16.
    rho = float(policy.noise.mu_squared) / 2
    assert rho == pytest.approx(15 / 16 / (32 * math.log(4 / DELTA) ** 2), rel=1e-3)
    assert policy.privacy.kept and policy.privacy.epsilon < 0.02


@pytest.mark.parametrize(
    ("epsilon", "times"), [(0.5, 12.7), (1.0, 10.9), (2.0, 9.4), (5.0, 7.5), (10.0, 6.2)]
)
def test_published_noise_of_the_tree_is_that_many_times_what_zcdp_asks_for(epsilon, times):
    from fliphat.privacy import rho_from_epsilon

    published = paper_deviation(2**15, 1.0, epsilon, DELTA)
    needed = math.sqrt(16 / (2 * rho_from_epsilon(epsilon, DELTA)))
    assert published / needed == pytest.approx(times, rel=0.01)


def test_rayleigh_quotients_of_released_matrices_switch_rarely():
    assert largest_quotient(np.diag([1.0, 4.0]), np.diag([3.0, 4.0])) == pytest.approx(3.0)
    assert largest_quotient(np.diag([1.0, -1.0]), np.eye(2)) == math.inf
    rare = make_blocks(switching="rayleigh", horizon=4096, leaf=16, epsilon=50.0, factor=2.0)
    rare.play(world(), 4096)
    assert 3 <= rare.switches < 40  # of 256 releases
    # A determinant can stand still while one direction is ten times better known.
    before, now = np.diag([1.0, 10.0]), np.diag([10.0, 1.0])
    assert np.linalg.det(now) == pytest.approx(np.linalg.det(before))
    assert largest_quotient(before, now) == pytest.approx(10.0)


def test_seeds_repeat_a_simulation_and_no_seed_draws_fresh_noise():
    def estimate(seed):
        policy = make_moment(seed=seed)
        played_rows(policy, world(), 64)
        return policy.estimate

    assert (estimate(5) == estimate(5)).all() and (estimate(5) != estimate(6)).any()
    policies = [make_moment(seed=None) for _ in range(2)]
    for policy in policies:
        rows = np.tile(np.eye(6, dtype=np.float32), (11, 1))[:64]
        policy._take_in(rows, np.zeros(64))
    assert (policies[0].estimate != policies[1].estimate).all()


@pytest.mark.parametrize("make", PEERS)
def test_bad_input(make):
    with pytest.raises(ValueError, match="delta must be above 0 for Gaussian noise"):
        make(delta=0.0)
    with pytest.raises(ValueError, match="epsilon must be"):
        make(epsilon=0.0)
    with pytest.raises(ValueError, match=r"policy's dim = 6, got dim = 7"):
        make().play(world(dim=7), 5)


def test_contexts_beyond_their_norm_are_cut_and_not_refused():
    policy = make_blocks(optimistic=False)
    rows = np.full((64, 6), 1e30, np.float32)
    rows[3] = np.nan
    policy._take_in(rows, np.full(64, 1e30))
    assert np.isfinite(policy.estimate).all()


@pytest.mark.parametrize("dim", [1, 2])
def test_few_columns_work(dim):
    for policy in (
        ShariffSheffet(dim, 5.0, DELTA, horizon=512, seed=1),
        MomentGreedy(dim, 5.0, DELTA, seed=1),
    ):
        assert len(policy.play(world(dim=dim, sparsity=1), 512)) == 512
