"""Dense environments: what they draw, and that drawing lazily changes nothing but the time it takes."""

import pickle

import numpy as np
import pytest
import scipy.stats

from fliphat import kernels
from fliphat.environments import (
    AR1,
    Blocks,
    Equicorrelated,
    HeavyTailed,
    Independent,
    SparseLinear,
    TruncatedNormal,
    Uniform,
    sparse_truth,
)

DIM = 12
TRUTH = (np.array([2, 3, 7]), np.array([0.8, -0.6, 1.0]))
# Only two columns in common with the truth, so that some coordinates are drawn for the estimate alone.
ESTIMATE = (np.array([0, 3, 7, 10]), np.array([0.5, -0.7, 0.9, 0.4]))
DESIGNS = [
    AR1(0.6),
    AR1(-0.5),
    Equicorrelated(0.4),
    Blocks(0.7, width=5),
    Independent(),
    Uniform(),
    TruncatedNormal(1.5),
    HeavyTailed(),
]


def world(contexts, seed, **options):
    return SparseLinear(DIM, 3, coefficients=TRUTH, contexts=contexts, seed=seed, **options)


def covariance(contexts):
    lag = np.abs(np.arange(DIM)[:, None] - np.arange(DIM))
    if isinstance(contexts, AR1):
        return contexts.phi**lag
    if isinstance(contexts, Equicorrelated):
        return np.where(lag == 0, 1.0, contexts.rho)
    if isinstance(contexts, Blocks):
        block = np.arange(DIM) // contexts.width
        return np.where(lag == 0, 1.0, contexts.rho * (block[:, None] == block))
    bound = getattr(contexts, "bound", None)
    variance = 1.0 if bound is None else scipy.stats.truncnorm(-bound, bound).var()
    return variance * np.eye(DIM)


def greedy(env, rounds, estimate):
    """Play by drawing whole rounds and scoring them, as any policy would."""
    drawn = env.draw(rounds)
    dense = np.zeros(DIM)
    dense[estimate[0]] = estimate[1]
    return drawn.settle(kernels.select_arms(drawn.contexts, dense, np.random.default_rng(env.seed)))


def distance(first, second):
    """Largest difference of means, in standard errors, over moments of rows, rewards and regret."""

    def features(outcome):
        x = outcome.rows.astype(float)
        pairs = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        return np.hstack(
            [x, pairs, x * outcome.rewards[:, None], outcome.regret[:, None], outcome.rewards[:, None]]
        )

    a, b = features(first), features(second)
    error = np.sqrt(a.var(0) / len(a) + b.var(0) / len(b))
    return float(np.max(np.abs(a.mean(0) - b.mean(0)) / error))


# 169 moments: all within 5 standard errors with probability 0.9999.
REJECT = 5.0


@pytest.mark.parametrize("contexts", DESIGNS, ids=str)
def test_plain_contexts_have_the_stated_covariance(contexts):
    rows = world(contexts, 1).draw(40_000).contexts.reshape(-1, DIM).astype(float)
    # Fourth moments are at most 3 times the squared variance: an entry's error is below sqrt(2/n) = 0.0041.
    # Those of heavy tails are infinite, which makes variances rougher.
    margin = 0.1 if isinstance(contexts, HeavyTailed) else 0.025
    np.testing.assert_allclose(rows.T @ rows / len(rows), covariance(contexts), atol=margin)
    np.testing.assert_allclose(rows.mean(0), 0, atol=0.015)


@pytest.mark.parametrize("contexts", DESIGNS, ids=str)
def test_coordinates_have_the_stated_distribution(contexts):
    draws = world(contexts, 2).draw(3000).contexts[:, :, 5].ravel()
    bound = getattr(contexts, "bound", None)
    law = scipy.stats.norm
    if bound is not None:
        law = scipy.stats.truncnorm(-bound, bound)
        assert np.abs(draws).max() <= bound
    if isinstance(contexts, Uniform):
        law = scipy.stats.uniform(-np.sqrt(3), 2 * np.sqrt(3))
        assert np.abs(draws).max() <= np.sqrt(3)
    if isinstance(contexts, HeavyTailed):
        law = scipy.stats.t(4, scale=1 / np.sqrt(2))
        assert scipy.stats.kstest(draws, scipy.stats.norm.cdf).pvalue < 1e-4
    assert scipy.stats.kstest(draws, law.cdf).pvalue > 1e-4
    assert scipy.stats.kstest(1.15 * draws, law.cdf).pvalue < 1e-4


