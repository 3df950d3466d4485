"""Twins of rows relative to what public columns say of them. Equal to the kernels bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.reference._ball import second_moments
from fliphat.reference._sigmoid import sigmoid

_LIMIT = 2**15
_LANES, _DIGITS, _LARGEST_EXPONENT = 8, 24, 1000

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]


def gather_columns(
    X: Any, columns: npt.ArrayLike, out: _Floats, *, first: int = 0, units: npt.ArrayLike | None = None
) -> None:
    """Write columns of all rows into `out`."""
    chosen = np.asarray(columns, np.int64)
    picked = X[:, chosen]
    dense = np.asarray(picked if isinstance(X, np.ndarray) else picked.toarray(), np.float64)
    with np.errstate(over="ignore"):
        out[:, first : first + len(chosen)] = dense if units is None else dense / np.asarray(units)


def relative_gradient(
    X: Any,
    y: npt.ArrayLike,
    columns: npt.ArrayLike,
    weights: npt.ArrayLike,
    clip: float,
    out: _Floats,
    *,
    one: float = 1.0,
    shift: npt.ArrayLike | None = None,
    units: npt.NDArray[np.float64] | None = None,
    loss: str = "squared",
    reward_range: tuple[float, float] | None = None,
    present: npt.NDArray[np.bool_] | None = None,
) -> tuple[_Integers, _Floats, float]:
    """Sum gradients relative to public columns in integers, step after step."""
    chosen, rewards = np.asarray(columns, np.int64), np.asarray(y, np.float64)
    here = np.ones(len(rewards), bool) if present is None else present
    out[:, 0] = one
    gather_columns(X, chosen, out, first=1, units=None if units is None else units[chosen])
    out[~here, : 1 + len(chosen)] = 0
    foreseen = _combined(out, weights)
    with np.errstate(over="ignore", invalid="ignore"):
        came = (
            rewards if reward_range is None else np.fmin(np.fmax(rewards, reward_range[0]), reward_range[1])
        )
        left = came - (sigmoid(foreseen) if loss == "logistic" else foreseen)
    left = np.clip(np.where(np.isnan(left) | ~here, 0.0, left), -1e300, 1e300)
    shifts = None if shift is None else _combined(out, shift)
    sums, step = shifted_gradient(X, left, clip, shifts=shifts, units=units, present=present)
    return sums, left, step


def _combined(values: _Floats, weights: npt.ArrayLike) -> _Floats:
    """Return a weighted sum of columns, column after column: BLAS may order those of a row differently."""
    total = np.zeros(len(values))
    with np.errstate(over="ignore", invalid="ignore"):
        for j, weight in enumerate(np.asarray(weights, np.float64)):
            total += values[:, j] * weight
    return total


def shifted_gradient(
    X: Any,
    residuals: npt.NDArray[np.float64],
    clip: float,
    *,
    shifts: npt.NDArray[np.float64] | None = None,
    units: npt.NDArray[np.float64] | None = None,
    present: npt.NDArray[np.bool_] | None = None,
) -> tuple[_Integers, float]:
    """Sum shifted gradients in integers, for dense or CSR rows."""
    residuals, shifts = np.asarray(residuals), np.zeros(X.shape[0]) if shifts is None else np.asarray(shifts)
    if present is not None:
        X, residuals, shifts = X[present], residuals[present], shifts[present]
    X = X if isinstance(X, np.ndarray) else X.toarray()
    largest = np.finfo(X.dtype).max
    with np.errstate(over="ignore", invalid="ignore"):
        factor = (residuals * _LIMIT / clip).astype(X.dtype)
        shift = np.clip(np.nan_to_num(shifts, posinf=1e30, neginf=-1e30), -1e30, 1e30).astype(X.dtype)
        if units is not None:
            inverse = np.clip((1 / np.asarray(units, np.float64)).astype(X.dtype), -largest, largest)
            X = X * inverse
        moved = np.clip(X - shift[:, None], -largest, largest)
        return _summed(moved * factor[:, None]), clip / _LIMIT


def _whitened(
    values: _Floats,
    residuals: npt.NDArray[np.float64],
    whiten: npt.ArrayLike,
    clip: float,
    present: npt.NDArray[np.bool_] | None,
) -> _Integers:
    """Sum gradients in coordinates of their own, in integers."""
    residuals = np.asarray(residuals)
    if present is not None:
        values, residuals = values[present], residuals[present]
    apart = np.stack([_combined(values, weights) for weights in np.asarray(whiten, np.float64)], axis=1)
    apart = np.clip(np.where(np.isnan(apart), 0.0, apart), -1e300, 1e300)
    with np.errstate(over="ignore", invalid="ignore"):
        return _summed(apart * (residuals * _LIMIT / clip)[:, None])


def settled_sums(
    X: Any,
    columns: npt.ArrayLike,
    support: _Floats,
    residuals: npt.NDArray[np.float64],
    *,
    whiten: npt.ArrayLike,
    clip: float,
    radius: int,
    scale: float,
    cap: float,
    units: npt.ArrayLike | None = None,
    present: npt.NDArray[np.bool_] | None = None,
) -> tuple[_Integers, _Integers, int]:
    """Sum gradients, second moments and sizes on public columns in integers, one after the other."""
    chosen = np.asarray(columns, np.int64)
    values = np.empty((len(support), support.shape[1] + len(chosen)))
    values[:, : support.shape[1]] = support
    gather_columns(X, chosen, values, first=support.shape[1], units=units)
    gradient = _whitened(values, residuals, whiten, clip, present)
    moments = second_moments(values, radius=radius, scale=scale, present=present)
    sizes = np.asarray(residuals) if present is None else np.asarray(residuals)[present]
    with np.errstate(over="ignore"):
        steps = np.minimum(np.abs(np.nan_to_num(sizes, nan=0.0)) / cap, 1.0) * _LIMIT
    return gradient, moments, int(np.trunc(steps).sum())


def row_numbers(
    X: Any,
    size: float,
    octaves: float,
    *,
    units: npt.NDArray[np.float64] | None = None,
    present: npt.NDArray[np.bool_] | None = None,
) -> tuple[int, int, int]:
    """Sum three numbers of whole rows in integers, for dense or CSR rows."""
    dense = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        values = dense if units is None else dense / np.asarray(units, np.float64)
        largest = np.abs(values).max(axis=1)
        usable = np.isfinite(values).all(axis=1) & (largest > 0) & (True if present is None else present)
        values, largest = values[usable], largest[usable]
        relative = values / largest[:, None]
        root = np.sqrt(_in_lanes(relative * relative) / (values != 0).sum(axis=1))
        octave = _log2(root * (largest / size))
        ratio = np.clip(_in_lanes(relative) / dense.shape[1] / root, -1.0, 1.0)
    numbers = (np.clip(octave / octaves, -1.0, 1.0), ratio, ratio * ratio)
    logs, ratios, squares = (int(np.rint(number * _LIMIT).astype(np.int64).sum()) for number in numbers)
    return logs, ratios, squares


def _summed(products: npt.NDArray[Any]) -> _Integers:
    """Return sums of products clamped to the limit and rounded, ties to even; NaN is 0."""
    rounded = np.rint(np.clip(np.where(np.isnan(products), 0, products), -_LIMIT, _LIMIT))
    total: _Integers = rounded.sum(axis=0, dtype=np.int64)
    return total


def _in_lanes(values: _Floats) -> _Floats:
    """Return sums of rows in the order in which the kernel adds: float sums depend on it."""
    lanes = np.zeros((len(values), _LANES))
    for start in range(0, values.shape[1], _LANES):
        chunk = values[:, start : start + _LANES]
        lanes[:, : chunk.shape[1]] += chunk
    total = np.zeros(len(values))
    for lane in lanes.T:
        total += lane
    return total


def _log2(values: _Floats) -> _Floats:
    """Return binary logarithms, digit after digit."""
    bound = 2.0**_LARGEST_EXPONENT
    half, exponent = np.frexp(np.clip(values, 1 / bound, bound))
    mantissa, fraction, digit = 2 * half, np.zeros(len(values)), 0.5
    for _ in range(_DIGITS):
        mantissa = mantissa * mantissa
        carried = mantissa >= 2
        mantissa = np.where(carried, mantissa * 0.5, mantissa)
        fraction += digit * carried
        digit *= 0.5
    logarithm: _Floats = exponent - 1 + fraction
    return logarithm
