"""Private picks of columns outside a public set."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _peel

_Columns = npt.NDArray[np.int64]


@overload
def pick_columns(
    scores: npt.ArrayLike,
    picks: int,
    *,
    scale: int,
    excluded: npt.ArrayLike | None = None,
    signed: Literal[False] = False,
) -> _Columns: ...


@overload
def pick_columns(
    scores: npt.ArrayLike,
    picks: int,
    *,
    scale: int,
    excluded: npt.ArrayLike | None = None,
    signed: Literal[True],
) -> tuple[_Columns, _Columns]: ...


def pick_columns(
    scores: npt.ArrayLike,
    picks: int,
    *,
    scale: int,
    excluded: npt.ArrayLike | None = None,
    signed: bool = False,
) -> _Columns | tuple[_Columns, _Columns]:
    """Pick columns with large scores privately, outside a public set.

    The picks follow one another. Each chooses among the candidates that remain, with probability exactly
    proportional to ``exp(score / scale)``:

    - ``signed=False``: a candidate is a column that is not excluded, with score ``abs(scores[j])``.
    - ``signed=True``: a candidate is a column and a sign, with score ``scores[j]`` or ``-scores[j]``. When
      one of the two is picked, the other is no candidate any more.

    If every ``scores[j]`` moves by at most L between neighbours, each pick is ``2 * L / scale``
    bounded-range, signed or not, and costs ``(L / scale)**2 / 2`` zCDP. The bits come from the operating
    system through ChaCha20, fresh for every call, and there is no seed.

    Parameters
    ----------
    scores : array_like of int, shape (d,)
        Strictly between ``-2**61`` and ``2**61``.
    picks : int
        From 0 to the number of columns that are not excluded.
    scale : int
        From 1 to ``2**40 - 1``, in the units of `scores`.
    excluded : array_like of int, optional
        Public columns that can't be picked.
    signed : bool
        Whether the sign is picked with the column.
    """
    array = _peel.integer_vector("scores", scores)
    outside = _peel.integer_vector("excluded", np.empty(0, np.int64) if excluded is None else excluded)
    different = set(outside.tolist())
    if different and not 0 <= min(different) <= max(different) < len(array):
        raise ValueError(f"excluded must be columns of scores, from 0 to {len(array) - 1}")
    if not isinstance(signed, (bool, np.bool_)):
        raise TypeError(f"signed must be True or False, got {signed!r}")
    columns, signs = _native.pick_columns(
        array,
        arguments.integer("picks", picks, 0, len(array) - len(different)),
        arguments.integer("scale", scale, 1, _peel.SCALE_LIMIT - 1),
        outside,
        bool(signed),
    )
    return (columns, signs) if signed else columns
