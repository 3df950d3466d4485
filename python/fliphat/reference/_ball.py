"""Twins of statistics of rows cut to an l2 ball. Equal to the kernels bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.kernels._ball import moment_units

_LANES = 8

#: Products of this many rows of integers below 2**15 are exact in float64.
_EXACT_ROWS = 2**22


def second_moments(
    X: Any,
    columns: npt.ArrayLike | None = None,
    *,
    norm: float | None = None,
    radius: int | None = None,
    scale: npt.ArrayLike | None = None,
    center: npt.ArrayLike | None = None,
    one: float | None = None,
    present: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[Any]:
    """Sum second moments of rows cut to a ball, for dense or CSR rows; products are left to BLAS."""
    radius, scale, one, unit = moment_units(norm, radius, scale, one)
    q = _integers(X, columns, radius, scale, one, np.ones(X.shape[0]), present, center).astype(np.float64)
    total = np.zeros((q.shape[1], q.shape[1]), np.int64)
    for start in range(0, len(q), _EXACT_ROWS):
        block = q[start : start + _EXACT_ROWS]
        total += (block.T @ block).astype(np.int64)
    return total if unit is None else total * unit**2


def ball_gradient(
    X: Any,
    residuals: npt.NDArray[np.float64],
    arms: npt.NDArray[np.int64],
    *,
    count: int,
    radius: int,
    scale: npt.ArrayLike,
    columns: npt.ArrayLike | None = None,
    one: float | None = None,
    present: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.int64]:
    """Sum gradients cut to a ball for each arm, for dense or CSR rows."""
    q = _integers(X, columns, radius, scale, one, np.asarray(residuals), present)
    sums = np.zeros((count, q.shape[1]), np.int64)
    np.add.at(sums, np.asarray(arms), q)
    return sums


def arm_sums(
    X: Any,
    rewards: npt.NDArray[np.float64],
    arms: npt.NDArray[np.int64],
    *,
    count: int,
    center: npt.ArrayLike,
    scale: npt.ArrayLike,
    radius: int,
    halves: bool = False,
    squares: int | None = None,
    present: npt.NDArray[np.bool_] | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sum what a linear model of each arm needs, for dense or CSR rows."""
    d = len(np.asarray(scale))
    here = np.ones(X.shape[0], bool) if present is None else np.asarray(present)
    q = _integers(X, np.arange(d), radius, scale, None, np.ones(X.shape[0]), here, center)
    clipped = np.clip(np.nan_to_num(np.asarray(rewards), nan=0.0, posinf=1.0, neginf=-1.0), -0.5, 0.5)
    r = np.where(here, np.rint(clipped * 2048).astype(np.int64), 0)
    parts = [q * r[:, None], r[:, None], q, here[:, None].astype(np.int64)]
    if squares is not None:
        s = q * q // 2**15
        length = (s * s).sum(axis=1)
        factor = np.where(length > squares**2, squares / np.sqrt(np.maximum(length, 1)), 1.0)
        s = np.where((length > squares**2)[:, None], np.trunc(s * factor[:, None]).astype(np.int64), s)
        s[(s * s).sum(axis=1) > squares**2] = 0
        parts.append(s)
    rows = np.concatenate(parts, axis=1)
    sums = np.zeros((count, rows.shape[1]), np.int64)
    np.add.at(sums, np.asarray(arms), rows)
    both = [np.maximum(q, 0).sum(axis=0), np.maximum(-q, 0).sum(axis=0)] if halves else []
    return sums, np.array(both, np.int64).reshape(-1, d)


def _integers(
    X: Any,
    columns: npt.ArrayLike | None,
    radius: int,
    scale: npt.ArrayLike,
    one: float | None,
    multipliers: npt.NDArray[np.float64],
    present: npt.NDArray[np.bool_] | None,
    center: npt.ArrayLike | None = None,
) -> npt.NDArray[np.int64]:
    """Return each row's integers: scaled, cut to the ball, rounded toward zero, and checked."""
    picked = X if columns is None else X[:, np.asarray(columns, np.int64)]
    v = np.array(picked if isinstance(X, np.ndarray) else picked.toarray(), np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        v = (v if center is None else v - np.asarray(center, np.float64)) * np.asarray(scale, np.float64)
        if one is not None:
            v = np.column_stack([v, np.full(len(v), one)])
        v *= multipliers[:, None]
        # The kernel adds squares in eight lanes; float sums depend on their order, so the twin does, too.
        lanes = np.zeros((len(v), _LANES))
        for start in range(0, v.shape[1], _LANES):
            chunk = v[:, start : start + _LANES]
            lanes[:, : chunk.shape[1]] += chunk * chunk
        square = np.zeros(len(v))
        for lane in lanes.T:
            square += lane
        factor = np.where(square > float(radius) ** 2, radius / np.sqrt(square), 1.0)
        usable = np.isfinite(square) & (True if present is None else present)
        q = np.zeros(v.shape, np.int64)
        q[usable] = np.trunc(v[usable] * factor[usable, None]).astype(np.int64)
    q[(q * q).sum(axis=1) > radius**2] = 0
    return q