@pytest.mark.parametrize("contexts", DESIGNS, ids=str)
def test_lazy_and_plain_have_the_same_distribution(contexts):
    lazy = world(contexts, 11).play(60_000, ESTIMATE)
    plain = greedy(world(contexts, 12), 60_000, ESTIMATE)
    assert distance(lazy, plain) < REJECT
    assert scipy.stats.ks_2samp(lazy.regret, plain.regret).pvalue > 1e-4


def test_one_factor_instead_of_one_a_block_is_rejected():
    lazy = world(Equicorrelated(0.7), 11).play(60_000, ESTIMATE)
    plain = greedy(world(Blocks(0.7, width=5), 12), 60_000, ESTIMATE)
    assert distance(lazy, plain) > 10 * REJECT


def test_a_bridge_replaced_by_independent_draws_is_rejected():
    lazy = world(AR1(0.6), 11).play(60_000, ESTIMATE)
    plain = greedy(world(AR1(0.6), 12), 60_000, ESTIMATE)
    known = np.union1d(TRUTH[0], ESTIMATE[0])
    broken = lazy.rows.copy()
    rest = np.setdiff1d(np.arange(DIM), known)
    broken[:, rest] = np.random.default_rng(0).standard_normal((len(broken), len(rest)))
    assert distance(type(lazy)(lazy.arms, lazy.rewards, lazy.regret, broken), plain) > 10 * REJECT


def test_a_bridge_that_forgets_its_right_end_is_rejected():
    lazy = world(AR1(0.6), 11).play(60_000, ESTIMATE)
    plain = greedy(world(AR1(0.6), 12), 60_000, ESTIMATE)
    broken = lazy.rows.copy()
    fresh = np.random.default_rng(0).standard_normal(len(broken))
    broken[:, 9] = 0.6 * broken[:, 8] + 0.8 * fresh  # column 10 is known, and not asked
    assert distance(type(lazy)(lazy.arms, lazy.rewards, lazy.regret, broken), plain) > 5 * REJECT


def test_regret_of_another_estimate_is_rejected():
    lazy = world(AR1(0.6), 11).play(60_000, ESTIMATE)
    other = (ESTIMATE[0], np.array([0.5, -0.7, 0.8, 0.4]))
    assert distance(lazy, greedy(world(AR1(0.6), 12), 60_000, other)) > REJECT


@pytest.mark.parametrize("contexts", DESIGNS, ids=str)
@pytest.mark.parametrize("reward", ["linear", "binary"])
def test_lazy_and_plain_are_the_same_bits_where_the_estimate_stays_on_the_truths_support(contexts, reward):
    estimate = (np.array([2, 7]), np.array([1.0, 0.7]))
    lazy = world(contexts, 5, reward=reward).play(500, estimate)
    plain = greedy(world(contexts, 5, reward=reward), 500, estimate)
    for name in ("arms", "rewards", "regret", "rows"):
        np.testing.assert_array_equal(getattr(lazy, name), getattr(plain, name))


def test_means_and_regret_are_those_of_the_rows():
    env = world(AR1(0.3), 4, noise_scale=0.0)
    drawn = env.draw(200)
    dense = env.coefficients
    np.testing.assert_allclose(drawn.means, drawn.contexts.astype(float) @ dense, rtol=1e-12, atol=1e-14)
    outcome = drawn.settle(np.zeros(200, int))
    np.testing.assert_array_equal(outcome.rewards, drawn.means[:, 0])
    np.testing.assert_array_equal(outcome.regret, drawn.means.max(1) - drawn.means[:, 0])
    env.reset()
    lazy = env.play(200, ESTIMATE)
    np.testing.assert_allclose(lazy.rewards, lazy.rows.astype(float) @ dense, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(lazy.regret, drawn.means.max(1) - lazy.rewards, atol=1e-14)


def test_the_chosen_arm_is_the_greedy_one():
    # The other arms' rows are never completed, so the chosen score is checked against its distribution.
    outcome = world(Independent(), 3).play(20_000, ESTIMATE)
    scores = outcome.rows[:, ESTIMATE[0]].astype(float) @ ESTIMATE[1]
    # Largest of three standard normals: mean 0.846, variance 0.559.
    deviation = np.linalg.norm(ESTIMATE[1])
    assert abs(scores.mean() / deviation - 0.846) < 5 * np.sqrt(0.559 / 20_000)


def test_no_estimate_plays_uniformly():
    for estimate in (None, np.zeros(DIM)):
        counts = np.bincount(world(AR1(), 8).play(30_000, estimate, rows=False).arms, minlength=3)
        assert scipy.stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        ("gaussian", scipy.stats.norm(0, 0.5)),
        ("uniform", scipy.stats.uniform(-0.5, 1.0)),
    ],
)
def test_noise_has_the_stated_distribution(noise, law):
    drawn = world(AR1(), 6, noise=noise, noise_scale=0.5).draw(5000)
    noise = drawn.settle(np.zeros(5000, int)).rewards - drawn.means[:, 0]
    assert scipy.stats.kstest(noise, law.cdf).pvalue > 1e-4
    assert scipy.stats.kstest(noise * 1.2, law.cdf).pvalue < 1e-4


