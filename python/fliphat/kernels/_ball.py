"""Statistics of rows cut to an l2 ball, as exact integer sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _rows

#: Largest integer radius of the ball: integers of a row fit 16 bits.
MOST_RADIUS = 2**15 - 1


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
    threads: int | None = None,
) -> npt.NDArray[Any]:
    """Sum the rows' second moments, ``X.T @ X`` of rows cut to a length, exactly.

    With `norm`, longer rows are cut to it and the sums are floats in the units of X: replacing one row by any
    other moves them by at most ``sqrt(2) * norm**2`` in Frobenius norm. Numbers of a row are rounded toward
    zero to a multiple of ``norm / (2**15 - 1)``.

    Or in integers, with `radius` and `scale`: a row's vector is ``v = (X[i, columns] - center) * scale``,
    with the constant `one` behind it if one is given. It is cut to length `radius` (``v * radius /
    norm(v)`` where it is longer), each number is rounded toward zero to an integer, and the integers ``q``
    are checked: a row with ``sum(q**2) > radius**2`` (possible only through a float's rounding) counts as
    zeros, as does a row whose norm is not a finite float64. The result is the sum of ``outer(q, q)``.

    It is the same for any number of threads, any order of rows, dense or CSR. Replacing one row by any other
    moves it by at most ``sqrt(2) * radius**2`` in Frobenius norm.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, d), in C order, or SciPy CSR
        Never copied. Sparse rows must have strictly increasing column numbers.
    columns : array_like of int, shape (k,), optional
        Public columns, all different; by default all of them. Other columns are not read.
    norm : float
        Above 0, public: how long a row may be.
    radius : int
        Instead of `norm`, from 1 to ``2**15 - 1``.
    scale : float or array_like, shape (k,)
        Above 0, public: integers per unit of each column. With rows whose norm is about ``norm``,
        ``radius / norm`` uses the whole ball.
    center : array_like, shape (k,), optional
        Public; what is taken off each column.
    one : float, optional
        A constant column behind the others, already in integers (for an intercept). It is cut with the row.
    present : ndarray of bool, shape (n,), optional
        False marks a row that counts as zeros (its constant, too) and is not read.
    threads : int, optional
        By default all cores, or one if the work is small. It never changes the result.

    Returns
    -------
    ndarray, shape (k, k), or (k + 1, k + 1) with `one`
        Symmetric; float64 with `norm`. With `radius` int64, and ``result / outer(scale, scale) / n`` is the
        mean second moment of the rows that were cut.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import kernels
    >>> X = np.array([[3.0, 4.0], [30.0, 40.0], [np.nan, 1.0]])
    >>> kernels.second_moments(X, norm=10.0).round(1)  # the second row is cut to (6, 8)
    array([[45., 60.],
           [60., 80.]])
    >>> kernels.second_moments(X, radius=50, scale=10.0)
    array([[1800, 2400],
           [2400, 3200]])
    """
    radius, scale, one, unit = moment_units(norm, radius, scale, one)
    rows, n, ball = _ball(X, columns, radius, scale, one)
    k = len(ball[0])
    moved = None if center is None else _rows.vector("center", center, k, ", one number for each column")
    more = _rows.flags(present, n), _rows.thread_count(threads)
    sums = _native.second_moments(_rows.native(rows), *ball, *more, centers=moved)
    square = sums.reshape(k + (one is not None), -1)
    return square if unit is None else square * unit**2


def moment_units(
    norm: float | None, radius: int | None, scale: npt.ArrayLike | None, one: float | None
) -> tuple[int, npt.ArrayLike, float | None, float | None]:
    """Return radius, scale and constant in integers, and the unit of a number where `norm` was given."""
    if norm is None:
        if radius is None or scale is None:
            raise ValueError("give norm, or radius and scale")
        return radius, scale, one, None
    if radius is not None or scale is not None:
        raise ValueError("give norm, or radius and scale")
    unit = arguments.positive("norm", norm) / MOST_RADIUS
    return MOST_RADIUS, 1 / unit, None if one is None else one / unit, unit


def arm_sums(
    X: Any,
    rewards: npt.ArrayLike,
    arms: npt.ArrayLike,
    *,
    count: int,
    center: npt.ArrayLike,
    scale: npt.ArrayLike,
    radius: int,
    halves: bool = False,
    squares: int | None = None,
    present: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sum what a linear model of each arm needs, in integers, of as many columns as `scale` has.

    Row ``i`` has integers ``q``: ``(X[i, :d] - center) * scale``, cut and rounded as in
    :func:`second_moments`. Its reward is ``r = rint(1024 * 2 * rewards[i])``, from -1024 to 1024; NaN is 0.
    The sums of its arm get ``(q * r, r, q, 1)``, and with `squares` the integers ``q * q // 2**15``, cut to
    that radius. With `halves` sums over all rows of ``maximum(q, 0)`` and ``maximum(-q, 0)`` are made.
    """
    scales = _rows.vector("scale", scale, None)
    d = len(scales)
    centers = _rows.vector("center", center, d, ", one number for each column")
    rows, n, (*_, radius) = _ball(X, np.arange(d), radius, scales, None)
    factors = _rows.vector("rewards", rewards, n, ", one reward for each row of X")
    groups, count = _groups(arms, count, n)
    more = halves, squares, _rows.flags(present, n), _rows.thread_count(threads)
    found = _native.arm_sums(_rows.native(rows), factors, groups, count, centers, scales, radius, *more)
    block = 2 * (d + 1) + (0 if squares is None else d)
    return found[: count * block].reshape(count, block), found[count * block :].reshape(-1, d)


