"""Sparse eigenvalues of a design (Definition "Sparse Riesz Condition")."""

from __future__ import annotations

import math
from itertools import chain, combinations, islice

import numpy as np
import numpy.typing as npt

from fliphat import arguments

# Submatrices solved at once: enough to spare Python's time, few enough to spare memory.
_TOGETHER = 4096


def sparse_eigenvalues(
    covariance: npt.ArrayLike, sparsity: int, *, limit: int = 1_000_000
) -> tuple[float, float]:
    """Return the smallest and largest of ``u'Au / u'u`` over vectors with at most s non-zeros.

    Exact, by going through all supports of size s (smaller ones are covered: eigenvalues of a submatrix
    interlace); more than `limit` supports are refused.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = sparse_eigenvalues([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 2.0]], 2)
    >>> round(low, 6), round(high, 6)
    (0.5, 2.0)
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(f"covariance must be a square matrix, got shape {matrix.shape}")
    if not np.all(np.isfinite(matrix)) or not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0):
        raise ValueError("covariance must be finite and symmetric")
    dim = len(matrix)
    sparsity = arguments.integer("sparsity", sparsity, 1, dim)
    count = math.comb(dim, sparsity)
    if count > arguments.integer("limit", limit, 1, 2**62):
        raise ValueError(f"sparsity must leave at most {limit} supports to go through, got {count}")
    supports = combinations(range(dim), sparsity)
    low, high = math.inf, -math.inf
    while part := list(islice(supports, _TOGETHER)):
        index = np.fromiter(chain.from_iterable(part), np.intp).reshape(-1, sparsity)
        values = np.linalg.eigvalsh(matrix[index[:, :, None], index[:, None, :]])
        low, high = min(low, float(values[:, 0].min())), max(high, float(values[:, -1].max()))
    return low, high


def ar1_sparse_eigenvalues(phi: float, sparsity: int) -> tuple[float, float]:
    """Return the sparse eigenvalues of ``Sigma_ij = phi^|i-j|``, for any dimension of at least s.

    They are those of s neighbouring coordinates. For the largest: the sizes of the entries grow as
    coordinates close up, and with them (Perron) the largest eigenvalue; alternating signs take a negative phi
    to a positive one. For the smallest: the inverse is tridiagonal and the sizes of its entries grow in the
    same way. For every s they lie between ``(1-|phi|)/(1+|phi|)`` and ``(1+|phi|)/(1-|phi|)``, which they
    approach.

    Examples
    --------
    >>> low, high = ar1_sparse_eigenvalues(0.1, 10)
    >>> round(low, 3), round(high, 3)
    (0.824, 1.211)
    """
    phi = arguments.real("phi", phi)
    if not -1 < phi < 1:
        raise ValueError(f"phi must be above -1 and below 1, got {phi!r}")
    place = np.arange(arguments.integer("sparsity", sparsity, 1, 4000))
    values = np.linalg.eigvalsh(np.float64(phi) ** np.abs(place[:, None] - place[None, :]))
    return float(values[0]), float(values[-1])


def equicorrelated_sparse_eigenvalues(rho: float, sparsity: int) -> tuple[float, float]:
    """Return the sparse eigenvalues for equal correlations: ``1 - rho`` and ``1 + (s-1) rho``.

    Examples
    --------
    >>> equicorrelated_sparse_eigenvalues(0.5, 3)
    (0.5, 2.0)
    """
    rho = arguments.real("rho", rho)
    if not 0 <= rho < 1:
        raise ValueError(f"rho must be at least 0 and below 1, got {rho!r}")
    sparsity = arguments.integer("sparsity", sparsity, 1, 2**31 - 1)
    return (1.0 - rho if sparsity > 1 else 1.0), 1.0 + (sparsity - 1) * rho
