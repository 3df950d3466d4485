"""A table as a bandit: rows are people, and rewards are known for all arms or for the logged one."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.contexts.encoder import Range, plain_text
from fliphat.lab.tables.columns import (
    MISSING,
    MOST_LEVELS,
    Features,
    Missing,
    Problem,
    TableProblems,
    encode,
    leaks,
    problems_of,
)
from fliphat.lab.tables.read import Column, Dates, Numbers, Table, listed

_Codes = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]

#: A label with more classes is refused unless asked for: most are ids or measurements.
MOST_ARMS = 50
#: A reward with at most so many values can be told by a column; a measurement is not looked at.
_FEW_VALUES = 20
#: Names in a sentence, and rows from which on a whole number that never comes twice is taken for an id.
_SOME = 5
_FEWEST_IDS = 50


@dataclass(frozen=True, eq=False)
class Labels:
    """The right arm of each row, whose reward is 1 and any other's 0."""

    right: _Codes

    def of(self, rows: _Codes, arms: _Codes | int) -> _Floats:
        """Return what these arms earn in these rows."""
        return np.asarray(self.right[rows] == arms, np.float64)


@dataclass(frozen=True, eq=False)
class Rewards:
    """What every arm would earn in every row, shape (n, K)."""

    earned: _Floats

    def of(self, rows: _Codes, arms: _Codes | int) -> _Floats:
        """Return what these arms earn in these rows."""
        return np.asarray(self.earned[rows, arms], np.float64)


@dataclass(frozen=True, eq=False)
class Logged:
    """What happened in a logged round: the arm that was shown, with which chance, and the reward."""

    arms: _Codes
    rewards: _Floats
    propensities: _Floats


@dataclass(frozen=True, eq=False)
class TableBandit:
    """A table ready to be played."""

    features: Features
    #: What they are called in the table.
    arms: tuple[str, ...]
    outcomes: Labels | Rewards | Logged
    #: How often each arm is the right one, earns most, or was shown.
    shares: tuple[float, ...]
    reward_range: Range
    #: What was read off the table, and must not be read off people who are to be protected.
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.features.matrix)


def make_bandit(
    table: Table,
    *,
    label: str | None = None,
    arm: str | None = None,
    reward: str | None = None,
    propensity: str | float | None = None,
    rewards: Sequence[str] = (),
    ranges: Mapping[str, Range] | None = None,
    reward_range: Range | None = None,
    categorical: Collection[str] = (),
    drop: Collection[str] = (),
    missing: Missing = "refuse",
    most_arms: int = MOST_ARMS,
    most_categories: int = MOST_LEVELS,
) -> TableBandit:
    """Check a table and turn it into a bandit; see :func:`fliphat.simulate` for the arguments."""
    arguments.choice("missing", missing, MISSING)
    ranges = dict(ranges or {})
    roles = _roles(label, arm, reward, propensity, rewards)
    named = dict.fromkeys((*roles, *ranges, *categorical, *drop))
    unknown = [Problem(table.without(name)) for name in named if name not in table.columns]
    if unknown:
        raise TableProblems(unknown)
    for name, (low, high) in [*ranges.items(), *([("reward", reward_range)] if reward_range else [])]:
        if not (np.isfinite([low, high]).all() and low < high):
            raise ValueError(
                f"the range of {name!r} must be two finite numbers, low < high, got {low}, {high}"
            )
    seen = [name for name in table.columns if name not in {*roles, *drop}]
    for name in ranges:
        if name not in seen or not isinstance(table[name], Numbers):
            raise ValueError(f"a range is given for {name!r}, which is not a numeric column that is used")
    problems = _missing_roles(table, roles, missing) + _class_problems(table, label or arm, most_arms)
    problems += (
        [_no_numbers(name) for name in roles[1:] if not isinstance(table[name], Numbers)] if arm else []
    )
    problems += problems_of(table, seen, categorical, missing, most_categories)
    if problems:
        raise TableProblems(problems)
    warnings = [
        "The table itself is not protected by this: everything shown here was computed from its rows without "
        "privacy. Use public data, or a pilot's whose people agreed to it."
    ]
    table = _without_missing(table, roles, seen, missing, warnings)
    if label is not None:
        arms, codes = _classes(table, label)
        known: Labels | Rewards | Logged = Labels(codes)
        shares, answers, bounds = np.bincount(codes), codes, (0.0, 1.0)
    elif rewards:
        arms = tuple(rewards)
        earned = np.stack([_numbers(table, name) for name in rewards], axis=1)
        known = Rewards(earned)
        answers = earned.argmax(axis=1).astype(np.int64)
        shares, bounds = (
            np.bincount(answers, minlength=len(arms)),
            _bounds(earned, reward_range, rewards, warnings),
        )
    else:
        assert arm is not None
        assert reward is not None
        assert propensity is not None
        arms, codes = _classes(table, arm)
        paid = _numbers(table, reward)
        known = Logged(codes, paid, _propensities(table, propensity))
        warnings += _unlikely(known, len(arms))
        values, answers = np.unique(paid, return_inverse=True)
        answers = (
            answers.reshape(-1).astype(np.int64) if len(values) <= _FEW_VALUES else np.zeros(0, np.int64)
        )
        shares, bounds = np.bincount(codes), _bounds(paid, reward_range, [reward], warnings)
    features = encode(table, seen, ranges, categorical)
    if features.encoder is None:
        raise ValueError(f"{table.source} has no column to tell people apart by, besides {', '.join(roles)}")
    leaking = leaks(table, features.encoder.columns, categorical, answers) if len(answers) else {}
    for (absent, answer), names in leaking.items():
        how = "whether it is missing" if absent else "its value"
        what = "the reward" if isinstance(known, Logged) else "the best arm"
        if answers.max() > 1:
            one = f"{values[answer]:g}" if isinstance(known, Logged) else repr(arms[answer])
            what = f"whether {what} is {one}"
        columns = f"Column {names[0]!r}" if len(names) == 1 else f"Each of the columns {listed(names)}"
        warnings.append(
            f"{columns} alone, by {how}, nearly always tells {what}. If that was written down after the "
            f"decision, all figures here are too good: leave it out (--drop {shlex.join(names)})."
        )
    return TableBandit(
        features, arms, known, tuple(shares / len(table)), bounds, (*warnings, *_own(features, table))
    )


