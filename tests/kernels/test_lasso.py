import numpy as np
import pytest
from sklearn.linear_model import Lasso

from fliphat import kernels, reference


def problem(seed, n=80, d=40):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
    y = X[:, :3] @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(n)
    return X, y


@pytest.mark.parametrize("penalty", [0.5, 5.0, 50.0])
@pytest.mark.parametrize("seed", range(3))
def test_kernel_twin_and_scikit_learn_agree(seed, penalty):
    X, y = problem(seed)
    ours = kernels.lasso(X.T @ X, X.T @ y, penalty, tolerance=1e-9)
    twin = reference.lasso(X.T @ X, X.T @ y, penalty, tolerance=1e-9)
    theirs = Lasso(penalty / len(y), fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y).coef_
    assert np.allclose(ours, twin, atol=1e-7) and np.allclose(ours, theirs, atol=1e-6)
    assert 0 < np.count_nonzero(ours) < 40


def test_more_columns_than_rows_and_any_start_reach_the_same_minimum():
    X, y = problem(7, n=30, d=100)
    gram, c = X.T @ X, X.T @ y

    def value(w):
        return w @ gram @ w / 2 - c @ w + 2.0 * np.abs(w).sum()

    cold = kernels.lasso(gram, c, 2.0, tolerance=1e-8)
    warm = kernels.lasso(gram, c, 2.0, tolerance=1e-8, start=np.random.default_rng(1).standard_normal(100))
    assert value(warm) == pytest.approx(value(cold), rel=1e-6)
    assert all(value(cold) <= value(cold + shift) for shift in 1e-3 * np.eye(100))


def test_a_penalty_above_every_correlation_leaves_nothing():
    X, y = problem(1)
    largest = np.abs(X.T @ y).max()
    assert not kernels.lasso(X.T @ X, X.T @ y, largest * 1.001).any()
    assert kernels.lasso(X.T @ X, X.T @ y, largest * 0.999).any()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"penalty": 0.0}, ValueError, "penalty must be a finite number above 0, got 0.0"),
        ({"gram": np.eye(3)}, ValueError, r"gram must have shape \(2, 2\), got \(3, 3\)"),
        ({"gram": np.eye(2, dtype=np.float32)}, TypeError, "gram must be float64, got float32"),
        ({"start": [0.0]}, ValueError, r"start must have shape \(2,\)"),
        ({"correlations": []}, ValueError, "correlations must have at least one"),
        ({"most_sweeps": 0}, ValueError, "most_sweeps must be an integer from 1"),
    ],
)
def test_bad_arguments_are_named(change, error, message):
    arguments = {"gram": np.eye(2), "correlations": [1.0, 2.0], "penalty": 1.0, **change}
    with pytest.raises(error, match=message):
        kernels.lasso(**arguments)
