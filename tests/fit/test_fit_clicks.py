"""Pursuit with the logistic loss: coefficients stay log odds, also of columns that are rarely there."""

import dataclasses
import math
from unittest import mock

import numpy as np
import pytest

from fliphat import FLIPHAT, Pursuit
from fliphat.environments import SparseClicks
from fliphat.fit import make_fit
from fliphat.fit.pursuit import plan as plans
from fliphat.fit.pursuit.constants import class_tuning, click_tuning, tuning
from fliphat.fit.pursuit.plan import open_episode
from fliphat.fit.settings import Settings, read_constants, written_constants
from fliphat.regression.parts import PartsFit
from fliphat.simulation import play


def played(seed, constants=click_tuning):
    """Return the largest coefficient, and the clicks of the last rounds."""
    with mock.patch("fliphat.fit.pursuit.fit.click_tuning", constants):
        policy = FLIPHAT(400, 30, 1.0, 1e-6, loss="logistic", fit=Pursuit(), seed=seed)
        rewards = play(policy, SparseClicks(400, 5, nonzeros=50, seed=seed), 10_000).rewards
    return np.abs(policy.estimate.to_dense()).max(), rewards[-3000:].mean()


def test_coefficients_of_rare_columns_do_not_run_away():
    largest, clicks = played(302)
    assert largest < 3 and clicks > 0.58
    # With residuals cut as those of the squared loss they do.
    runaway, fewer = played(302, tuning)
    assert runaway > 2 * largest and fewer < clicks


def fit_of(loss, **changes):
    settings = Settings.checked(dim=50, sparsity=10, epsilon=1.0, delta=0.01, loss=loss, fit=Pursuit())
    fit = make_fit(settings)
    constants = dataclasses.replace(fit.settings.constants, **changes)
    return make_fit(dataclasses.replace(fit.settings, constants=constants))


def test_residuals_of_clicks_are_left_whole():
    usual, cut = fit_of("logistic"), fit_of("logistic", whole_residuals=0.0)
    # At even odds a residual is one half: the clip must not be below it.
    assert usual.plan(0, usual.begin()).steps.value_clip >= 0.5
    assert cut.plan(0, cut.begin()).steps.value_clip < 0.4


def knowing(fit, intercept, coefficient=0.0, mean=0.0):
    """Return what is known where one column of a mean has been found."""
    return dataclasses.replace(
        fit.begin(),
        columns=np.array([3]),
        units=np.ones(1),
        theta=np.array([intercept, coefficient]),
        covariance=np.eye(2),
        moments=np.array([[1.0, mean], [mean, max(mean, 0.5)]]),
        precision=np.full((2, 2), 1e9),
    )


@pytest.mark.parametrize("log_odds", [-3.5, 0.0, 2.0])
def test_candidates_are_not_picked_for_having_a_mean(log_odds):
    fit, cut = fit_of("logistic"), fit_of("logistic", whole_picks=0.0)
    likely = 1 / (1 + math.exp(-log_odds))

    def mean_of_a_column_that_does_not_matter(fit):
        # Always 1: its gradient is the residual, a click's or that of no click.
        clip = open_episode(knowing(fit, log_odds), fit.given).pick_clip
        return likely * min(1 - likely, clip) - (1 - likely) * min(likely, clip)

    assert abs(mean_of_a_column_that_does_not_matter(fit)) < 1e-9
    if log_odds:
        assert abs(mean_of_a_column_that_does_not_matter(cut)) > 1e-3


def test_the_typical_score_is_that_of_columns_at_their_means():
    fit, at_zero = fit_of("logistic"), fit_of("logistic", mean_scores=False)
    known = knowing(fit, -1.0, coefficient=2.0, mean=0.9)
    assert 0 < plans.typical_score(known, fit.given)[0] < 0.8
    assert plans.typical_score(known, at_zero.given)[0] < -0.5
    # Three quarters of rounds are clicked: no click is then the larger residual.
    known = knowing(fit, -1.0, coefficient=2.1 / 0.9, mean=0.9)
    assert plans.largest_residual(known, fit.given) == pytest.approx(0.75, abs=0.03)


