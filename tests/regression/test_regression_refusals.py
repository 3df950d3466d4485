"""What the estimators refuse, by name and without a value of the data."""

import numpy as np
import pytest
import scipy.sparse as sp

from fliphat import Iht, PrivateSparseClassifier, PrivateSparseRegressor, Pursuit
from fliphat.kernels import _niht
from regression_data import BOTH, linear, target_for, two_class


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number above 0"),
        ({"epsilon": float("nan")}, "epsilon must be a finite number above 0"),
        ({"delta": 1.0}, "delta must be at least 0 and below 1"),
        ({"delta": -1e-9}, "delta must be at least 0 and below 1"),
        ({"sparsity": 6}, "sparsity must be an integer from 1 to 5, got 6"),
        ({"sparsity": 7, "fit_intercept": True}, "sparsity must be an integer from 1 to 6, got 7"),
        ({"sparsity": 0}, "sparsity must be an integer from 1 to 5"),
        ({"solver": Iht(iterations=0)}, "iterations must be an integer from 1"),
        ({"feature_scale": 0.0}, "feature_scale must be a number from 1e-100 to 1e[+]100"),
        ({"feature_scale": 1e-200}, "feature_scale must be a number from 1e-100"),
        ({"solver": Iht(l1_radius=1e30)}, r"l1_radius / unit \+ rows \* 2\*\*15 must be below 2\*\*62"),
        ({"rows_per_user": 0}, "rows_per_user must be an integer from 1"),
        ({"solver": Iht(episodes="doubling")}, "a regression has one fit"),
        ({"solver": Iht(growth=2.0)}, "a regression has one fit"),
        ({"solver": Iht(warm_start=False)}, "a regression has one fit"),
        ({"solver": Iht(iterations=[1, 2])}, "must be a number or a function of rows, got a sequence"),
        ({"solver": Pursuit(intercept=False)}, "has no options here"),
        ({"random_state": -1}, "random_state must be an integer from 0"),
    ],
)
def test_bad_parameters_are_refused_by_name(model, wrong, message, monkeypatch):
    X, y, _ = linear(20, 5)
    monkeypatch.setattr(_niht, "fit", None)  # nothing may reach the kernel
    with pytest.raises(ValueError, match=message):
        model(**wrong).fit(X, target_for(model, y))


def test_bad_parameters_of_one_of_them():
    X, y, _ = linear(20, 5)
    with pytest.raises(ValueError, match="target_scale must be"):
        PrivateSparseRegressor(target_scale=0.0).fit(X, y)
    with pytest.raises(ValueError, match="is for numbers: labels are 0 and 1"):
        PrivateSparseClassifier(solver=Iht(reward_clip=1.0)).fit(X, y > 0)


SECRET = 271828.5


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda X, y: (np.where(X == SECRET, np.inf, X), y),
        lambda X, y: (np.where(X == SECRET, np.nan, X), y),
        lambda X, y: (sp.csr_array(np.where(X == SECRET, np.nan, X)), y),
        lambda X, y: (np.where(X == SECRET, f"a{SECRET}", X.astype(object)), y),
        lambda X, y: (X.astype(str), y),
        lambda X, y: (X * 1j, y),
        lambda X, y: (X[0], y),
        lambda X, y: (X[:, :0], y),
        lambda X, y: (X[:0], y[:0]),
        lambda X, y: (X, y[:-1]),
        lambda X, y: (X, None),
        lambda X, y: (X, np.where(np.arange(len(y)) == 0, np.nan, y)),
        lambda X, y: (X, np.where(np.arange(len(y)) == 0, f"a{SECRET}", y.astype(object))),
        lambda X, y: (X, np.column_stack([y, y])),
        lambda X, y: (X, y * 1j),
    ],
)
def test_bad_data_is_refused_without_a_value(model, spoil):
    X, y, _ = linear(20, 5)
    X[3, 2] = SECRET
    with pytest.raises(ValueError) as refused:
        model().fit(*spoil(X, target_for(model, y)))
    error = refused.value
    while error is not None:  # a chained error would carry NumPy's message along
        assert "271828" not in str(error)
        error = error.__context__


