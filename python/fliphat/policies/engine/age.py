"""How old the open episode's rounds are: counted in rounds, or by the clock.

Both `retention` and `reward_timeout` are public limits on the age of a round. Rounds are played in order, so
that those older than a limit are always the first ones of an episode: an age is answered by a number of rows.
Ages follow from when rounds were played, which is public, and never from what they hold.

By the clock, the time is noted with a round only if the last note is older than a share of the limit. A round
counts as old as the note before it: at most that share older than it is.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final, TypeAlias

from fliphat import arguments

__all__ = ["AgeLimit", "Ages", "checked_age"]

#: Rounds, or a time.
AgeLimit: TypeAlias = int | timedelta

_MOST_ROUNDS: Final = 2**62
_NOTES: Final = 64
#: Rows older than this share of their retention go together with those that are over it, so that files are
#: written again a few times in each retention and not with every round.
_EARLY: Final = 7 / 8


def checked_age(name: str, value: object) -> AgeLimit | None:
    """Return a limit: at least one round, or a time above 0.

    Examples
    --------
    >>> checked_age("retention", 500), checked_age("retention", None)
    (500, None)
    """
    if isinstance(value, timedelta):
        if value <= timedelta(0):
            raise ValueError(f"{name} must be a time above 0, got {value!r}")
        return value
    if value is None:
        return None
    return arguments.integer(name, value, 1, _MOST_ROUNDS)


def _record(limit: AgeLimit | None) -> dict[str, float] | None:
    if isinstance(limit, timedelta):
        return {"seconds": limit.total_seconds()}
    return None if limit is None else {"rounds": limit}


def _limit(record: dict[str, float] | None) -> AgeLimit | None:
    if record is None:
        return None
    return timedelta(seconds=record["seconds"]) if "seconds" in record else int(record["rounds"])


class Ages:
    """The two limits of a policy, and the clock they are measured by."""

    def __init__(self, retention: AgeLimit | None = None, reward_timeout: AgeLimit | None = None) -> None:
        self.retention = checked_age("retention", retention)
        self.reward_timeout = checked_age("reward_timeout", reward_timeout)
        self.clock: Callable[[], float] = time.time
        times = [limit for limit in (self.retention, self.reward_timeout) if isinstance(limit, timedelta)]
        self._grain = min(times).total_seconds() / _NOTES if times else None

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Ages:
        """Return what `to_record` wrote."""
        return cls(*(_limit(record.get(name)) for name in ("retention", "reward_timeout")))

    def to_record(self) -> dict[str, Any]:
        """Return both limits for JSON."""
        return {"retention": _record(self.retention), "reward_timeout": _record(self.reward_timeout)}

    def now(self) -> float | None:
        """Return the time, None if no limit depends on it."""
        return None if self._grain is None else self.clock()

    def notes(self, before: Sequence[tuple[int, float]], now: float) -> bool:
        """Whether a time is to be noted with the next round."""
        assert self._grain is not None
        return not before or now - before[-1][1] >= self._grain

    def over_retention(self, filled: int, notes: Sequence[tuple[int, float]]) -> tuple[int, int]:
        """Return how many of the first rows may not be kept, and how many are to go if there is one."""
        if self.retention is None:
            return 0, 0
        return self._older(self.retention, filled, notes), self._older(self.early(), filled, notes)

    def early(self) -> AgeLimit:
        """Return the age from which rows go once one is over its retention."""
        limit = self.retention
        assert limit is not None
        return limit * _EARLY if isinstance(limit, timedelta) else max(1, int(limit * _EARLY))

    def over_timeout(self, filled: int, notes: Sequence[tuple[int, float]]) -> int:
        """Return how many of the first rows can't get a reward any more."""
        return 0 if self.reward_timeout is None else self._older(self.reward_timeout, filled, notes)

    def _older(self, limit: AgeLimit, filled: int, notes: Sequence[tuple[int, float]]) -> int:
        if not isinstance(limit, timedelta):
            return max(0, filled - limit)
        oldest = self.clock() - limit.total_seconds()
        # Times never decrease here, whatever the clock does: a note is made only when it is later.
        recent = bisect_right(notes, oldest, key=lambda note: note[1])
        return notes[recent][0] if recent < len(notes) else filled if notes else 0
