"""Statistics of rows cut to an l2 ball, as exact integer sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _gradient, _rows

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
    rows, n, ball = _ball(X, columns, radius, scale, one, threads)
    flags = None if present is None else _gradient.present_flags(present, n)
    k = len(ball[0])
    moved = None if center is None else _rows.vector("center", center, k, ", one number for each column")
    k += one is not None
    sums = _native.second_moments(_rows.native(rows), *ball[:-1], flags, ball[-1], centers=moved).reshape(
        k, k
    )
    return sums if unit is None else sums * unit**2


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
    """Sum what a linear model of each arm needs, in integers.

    Row ``i`` has integers ``q``: ``(X[i, :d] - center) * scale``, cut and rounded as in
    :func:`second_moments`. Its reward is ``r = rint(1024 * 2 * rewards[i])``, from -1024 to 1024. The sums of
    its arm get ``(q * r, r, q, 1)``, and with `squares` the integers ``q * q // 2**15``, cut to that radius.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, at least d), in C order, or SciPy CSR
        Never copied; columns from d on are not read.
    rewards : array_like, shape (n,)
        From -1/2 to 1/2; others are moved to the ends, NaN to 0. Private.
    arms : array_like of int, shape (n,)
        From 0 to ``count - 1``.
    count : int
        Number of arms.
    center, scale : array_like, shape (d,)
        Public.
    radius : int
        From 1 to ``2**15 - 1``.
    halves : bool
        Whether sums over all rows of ``maximum(q, 0)`` and ``maximum(-q, 0)`` are made.
    squares : int, optional
        Radius of the ball of squares, at most ``2**15``.
    present, threads
        See :func:`second_moments`.
    """
    scales = _rows.vector("scale", scale, None)
    d = len(scales)
    centers = _rows.vector("center", center, d, ", one number for each column")
    rows, n, ball = _ball(X, np.arange(d), radius, scales, None, threads)
    factors = _rows.vector("rewards", rewards, n, ", one reward for each row of X")
    groups = integers("arms", arms)
    if groups.shape != (n,):
        raise ValueError(f"arms must have shape ({n},), one arm for each row of X, got shape {groups.shape}")
    count = arguments.integer("count", count, 1, 2**31 - 1)
    flags = None if present is None else _gradient.present_flags(present, n)
    found = _native.arm_sums(
        _rows.native(rows), factors, groups, count, centers, scales, ball[3], halves, squares, flags, ball[-1]
    )
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

    Row ``i`` has the gradient ``v = X[i, columns] * scale * residuals[i]``. It is cut to length `radius` and
    turned into integers ``q`` exactly as in :func:`second_moments`, and added to the sums of arm ``arms[i]``.
    Replacing one row by any other moves all sums together by at most ``2 * radius`` in l2 norm.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, d), in C order, or SciPy CSR
        Never copied.
    residuals : array_like, shape (n,)
        What each row is multiplied with. Private; one that is not finite makes its row zeros.
    arms : array_like of int, shape (n,)
        From 0 to ``count - 1``. Public.
    count : int
        Number of arms.
    radius, scale, columns, one, present, threads
        See :func:`second_moments`. With a gradient clip ``c`` in l2 norm, ``scale=radius / c``; `one` is
        multiplied with the residual as the columns are.
    """
    rows, n, ball = _ball(X, columns, radius, scale, one, threads)
    factors = _rows.vector("residuals", residuals, n, ", one residual for each row of X")
    groups = integers("arms", arms)
    if groups.shape != (n,):
        raise ValueError(f"arms must have shape ({n},), one arm for each row of X, got shape {groups.shape}")
    count = arguments.integer("count", count, 1, 2**31 - 1)
    flags = None if present is None else _gradient.present_flags(present, n)
    sums = _native.ball_gradient(_rows.native(rows), factors, groups, count, *ball[:-1], flags, ball[-1])
    return sums.reshape(count, len(ball[0]) + (one is not None))


#: Columns, scales, constant, radius and threads, as the native functions take them.
_Ball = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], float | None, int, int | None]


def _ball(
    X: Any, columns: npt.ArrayLike | None, radius: int, scale: npt.ArrayLike, one: float | None, threads: Any
) -> tuple[Any, int, _Ball]:
    radius = arguments.integer("radius", radius, 1, MOST_RADIUS)
    one = None if one is None else arguments.real("one", one)
    if threads is not None:
        threads = arguments.integer("threads", threads, 1, _gradient.MOST_THREADS)
    rows = _rows.sparse_rows("X", X) if _rows.is_sparse(X) else _rows.dense_rows("X", X, 2, copy=False)
    _rows.nonempty("X", rows.shape)
    n, d = rows.shape
    chosen = np.arange(d) if columns is None else integers("columns", columns)
    if chosen.ndim != 1:
        raise ValueError(f"columns must have one dimension, got shape {chosen.shape}")
    if np.ndim(scale) == 0:
        scale = np.full(len(chosen), scale)
    scales = _rows.vector("scale", scale, len(chosen), ", one number for each column")
    return rows, n, (chosen, scales, one, radius, threads)


def integers(name: str, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return values as int64, which must be integers already."""
    array = _rows.plain_array(name, values)
    if _rows.in_place(array, np.int64):
        return array
    if array.size == 0:
        array = array.astype(np.int64)
    if not (array.dtype.kind in "iu" and np.can_cast(array.dtype, np.int64)):
        raise TypeError(f"{name} must be an array of integers that fit int64, got dtype {array.dtype}")
    return np.require(array, np.int64, ["C", "A"])