def ball_gradient(
    X: Any,
    residuals: npt.ArrayLike,
    arms: npt.ArrayLike,
    *,
    count: int,
    radius: int,
    scale: npt.ArrayLike,
    columns: npt.ArrayLike | None = None,
    one: float | None = None,
    present: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> npt.NDArray[np.int64]:
    """Sum the rows' gradients, each cut to an l2 ball, for each arm, in integers.

    Row ``i`` has the gradient ``v = X[i, columns] * scale * residuals[i]``, with `one` multiplied as the
    columns are. It is cut to length `radius` and turned into integers ``q`` exactly as in
    :func:`second_moments`, and added to the sums of arm ``arms[i]``. Replacing one row by any other moves all
    sums together by at most ``2 * radius`` in l2 norm.
    """
    rows, n, ball = _ball(X, columns, radius, scale, one)
    factors = _rows.vector("residuals", residuals, n, ", one residual for each row of X")
    groups, count = _groups(arms, count, n)
    more = _rows.flags(present, n), _rows.thread_count(threads)
    sums = _native.ball_gradient(_rows.native(rows), factors, groups, count, *ball, *more)
    return sums.reshape(count, -1)


def _groups(arms: npt.ArrayLike, count: int, n: int) -> tuple[npt.NDArray[np.int64], int]:
    groups = _rows.integers("arms", arms)
    if groups.shape != (n,):
        raise ValueError(f"arms must have shape ({n},), one arm for each row of X, got shape {groups.shape}")
    return groups, arguments.integer("count", count, 1, 2**31 - 1)


def _ball(
    X: Any, columns: npt.ArrayLike | None, radius: int, scale: npt.ArrayLike, one: float | None
) -> tuple[Any, int, tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], float | None, int]]:
    """Return rows, how many, and columns, scales, constant and radius as the native functions take them."""
    radius = arguments.integer("radius", radius, 1, MOST_RADIUS)
    one = None if one is None else arguments.real("one", one)
    rows = _rows.matrix("X", X)
    n, d = rows.shape
    chosen = np.arange(d) if columns is None else _rows.integers("columns", columns)
    if np.ndim(scale) == 0:
        scale = np.full(len(chosen), scale)
    scales = _rows.vector("scale", scale, len(chosen), ", one number for each column")
    return rows, n, (chosen, scales, one, radius)