def test_rademacher_noise_is_a_fair_sign():
    drawn = world(AR1(), 6, noise="rademacher", noise_scale=0.25).draw(5000)
    noise = drawn.settle(np.zeros(5000, int)).rewards - drawn.means[:, 0]
    np.testing.assert_allclose(np.abs(noise), 0.25, atol=1e-12)
    assert scipy.stats.binomtest(int((noise > 0).sum()), 5000).pvalue > 1e-4


def test_binary_rewards_follow_the_logistic_mean():
    env = world(AR1(), 6, reward="binary")
    drawn = env.draw(20_000)
    np.testing.assert_allclose(
        drawn.means, 1 / (1 + np.exp(-drawn.contexts.astype(float) @ env.coefficients))
    )
    outcome = drawn.settle(drawn.means.argmax(1))
    assert set(outcome.rewards) == {0.0, 1.0}
    mean = drawn.means.max(1)
    error = np.sqrt((mean * (1 - mean)).sum())
    assert abs((outcome.rewards - mean).sum()) < 4 * error
    assert abs((outcome.rewards - 1.05 * mean).sum()) > 4 * error


def test_scaling_contexts_scales_rows_and_means():
    one, ten = (world(AR1(0.6), 9, context_scale=scale, noise_scale=0.0) for scale in (1.0, 10.0))
    a, b = one.play(300, ESTIMATE), ten.play(300, ESTIMATE)
    np.testing.assert_array_equal(a.arms, b.arms)
    np.testing.assert_allclose(b.rows, 10 * a.rows, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(b.regret, 10 * a.regret, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("contexts", [AR1(0.6), Blocks(0.7, width=5)], ids=str)
def test_a_mean_moves_rows_and_rewards_and_no_choice(contexts):
    plain, moved = world(contexts, 9), world(contexts, 9, context_mean=2.0, reward_offset=10.0)
    raised = 2.0 * TRUTH[1].sum() + 10.0
    a, b = plain.play(300, ESTIMATE), moved.play(300, ESTIMATE)
    np.testing.assert_array_equal(a.arms, b.arms)
    np.testing.assert_array_equal(a.regret, b.regret)
    np.testing.assert_array_equal(a.rows + np.float32(2), b.rows)
    np.testing.assert_allclose(b.rewards - a.rewards, raised, rtol=1e-12)
    a, b = plain.draw(50), moved.draw(50)
    np.testing.assert_array_equal(a.contexts + np.float32(2), b.contexts)
    np.testing.assert_allclose(b.means - a.means, raised, rtol=1e-12)
    np.testing.assert_allclose(b.means, b.contexts.astype(float) @ moved.coefficients + 10, atol=1e-5)


def test_units_change_rows_and_coefficients_and_no_reward():
    units = np.geomspace(1 / 30, 30, DIM)
    plain = SparseLinear(DIM, 3, sparsity=4, seed=9)
    other = SparseLinear(DIM, 3, sparsity=4, seed=9, column_scales=units)
    np.testing.assert_allclose(other.coefficients * units, plain.coefficients, rtol=1e-6)
    a, b = plain.play(300, plain.truth), other.play(300, other.truth)
    np.testing.assert_array_equal(a.arms, b.arms)
    np.testing.assert_allclose(b.rows, a.rows * units, rtol=1e-5)
    np.testing.assert_allclose(a.rewards, b.rewards, atol=1e-6)
    # An estimate is one of the columns as they are offered.
    assert other.play(300, plain.truth).regret.sum() > 0 == other.play(300, other.truth).regret.sum()
    drawn = other.draw(50)
    np.testing.assert_allclose(drawn.means, drawn.contexts.astype(float) @ other.coefficients, atol=1e-5)


def test_seeds_and_rounds_say_everything():
    whole = world(AR1(), 3).play(300, ESTIMATE)
    env = world(AR1(), 3)
    parts = [env.play(n, ESTIMATE) for n in (1, 99, 200)]
    assert env.round == 300
    for name in ("arms", "rewards", "regret", "rows"):
        np.testing.assert_array_equal(getattr(whole, name), np.concatenate([getattr(p, name) for p in parts]))
    env.reset(100)
    np.testing.assert_array_equal(env.play(200, ESTIMATE).rows, whole.rows[100:])
    assert not np.array_equal(whole.rewards, world(AR1(), 4).play(300, ESTIMATE).rewards)


def test_all_policies_meet_the_same_means_and_luck():
    a = world(AR1(0.6), 3).play(100, None, rows=False)
    b = world(AR1(0.6), 3).play(100, ESTIMATE, rows=False)
    best_a, best_b = a.rewards + a.regret, b.rewards + b.regret
    np.testing.assert_allclose(best_a, best_b, atol=1e-12)


def test_a_pickled_environment_goes_on_where_it_was():
    env = world(Equicorrelated(0.2), 3)
    env.play(10, ESTIMATE)
    copy = pickle.loads(pickle.dumps(env))
    np.testing.assert_array_equal(copy.play(20, ESTIMATE).rows, env.play(20, ESTIMATE).rows)


def test_rows_are_written_where_asked_and_left_out_where_not():
    out = np.full((8, DIM), np.nan, np.float32)
    outcome = world(AR1(), 1).play(5, ESTIMATE, out=out)
    assert np.shares_memory(outcome.rows, out) and outcome.rows.dtype == np.float32
    assert np.isfinite(out[:5]).all() and np.isnan(out[5:]).all()
    np.testing.assert_array_equal(outcome.rows, world(AR1(), 1).play(5, ESTIMATE).rows)
    bare = world(AR1(), 1).play(5, ESTIMATE, rows=False)
    assert bare.rows is None
    np.testing.assert_array_equal(bare.rewards, outcome.rewards)


def test_zero_rounds_are_no_rounds():
    env = world(AR1(), 1)
    assert len(env.play(0, ESTIMATE)) == 0 and len(env.draw(0).settle(np.zeros(0, int))) == 0


def test_truth_is_seeded_sparse_and_in_range():
    columns, values = sparse_truth(50, 8, positions="random", seed=1)
    assert np.all(np.diff(columns) > 0) and columns.max() < 50
    assert np.all((np.abs(values) >= 0.5) & (np.abs(values) <= 1.0))
    np.testing.assert_array_equal(values, sparse_truth(50, 8, seed=1)[1])
    assert not np.array_equal(values, sparse_truth(50, 8, seed=2)[1])
    many = np.concatenate([sparse_truth(20, 20, seed=s)[1] for s in range(200)])
    assert scipy.stats.kstest(np.abs(many), scipy.stats.uniform(0.5, 0.5).cdf).pvalue > 1e-4
    assert scipy.stats.binomtest(int((many > 0).sum()), len(many)).pvalue > 1e-4


def test_the_stream_is_pinned():
    # Published results depend on these: a change here is a value-breaking changelog entry.
    outcome = SparseLinear(dim=40, arms=3, sparsity=3, seed=123).play(
        3, (np.array([1, 9]), np.array([1.0, 2.0]))
    )
    assert outcome.arms.tolist() == PINNED_ARMS
    np.testing.assert_allclose(outcome.rows[:, [0, 9, 39]], PINNED_ROWS, rtol=1e-5)
    np.testing.assert_allclose(outcome.rewards, PINNED_REWARDS, rtol=1e-6)


PINNED_ARMS = [0, 0, 0]
PINNED_ROWS = [
    [0.2799276, 0.5585564, -0.6921397],
    [-0.2874007, 1.459514, 0.597174],
    [0.2186159, 0.6731522, 0.45743],
]
PINNED_REWARDS = [1.45336681, 0.243450937, 0.492934968]
