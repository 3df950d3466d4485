"""The estimators inside scikit-learn: its own checks, clones, pipelines and searches."""

import dataclasses
import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import (
    check_classifiers_train,
    check_regressors_train,
    parametrize_with_checks,
)

from fliphat import Iht, PrivateSparseClassifier, PrivateSparseRegressor
from fliphat.privacy import Ledger
from fliphat.privacy.guarantee import PrivacyWarning
from fliphat.regression.linear_estimator import LinearEstimator

# Checks that contradict randomised private fitting, with the reason. There is none: scikit-learn's checks set
# `random_state` wherever they compare two fits.
EXCLUDED: dict[str, str] = {}

# What tags change in those checks, with the reason.
TAGS = {
    "input_tags.sparse": "not a relaxation: sparse rows are checked too",
    "regressor_tags.poor_score": "at epsilon = 1 the 200 rows of the training checks are mostly noise",
    "classifier_tags.poor_score": "at epsilon = 1 the 200 rows of the training checks are mostly noise",
    "classifier_tags.multi_class": "the logistic loss is for two classes; three are refused",
}

ESTIMATORS = [
    PrivateSparseRegressor(),
    PrivateSparseRegressor(fit_intercept=True, solver=Iht(mechanism="laplace"), delta=0.0),
    PrivateSparseClassifier(),
    PrivateSparseClassifier(fit_intercept=True),
]


@pytest.fixture(autouse=True)
def _told(monkeypatch):
    """What is said once in a process has been said, where a test does not ask for it."""
    monkeypatch.setattr(LinearEstimator, "_told_of_clones", True)


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: EXCLUDED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def flat(tags):
    for group, value in ((f.name, getattr(tags, f.name)) for f in dataclasses.fields(tags)):
        if dataclasses.is_dataclass(value):
            yield from ((f"{group}.{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value))
        else:
            yield group, value


def test_tags_change_only_what_the_table_says():
    changed = set()
    for model, mixin in ((ESTIMATORS[0], RegressorMixin), (ESTIMATORS[-1], ClassifierMixin)):
        plain = type("Plain", (mixin, BaseEstimator), {})()
        changed |= {name for name, _ in set(flat(get_tags(model))) ^ set(flat(get_tags(plain)))}
    assert changed == set(TAGS)


class DemandingRegressor(PrivateSparseRegressor):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = False
        return tags


class DemandingClassifier(PrivateSparseClassifier):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = False
        return tags


# The checks clone by the signature of the class they are given.
DemandingRegressor.__signature__ = inspect.signature(PrivateSparseRegressor)
DemandingClassifier.__signature__ = inspect.signature(PrivateSparseClassifier)

TRAINING = [(DemandingRegressor, check_regressors_train), (DemandingClassifier, check_classifiers_train)]


@pytest.mark.parametrize(("model", "check"), TRAINING)
def test_with_a_large_budget_the_training_checks_hold_in_full(model, check):
    check(model.__name__, model(epsilon=1e4))


@pytest.mark.parametrize(("model", "check"), TRAINING)
def test_with_a_small_budget_they_fail_in_full(model, check, monkeypatch):
    # The control of the test above, and the reason of the tag: private noise must show on 200 rows.
    failed = 0
    for seed in range(8):
        # The check gives every model one seed, whose noise may happen to help.
        monkeypatch.setattr(
            estimator_checks, "set_random_state", lambda one, seed=seed: one.set_params(random_state=seed)
        )
        try:
            check(model.__name__, model(epsilon=0.01))
        except AssertionError:
            failed += 1
    assert failed >= 3


def test_kinds_are_recognised():
    assert is_regressor(PrivateSparseRegressor()) and is_classifier(PrivateSparseClassifier())


def test_a_clone_has_the_parameters_and_not_the_fit():
    model = PrivateSparseClassifier(2.0, classes=("a", "b"), sparsity=3, random_state=4)
    X = np.random.default_rng(0).standard_normal((100, 5))
    model.fit(X, np.where(X[:, 0] > 0, "a", "b"))
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "coef_") and not hasattr(copy, "guarantee_")


def in_hundreds(X):
    return X / 100


def test_pipeline_and_search():
    rng = np.random.default_rng(0)
    X = 100 * rng.standard_normal((3000, 10))
    y = 0.01 * X[:, 2] - 0.01 * X[:, 4]
    # A public unit: a StandardScaler would measure it on the rows, outside of the guarantee.
    pipeline = make_pipeline(FunctionTransformer(in_hundreds), PrivateSparseRegressor(4.0, random_state=0))
    assert pipeline.fit(X, y).score(X, y) > 0.95
    assert clone(pipeline).set_params(privatesparseregressor__epsilon=1e-3).fit(X, y).score(X, y) < 0.5
    search = GridSearchCV(
        PrivateSparseRegressor(4.0, feature_scale=100.0, random_state=0), {"sparsity": [1, 2]}, cv=2
    ).fit(X, y)
    assert search.best_params_ == {"sparsity": 2}


def test_a_search_without_a_ledger_is_told_once_that_every_fit_is_a_release(monkeypatch):
    monkeypatch.setattr(LinearEstimator, "_told_of_clones", False)
    X = np.random.default_rng(0).standard_normal((200, 5))

    def search(**options):
        return GridSearchCV(PrivateSparseRegressor(**options), {"sparsity": [1, 2]}, cv=2).fit(X, X[:, 0])

    # Nobody is told what does not concern them: one fit, an account of all fits, simulations.
    PrivateSparseRegressor().fit(X, X[:, 0])
    search(ledger=Ledger(delta=1e-3))
    search(random_state=0)
    with pytest.warns(PrivacyWarning, match="every fit is a release of its own") as caught:
        search()
    assert len(caught) == 1
    search()
