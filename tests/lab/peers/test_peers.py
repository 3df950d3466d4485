"""The peers: each equals its non-private form without noise, and buys what its noise buys."""

import math
from fractions import Fraction

import numpy as np
import pytest

from fliphat.environments import SparseLinear
from fliphat.lab.audit import audit_case
from fliphat.lab.audit.peers import peer_cases
from fliphat.lab.baselines import UniformRandom
from fliphat.lab.peers import (
    AdaCOFUL,
    ChowdhuryZhou,
    HanOLS,
    HanSGD,
    MomentGreedy,
    PrivateFrankWolfe,
    RareSwitching,
    ShariffSheffet,
    ZhengLocal,
    chowdhury_zhou,
    rules,
    zheng,
)
from fliphat.lab.peers import peer as peers_base
from fliphat.lab.peers.frank_wolfe import vertex_cost
from fliphat.lab.peers.han_local import sphere_radius
from fliphat.lab.peers.rare_switching import largest_quotient
from fliphat.lab.peers.shariff_sheffet import paper_deviation
from fliphat.policies import Policy

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


def make_adac(**options):
    return AdaCOFUL(6, **{"epsilon": 1.0, "delta": DELTA, "seed": 1, **options})


def make_zheng(**options):
    return ZhengLocal(
        6, **{"epsilon": 1.0, "delta": DELTA, "horizon": 2048, "optimistic": False, "seed": 1, **options}
    )


def make_ols(**options):
    return HanOLS(6, **{"epsilon": 1.0, "delta": DELTA, "seed": 1, **options})


def make_batches(**options):
    return ChowdhuryZhou(
        6, **{"epsilon": 1.0, "delta": DELTA, "horizon": 2048, "optimistic": False, "seed": 1, **options}
    )


PEERS = [make_tree, make_blocks, make_moment, make_adac, make_zheng, make_ols, make_batches]


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
    policy = make(epsilon=100.0)
    assert isinstance(policy, Policy)
    random = UniformRandom(6).play(world(), 2000).regret.mean()
    assert policy.play(world(), 2048).regret[-512:].mean() < 0.5 * random
    one = make()
    contexts = np.random.default_rng(1).standard_normal((3, 6))
    assert one.update(one.select(contexts), 1.0) and one.rounds == 1


def _last_release(policy, rounds):
    """The last boundary of a policy's rule, from 0 to `rounds`."""
    end = 0
    while policy.rule.after(end) <= rounds:
        end = policy.rule.after(end)
    return end


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("make", [make_tree, make_blocks, make_zheng, make_batches])
def test_without_noise_second_moments_give_the_ridge_regression_of_all_rows(make):
    # Norms that no row reaches: nothing is cut, and what is left is the rounding to integers.
    policy = make(context_norm=9.0, reward_clip=9.0, optimistic=False, epsilon=1e4)
    seen, read = [], policy._read
    policy._read = lambda released: (seen.append(released), read(released))
    rows, rewards = played_rows(policy, world(), 512)
    rows, rewards = rows[: _last_release(policy, 512)], rewards[: _last_release(policy, 512)]
    if isinstance(policy.rule, rules.Blocks):
        assert policy.rule.noise_rows < 0.01  # weights of blocks are 1
    ridge = np.linalg.solve(rows.T @ rows + policy._shift(seen[-1]) * np.eye(6), rows.T @ rewards)
    assert np.allclose(policy.estimate, ridge, rtol=0.02, atol=2e-3)


@pytest.mark.usefixtures("no_noise")
def test_without_noise_optimism_is_that_of_linucb():
    policy = make_tree(context_norm=9.0, reward_clip=9.0, epsilon=1e4)
    rows, rewards = played_rows(policy, world(), 512)
    matrix = rows.T @ rows + policy._shift(rules.ReleasedSums(np.zeros(0), 512.0, 1.0)) * np.eye(6)
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


@pytest.mark.usefixtures("no_noise")
def test_without_noise_adac_is_ridge_regression_on_episodes_of_a_growing_determinant():
    policy = make_adac(context_norm=9.0, reward_clip=9.0, optimistic=False, epsilon=1e4, check_every=8)
    rows, rewards = played_rows(policy, world(), 512)
    assert 10 < policy.episodes < 64
    expected, end, before = None, 0, 6 * math.log(0.1 * 81)
    for t in range(8, 513, 8):
        matrix = rows[:t].T @ rows[:t] + 0.1 * 81 * np.eye(6)
        if np.linalg.slogdet(matrix)[1] > before + math.log(2.0):
            before, end = np.linalg.slogdet(matrix)[1], t
            expected = np.linalg.solve(matrix, rows[:t].T @ rewards[:t])
    assert end and np.allclose(policy.estimate, expected, atol=2e-3)


