"""Rows that a fit was not made for: it ends, stays finite, and its noise is what it was."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

from fliphat import FLIPHAT

DIM, EPISODES = 12, 5


def equal_columns(rng, n):
    return np.repeat(rng.standard_normal((n, 1)), DIM, axis=1)


def rank_two(rng, n):
    return rng.standard_normal((n, 2)) @ rng.standard_normal((2, DIM))


def constant_columns(rng, n):
    return np.tile(rng.standard_normal(DIM), (n, 1))


def duplicates(rng, n):
    return np.tile(rng.standard_normal((n, DIM // 2)), 2)


def nothing(rng, n):
    return np.zeros((n, DIM))


def some_rows_of_zeros(rng, n):
    return rng.standard_normal((n, DIM)) * (rng.random((n, 1)) < 0.3)


def huge(rng, n):
    return rng.standard_normal((n, DIM)) * 10.0 ** rng.integers(-30, 30, (n, DIM))


def largest(rng, n):
    return np.full((n, DIM), np.finfo(np.float32).max) * rng.choice([-1, 1], (n, DIM))


def linear(rng, X):
    with np.errstate(over="ignore", invalid="ignore"):
        return np.clip(np.nan_to_num(X @ np.linspace(-1, 1, DIM)), -1e300, 1e300)


REWARDS = {
    "linear": linear,
    "all equal": lambda rng, X: np.full(len(X), 3.0),
    "all zero": lambda rng, X: np.zeros(len(X)),
    "huge": lambda rng, X: rng.standard_normal(len(X)) * 1e300,
}


def plans_and_ends(make, reward, *, sparse=False, sparsity=4, first=None, **options):
    """Return the plans' noise and what is known after some episodes."""
    rng = np.random.default_rng(1)
    told = {"dim": DIM, "sparsity": sparsity, "epsilon": 2.0, "delta": 0.01, "seed": 3}
    fit = FLIPHAT(**told, first_episode=first, **options)._fit
    known, noise = fit.begin(), []
    for _ in range(EPISODES):
        plan = fit.plan(known.episodes, known)
        X = make(rng, plan.rows).astype(np.float32)
        rewards = REWARDS[reward](rng, X.astype(np.float64))
        noise.append((plan.release.price, plan.release.epsilon))
        rows = csr_array(X) if sparse else X
        known = fit.run(plan, rows, rewards, rng.random(plan.rows) < 0.9, known)
    return noise, known


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize(
    "make",
    [
        equal_columns,
        rank_two,
        constant_columns,
        duplicates,
        nothing,
        some_rows_of_zeros,
        huge,
        largest,
    ],
)
def test_the_fit_ends_and_stays_finite(make, reward, sparse):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        noise, known = plans_and_ends(make, reward, sparse=sparse)
    for price, epsilon in noise:
        assert 0 < price <= 0.01
        assert epsilon == 2.0
    for numbers in (known.theta, known.covariance, known.moments, known.precision):
        assert np.isfinite(numbers).all()
    assert 0 < known.residual_size < np.inf
    assert 0 < known.context_size < np.inf
    assert len(known.columns) <= 4
    assert len(set(known.columns.tolist())) == len(known.columns)


def test_a_support_larger_than_the_rows():
    noise, known = plans_and_ends(some_rows_of_zeros, "linear", sparsity=DIM, first=3)
    assert all(price <= 0.01 for price, _ in noise)
    assert np.isfinite(known.theta).all()
    assert len(known.columns) <= DIM
