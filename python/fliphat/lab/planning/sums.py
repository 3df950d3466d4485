"""The integer sums of an episode of pursuit, of simulated rows: a plan has no others.

People's rows never come here: what a policy releases is summed and drawn in one native call
(:mod:`fliphat.fit.pursuit.release`).
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fliphat.kernels import _fits as fit_kernels

__all__ = ["Public", "candidate_sums", "further_sums", "settled_sums"]

#: A picked column takes no more off a row's residual than at this many times its typical value: contexts that
#: are larger than was told do not make it worse than a sign.
_FARTHEST: Final = 2.0


_Floats = npt.NDArray[np.float64]
_Present = npt.NDArray[np.bool_]


class Public(NamedTuple):
    """What an episode's rows are compared with.

    Attributes
    ----------
    columns : ndarray of int64, shape (k,)
    theta : ndarray, shape (1 + k,)
        Intercept and coefficients.
    one : float
        Value of the intercept's column.
    shift : ndarray, shape (1 + k,), or None
        Weights of the constant and the columns in what is taken off all coordinates of a row.
    units : ndarray, shape (d,), or None
        Public sizes of columns.
    loss : {"squared", "logistic"}
    reward_range : (float, float) or None
        Rewards outside it are moved to its ends.
    """

    columns: npt.NDArray[np.int64]
    theta: _Floats
    one: float = 1.0
    shift: _Floats | None = None
    units: _Floats | None = None
    loss: Literal["squared", "logistic"] = "squared"
    reward_range: tuple[float, float] | None = None

    @property
    def weights(self) -> _Floats:
        """Intercept and coefficients, where the constant's column has the value `one` instead of 1."""
        weights = self.theta.copy()
        weights[0] /= self.one
        return weights


def candidate_sums(
    rows: Any,
    rewards: _Floats,
    present: _Present,
    public: Public,
    clip: float,
    support: _Floats,
    *,
    threads: int | None = None,
) -> tuple[npt.NDArray[np.int64], _Floats]:
    """Return the sums over rows of ``(row / units - shift) * residual``, clipped, of all columns; residuals.

    The constant and the public columns of each row are written to the first columns of `support`. Replacing
    one row moves each sum by at most ``2 * LIMIT``.
    """
    sums, left, _ = fit_kernels.relative_gradient(
        rows,
        rewards,
        public.columns,
        public.weights,
        clip,
        support,
        one=public.one,
        shift=public.shift,
        units=public.units,
        loss=public.loss,
        reward_range=public.reward_range,
        present=present,
        threads=threads,
    )
    return sums, left


def further_sums(
    rows: Any,
    picked: npt.NDArray[np.int64],
    signs: npt.NDArray[np.int64],
    support: _Floats,
    left: _Floats,
    present: _Present,
    *,
    one: float,
    assumed: float,
    shift: _Floats | None,
    clip: float,
    units: _Floats | None = None,
    threads: int | None = None,
) -> tuple[npt.NDArray[np.int64], _Floats]:
    """Return the sums of :func:`candidate_sums` at smaller residuals, and these residuals.

    They are less what columns that were just picked may explain, so that the next is one that adds to them.
    Where a picked column's value is `one`, it is assumed to explain `assumed` times its sign; `support` and
    `left` are as that function left them. Replacing one row moves each sum by at most ``2 * LIMIT``.

    Rows that are not present count for nothing but are read: sparse ones must be canonical, as those of a
    policy are.
    """
    values = np.empty((len(left), len(picked)))
    of_picked = None if units is None else units[picked]
    fit_kernels.gather_columns(rows, picked, values, units=of_picked, threads=threads)
    np.clip(values, -_FARTHEST * one, _FARTHEST * one, out=values)
    # Column by column: a product of matrices may add up in an order that depends on where a row stands.
    # What is no number in it counts as 0 in the sums.
    shifts = None if shift is None else np.zeros(len(left))
    with np.errstate(over="ignore", invalid="ignore"):
        for column, sign in zip(values.T, signs.tolist(), strict=True):
            left = left - sign * assumed / one * column
        if shift is not None:
            for column, weight in zip(support.T, shift, strict=True):
                shifts = shifts + weight * column
    found, _ = fit_kernels.shifted_gradient(
        rows, left, clip, shifts=shifts, units=units, present=present, threads=threads
    )
    return found, left


def settled_sums(
    rows: Any,
    picked: npt.NDArray[np.int64],
    support: _Floats,
    left: _Floats,
    present: _Present,
    *,
    whiten: _Floats,
    clip: float,
    radius: int,
    ball: float,
    cap: float,
    units: _Floats | None = None,
    threads: int | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Return three sums over the columns that are public now: `support`, and behind it those just picked.

    The sums of ``whiten @ row * residual``, each clipped: replacing one row moves each by at most
    ``2 * LIMIT``. Second moments of rows cut to length `ball`, in units of ``ball / radius``: by at most
    ``sqrt(2) * radius**2`` in Frobenius norm. The residuals' size cut at `cap`: by at most ``LIMIT``.
    """
    return fit_kernels.settled_sums(
        rows,
        picked,
        support,
        left,
        whiten=whiten,
        clip=clip,
        radius=radius,
        scale=radius / ball,
        cap=cap,
        units=None if units is None else units[picked],
        present=present,
        threads=threads,
    )
