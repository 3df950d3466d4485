"""Random matrices shared by the tests."""

import numpy as np
import scipy.sparse as sp


def problem(seed, n, d, dtype=np.float32, density=1.0, support=5, labels=False):
    """Rows, rewards and a sparse estimate; `density` below 1 leaves zeros that CSR does not store."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    X[rng.random((n, d)) >= density] = 0
    theta = np.zeros(d)
    theta[rng.permutation(d)[:support]] = rng.standard_normal(min(support, d))
    y = (rng.random(n) < 0.5).astype(float) if labels else rng.standard_normal(n)
    return X, y, theta


def csr(X, index=np.int32):
    matrix = sp.csr_array(X)
    matrix.indptr, matrix.indices = matrix.indptr.astype(index), matrix.indices.astype(index)
    return matrix
