"""The policy's state and what each call does to it. One thread at a time: the caller holds the lock.

Order matters here. Whatever a call does is first made durable (if there is a store) and then made to count in
memory, so that what memory shows is never ahead of the disk. An estimate is fitted inside the call that opens
the next episode, after that call's own arguments have been checked, and never when a reward arrives.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fliphat.contexts import Crossed
from fliphat.fit.known import Fit, Known
from fliphat.kernels import _rows
from fliphat.policies.engine import files, inputs
from fliphat.policies.engine.age import Ages
from fliphat.policies.engine.composed import CrossedByEstimate, Ragged
from fliphat.policies.engine.each import Single, select_each
from fliphat.policies.engine.episode import AWAITED, NOT_LEARNED, Episode, Released
from fliphat.policies.engine.exploring import explores, probabilities, probability
from fliphat.policies.engine.keeping import PlayedRounds, Tallies
from fliphat.policies.engine.lifecycle import Phase, may
from fliphat.policies.engine.rewards import INCARNATION, Rewards
from fliphat.policies.engine.rows import Rounds, RowStore, make_rows
from fliphat.policies.engine.rule import ArmRule, RowForEachArm
from fliphat.policies.engine.turn import move, recalled, turn
from fliphat.policies.engine.witness import Record, Witness, left_to, name_of, not_newest
from fliphat.policies.types import Decision, Decisions, EpisodeFacts, StoreError

if TYPE_CHECKING:
    from fliphat.policies.store.sqlite import SqliteStore

__all__ = ["Engine", "Standing"]


class Standing(NamedTuple):
    """Where a policy is: the open episode, rounds until its estimate changes, rounds played."""

    episode: int
    remaining: int
    rounds: int


class Engine(Rewards):
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
        self._row_width = fit.settings.row_width
        self.rule: ArmRule = RowForEachArm(fit.settings.dim) if rule is None else rule
        self.store: SqliteStore | None = None
        self.after_release: Callable[[], None] | None = None
        self.secret = os.urandom(inputs.SECRET_BYTES)
        self.totals: bytes | None = None  # of a fit that keeps secret ones, after the last release
        self.owner = os.urandom(8).hex()  # this object, where it claims an episode
        self.history: list[EpisodeFacts] = []
        self.users: Tallies = dict[bytes, int]()
        self.keys: Tallies = dict[bytes, Decision]()
        self.with_users: bool | None = None
        self.user_kind: str | None = None
        self.late = 0
        self.arm_ids = None
        self.column_names: list[str] | None = None
        self.incarnation = 0
        self.mark = (
            ""  # of the last release that was shown, by which a witness tells this store from its copies
        )
        self.witnessed = False
        #: The arm that a server gives to every round, None while the policy plays; kept for the server.
        self.switched_off: Any = None
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

    def keep(self, name: str, value: Any) -> None:
        """Keep something beside the policy, as JSON, if there is a store."""
        if self.store is not None:
            self.store.keep(name, value)

    @property
    def waits_for_a_fit(self) -> bool:
        """Whether no round can be played before an estimate is there."""
        return self.episode.life.phase not in (Phase.OPEN, Phase.FULL)

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
        self.require_alive()
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
        self.require_alive()
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
        identity, valid = self.incarnation * INCARNATION + episode.first_round + at, arm >= 0
        chance = 1.0 if tied == 1 and share == 0 else probability(tied, arms, share)
        decision = Decision(identity, arm if valid else -1 - arm, valid, episode.index, chance)
        learned = valid and learned
        code = AWAITED if learned else NOT_LEARNED
        if self.store is None and digests is None and not name:
            # What `_append` does where there is neither a store nor a user: most single rounds.
            if self.ages.retention is not None or self.ages.reward_timeout is not None:
                self._note_the_time()
            self.with_users, self.user_kind = False, None
            episode.append(1, identity, code)
        else:
            keys = {name: decision} if name else {}
            self._append(PlayedRounds(identity, (learned,), digests, self._kind(users), None, keys), code)
        return decision if offered is None else self._named(decision)

    def select_each(self, asked: Sequence[Single], results: list[Any]) -> None:
        """Play single rounds of several callers, as if each were a call of its own."""
        self.require_alive()
        select_each(self, asked, results)

    def select_batch(
        self, contexts: Any, users: Sequence[Any] | None, given: int | Sequence[Any] | None
    ) -> Decisions:
        """Play several rounds of one episode; `given` are arms a round, or their ids."""
        self.require_alive()
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
            for one in shown.tolist():
                self._code(one)
        used = valid if learned is None else valid & (learned != 0)
        awaited = AWAITED if all_valid and learned is None else np.where(used, AWAITED, NOT_LEARNED)
        played = PlayedRounds(first, used.tolist(), digests, self._kind(users), None, {})
        self._append(played, awaited)
        ids = np.arange(first, first + count, dtype=np.int64)
        chances = probabilities(tied, arms, share)
        return Decisions(ids, shown, valid, episode.index, chances)

    def _append(self, played: PlayedRounds, codes: Any) -> None:
        """Make staged rounds durable, and then make them count.

        An interrupt may fall between any two lines. Without a store the rounds did not happen until
        `Episode.append`, except that their users have fewer to come and their keys are known; with one, the
        next call finds the disk ahead of memory.
        """
        episode, count = self.episode, len(played.learned)
        now = self._note_the_time()
        if self.store is not None:
            assert episode.rows is not None
            self._disk_is_ahead = True
            rows = episode.rows.staged(episode.filled, count)
            self.store.append_rounds(episode, played._replace(played=now), rows)
        else:
            for digest in played.users or ():
                self.users[digest] = self.users.get(digest, 0) + 1
        self.with_users, self.user_kind = played.users is not None, played.user_kind
        episode.append(count, played.first_id, codes, played.users)
        if self.store is None:
            for name, decision in played.keys.items():
                self.keys[name] = decision
        self._disk_is_ahead = False

    def _next_id(self) -> int:
        return self.incarnation * INCARNATION + self.episode.first_round + self.episode.filled

    def rows_for(self, contexts: Any) -> RowStore:
        """Return where rows go; the episode's first contexts decide the layout."""
        if self.episode.rows is None:
            first = contexts.rounds[0] if isinstance(contexts, Ragged) else contexts
            # Where all columns are learned from, rows with an arm behind them are dense.
            sparse = isinstance(first, _rows.Sparse) and self.settings.sparse_rows
            layout = "csr" if sparse else "dense"
            self.episode.rows = self.new_rows(layout)
        return self.episode.rows

    def new_rows(self, layout: str) -> RowStore:
        """Return an empty place for the open episode's rows."""
        return make_rows(layout, self.episode.length, self._row_width, self.settings.dtype, self.memory_limit)

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

    # Releases

    def _ready(self) -> Episode:
        """Return an episode with room, releasing the full one's estimate first."""
        if self.ages.retention is not None:
            self.expire()
        if self.episode.filled == self.episode.length:
            turn(self)
            if self.after_release is not None:
                self.after_release()
        return self.episode

    def require_alive(self) -> None:
        """Refuse to go on where memory is behind the disk, and in a copy that its witness refused."""
        if self._disk_is_ahead and self.store is not None:
            self.store.refuse_until_reopened()
        if self.episode.life.phase is Phase.REFUSED:
            raise not_newest()

    def settle(self, act: str) -> None:
        """Refuse to go on where that is not allowed; complete a turn that was cut off too late for an act.

        Rows that were claimed and not committed can still be forgotten, and can't be handed over.
        """
        self.require_alive()
        if not may(act, self.episode.life):
            turn(self)

    move = move

    def committed(self, episode: int) -> Released:
        """Return what an episode committed, read back from the store."""
        assert self.store is not None
        return recalled(self.fit, self.store.release_of(episode))

    # Copies

    def set_witness(self, witness: Witness | None) -> None:
        """Play with a witness from now on; raises if it knows of a newer copy, or if one is missing."""
        known, committed = self.witnessed, self.episode.life.bits
        self._agree_with(witness, None if committed is None else committed.mark)
        if self.store is not None and self.witnessed and not known:
            self.store.keep("witnessed", True)

    def _agree_with(self, witness: Witness | None, due: str | None) -> None:
        """Compare with a witness what was shown, and what was committed after it with the mark `due`."""
        if witness is None:
            if self.witnessed:
                raise StoreError("the store was played with a witness: give it as witness=")
            return
        name = name_of(self.secret)
        found = witness.read(name)
        if found is None and self.witnessed:
            raise StoreError(
                "the witness does not know this store, which was played with one: give that one, as it was"
            )
        now = Record(len(self.history), self.mark)
        if found is None:
            found = now if witness.move(name, None, now) else witness.read(name)
        if found not in (now, None if due is None else Record(now.releases + 1, due)):
            raise not_newest()
        self.witness, self.witnessed = witness, True

    def hand_over(self, path: Path, checksum: str) -> None:
        """Keep that the policy goes on in a file, which is written and not yet sealed; the witness is asked.

        Only the store is changed: whoever holds this engine has let go of it.
        """
        if self.store is None:
            return
        files.sync_directory(path.parent)  # the file's name must last at least as long as the record
        self.store.hand_over(self.episode.index, path, checksum)
        if self.witness is not None and not left_to(
            self.witness, name_of(self.secret), Record(len(self.history), self.mark), checksum
        ):
            self.store.step(self.episode.index, "refuse")
            raise not_newest()

    def was_handed_over(self) -> bool:
        """Whether the store says so, after a hand-over that was cut off; if in doubt it does."""
        return self.store is None or self.store.was_handed_over()
