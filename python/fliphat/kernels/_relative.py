"""Rows relative to what public columns say of them: gathered columns, and gradients as exact integer sums."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _ball, _gradient, _rows

_Floats = npt.NDArray[np.float64]


def gather_columns(
    X: Any,
    columns: npt.ArrayLike,
    out: _Floats,
    *,
    first: int = 0,
    units: npt.ArrayLike | None = None,
    threads: int | None = None,
) -> None:
    """Write columns of all rows into `out`, dense, from its column `first` on.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, d), in C order, or SciPy CSR
        Never copied; other columns are not read.
    columns : array_like of int, shape (k,)
        Public columns, all different.
    out : ndarray of float64, shape (n, m), in C order
        Its columns from `first` to ``first + k - 1`` are written.
    units : array_like, shape (k,), optional
        Above 0: each column is divided by its unit.
    threads : int, optional
        By default all cores, or one if the work is small. It never changes the result.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat.kernels import _fits
    >>> out = np.ones((2, 3))
    >>> _fits.gather_columns(np.array([[1.0, 2.0], [3.0, 4.0]]), [1, 0], out, first=1)
    >>> out
    array([[1., 2., 1.],
           [1., 4., 3.]])
    """
    rows, n, threads = _checked(X, threads)
    chosen = _chosen(columns)
    _checked_out(out, n)
    first = arguments.integer("first", first, 0, out.shape[1] - len(chosen))
    sizes = None if units is None else _rows.vector("units", units, len(chosen), ", one unit for each column")
    if len(chosen):
        _native.gather_columns(_rows.native(rows), chosen, sizes, out, first, threads)


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
    units: npt.ArrayLike | None = None,
    loss: Literal["squared", "logistic"] = "squared",
    reward_range: tuple[float, float] | None = None,
    present: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> tuple[npt.NDArray[np.int64], _Floats, float]:
    """Sum gradients relative to what public columns say, in one pass over the rows, in integers.

    Of each row, ``v = (one, X[i, columns] / units)`` is written to the first columns of `out`. What is left
    of its reward is ``y[i] - weights @ v``, or ``y[i] - sigmoid(weights @ v)`` for the logistic loss; what is
    taken off all its coordinates is ``shift @ v``. The sums are those of :func:`shifted_gradient`: replacing
    one row by any other moves none by more than ``2**16``.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, d), in C order, or SciPy CSR
        Never copied, read once.
    y : array_like, shape (n,)
        Rewards.
    columns : array_like of int, shape (k,)
        Public columns, all different.
    weights : array_like, shape (1 + k,)
        Public: of the constant and the columns.
    clip : float
        Above 0: bound on each number of a row.
    out : ndarray of float64, shape (n, m), in C order, with m > k
        Columns beyond the first ``1 + k`` are left as they are.
    one : float
        Value of the constant column.
    shift : array_like, shape (1 + k,), optional
        Public.
    units : array_like, shape (d,), optional
        Above 0, public sizes of columns.
    loss : {"squared", "logistic"}
    reward_range : (float, float), optional
        Rewards outside it are moved to its ends, and one that is no number to its lower end.
    present : ndarray of bool, shape (n,), optional
        False marks a row that counts as zeros and is not read.
    threads : int, optional
        By default all cores, or one if the work is small. It never changes the result.

    Returns
    -------
    sums : ndarray of int64, shape (d,)
    residuals : ndarray of float64, shape (n,)
        Private. At most ``1e300``; what is no number is 0, as where no reward came.
    step : float
        ``sums * step / n`` is the mean clipped gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat.kernels import _fits
    >>> X, out = np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 2))
    >>> sums, residuals, step = _fits.relative_gradient(X, [2.0, 5.0], [0], [0.5, 1.0], 8.0, out)
    >>> sums * step, residuals
    (array([5., 7.]), array([0.5, 1.5]))
    >>> out
    array([[1., 1.],
           [1., 3.]])
    """
    rows, n, threads = _checked(X, threads)
    chosen = _chosen(columns)
    _checked_out(out, n)
    arguments.choice("loss", loss, ("squared", "logistic"))
    clip = arguments.within("clip", clip, _gradient.SMALLEST_CLIP, _gradient.LARGEST_CLIP)
    each = ", one for the constant and each column"
    residuals = np.empty(n)
    sums = _native.relative_gradient(
        _rows.native(rows),
        _rows.vector("y", y, n, ", one reward for each row of X"),
        chosen,
        _rows.vector("weights", weights, 1 + len(chosen), each),
        None if shift is None else _rows.vector("shift", shift, 1 + len(chosen), each),
        arguments.real("one", one),
        _units(units, rows.shape[1]),
        loss,
        reward_range,
        clip,
        out,
        residuals,
        None if present is None else _gradient.present_flags(present, n),
        threads,
    )
    return sums, residuals, clip / _gradient.LIMIT


def shifted_gradient(
    X: Any,
    residuals: npt.ArrayLike,
    clip: float,
    *,
    shifts: npt.ArrayLike | None = None,
    units: npt.ArrayLike | None = None,
    present: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> tuple[npt.NDArray[np.int64], float]:
    """Sum the rows' gradients relative to a shift of each row, clipped, in integers.

    Row ``i`` has the numbers ``(X[i] / units - shifts[i]) * residuals[i]``, in the precision of `X`. Each is
    clipped to ``[-clip, clip]``, expressed in steps of ``clip / 2**15``, and rounded to an integer. The
    result is the same for any number of threads, any order of rows, dense or CSR, and replacing one row by
    any other moves no sum by more than ``2**16``.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, d), in C order, or SciPy CSR
        Never copied. Rows are read once; sparse rows must have strictly increasing column numbers.
    residuals : array_like, shape (n,)
        What each row is multiplied with. A product that is no number counts as 0.
    clip : float
        Above 0: bound on each number.
    shifts : array_like, shape (n,), optional
        Taken off all coordinates of a row, those that are zero as well; cut at ``1e30``, and NaN counts as 0.
    units : array_like, shape (d,), optional
        Above 0, public sizes of columns.
    present : ndarray of bool, shape (n,), optional
        False marks a row that counts as zeros and is not read.
    threads : int, optional
        By default all cores, or one if the work is small. It never changes the result.

    Returns
    -------
    sums : ndarray of int64, shape (d,)
    step : float
        ``sums * step / n`` is the mean clipped gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat.kernels import _fits
    >>> X = np.array([[1.0, 0.5], [0.0, 2.0]])
    >>> sums, step = _fits.shifted_gradient(X, [1.0, -0.25], 1.0, shifts=[0.5, 1.0])
    >>> sums * step
    array([ 0.75, -0.25])
    """
    rows, n, threads = _checked(X, threads)
    clip = arguments.within("clip", clip, _gradient.SMALLEST_CLIP, _gradient.LARGEST_CLIP)
    sums = _native.shifted_gradient(
        _rows.native(rows),
        _rows.vector("residuals", residuals, n, ", one residual for each row of X"),
        clip,
        None if shifts is None else _rows.vector("shifts", shifts, n, ", one shift for each row of X"),
        _units(units, rows.shape[1]),
        None if present is None else _gradient.present_flags(present, n),
        threads,
    )
    return sums, clip / _gradient.LIMIT


def settled_sums(
    X: Any,
    columns: npt.ArrayLike,
    support: _Floats,
    residuals: npt.ArrayLike,
    *,
    whiten: npt.ArrayLike,
    clip: float,
    radius: int,
    scale: float,
    cap: float,
    units: npt.ArrayLike | None = None,
    present: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Sum what an episode releases of its public columns, once new ones are among them, in one pass.

    A row's values are those of `support`, and behind them its `columns` of `X`: ``v``, with residual ``r``.
    The sums are of ``(whiten @ v) * r``, clipped and rounded as in :func:`shifted_gradient` (replacing one
    row moves none by more than ``2**16``), those of :func:`second_moments`, and of ``min(abs(r), cap)``,
    rounded toward zero (replacing one row moves it by at most ``2**15``).

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, d), in C order, or SciPy CSR
        Never copied; other columns are not read.
    columns : array_like of int, shape (p,)
        New public columns, all different; may be empty.
    support : ndarray of float64, shape (n, m - p), in C order
        What :func:`relative_gradient` wrote.
    residuals : array_like, shape (n,)
    whiten : array_like, shape (m, m)
        Public.
    clip : float
        Above 0: bound on each coordinate of a row's gradient.
    radius : int
        From 1 to ``2**15 - 1``: that of the ball.
    scale : float
        Above 0: what all values are multiplied with before they are cut to the ball.
    cap : float
        Above 0: bound on a residual's size.
    units : array_like, shape (p,), optional
        Above 0: each new column is divided by its unit.
    present, threads
        See :func:`shifted_gradient`.

    Returns
    -------
    gradient : ndarray of int64, shape (m,)
        In steps of ``clip / 2**15``.
    moments : ndarray of int64, shape (m, m)
        Symmetric, in steps of ``1 / scale**2``.
    size : int
        In steps of ``cap / 2**15``.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat.kernels import _fits
    >>> X = np.array([[2.0, 0.0], [0.0, 1.0]])
    >>> measure = dict(whiten=np.eye(2), clip=1.0, radius=1000, scale=10.0, cap=1.0)
    >>> gradient, moments, size = _fits.settled_sums(X, [0], np.ones((2, 1)), [0.5, -0.25], **measure)
    >>> gradient / 2**15, size / 2**15
    (array([0.25, 1.  ]), 0.75)
    >>> moments / 100
    array([[2., 2.],
           [2., 4.]])
    """
    rows, n, threads = _checked(X, threads)
    chosen = _chosen(columns)
    known, count, _ = _checked_values(support, None, "support")
    if count != n:
        raise ValueError(f"support must have {n} rows, one for each row of X, got shape {known.shape}")
    sizes = None if units is None else _rows.vector("units", units, len(chosen), ", one unit for each column")
    return _native.settled_sums(
        _rows.native(rows),
        chosen,
        known,
        _rows.vector("residuals", residuals, n, ", one residual for each row of X"),
        _square(whiten, known.shape[1] + len(chosen)),
        arguments.within("clip", clip, _gradient.SMALLEST_CLIP, _gradient.LARGEST_CLIP),
        arguments.integer("radius", radius, 1, _ball.MOST_RADIUS),
        arguments.positive("scale", scale),
        arguments.positive("cap", cap),
        sizes,
        None if present is None else _gradient.present_flags(present, n),
        threads,
    )


