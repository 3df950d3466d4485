"""Sparse true coefficients."""

from __future__ import annotations

import numpy as np

from fliphat import arguments
from fliphat.environments.environment import MAX_SEED, Pairs

# Keeps these draws apart from any other use of the same seed.
_STREAM = 0x7472757468


def sparse_truth(
    dim: int,
    sparsity: int,
    *,
    positions: str = "first",
    low: float = 0.5,
    high: float = 1.0,
    seed: int = 0,
) -> Pairs:
    """Draw true coefficients: magnitudes uniform in [low, high], random signs.

    Parameters
    ----------
    dim, sparsity : int
        d, and s*, the number of coefficients that are not zero.
    positions : {"first", "random"}
        The first coordinates, as in the paper, or a uniformly random set.
    low, high : float
        Range of magnitudes, 0 < low <= high.
    seed : int

    Returns
    -------
    columns : ndarray of int64, shape (sparsity,)
        Ascending.
    values : ndarray of float64, shape (sparsity,)

    Examples
    --------
    >>> columns, values = sparse_truth(400, 5, seed=3)
    >>> columns
    array([0, 1, 2, 3, 4])
    >>> bool(((abs(values) >= 0.5) & (abs(values) <= 1.0)).all())
    True
    """
    dim = arguments.integer("dim", dim, 1, 2**31 - 1)
    sparsity = arguments.integer("sparsity", sparsity, 0, dim)
    arguments.choice("positions", positions, ("first", "random"))
    low, high = arguments.positive("low", low), arguments.positive("high", high)
    if low > high:
        raise ValueError(f"low must be at most high, got {low!r} and {high!r}")
    rng = np.random.default_rng([_STREAM, arguments.integer("seed", seed, 0, MAX_SEED)])
    values = rng.uniform(low, high, sparsity) * rng.choice([-1.0, 1.0], sparsity)
    columns = np.arange(sparsity)
    if positions == "random":
        columns = np.sort(rng.choice(dim, sparsity, replace=False, shuffle=False))
    return columns.astype(np.int64), values
