"""Pursuit with the logistic loss: coefficients stay log odds, also of columns that are rarely there."""

import dataclasses
import math
from unittest import mock

import numpy as np
import pytest

from fliphat import FLIPHAT
from fliphat.environments import SparseClicks
from fliphat.fit import kept_tuning, make_fit, model
from fliphat.fit.model import scores
from fliphat.fit.settings import Settings
from fliphat.fit.tuning import click_tuning, tuning
from fliphat.simulation import play


def played(seed, constants=click_tuning):
    """Return the largest coefficient, and the clicks of the last rounds."""
    with mock.patch("fliphat.fit.pursuit.click_tuning", constants):
        policy = FLIPHAT(400, 30, 1.0, 1e-6, loss="logistic", fit="pursuit", seed=seed)
        rewards = play(policy, SparseClicks(400, 5, nonzeros=50, seed=seed), 10_000).rewards
    return np.abs(policy.estimate.to_dense()).max(), rewards[-3000:].mean()


def test_coefficients_of_rare_columns_do_not_run_away():
    largest, clicks = played(301)
    assert largest < 3 and clicks > 0.58
    # With residuals cut as those of the squared loss they do.
    runaway, fewer = played(301, kept_tuning.unrecorded)
    assert runaway > 2 * largest and fewer < clicks


def fit_of(loss, **changes):
    settings = Settings.checked(dim=50, sparsity=10, epsilon=1.0, delta=0.01, loss=loss, fit="pursuit")
    fit = make_fit(settings)
    constants = dataclasses.replace(fit.settings.constants, **changes)
    return make_fit(dataclasses.replace(fit.settings, constants=constants))


def test_residuals_of_clicks_are_left_whole():
    usual, cut = fit_of("logistic"), fit_of("logistic", whole_residuals=0.0)
    # At even odds a residual is one half: the clip must not be below it.
    assert usual.plan(0, usual.begin()).steps.value_clip == pytest.approx(0.5)
    assert cut.plan(0, cut.begin()).steps.value_clip < 0.4


def test_columns_that_are_rarely_there_are_not_blown_up():
    fit = fit_of("logistic")
    known = dataclasses.replace(
        fit.begin(),
        columns=np.array([3]),
        units=np.ones(1),
        theta=np.zeros(2),
        covariance=np.eye(2),
        moments=np.diag([1.0, 0.01]),
        precision=np.full((2, 2), 1e9),
    )
    largest = np.abs(model.open_episode(known, fit.told).whiten).max()
    assert largest <= 1 / math.sqrt(fit.told.tuning.whitened_from) + 1e-9
    blown = fit_of("logistic", whitened_from=0.0)
    assert np.abs(model.open_episode(known, blown.told).whiten).max() > 2


def test_the_squared_loss_knows_nothing_of_this():
    plain, other = fit_of("squared"), fit_of("squared", log_odds=0.1, whole_residuals=9.0, whitened_from=9.0)
    assert plain.settings.constants == tuning(plain.told.mu)
    first, second = (fit.plan(0, fit.begin()) for fit in (plain, other))
    assert first.steps.value_clip == second.steps.value_clip
    assert np.array_equal(first.steps.whiten, second.steps.whiten)
    assert scores.within_odds(other.begin(), other.told) == 1.0


def test_a_record_from_before_sizes_were_told_can_be_fitted():
    fit = fit_of("logistic")
    record = fit.begin().to_record()
    for name in ("told_size", "octaves", "octaves_weight", "doubted"):
        del record[name]
    known = fit.recall(record)
    assert known.told_size == known.start_size > 0
    plan = fit.plan(0, known)
    rows = np.random.default_rng(0).standard_normal((plan.rows, 50)).astype(np.float32)
    after = fit.run(plan, rows, (rows[:, 0] > 0).astype(float), np.ones(plan.rows, bool), known)
    assert np.isfinite(after.theta).all()
