"""What the estimators tell the kernel of hard thresholding, and what they state: public numbers only.

Fits in parts have the same tests in `test_regression_parts.py`.
"""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from fliphat import Iht, PrivateSparseClassifier, PrivateSparseRegressor, _native
from fliphat.fit.iht import constants as defaults
from fliphat.kernels import _niht
from fliphat.privacy.scales import MECHANISMS
from regression_data import BOTH, linear, target_for


class Seen(Exception):
    """Stops a fit where the kernel would begin."""


def told(model, X, y, monkeypatch):
    """Return what the kernel is called with: the rows, and everything else."""
    calls = []

    def spy(*rows, **public):
        calls.append((rows, public | {"noise": type(public["noise"])}))
        raise Seen

    with monkeypatch.context() as patch:
        patch.setattr(_niht, "fit", spy)
        with pytest.raises(Seen):
            model.fit(X, y)
    return calls[0]


def neighbours(seed=0):
    X, y, _ = linear(200, 12, seed)
    other_X, other_y = X.copy(), y.copy()
    other_X[17], other_y[17] = 1e9, -1e9
    return (X, y), (other_X, other_y)


def public_numbers_differ(model, monkeypatch):
    (X, y), (other_X, other_y) = neighbours()
    kind = PrivateSparseClassifier if isinstance(model, PrivateSparseClassifier) else PrivateSparseRegressor
    first = told(model, X, target_for(kind, y), monkeypatch)
    second = told(model, other_X, target_for(kind, other_y), monkeypatch)
    return first[1] != second[1]


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_replacing_a_row_changes_nothing_public(model, fit_intercept, monkeypatch):
    assert not public_numbers_differ(model(fit_intercept=fit_intercept, solver=Iht()), monkeypatch)