def _roles(
    label: str | None,
    arm: str | None,
    reward: str | None,
    propensity: str | float | None,
    rewards: Sequence[str],
) -> tuple[str, ...]:
    logged = {"arm": arm, "reward": reward, "propensity": propensity}
    if sum([label is not None, bool(rewards), any(value is not None for value in logged.values())]) > 1:
        raise ValueError(
            "give a label, or rewards of all arms, or arm, reward and propensity of a log, not two"
        )
    if label is not None:
        return (label,)
    if rewards:
        if len(set(rewards)) < max(2, len(rewards)):
            raise ValueError(
                f"rewards must be at least two different columns, one for each arm, got {list(rewards)}"
            )
        return tuple(rewards)
    absent = [name for name, value in logged.items() if value is None]
    if absent:
        hint = ", for uniformly shown arms the number 1/K" if absent == ["propensity"] else ""
        raise ValueError(
            "a table needs a label, or rewards of all arms, or arm, reward and propensity of a log; "
            f"{absent[0]} is not given{hint}"
        )
    return tuple(value for value in logged.values() if isinstance(value, str))


def _missing_roles(table: Table, roles: Collection[str], missing: Missing) -> list[Problem]:
    found = []
    for name in roles if missing == "refuse" else ():
        absent = 0 if isinstance(table[name], Dates) else int(table[name].missing().sum())
        if absent:
            told = f"column {name!r} misses {absent:,} of {len(table):,} values: fill them in, or leave such"
            found.append(Problem(f"{told} rows out (--missing drop or indicate)", "--missing", "indicate"))
    return found


def _without_missing(
    table: Table, roles: Collection[str], seen: Collection[str], missing: Missing, warnings: list[str]
) -> Table:
    """Return the table without rows that can't be played, and say how many they were."""
    names = [*roles, *(seen if missing == "drop" else ())]
    absent = {name: table[name].missing() for name in names}
    lost = np.logical_or.reduce(list(absent.values()))
    if not lost.any():
        return table
    worst = max(absent, key=lambda name: int(absent[name].sum()))
    most = f"most often in column {worst!r} ({int(absent[worst].sum()):,} of {len(table):,})"
    if lost.all():
        raise ValueError(
            f"every row misses a value, {most}: leave that column out (--drop), or use --missing indicate"
        )
    warnings.append(f"Left out, because they miss a value, {most}: {int(lost.sum()):,} rows.")
    return table.take(~lost)


