"""Twin of an episode of pursuit: the twins of its steps, one after the other. INSECURE."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.reference._columns import pick_columns
from fliphat.reference._gaussian import gaussian_release
from fliphat.reference._relative import relative_gradient, row_numbers, settled_sums

_Integers = npt.NDArray[np.int64]


def pursuit_release(
    X: Any,
    y: npt.ArrayLike,
    columns: npt.ArrayLike,
    weights: npt.ArrayLike,
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
    sigmas: npt.ArrayLike,
    one: float = 1.0,
    shift: npt.ArrayLike | None = None,
    units: npt.NDArray[np.float64] | None = None,
    loss: str = "squared",
    reward_range: tuple[float, float] | None = None,
    signed: bool = False,
    octaves: float | None = None,
    present: npt.NDArray[np.bool_] | None = None,
) -> tuple[_Integers, _Integers, _Integers]:
    """Pick columns and release sums about them, with float noise from a seeded generator: INSECURE."""
    public = np.asarray(columns, np.int64)
    support = np.empty((X.shape[0], 1 + len(public)))
    scores, left, _ = relative_gradient(
        X,
        y,
        public,
        weights,
        pick_clip,
        support,
        one=one,
        shift=shift,
        units=units,
        loss=loss,
        reward_range=reward_range,
        present=present,
    )
    new, signs = pick_columns(scores, picks, scale=pick_scale, rng=rng, excluded=public, signed=signed)
    gradient, moments, size = settled_sums(
        X,
        new,
        support,
        left,
        whiten=whiten,
        clip=value_clip,
        radius=radius,
        scale=scale,
        cap=cap,
        units=None if units is None else units[new],
        present=present,
    )
    whole = () if octaves is None else row_numbers(X, one, octaves, units=units, present=present)
    upper = moments[np.triu_indices(len(gradient))]
    values = np.concatenate([gradient, upper, np.array([size, *whole], np.int64)])
    return new, signs, gaussian_release(values, np.asarray(sigmas, np.int64), rng)
