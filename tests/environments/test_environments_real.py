"""Labelled data sets and sparse clicks as environments."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

from fliphat import kernels
from fliphat.environments import SparseClicks, from_classification


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


def small(seed=0, **options):
    rng = np.random.default_rng(1)
    labels = np.repeat(["a", "b", "c"], 20)
    X = rng.standard_normal((60, 4)) + 2 * np.eye(4)[np.repeat([0, 1, 2], 20)]
    return from_classification(X, labels, dim=20, seed=seed, **options)


ESTIMATE = (np.array([0, 5, 10, 12, 19]), np.array([1.0, 1.0, 1.0, 0.4, -0.6]))


def test_contexts_are_blocks_and_then_noise():
    env = small()
    drawn = env.draw(3000)
    assert drawn.contexts.shape == (3000, 3, 20) and drawn.contexts.dtype == np.float32
    assert env.classes.tolist() == ["a", "b", "c"]
    blocks = drawn.contexts[:, :, :12].reshape(3000, 3, 3, 4)
    for arm in range(3):
        np.testing.assert_array_equal(blocks[:, arm, arm], blocks[:, 0, 0])
        assert not blocks[:, arm, [other for other in range(3) if other != arm]].any()
    noise = drawn.contexts[:, :, 12:]
    assert scipy.stats.kstest(noise.ravel()[:20_000], scipy.stats.norm.cdf).pvalue > 1e-4
    assert abs(np.corrcoef(noise[:, 0, 0], noise[:, 1, 0])[0, 1]) < 0.08


def test_rewards_are_one_for_the_right_class():
    drawn = small().draw(2000)
    np.testing.assert_array_equal(drawn.means.sum(1), 1)
    outcome = drawn.settle(drawn.means.argmax(1))
    np.testing.assert_array_equal(outcome.rewards, 1)
    np.testing.assert_array_equal(outcome.regret, 0)
    wrong = drawn.settle((drawn.means.argmax(1) + 1) % 3)
    assert not wrong.rewards.any() and (wrong.regret == 1).all()
    # Examples come uniformly: so do classes.
    assert scipy.stats.chisquare(drawn.means.sum(0)).pvalue > 1e-4


def test_lazy_and_plain_agree_on_data():
    lazy = small(1).play(20_000, ESTIMATE)
    env = small(2)
    drawn = env.draw(20_000)
    dense = np.zeros(20)
    dense[ESTIMATE[0]] = ESTIMATE[1]
    plain = drawn.settle(kernels.select_arms(drawn.contexts, dense, np.random.default_rng(0)))
    scale = np.sqrt(2 * 0.25 / 20_000)
    assert abs(lazy.rewards.mean() - plain.rewards.mean()) < 4 * scale
    # Noise features on the estimate's support are tilted towards the estimate in chosen rows, others are not.
    np.testing.assert_allclose(lazy.rows.mean(0), plain.rows.mean(0), atol=5 * np.sqrt(2 / 20_000))
    assert lazy.rows[:, 12].mean() > 0.05 > abs(lazy.rows[:, 15].mean())
    uniform = small(3).play(20_000)
    assert abs(lazy.rewards.mean() - uniform.rewards.mean()) > 10 * scale


def test_lazy_and_plain_meet_the_same_people():
    estimate = (ESTIMATE[0][:3], ESTIMATE[1][:3])
    lazy = small(7).play(300, estimate)
    drawn = small(7).draw(300)
    again = drawn.settle(lazy.arms)
    np.testing.assert_array_equal(lazy.rows, again.rows)
    np.testing.assert_array_equal(lazy.rewards, again.rewards)


def test_data_met_whole_or_in_parts_is_the_same():
    env = small(7)
    parts = [env.play(n, ESTIMATE) for n in (0, 10, 200)]  # fewer and more than there are examples
    whole = small(7).play(210, ESTIMATE)
    for name in ("arms", "rewards", "rows"):
        np.testing.assert_array_equal(getattr(whole, name), np.concatenate([getattr(p, name) for p in parts]))


def test_digits_padded_with_noise_can_be_learned(digits):
    X, y = digits
    env = from_classification(X, y, dim=1000, seed=1)
    assert (env.arms, env.features, env.dim) == (10, 64, 1000)
    outcome = env.play(4000)
    assert outcome.rows.shape == (4000, 1000) and abs(outcome.rewards.mean() - 0.1) < 0.03
    estimate = outcome.rows.T.astype(float) @ (outcome.rewards - outcome.rewards.mean())
    estimate[np.argsort(np.abs(estimate))[:-120]] = 0
    assert env.play(4000, estimate, rows=False).rewards.mean() > 0.5


def test_no_noise_features_are_needed(digits):
    env = from_classification(*digits, seed=2)
    assert env.dim == 640 and env.play(10).rows.shape == (10, 640)
    assert env.truth is None and env.coefficients is None
    other = pickle.loads(pickle.dumps(env))
    np.testing.assert_array_equal(other.play(5).rows, env.play(5).rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones(3), [0, 1, 0]), "X must have two dimensions, none of them empty"),
        ((np.ones((3, 2)), [0, 1]), r"y must have one label for each row of X, got shape \(2,\)"),
        ((np.full((2, 2), np.nan), [0, 1]), "X must be finite"),
        ((np.ones((2, 2)), [1, 1]), "y must have at least two classes"),
    ],
)
def test_bad_data_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        from_classification(*arguments)


def test_too_few_columns_for_the_blocks():
    with pytest.raises(ValueError, match="dim must be at least 4 = 2 classes x 2 features, got 3"):
        from_classification(np.ones((2, 2)), [0, 1], dim=3)


def clicks(seed=1, **options):
    return SparseClicks(**({"dim": 2000, "arms": 4, "nonzeros": 20, "seed": seed} | options))


def test_rows_are_canonical_csr_with_about_the_stated_non_zeros():
    rows = clicks().play(500).rows
    assert sp.issparse(rows) and rows.format == "csr" and rows.dtype == np.float32
    assert rows.indices.dtype == rows.indptr.dtype == np.int32
    assert rows.has_canonical_format
    np.testing.assert_array_equal(rows.sum(1), 20)
    assert 18 < np.diff(rows.indptr).mean() <= 20
    kernels.clipped_gradient(rows, np.zeros(500), np.zeros(2000), 1.0)  # accepted by the kernel, which checks


def test_every_field_has_one_feature_and_frequencies_follow_the_power_law():
    env = clicks(nonzeros=10, hashed=0, power=1.5)
    rows = env.draw(5000).contexts
    ends = np.cumsum(env.cardinalities)
    assert ends[-1] == 2000
    field = np.searchsorted(ends, rows.indices, side="right").reshape(-1, 10)
    np.testing.assert_array_equal(field, np.tile(np.arange(10), (20_000, 1)))
    start, size = ends[-2], env.cardinalities[-1]
    rank = rows.indices.reshape(-1, 10)[:, -1] - start
    edges = np.arange(1.0, size + 2) ** -0.5
    expected = (edges[:-1] - edges[1:]) / (1 - edges[-1])
    head = np.bincount(rank, minlength=size)[:20]
    assert (
        scipy.stats.chisquare(
            [*head, 20_000 - head.sum()], 20_000 * np.array([*expected[:20], expected[20:].sum()])
        ).pvalue
        > 1e-4
    )
    flat = np.full(20, 1 / size)
    assert (
        scipy.stats.chisquare([*head, 20_000 - head.sum()], 20_000 * np.array([*flat, 1 - 20 / size])).pvalue
        < 1e-4
    )


@pytest.mark.parametrize("power", [0.5, 1.0, 1.4])
def test_stated_frequencies_are_those_drawn_and_balance_the_clicks(power):
    env = clicks(power=power, sparsity=40)
    drawn = env.draw(10_000)
    seen = np.asarray(drawn.contexts[:, env.truth[0]].mean(axis=0)).ravel()
    stated = env._frequencies(env.truth[0])
    assert np.all(np.abs(seen - stated) < 5 * np.sqrt(stated / 40_000))
    assert env._frequencies(np.array([1999])) == 0  # a hashed column
    logits = np.log(drawn.means / (1 - drawn.means)).ravel()
    assert abs(logits.mean()) < 5 * logits.std() / np.sqrt(40_000)
    lifted = clicks(power=power, sparsity=40, intercept=env.intercept + 0.5).draw(10_000).means
    np.testing.assert_allclose(np.log(lifted / (1 - lifted)).ravel(), logits + 0.5, atol=1e-9)


def test_hashed_tokens_fall_on_the_last_columns():
    env = clicks(hashed=5)
    rows = env.draw(300).contexts
    first = int(env.cardinalities.sum())
    assert first == 1600
    np.testing.assert_array_equal(rows[:, first:].sum(1), 5)
    assert len(np.unique(rows.indices[rows.indices >= first])) > 100


def test_click_means_are_logistic_and_rewards_binary():
    env = clicks(intercept=-0.5)
    assert env.intercept == -0.5
    drawn = env.draw(4000)
    means = 1 / (1 + np.exp(0.5 - drawn.contexts @ env.coefficients))
    np.testing.assert_allclose(drawn.means.ravel(), means, rtol=1e-12)
    outcome = drawn.settle(drawn.means.argmax(1))
    best = drawn.means.max(1)
    error = np.sqrt((best * (1 - best)).sum())
    assert abs((outcome.rewards - best).sum()) < 4 * error < abs((outcome.rewards - 1.15 * best).sum())
    assert outcome.rows.shape == (4000, 2000)


def test_clicks_played_and_drawn_are_the_same_bits():
    env = clicks(hashed=0)
    estimate = (env.truth[0][::2], env.truth[1][::2])
    lazy = env.play(400, estimate)
    drawn = clicks(hashed=0).draw(400)
    dense = np.zeros(2000)
    dense[estimate[0]] = estimate[1]
    scores = kernels.score(drawn.contexts, dense).reshape(400, 4)
    chosen = scores[np.arange(400), lazy.arms]
    np.testing.assert_array_equal(chosen, scores.max(1))
    plain = drawn.settle(lazy.arms)
    np.testing.assert_array_equal(lazy.rewards, plain.rewards)
    np.testing.assert_array_equal(lazy.regret, plain.regret)
    assert (lazy.rows != plain.rows).nnz == 0


def test_clicks_learned_from_the_truth_beat_random_ones():
    env = clicks()
    assert env.play(2000, env.truth).regret.max() == 0
    assert env.play(2000, rows=False).regret.mean() > 0.1


def test_clicks_are_seeded_whole_or_in_parts():
    env = clicks(3)
    whole = clicks(3).play(50)
    parts = [env.play(n) for n in (20, 30)]
    assert (whole.rows != sp.vstack([part.rows for part in parts])).nnz == 0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(env)).play(5).rewards, env.play(5).rewards)
    assert (clicks(4).play(50).rows != whole.rows).nnz > 0


def test_half_a_million_columns():
    env = SparseClicks(seed=1)
    outcome = env.play(2000, env.truth)
    assert outcome.rows.shape == (2000, 509_256) and outcome.rows.indices.max() > 400_000
    assert outcome.rewards.mean() > env.play(2000, rows=False).rewards.mean() + 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nonzeros": 1}, "nonzeros must be an integer from 2 to 1000, got 1"),
        ({"hashed": 20}, "hashed must be an integer from 0 to 19, got 20"),
        ({"dim": 30}, "dim must give each of 16 fields at least 2 columns, got 30"),
        ({"power": -1.0}, "power must be a number from 0 to 10, got -1.0"),
        ({"sparsity": 1601}, "sparsity must be an integer from 0 to 1600, got 1601"),
    ],
)
def test_bad_click_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        clicks(**options)


def test_clicks_have_no_dense_rows_and_an_end():
    with pytest.raises(TypeError, match="out is for dense rows"):
        clicks().play(1, out=np.empty((1, 2000), np.float32))
    with pytest.raises(ValueError, match="too many rounds for one call"):
        clicks().play(2**30)


def test_importing_environments_loads_nothing_heavy():
    heavy = ["scipy.sparse", "scipy.stats", "sklearn", "matplotlib"]
    code = f"import fliphat.environments, fliphat.lab.theory, sys; print([m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
