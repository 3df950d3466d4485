"""Columns as features between -1 and 1: numbers scaled by their range, categories one column a level."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat.lab.tables.read import Category, Dates, Numbers, Table

__all__ = ["MISSING", "Features", "Range", "encode"]

Range: TypeAlias = tuple[float, float]
Missing: TypeAlias = Literal["refuse", "drop", "indicate"]
MISSING: Final = ("refuse", "drop", "indicate")

#: Distinct texts of a column that are taken for categories; more are free text, names or ids.
MOST_LEVELS: Final = 50

# 2024-01-31, 31.01.2024, 1/31/24, each with a time of day or without.
_DATE = re.compile(r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T ]\d{1,2}:\d{2}.*)?")


@dataclass(frozen=True, eq=False)
class Features:
    """What a policy sees of a person.

    Attributes
    ----------
    matrix : ndarray of float32, shape (n, p)
        The first column is 1: an arm's own level.
    names : tuple of str
        Of its columns.
    ranges : dict
        By which range each numeric column was scaled.
    own_ranges : tuple of str
        Columns whose range was read off the table itself.
    own_levels : tuple of str
        Columns whose levels were.
    constant : tuple of str
        Columns left out, because every row has the same value.
    filled : int
        Columns of the table that these features come from: a row's norm is at most ``sqrt(1 + filled)``.
    """

    matrix: npt.NDArray[np.float32]
    names: tuple[str, ...]
    ranges: dict[str, Range]
    own_ranges: tuple[str, ...]
    own_levels: tuple[str, ...]
    constant: tuple[str, ...]
    filled: int


def encode(
    table: Table, names: Collection[str], ranges: Mapping[str, Range], categorical: Collection[str]
) -> Features:
    """Turn columns of a table into features.

    A numeric column with range (low, high) becomes ``2 (x - low) / (high - low) - 1``, cut to [-1, 1]. By
    default the range is the column's own 1 and 99 % points. A category has a column of 0 and 1 for each
    level. Where a value is missing, a further column is 1 and the others are 0.

    Raises
    ------
    ValueError
        If a column holds dates, free text, or numbers beyond float range.
    """
    parts: list[npt.NDArray[np.float32]] = [np.ones((len(table), 1), np.float32)]
    labels, used, own_ranges, own_levels, constant = ["1"], {}, [], [], []
    for name in names:
        column = table[name]
        if name in categorical and isinstance(column, Numbers):
            column = _as_category(column)
        absent = column.missing()
        if isinstance(column, Dates) or (isinstance(column, Category) and _looks_like_dates(column)):
            raise ValueError(
                f"column {name!r} holds dates: turn it into a number, such as days since the study began, or "
                f"leave it out (--drop {_quoted(name)})"
            )
        if isinstance(column, Category):
            if len(column.levels) > MOST_LEVELS:
                raise ValueError(
                    f"column {name!r} has {len(column.levels):,} distinct texts, and at most {MOST_LEVELS} "
                    f"are taken for categories: group them, or leave it out (--drop {_quoted(name)})"
                )
            found = _one_hot(column)
            own_levels.append(name)
            added = [f"{name}={level}" for level in column.levels]
        else:
            finite = column.values[~absent]
            if not np.isfinite(finite).all():
                raise ValueError(
                    f"column {name!r} has {int((~np.isfinite(finite)).sum()):,} infinite values: give them a "
                    f"number, or leave the column out (--drop {_quoted(name)})"
                )
            if name not in ranges:
                own_ranges.append(name)
            low, high = ranges[name] if name in ranges else _own_range(finite)
            used[name] = (low, high)
            scaled = np.zeros(len(table)) if low == high else 2 * (column.values - low) / (high - low) - 1
            found = np.where(absent, 0.0, np.clip(scaled, -1, 1)).astype(np.float32)[:, None]
            added = [name]
        if absent.any():
            found = np.hstack([found, absent[:, None].astype(np.float32)])
            added.append(f"{name} is missing")
        if (found == found[0]).all():
            constant.append(name)
            continue
        parts.append(found)
        labels += added
    # Names alone are not features of anybody.
    kept = [name for name in used if name not in constant]
    return Features(
        np.ascontiguousarray(np.hstack(parts)),
        tuple(labels),
        {name: used[name] for name in kept},
        tuple(name for name in own_ranges if name not in constant),
        tuple(name for name in own_levels if name not in constant),
        tuple(constant),
        len(parts) - 1,
    )


def _own_range(values: npt.NDArray[np.float64]) -> Range:
    if len(values) == 0:
        return 0.0, 0.0
    low, high = np.quantile(values, (0.01, 0.99))
    if low == high:  # nearly constant: the few others are what there is to see
        low, high = values.min(), values.max()
    return float(low), float(high)


def _one_hot(column: Category) -> npt.NDArray[np.float32]:
    return np.asarray(column.codes[:, None] == np.arange(len(column.levels)), np.float32)


def _as_category(column: Numbers) -> Category:
    """Return numbers that are codes, such as regions, as categories."""
    absent = column.missing()
    levels, codes = np.unique(column.values[~absent], return_inverse=True)
    every = np.full(len(absent), -1, np.int64)
    every[~absent] = codes.reshape(-1)
    return Category(tuple(f"{level:g}" for level in levels), every)


def _looks_like_dates(column: Category) -> bool:
    return bool(column.levels) and all(_DATE.fullmatch(level) for level in column.levels)


def _quoted(name: str) -> str:
    return f"'{name}'" if re.search(r"\W", name) else name
