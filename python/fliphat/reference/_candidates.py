"""Twin of the scores that columns are picked by where arms have names. Equal to the kernel bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.reference._ball import _integers

_LIMIT = 2.0**15


def column_scores(
    X: Any,
    rewards: npt.NDArray[np.float64],
    arms: npt.NDArray[np.int64],
    *,
    count: int,
    columns: npt.ArrayLike,
    center: npt.ArrayLike,
    scale: npt.ArrayLike,
    radius: int,
    weights: npt.NDArray[np.float64],
    clip: float,
    present: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.int64]:
    """Score each column by the sums of its values times residuals, their sizes added up over arms.

    `weights` has for each arm one of the integers of each public column, and a level; rewards are from 0 to
    1.
    """
    public = np.asarray(columns, np.int64)
    here = np.ones(X.shape[0], bool) if present is None else np.asarray(present)
    found = np.asarray(weights).reshape(count, len(public) + 1)
    expected = found[arms, -1].copy()
    if len(public):
        q = _integers(X, public, radius, scale, None, np.ones(X.shape[0]), here, center)
        for j in range(len(public)):  # column after column, as the kernel adds
            expected += found[arms, j] * q[:, j]
    moved = np.clip(np.nan_to_num(np.asarray(rewards, np.float64) - 0.5, nan=0.0), -0.5, 0.5)
    factor = (moved - expected) * _LIMIT / clip
    values = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        integers = np.rint(np.clip(np.nan_to_num(values * factor[:, None], nan=0.0), -_LIMIT, _LIMIT))
    sums = np.zeros((count, values.shape[1]), np.int64)
    np.add.at(sums, np.asarray(arms)[here], integers[here].astype(np.int64))
    scores: npt.NDArray[np.int64] = np.abs(sums).sum(axis=0)
    return scores
