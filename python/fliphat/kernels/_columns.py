"""Private picks of columns outside a public set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _rows, _units


def pick_columns(
    scores: npt.ArrayLike,
    picks: int,
    *,
    scale: int,
    excluded: npt.ArrayLike | None = None,
    signed: bool = False,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pick columns with large integer scores privately, and signs; those excluded are public.

    The picks follow one another. Each chooses among the candidates that remain, with probability exactly
    proportional to ``exp(score / scale)``. A candidate is a column with score ``abs(scores[j])`` (its sign is
    1), or with `signed` a column and a sign, of which the other is no candidate once one is picked. If every
    ``scores[j]`` moves by at most L between neighbours, each pick is ``2 * L / scale`` bounded-range.
    """
    array = _rows.integers("scores", scores)
    outside = _rows.integers("excluded", np.empty(0, np.int64) if excluded is None else excluded)
    different = set(outside.tolist())
    if different and not 0 <= min(different) <= max(different) < len(array):
        raise ValueError(f"excluded must be columns of scores, from 0 to {len(array) - 1}")
    if not isinstance(signed, (bool, np.bool_)):
        raise TypeError(f"signed must be True or False, got {signed!r}")
    return _native.pick_columns(
        array,
        arguments.integer("picks", picks, 0, len(array) - len(different)),
        arguments.integer("scale", scale, 1, _units.SCALE_LIMIT - 1),
        outside,
        bool(signed),
    )
