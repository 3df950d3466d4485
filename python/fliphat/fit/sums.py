"""An episode's private sums, in integers. Private: nothing here leaves without noise.

Each function says by how much replacing one row can move its result. Every row's integers are a function of
that row and of public numbers alone, computed element by element in a fixed order; the rows' integers are
then added exactly. A row that is not present counts as one of zeros.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from fliphat import kernels

__all__ = [
    "LIMIT",
    "candidate_sums",
    "even_intervals",
    "fill",
    "residuals",
    "row_numbers",
    "whitened_sums",
    "windows",
    "with_room",
]

#: Largest size of one row's integer.
LIMIT: Final = 2**15

_LARGEST: Final = 1e300

_Floats = npt.NDArray[np.float64]
_Present = npt.NDArray[np.bool_]


def with_room(
    rows: Any, one: float, columns: npt.NDArray[np.int64], more: int, units: _Floats | None
) -> _Floats:
    """Return a constant one, the intercept's, public columns of all rows, and room for some more."""
    support = np.zeros((rows.shape[0], 1 + len(columns) + more))
    support[:, 0] = one
    fill(support, rows, columns, 1, units)
    return support


def fill(
    support: _Floats, rows: Any, columns: npt.NDArray[np.int64], first: int, units: _Floats | None
) -> None:
    """Write columns of all rows, each divided by its unit, into `support` from its column `first` on."""
    sizes = None if units is None else units[columns]
    kernels.gather_columns(rows, columns, support, first=first, units=sizes)


def residuals(
    foreseen: _Floats,
    rewards: _Floats,
    present: _Present,
    loss: str,
    reward_range: tuple[float, float] | None = None,
) -> _Floats:
    """Return what the public coefficients leave of each reward; 0 where none came.

    Parameters
    ----------
    foreseen : ndarray, shape (n,)
        Intercept and coefficients times each row's columns.
    reward_range : (float, float), optional
        Rewards outside it are moved to its ends.
    """
    if reward_range is not None:
        rewards = np.clip(rewards, *reward_range)
    with np.errstate(over="ignore", invalid="ignore"):
        left = rewards - (expit(foreseen) if loss == "logistic" else foreseen)
    left[np.isnan(left) | ~present] = 0.0
    return np.clip(left, -_LARGEST, _LARGEST, out=left)


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
    return kernels.shifted_gradient(rows, left, clip, shifts=shift, units=units, present=present)


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
    return kernels.whitened_gradient(support, left, whiten, clip, present=present)


def row_numbers(
    rows: Any, present: _Present, context_size: float, octaves: float, units: _Floats | None = None
) -> tuple[int, int, int]:
    """Return three sums over whole rows that say how large contexts are and what they have in common.

    Of each row: log2 of the root mean square of its values that are not zero over `context_size`, in steps of
    ``octaves / LIMIT``; its mean over that root, and the square of this, both in steps of ``1 / LIMIT``.
    Replacing one row moves the first two by at most ``2 * LIMIT`` and the third by at most ``LIMIT``.
    """
    return kernels.row_numbers(rows, context_size, octaves, units=units, present=present)


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
