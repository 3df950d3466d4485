"""What comes after a round was played: its reward, or that it is taken back, forgotten or too old."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.policies.engine import inputs
from fliphat.policies.engine.age import Ages
from fliphat.policies.engine.episode import NOT_LEARNED, NOT_LEARNED_CAME
from fliphat.policies.engine.identities import Identities
from fliphat.policies.engine.lifecycle import emptied, may
from fliphat.policies.types import Decision

__all__ = ["INCARNATION", "Rewards"]

#: Ids count rounds from 1; each reopening of a store starts a new range, so that a round lost with the
#: machine's power can't share its id with a later one.
INCARNATION = 2**40


class Rewards(Identities):
    """The part of an engine that changes rounds which were played."""

    ages: Ages
    late: int
    incarnation: int

    def settle(self, act: str) -> None:
        """Refuse to go on where that is not allowed; complete a turn that was cut off too late for an act."""
        raise NotImplementedError

    def require_alive(self) -> None:
        """Refuse to go on where memory is behind the disk, and in a copy that its witness refused."""
        raise NotImplementedError

    # Rewards

    def decided(self, key: Any, user: Any) -> int:
        """Return the id of the decision that was made under a key."""
        digests = self._user_digests("user", None if user is None else [user])
        found: Decision | None = self.keys.get(self._key_name(key, digests))
        if found is None:
            raise ValueError("key must be one that a round was played with, by the same user")
        return found.id

    def update(self, decision: Any, reward: Any) -> bool:
        """Record a reward; False if its episode's estimate has been claimed."""
        self.require_alive()
        identity = decision.id if type(decision) is Decision else inputs.identity(decision)
        number = inputs.checked_reward(reward, self.settings.loss)
        episode = self.episode
        row = episode.row_of(identity)
        if row is None or not may("reward", episode.life) or row < self._timed_out():
            self._check_late(identity, row)
            if self.store is not None:
                self.store.append_rewards(episode.first_round, (), (), 1)
            self.late += 1
            return False
        before = episode.codes[row]
        if before == before and before != NOT_LEARNED:
            raise ValueError("decision already has a reward, or was cancelled: a second one is refused")
        code = NOT_LEARNED_CAME if before == NOT_LEARNED else episode.stored_reward(number)
        if self.store is not None:
            self._disk_is_ahead = True
            self.store.append_rewards(episode.first_round, (row,), (code,))
        episode.codes[row] = code
        self._disk_is_ahead = False
        return True

    def update_batch(self, decisions: Any, given: Any) -> int:
        """Record the rewards that can be recorded, each whatever the others are; how many those were."""
        self.require_alive()
        ids = inputs.identities(decisions)
        numbers, usable = inputs.usable_rewards(given, len(ids), self.settings.loss)
        episode = self.episode
        at, timed_out = np.full(len(ids), -1, np.int64), self._timed_out()
        for i, identity in enumerate(ids):
            row = episode.row_of(identity)
            if row is None or not may("reward", episode.life) or row < timed_out:
                self._check_late(identity, row)
            else:
                at[i] = row
        late = int((at < 0).sum())
        # One person's reward, bad or given before, must not decide whether another's counts: each is taken or
        # left on its own, and only the first of several for one decision is taken.
        usable &= at >= 0
        before = episode.codes[at[usable]]
        usable[usable] = (before == NOT_LEARNED) | np.isnan(before)
        first = np.zeros(len(ids), bool)
        first[np.unique(np.where(usable, at, -1), return_index=True)[1]] = True
        usable &= first
        numbers, at = numbers[usable], at[usable]
        before = episode.codes[at]
        codes = np.where(
            before == NOT_LEARNED, NOT_LEARNED_CAME, np.clip(numbers, -episode.largest, episode.largest)
        ).astype(self.settings.dtype)
        if self.store is not None and (late or len(at)):
            self._disk_is_ahead = True
            self.store.append_rewards(episode.first_round, at, codes, late)
        episode.codes[at] = codes
        self.late += late
        self._disk_is_ahead = False
        return len(at)

    def _check_late(self, identity: int, row: int | None) -> None:
        """Refuse an id that no round of an earlier episode can have had."""
        incarnation, round_number = divmod(identity, INCARNATION)
        known = 1 <= round_number < self.episode.first_round and incarnation <= self.incarnation
        if row is None and not known:
            raise ValueError("decision must be one that this policy made, or its id")

    def pending(self) -> list[int]:
        """Return the ids of rounds whose reward may still come."""
        if not may("reward", self.episode.life):
            return []
        timed_out = self._timed_out()
        return [self.episode.id_of(int(row)) for row in self.episode.awaited() if row >= timed_out]

    def cancel(self, decision: Any) -> bool:
        """Make a round one without contents; False if its episode's estimate has been claimed."""
        self.require_alive()
        identity = inputs.identity(decision)
        episode = self.episode
        row = episode.row_of(identity)
        if row is None or not may("reward", episode.life):
            self._check_late(identity, row)
            return False
        if self.store is not None:
            self._disk_is_ahead = True
            self.store.empty(episode.index, episode.first_round, (row,), episode.expired, cancel=True)
        episode.cancel(row)
        self._disk_is_ahead = False
        return True

    # Ages

    def _timed_out(self) -> int:
        """Return how many of the open episode's first rows can't get a reward any more."""
        if self.ages.reward_timeout is None:
            return 0
        return self.ages.over_timeout(self.episode.filled, self.episode.notes)

    def _note_the_time(self) -> float | None:
        """Keep when rounds are played, as often as the limits of age need it; the time, if they need any."""
        now = self.ages.now()
        if now is not None:
            self.episode.note(self.ages, now)
        return now

    def expire(self) -> None:
        """Turn rows that were kept for as long as they may be into zeros."""
        self.require_alive()
        episode = self.episode
        if self.ages.retention is None or not episode.filled or not may("empty", episode.life):
            return
        if not episode.notes:
            self._note_the_time()
        over, going = self.ages.over_retention(episode.filled, episode.notes)
        if over > episode.expired:
            self._empty(np.arange(episode.expired, going), going)

    def forget(self, user: Any = None) -> int:
        """Turn the rows that were not fitted yet, or those of one user, into zeros; how many those are."""
        self.settle("empty")
        if user is None:
            return self._forget(None)
        if not self.with_users:
            raise ValueError("user must be left out: no round of this policy had a user id")
        digests = self._user_digests("user", [user])
        assert digests is not None
        return self._forget(digests[0])

    def _forget(self, user: bytes | None) -> int:
        episode = self.episode
        rows = np.arange(episode.filled) if user is None else episode.rows_of(user)
        self._empty(rows, episode.expired)
        return len(rows)

    def _empty(self, rows: npt.NDArray[np.int64], expired: int) -> None:
        """Drop the contents of rows; a claim is taken back: no fit that has read them is committed."""
        episode = self.episode
        if not len(rows):
            return
        life = emptied(episode.life)
        if self.store is not None:
            self._disk_is_ahead = True
            life = self.store.empty(episode.index, episode.first_round, rows, expired)
        episode.life = life
        episode.forget(rows)
        episode.expired = expired
        self._disk_is_ahead = False
