"""An episode of pursuit in one call: rows go in, picks and one noisy vector come out."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _ball, _gaussian, _gradient, _peel, _relative, _rows

__all__ = ["pursuit_release"]

_Integers = npt.NDArray[np.int64]


def pursuit_release(
    X: Any,
    y: npt.ArrayLike,
    columns: npt.ArrayLike,
    weights: npt.ArrayLike,
    *,
    pick_clip: float,
    picks: int,
    pick_scale: int,
    whiten: npt.ArrayLike,
    value_clip: float,
    radius: int,
    scale: float,
    cap: float,
    sigmas: npt.ArrayLike,
    one: float = 1.0,
    shift: npt.ArrayLike | None = None,
    units: npt.ArrayLike | None = None,
    loss: Literal["squared", "logistic"] = "squared",
    reward_range: tuple[float, float] | None = None,
    signed: bool = False,
    octaves: float | None = None,
    present: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> tuple[_Integers, _Integers, _Integers]:
    """Release new columns and sums about them and the public ones; the sums themselves never leave the call.

    It is four kernels after each other: :func:`relative_gradient`, whose sums :func:`pick_columns` picks by,
    outside `columns`; then :func:`settled_sums` on the m = 1 + k + p columns that are public now (and, with
    `octaves`, :func:`row_numbers`), which :func:`gaussian_release` releases as one vector. What replacing a
    row can do to each sum is said there, and what the noise must be is the caller's to say and to price. The
    bits come from the operating system, fresh for every call, and there is no seed.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, d), in C order, or SciPy CSR
        Never copied.
    y : array_like, shape (n,)
        Rewards.
    columns, weights, one, shift, units, loss, reward_range
        See :func:`relative_gradient`.
    pick_clip : float
        Its `clip`.
    picks, pick_scale, signed
        See :func:`pick_columns`.
    whiten, radius, scale, cap
        See :func:`settled_sums`.
    value_clip : float
        Its `clip`.
    sigmas : array_like of int, shape (m + m (m + 1) / 2 + 1,), and 3 more with `octaves`
        From 1 to ``2**40``: noise of the gradients, of the second moments from the diagonal on, row after
        row, of the residuals' size, and of the three numbers of whole rows.
    octaves : float, optional
        Measure whole rows as well, relative to `one`.
    present, threads
        See :func:`shifted_gradient`.

    Returns
    -------
    columns, signs : ndarray of int64, shape (picks,)
        In the order picked; signs are 1 without `signed`.
    released : ndarray of int64, shape of `sigmas`

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import kernels
    >>> X = np.random.default_rng(0).standard_normal((5000, 20))
    >>> measure = dict(whiten=np.eye(2), value_clip=4.0, radius=4095, scale=1000.0, cap=4.0)
    >>> columns, signs, released = kernels.pursuit_release(
    ...     X, -X[:, 7], [], [0.0], pick_clip=4.0, picks=1, pick_scale=10**5, signed=True, sigmas=[100] * 6,
    ...     **measure)
    >>> columns, signs, (released[1] * 4.0 / 2**15 / 5000).round(1)
    (array([7]), array([-1]), np.float64(-0.9))
    """
    rows, n, threads = _relative._checked(X, threads)
    chosen = _relative._chosen(columns)
    arguments.choice("loss", loss, ("squared", "logistic"))
    each = ", one for the constant and each column"
    k = len(chosen)
    clips = _gradient.SMALLEST_CLIP, _gradient.LARGEST_CLIP
    one = arguments.real("one", one)
    count = arguments.integer("picks", picks, 0, rows.shape[1] - k)
    if not isinstance(signed, (bool, np.bool_)):
        raise TypeError(f"signed must be True or False, got {signed!r}")
    return _native.pursuit_release(
        _rows.native(rows),
        _rows.vector("y", y, n, ", one reward for each row of X"),
        chosen,
        _rows.vector("weights", weights, 1 + k, each),
        None if shift is None else _rows.vector("shift", shift, 1 + k, each),
        _relative._units(units, rows.shape[1]),
        (one, loss, reward_range, arguments.within("pick_clip", pick_clip, *clips)),
        (count, arguments.integer("pick_scale", pick_scale, 1, _peel.SCALE_LIMIT - 1), bool(signed)),
        _relative._square(whiten, 1 + k + count),
        (
            arguments.within("value_clip", value_clip, *clips),
            arguments.integer("radius", radius, 1, _ball.MOST_RADIUS),
            arguments.positive("scale", scale),
            arguments.positive("cap", cap),
        ),
        None if octaves is None else (one, arguments.positive("octaves", octaves)),
        _gaussian.scales(sigmas, _length(1 + k + count, octaves is not None)),
        None if present is None else _gradient.present_flags(present, n),
        threads,
    )


def _length(m: int, whole_rows: bool) -> tuple[int]:
    """Return the shape of what is released of m columns."""
    return (m + m * (m + 1) // 2 + 1 + 3 * whole_rows,)
