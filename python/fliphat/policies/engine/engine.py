"""The policy's state and what each call does to it. One thread at a time: the caller holds the lock.

Order matters here. Whatever a call does is first made durable (if there is a store) and then made to count in
memory, so that what memory shows is never ahead of the disk. An estimate is fitted inside the call that opens
the next episode, after that call's own arguments have been checked, and never when a reward arrives.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fliphat.contexts import Crossed
from fliphat.fit.base import Fit, FitWithTotals, Known
from fliphat.kernels import _rows
from fliphat.policies.engine import inputs
from fliphat.policies.engine.age import Ages
from fliphat.policies.engine.composed import CrossedByEstimate, Ragged
from fliphat.policies.engine.each import Single, select_each
from fliphat.policies.engine.episode import (
    AWAITED,
    NOT_LEARNED,
    NOT_LEARNED_CAME,
    Episode,
    Released,
)
from fliphat.policies.engine.exploring import explores, probabilities, probability
from fliphat.policies.engine.rows import Rounds, RowStore, make_rows
from fliphat.policies.engine.rule import ArmRule, RowForEachArm
from fliphat.policies.engine.state import scalars
from fliphat.policies.store.base import PlayedRounds, Store
from fliphat.policies.store.witness import Record, Witness, checked_at_opening, name_of, tell
from fliphat.policies.types import Decision, Decisions, EpisodeFacts, StoreError

__all__ = ["INCARNATION", "Engine", "Standing"]

#: Ids count rounds from 1; each reopening of a store starts a new range, so that a round lost with the
#: machine's power can't share its id with a later one.
INCARNATION = 2**40


class Standing(NamedTuple):
    """Where a policy is: the open episode, rounds until its estimate changes, rounds played."""

    episode: int
    remaining: int
    rounds: int


class Engine:
    """Everything a policy knows; see the module for the order in which it changes."""

    #: Whether several threads may be in the middle of a call at once.
    concurrent: ClassVar[bool] = False

    def __init__(
        self,
        fit: Fit[Any, Any],
        *,
        rule: ArmRule | None = None,
        memory_limit: int | None = None,
        ages: Ages | None = None,
    ) -> None:
        self.fit = fit
        self.memory_limit = memory_limit
        self.ages = Ages() if ages is None else ages
        self.settings = fit.settings
        self.rule: ArmRule = RowForEachArm(fit.settings.dim) if rule is None else rule
        self.store: Store | None = None
        self.after_release: Callable[[], None] | None = None
        self.secret = os.urandom(inputs.SECRET_BYTES)
        self.totals: bytes | None = None  # of a fit that keeps secret ones, after the last release
        self.history: list[EpisodeFacts] = []
        self.users: dict[bytes, int] = {}
        self.keys: dict[bytes, Decision] = {}
        self.with_users: bool | None = None
        self.user_kind: str | None = None  # that of all user ids: 1 and "1" may be one person
        self.late = 0
        self.arm_ids = None
        self.column_names: list[str] | None = None
        self.incarnation = 0
        # Random names of the last two releases, by which a witness outside tells this store from its copies.
        self.fences = ["", ""]
        self.witnessed = False
        self.witness: Witness | None = None
        self._disk_is_ahead = False  # a step is on disk and not yet, or not wholly, in memory
        self.rng = np.random.default_rng(self.settings.seed)
        self.show(fit.begin())
        self.episode = self.new_episode(1)

    def show(self, known: Known) -> None:
        """Make what was released public: arms are chosen by its estimate."""
        self.known = known
        self.estimate = known.estimate
        self.chooser = self.rule.chooser(known)

    def new_episode(self, first_round: int) -> Episode:
        """Return the episode that opens, empty, with what is known now."""
        plan = self.fit.plan(self.known.episodes, self.known)
        share = self.settings.exploration_in(plan.episode)
        return Episode(plan, first_round, self.settings.dtype, share)

    def refresh(self) -> None:
        """Learn what other workers did; nobody else plays what is in this process or its directory."""

    def flush(self) -> None:
        """Return when every call so far is durable."""
        if self.store is not None:
            self.store.flush()

    def close(self) -> None:
        """Let go of the store."""
        if self.witness is not None:
            self.witness.close()
        if self.store is not None:
            self.store.close()

    def standing(self) -> Standing:
        """Return where the policy is."""
        episode = self.episode
        return Standing(episode.index, self.remaining, episode.first_round - 1 + episode.filled)

    @property
    def arms(self) -> Any:
        """The rule's own public record, for JSON: its table of arms, None where rounds bring their arms."""
        return self.rule.record()

    @arms.setter
    def arms(self, record: Any) -> None:
        self.rule.recall(record)
        self.show(self.known)  # with nothing released yet, too: an arm that was removed is not played

    def change_arms(self, change: Callable[[], Any]) -> None:
        """Go on with another table of arms, from the next round on. Public, as is the moment it happens.

        `change` returns the new table, made of the rule's own.
        """
        self._require_memory_up_to_date()
        table = change()
        if self.store is not None:
            record = table.to_record()
            self._disk_is_ahead = True
            self.store.keep("arms", record)
        self.rule.use(table)
        self.show(self.known)
        self._disk_is_ahead = False

    @property
    def remaining(self) -> int:
        """Rounds until the next estimate; a full episode's successor is opened by the next call."""
        episode = self.episode
        return episode.length - episode.filled or self.fit.least_rows(episode.index + 1)

    # Rounds

    def select(self, contexts: Any, user: Any, key: Any, ids: Sequence[Any] | None = None) -> Decision:
        """Play one round."""
        self._require_memory_up_to_date()
        # Without a user, key or ids, the common case, nothing is asked about them: a round is microseconds.
        users = None if user is None else [user]
        digests = None if users is None and not self.with_users else self._user_digests("user", users)
        name = b"" if key is None else self._key_name(key, digests)
        if name:
            known = self.keys.get(name)
            if known is not None:
                return self._named(known)
        if type(contexts) is not np.ndarray:  # the common case, without another look
            self._check_columns(contexts)
        checked, arms = self.rule.one_round(contexts)
        offered = None if ids is None and self._arm_ids is None else self._offered(ids, arms)
        episode = self._ready()
        learned = digests is None or self.users.get(digests[0], 0) < self.settings.rounds_per_user
        if isinstance(checked, Crossed):  # not before: the estimate that scores them is public only now
            checked = CrossedByEstimate(checked, self.estimate)
        rows, at, share = episode.rows or self.rows_for(checked), episode.filled, episode.exploration
        draw = self.rng.bit_generator.random_raw
        word = draw()
        explored = share > 0 and explores(draw(), share)
        try:
            arm, tied = rows.play_one(self.chooser, checked, arms, word, learned, explored, at)
        except OSError:
            self._draw_again(1)
            raise
        if offered is not None:
            arm = self._code(offered[arm]) if arm >= 0 else -1 - self._code(offered[-1 - arm])
        identity, valid = self._next_id(), arm >= 0
        chance = 1.0 if tied == 1 and share == 0 else probability(tied, arms, share)
        decision = Decision(identity, arm if valid else -1 - arm, valid, episode.index, chance)
        code = AWAITED if valid and learned else NOT_LEARNED
        if self.store is None and digests is None:
            self._append_in_memory(1, identity, code)
        else:
            kind = self._kind(users)
            played = PlayedRounds(identity, (arm,), (learned,), digests, kind, arms, (tied,), name)
            self._append(played, code)
        if name:
            self.keys[name] = decision
        return decision if offered is None else self._named(decision)

    def select_each(self, asked: Sequence[Single], results: list[Any]) -> None:
        """Play single rounds of several callers, as if each were a call of its own."""
        self._require_memory_up_to_date()
        select_each(self, asked, results)

    def select_batch(
        self, contexts: Any, users: Sequence[Any] | None, given: int | Sequence[Any] | None
    ) -> Decisions:
        """Play several rounds of one episode; `given` are arms a round, or their ids."""
        self._require_memory_up_to_date()
        self._check_columns(contexts)
        size, names = inputs.arms_of_batch(given, contexts)
        checked, count, arms = self.rule.many_rounds(contexts, size)
        offered = self._offered_in_batch(names, count, arms)
        if count > self.remaining:
            raise ValueError(
                f"contexts must have at most policy.remaining = {self.remaining} rounds, got {count}: "
                f"the estimate changes after that"
            )
        if users is not None and (isinstance(users, (str, bytes)) or len(users) != count):
            raise ValueError(f"users must have one id for each of the {count} rounds")
        digests = self._user_digests("users", users)
        learned = self._within_limit(digests)
        episode = self._ready()
        share = episode.exploration
        words, explored = self._words(count)
        if isinstance(checked, Crossed):
            checked = CrossedByEstimate(checked, self.estimate)
        try:
            chosen, tied = self.rows_for(checked).play(
                Rounds(self.chooser, checked, arms, words, learned, explored), episode.filled
            )
        except OSError:
            self._draw_again(count)
            raise
        first, valid = self._next_id(), chosen >= 0
        all_valid = bool(valid.all())
        shown: npt.NDArray[Any] = chosen if all_valid else np.where(valid, chosen, -1 - chosen)
        if offered is not None:
            shown = self._names_of(shown, offered)
            codes = np.array([self._code(one) for one in shown.tolist()], np.int64)
            chosen = np.where(valid, codes, -1 - codes)
        used = valid if learned is None else valid & (learned != 0)
        awaited = AWAITED if all_valid and learned is None else np.where(used, AWAITED, NOT_LEARNED)
        played = PlayedRounds(first, chosen, learned, digests, self._kind(users), arms, tied)
        self._append(played, awaited)
        ids = np.arange(first, first + count, dtype=np.int64)
        chances = probabilities(tied, arms, share)
        return Decisions(ids, shown, valid, episode.index, chances)

    # Ids of arms

    def _offered(self, ids: Sequence[Any] | None, arms: int) -> list[Any] | None:
        """Return the ids of a round's arms, which are given always or never."""
        if ids is None and self.arm_ids is None:
            return None
        if ids is None or (self.arm_ids is None and self._next_round() > 1):
            rule = "given in every round" if ids is None else "left out in every round"
            raise ValueError(f"arms must be {rule}, as in the first: decisions hold ids or positions")
        return inputs.arm_ids(ids, arms)

    def _offered_in_batch(self, names: Any, count: int, arms: Any) -> list[list[Any]] | None:
        """Return the ids of the arms of each round, or of all rounds, if there are any."""
        if names is None or not inputs.is_nested(names):
            every = self._offered(names, arms)
            return None if every is None else [every]
        if len(names) != count:
            raise ValueError(f"arms must have one list of ids for each of the {count} rounds")
        of_each = np.broadcast_to(arms, count).tolist()
        found = [self._offered(one, number) for one, number in zip(names, of_each, strict=True)]
        return [one for one in found if one is not None]

    @staticmethod
    def _names_of(arms: npt.NDArray[np.int64], offered: list[list[Any]]) -> npt.NDArray[Any]:
        """Return the ids of chosen arms, as integers if all are."""
        rounds = offered if len(offered) == len(arms) else offered * len(arms)
        found = [one[arm] for one, arm in zip(rounds, arms.tolist(), strict=True)]
        if all(isinstance(one, int) for one in found):
            return np.array(found, np.int64)
        names = np.empty(len(found), object)
        names[:] = found
        return names

    def _code(self, name: Any) -> int:
        """Return the number that stands for the id of an arm in decisions that are kept, for ever."""
        found = self._arm_codes.get(name)
        if found is None:
            # Known before a round uses it: cut off in between, it is a name that nothing has.
            names = [*(self.arm_ids or ()), name]
            if self.store is not None:
                self._disk_is_ahead = True
                self.store.keep("arm_ids", names)
            self.arm_ids = names
            self._disk_is_ahead = False
            found = len(names) - 1
        return found

    @property
    def arm_ids(self) -> list[Any] | None:
        """Ids of arms that were played, by the numbers that stand for them; None if arms have no ids."""
        return self._arm_ids

    @arm_ids.setter
    def arm_ids(self, names: list[Any] | None) -> None:
        self._arm_ids = names
        self._arm_codes = {name: code for code, name in enumerate(names or ())}

    def _named(self, decision: Decision) -> Decision:
        """Return a decision with its arm's id in place of the number that stands for it."""
        return decision if self.arm_ids is None else decision._replace(arm=self.arm_ids[decision.arm])

    def _check_columns(self, contexts: Any) -> None:
        """Refuse a DataFrame whose columns are others, or in another order, than in the first one."""
        if isinstance(contexts, (list, tuple)):
            for one in contexts:
                self._check_columns(one)
        if not inputs.is_frame(contexts):
            return
        names = [str(name) for name in contexts.columns]
        if self.column_names is None:
            self.column_names = names
        elif names != self.column_names:
            raise ValueError("contexts must have the columns of the first DataFrame, in the same order")

    def _next_round(self) -> int:
        return self.episode.first_round + self.episode.filled

    def _append(self, played: PlayedRounds, codes: Any) -> None:
        """Make staged rounds durable, and then make them count.

        An interrupt may fall between any two lines. Without a store the rounds did not happen until
        `Episode.append`, except that their users have fewer to come; after it, all that can be lost is a
        key. With one, the next call finds the disk ahead of memory.
        """
        self._note_the_time()
        if self.store is not None:
            self._disk_is_ahead = True
            self.store.append_rounds(played)
        for digest in played.users or ():
            self.users[digest] = self.users.get(digest, 0) + 1
        self.with_users, self.user_kind = played.users is not None, played.user_kind
        self.episode.append(len(played.arms), played.first_id, codes, played.users)
        self._disk_is_ahead = False

    def _append_in_memory(self, count: int, first_id: int, codes: Any) -> None:
        """Do what `_append` does where there is neither a store nor a user: most single rounds."""
        self._note_the_time()
        self.with_users, self.user_kind = False, None
        self.episode.append(count, first_id, codes)

    def _next_id(self) -> int:
        return self.incarnation * INCARNATION + self.episode.first_round + self.episode.filled

    def rows_for(self, contexts: Any) -> RowStore:
        """Return where rows go; the episode's first contexts decide the layout."""
        if self.episode.rows is None:
            first = contexts.rounds[0] if isinstance(contexts, Ragged) else contexts
            layout = "csr" if isinstance(first, _rows.Sparse) else "dense"
            self.episode.rows = self.new_rows(layout) if self.store is None else self.store.rows(layout)
        return self.episode.rows

    def new_rows(self, layout: str) -> RowStore:
        """Return an empty place for the open episode's rows, outside any store."""
        settings = self.settings
        width = settings.row_width
        return make_rows(layout, self.episode.length, width, settings.dtype, self.memory_limit)

    def _words(self, count: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8] | None]:
        """Draw the randomness of several rounds, and which of them explore.

        Word by word as single rounds draw them, so that batches change nothing.
        """
        share = self.episode.exploration
        if share > 0:
            words, own = self.rng.bit_generator.random_raw(2 * count).reshape(-1, 2).T.copy()
            return words, explores(own, share).astype(np.uint8)
        return self.rng.bit_generator.random_raw(count), None

    def _draw_again(self, count: int) -> None:
        """Rewind the generator: a repeated call draws the same arms as one that found no room for rows."""
        words = 2 if self.episode.exploration > 0 else 1
        self.rng.bit_generator.advance(-count * words)  # type: ignore[attr-defined]

    # Users and keys

    def _key_name(self, key: Any, digests: list[bytes] | None) -> bytes:
        """Return what a key is kept as: its user's own, because another user's decision is another's arm."""
        if key is None:
            return b""
        name = inputs.digest("key", key, self.secret)
        return name if digests is None else inputs.digest("key", name + digests[0], self.secret)

    @staticmethod
    def _kind(users: Sequence[Any] | None) -> str | None:
        return inputs.kind_of(users[0]) if users else None

    def _user_digests(self, name: str, users: Sequence[Any] | None) -> list[bytes] | None:
        """Return digests of user ids, which are given always or never, and are all of one kind."""
        if self.with_users not in (None, users is not None):
            rule = "must be given in every round" if self.with_users else "must be left out in every round"
            raise ValueError(
                f"{name} {rule}, as in the first: the guarantee says whether user ids are checked"
            )
        if users is None:
            return None
        digests = [inputs.digest("user", user, self.secret) for user in users]
        kinds = {inputs.kind_of(user) for user in users} | ({self.user_kind} if self.user_kind else set())
        if len(kinds) > 1:
            raise ValueError(
                f"{name} must all be of one kind, str, int or bytes, as in the first round, got "
                f"{sorted(kinds)}: 1 and '1' would be counted as two users"
            )
        return digests

    def _within_limit(self, digests: list[bytes] | None) -> npt.NDArray[np.uint8] | None:
        """Return which rounds of a batch may be learned from: a user's first `rounds_per_user`."""
        if digests is None:
            return None
        within, counts = np.zeros(len(digests), np.uint8), dict[bytes, int]()
        for i, digest in enumerate(digests):
            before = counts.get(digest, self.users.get(digest, 0))
            within[i] = before < self.settings.rounds_per_user
            counts[digest] = before + 1
        return within

    # Rewards

    def decided(self, key: Any, user: Any) -> int:
        """Return the id of the decision that was made under a key."""
        digests = self._user_digests("user", None if user is None else [user])
        name = inputs.digest("key", key, self.secret)
        name = name if digests is None else inputs.digest("key", name + digests[0], self.secret)
        if name not in self.keys:
            raise ValueError("key must be one that a round was played with, by the same user")
        return self.keys[name].id

    def update(self, decision: Any, reward: Any) -> bool:
        """Record a reward; False if its episode's estimate has been claimed."""
        self._require_memory_up_to_date()
        identity = decision.id if type(decision) is Decision else inputs.identity(decision)
        number = inputs.checked_reward(reward, self.settings.loss)
        episode = self.episode
        row = episode.row_of(identity)
        if row is None or episode.claimed or row < self._timed_out():
            self._check_late(identity, row)
            if self.store is not None:
                self.store.append_rewards((), (), 1)
            self.late += 1
            return False
        before = episode.codes[row]
        if before == before and before != NOT_LEARNED:
            raise ValueError("decision already has a reward, or was cancelled: a second one is refused")
        code = NOT_LEARNED_CAME if before == NOT_LEARNED else episode.stored_reward(number)
        if self.store is not None:
            self._disk_is_ahead = True
            self.store.append_rewards((row,), (code,))
        episode.codes[row] = code
        self._disk_is_ahead = False
        return True

    def update_batch(self, decisions: Any, given: Any) -> int:
        """Record the rewards that can be recorded, each whatever the others are; how many those were."""
        self._require_memory_up_to_date()
        ids = inputs.identities(decisions)
        numbers, usable = inputs.usable_rewards(given, len(ids), self.settings.loss)
        episode = self.episode
        at, timed_out = np.full(len(ids), -1, np.int64), self._timed_out()
        for i, identity in enumerate(ids):
            row = episode.row_of(identity)
            if row is None or episode.claimed or row < timed_out:
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
            self.store.append_rewards(at, codes, late)
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
        if self.episode.claimed:
            return []
        timed_out = self._timed_out()
        return [self.episode.id_of(int(row)) for row in self.episode.awaited() if row >= timed_out]

    def cancel(self, decision: Any) -> bool:
        """Make a round one without contents; False if its episode's estimate has been claimed."""
        self._require_memory_up_to_date()
        identity = inputs.identity(decision)
        episode = self.episode
        row = episode.row_of(identity)
        if row is None or episode.claimed:
            self._check_late(identity, row)
            return False
        if self.store is not None:
            self._disk_is_ahead = True
            self.store.append_rewards((row,), (NOT_LEARNED_CAME,))
        episode.cancel(row)
        self._disk_is_ahead = False
        return True

    # Ages

    def _timed_out(self) -> int:
        """Return how many of the open episode's first rows can't get a reward any more."""
        if self.ages.reward_timeout is None:
            return 0
        return self.ages.over_timeout(self.episode.filled, self.episode.notes)

    def _note_the_time(self) -> None:
        """Keep when rounds are played, as often as the limits of age need it."""
        episode = self.episode
        now = self.ages.note(episode.notes)
        if now is None:
            return
        # Rounds played before any time was noted, by a policy without such limits, are as old as this note.
        row = episode.filled if episode.notes else 0
        if self.store is not None:
            self._disk_is_ahead = True
            self.store.append_time(row, now)
        episode.notes.append((row, now))
        self._disk_is_ahead = False

    def expire(self) -> None:
        """Turn rows that were kept for as long as they may be into zeros."""
        self._require_memory_up_to_date()
        episode = self.episode
        if self.ages.retention is None or not episode.filled:
            return
        if not episode.notes:
            self._note_the_time()
        over, going = self.ages.over_retention(episode.filled, episode.notes)
        if over > episode.expired:
            self._forget(np.arange(episode.expired, going))
            episode.expired = going

    # Releases

    def _ready(self) -> Episode:
        """Return an episode with room, releasing the full one's estimate first."""
        if self.ages.retention is not None:
            self.expire()
        if self.episode.filled == self.episode.length:
            if self.episode.released is None:
                self._release()
            self._turn()
            if self.after_release is not None:
                self.after_release()
        return self.episode

    def _require_memory_up_to_date(self) -> None:
        """Refuse to go on after an interrupt between the disk and memory: the disk knows, memory does not."""
        if self._disk_is_ahead and self.store is not None:
            self.store.refuse_until_reopened()

    def _release(self) -> None:
        episode = self.episode
        assert episode.rows is not None
        rows = episode.rows.matrix()  # before the claim: rows that can't be read leave the episode open
        self.settings.exploration_in(episode.index + 1)  # nor does a schedule that can't be followed
        if self.store is not None:
            self.store.claim(episode)
        episode.claimed = True
        # If anything fails from here on, nothing has been seen, and the next call fits again.
        released = self._fitted(self.fit, episode, rows, self.known)
        if self.store is not None:
            self._disk_is_ahead = True
            self.fences = [self.fences[1], os.urandom(16).hex()]
            self.store.commit(released, scalars(self))
            if self.witness is not None:
                # Before anything of it can be seen: of several copies of a store, one gets past this line.
                tell(self.witness, name_of(self.secret), *self._records(episode.index + 1))
        # One assignment, which an interrupt can't cut in two: from here on these rows are never fitted
        # again, and before it nothing of the estimate can be seen.
        episode.released = released
        self._disk_is_ahead = False

    def _fitted(self, fit: Fit[Any, Any], episode: Episode, rows: Any, before: Known) -> Released:
        """Fit a claimed episode: what comes back is seen by nobody until it is committed."""
        share = self.settings.exploration_in(episode.index + 1)
        numbers, present = episode.rewards()
        totals = None
        if isinstance(fit, FitWithTotals):
            known, totals = fit.run_totals(episode.plan, rows, numbers, present, before, self.totals)
        else:
            known = fit.run(episode.plan, rows, numbers, present, before)
        facts = EpisodeFacts(
            **fit.facts(episode.plan, known), first_round=episode.first_round, estimate=known.estimate
        )
        plan = fit.plan(known.episodes, known)
        following = Episode(plan, episode.first_round + episode.length, self.settings.dtype, share)
        return Released(facts, known, following, totals)

    def _records(self, releases: int) -> tuple[Record, Record]:
        """Return what a witness should know before and after the last of these releases."""
        return Record(releases - 1, self.fences[0]), Record(releases, self.fences[1])

    def set_witness(self, witness: Witness | None) -> None:
        """Play with a witness from now on; raises if it knows of a newer copy, or if one is missing."""
        if witness is None and self.witnessed:
            raise StoreError("the store was played with a witness: give it as witness=")
        if witness is None:
            return
        before, now = self._records(len(self.history))
        checked_at_opening(witness, name_of(self.secret), now, before, self.witnessed)
        if self.store is not None and not self.witnessed:
            self.store.keep("witnessed", True)
        self.witness, self.witnessed = witness, True

    def leave_witness(self) -> None:
        """Tell the witness that the policy goes on in a file: no copy of the store can go on then."""
        assert self.witness is not None
        _, now = self._records(len(self.history))
        self.witness.move(name_of(self.secret), now, Record(now.releases, "handed over"))

    def _turn(self) -> None:
        """Show what the full episode released and open the next; cut off anywhere, it can be done again."""
        index, released = self.episode.index, self.episode.released
        assert released is not None
        if len(self.history) == index:
            self.history.append(released.facts)
        self.totals = released.totals
        self.show(released.known)
        if self.store is not None:
            self.store.finish(index, released.following.length)
        # Last: a round of the next episode must not meet the files of this one.
        self.episode = released.following

    def forget(self, user: Any = None) -> int:
        """Turn the open episode's rows, or those of one user, into zeros; how many those are."""
        self._require_memory_up_to_date()
        if user is None:
            self._forget(None)
            return self.episode.filled
        if not self.with_users:
            raise ValueError("user must be left out: no round of this policy had a user id")
        digests = self._user_digests("user", [user])
        assert digests is not None
        if self.episode.owners is None and self.episode.filled:
            raise ValueError(
                "user can't be forgotten alone in this episode: a version that did not keep whose round is "
                "whose saved it. forget() drops the rows of all users"
            )
        rows = self.episode.rows_of(digests[0])
        self._forget(rows)
        return len(rows)

    def _forget(self, rows: npt.NDArray[np.int64] | None) -> None:
        if rows is not None and not len(rows):
            return
        fresh = None
        if self.store is not None:
            self._disk_is_ahead = True
            fresh = self.store.forget(self.episode, rows)
        self.episode.forget(fresh, slice(None) if rows is None else rows)
        self._disk_is_ahead = False
