"""The open episode: which rounds were played, which rewards came. Private.

One number a round says all there is to know about its reward, at 4 bytes a round:

| code | meaning |
|---|---|
| NaN | awaited |
| a finite number | the reward |
| -inf | awaited, and not learned from whatever comes: invalid, user beyond the limit, forgotten |
| +inf | came, or cancelled, and not learned from |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.fit.known import EpisodePlan, Known
from fliphat.policies.engine.age import Ages
from fliphat.policies.engine.inputs import DIGEST_BYTES
from fliphat.policies.engine.lifecycle import Life, step
from fliphat.policies.engine.rows.base import RowStore
from fliphat.policies.types import EpisodeFacts

__all__ = ["AWAITED", "NOT_LEARNED", "NOT_LEARNED_CAME", "Episode", "Released"]

AWAITED = np.nan
NOT_LEARNED = -np.inf
NOT_LEARNED_CAME = np.inf


@dataclass(frozen=True)
class Released:
    """What an episode's rows were turned into, and how long the episode after it is."""

    facts: EpisodeFacts
    known: Known
    mark: str  # a random name, by which a witness tells this release from a copy's
    next_room: int
    totals: bytes | None = None  # secret: see `fliphat.fit.known.FitWithTotals`


class Episode:
    """Rounds `first_round` to ``first_round + length - 1``; the row of a round is fixed when it is played.

    The plan of its fit is fixed when it opens.
    """

    __slots__ = (
        "codes",
        "expired",
        "exploration",
        "filled",
        "first_round",
        "index",
        "largest",
        "length",
        "life",
        "notes",
        "owners",
        "plan",
        "rows",
        "spans",
    )

    def __init__(self, plan: EpisodePlan, first_round: int, dtype: str, exploration: float = 0.0) -> None:
        self.plan = plan
        self.index = plan.episode
        self.exploration = exploration  # the public share of rounds that play a uniform arm
        self.first_round = first_round
        self.length = plan.rows
        self.filled = 0
        self.life = Life()
        self.rows: RowStore | None = None
        self.codes: npt.NDArray[Any] = np.full(self.length, AWAITED, dtype)
        self.largest = float(np.finfo(dtype).max)
        # (first row, its id) of each run of consecutive ids: one, unless a store was opened again.
        self.spans: list[tuple[int, int]] = []
        # Digests of users one after the other, as far as rounds were played; None if they had none.
        self.owners: bytearray | None = None
        self.notes: list[tuple[int, float]] = []  # (row, when it was about to be played)
        self.expired = 0  # so many of the first rows were kept for as long as they may be, and are zeros

    @property
    def full(self) -> bool:
        """Whether every round has been played."""
        return self.filled == self.length

    def append(self, count: int, first_id: int, codes: Any, users: Sequence[bytes] | None = None) -> None:
        """Make `count` staged rounds count, with consecutive ids: only here does a round begin to exist.

        `codes` and `users` are written over whatever an interrupted call left. What counts is that `filled`
        changes; that the episode is full then is found out again by the turn.
        """
        at = self.filled
        if count == 1 and type(codes) is float:  # a slice takes four times as long as an element
            self.codes[at] = codes
        else:
            self.codes[at : at + count] = codes
        if users is not None:
            if self.owners is None:
                self.owners = bytearray(self.length * DIGEST_BYTES)
            self.owners[at * DIGEST_BYTES : (at + count) * DIGEST_BYTES] = b"".join(users)
        if not self.spans or first_id != self.id_of(at):
            self.spans.append((at, first_id))
        if self.rows is not None:
            self.rows.advance(at, count)
        self.filled = at + count
        if self.filled == self.length:
            self.life = step(self.life, "fill")

    def note(self, ages: Ages, now: float, offset: int = 0) -> None:
        """Note the time before the next round, if enough of it has passed since the last note.

        Rounds played before any time was noted, by a policy without such limits, are as old as the first.
        """
        if ages.notes(self.notes, now):
            self.notes.append((self.filled + offset if self.notes else 0, now))

    def id_of(self, row: int) -> int:
        """Return the id of a played round, or the one that would continue the last run."""
        first, identity = self.spans[-1]
        if row < first:
            first, identity = next(span for span in reversed(self.spans) if span[0] <= row)
        return identity + row - first

    def row_of(self, identity: int) -> int | None:
        """Return the row of an id, or None if it is not one of this episode's."""
        end = self.filled
        for first, first_id in reversed(self.spans):
            if 0 <= identity - first_id < end - first:
                return first + identity - first_id
            end = first
        return None

    def stored_reward(self, reward: float) -> float:
        """Return a finite reward as the code that stores it: beyond the stored type's range, its largest."""
        return min(max(reward, -self.largest), self.largest)

    def awaited(self) -> npt.NDArray[np.int64]:
        """Return the rows whose reward has not come."""
        codes = self.codes[: self.filled]
        return np.flatnonzero(np.isnan(codes) | (codes == NOT_LEARNED))

    def rows_of(self, user: bytes) -> npt.NDArray[np.int64]:
        """Return the rows of a user."""
        if self.owners is None:
            return np.zeros(0, np.int64)
        owners = np.frombuffer(self.owners, f"V{DIGEST_BYTES}", self.filled)
        return np.flatnonzero(owners == np.void(user))

    def forget(self, only: npt.NDArray[np.int64]) -> None:
        """Turn rows into zeros; rewards may still come and change nothing.

        Cut off anywhere, the episode is one that can go on.
        """
        codes = self.codes[: self.filled]
        came = np.isfinite(codes[only]) | (codes[only] == NOT_LEARNED_CAME)
        codes[only] = np.where(came, NOT_LEARNED_CAME, NOT_LEARNED)
        before = self.rows
        if before is None:
            return
        if len(only) < self.filled:
            before.empty(only)
            return
        self.rows = before.emptied(self.filled)
        if self.rows is not before:
            before.wipe()

    def cancel(self, row: int) -> None:
        """Turn one row into zeros, whose reward can't come any more."""
        self.codes[row] = NOT_LEARNED_CAME
        if self.rows is not None:
            self.rows.empty(np.array([row]))

    def rewards(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Return rewards and which of them count, for the fit."""
        present = np.isfinite(self.codes)
        return np.where(present, self.codes, 0.0).astype(np.float64), present
