"""The engine of noisy sums: scales as fractions, sensitivities by search, rules of release."""

import math
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from fliphat import reference
from fliphat.lab.peers.rules import Batches, Blocks, Local, Tree
from fliphat.lab.peers.sums import (
    RADIUS,
    GramAndMoment,
    Moments,
    Noise,
    SecondMoments,
    bought,
    ceil_root_two,
    price,
)
from fliphat.privacy import composition
from fliphat.reference import _fits as fit_twins

B = RADIUS
STATISTICS = [
    SecondMoments(3, context_norm=1.0, reward_clip=2.0, reward_share=0.5),
    Moments(3, product_clip=2.0),
    GramAndMoment(3, context_norm=1.0, reward_clip=2.0),
]


def kept_exact(sums, times=1):
    return sums.astype(np.float64)


def hurtful_rows(rng, count, dim):
    """Rows and rewards of all sizes: tiny, at the clip, huge, infinite, along one axis or two."""
    rows = rng.standard_normal((count, dim)) * np.exp(rng.uniform(-3, 30, (count, 1)))
    rows[::5] = np.eye(dim)[rng.integers(0, dim, len(rows[::5]))] * rng.choice(
        [-1, 1, 1e9], (len(rows[::5]), 1)
    )
    rows[1::7] = 0
    rewards = rng.standard_normal(count) * np.exp(rng.uniform(-3, 30, count))
    rewards[::3] = rng.choice([-2.0, 0.0, 2.0], len(rewards[::3]))
    rows[2], rewards[4], rewards[6] = np.nan, np.inf, np.nan
    return rows, rewards


def mu_squared_of(statistic, sigmas, first, second):
    """Squared shift in standard deviations between two sums, as a fraction."""
    spread = statistic.spread(statistic.noise(1, *sigmas))
    shift = (first - second).tolist()
    return sum(Fraction(d * d, int(s) ** 2) for d, s in zip(shift, spread, strict=True))


@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda s: type(s).__name__)
def test_no_neighbours_found_by_search_move_a_sum_beyond_what_is_charged(statistic):
    rng = np.random.default_rng(1)
    rows, rewards = hurtful_rows(rng, 60, 3)
    sigmas = (10**6, 10**4)[: 1 + isinstance(statistic, GramAndMoment)]
    charged = statistic.noise(1, *sigmas).mu_squared
    singles = [statistic.of(row[None], reward[None]) for row, reward in zip(rows, rewards, strict=True)]
    # Replacing one row of many is replacing it alone: sums are exact.
    whole = statistic.of(rows[:20], rewards[:20])
    assert (whole == np.sum(singles[:20], axis=0)).all()
    largest = max(mu_squared_of(statistic, sigmas, a, b) for a, b in combinations(singles, 2))
    assert 0.2 * charged < largest <= charged


def two_rows_that_move_most(statistic):
    """Rows along different axes for second moments, opposite products for first ones."""
    if isinstance(statistic, SecondMoments):
        return (np.eye(3)[:1] * 1e6, np.zeros(1)), (np.eye(3)[1:2] * 1e6, np.zeros(1))
    return (np.eye(3)[:1] * 1e6, np.array([1e6])), (np.eye(3)[1:2] * 1e6, np.array([1e6]))


def test_two_rows_reach_the_sensitivity():
    moments = STATISTICS[1]
    sums = [moments.of(np.eye(3)[:1], np.array([sign * 9.0])) for sign in (1, -1)]
    assert mu_squared_of(moments, (10**4,), *sums) == moments.noise(1, 10**4).mu_squared
    # Two axes: the shift is on the diagonal, which has sqrt(2) sigma, rounded up: within a millionth.
    second = STATISTICS[0]
    sums = [second.of(*side) for side in two_rows_that_move_most(second)]
    reached = mu_squared_of(second, (10**6,), *sums) / second.noise(1, 10**6).mu_squared
    assert 1 - Fraction(1, 10**5) < reached <= 1
    assert ((sums[0] - sums[1]) ** 2).sum() == 2 * B**4  # sqrt(2) B^2 in Frobenius norm, not B^2
    both = STATISTICS[2]
    gram = [both.of(np.eye(3)[i : i + 1], np.zeros(1)) for i in (0, 1)]
    assert ((gram[0] - gram[1]) ** 2).sum() == 2 * B**4


def test_control_a_sensitivity_of_one_ball_and_not_of_two_rows_is_caught():
    second = STATISTICS[0]
    sums = [second.of(*side) for side in two_rows_that_move_most(second)]
    wrong = second.noise(1, 10**6).mu_squared / 2  # B^2 for sqrt(2) B^2
    assert mu_squared_of(second, (10**6,), *sums) > 1.9 * wrong


