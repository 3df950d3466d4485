"""Categories as columns: every level equally likely, and two ways of drawing that agree exactly."""

import pickle
from itertools import pairwise

import numpy as np
import scipy.stats

from fliphat.environments import OneHot

ESTIMATE = (np.array([0, 3, 17]), np.array([0.5, -0.7, 0.9]))


def world(**options):
    return OneHot(20, 3, **{"groups": 6, "sparsity": 4, "seed": 5, **options})


def test_each_group_has_one_level_and_each_level_its_share():
    env = world()
    rows = env.draw(20_000).contexts.reshape(-1, 20)
    starts = np.arange(7) * 20 // 6
    for first, end in pairwise(starts):
        counts = rows[:, first:end].sum(0)
        assert set(rows[:, first:end].sum(1).tolist()) == {1.0}
        assert scipy.stats.chisquare(counts).pvalue > 1e-4
        # Control: one row in fifty moved to the first level is seen.
        counts[0] += 0.02 * counts[1:].sum()
        counts[1:] *= 0.98
        assert scipy.stats.chisquare(counts).pvalue < 1e-4


def test_groups_and_arms_are_independent():
    contexts = world().draw(40_000).contexts.astype(float)
    rows = contexts.reshape(len(contexts), -1) - contexts.reshape(len(contexts), -1).mean(0)
    correlation = np.corrcoef(rows.T)
    group = np.searchsorted(np.arange(1, 7) * 20 // 6, np.arange(20), side="right")
    group = (group + 6 * np.arange(3)[:, None]).ravel()
    others = group[:, None] != group
    assert np.abs(correlation[others]).max() < 5 / np.sqrt(len(rows))
    assert np.abs(correlation[~others]).min() > 0.2  # control: levels of one group exclude each other


def test_playing_is_drawing_and_choosing():
    played = world().play(3000, ESTIMATE)
    drawn = world().draw(3000)
    dense = np.zeros(20)
    dense[ESTIMATE[0]] = ESTIMATE[1]
    scores = drawn.contexts @ dense
    each = np.arange(3000)
    np.testing.assert_allclose(scores[each, played.arms], scores.max(1), atol=1e-9)
    settled = drawn.settle(played.arms)
    np.testing.assert_array_equal(settled.rows, played.rows)
    np.testing.assert_allclose(settled.rewards, played.rewards, atol=1e-12)
    np.testing.assert_allclose(settled.regret, played.regret, atol=1e-12)
    np.testing.assert_allclose(drawn.means, drawn.contexts @ world().coefficients, atol=1e-12)


def test_equal_arms_are_played_equally_often():
    counts = np.bincount(world().play(30_000).arms, minlength=3)
    assert scipy.stats.chisquare(counts).pvalue > 1e-4
    # The first of the equals would be the first arm more often than one time in three.
    drawn = world().draw(30_000)
    first = np.bincount((drawn.contexts @ np.eye(20)[3]).argmax(1), minlength=3)
    assert scipy.stats.chisquare(first).pvalue < 1e-4


def test_noise_is_normal():
    outcome = world(coefficients=np.zeros(20), noise_scale=0.5).play(20_000)
    assert scipy.stats.kstest(outcome.rewards, scipy.stats.norm(0, 0.5).cdf).pvalue > 1e-4
    assert scipy.stats.kstest(1.1 * outcome.rewards, scipy.stats.norm(0, 0.5).cdf).pvalue < 1e-4


def test_seeds_and_rounds_say_everything():
    whole, env = world().play(300, ESTIMATE), world()
    parts = [env.play(n, ESTIMATE) for n in (1, 99)]
    parts.append(pickle.loads(pickle.dumps(env)).play(200, ESTIMATE))
    for name in ("arms", "rewards", "regret", "rows"):
        np.testing.assert_array_equal(getattr(whole, name), np.concatenate([getattr(p, name) for p in parts]))
    assert not np.array_equal(whole.rewards, world(seed=6).play(300, ESTIMATE).rewards)