def _class_problems(table: Table, name: str | None, most: int) -> list[Problem]:
    if name is None:
        return []
    column = table[name]
    if isinstance(column, Dates):
        return [Problem(f"column {name!r} holds dates: arms must be classes")]
    known = column.values if isinstance(column, Numbers) else column.codes
    known = known[~column.missing()]
    classes = len(np.unique(known))
    if classes < 2:
        return [Problem(f"column {name!r} has one class: there must be at least two arms to choose from")]
    most = min(most, len(known) // 2)
    if classes <= most:
        return []
    told = f"column {name!r} has {classes:,} classes, each an arm, and at most {most} are taken"
    if classes > len(known) // 2:
        return [Problem(f"{told}: group rare ones, or cut a measurement into classes")]
    told = f"{told}: group rare ones, cut a measurement into classes, or raise most_arms"
    return [Problem(f"{told} (--most-arms {classes})", "--most-arms", str(classes))]


def _classes(table: Table, name: str) -> tuple[tuple[str, ...], _Codes]:
    column = table[name]
    if isinstance(column, Numbers):
        values, codes = np.unique(column.values, return_inverse=True)
        levels = tuple(plain_text(value) for value in values)
    else:
        assert not isinstance(column, Dates)
        found, codes = np.unique(column.codes, return_inverse=True)
        levels = tuple(column.levels[at] for at in found)
    return levels, codes.reshape(-1).astype(np.int64)


def _bounds(earned: _Floats, given: Range | None, names: Sequence[str], warnings: list[str]) -> Range:
    columns = f"column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"
    if given is None:
        bounds = (float(earned.min()), float(earned.max()))
        if bounds[0] == bounds[1]:
            raise ValueError(f"{columns} must not have the same reward in every row: nothing can be learned")
        warnings.append(
            f"The range of rewards, {bounds[0]:g} to {bounds[1]:g}, was read off {columns}: give a "
            f"public one (--reward-range)."
        )
        return bounds
    outside = int(((earned < given[0]) | (earned > given[1])).sum())
    if outside:
        raise ValueError(
            f"{columns} must be within the reward range {given[0]:g} to {given[1]:g}; "
            f"{outside:,} of {earned.size:,} values are not: widen it"
        )
    return given


def _numbers(table: Table, name: str) -> _Floats:
    column = table[name]
    if not isinstance(column, Numbers):
        raise TableProblems([_no_numbers(name)])
    infinite = int((~np.isfinite(column.values)).sum())
    if infinite:
        raise ValueError(f"column {name!r} must be finite; {infinite:,} of {len(table):,} rows are not")
    return column.values


def _no_numbers(name: str) -> Problem:
    return Problem(f"column {name!r} must hold numbers: write 1 and 0 for yes and no")


def _propensities(table: Table, propensity: str | float) -> _Floats:
    if isinstance(propensity, str):
        chances, name = _numbers(table, propensity), f"column {propensity!r}"
    else:
        chances = np.full(len(table), arguments.real("propensity", propensity))
        name = "propensity"
    bad = int((~((chances > 0) & (chances <= 1))).sum())
    if bad:
        raise ValueError(
            f"{name} must be above 0 and at most 1, the chance with which the logged arm was shown; {bad:,} "
            f"of {len(table):,} rows are not: an arm of chance 0 can't have been shown; correct "
            f"them or remove the rows"
        )
    return chances


def _unlikely(log: Logged, arms: int) -> list[str]:
    """Return what to say of chances that can't be those of the arms shown: 1/chance has the mean K."""
    inverse = 1 / log.propensities
    if abs(inverse.mean() - arms) <= 0.1 * arms + 4 * inverse.std() / np.sqrt(len(inverse)):
        return []
    return [
        f"The chances do not fit the log: the mean of 1/chance is {inverse.mean():.3g}, and would be near "
        f"{arms}, the arms, if each could be shown in every round. Where chances are wrong, all figures are."
    ]


def _own(features: Features, table: Table) -> list[str]:
    told = []
    ids = [name for name in features.own_ranges if _counts_rows(table[name])]
    if ids:
        told.append(
            f"Another whole number in every row: {_some(ids)}. If these are ids, leave them out "
            f"(--drop {shlex.join(ids[:_SOME])})."
        )
    if features.own_ranges:
        names = _some(features.own_ranges)
        told.append(
            f"Ranges were read off the table's own 1 and 99 % points ({names}): give public ones (--range)."
        )
    if features.own_levels:
        told.append(
            f"Categories were read off the table ({_some(features.own_levels)}): a study needs a public list."
        )
    if features.constant:
        told.append(f"Left out, because every row has the same value: {_some(features.constant)}.")
    return told


def _counts_rows(column: Column) -> bool:
    """Return whether a column is like a number that each row was given; few rows may differ by accident."""
    if not isinstance(column, Numbers) or len(column.values) < _FEWEST_IDS:
        return False
    whole = bool((column.values == np.floor(column.values)).all())
    return whole and len(np.unique(column.values)) == len(column.values)


def _some(names: Collection[str]) -> str:
    few = list(names)[:_SOME]
    return ", ".join(few) + (f" and {len(names) - len(few):,} more" if len(names) > len(few) else "")