def test_sums_are_those_of_the_twin_and_rows_of_any_kind_are_cut():
    rng = np.random.default_rng(2)
    rows, rewards = hurtful_rows(rng, 5000, 3)
    second = STATISTICS[0]
    joined = np.column_stack([rows, rewards])
    scales = np.array([second.context_scale] * 3 + [second.reward_scale])
    twin = reference.second_moments(joined, radius=B, scale=scales)[np.triu_indices(4)][:-1]
    assert (second.of(rows, rewards) == twin).all()
    assert (
        second.of(rows.astype(np.float32), rewards) == second.of(rows.astype(np.float32)[::-1], rewards[::-1])
    ).all()
    moments = STATISTICS[1]
    products = fit_twins.ball_gradient(
        rows, rewards, np.zeros(5000, np.int64), count=1, radius=B, scale=moments.scale
    )
    assert (moments.of(rows, rewards) == products[0]).all()


def test_what_is_read_is_what_was_summed():
    rng = np.random.default_rng(3)
    rows, rewards = rng.uniform(-0.4, 0.4, (200, 3)), rng.uniform(-1, 1, 200)
    for statistic in (STATISTICS[0], STATISTICS[2]):
        gram, moment = statistic.read(statistic.of(rows, rewards).astype(float))
        assert np.allclose(gram, rows.T @ rows, atol=0.02) and (gram == gram.T).all()
        assert np.allclose(moment, rows.T @ rewards, atol=0.02)
    # A row beyond the ball keeps its direction, and what is linear in it stays linear.
    gram, moment = STATISTICS[0].read(
        STATISTICS[0].of(np.array([[300.0, 400.0, 0.0]]), np.array([600.0])).astype(float)
    )
    assert moment[0] / gram[0, 0] == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "nodes"), [(0.5, 1), (1.0, 1), (1.0, 8), (10.0, 15)])
def test_scales_are_the_formulas_as_fractions_and_the_smallest(epsilon, nodes):
    second, moments = STATISTICS[0], STATISTICS[1]
    for statistic, square in ((second, B**4), (moments, 4 * B**2)):
        (noise,) = price(statistic, nodes, epsilon=epsilon, delta=0.01).noise
        sigma = noise.parts[0].sigma
        assert noise.mu_squared == Fraction(nodes * square, sigma**2)
        assert composition.delta(epsilon, noise.events(1)) <= 0.01
        assert bought(noise, 0.01) == pytest.approx(epsilon, rel=1e-4)
        smaller = statistic.noise(nodes, math.floor(0.999 * sigma))
        assert bought(smaller, 0.01) > epsilon
    spread = second.spread(second.noise(nodes, 1000))
    diagonal = [0, 4, 7]
    assert (spread[diagonal] == 1415).all() and (np.delete(spread, diagonal) == 1000).all()


def test_a_tree_costs_what_its_nodes_cost_one_after_the_other():
    one = STATISTICS[1].noise(1, 10**5)
    together = STATISTICS[1].noise(4, 10**5)
    # Four Gaussians in a row, priced by the recursion, and one whose squared shift is the sum.
    apart = composition.delta(2.0, [*one.events(1)] * 4)
    assert composition.delta(2.0, together.events(1)) == pytest.approx(apart, rel=2e-3)


@pytest.mark.parametrize("sigma", [1, 2, 7, 70, 99, 10**9, 2**39])
def test_the_diagonals_noise_is_at_least_root_two_times_as_large(sigma):
    assert (ceil_root_two(sigma) - 1) ** 2 < 2 * sigma**2 <= ceil_root_two(sigma) ** 2


def test_delta_zero_is_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"delta must be above 0 for Gaussian noise, got 0"):
        price(STATISTICS[0], 1, epsilon=1.0, delta=0.0)


# Rules


def track(rule, steps, rows=4):
    """Run a rule on indicator vectors; which rows each draw was given, and the prefix after each step."""
    drawn, prefixes = [], []

    def draw(sums, times=1):
        drawn.append(sums.copy())
        return sums.astype(np.float64)

    running = rule.running(draw)
    for step in range(steps):
        sums = np.zeros(steps, np.int64)
        sums[step] = rows
        prefixes.append(running.add(sums, rows))
    return np.array(drawn), prefixes


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 8, 100, 157])
def test_a_tree_prefix_covers_each_row_once_and_each_row_is_in_at_most_m_nodes(steps):
    rule = Tree(leaf=4, horizon=4 * steps)
    drawn, prefixes = track(rule, steps)
    assert len(drawn) == steps  # one node is released a leaf, once
    assert ((drawn > 0).sum(axis=0) <= rule.nodes).all()
    assert (
        (drawn > 0).sum(axis=0).max() == rule.nodes == math.floor(math.log2(steps)) + 1
    )  # and some row is in all
    for number, prefix in enumerate(prefixes, 1):
        assert (prefix.values[:number] == 4).all() and (prefix.values[number:] == 0).all()
        assert prefix.rows == 4 * number and prefix.nodes == number.bit_count() <= rule.nodes


