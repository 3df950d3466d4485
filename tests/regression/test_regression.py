"""The estimators: what they recover, and what they leave behind."""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

import fliphat
from fliphat import Iht, PrivateSparseClassifier, PrivateSparseRegressor, Pursuit
from fliphat.regression.data import as_rows
from regression_data import BOTH, linear, target_for, two_class


def test_the_regressor_recovers_a_sparse_truth():
    X, y, truth = linear(10_000, 100)
    model = PrivateSparseRegressor(1.0, 1e-6, sparsity=4, random_state=0).fit(X, y)
    assert set(np.flatnonzero(model.coef_)) == {0, 1, 2, 3}
    np.testing.assert_allclose(model.coef_, truth, atol=0.05)
    fresh_X, fresh_y, _ = linear(2000, 100, seed=9)
    assert model.score(fresh_X, fresh_y) > 0.95


def test_a_budget_too_small_to_learn_from_is_not_beaten():
    # The control of the recovery test: with hardly any budget the same fit must be mostly noise.
    X, y, _ = linear(10_000, 100)
    scores = [
        PrivateSparseRegressor(0.001, 1e-6, sparsity=4, random_state=seed).fit(X, y).score(X, y)
        for seed in range(5)
    ]
    assert np.mean(scores) < 0.1


def test_accuracy_grows_with_the_budget():
    X, y, _ = linear(2000, 100)
    means = [
        np.mean([PrivateSparseRegressor(e, 1e-5, random_state=i).fit(X, y).score(X, y) for i in range(6)])
        for e in (0.1, 1.0, 10.0)
    ]
    assert means == sorted(means) and means[0] < 0.3 and means[-1] > 0.95


@pytest.mark.parametrize(("solver", "most"), [(Iht(), 0.005), (Pursuit(), 0.02)])
def test_regret_of_the_estimate_in_the_setting_of_the_paper(solver, most):
    rng = np.random.default_rng(0)

    def contexts(n, d=400, phi=0.1):
        X = rng.standard_normal((n, d))
        for j in range(1, d):
            X[:, j] = phi * X[:, j - 1] + np.sqrt(1 - phi**2) * X[:, j]
        return X

    regrets = []
    for seed in range(6):
        truth = np.zeros(400)
        truth[:5] = rng.choice([-1, 1], 5) * rng.uniform(0.5, 1, 5)
        X = contexts(2048)
        y = X @ truth + 0.1 * rng.standard_normal(2048)
        model = PrivateSparseRegressor(1.0, 0.01, sparsity=10, random_state=seed, solver=solver).fit(X, y)
        arms = contexts(3 * 1000)
        worth, seen = (arms @ truth).reshape(-1, 3), model.predict(arms).reshape(-1, 3)
        regrets.append(np.mean(worth.max(axis=1) - worth[np.arange(1000), seen.argmax(axis=1)]))
    assert np.mean(regrets) < most  # arms at random: 1.29


def test_the_classifier_comes_close_to_the_truth():
    X, y, truth = two_class(10_000, 100)
    model = PrivateSparseClassifier(1.0, 1e-6, sparsity=4, random_state=0).fit(X, y)
    assert set(np.flatnonzero(model.coef_)) == {0, 1, 2, 3}
    fresh_X, fresh_y, _ = two_class(5000, 100, seed=9)
    best = np.mean((fresh_X @ truth > 0) == fresh_y)
    assert best - 0.02 < model.score(fresh_X, fresh_y) <= best + 0.02
    cosine = model.coef_[0] @ truth / np.linalg.norm(model.coef_) / np.linalg.norm(truth)
    assert cosine > 0.98


def test_probabilities_are_calibrated_in_both_tails():
    X, y, _ = two_class(20_000, 20)
    model = PrivateSparseClassifier(5.0, 1e-6, sparsity=4, random_state=0).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    for low, high in ((0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1)):
        group = (p[:, 1] >= low) & (p[:, 1] < high)
        assert abs(y[group].mean() - p[group, 1].mean()) < 0.06
    far = model.predict_proba(1e3 * X)
    assert 0 < far[far > 0].min() < 1e-17  # not lost to 1 - p


@pytest.mark.parametrize("sparse", [False, True])
def test_the_intercept_is_one_more_coordinate(sparse):
    X, y, truth = linear(20_000, 30, scale=4.0)
    X = sp.csr_array(X) if sparse else X
    common = {"epsilon": 2.0, "delta": 1e-6, "sparsity": 5, "feature_scale": 4.0, "random_state": 0}
    model = PrivateSparseRegressor(fit_intercept=True, **common).fit(X, y + 0.7)
    assert abs(model.intercept_ - 0.7) < 0.05
    np.testing.assert_allclose(model.coef_, truth, atol=0.02)
    assert model.score(X, y + 0.7) > 0.95
    without = PrivateSparseRegressor(**common).fit(X, y + 0.7)
    assert without.intercept_ == 0.0
    assert without.score(X, y + 0.7) < 0.6


