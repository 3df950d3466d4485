"""The policy's state and what each call does to it. One thread at a time: the caller holds the lock.

Order matters here. Whatever a call does is first made durable (if there is a store) and then made to count in
memory, so that what memory shows is never ahead of the disk. An estimate is fitted inside the call that opens
the next episode, after that call's own arguments have been checked, and never when a reward arrives.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native
from fliphat.fit.base import Fit, Known
from fliphat.kernels import _rows
from fliphat.policies import rewards
from fliphat.policies.base import Decision, Decisions
from fliphat.policies.contexts import Contexts, many_rounds, one_round
from fliphat.policies.episode import AWAITED, UNUSED, UNUSED_CAME, Episode, Successor
from fliphat.policies.facts import EpisodeFacts
from fliphat.policies.identity import SECRET_BYTES, digest, kind_of
from fliphat.policies.rows import DenseRows, RowStore, SparseRows, SpilledRows, make_rows
from fliphat.policies.store import Store

__all__ = ["INCARNATION", "Engine"]

#: Ids count rounds from 1; each reopening of a store starts a new range, so that a round lost with the
#: machine's power can't share its id with a later one.
INCARNATION = 2**40

_ONE_KEPT, _ONE_UNUSED = np.ones(1, np.uint8), np.zeros(1, np.uint8)


class Engine:
    """Everything a policy knows; see the module for the order in which it changes."""

    def __init__(
        self, fit: Fit[Any, Any], store: Store | None = None, *, memory_limit: int | None = None
    ) -> None:
        self.fit = fit
        self.memory_limit = memory_limit
        self.settings = fit.settings
        self.store = store
        self.secret = os.urandom(SECRET_BYTES)
        self.history: list[EpisodeFacts] = []
        self.users: dict[bytes, int] = {}
        self.keys: dict[bytes, Decision] = {}
        self.with_users: bool | None = None
        self.user_kind: str | None = None  # that of all user ids: 1 and "1" may be one person
        self.late = 0
        self.incarnation = 0
        self._unsure = False  # a step is on disk and not yet, or not wholly, in memory
        self.rng = np.random.default_rng(self.settings.seed)
        self.show(fit.begin())
        self.episode = self.new_episode(1)

    def show(self, known: Known) -> None:
        """Make what was released public: arms are chosen by its estimate."""
        self.known = known
        self.estimate = estimate = known.estimate
        self.native = _native.Estimate(estimate.indices, estimate.values, estimate.dim)

    def new_episode(self, first_round: int) -> Episode:
        """Return the episode that opens, empty, with what is known now."""
        plan = self.fit.plan(self.known.episodes, self.known)
        return Episode(plan, first_round, self.settings.dtype)

    @property
    def remaining(self) -> int:
        """Rounds until the next estimate; a full episode's successor is opened by the next call."""
        episode = self.episode
        return episode.length - episode.filled or self.fit.least_rows(episode.index + 1)

    # Rounds

    def select(self, contexts: Any, user: Any, key: Any) -> Decision:
        """Play one round."""
        self._require_sure()
        who = self._who(user)
        name = b""
        if key is not None:
            # A key is its user's own: another user's decision is another person's arm.
            name = digest("key", key, self.secret)
            name = name if who is None else digest("key", name + who, self.secret)
            known = self.keys.get(name)
            if known is not None:
                return known
        checked, arms = one_round(contexts, self.settings.dim)
        episode = self._ready()
        keep = who is None or self.users.get(who, 0) < self.settings.rounds_per_user
        rows, at, word = self._rows(checked), episode.filled, self.rng.bit_generator.random_raw()
        if type(rows) is DenseRows and type(checked) is np.ndarray:
            arm = self.native.choose_one(checked, word, keep, rows.array, at)
        else:
            flags = _ONE_KEPT if keep else _ONE_UNUSED
            words = np.array([word], np.uint64)
            arm = int(self._take(rows, checked, arms, words, flags, at)[0])
        valid = arm >= 0
        identity = self.incarnation * INCARNATION + episode.first_round + at
        decision = Decision(identity, arm if valid else -1 - arm, valid, episode.index)
        if self.store is not None:
            self._unsure = True
            self.store.log_round(decision, keep, who or b"", None if who is None else kind_of(user), name)
        # An interrupt may fall between any two lines. Until `append` the round did not happen, except that
        # its user has one fewer to come; after it, all that can be lost is the key.
        if who is not None:
            self.users[who] = self.users.get(who, 0) + 1
            self.user_kind = kind_of(user)
        self.with_users = who is not None
        rows.advance(at, 1)
        episode.append(1, identity, AWAITED if valid and keep else UNUSED)
        if key is not None:
            self.keys[name] = decision
        self._unsure = False
        return decision

    def select_batch(self, contexts: Any, users: Sequence[Any] | None, arms: int | None) -> Decisions:
        """Play several rounds of one episode."""
        self._require_sure()
        checked, count, arms = many_rounds(contexts, self.settings.dim, arms)
        if count > self.remaining:
            raise ValueError(
                f"contexts must have at most policy.remaining = {self.remaining} rounds, got {count}: "
                f"the estimate changes after that"
            )
        who, keep, counts = self._who_batch(users, count)
        episode = self._ready()
        rows, at = self._rows(checked), episode.filled
        words = self.rng.bit_generator.random_raw(count)
        chosen = self._take(rows, checked, arms, words, keep, at)
        valid = chosen >= 0
        played = np.where(valid, chosen, -1 - chosen)
        first = self.incarnation * INCARNATION + episode.first_round + at
        ids = np.arange(first, first + count, dtype=np.int64)
        if self.store is not None:
            self._unsure = True
            self.store.log_rounds(ids, chosen, keep, who, kind_of(users[0]) if users else None)
        unused = ~valid if keep is None else ~valid | (keep == 0)
        self.users.update(counts)
        if users:
            self.user_kind = kind_of(users[0])
        self.with_users = users is not None
        rows.advance(at, count)
        episode.append(count, first, np.where(unused, UNUSED, AWAITED))
        self._unsure = False
        return Decisions(ids, played, valid, episode.index)

    def _rows(self, contexts: Contexts) -> RowStore:
        """Return where rows go; the episode's first contexts decide the layout."""
        episode = self.episode
        if episode.rows is None:
            layout = "csr" if isinstance(contexts, _rows.Sparse) else "dense"
            if self.store is not None:
                episode.rows = self.store.rows(layout)
            else:
                episode.rows = self.new_rows(layout)
        return episode.rows

    def new_rows(self, layout: str) -> DenseRows | SpilledRows | SparseRows:
        """Return an empty place for the open episode's rows, outside any store."""
        settings = self.settings
        return make_rows(layout, self.episode.length, settings.dim, settings.dtype, self.memory_limit)

    def _take(
        self,
        rows: RowStore,
        contexts: Contexts,
        arms: int,
        words: npt.NDArray[np.uint64],
        keep: npt.NDArray[np.uint8] | None,
        at: int,
    ) -> npt.NDArray[np.int64]:
        """Play rounds and stage their rows; if there is no room for them, not even the dice have moved."""
        try:
            return rows.take(self.native, contexts, arms, words, keep, at)
        except OSError:
            self.rng.bit_generator.advance(-len(words))  # type: ignore[attr-defined]
            raise

    def _who(self, user: Any) -> bytes | None:
        self._same_use_of_users(user is not None, "user")
        if user is None:
            return None
        name = digest("user", user, self.secret)
        self._same_kind("user", (user,))
        return name

    def _who_batch(
        self, users: Sequence[Any] | None, count: int
    ) -> tuple[list[bytes] | None, npt.NDArray[np.uint8] | None, dict[bytes, int]]:
        self._same_use_of_users(users is not None, "users")
        if users is None:
            return None, None, {}
        if isinstance(users, (str, bytes)) or len(users) != count:
            raise ValueError(f"users must have one id for each of the {count} rounds")
        who = [digest("user", user, self.secret) for user in users]
        self._same_kind("users", users)
        keep = np.zeros(count, np.uint8)
        counts: dict[bytes, int] = {}
        for i, one in enumerate(who):
            before = counts.get(one)
            if before is None:
                before = self.users.get(one, 0)
            keep[i] = before < self.settings.rounds_per_user
            counts[one] = before + 1
        return who, keep, counts

    def _same_use_of_users(self, given: bool, name: str) -> None:
        if self.with_users not in (None, given):
            rule = "must be given in every round" if self.with_users else "must be left out in every round"
            raise ValueError(
                f"{name} {rule}, as in the first: the guarantee says whether user ids are checked"
            )

    def _same_kind(self, name: str, users: Sequence[Any]) -> None:
        kinds = {kind_of(user) for user in users} | {self.user_kind or kind_of(users[0])}
        if len(kinds) > 1:
            raise ValueError(
                f"{name} must all be of one kind, str, int or bytes, as in the first round, got "
                f"{sorted(kinds)}: 1 and '1' would be counted as two users"
            )

    # Rewards

    def update(self, decision: Any, reward: Any) -> bool:
        """Record a reward; False if its episode's estimate has been claimed."""
        self._require_sure()
        identity = decision.id if type(decision) is Decision else rewards.identity(decision)
        number = rewards.checked_reward(reward, self.settings.loss)
        episode = self.episode
        row = episode.row_of(identity)
        if row is None or episode.claimed:
            self._check_late(identity, row)
            if self.store is not None:
                self.store.log_late(1)
            self.late += 1
            return False
        before = episode.codes[row]
        if before == before and before != UNUSED:
            raise ValueError("decision already has a reward: a second one is refused")
        code = UNUSED_CAME if before == UNUSED else episode.stored_reward(number)
        if self.store is not None:
            self._unsure = True
            self.store.log_rewards((row,), (code,))
        episode.codes[row] = code
        self._unsure = False
        return True

    def update_batch(self, decisions: Any, given: Any) -> int:
        """Record the rewards that can be recorded, each whatever the others are; how many those were."""
        self._require_sure()
        ids = rewards.identities(decisions)
        numbers, usable = rewards.usable_rewards(given, len(ids), self.settings.loss)
        episode = self.episode
        at = np.full(len(ids), -1, np.int64)
        for i, identity in enumerate(ids):
            row = episode.row_of(identity)
            if row is None or episode.claimed:
                self._check_late(identity, row)
            else:
                at[i] = row
        late = int((at < 0).sum())
        # One person's reward, bad or given before, must not decide whether another's counts: each is taken or
        # left on its own, and only the first of several for one decision is taken.
        usable &= at >= 0
        usable[usable] = np.isin(episode.codes[at[usable]], (UNUSED,)) | np.isnan(episode.codes[at[usable]])
        first = np.zeros(len(ids), bool)
        first[np.unique(np.where(usable, at, -1), return_index=True)[1]] = True
        usable &= first
        numbers, at = numbers[usable], at[usable]
        before = episode.codes[at]
        codes = np.where(
            before == UNUSED, UNUSED_CAME, np.clip(numbers, -episode.largest, episode.largest)
        ).astype(self.settings.dtype)
        if self.store is not None and (late or len(at)):
            self._unsure = True
            self.store.log_rewards(at, codes, late)
        episode.codes[at] = codes
        self.late += late
        self._unsure = False
        return len(at)

    def _check_late(self, identity: int, row: int | None) -> None:
        """Refuse an id that no round of an earlier episode can have had."""
        incarnation, round_number = divmod(identity, INCARNATION)
        known = 1 <= round_number < self.episode.first_round and incarnation <= self.incarnation
        if row is None and not known:
            raise ValueError("decision must be one that this policy made, or its id")

    def pending(self) -> list[int]:
        """Return the ids of rounds whose reward may still come."""
        if self.episode.claimed:
            return []
        return [self.episode.id_of(int(row)) for row in self.episode.awaited()]

    # Releases

    def _ready(self) -> Episode:
        """Return an episode with room, releasing the full one's estimate first."""
        if self.episode.filled == self.episode.length:
            if self.episode.successor is None:
                self._release()
            self._turn()
        return self.episode

    def _require_sure(self) -> None:
        """Refuse to go on after an interrupt between the disk and memory: the disk knows, memory does not."""
        if self._unsure and self.store is not None:
            self.store.failed = True
            with self.store:
                pass

    def _release(self) -> None:
        episode = self.episode
        assert episode.rows is not None
        rows = episode.rows.matrix()  # before the claim: rows that can't be read leave the episode open
        if self.store is not None:
            self.store.claim(episode)
        episode.claimed = True
        numbers, present = episode.rewards()
        # If anything fails from here on, nothing has been seen, and the next call fits again.
        known = self.fit.run(episode.plan, rows, numbers, present, self.known)
        facts = EpisodeFacts(
            **self.fit.facts(episode.plan, known), first_round=episode.first_round, estimate=known.estimate
        )
        plan = self.fit.plan(known.episodes, known)
        following = Episode(plan, episode.first_round + episode.length, self.settings.dtype)
        if self.store is not None:
            self._unsure = True
            self.store.commit(facts, self)
        # One assignment, which an interrupt can't cut in two: from here on these rows are never fitted
        # again, and before it nothing of the estimate can be seen.
        episode.successor = Successor(facts, known, following)
        self._unsure = False

    def _turn(self) -> None:
        """Show what the full episode released and open the next; cut off anywhere, it can be done again."""
        index, successor = self.episode.index, self.episode.successor
        assert successor is not None
        if len(self.history) == index:
            self.history.append(successor.facts)
        self.show(successor.known)
        if self.store is not None:
            self.store.finish(index, successor.following.length)
        # Last: a round of the next episode must not meet the files of this one.
        self.episode = successor.following

    def forget(self) -> None:
        """Turn the open episode's rows into zeros."""
        self._require_sure()
        fresh = None
        if self.store is not None:
            self._unsure = True
            fresh = self.store.forget(self.episode)
        self.episode.forget(fresh)
        self._unsure = False
