"""Scores of arms under a public estimate, and the greedy choice between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _rows


def score(contexts: Any, theta: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Score each arm: its context times `theta`, reading only the columns where `theta` is not zero.

    Parameters
    ----------
    contexts : ndarray of float32 or float64, shape (K, d) or (n, K, d), or SciPy CSR, shape (rows, d)
    theta : array_like, shape (d,)

    Returns
    -------
    ndarray of float64, shape (K,), (n, K) or (rows,)
        Summed in float64 in ascending column order, so that dense and CSR agree to the bit.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import kernels
    >>> kernels.score(np.array([[1.0, 7.0], [2.0, 7.0]]), [3.0, 0.0])
    array([3., 6.])
    """
    if _rows.is_sparse(contexts):
        sparse = _rows.sparse_rows("contexts", contexts)
        _rows.nonempty("contexts", sparse.shape)
        estimate = _estimate(theta, sparse.shape[1])
        return _native.scores(_rows.native(sparse), estimate)
    dense = _rows.dense_rows("contexts", contexts, 2, 3, copy=True)
    _rows.nonempty("contexts", dense.shape)
    estimate = _estimate(theta, dense.shape[-1])
    scores = _native.scores(dense.reshape(-1, dense.shape[-1]), estimate)
    return scores.reshape(dense.shape[:-1])


def select_arms(
    contexts: Any, theta: npt.ArrayLike, rng: np.random.Generator, *, arms: int | None = None
) -> Any:
    """Choose the arm with the highest score in each round; ties are broken uniformly at random.

    A zero `theta` is one big tie. Each round takes exactly one 64-bit word from `rng`, whether it ties or
    not, so that what one round holds never moves another round's draw.

    Parameters
    ----------
    contexts : ndarray of float32 or float64, shape (K, d) or (n, K, d), or SciPy CSR, shape (n * K, d)
    theta : array_like, shape (d,)
    rng : numpy.random.Generator
    arms : int, optional
        For CSR only: K. By default the whole matrix is one round.

    Returns
    -------
    int or ndarray of int64, shape (n,)
        An int for a single round: contexts of shape (K, d), or CSR without `arms`.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import kernels
    >>> rng = np.random.default_rng(0)
    >>> kernels.select_arms(np.array([[1.0, 7.0], [2.0, 7.0]]), [3.0, 0.0], rng)
    1
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    if _rows.is_sparse(contexts):
        return _select_sparse(contexts, theta, rng, arms)
    if arms is not None:
        raise ValueError("arms is only for CSR contexts: a dense array's shape says how many arms it has")
    dense = _rows.dense_rows("contexts", contexts, 2, 3, copy=True)
    _rows.nonempty("contexts", dense.shape)
    count, d = dense.shape[-2:]
    chosen = _native.select_arms(
        dense.reshape(-1, d), count, _estimate(theta, d), _words(rng, dense.size // (count * d))
    )
    return chosen if dense.ndim == 3 else int(chosen[0])


def _select_sparse(contexts: Any, theta: npt.ArrayLike, rng: np.random.Generator, arms: int | None) -> Any:
    sparse = _rows.sparse_rows("contexts", contexts)
    _rows.nonempty("contexts", sparse.shape)
    rows, d = sparse.shape
    count = rows if arms is None else arguments.integer("arms", arms, 1, rows)
    if rows % count:
        raise ValueError(f"contexts must have a multiple of arms = {count} rows, got {rows}")
    chosen = _native.select_arms(_rows.native(sparse), count, _estimate(theta, d), _words(rng, rows // count))
    return int(chosen[0]) if arms is None else chosen


def _estimate(theta: npt.ArrayLike, d: int) -> npt.NDArray[np.float64]:
    return _rows.vector("theta", theta, d, ", one value for each column of contexts")


def _words(rng: np.random.Generator, rounds: int) -> npt.NDArray[np.uint64]:
    return rng.integers(0, 2**64, rounds, np.uint64)