def test_the_classifier_learns_an_intercept():
    X, _, truth = two_class(20_000, 30)
    y = np.random.default_rng(1).random(20_000) < 1 / (1 + np.exp(-(X @ truth) - 2))
    common = {"epsilon": 2.0, "delta": 1e-6, "sparsity": 5, "random_state": 0}
    model = PrivateSparseClassifier(fit_intercept=True, **common).fit(X, y)
    assert 1.5 < model.intercept_[0] < 2.5
    assert model.score(X, y) > PrivateSparseClassifier(**common).fit(X, y).score(X, y) + 0.1


class Frame:
    """As much of a data frame as is looked at."""

    def __init__(self, X, columns):
        self.X, self.columns = X, columns

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.X, dtype)


def test_feature_names_are_kept_and_compared():
    X, y, _ = linear(100, 7)
    names = [f"f{j}" for j in range(7)]
    model = PrivateSparseRegressor().fit(Frame(X, names), y)
    assert model.feature_names_in_.tolist() == names
    model.predict(Frame(X, names)), model.predict(X)
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        model.predict(Frame(X, names[::-1]))
    with pytest.raises(
        ValueError, match="unseen at fit time:\n- g\nFeature names seen at fit time, yet now missing:\n- f6"
    ):
        model.predict(Frame(X, [*names[:-1], "g"]))
    assert not hasattr(model.fit(X, y), "feature_names_in_")
    assert not hasattr(PrivateSparseRegressor().fit(Frame(X, range(7)), y), "feature_names_in_")


@pytest.mark.parametrize("model", BOTH)
def test_a_fitted_model_survives_pickling(model):
    X, y, _ = linear(100, 7)
    fitted = model(sparsity=3).fit(X, target_for(model, y))
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))
    assert copy.guarantee_ == fitted.guarantee_ and copy.noise_ == fitted.noise_
    assert not any(
        np.shares_memory(value, X) for value in vars(fitted).values() if isinstance(value, np.ndarray)
    )


WITHOUT = """
    import sys
    {block}
    import pickle
    import numpy as np
    import fliphat
    from fliphat import PrivateSparseClassifier, PrivateSparseRegressor
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 9))
    y = X[:, 0] - 0.5 * X[:, 1]
    model = PrivateSparseRegressor(epsilon=8.0)
    assert model.get_params()["epsilon"] == 8.0 and model.get_params()["random_state"] is None
    assert model.set_params(sparsity=2) is model
    assert repr(model) == "PrivateSparseRegressor(epsilon=8.0, sparsity=2)", repr(model)
    try:
        model.set_params(nonsense=1)
    except ValueError as error:
        assert "nonsense" in str(error)
    try:
        model.predict(X)
    except (ValueError, AttributeError) as error:
        assert "must be fitted first" in str(error)
    assert model.fit(X, y).score(X, y) > 0.9 and model.guarantee_.proven
    assert abs(model.score(X, y) - (1 - np.mean((y - model.predict(X)) ** 2) / np.var(y))) < 1e-12
    assert (pickle.loads(pickle.dumps(model)).coef_ == model.coef_).all()
    labels = np.where(y > 0, "up", "down")
    judge = PrivateSparseClassifier(8.0, fit_intercept=True).fit(X, labels)
    assert judge.score(X, labels) == np.mean(judge.predict(X) == labels) > 0.9
    assert judge.predict_proba(X).shape == (4000, 2)
    print("sklearn.base" in sys.modules)
"""


@pytest.mark.parametrize(
    ("block", "used"), [("sys.modules['sklearn'] = None", "False"), ("", "True")], ids=["without", "with"]
)
def test_works_without_scikit_learn(block, used):
    code = textwrap.dedent(WITHOUT.format(block=block))
    out = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert out.stderr == "" and out.stdout.strip() == used


def test_estimators_are_found_lazily_and_listed():
    assert {"PrivateSparseRegressor", "PrivateSparseClassifier"} <= set(dir(fliphat))
    with pytest.raises(AttributeError, match="no attribute 'PrivateDenseRegressor'"):
        fliphat.PrivateDenseRegressor  # noqa: B018


def test_one_row_of_a_list_does_not_decide_how_others_are_stored():
    narrow = [[np.float32(0.1), np.float32(0.2)], [np.float32(0.3), np.float32(0.4)]]
    mixed = [narrow[0], [0.3, 0.4]]
    assert as_rows(narrow).dtype == as_rows(mixed).dtype == np.float64
    assert as_rows(np.array(narrow)).dtype == np.float32
