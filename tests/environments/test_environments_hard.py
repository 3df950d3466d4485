"""The margin family and the instances of the lower bound's proof."""

import math

import numpy as np
import pytest
import scipy.stats

from fliphat.environments import AR1, hard_instance, margin_family
from fliphat.environments.hard import hard_coefficient


def gaps(env, rounds):
    means = np.sort(env.draw(rounds).means, axis=1)
    return means[:, -1] - means[:, -2]


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("arms", [2, 4])
def test_finite_margins_meet_the_condition_with_equality(alpha, arms):
    found = gaps(margin_family(alpha, dim=50, arms=arms, width=0.8, seed=1), 20_000)
    assert found.max() <= 0.8 + 1e-5
    assert scipy.stats.kstest(found / 0.8, lambda h: np.clip(h, 0, 1) ** alpha).pvalue > 1e-4
    assert scipy.stats.kstest(found / 0.8, lambda h: np.clip(h, 0, 1) ** (1.1 * alpha)).pvalue < 1e-4


def test_an_infinite_margin_is_a_fixed_gap():
    np.testing.assert_allclose(gaps(margin_family(math.inf, arms=3, width=0.8), 500), 0.8, atol=1e-5)


def test_no_margin_is_the_smallest_gap_of_the_condition():
    env = margin_family(0, dim=100, horizon=5000, constant=2.0)
    np.testing.assert_allclose(gaps(env, 500), 2.0 * math.sqrt(math.log(100) / 5000), atol=1e-5)


def test_the_best_arm_is_not_given_away():
    drawn = margin_family(math.inf, arms=4, seed=2).draw(8000)
    assert scipy.stats.chisquare(np.bincount(drawn.means.argmax(1), minlength=4)).pvalue > 1e-4


def test_contexts_keep_their_variance_along_and_across_the_truth():
    env = margin_family(1.0, dim=10, arms=3, sparsity=3, contexts=AR1(0.5), seed=3)
    drawn = env.draw(20_000)
    rows = drawn.contexts[:, 1].astype(float)
    truth = env.coefficients
    lag = np.abs(np.arange(10)[:, None] - np.arange(10))
    # A gap of width U adds at most 1/12 + a little to the variance of the mean, and centres it elsewhere.
    assert 0.9 < rows.dot(truth).var() / (truth @ 0.5**lag @ truth) < 1.25
    across = np.linalg.svd(truth[None, :3])[2][1:]
    along_others = across @ rows[:, :3].T
    assert np.all(np.abs(along_others.mean(1)) < 0.05)
    # Beyond the support the chain goes on from whatever the last coordinate of the support became.
    residual = rows[:, 3] - 0.5 * rows[:, 2]
    assert abs(residual.var() - 0.75) < 0.03
    assert abs(np.corrcoef(residual, rows[:, 2])[0, 1]) < 0.03


def test_lazy_play_meets_the_same_margin():
    env = margin_family(1.0, dim=50, arms=2, width=0.8, seed=4)
    lost = env.play(20_000, None, rows=False).regret
    # Uniform play loses the gap half of the time.
    assert scipy.stats.binomtest(int((lost > 0).sum()), 20_000).pvalue > 1e-4
    assert scipy.stats.kstest(lost[lost > 0] / 0.8, scipy.stats.uniform.cdf).pvalue > 1e-4
    assert env.play(1000, env.truth, rows=False).regret.max() == 0


def test_wider_margins_are_easier_for_a_rough_estimate():
    rough = np.zeros(50)
    rough[:5] = np.sign(margin_family(1.0, dim=50, seed=5).truth[1])
    mistakes = [
        (margin_family(alpha, dim=50, seed=5).play(20_000, rough, rows=False).regret > 0).mean()
        for alpha in (0.3, 1.0, math.inf)
    ]
    assert mistakes[0] > mistakes[1] + 0.02 > mistakes[2] + 0.04


def test_hard_instances_are_those_of_the_proof():
    env = hard_instance(10_000, dim=400, sparsity=5, epsilon=0.1, noise_scale=2.0, seed=1)
    size = hard_coefficient(horizon=10_000, dim=400, sparsity=5, epsilon=0.1, noise_scale=2.0)
    columns, values = env.truth
    assert env.arms == 2 and len(columns) == 5
    np.testing.assert_allclose(np.abs(values), size)
    rows = env.draw(500).contexts
    assert abs(rows.var() * math.log(400) - 1) < 0.02
    assert env.noise == "gaussian" and env.noise_scale == 2.0
    others = {tuple(hard_instance(10_000, seed=seed).truth[0]) for seed in range(5)}
    assert len(others) == 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: margin_family(-1.0), "alpha must be a number of at least 0, or math.inf, got -1.0"),
        (lambda: margin_family(math.nan), "alpha must be a number of at least 0, or math.inf, got nan"),
        (lambda: margin_family(0), "horizon must be given for alpha = 0 and only then, got alpha = 0"),
        (lambda: margin_family(1.0, horizon=10), "horizon must be given for alpha = 0 and only then"),
        (lambda: margin_family(0, horizon=1, width=0.1), "horizon must be large enough for a gap of"),
        (lambda: margin_family(1.0, arms=1), "arms must be an integer from 2 to 1048576, got 1"),
        (lambda: margin_family(1.0, width=0.0), "width must be a finite number above 0, got 0.0"),
        (lambda: hard_instance(0), "horizon must be an integer from 1"),
        (lambda: hard_instance(10, delta=0.1), "delta must be 0 where epsilon is None, got 0.1"),
    ],
)
def test_bad_calls_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
