"""Float twin of picks of columns. INSECURE: for races and for checks of distributions only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def pick_columns(
    scores: npt.NDArray[np.int64],
    picks: int,
    *,
    scale: float,
    rng: np.random.Generator,
    excluded: npt.ArrayLike | None = None,
    signed: bool = False,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pick by the Gumbel trick, with float noise: INSECURE. Signs are all 1 without `signed`.

    With signs the larger of a column's two noisy scores stands for the column: the other is gone once the
    column is picked, so it can never matter.
    """
    plus = scores if signed else np.abs(scores)
    noisy = plus + rng.gumbel(scale=scale, size=len(scores))
    signs = np.ones(len(scores), np.int64)
    if signed:
        minus = rng.gumbel(scale=scale, size=len(scores)) - scores
        signs[minus > noisy] = -1
        noisy = np.maximum(noisy, minus)
    if excluded is not None:
        noisy[np.asarray(excluded, np.int64)] = -np.inf
    columns = np.argsort(-noisy, kind="stable")[:picks]
    return columns, signs[columns]