def test_a_trees_noise_is_drawn_once_for_each_node():
    fresh = iter(range(1, 1000))
    running = Tree(leaf=1, horizon=64).running(lambda sums: np.full(1, float(2 ** next(fresh))))
    before = set()
    for step in range(1, 60):
        noises = int(running.add(np.zeros(1, np.int64), 1).values[0])
        now = {bit for bit in range(70) if noises >> bit & 1}
        assert step in now and len(now) == step.bit_count()
        assert now - before == {step}  # all other noises were there before
        before = now


def test_a_tree_ends_with_its_horizon():
    running = Tree(leaf=1, horizon=3).running(kept_exact)
    for _ in range(3):
        running.add(np.zeros(1, np.int64), 1)
    with pytest.raises(ValueError, match="within the horizon of a tree of 2 levels"):
        running.add(np.zeros(1, np.int64), 1)


@pytest.mark.parametrize("rule", [Blocks(8), Blocks(8, growth=1.3, noise_rows=50.0), Batches(5), Local()])
def test_other_rules_put_each_row_into_one_noisy_sum(rule):
    drawn, prefixes = track(rule, 20)
    assert rule.nodes == 1 and ((drawn > 0).sum(axis=0) == 1).all()
    ends = [0]
    while ends[-1] < 5000:
        ends.append(rule.after(ends[-1]))
        assert all(
            rule.after(t) == ends[-1]
            for t in range(ends[-2], min(ends[-1], ends[-2] + 5))
            if not isinstance(rule, Local)
        )
    assert all(a < b for a, b in pairwise(ends))
    if getattr(rule, "noise_rows", 0) == 0:
        assert (prefixes[-1].values == 4).all() and prefixes[-1].rows == 80


def test_blocks_are_weighted_for_the_least_variance_of_the_mean():
    noise_rows = 300.0
    lengths = [64, 64, 128, 256, 512]
    running = Blocks(64, noise_rows=noise_rows).running(kept_exact)
    for n in lengths:
        released = running.add(np.array([n], np.int64), n)
    assert released.values[0] == released.rows  # the weighted mean of ones is one

    def variance(weights):  # of sum w S / sum w n, in units of one row's sampling variance
        rows = np.dot(weights, lengths)
        return np.dot(np.square(weights), np.array(lengths) + noise_rows) / rows**2

    best = [n / (n + noise_rows) for n in lengths]
    assert released.nodes == pytest.approx(sum(w * w for w in best))
    rng = np.random.default_rng(4)
    assert all(variance(best) <= variance(best * np.exp(rng.normal(0, 0.3, 5))) for _ in range(100))


def test_a_local_sum_has_one_noise_for_each_row():
    statistic = Moments(2000, product_clip=1.0)
    noise = statistic.noise(1, 1000)
    for rng in (None, np.random.default_rng(5)):
        running = Local().running(Noise(statistic, noise, rng))
        released = running.add(np.zeros(2000, np.int64), 30)
        assert released.nodes == 30
        assert released.values.std() == pytest.approx(1000 * math.sqrt(30), rel=0.06)


def test_secure_and_simulated_noise_have_one_law_and_the_stated_scales():
    statistic = SecondMoments(60, context_norm=1.0, reward_clip=1.0)
    noise = statistic.noise(1, 5000)
    diagonal = statistic.spread(noise) != 5000
    for rng in (None, np.random.default_rng(6)):
        draw = Noise(statistic, noise, rng)
        values = np.array([draw(np.zeros(statistic.size, np.int64)) for _ in range(20)])
        assert values[:, ~diagonal].std() == pytest.approx(5000, rel=0.02)
        assert values[:, diagonal].std() == pytest.approx(5000 * math.sqrt(2), rel=0.08)
        assert (values == np.rint(values)).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Blocks(0), "first must be"),
        (lambda: Blocks(5, growth=1.0), "growth must be"),
        (lambda: Batches(0), "size must be"),
        (lambda: Tree(leaf=8, horizon=7), "horizon must be"),
        (lambda: Local(0), "longest must be"),
        (lambda: SecondMoments(3, context_norm=0.0, reward_clip=1.0), "context_norm must be"),
        (lambda: SecondMoments(509_256, context_norm=1.0, reward_clip=1.0), "dim must be"),
        (lambda: Moments(3, product_clip=math.nan), "product_clip must be"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
