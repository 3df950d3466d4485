"""An episode's private sums, in integers. Private: nothing here leaves without noise.

Each function says by how much replacing one row can move its result. Every row's integers are a function of
that row and of public numbers alone, computed element by element in a fixed order; the rows' integers are
then added exactly. A row that is not present counts as one of zeros.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from fliphat import kernels
from fliphat.kernels import _rows

__all__ = [
    "LIMIT",
    "candidate_sums",
    "columns_of",
    "combined",
    "even_intervals",
    "residuals",
    "row_numbers",
    "whitened_sums",
    "windows",
    "with_ones",
]

#: Largest size of one row's integer.
LIMIT: Final = 2**15

#: Values of a block of shifted rows, which are a copy: 16 MB in float32.
_BLOCK: Final = 2**22
_LARGEST: Final = 1e300

_Floats = npt.NDArray[np.float64]
_Present = npt.NDArray[np.bool_]


def columns_of(rows: Any, columns: npt.NDArray[np.int64], units: _Floats | None = None) -> _Floats:
    """Return public columns of all rows, dense, each divided by its unit."""
    if len(columns) == 0:
        return np.zeros((rows.shape[0], 0))
    picked = rows[:, columns]
    if _rows.is_sparse(picked):
        picked = picked.toarray()
    picked = np.asarray(picked, np.float64)
    return np.ascontiguousarray(picked if units is None else picked / units[columns])


def with_ones(one: float, columns: _Floats) -> _Floats:
    """Return columns with a constant one before them: the intercept's."""
    return np.hstack([np.full((len(columns), 1), one), columns])


def combined(columns: _Floats, weights: npt.NDArray[np.float64]) -> _Floats:
    """Return ``columns @ weights``, added up in the order of the columns: BLAS may order rows differently."""
    total = np.zeros(len(columns))
    for j, weight in enumerate(weights):
        total += columns[:, j] * weight
    return total


def residuals(
    support: _Floats,
    rewards: _Floats,
    present: _Present,
    theta: npt.NDArray[np.float64],
    loss: str,
    reward_range: tuple[float, float] | None = None,
) -> _Floats:
    """Return what the public coefficients leave of each reward; 0 where none came.

    Parameters
    ----------
    support : ndarray, shape (n, k)
        The estimate's columns.
    theta : ndarray, shape (1 + k,)
        Intercept and coefficients.
    reward_range : (float, float), optional
        Rewards outside it are moved to its ends.
    """
    if reward_range is not None:
        rewards = np.clip(rewards, *reward_range)
    with np.errstate(over="ignore", invalid="ignore"):
        foreseen = combined(support, theta[1:]) + theta[0]
        if loss == "logistic":
            foreseen = expit(foreseen)
        left = np.nan_to_num(rewards - foreseen, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST)
    return np.where(present, np.clip(left, -_LARGEST, _LARGEST), 0.0)