@pytest.mark.usefixtures("no_noise")
def test_without_noise_restarted_least_squares_sees_the_last_block_alone():
    policy = make_ols(context_norm=9.0, reward_clip=9.0, epsilon=1e4)
    rows, rewards = played_rows(policy, world(), 6 * 64)
    rows, rewards = rows[6 * 32 :], rewards[6 * 32 :]
    shift = policy._shift(rules.ReleasedSums(np.zeros(0), 192.0, 192.0))
    ridge = np.linalg.solve(rows.T @ rows + shift * np.eye(6), rows.T @ rewards)
    assert np.allclose(policy.estimate, ridge, rtol=0.02, atol=5e-3)


def test_with_little_noise_gradient_steps_and_frank_wolfe_find_the_truth():
    for policy in (
        HanSGD(6, 20.0, seed=1),
        PrivateFrankWolfe(6, 1e4, DELTA, horizon=4000, seed=1),
    ):
        played = policy.play(world(), 4000)
        assert played.regret[-500:].mean() < 0.1
        assert isinstance(policy, Policy) and policy.rounds == 4000


@pytest.mark.usefixtures("no_noise")
def test_without_noise_frank_wolfe_picks_the_largest_entry_of_the_mean_gradient(monkeypatch):
    policy = PrivateFrankWolfe(6, 1.0, DELTA, horizon=1000, gradient_clip=1e3, seed=1)
    monkeypatch.setattr(
        policy,
        "_vertex",
        lambda scale: (
            int(np.abs(policy._sum).argmax()),
            -int(np.sign(policy._sum[np.abs(policy._sum).argmax()])),
        ),
    )
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((60, 6)), rng.standard_normal(60)
    theta, before, mean = np.zeros(6), np.zeros(6), np.zeros(6)
    for t, (x, reward) in enumerate(zip(X, y, strict=True), 1):
        now, then = (x @ theta - reward) * x, (x @ before - reward) * x
        mean = now + (1 - 1 / t) * (mean - then)
        vertex = np.zeros(6)
        vertex[np.abs(mean).argmax()] = -4.0 * np.sign(mean[np.abs(mean).argmax()])
        before, theta = theta, theta + (vertex - theta) / (t + 1)
        policy.rounds = t
        policy._step_on(x, reward)
    assert np.allclose(policy._theta, theta, atol=1e-9)


def test_published_local_noise_is_the_formula_and_costs_nine_over_its_square():
    s = 6 * math.sqrt(2 * math.log(2.5 / DELTA))
    assert zheng.paper_deviation(1.0, DELTA) == pytest.approx(s)
    policy = make_zheng(calibration="paper")
    assert float(policy.noise.mu_squared) / 2 == pytest.approx(9 / s**2, rel=1e-4)
    assert policy.privacy.notion == "local" and policy.privacy.kept


@pytest.mark.parametrize(
    ("claimed", "kept"), [(1.0, True), (10.0, True), (18.0, True), (25.0, False), (8e5, False)]
)
def test_published_local_noise_keeps_its_claim_for_small_epsilon_only(claimed, kept):
    s = zheng.paper_deviation(claimed, DELTA)
    needed = peers_base.bought(make_zheng(calibration="paper", epsilon=min(claimed, 100.0)).noise, DELTA)
    if claimed <= 100:
        assert (needed <= claimed) == kept
    else:
        assert 9 / s**2 > 1e9  # a zCDP cost at which nothing is left to keep


def test_batches_of_the_authors_code_do_not_keep_their_claim():
    deviation = chowdhury_zhou.paper_deviation(97, 1.0, DELTA)
    assert deviation == pytest.approx(math.sqrt(math.log(2.5 * 97 / DELTA)))
    policy = make_batches(calibration="paper")
    assert policy.rule.size == 97
    # x x' moves by sqrt(2) and x y by 2, each with that deviation.
    assert float(policy.noise.mu_squared) == pytest.approx(6 / deviation**2, rel=1e-4)
    assert not policy.privacy.kept and "does NOT keep" in str(policy.privacy)


def test_rewards_only_is_said_plainly():
    policy = make_adac(calibration="paper")
    assert "contexts are public" in str(policy.privacy) and policy.privacy.notion == "rewards only"
    rho = float(policy.noise.mu_squared) / 2
    from fliphat.privacy import rho_from_epsilon

    assert rho == pytest.approx(rho_from_epsilon(1.0, DELTA), rel=1e-4)
    assert policy.privacy.kept  # zCDP's rho is a little dearer than the exact price