def test_the_value_is_in_the_message_that_is_kept_away():
    with pytest.raises(ValueError, match="271828"):
        np.array([f"a{SECRET}"], dtype=object).astype(float)


def test_every_value_is_checked_also_where_the_model_does_not_look():
    X = np.zeros((600, 500))
    X[:, 0] = 1.0
    model = PrivateSparseRegressor(sparsity=1, random_state=0, epsilon=1e3).fit(X, X[:, 0])
    assert np.flatnonzero(model.coef_).tolist() == [0]
    X[-1, -1] = np.nan
    for rows in (X, sp.csr_array(X)):
        with pytest.raises(ValueError, match="X must be finite"):
            model.predict(rows)


@pytest.mark.parametrize("call", ["predict", "score"])
@pytest.mark.parametrize("model", BOTH)
def test_prediction_refuses_other_shapes(model, call):
    X, y, _ = linear(20, 5)
    fitted = model().fit(X, y_for := target_for(model, y))
    ask = (
        (lambda rows: fitted.predict(rows)) if call == "predict" else (lambda rows: fitted.score(rows, y_for))
    )
    with pytest.raises(ValueError, match=r"X has 4 features, but PrivateSparse.* is expecting 5 features"):
        ask(X[:, :4])
    with pytest.raises(ValueError, match="finite"):
        ask(np.full_like(X, np.inf))


@pytest.mark.parametrize(
    "labels", [("ill", "well"), (0, 1), (-1, 1), (3, 7), (False, True), (0.0, 1.0), ("well", "ill")]
)
@pytest.mark.parametrize("declared", [False, True])
def test_any_two_labels(labels, declared):
    X, y, _ = two_class(3000, 8)
    named = np.array(labels)[y]
    model = PrivateSparseClassifier(5.0, random_state=0, classes=labels if declared else None).fit(X, named)
    assert model.classes_.tolist() == sorted(labels) and model.classes_.dtype == named.dtype
    assert model.score(X, named) > 0.75
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    np.testing.assert_array_equal(model.decision_function(X) > 0, model.predict(X) == model.classes_[1])


def test_declared_labels_make_one_class_a_valid_data_set():
    X, _, _ = two_class(100, 8)
    ones = np.ones(100, dtype=int)
    with pytest.raises(ValueError, match="got 1 class"):
        PrivateSparseClassifier().fit(X, ones)
    model = PrivateSparseClassifier(classes=(0, 1)).fit(X, ones)
    assert model.classes_.tolist() == [0, 1]
    for outside in (ones + 1, ones.astype(str), np.full(100, np.nan)):
        with pytest.raises(ValueError, match="only the two labels in classes"):
            PrivateSparseClassifier(classes=(0, 1)).fit(X, outside)


@pytest.mark.parametrize(
    "wrong", [(1, 1), (1,), (0, 1, 2), "ab", 5, (0, "a"), (0.0, float("nan")), (None, 1)]
)
def test_declared_labels_must_be_two(wrong):
    X, y, _ = two_class(100, 8)
    with pytest.raises(ValueError, match="classes must be two different labels"):
        PrivateSparseClassifier(classes=wrong).fit(X, y)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.arange(100), "Only binary classification"),
        (np.linspace(0, 1, 100), "continuous"),
        (np.array(["a", 1] * 50, dtype=object), "Unknown label type"),
        (np.arange(100).astype("datetime64[D]"), "Unknown label type"),
    ],
)
def test_labels_that_are_no_classes(labels, message):
    X, _, _ = two_class(100, 8)
    with pytest.raises(ValueError, match=message):
        PrivateSparseClassifier().fit(X, labels)


def test_a_column_of_targets_is_taken_with_a_warning_to_the_caller():
    X, y, _ = linear(50, 5)
    for model in BOTH:
        flat = model(random_state=0).fit(X, target_for(model, y))
        with pytest.warns(UserWarning, match="column-vector y") as caught:
            column = model(random_state=0).fit(X, target_for(model, y)[:, None])
        assert caught[0].filename == __file__
        np.testing.assert_array_equal(column.coef_, flat.coef_)
