"""Columns as features between -1 and 1, what is wrong with them, and which of them tell the answer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat.contexts.encoder import Encoder, Range, inner_range, plain_text
from fliphat.lab.tables.read import Category, Column, Dates, Numbers, Table

Missing: TypeAlias = Literal["refuse", "drop", "indicate"]
MISSING: Final = ("refuse", "drop", "indicate")

#: Distinct texts of a column that are taken for categories; more are free text, names or ids.
MOST_LEVELS: Final = 50
#: A column with more texts than this is free text, and leaving it out is the better advice.
_FREE_TEXT: Final = 300

# $1,234.50, 12 %, 1 234: numbers that are not read as such.
_SIGNED = re.compile(r"[-+]?[$€£]?\s?\d+(?:[, ]\d{3})*(?:\.\d+)?\s?[%$€£]?")
# 2024-01-31, 31.01.2024, 1/31/24, each with a time of day or without.
_DATE = re.compile(r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T ]\d{1,2}:\d{2}.*)?")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a table: a sentence, and the flags that would solve it, if any do."""

    sentence: str
    flag: str = ""
    value: str = ""


class TableProblems(ValueError):
    """Everything that is wrong with a table, with the flags that solve it.

    `flags`: to be added to the command, in one go; empty if some problem has no flag.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.flags: list[str] = []
        for flag in dict.fromkeys(problem.flag for problem in problems if problem.flag):
            values = list(dict.fromkeys(one.value for one in problems if one.flag == flag))
            # One number solves it for all columns; names are listed.
            values = [str(max(map(int, values)))] if all(one.isdigit() for one in values) else values
            self.flags += [flag, *(["drop"] if flag == "--missing" and "drop" in values else values)]
        lines = [problem.sentence for problem in problems]
        if len(lines) > 1:
            lines = [f"{len(lines)} things to settle first:", *(f"- {line}" for line in lines)]
        super().__init__("\n".join(lines))


@dataclass(frozen=True, eq=False)
class Features:
    """What a policy sees of a person."""

    #: The first column is 1: an arm's own level. The others are the encoder's.
    matrix: npt.NDArray[np.float32]
    #: None if there is no column to tell people apart by.
    encoder: Encoder | None
    #: Columns whose range, or whose categories, were read off the table itself.
    own_ranges: tuple[str, ...]
    own_levels: tuple[str, ...]
    #: Columns left out, because every row has the same value.
    constant: tuple[str, ...]


def as_used(table: Table, name: str, categorical: Collection[str]) -> Column:
    """Return a column; numbers that are codes, such as regions, as categories."""
    column = table[name]
    if name not in categorical or not isinstance(column, Numbers):
        return column
    absent = column.missing()
    levels, codes = np.unique(column.values[~absent], return_inverse=True)
    every = np.full(len(absent), -1, np.int64)
    every[~absent] = codes.reshape(-1)
    return Category(tuple(plain_text(level) for level in levels), every)


def problems_of(
    table: Table,
    names: Collection[str],
    categorical: Collection[str] = (),
    missing: Missing = "refuse",
    most_levels: int = MOST_LEVELS,
) -> list[Problem]:
    """Return why columns can't be features as they are: dates, free text, infinite or missing values."""
    found = []
    for name in names:
        column = as_used(table, name, categorical)
        if isinstance(column, Dates) or (isinstance(column, Category) and _looks_like_dates(column)):
            advice = "turn it into a number, such as days since the study began, or leave it out"
            found.append(_drop(name, f"column {name!r} holds dates: {advice}"))
            continue
        absent = int(column.missing().sum())
        if absent and missing == "refuse":
            told = (
                f"column {name!r} misses {absent:,} of {len(table):,} values: fill them in, leave such rows"
            )
            told += " out (--missing drop), or let a further column say so (--missing indicate)"
            found.append(Problem(told, "--missing", "indicate"))
        if isinstance(column, Category) and _has_signs(column):
            told = f"column {name!r} holds numbers with signs, such as $, % or a comma for thousands"
            found.append(_drop(name, f"{told}: write plain numbers, or leave it out"))
        elif isinstance(column, Category) and len(column.levels) > most_levels:
            texts = (
                f"column {name!r} has {len(column.levels):,} distinct texts, and at most {most_levels} are"
            )
            texts += " taken for categories"
            if len(column.levels) > min(_FREE_TEXT, len(table) // 10):
                found.append(_drop(name, f"{texts}: group them, or leave it out"))
            else:
                flag, most = "--most-categories", str(len(column.levels))
                found.append(Problem(f"{texts}: group rare ones, or allow them ({flag} {most})", flag, most))
        elif isinstance(column, Numbers) and np.isinf(column.values).any():
            told = f"column {name!r} has {np.isinf(column.values).sum():,} infinite values"
            found.append(_drop(name, f"{told}: give them a number, or leave it out"))
    return found


def _drop(name: str, sentence: str) -> Problem:
    return Problem(f"{sentence} (--drop {shlex.quote(name)})", "--drop", name)


def encode(
    table: Table, names: Collection[str], ranges: Mapping[str, Range], categorical: Collection[str] = ()
) -> Features:
    """Turn columns that have no problems into features, by an :class:`~fliphat.contexts.Encoder`.

    By default a number's range is the column's own 1 and 99 % points. Where values are missing, a further
    column is 1 and the others are 0.
    """
    columns = {name: as_used(table, name, categorical) for name in names}
    known: dict[str, Range | Sequence[str]] = {}
    for name, column in columns.items():
        if isinstance(column, Category):
            known[name] = column.levels or ("none",)
        else:
            assert isinstance(column, Numbers)
            known[name] = ranges[name] if name in ranges else inner_range(column.values)
    absent = [name for name, column in columns.items() if column.missing().any()]
    parts: list[npt.NDArray[np.float32]] = [np.ones((len(table), 1), np.float32)]
    constant = []
    for name, column in columns.items():
        # Of a category its distinct values are encoded, the missing one last.
        values: npt.NDArray[Any] = np.array([], np.float64)
        if isinstance(column, Numbers):
            values = column.values
        elif isinstance(column, Category):
            values = np.array([*column.levels, None], np.object_)
        part = Encoder({name: known[name]}, missing=[name] if name in absent else ()).features(name, values)
        if isinstance(column, Category):
            part = part[column.codes]
        if (part == part[0]).all():
            constant.append(name)
        else:
            parts.append(part)
    kept = {name: known[name] for name in columns if name not in constant}
    return Features(
        np.ascontiguousarray(np.hstack(parts)),
        Encoder(kept, missing=[name for name in absent if name in kept]) if kept else None,
        tuple(name for name in kept if isinstance(columns[name], Numbers) and name not in ranges),
        tuple(name for name in kept if isinstance(columns[name], Category)),
        tuple(constant),
    )


def _has_signs(column: Category) -> bool:
    numbers = bool(column.levels) and all(map(_SIGNED.fullmatch, column.levels))
    return numbers and any(set(level) & set("$€£%, ") for level in column.levels)


def _looks_like_dates(column: Category) -> bool:
    return bool(column.levels) and all(_DATE.fullmatch(level) for level in column.levels)


#: A column leaks if it makes at most this share of the mistakes that are made without it.
_MISTAKES = 0.02
#: Rows of an answer, and of all others, from which on that is no accident.
_ROWS = 10


def leaks(
    table: Table, names: Collection[str], categorical: Collection[str], answers: npt.NDArray[np.int64]
) -> dict[tuple[bool, int], list[str]]:
    """Return the columns that alone tell an answer, by whether just their being missing does, and by answer.

    `answers`: what is to be found out, from 0: the right arm, or a reward with few values.
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
