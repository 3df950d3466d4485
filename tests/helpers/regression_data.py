"""Sparse truths to recover, shared by the tests of the estimators."""

import numpy as np

from fliphat import PrivateSparseClassifier, PrivateSparseRegressor

BOTH = [PrivateSparseRegressor, PrivateSparseClassifier]


def linear(n, d, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    truth = np.zeros(d)
    truth[:4] = 0.6, -0.5, 0.4, -0.45
    return scale * X, X @ truth + 0.1 * rng.standard_normal(n), truth / scale


def two_class(n, d, seed=0):
    X, _, truth = linear(n, d, seed)
    odds = 4 * (X @ truth)
    return X, (np.random.default_rng(seed + 1).random(n) < 1 / (1 + np.exp(-odds))).astype(int), truth


def target_for(model, y):
    return y if model is PrivateSparseRegressor else (y > 0).astype(int)