def test_what_may_be_noise_counts_for_less_where_arms_are_scored():
    fit = fit_of("logistic", shrink=1.0)
    known = dataclasses.replace(
        fit.begin(),
        columns=np.array([9, 3, 5]),
        units=np.array([1.0, 2.0, 1.0]),
        theta=np.array([0.5, 0.4, 1.0, 0.1]),
        covariance=np.diag([1.0, 0.04, 0.01, 0.04]),
        moments=np.eye(4),
        precision=np.eye(4),
    )
    assert known.shrink == 1.0
    drawn = known.estimate
    assert drawn.indices.tolist() == [3, 9] and drawn.values == pytest.approx([0.5 * 0.99, 0.4 * 0.75])
    # Nothing stands out: as it is, it is better than nothing. And so are policies that were made before.
    unsure = dataclasses.replace(known, covariance=np.eye(4))
    assert unsure.estimate.values == pytest.approx([0.5, 0.1, 0.4])
    record = known.to_record()
    del record["shrink"]
    assert fit.recall(record).estimate.values == pytest.approx([0.5, 0.1, 0.4])


def test_the_intercept_may_follow_columns_that_come_and_go():
    def deviation(**changes):
        fit = fit_of("logistic", **changes)
        plan, known = fit.plan(0, fit.begin()), fit.begin()
        rows = np.random.default_rng(0).standard_normal((plan.rows, 50)).astype(np.float32)
        clicks = (rows[:, 0] > 0).astype(float)
        return fit.run(plan, rows, clicks, np.ones(plan.rows, bool), known).covariance[0, 0]

    assert deviation(drift_of_one=30.0) > deviation() > deviation(drift_of_one=1.0)


def test_constants_of_clicks_kept_by_the_version_before_do_what_they_did():
    fit = fit_of("logistic")
    added = ("whole_picks", "mean_scores", "drift_of_one", "shrink")
    now = written_constants(class_tuning(fit.given.mu))
    record = {name: now[name] for name in now if name not in added}
    before = make_fit(dataclasses.replace(fit.settings, constants=read_constants(record)))
    known = knowing(before, -1.0, coefficient=2.0, mean=0.9)
    assert plans.typical_score(known, before.given)[0] < -0.5  # at zero, as it was
    r, rare = known.residual_size, plans.rare_residual(known, before.given)
    own = known.context_size
    clip = open_episode(known, before.given).pick_clip
    assert clip == pytest.approx(own * max(before.given.tuning.pick_clip * r, rare))


def test_classes_of_one_data_set_keep_their_constants():
    settings = Settings.checked(dim=50, sparsity=10, epsilon=1.0, delta=1e-5, loss="logistic", fit=Pursuit())
    fit = PartsFit(settings, rows=4000)
    assert (
        fit.pursuit.given.tuning == class_tuning(fit.pursuit.given.mu) != click_tuning(fit.pursuit.given.mu)
    )


def test_columns_that_are_rarely_there_are_not_blown_up():
    fit = fit_of("logistic")
    known = dataclasses.replace(knowing(fit, 0.0), moments=np.diag([1.0, 0.01]))
    largest = np.abs(open_episode(known, fit.given).whiten).max()
    assert largest <= 1 / math.sqrt(fit.given.tuning.whitened_from) + 1e-9
    blown = fit_of("logistic", whitened_from=0.0)
    assert np.abs(open_episode(known, blown.given).whiten).max() > 2


def test_the_squared_loss_knows_nothing_of_this():
    plain, other = (
        fit_of("squared"),
        fit_of("squared", log_odds=0.1, whole_residuals=9.0, whitened_from=9.0, whole_picks=9.0),
    )
    assert plain.settings.constants == tuning(plain.given.mu)
    first, second = (fit.plan(0, fit.begin()) for fit in (plain, other))
    assert first.steps.value_clip == second.steps.value_clip
    assert first.steps.pick_clip == second.steps.pick_clip
    assert np.array_equal(first.steps.whiten, second.steps.whiten)
    begun = other.begin()
    assert second.steps.coefficient == begun.residual_size / begun.context_size == first.steps.coefficient