def row_numbers(
    X: Any,
    size: float,
    octaves: float,
    *,
    units: npt.ArrayLike | None = None,
    present: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> tuple[int, int, int]:
    """Sum three numbers of whole rows that say how large they are and what they have in common, in integers.

    Of each row: log2 of the root mean square of its values that are not zero over `size`, cut at `octaves`
    and in steps of ``octaves / 2**15``; its mean over that root, and the square of this, both in steps of
    ``2**-15``. A row of zeros counts as three zeros. Replacing one row moves the first two sums by at most
    ``2**16`` and the third by at most ``2**15``.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, d), in C order, or SciPy CSR
    size, octaves : float
        Above 0.
    units, present, threads
        See :func:`shifted_gradient`.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat.kernels import _fits
    >>> sums = _fits.row_numbers(np.array([[2.0, 2.0], [0.0, 4.0]]), 1.0, 4.0)
    >>> [total / 2**15 for total in sums]
    [0.75, 1.5, 1.25]
    """
    rows, n, threads = _checked(X, threads)
    logs, ratios, squares = _native.row_numbers(
        _rows.native(rows),
        arguments.positive("size", size),
        arguments.positive("octaves", octaves),
        _units(units, rows.shape[1]),
        None if present is None else _gradient.present_flags(present, n),
        threads,
    )
    return logs, ratios, squares


def _chosen(columns: npt.ArrayLike) -> npt.NDArray[np.int64]:
    chosen = _ball.integers("columns", columns)
    if chosen.ndim != 1:
        raise ValueError(f"columns must have one dimension, got shape {chosen.shape}")
    return chosen


def _checked_out(out: object, n: int) -> None:
    if not (isinstance(out, np.ndarray) and out.dtype == np.float64 and out.ndim == 2 and out.flags.carray):
        raise TypeError("out must be a writable float64 array in C order with two dimensions")
    if len(out) != n:
        raise ValueError(f"out must have {n} rows, one for each row of X, got shape {out.shape}")


def _checked(X: Any, threads: int | None) -> tuple[Any, int, int | None]:
    if threads is not None:
        threads = arguments.integer("threads", threads, 1, _gradient.MOST_THREADS)
    rows = _rows.sparse_rows("X", X) if _rows.is_sparse(X) else _rows.dense_rows("X", X, 2, copy=False)
    _rows.nonempty("X", rows.shape)
    return rows, rows.shape[0], threads


def _square(whiten: npt.ArrayLike, m: int) -> _Floats:
    matrix = _rows.plain_array("whiten", whiten)
    if not _rows.in_place(matrix, np.float64):
        matrix = np.require(matrix, np.float64, ["C", "A"])
    if matrix.shape != (m, m):
        raise ValueError(f"whiten must have shape ({m}, {m}), got shape {matrix.shape}")
    return matrix


def _checked_values(
    values: _Floats, threads: int | None, name: str = "values"
) -> tuple[_Floats, int, int | None]:
    if threads is not None:
        threads = arguments.integer("threads", threads, 1, _gradient.MOST_THREADS)
    rows = _rows.dense_rows(name, values, 2, copy=False)
    if rows.dtype != np.float64:
        raise TypeError(f"{name} must be float64, got {rows.dtype}")
    _rows.nonempty(name, rows.shape)
    return cast(_Floats, rows), rows.shape[0], threads


def _units(units: npt.ArrayLike | None, d: int) -> _Floats | None:
    return None if units is None else _rows.vector("units", units, d, ", one unit for each column of X")