def candidate_sums(
    rows: Any,
    left: _Floats,
    present: _Present,
    clip: float,
    shift: _Floats | None,
    units: _Floats | None = None,
) -> tuple[npt.NDArray[np.int64], float]:
    """Return the sums over rows of ``(row / units - shift) * residual``, clipped, of all columns; their step.

    Replacing one row moves each by at most ``2 * LIMIT``.

    Parameters
    ----------
    left : ndarray, shape (n,)
        Residuals.
    shift : ndarray, shape (n,), or None
        A number for each row, taken off all its coordinates.
    units : ndarray, shape (d,), or None
        Public sizes of columns.
    """
    nothing = np.zeros(rows.shape[1])
    if shift is None and units is None:
        return kernels.clipped_gradient(rows, -left, nothing, clip, present=present)
    if shift is None:
        shift = np.zeros(len(left))
    if units is None:
        units = np.ones(rows.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        shift = np.clip(np.nan_to_num(shift), -1e30, 1e30).astype(rows.dtype)
        inverse = (1 / units).astype(rows.dtype)
        if _rows.is_sparse(rows):
            return _shifted_sparse(rows, left, present, clip, shift, inverse)
        sums = np.zeros(rows.shape[1], np.int64)
        step = clip / LIMIT
        block = max(1, _BLOCK // rows.shape[1])
        for start in range(0, len(left), block):
            part = slice(start, start + block)
            moved = _finite(rows[part] * inverse - shift[part, None])
            sums += kernels.clipped_gradient(moved, -left[part], nothing, clip, present=present[part])[0]
    return sums, step


def _finite(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return rows without infinities, which only the largest floats less a shift can be."""
    largest = np.finfo(rows.dtype).max
    finite: npt.NDArray[Any] = np.clip(rows, -largest, largest)
    return finite


def _shifted_sparse(
    rows: Any,
    left: _Floats,
    present: _Present,
    clip: float,
    shift: npt.NDArray[Any],
    inverse: npt.NDArray[Any],
) -> tuple[npt.NDArray[np.int64], float]:
    """Add what a row's zeros give to every column, and the difference where it has a value."""
    factor = (left * LIMIT / clip).astype(rows.dtype)
    factor[~present] = 0
    zero = _rounded(-shift * factor)
    lengths = np.diff(rows.indptr)
    moved = _finite(rows.data * inverse[rows.indices] - np.repeat(shift, lengths))
    stored = _rounded(moved * np.repeat(factor, lengths))
    # Weighted counts are float64 sums of integers: exact below 2**53.
    apart = np.bincount(rows.indices, stored - np.repeat(zero, lengths), rows.shape[1])
    return apart.astype(np.int64) + int(zero.sum()), clip / LIMIT


def _rounded(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return values clamped to the limit and rounded, ties to even; NaN is 0."""
    rounded: npt.NDArray[np.int64] = np.nan_to_num(np.rint(np.clip(values, -LIMIT, LIMIT))).astype(np.int64)
    return rounded


def whitened_sums(
    support: _Floats, left: _Floats, present: _Present, clip: float, whiten: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], float]:
    """Return the sums of ``whiten @ row * residual``, clipped, and their step.

    Replacing one row moves each by at most ``2 * LIMIT``.

    Parameters
    ----------
    support : ndarray, shape (n, m)
        Ones and public columns.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.stack([combined(support, weights) for weights in whiten], axis=1)
    apart = np.clip(np.nan_to_num(apart), -_LARGEST, _LARGEST)
    return kernels.clipped_gradient(apart, -left, np.zeros(len(whiten)), clip, present=present)


def row_numbers(
    rows: Any, present: _Present, context_size: float, octaves: float, units: _Floats | None = None
) -> tuple[int, int, int]:
    """Return three sums over whole rows that say how large contexts are and what they have in common.

    Of each row: log2 of the root mean square of its values that are not zero over `context_size`, in steps of
    ``octaves / LIMIT``; its mean over that root, and the square of this, both in steps of ``1 / LIMIT``.
    Replacing one row moves the first two by at most ``2 * LIMIT`` and the third by at most ``LIMIT``.
    """
    logs = ratios = squares = 0
    sparse, dim = _rows.is_sparse(rows), rows.shape[1]
    for i in np.flatnonzero(present):
        stored = slice(rows.indptr[i], rows.indptr[i + 1]) if sparse else slice(None)
        values = np.asarray(rows.data[stored] if sparse else rows[i], np.float64)
        if units is not None:
            values = values / units[rows.indices[stored] if sparse else slice(None)]
        values = values[values != 0]
        largest = float(np.max(np.abs(values), initial=0.0))
        if largest == 0 or not math.isfinite(largest):
            continue
        # Exact sums: the same bits in any order, dense or sparse.
        relative = values / largest
        root = math.sqrt(math.fsum(relative * relative) / len(values))
        octave = math.log2(root) + math.log2(largest) - math.log2(context_size)
        ratio = min(max(math.fsum(relative) / dim / root, -1.0), 1.0)
        logs += round(min(max(octave / octaves, -1.0), 1.0) * LIMIT)
        ratios += round(ratio * LIMIT)
        squares += round(ratio * ratio * LIMIT)
    return logs, ratios, squares


def even_intervals(values: _Floats, present: _Present, grid: _Floats) -> npt.NDArray[np.int64]:
    """Return how well each interval between two points of a grid holds the median of the values that came.

    0 if it does, otherwise minus how many more values are on one side than on the other. Replacing one value
    moves each by at most 2.
    """
    came = np.sort(values[present])
    below = 2 * np.searchsorted(came, grid).astype(np.int64) - len(came)
    return -np.maximum(np.maximum(below[:-1], -below[1:]), 0)


def windows(values: _Floats, present: _Present, width: float, most: int) -> npt.NDArray[np.int64]:
    """Return how many of the values that came are within `width` of each multiple of it, up to `most`.

    Entry j is about ``(j + 1 - most) * width``; values beyond count at the ends. Replacing one value moves
    each by at most 1.
    """
    cell = np.clip(np.floor(np.clip(values[present] / width, -2.0 * most, 2.0 * most)), -most, most - 1)
    counts = np.bincount(cell.astype(np.int64) + most, minlength=2 * most)
    return (counts[:-1] + counts[1:]).astype(np.int64)
