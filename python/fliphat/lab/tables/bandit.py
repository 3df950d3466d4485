"""A table as a bandit: rows are people, and a reward is known for the right class or for the logged arm."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.lab.tables.columns import MISSING, Features, Missing, Range, encode
from fliphat.lab.tables.read import Dates, Numbers, Table

__all__ = ["Logged", "TableBandit", "make_bandit"]

#: A label with more classes is refused unless asked for: most are ids or measurements.
MOST_ARMS = 50


@dataclass(frozen=True, eq=False)
class Logged:
    """What happened in a logged round: the arm that was shown, with which chance, and the reward."""

    arms: npt.NDArray[np.int64]
    rewards: npt.NDArray[np.float64]
    propensities: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TableBandit:
    """A table ready to be played.

    Attributes
    ----------
    features : Features
    arms : tuple of str
        What they are called in the table.
    outcomes : ndarray of int64 or Logged
        The right arm of each row, whose reward is 1 and any other's 0; or what was logged.
    reward_range : (low, high)
    warnings : tuple of str
        What was read off the table, and must not be read off people who are to be protected.
    """

    features: Features
    arms: tuple[str, ...]
    outcomes: npt.NDArray[np.int64] | Logged
    reward_range: Range
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.features.matrix)


def make_bandit(
    table: Table,
    *,
    label: str | None,
    arm: str | None,
    reward: str | None,
    propensity: str | float | None,
    ranges: Mapping[str, Range],
    reward_range: Range | None,
    categorical: Collection[str],
    drop: Collection[str],
    missing: Missing,
    most_arms: int = MOST_ARMS,
) -> TableBandit:
    """Check a table and turn it into a bandit; see :func:`fliphat.simulate` for the arguments."""
    arguments.choice("missing", missing, MISSING)
    roles = _roles(label, arm, reward, propensity)
    for name in (*roles, *ranges, *categorical, *drop):
        table[name]  # names the column if there is none
    for name, (low, high) in [*ranges.items(), *([("reward", reward_range)] if reward_range else [])]:
        if not (np.isfinite([low, high]).all() and low < high):
            raise ValueError(
                f"the range of {name!r} must be two finite numbers, low < high, got {low}, {high}"
            )
    seen = [name for name in table.columns if name not in {*roles, *drop}]
    for name in ranges:
        if name not in seen or not isinstance(table[name], Numbers):
            raise ValueError(f"a range is given for {name!r}, which is not a numeric column that is used")
    table = _without_missing(table, roles, seen, missing)
    warnings = [
        "The table itself is not protected by this: everything shown here was computed from its rows without "
        "privacy. Use public data, or a pilot's whose people agreed to it."
    ]
    if label is not None:
        arms, outcomes = _classes(table, label, most_arms)
        known: npt.NDArray[np.int64] | Logged = outcomes
        bounds = (0.0, 1.0)
    else:
        assert arm is not None
        assert reward is not None
        assert propensity is not None
        arms, shown = _classes(table, arm, most_arms)
        earned = _numbers(table, reward)
        known = Logged(shown, earned, _propensities(table, propensity, len(arms)))
        if reward_range is None:
            bounds = (float(earned.min()), float(earned.max()))
            warnings.append(
                f"The range of rewards, {bounds[0]:g} to {bounds[1]:g}, was read off column {reward!r}: give "
                f"a public one (--reward-range)."
            )
            if bounds[0] == bounds[1]:
                raise ValueError(
                    f"column {reward!r} has the same reward in every row: nothing can be learned"
                )
        else:
            bounds = reward_range
            outside = int(((earned < bounds[0]) | (earned > bounds[1])).sum())
            if outside:
                raise ValueError(
                    f"column {reward!r} must be within the reward range {bounds[0]:g} to {bounds[1]:g}; "
                    f"{outside:,} of {len(earned):,} rows are not: widen it"
                )
    features = encode(table, seen, ranges, categorical)
    if features.filled == 0:
        raise ValueError(f"{table.source} has no column to tell people apart by, besides {', '.join(roles)}")
    return TableBandit(features, arms, known, bounds, (*warnings, *_own(features)))


def _roles(
    label: str | None, arm: str | None, reward: str | None, propensity: str | float | None
) -> tuple[str, ...]:
    logged = {"arm": arm, "reward": reward, "propensity": propensity}
    if label is not None and any(value is not None for value in logged.values()):
        raise ValueError("give a label, or arm, reward and propensity of a log, not both")
    if label is not None:
        return (label,)
    absent = [name for name, value in logged.items() if value is None]
    if absent:
        hint = ", for uniformly shown arms the number 1/K" if absent == ["propensity"] else ""
        raise ValueError(
            f"a table needs a label, or arm, reward and propensity of a log; {absent[0]} is not given{hint}"
        )
    return tuple(value for value in logged.values() if isinstance(value, str))


def _without_missing(table: Table, roles: Collection[str], seen: Collection[str], missing: Missing) -> Table:
    absent = {name: table[name].missing() for name in (*roles, *seen) if not isinstance(table[name], Dates)}
    counts = {name: int(rows.sum()) for name, rows in absent.items() if rows.any()}
    if not counts:
        return table
    if missing == "drop":
        kept = ~np.logical_or.reduce(list(absent.values()))
        if not kept.any():
            worst = max(counts, key=lambda name: counts[name])
            raise ValueError(
                f"every row misses a value, most often in column {worst!r} ({counts[worst]:,} of "
                f"{len(table):,}): leave that column out (--drop), or missing='indicate' (--missing indicate)"
            )
        return table.take(kept)
    for name, count in counts.items():
        if name in roles or missing == "refuse":
            also = "" if name in roles else " or 'indicate' (--missing drop, --missing indicate)"
            raise ValueError(
                f"column {name!r} misses {count:,} of {len(table):,} values: fill them in, or use "
                f"missing='drop'{also or ' (--missing drop)'}"
            )
    return table


def _classes(table: Table, name: str, most: int) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    column = table[name]
    if isinstance(column, Dates):
        raise ValueError(f"column {name!r} holds dates: arms must be classes")
    if isinstance(column, Numbers):
        values, codes = np.unique(column.values, return_inverse=True)
        levels = tuple(f"{value:g}" for value in values)
    else:
        found, codes = np.unique(column.codes, return_inverse=True)
        levels = tuple(column.levels[at] for at in found)
    if len(levels) < 2:
        raise ValueError(f"column {name!r} has one class: there must be at least two arms to choose from")
    most = min(most, len(codes) // 2)
    if len(levels) > most:
        raise ValueError(
            f"column {name!r} has {len(levels):,} classes, each of which would be an arm, and at most {most} "
            f"are taken: group rare ones, cut a measurement into classes, or raise most_arms (--most-arms)"
        )
    return levels, codes.reshape(-1).astype(np.int64)


def _numbers(table: Table, name: str) -> npt.NDArray[np.float64]:
    column = table[name]
    if not isinstance(column, Numbers):
        raise ValueError(f"column {name!r} must hold numbers")
    infinite = int((~np.isfinite(column.values)).sum())
    if infinite:
        raise ValueError(f"column {name!r} must be finite; {infinite:,} of {len(table):,} rows are not")
    return column.values


def _propensities(table: Table, propensity: str | float, arms: int) -> npt.NDArray[np.float64]:
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


def _own(features: Features) -> list[str]:
    told = []
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


def _some(names: Collection[str]) -> str:
    few = list(names)[:5]
    return ", ".join(few) + (f" and {len(names) - len(few)} more" if len(names) > len(few) else "")
