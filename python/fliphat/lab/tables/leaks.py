"""Columns that tell the answer: what was written down after the decision is no context."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import numpy as np
import numpy.typing as npt

from fliphat.lab.tables.columns import as_used
from fliphat.lab.tables.read import Category, Dates, Table

#: A column leaks if it makes at most this share of the mistakes that are made without it.
_MISTAKES = 0.02
#: Rows of an answer, and of all others, from which on that is no accident.
_ROWS = 10


def leaks(
    table: Table, names: Collection[str], categorical: Collection[str], answers: npt.NDArray[np.int64]
) -> dict[tuple[bool, int], list[str]]:
    """Return the columns that alone tell an answer, by whether just their being missing does, and by answer.

    Parameters
    ----------
    answers : ndarray of int64, shape (n,)
        What is to be found out, from 0: the right arm, or a reward with few values.
    """
    counts = np.bincount(answers)
    few = np.minimum(counts, len(answers) - counts)
    tested = [(int(one), answers == one, _MISTAKES * few[one]) for one in np.flatnonzero(few >= _ROWS)]
    found: dict[tuple[bool, int], list[str]] = {}
    for name in names:
        column = as_used(table, name, categorical)
        if isinstance(column, Dates):
            continue
        absent = column.missing()
        if isinstance(column, Category):
            mistakes = partial(_by_part, column.codes + 1)
        else:
            order = np.argsort(column.values, kind="stable")
            mistakes = partial(_by_cut, column.values[order], order)
        for one, yes, most in tested:
            missing = _by_part(absent.astype(np.int64), yes) <= most
            if missing or mistakes(yes) <= most:
                found.setdefault((missing, one), []).append(name)
                break
    return found


def _by_part(parts: npt.NDArray[np.int64], yes: npt.NDArray[np.bool_]) -> int:
    """Return the mistakes made if each part says what most of its rows say.

    A part beyond the second counts as one more mistake, so that many small parts prove nothing.
    """
    every = np.bincount(parts)
    right = np.bincount(parts[yes], minlength=len(every))
    return int(np.minimum(right, every - right).sum()) + max(0, int((every > 0).sum()) - 2)


def _by_cut(values: npt.NDArray[np.float64], order: npt.NDArray[np.int64], yes: npt.NDArray[np.bool_]) -> int:
    """Return the fewest mistakes if one side of a number says yes and the other no; values ascend."""
    cuts = np.flatnonzero(values[1:] > values[:-1])
    if len(cuts) == 0 or np.isnan(values[-1]):
        return len(yes)
    wrong = np.cumsum(np.where(yes[order], 1, -1))[cuts] + int(
        (~yes).sum()
    )  # yes on the left side, no on the right
    return int(min(wrong.min(), (len(yes) - wrong).min()))
