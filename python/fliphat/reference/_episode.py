"""Twin of a whole episode (``rust/core/src/private/episode.rs``), step after step. INSECURE."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.reference._columns import pick_columns
from fliphat.reference._gaussian import gaussian_release
from fliphat.reference._relative import relative_gradient, row_numbers, settled_sums, shifted_gradient

_Integers = npt.NDArray[np.int64]

#: A picked column takes no more off a residual than at this many times the constant's value.
_FARTHEST = 2.0


def episode(
    X: Any,
    y: npt.ArrayLike,
    columns: npt.ArrayLike,
    theta: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    pick_clip: float,
    picks: int,
    pick_scale: int,
    whiten: npt.ArrayLike,
    value_clip: float,
    radius: int,
    scale: float,
    cap: float,
    sigmas: tuple[int, int, int],
    one: float = 1.0,
    shift: npt.NDArray[np.float64] | None = None,
    units: npt.NDArray[np.float64] | None = None,
    loss: str = "squared",
    reward_range: tuple[float, float] | None = None,
    signed: bool = False,
    last_signed: bool = True,
    assumed: float = 0.0,
    octaves: float | None = None,
    row_sigmas: tuple[int, int, int] = (1, 1, 1),
    present: npt.NDArray[np.bool_] | None = None,
) -> tuple[_Integers, _Integers, _Integers, _Integers]:
    """Release an episode of pursuit with float noise from a seeded generator: numbers, picks, signs, vector.

    `sigmas` are those of gradients, of second moments above the diagonal and of the residuals' size. Where
    `assumed` is not 0, picks follow one another: each is assumed to explain that much of a reward, where a
    row's value is `one`, before the next is picked.
    """
    public = np.asarray(columns, np.int64)
    numbers = np.zeros(0, np.int64)
    if octaves is not None:
        whole = np.array(row_numbers(X, one, octaves, units=units, present=present), np.int64)
        numbers = gaussian_release(whole, np.array(row_sigmas), rng)
    weights = np.array(theta, np.float64)
    weights[0] /= one
    support = np.empty((X.shape[0], 1 + len(public)))
    scores, left, _ = relative_gradient(
        X, y, public, weights, pick_clip, support, one=one, shift=shift, units=units, loss=loss,
        reward_range=reward_range, present=present,
    )  # fmt: skip
    if assumed == 0:
        new, signs = pick_columns(scores, picks, scale=pick_scale, rng=rng, excluded=public, signed=signed)
        signs = signs if signed else 0 * signs
    else:
        new = signs = np.zeros(0, np.int64)
        for pick in range(picks):
            if pick:
                smaller = left - _explained(X, new, signs, assumed, one, units)
                shifts = None if shift is None else support @ shift
                scores, _ = shifted_gradient(
                    X, smaller, pick_clip, shifts=shifts, units=units, present=present
                )
            with_sign = signed and (pick + 1 < picks or last_signed)
            excluded = np.concatenate([public, new])
            column, sign = pick_columns(
                scores, 1, scale=pick_scale, rng=rng, excluded=excluded, signed=with_sign
            )
            new = np.concatenate([new, column])
            signs = np.concatenate([signs, sign if with_sign else 0 * sign])
    gradient, moments, size = settled_sums(
        X, new, support, left, whiten=whiten, clip=value_clip, radius=radius, scale=scale, cap=cap,
        units=None if units is None else units[new], present=present,
    )  # fmt: skip
    m = len(gradient)
    above, right = np.triu_indices(m)
    values = np.concatenate([gradient, moments[above, right], [size]])
    of_gradient, of_moments, of_size = sigmas
    noise = np.where(above == right, int(np.sqrt(2.0) * of_moments) + 1, of_moments)
    scales = np.concatenate([np.full(m, of_gradient), noise, [of_size]])
    return numbers, new, signs, gaussian_release(values, scales, rng)


def _explained(
    X: Any,
    columns: _Integers,
    signs: _Integers,
    assumed: float,
    one: float,
    units: npt.NDArray[np.float64] | None,
) -> npt.NDArray[np.float64]:
    """Return what picks are assumed to explain of each reward."""
    values = np.asarray(X[:, columns].todense() if hasattr(X, "todense") else X[:, columns], np.float64)
    if units is not None:
        values = values / units[columns]
    explained: npt.NDArray[np.float64] = np.clip(values, -_FARTHEST * one, _FARTHEST * one) @ (
        signs * assumed / one
    )
    return explained
