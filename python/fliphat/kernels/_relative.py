"""Rows relative to what public columns say of them: gradients as exact integer sums.

Everywhere `X` is float32 or float64 in C order or SciPy CSR and is never copied, `units` are public sizes
above 0 that columns are divided by, a row that is not `present` counts as zeros and is not read, and the
number of `threads` (all cores by default, one for small work) never changes the result.
"""

from __future__ import annotations

from typing import Any, Literal

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

    Of each row, ``v = (one, X[i, columns] / units)`` is written to the first columns of `out`; those beyond
    are left as they are. What is left of its reward is ``y[i] - weights @ v``, or ``y[i] - sigmoid(weights @
    v)`` for the logistic loss; what is taken off all its coordinates is ``shift @ v``. The sums are those of
    :func:`shifted_gradient`: replacing one row by any other moves none by more than ``2**16``. Rewards
    outside `reward_range` are moved to its ends, and one that is no number to its lower end.
    """
    rows, chosen = _rows.matrix("X", X), _rows.integers("columns", columns)
    n = rows.shape[0]
    if not (isinstance(out, np.ndarray) and out.dtype == np.float64 and out.ndim == 2 and out.flags.carray):
        raise TypeError("out must be a writable float64 array in C order with two dimensions")
    if len(out) != n:
        raise ValueError(f"out must have {n} rows, one for each row of X, got shape {out.shape}")
    arguments.choice("loss", loss, ("squared", "logistic"))
    clip = arguments.within("clip", clip, _gradient.SMALLEST_CLIP, _gradient.LARGEST_CLIP)
    each = ", one for the constant and each column"
    residuals = np.empty(n)
    sums = _native.relative_gradient(
        _rows.native(rows), _rows.vector("y", y, n, ", one reward for each row of X"), chosen,
        _rows.vector("weights", weights, 1 + len(chosen), each),
        None if shift is None else _rows.vector("shift", shift, 1 + len(chosen), each),
        arguments.real("one", one), _units(units, rows.shape[1]), loss, reward_range, clip, out,
        residuals, _rows.flags(present, n), _rows.thread_count(threads),
    )  # fmt: skip
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
    any other moves no sum by more than ``2**16``. A product that is no number counts as 0, and shifts are cut
    at ``1e30``.
    """
    rows = _rows.matrix("X", X)
    n = rows.shape[0]
    clip = arguments.within("clip", clip, _gradient.SMALLEST_CLIP, _gradient.LARGEST_CLIP)
    sums = _native.shifted_gradient(
        _rows.native(rows), _rows.vector("residuals", residuals, n, ", one residual for each row of X"),
        clip,
        None if shifts is None else _rows.vector("shifts", shifts, n, ", one shift for each row of X"),
        _units(units, rows.shape[1]), _rows.flags(present, n), _rows.thread_count(threads),
    )  # fmt: skip
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
    """
    rows, chosen = _rows.matrix("X", X), _rows.integers("columns", columns)
    n = rows.shape[0]
    known: Any = _rows.dense_rows("support", support, 2, copy=False)
    if known.dtype != np.float64:
        raise TypeError(f"support must be float64, got {known.dtype}")
    _rows.nonempty("support", known.shape)
    if len(known) != n:
        raise ValueError(f"support must have {n} rows, one for each row of X, got shape {known.shape}")
    sizes = None if units is None else _rows.vector("units", units, len(chosen), ", one unit for each column")
    return _native.settled_sums(
        _rows.native(rows), chosen, known,
        _rows.vector("residuals", residuals, n, ", one residual for each row of X"),
        _square(whiten, known.shape[1] + len(chosen)),
        arguments.within("clip", clip, _gradient.SMALLEST_CLIP, _gradient.LARGEST_CLIP),
        arguments.integer("radius", radius, 1, _ball.MOST_RADIUS), arguments.positive("scale", scale),
        arguments.positive("cap", cap), sizes, _rows.flags(present, n), _rows.thread_count(threads),
    )  # fmt: skip


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
    """
    rows = _rows.matrix("X", X)
    n = rows.shape[0]
    logs, ratios, squares = _native.row_numbers(
        _rows.native(rows),
        arguments.positive("size", size),
        arguments.positive("octaves", octaves),
        _units(units, rows.shape[1]),
        _rows.flags(present, n),
        _rows.thread_count(threads),
    )
    return logs, ratios, squares


def _square(whiten: npt.ArrayLike, m: int) -> _Floats:
    matrix = _rows.plain_array("whiten", whiten)
    if not _rows.in_place(matrix, np.float64):
        matrix = np.require(matrix, np.float64, ["C", "A"])
    if matrix.shape != (m, m):
        raise ValueError(f"whiten must have shape ({m}, {m}), got shape {matrix.shape}")
    return matrix


def _units(units: npt.ArrayLike | None, d: int) -> _Floats | None:
    return None if units is None else _rows.vector("units", units, d, ", one unit for each column of X")
