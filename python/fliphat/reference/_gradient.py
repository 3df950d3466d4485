"""Twins of the clipped integer gradient. Equal to the kernel bit for bit."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fliphat.reference._select import score
from fliphat.reference._sigmoid import sigmoid

_LIMIT = 2**15

#: Sums of this many integers up to 2**15 are exact in float32.
_EXACT_ROWS = 2**9

Loss = Literal["squared", "logistic"]


def clipped_gradient(
    X: Any,
    y: npt.NDArray[np.float64],
    theta: npt.NDArray[np.float64],
    clip: float,
    *,
    reward_clip: float | None = None,
    loss: Loss = "squared",
    present: npt.NDArray[np.bool_] | None = None,
) -> tuple[npt.NDArray[np.int64], float]:
    """Sum clipped gradients in integers: the expression people write, for dense or CSR rows."""
    if present is not None:
        X, y = X[present], y[present]
    with np.errstate(over="ignore", invalid="ignore"):
        factor = _factor(X, y, theta, clip, reward_clip, loss)
        if isinstance(X, np.ndarray):
            q = np.rint(np.clip(X * factor[:, None], -_LIMIT, _LIMIT))
            sums = np.nan_to_num(q, copy=False).sum(axis=0, dtype=np.int64)
        else:
            q = np.rint(np.clip(X.data * np.repeat(factor, np.diff(X.indptr)), -_LIMIT, _LIMIT))
            # Weighted counts are float64 sums of integers: exact below 2**53.
            sums = np.bincount(X.indices, np.nan_to_num(q, copy=False), X.shape[1]).astype(np.int64)
    return sums, clip / _LIMIT


def clipped_gradient_blocked(
    X: npt.NDArray[Any],
    y: npt.NDArray[np.float64],
    theta: npt.NDArray[np.float64],
    clip: float,
    *,
    reward_clip: float | None = None,
    loss: Loss = "squared",
) -> tuple[npt.NDArray[np.int64], float]:
    """Sum clipped gradients in integers: the best NumPy can do, for dense rows without missing rewards.

    Blocks that fit the cache, every operation in place, and the sum over rows left to BLAS: integers below
    2**24 are exact in float32, in any order of addition.
    """
    n, d = X.shape
    rows = min(_EXACT_ROWS, max(8, 2**16 // d), n)
    work = np.empty((rows, d), X.dtype)
    ones = np.ones(rows, X.dtype)
    total = np.zeros(d)
    with np.errstate(over="ignore", invalid="ignore"):
        factor = _factor(X, y, theta, clip, reward_clip, loss)
        harmless = bool(np.isfinite(factor).all())
        for start in range(0, n, rows):
            block = X[start : start + rows]
            q = np.multiply(block, factor[start : start + rows, None], out=work[: len(block)])
            np.clip(q, -_LIMIT, _LIMIT, out=q)
            np.rint(q, out=q)
            if not harmless:
                np.nan_to_num(q, copy=False)
            total += ones[: len(block)] @ q
    return total.astype(np.int64), clip / _LIMIT


def _factor(
    X: Any,
    y: npt.NDArray[np.float64],
    theta: npt.NDArray[np.float64],
    clip: float,
    reward_clip: float | None,
    loss: Loss,
) -> npt.NDArray[Any]:
    """Return what each row is multiplied with, in the rows' dtype."""
    dots = score(X, theta)
    if loss == "logistic":
        residual = sigmoid(dots) - y
    else:
        residual = dots - (y if reward_clip is None else np.clip(y, -reward_clip, reward_clip))
    return (residual * _LIMIT / clip).astype(X.dtype)
