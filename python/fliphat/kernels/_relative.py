"""Rows relative to what public columns say of them: gradients as exact integer sums.

Everywhere `X` is float32 or float64 in C order or SciPy CSR and is never copied, `units` are public sizes
above 0 that columns are divided by, a row that is not `present` counts as zeros and is not read, and the
number of `threads` (all cores by default, one for small work) never changes the result.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _ball, _gradient, _rows

_Floats = npt.NDArray[np.float64]


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
    loss : {"squared", "logistic"}
    reward_range : (float, float), optional
        Rewards outside it are moved to its ends, and one that is no number to its lower end.
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
    residuals : array_like, shape (n,)
        What each row is multiplied with. A product that is no number counts as 0.
    clip : float
        Above 0: bound on each number.
    shifts : array_like, shape (n,), optional
        Taken off all coordinates of a row, those that are zero as well; cut at ``1e30``, and NaN counts as 0.
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
    size, octaves : float
        Above 0.
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