def test_spheres_have_the_published_radius_at_any_dimension_and_are_unbiased():
    assert sphere_radius(20, 1.0) == pytest.approx(12.0, abs=0.05)
    assert sphere_radius(400, 1.0) == pytest.approx(54.2, abs=0.05)
    with pytest.raises(OverflowError):
        math.gamma(401 / 2)  # what the published code divides
    policy = HanSGD(3, 1.0, gradient_clip=2.0, seed=3)
    gradient = np.array([0.5, -1.0, 0.3])
    sent = np.array([policy._send(gradient) for _ in range(60_000)])
    assert np.allclose(np.linalg.norm(sent, axis=1), policy._length)
    assert np.allclose(sent.mean(axis=0), gradient, atol=5 * policy._length / math.sqrt(3 * 60_000))


def test_picks_of_vertices_cost_what_their_scales_say():
    policy = PrivateFrankWolfe(6, 1.0, DELTA, horizon=500, seed=1)
    exact = sum(Fraction(2**32, 2 * int(scale) ** 2) for scale in policy.scales)
    cost = vertex_cost(policy.scales, Fraction(1, 2))
    assert 0 <= cost - exact <= Fraction(500, 2**60)
    assert policy.privacy.kept and policy.privacy.epsilon == pytest.approx(1.0, rel=1e-3)
    assert policy.privacy.proven
    ratio = policy.scales[399] / policy.scales[99]
    assert ratio == pytest.approx(2.0, rel=1e-4)  # grows as sqrt(t)


def test_replacing_a_round_moves_every_later_sum_of_frank_wolfe_by_no_more_than_charged():
    rng = np.random.default_rng(9)
    for _ in range(20):
        sums = []
        rows, rewards = rng.standard_normal((6, 4)) * 1e3, rng.standard_normal(6) * 1e3
        for side in (1, -1):
            policy = PrivateFrankWolfe(4, 1.0, DELTA, horizon=8, seed=1)
            policy._vertex = lambda scale: (0, 1)  # what was released is the same on both sides
            for t in range(1, 7):
                policy.rounds = t
                row = side * rows[2] if t == 3 else rows[t - 1]
                policy._step_on(row, rewards[t - 1] * (side if t == 3 else 1))
            sums.append(policy._sum)
        assert np.abs(sums[0] - sums[1]).max() <= 2**16


def test_frank_wolfe_without_a_seed_picks_with_the_kernel_and_ends_with_its_horizon():
    policy = PrivateFrankWolfe(3, 1.0, DELTA, horizon=3)
    policy.play(world(dim=3, sparsity=1), 3)
    with pytest.raises(ValueError, match="at most the horizon = 3"):
        policy.play(world(dim=3, sparsity=1), 1)


@pytest.mark.parametrize("case", peer_cases(), ids=lambda case: case.name)
def test_claims_of_released_sums_stand_and_broken_ones_are_caught(case):
    finding = audit_case(case, 100_000, seed=1)
    assert finding.as_it_should_be, finding
    if not finding.control and case.cost == 1:
        assert finding.lower_bound > 0.8  # the neighbours hurt: half the noise would be refuted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "floor"),
    [
        (
            lambda seed: ShariffSheffet(20, 1.0, DELTA, horizon=20_000, optimistic=False, seed=seed),
            (0.0, 0.10),
        ),
        (lambda seed: RareSwitching(20, 1.0, DELTA, optimistic=False, seed=seed), (0.0, 0.04)),
        (lambda seed: MomentGreedy(20, 1.0, DELTA, seed=seed), (0.0, 0.04)),
        (
            lambda seed: ShariffSheffet(20, 1.0, DELTA, horizon=20_000, calibration="paper", seed=seed),
            (0.95, 1.1),
        ),
        (
            lambda seed: ZhengLocal(20, 1.0, DELTA, horizon=20_000, calibration="paper", seed=seed),
            (0.95, 1.1),
        ),
    ],
)
def test_calibrated_peers_learn_and_published_ones_play_at_random(make, floor):
    shares = []
    for seed in range(15_000, 15_010):
        worlds = [SparseLinear(20, arms=3, sparsity=5, seed=seed) for _ in range(2)]
        random = UniformRandom(20, seed=seed).play(worlds[0], 20_000).regret.sum()
        shares.append(make(seed).play(worlds[1], 20_000).regret.sum() / random)
    assert floor[0] <= np.mean(shares) <= floor[1]