def test_a_model_that_measures_its_scale_is_caught(monkeypatch):
    class Leaking(PrivateSparseRegressor):
        def fit(self, X, y):
            self.feature_scale = float(np.std(X))
            return super().fit(X, y)

    assert public_numbers_differ(Leaking(solver=Iht()), monkeypatch)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_replacing_a_row_changes_one_row_of_what_is_passed(fit_intercept, monkeypatch):
    (X, y), (other_X, other_y) = neighbours()
    model = PrivateSparseRegressor(fit_intercept=fit_intercept, feature_scale=3.0, solver=Iht())
    (rows, target), _ = told(model, X, y, monkeypatch)
    (other_rows, other_target), _ = told(model, other_X, other_y, monkeypatch)
    assert np.flatnonzero((rows != other_rows).any(axis=1)).tolist() == [17]
    assert np.flatnonzero(target != other_target).tolist() == [17]
    if fit_intercept:
        assert rows.shape == (200, 13) and (rows[:, -1] == 3.0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", BOTH)
def test_rows_are_passed_without_a_copy(model, dtype, monkeypatch):
    X, y, _ = linear(50, 6)
    X, y = X.astype(dtype), target_for(model, y)
    (rows, _), _ = told(model(solver=Iht()), X, y, monkeypatch)
    assert rows.dtype == dtype and np.shares_memory(rows, X)
    (sparse_rows, _), _ = told(model(solver=Iht()), matrix := sp.csr_array(X), y, monkeypatch)
    assert np.shares_memory(sparse_rows.data, matrix.data)
    (converted, _), _ = told(model(solver=Iht()), X.astype(int), y, monkeypatch)
    assert converted.dtype == np.float64


def test_the_noise_passed_is_the_noise_stated(monkeypatch):
    X, y, _ = linear(500, 20)
    for kind in BOTH:
        model = kind(2.0, 1e-4, 3, solver=Iht())
        y_for = target_for(type(model), y)
        _, passed = told(model, X, y_for, monkeypatch)
        noise = model.fit(X, y_for).noise_
        for name in (
            "pick_scale",
            "value_scale",
            "sparsity",
            "iterations",
            "clip",
            "mechanism",
            "value_noise",
        ):
            assert passed[name] == getattr(noise, name)
        assert passed["noise"] is _native.SecureNoise
        assert noise.rows == 500 and model.n_iter_ == noise.iterations
        assert model.guarantee_.rho == noise.rho and model.guarantee_.proven


def test_defaults_are_declared_sizes(monkeypatch):
    X, y, _ = linear(500, 20)
    _, passed = told(
        PrivateSparseRegressor(feature_scale=2.0, target_scale=5.0, solver=Iht()), X, y, monkeypatch
    )
    assert passed["clip"] == 13.0 and passed["l1_radius"] == pytest.approx(2 * np.sqrt(10) * 2.5)
    _, passed = told(PrivateSparseClassifier(feature_scale=2.0, solver=Iht()), X, y > 0, monkeypatch)
    assert passed["clip"] == 1.3 and passed["loss"] == "logistic"
    given = PrivateSparseRegressor(
        solver=Iht(gradient_clip=7.0, l1_radius=3.0, step_size=0.3, iterations=5, reward_clip=2.0)
    )
    _, passed = told(given.set_params(feature_scale=2.0), X, y, monkeypatch)
    wanted = {"clip": 7.0, "l1_radius": 3.0, "step_size": 0.075, "iterations": 5, "reward_clip": 2.0}
    assert {name: passed[name] for name in wanted} == wanted


def test_units_do_not_matter():
    # A power of two changes no mantissa, so declared units must drop out to the last bit.
    X, y, _ = linear(3000, 40)
    plain = PrivateSparseRegressor(random_state=3).fit(X, y)
    scaled = PrivateSparseRegressor(random_state=3, feature_scale=8.0, target_scale=0.5).fit(8 * X, 0.5 * y)
    np.testing.assert_array_equal(scaled.coef_ * 16, plain.coef_)
    wrong = PrivateSparseRegressor(random_state=3).fit(8 * X, 0.5 * y)
    assert (wrong.coef_ * 16 != plain.coef_).any()


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_sparse_and_dense_agree_to_the_bit(model, fit_intercept):
    X, y, _ = linear(400, 15)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0
    X[5] = 0
    y = target_for(model, y)
    fits = [
        model(fit_intercept=fit_intercept, random_state=1).fit(rows, y)
        for rows in (
            X,
            sp.csr_array(X),
            sp.csr_matrix(X),
            sp.csc_array(X),
            sp.coo_array(X),
            np.asfortranarray(X),
        )
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.coef_, fits[0].coef_)
        np.testing.assert_array_equal(fit.intercept_, fits[0].intercept_)
    np.testing.assert_array_equal(fits[0].predict(X), fits[0].predict(sp.csr_array(X)))


def test_repeated_columns_are_summed_in_a_copy():
    parts = [np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3])]
    twice = sp.csr_array(tuple(part.copy() for part in parts), shape=(2, 2))
    once = np.array([[0.0, 3.0], [3.0, 0.0]])
    fits = [PrivateSparseRegressor(random_state=0).fit(rows, [1.0, -1.0]) for rows in (twice, once)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    for kept, part in zip((twice.data, twice.indices, twice.indptr), parts, strict=True):
        np.testing.assert_array_equal(kept, part)


def test_a_public_start_is_used_and_nothing_else_moves(monkeypatch):
    X, y, truth = linear(300, 10)
    model = PrivateSparseRegressor(solver=Iht(start=truth))
    _, passed = told(model, X, y, monkeypatch)
    np.testing.assert_array_equal(passed["start"], truth)
    model.set_params(fit_intercept=True, feature_scale=2.0, solver=Iht(start=np.append(truth, 3.0)))
    _, passed = told(model, X, y, monkeypatch)
    np.testing.assert_array_equal(passed["start"], np.append(truth, 1.5))
    with pytest.raises(ValueError, match=r"start must have shape \(11,\)"):
        model.set_params(solver=Iht(start=truth)).fit(X, y)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_schedule_does_less_where_noise_is_larger(loss):
    noises = np.geomspace(1e-6, 1e3, 200)
    for dim in (1, 2, 400, 10**6):
        plans = [
            [defaults.one_fit(defaults.detectable(v, 1, dim), loss=loss, pure=pure) for v in noises]
            for pure in (False, True)
        ]
        composed, pure = ([plan.iterations for plan in of_kind] for of_kind in plans)
        for iterations in (composed, pure):
            assert iterations == sorted(iterations, reverse=True) and iterations[-1] == 1 < iterations[0]
        assert all(a <= b for a, b in zip(pure, composed, strict=True)) and pure != composed


def test_the_schedule_follows_from_the_budget_and_the_shape():
    X, y, _ = linear(2000, 50)
    iterations = [PrivateSparseRegressor(e, solver=Iht()).fit(X, y).n_iter_ for e in (0.01, 0.3, 1.0, 1e3)]
    assert iterations == sorted(iterations) and len(set(iterations)) == 4
    composed = PrivateSparseRegressor(1.0, solver=Iht()).fit(X, y)
    assert PrivateSparseRegressor(1.0, 0.0).fit(X, y).n_iter_ < composed.n_iter_


def test_without_a_seed_every_fit_is_another_draw():
    X, y, _ = linear(300, 10)
    model = PrivateSparseRegressor()
    assert (model.fit(X, y).coef_ != model.fit(X, y).coef_).any()
    assert model.guarantee_.proven and "differential privacy" in str(model.guarantee_)


@pytest.mark.parametrize("model", BOTH)
def test_a_seed_repeats_the_draw_and_proves_nothing(model):
    X, y, _ = linear(300, 10)
    y = target_for(model, y)
    first, second, other = (model(random_state=seed).fit(X, y) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert (first.coef_ != other.coef_).any()
    assert not first.guarantee_.proven and "seed" in str(first.guarantee_)


def test_records_of_a_fit_outlive_new_parameters():
    X, y, _ = linear(300, 10)
    model = PrivateSparseRegressor(epsilon=0.5, solver=Iht()).fit(X, y)
    before, noise = model.guarantee_, model.noise_
    model.set_params(epsilon=50.0, sparsity=2)
    assert model.guarantee_ is before and before.epsilon == 0.5 and model.noise_ is noise
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.guarantee_.epsilon = 0.1
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.noise_.value_scale = 1
    assert model.fit(X, y).guarantee_.epsilon == 50.0


def test_a_refused_fit_leaves_the_last_release_as_it_was():
    X, y, _ = linear(300, 10)
    model = PrivateSparseRegressor().fit(X, y)
    state = dict(model.__dict__)
    with pytest.raises(ValueError, match="finite"):
        model.fit(np.full_like(X, np.nan), y)
    assert model.__dict__ == state


def test_pure_privacy_and_users():
    X, y, _ = linear(300, 10)
    pure = PrivateSparseRegressor(1.0, 0.0).fit(X, y)
    assert pure.noise_.value_noise == "laplace" and pure.guarantee_.delta == 0
    users = PrivateSparseClassifier(rows_per_user=3, solver=Iht(iterations=1)).fit(X, y > 0)
    single = PrivateSparseClassifier(solver=Iht(iterations=1)).fit(X, y > 0)
    assert users.guarantee_.unit == "user"
    assert users.noise_.value_scale == pytest.approx(3 * single.noise_.value_scale, rel=1e-4)
    picky = PrivateSparseRegressor(1.0, 0.0, solver=Iht(mechanism="laplace")).fit(X, y)
    assert (picky.guarantee_.mechanism, picky.guarantee_.value_noise) == ("laplace", "laplace")
    composed = (PrivateSparseRegressor(solver=Iht(mechanism=law, iterations=2)) for law in MECHANISMS)
    exponential, laplace = (model.fit(X, y).noise_.pick_scale for model in composed)
    assert laplace > 1.2 * exponential
