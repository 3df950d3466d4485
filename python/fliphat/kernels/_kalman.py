"""What a fit that knows public columns learns from a release: a Kalman step, and which columns stay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _rows

__all__ = ["KalmanRule", "KalmanStep", "kalman_step"]

_Floats = npt.NDArray[np.float64]


class KalmanRule(NamedTuple):
    """Constants of :func:`kalman_step`."""

    one: float  # value of the constant's column in what was released
    weight: float  # precision of a released second moment
    spread: float  # variance of second moments about what is typical
    sampling: float  # and by sampling
    faint: float  # precision that every second moment has at least
    smallest: float  # eigenvalues of second moments are raised to it
    gain: float  # what clipping and the loss leave of a gradient
    noise: float  # variance of the released gradient
    doubt: float  # prior variance of a new coefficient
    drift_of_one: float  # added to the variance of the constant's coefficient afterwards
    drift: float  # and to that of every other
    prune: float  # standard deviations below which a column goes
    stand_out: float  # and from which a new one counts as found


class KalmanStep(NamedTuple):
    """What is known after :func:`kalman_step`, of the constant and the columns that stay."""

    keep: npt.NDArray[np.bool_]  # which of all m stay; the constant always does
    found: int  # new columns that stay and stand out
    theta: _Floats  # this and the next three as given, with what stays
    covariance: _Floats
    moments: _Floats
    precision: _Floats
    explained: float  # mean square of what the step changes in the weighted sum of a row
    unknown: float  # and of what is not known of it


def kalman_step(
    theta: npt.ArrayLike,
    covariance: npt.ArrayLike,
    moments: npt.ArrayLike,
    precision: npt.ArrayLike,
    gradient: npt.ArrayLike,
    fresh: npt.ArrayLike,
    start: npt.ArrayLike,
    *,
    whiten: npt.ArrayLike,
    typical: npt.ArrayLike,
    rule: KalmanRule,
    most: int,
) -> KalmanStep:
    """Learn coefficients and second moments from what was released of them. Public numbers only.

    There are a constant, k columns that are known and p new ones, in this order: m in all. Second moments
    known and released are averaged by their precisions, drawn to what is typical by what is noise in them,
    and made positive definite. With them the released gradient says by how much coefficients are off, and a
    Kalman step corrects them. Columns within the noise go, and all beyond the `most` largest.

    `theta` and its `covariance` are of the constant and the known columns, as are `moments` and their
    `precision`; `start` has the prior means of the new coefficients; `gradient` (in the coordinates of
    `whiten`) and `fresh` were released. The constant's column is 1 in what is known and ``rule.one`` in what
    was released. At most `most` columns stay, the constant not counted.
    """
    most = arguments.integer("most", most, 0, 2**62)
    matrices = covariance, moments, precision, gradient, fresh, start, whiten, typical
    try:
        # Arrays of float64 in C order, the common case, are looked at by the native code alone.
        return KalmanStep(*_native.kalman_step(theta, *matrices, rule, most))  # type: ignore[arg-type]
    except TypeError:
        vectors = {"theta", "gradient", "start"}
        names = (
            "theta",
            "covariance",
            "moments",
            "precision",
            "gradient",
            "fresh",
            "start",
            "whiten",
            "typical",
        )
        given = [
            _floats(name, values, 1 if name in vectors else 2)
            for name, values in zip(names, (theta, *matrices), strict=True)
        ]
        return KalmanStep(*_native.kalman_step(*given, rule, most))  # type: ignore[call-arg, arg-type]


def _floats(name: str, values: npt.ArrayLike, dimensions: int) -> _Floats:
    array = _rows.plain_array(name, values)
    if not _rows.in_place(array, np.float64):
        array = np.ascontiguousarray(array, np.float64)
    if array.ndim != dimensions:
        raise ValueError(f"{name} must have {dimensions} dimension(s), got shape {array.shape}")
    return array
