"""Fits in parts: what the noise is added to, what is told, what is stated. Public numbers only."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from fliphat import Iht, PrivateSparseClassifier, PrivateSparseRegressor, Pursuit, _native
from fliphat.fit.pursuit.fit import RowSums
from fliphat.privacy.conversion import rho_from_epsilon
from fliphat.privacy.priced import PickNoise
from fliphat.regression import parts, solvers
from fliphat.regression.parts import Parts
from regression_data import BOTH, linear, target_for

ROW = 17


# Which rows are in which part.


@pytest.mark.parametrize("rows", [1, 2, 9, 100, 12_345, 3_000_000])
@pytest.mark.parametrize("count", [1, 2, 4, 6, 8])
def test_each_row_is_in_one_part_and_parts_are_alike(rows, count):
    if rows < 8 * count:
        count = 1
    dealt = Parts(rows, count)
    of = dealt.of(0, rows)
    assert of.min() == 0 and of.max() == count - 1 and dealt.lengths == tuple(np.bincount(of).tolist())
    assert max(dealt.lengths) - min(dealt.lengths) <= 2 + np.log2(rows)
    # In pieces, as blocks of rows that live elsewhere ask for them.
    cut = rows // 3
    np.testing.assert_array_equal(np.concatenate([dealt.of(0, cut), dealt.of(cut, rows)]), of)


def test_sorted_rows_make_parts_that_are_alike():
    dealt = Parts(10_000, 4)
    means = [np.arange(10_000)[dealt.of(0, 10_000) == part].mean() for part in range(4)]
    assert np.ptp(means) < 20


def test_parts_without_rows_are_refused():
    with pytest.raises(ValueError, match="count must leave every part a row of 2, got 6"):
        Parts(2, 6)


# What the noise is added to. Recorded noise shows zeros, so that all plans are the same and the sums of two
# data sets can be compared.


def sums_of_parts(model, X, y, monkeypatch):
    """Return what noise would be added to, part by part, in the order of release."""
    noises = {}
    plan_parts = solvers.plan_parts

    def recorded(*public, **more):
        fit = plan_parts(*public, **more)
        fit.pursuit.noise = lambda part: noises.setdefault(part, _native.RecordingNoise())
        return fit

    with monkeypatch.context() as patch:
        patch.setattr(solvers, "plan_parts", recorded)
        model.fit(X, y)
    return [[integers for _, integers, *_ in noise.calls] for noise in noises.values()]


def parts_that_differ(model, monkeypatch):
    kind = type(model)
    X, y, _ = linear(200, 30)
    other_X, other_y = X.copy(), y.copy()
    other_X[ROW], other_y[ROW] = 1e9, -1e9
    first = sums_of_parts(model, X, target_for(kind, y), monkeypatch)
    second = sums_of_parts(model, other_X, target_for(kind, other_y), monkeypatch)
    assert len(first) == len(second) == model.n_iter_
    return [
        part
        for part, both in enumerate(zip(first, second, strict=True))
        if any((a != b).any() for a, b in zip(*both, strict=True))
    ]


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("sparsity", [5, 30])
def test_replacing_a_row_changes_the_sums_of_one_part(kind, fit_intercept, sparsity, monkeypatch):
    model = kind(20.0, sparsity=sparsity, fit_intercept=fit_intercept, solver=Pursuit())
    expected = Parts(200, (fitted := model.fit(*made(kind))).n_iter_).of(ROW, ROW + 1)
    assert fitted.n_iter_ > 2
    assert parts_that_differ(model, monkeypatch) == expected.tolist()


def made(kind):
    X, y, _ = linear(200, 30)
    return X, target_for(kind, y)


def test_control_a_row_used_in_two_parts_is_caught(monkeypatch):
    of = Parts.of

    def everywhere(self, begin, end):
        # A number that is equal to any part: row 17 is taken into each.
        found = of(self, begin, end).astype(object)
        if begin <= ROW < end:
            found[ROW - begin] = Anything()
        return found

    class Anything:
        def __eq__(self, other):
            return True

    model = PrivateSparseRegressor(20.0, sparsity=5, solver=Pursuit())
    count = model.fit(*made(PrivateSparseRegressor)).n_iter_
    lengths = Parts(200, count).lengths
    monkeypatch.setattr(Parts, "lengths", property(lambda self: lengths))
    monkeypatch.setattr(Parts, "of", everywhere)
    assert parts_that_differ(model, monkeypatch) == list(range(count))


def test_control_a_part_chosen_by_contents_is_caught(monkeypatch):
    # Rows dealt out by their target instead of their position: a row moves, and two parts change.
    model = PrivateSparseRegressor(20.0, sparsity=5, solver=Pursuit())
    fitted = model.fit(*made(PrivateSparseRegressor))

    def leaking(plan, rows, target):
        order = np.argsort(np.argsort(target)) * plan.parts.count // len(target)

        def sums_of(part, steps, known):
            at = np.flatnonzero(order == part)
            return RowSums(rows[at], target[at], np.ones(len(at), bool))

        return plan.run(sums_of)

    monkeypatch.setattr("fliphat.regression.parts.parts_from_rows", leaking)
    assert len(parts_that_differ(model, monkeypatch)) > 1 and fitted.n_iter_ > 1


def test_the_sums_move_by_no_more_than_is_charged(monkeypatch):
    rng, worst = np.random.default_rng(0), 0
    X, y, _ = linear(60, 12)
    model = PrivateSparseRegressor(20.0, sparsity=5, solver=Pursuit())
    for _ in range(40):
        other_X, other_y = X.copy(), y.copy()
        row = rng.integers(60)
        other_X[row], other_y[row] = rng.choice([-1e9, 0, 1, 1e9], 12), rng.choice([-1e9, 0, 1e9])
        both = [sums_of_parts(model, *sides, monkeypatch) for sides in ((X, y), (other_X, other_y))]
        for here, there in zip(*both, strict=True):
            worst = max(
                [worst, *(np.abs(a - b).max() for a, b in zip(here, there, strict=True) if len(a) == 12)]
            )
    assert 2**15 < worst <= 2**16


# What is told and stated.


def test_a_plan_needs_no_row():
    model = PrivateSparseRegressor(1.0, 1e-5, solver=Pursuit())
    fit = model._plan(5000, 40)
    assert isinstance(fit, parts.PartsFit)
    known, plan = fit.plan(0, fit.begin())
    assert plan.rows == fit.lengths[0] == known.rows and sum(fit.lengths) == 5000


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("users", [1, 3])
def test_every_part_spends_the_whole_claim_and_no_more(kind, users):
    X, y, _ = linear(4000, 40)
    model = kind(1.0, 1e-4, rows_per_user=users, solver=Pursuit()).fit(X, target_for(kind, y))
    assert model.n_iter_ == len(model.noise_) > 2
    for release in model.noise_:
        assert (release.epsilon, release.delta, release.users) == (1.0, 1e-4, users)
        if users == 1:
            assert release.accounting == "exact" and 0.99e-4 < release.price <= 1e-4
        else:
            assert release.accounting == "zcdp"
            assert 0.999 < release.rho / Fraction(rho_from_epsilon(1.0, 1e-4)) <= 1
    claim = model.guarantee_
    assert claim.proven and (claim.epsilon, claim.delta, claim.rounds_per_user) == (1.0, 1e-4, users)
    assert "row" in str(claim) and claim.to_dict()["accounting"] == ("exact" if users == 1 else "zcdp")


def test_a_fit_of_all_columns_picks_nothing():
    X, y, truth = linear(3000, 8)
    model = PrivateSparseRegressor(2.0, 1e-5, random_state=0).fit(X, y)
    assert model.guarantee_.mechanism == "none" and not model.guarantee_.proven
    assert not any(isinstance(noise, PickNoise) for release in model.noise_ for noise in release.noise)
    np.testing.assert_allclose(model.coef_, truth, atol=0.1)


def test_records_of_a_fit_outlive_new_parameters():
    X, y, _ = linear(300, 10)
    model = PrivateSparseRegressor(epsilon=0.5).fit(X, y)
    before, noise = model.guarantee_, model.noise_
    model.set_params(epsilon=50.0, sparsity=2)
    assert model.guarantee_ is before and before.epsilon == 0.5 and model.noise_ is noise
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.noise_[0].epsilon = 1.0
    assert model.fit(X, y).guarantee_.epsilon == 50.0


# Which solver is taken.


@pytest.mark.parametrize("kind", BOTH)
def test_solvers_by_type(kind):
    X, y, _ = linear(100, 6)
    y = target_for(kind, y)
    assert isinstance(kind(solver=Pursuit()).fit(X, y).noise_, tuple)
    assert not isinstance(kind(solver=Iht()).fit(X, y).noise_, tuple)
    assert not isinstance(kind(delta=0.0).fit(X, y).noise_, tuple)
    with pytest.raises(ValueError, match="solver must be Iht\\(\\) or None with delta=0"):
        kind(delta=0.0, solver=Pursuit()).fit(X, y)
    with pytest.raises(TypeError, match="solver must be Pursuit\\(\\), Iht\\(\\) or None, got str"):
        kind(solver="iht").fit(X, y)


def test_steps_may_be_a_function_of_the_rows():
    X, y, _ = linear(100, 6)
    assert PrivateSparseRegressor(solver=Iht(iterations=lambda rows: rows // 50)).fit(X, y).n_iter_ == 2


@pytest.mark.parametrize(
    ("kind", "rows", "columns", "in_parts"),
    [
        (PrivateSparseRegressor, 100, 6, True),
        (PrivateSparseRegressor, 100, 60, True),
        (PrivateSparseClassifier, 10_000, 60, True),
        (PrivateSparseClassifier, 500, 60, False),
        (PrivateSparseClassifier, 10_000, 6, False),
    ],
)
def test_the_default_follows_from_public_numbers(kind, rows, columns, in_parts):
    assert isinstance(kind(1.0, 1e-5)._plan(rows, columns), parts.PartsFit) == in_parts


def test_sizes_that_only_one_solver_calculates_with():
    X, y, _ = linear(100, 6)
    assert not isinstance(PrivateSparseRegressor(feature_scale=1e-50).fit(1e-50 * X, y).noise_, tuple)
    with pytest.raises(ValueError, match="feature_scale must be a number from 1e-30 to 1e"):
        PrivateSparseRegressor(feature_scale=1e-50, solver=Pursuit()).fit(1e-50 * X, y)
    small = PrivateSparseRegressor(20.0, feature_scale=1e-30, target_scale=1e30, random_state=0)
    assert small.fit(1e-30 * X, 1e30 * y).score(1e-30 * X, 1e30 * y) > 0.5


# What comes out.


@pytest.mark.parametrize("kind", BOTH)
def test_correlated_features_are_no_obstacle(kind):
    rng = np.random.default_rng(5)
    scores = {Pursuit(): [], Iht(): []}
    for seed in range(4):
        X = np.sqrt(0.5) * (rng.standard_normal((5000, 100)) + rng.standard_normal((5000, 1)))
        y = X[:, 3] - X[:, 7] + 0.5 * X[:, 11] + 0.5 * rng.standard_normal(5000)
        for solver, found in scores.items():
            model = kind(1.0, 1e-5, solver=solver, random_state=seed).fit(
                X[:4000], target_for(kind, y[:4000])
            )
            found.append(model.score(X[4000:], target_for(kind, y[4000:])))
    floor = 0.7 if kind is PrivateSparseRegressor else 0.75
    assert np.mean(scores[Pursuit()]) > floor and np.mean(scores[Pursuit()]) > np.mean(scores[Iht()]) + 0.05


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_bad_columns_and_rows_leave_finite_coefficients(kind, fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 20))
    X[:, 1], X[:, 2], X[:, 3], X[5] = X[:, 0], 7.0, 0.0, 0.0
    X[9], X[10] = 1e30, -1e300
    y = X[:, 0] + rng.standard_normal(300)
    y[11] = 1e300
    for sparsity in (3, 20):
        for features, target in ((X, y), (np.zeros_like(X), y), (X, np.full(300, 4.0))):
            target = target if kind is PrivateSparseRegressor else np.arange(300) % 2
            model = kind(3.0, sparsity=sparsity, fit_intercept=fit_intercept, solver=Pursuit())
            model.fit(features, target)
            assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
            assert np.count_nonzero(model.coef_) <= sparsity


@pytest.mark.parametrize("rows", [1, 2, 7, 16, 40])
@pytest.mark.parametrize("columns", [1, 3, 60])
def test_few_rows_are_fitted_all_the_same(rows, columns):
    rng = np.random.default_rng(0)
    model = PrivateSparseRegressor(1.0, 1e-3, fit_intercept=True, solver=Pursuit())
    model.fit(rng.standard_normal((rows, columns)), rng.standard_normal(rows))
    assert np.isfinite(model.coef_).all() and model.guarantee_.proven


def test_sparse_rows_have_the_bits_of_dense_ones():
    X, y, _ = linear(600, 40)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0
    fits = [
        PrivateSparseClassifier(fit_intercept=True, random_state=1, solver=Pursuit()).fit(rows, y > 0)
        for rows in (X, sp.csr_array(X), sp.csc_matrix(X))
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.coef_, fits[0].coef_)
        np.testing.assert_array_equal(fit.intercept_, fits[0].intercept_)


# Targets that are not what was declared.


@pytest.mark.parametrize(
    ("far", "options"),
    [
        (1000.0, {}),
        (5.0, {}),
        (1000.0, {"fit_intercept": True}),
        (30.0, {"fit_intercept": True}),
    ],
)
def test_targets_far_from_zero_are_told_from_what_was_released(far, options):
    X, y, _ = linear(3000, 10)
    model = PrivateSparseRegressor(1.0, 1e-6, sparsity=4, random_state=0, **options)
    with pytest.warns(UserWarning, match=r"what was released has .* and target_scale declares 1") as caught:
        model.fit(X, y + far)
    assert caught[0].filename == __file__
    assert ("fit_intercept=True" in str(caught[0].message)) == (not options)


@pytest.mark.parametrize(("far", "scale"), [(0.0, 1.0), (5.0, 1.0), (1000.0, 300.0)])
def test_an_intercept_finds_targets_that_are_near_enough_in_silence(far, scale):
    X, y, _ = linear(3000, 10)
    model = PrivateSparseRegressor(
        1.0, 1e-6, sparsity=4, fit_intercept=True, target_scale=scale, random_state=0
    )
    model.fit(X, y + far)
    assert abs(model.intercept_ - far) < 0.2 * scale


def test_the_warning_reads_nothing_but_what_was_released(monkeypatch):
    X, y, _ = linear(3000, 10)
    model = PrivateSparseRegressor(1.0, 1e-6, sparsity=4, random_state=0)
    released = []
    monkeypatch.setattr(type(model), "_warn_if_far", lambda self, *public: released.append(public))
    model.fit(X, y + 1000.0)
    assert [[type(number) for number in public] for public in released] == [[float, float]]
