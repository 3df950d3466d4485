"""The engine of a policy that many workers play, each with its own copy of what is public.

The database orders everything: it gives a round its episode and number, counts users, keeps keys, and takes a
reward or finds it late. A worker holds released estimates alone, and the table of arms, if the policy has
one. It chooses an arm by the newest ones it knows and asks the database to count the round; if there is a
newer estimate, another table of arms or no room, the arm was shown to nobody, and is chosen again.

An episode that is full is claimed and fitted by one worker, inside a call to `select`; it renews its lease
until the release is committed. Meanwhile the others play the first rounds of the next episode by the estimate
that is public already: as many as that episode will have whatever is released (`Fit.least_rows`). The proof
allows it, since a round's arm may follow from any public estimate, and its row enters one fit, that of the
episode it was counted in. Beyond that they wait. A worker that ends or hangs in the middle is overtaken when
its lease is over, and nobody saw what it computed. What follows a commit is done by whoever finds it.
"""

from __future__ import annotations

import contextlib
import copy
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
import numpy.typing as npt

from fliphat import process
from fliphat.contexts import Crossed
from fliphat.fit.known import Fit, Known
from fliphat.kernels._rows import Sparse
from fliphat.policies.engine import inputs, lifecycle
from fliphat.policies.engine.age import Ages
from fliphat.policies.engine.combining import Combined, CutOff
from fliphat.policies.engine.composed import CrossedByEstimate, Ragged
from fliphat.policies.engine.each import Single, alone
from fliphat.policies.engine.engine import Engine, Standing
from fliphat.policies.engine.episode import Episode
from fliphat.policies.engine.exploring import explores, probabilities, probability
from fliphat.policies.engine.keeping import EpisodeRow, Key, PackedRound
from fliphat.policies.engine.lifecycle import Life, Phase, StepRefused
from fliphat.policies.engine.rewards import INCARNATION
from fliphat.policies.engine.rows import ChosenRows, Rounds, RowStore, make_rows
from fliphat.policies.engine.rule import ArmRule, ArmsOfRounds
from fliphat.policies.engine.state import set_releases
from fliphat.policies.engine.turn import fitted, recalled, stored_release
from fliphat.policies.engine.witness import Record, Witness, agrees, name_of, not_newest
from fliphat.policies.store.options import Store
from fliphat.policies.store.postgres.connections import OtherKey, OtherUsers, UnknownDecision
from fliphat.policies.store.postgres.store import Age, PostgresStore
from fliphat.policies.types import Decision, Decisions, StoreError

__all__ = ["SharedEngine"]

#: Seconds between two looks at an episode that another worker fits.
_PAUSE: Final = 0.01
#: Seconds after which a worker that plays ahead looks whether the fit still has somebody who does it.
_LOOK_AGAIN: Final = 0.25
#: Seconds that a call waits for another worker's fit when there is no room to play ahead.
LONGEST_WAIT: Final = 600.0

_Result = TypeVar("_Result")
#: A round to be counted: the episode its arm was chosen for, the round, the kind of its user's id.
_Counted = tuple[EpisodeRow, PackedRound, str | None]
_Chosen = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]
#: Contexts, rounds and arms, checked by a rule as it was at one moment.
_Checked = tuple[Any, int, ArmsOfRounds]


@dataclass(frozen=True)
class _View:
    """What a worker plays by: what is public, and the episode that rounds are counted in.

    `due` is the episode that is claimed and whose estimate is not public yet, if there is one. `fit` and
    `rule` have the table of arms of this view, whatever other threads learn meanwhile.
    """

    known: Known
    chooser: Any
    fit: Fit[Any, Any]
    rule: ArmRule
    row: EpisodeRow
    share: float
    due: EpisodeRow | None
    to_close: tuple[int, ...]


class SharedEngine(Engine):
    """One worker of a policy in a database."""

    concurrent: ClassVar[bool] = True
    _view: _View

    def __init__(
        self,
        fit: Fit[Any, Any],
        store: Store,
        policy: str,
        rule: ArmRule | None,
        witness: Witness | None,
    ) -> None:
        super().__init__(fit, rule=rule, memory_limit=store.bytes_in_memory, ages=store.ages)
        self._asked = (-1, 0.0)  # the episode that this worker last offered to fit, and when
        self._process = process.token
        self._drawing = threading.Lock()
        self._combined_rounds = Combined(self._play_group, _same_call)
        self._combined_rewards = Combined(self._reward_group, _other_decision)
        self._refreshing, self._claiming, self._closing = (threading.Lock() for _ in range(3))
        self._looked = 0.0  # when the last look began
        self.database = PostgresStore(
            *(str(store.where), self.settings, store.durability, policy, store.to_record()),
            *(self.secret, self.episode.length, self.arms),
        )
        # What both kinds of engine ask of a store: to keep numbers, to find keys, to be durable, to close.
        self.store: Any = self.database
        self.keys = self.database.keys
        self.secret, self.incarnation = self.database.secret, self.database.opening
        self.ages = Ages.from_record(self.database.kept["options"])
        self._timeout = Age.of(self.ages.reward_timeout)
        if self.settings.seed is not None and self.incarnation:
            self.rng = np.random.default_rng([self.settings.seed, self.incarnation])
        self._arms_version = -1
        self._playing_with = (self.fit, self.rule)
        try:
            self._look()
            self.set_witness(witness)
            self.expire()
        except BaseException:
            self.database.close()
            raise

    # Looking

    def refresh(self) -> None:
        """Learn what other workers did."""
        if self._process is process.token and not self.database.closed:
            self._look()

    def _look(self) -> _View:
        """Make what became public since the last look the worker's own, and return what it plays by."""
        asked = time.monotonic()
        with self._refreshing:
            if self._looked > asked:  # another thread looked meanwhile: many wait for the same release
                return self._view
            looked = time.monotonic()
            seen = self.database.look(len(self.history))
            policy = seen.policy
            if policy["arms_version"] > self._arms_version:
                self.arms = json.loads(policy["arms"])
                fit = copy.copy(self.fit)
                self._playing_with = (fit, self.rule.of(fit))
            set_releases(self, [recalled(self.fit, one) for one in seen.releases])
            self._arms_version = policy["arms_version"]
            self.with_users, self.user_kind = policy["with_users"], policy["user_kind"]
            self.late, self.witnessed = policy["late"], policy["witnessed"]
            self.switched_off = json.loads(policy["switched_off"] or "null")
            self.column_names = self.column_names or json.loads(policy["column_names"] or "null")
            row, due = seen.unseen[-1], seen.unseen[0] if len(seen.unseen) > 1 else None
            share = self.settings.exploration_in(row.episode)
            self._view = _View(self.known, self.chooser, *self._playing_with, row, share, due, seen.to_close)
            self._looked = looked
            return self._view

    def standing(self) -> Standing:
        """Return where the policy was when it was last looked at."""
        row = self._view.row
        return Standing(row.episode, self.remaining, row.first_round - 1 + row.filled)

    @property
    def remaining(self) -> int:
        """Rounds until the estimate may change, if nobody else plays."""
        row = self._view.row
        left = row.room - row.filled
        if left or row.phase is Phase.AHEAD:
            return left or 1
        return self.fit.least_rows(row.episode + 1)

    @property
    def waits_for_a_fit(self) -> bool:
        """Whether no round can be played before another worker has released, as it was last looked at."""
        row = self._view.row
        return row.phase is Phase.AHEAD and row.filled == row.room

    def require_alive(self) -> None:
        """See :class:`Engine`; as it was last looked at."""
        view = self._view
        if view.row.phase is Phase.REFUSED or (view.due is not None and view.due.phase is Phase.REFUSED):
            raise not_newest()

    # Rounds

    def select(self, contexts: Any, user: Any, key: Any, ids: Sequence[Any] | None = None) -> Decision:
        """Play one round."""
        users = None if user is None else [user]
        digests = self._user_digests("user", users)
        name = self._key_name(key, digests)
        if name:
            known = self._decision(name)
            if known is not None:
                return known
        self._check_columns(contexts)

        def checked(rule: ArmRule) -> _Checked:
            rows, arms = rule.one_round(contexts)
            return rows, 1, arms

        def offered(arms: Any) -> list[list[Any]] | None:
            given = self._offered(ids, arms)
            return None if given is None else [given]

        try:
            (decision,) = self._play(checked, offered, digests, self._kind(users), name)
        except OtherKey:  # another worker was first with this key
            known = self._decision(name)
            assert known is not None
            return known
        return decision

    def _decision(self, key: bytes) -> Decision | None:
        """Return what was played for a key; its arm may be one that another worker has just added."""
        found: Decision | None = self.keys.get(key)
        if found is not None and self.arms is not None:
            self._look()
        return found

    def select_each(self, asked: Sequence[Single], results: list[Any]) -> None:
        """Play rounds that are alike and have no key in one call, as a batch; the others one by one."""
        alike: dict[Any, list[int]] = {}
        for place, (contexts, user, key) in enumerate(asked):
            if key is None and type(contexts) is np.ndarray:
                alike.setdefault((contexts.shape, contexts.dtype, type(user)), []).append(place)
        for places in alike.values():
            self._play_alike(asked, places, results)
        for place, one in enumerate(asked):
            if results[place] is None:
                results[place] = alone(self, one)

    def _play_alike(self, asked: Sequence[Single], places: list[int], results: list[Any]) -> None:
        """Play rounds as a batch; none of them if something is wrong with one, or the episode ends before."""
        try:
            for place in places:
                self._view.rule.one_round(asked[place].contexts)
            users = [asked[place].user for place in places]
            batch = np.stack([asked[place].contexts for place in places])
            if len(places) > 1:
                played = self.select_batch(batch, None if users[0] is None else users, None)
                for place, decision in zip(places, played, strict=True):
                    results[place] = decision
        except (ValueError, TypeError):
            return  # its own call says what is wrong

    def select_batch(
        self, contexts: Any, users: Sequence[Any] | None, given: int | Sequence[Any] | None
    ) -> Decisions:
        """Play several rounds of one episode; `given` are arms a round, or their ids."""
        self._check_columns(contexts)
        size, names = inputs.arms_of_batch(given, contexts)
        # Before anything that depends on other workers: what is wrong with the call is said first.
        _, count, _ = self._view.rule.many_rounds(contexts, size)
        if users is not None and (isinstance(users, (str, bytes)) or len(users) != count):
            raise ValueError(f"users must have one id for each of the {count} rounds")
        digests = self._user_digests("users", users)

        def checked(rule: ArmRule) -> _Checked:
            rows, rounds, arms = rule.many_rounds(contexts, size)
            if rounds != count:
                raise ValueError("contexts must have a row for each of the arms, which have changed")
            return rows, count, arms

        return self._play(
            checked, lambda arms: self._offered_in_batch(names, count, arms), digests, self._kind(users)
        )

    def _play(
        self,
        checked: Callable[[ArmRule], _Checked],
        offer: Callable[[Any], list[list[Any]] | None],
        digests: list[bytes] | None,
        kind: str | None,
        key: bytes = b"",
    ) -> Decisions:
        words: npt.NDArray[np.uint64] | None = None
        releases, rule = len(self.history), self._view.rule
        contexts, count, arms = checked(rule)
        offered = offer(arms)
        if self.ages.retention is not None:
            self.expire()
        view = self._with_room(self._view, count)
        while True:
            if view.rule is not rule:
                rule = view.rule
                contexts, _, arms = checked(rule)
            each = 2 if view.share > 0 else 1
            if words is None or words.size != each * count:
                with self._drawing:
                    words = self.rng.bit_generator.random_raw(each * count)
            assert words is not None
            (chosen, tied), rows = self._chosen(view, contexts, arms, words.reshape(count, each))
            valid = chosen >= 0
            position: npt.NDArray[Any] = np.where(valid, chosen, -1 - chosen)
            shown = position if offered is None else self._names_of(position, offered)
            if count == 1:
                chances = np.array([probability(int(tied[0]), int(np.ravel(arms)[0]), view.share)])
            else:
                chances = probabilities(tied, arms, view.share)
            kept = None
            if key:
                # The id itself: an array may have made a NumPy number of it, which JSON can't hold.
                name = None if offered is None else offered[0][int(position[0])]
                kept = Key(key, int(position[0]), float(chances[0]), name)
            rounds = self.database.packed(valid.tolist(), rows, digests, kept)
            try:
                first = self._count(view.row, rounds, kind)
            except OtherUsers:
                self._look()
                self._refuse_other_users(digests, kind)
                raise
            if first is not None:
                break
            view = self._with_room(self._look(), count)
        self.with_users, self.user_kind = digests is not None, kind
        if len(self.history) > releases and self.after_release is not None:
            self.after_release()
        ids = np.arange(first, first + count, dtype=np.int64)
        return Decisions(ids, shown, valid, view.row.episode, chances)

    def _count(self, row: EpisodeRow, rounds: list[PackedRound], kind: str | None) -> int | None:
        """Have the database count rounds; a single one together with those of other threads."""
        if len(rounds) == 1:
            try:
                first = self._combined_rounds((row, rounds[0], kind))
            except (OtherKey, OtherUsers):
                first = None
            except CutOff:
                raise _cut_off() from None
            if first is not None:
                return first
            # None of them was counted: for want of room, or for what one of them brought. Each for itself.
        return self._count_in_one_call(row, rounds, kind)

    def _count_in_one_call(self, row: EpisodeRow, rounds: list[PackedRound], kind: str | None) -> int | None:
        return self.database.play(
            row,
            rounds,
            limit=self.settings.rounds_per_user,
            kind=kind,
            first=self.incarnation * INCARNATION,
        )

    def _play_group(self, group: list[_Counted]) -> list[int | None]:
        row, _, kind = group[0]
        first = self._count_in_one_call(row, [one for _, one, _ in group], kind)
        return [None if first is None else first + place for place in range(len(group))]

    def _chosen(
        self, view: _View, contexts: Any, arms: Any, words: npt.NDArray[np.uint64]
    ) -> tuple[_Chosen, ChosenRows]:
        """Choose arms by a public estimate, and return them with their rows; nobody is told yet."""
        own = words[:, 1] if words.shape[1] > 1 else None
        explored = None if own is None else explores(own, view.share).astype(np.uint8)
        if isinstance(contexts, Crossed):
            contexts = CrossedByEstimate(contexts, view.known.estimate)
        rounds = Rounds(view.chooser, contexts, arms, np.ascontiguousarray(words[:, 0]), None, explored)
        dtype = np.dtype(self.settings.dtype)
        first = contexts.rounds[0] if isinstance(contexts, Ragged) else contexts
        if isinstance(first, Sparse):
            return rounds.sparse(dtype == np.float64)
        rows = np.empty((len(words), self.settings.row_width), dtype)
        return rounds.into(rows), rows

    def _refuse_other_users(self, digests: list[bytes] | None, kind: str | None) -> None:
        """Raise what an engine raises that knew before what the database has just said."""
        if self.with_users != (digests is not None):
            self._user_digests("user", None if digests is None else [0])
        raise ValueError(
            f"user must be of one kind, as in the first round of any worker, {self.user_kind}, got {kind}: "
            f"1 and '1' would be counted as two users"
        )

    # Releases

    def _with_room(self, view: _View, count: int) -> _View:
        """Return a view whose episode has room for `count` rounds, as far as is known.

        Claims and fits what is full or was left, and completes what is committed.
        """
        waited_since = time.monotonic()
        while True:
            if view.to_close:  # also what a worker showed that ended then
                self._close(view)
                view = self._look()
            self.require_alive()
            row = view.row
            full = row.phase is Phase.FULL
            if full or (view.due is not None and self._may_ask(view, count)):
                released, view = self._release(view, row if full else view.due), self._look()
                if released:
                    continue
                row = view.row
            if row.filled + count <= row.room and lifecycle.may("play", row.life):
                return view
            if row.phase is Phase.OPEN and row.filled < row.room:
                left = row.room - row.filled
                raise ValueError(
                    f"contexts must have at most policy.remaining = {left} rounds, got {count}: "
                    f"the estimate changes after that"
                )
            if row.phase is not Phase.AHEAD:
                continue
            if time.monotonic() - waited_since > LONGEST_WAIT:
                raise StoreError(
                    f"another worker has been fitting episode {row.episode - 1} for {LONGEST_WAIT:g} "
                    f"seconds: nothing happened, call again"
                )
            time.sleep(_PAUSE)
            view = self._look()

    def _may_ask(self, view: _View, count: int) -> bool:
        """Whether to offer to fit what is due: at once, then now and then, and whenever there is no room."""
        assert view.due is not None
        now, (episode, when) = time.monotonic(), self._asked
        if (
            episode == view.due.episode
            and now - when <= _LOOK_AGAIN
            and view.row.filled + count <= view.row.room
        ):
            return False
        self._asked = view.due.episode, now
        return True

    def _release(self, view: _View, due: EpisodeRow | None) -> bool:
        """Take an episode as far as it gets; True if there may be a new estimate."""
        assert due is not None
        if due.phase in (Phase.COMMITTED, Phase.WITNESSED):  # by a worker that ended before it was shown
            self._complete(due.episode)
            return True
        if self.ages.retention is not None:
            self.expire()  # rows that waited too long for somebody to fit them
        # One thread of a worker asks; the others learn of its claim, and play ahead or wait.
        with self._claiming:
            episodes = {one.episode: one.life for one in (self._view.due, self._view.row) if one is not None}
            if episodes.get(due.episode) != due.life:
                return False
            life: Life | None = None
            with contextlib.suppress(StepRefused):  # another worker's lease is not over, or it was faster
                life = self.database.step(
                    due.episode,
                    "claim",
                    next_room=self.fit.least_rows(due.episode + 1),
                    owner=secrets.token_hex(8),
                    lease=lifecycle.LEASE,
                )
            self._look()
        if life is None:
            return False
        with self._renewing(due.episode, life):
            self._fit_and_commit(view, due, life)
        return True

    @contextlib.contextmanager
    def _renewing(self, episode: int, life: Life) -> Iterator[None]:
        """Keep a claim while the block runs, and let go of it if the block fails."""
        over = threading.Event()

        def renew() -> None:
            while not over.wait(lifecycle.HEARTBEAT):
                # Overtaken, or the database does not answer: the commit will tell.
                with contextlib.suppress(StepRefused, StoreError):
                    self.database.step(episode, "renew", fence=life.fence, lease=lifecycle.LEASE)

        beat = threading.Thread(target=renew, daemon=True)
        beat.start()
        try:
            yield
        except BaseException:
            over.set()
            with contextlib.suppress(Exception):
                self.database.step(episode, "let_go", fence=life.fence)
            raise
        finally:
            over.set()
            beat.join()

    def _fit_and_commit(self, view: _View, due: EpisodeRow, life: Life) -> None:
        """Fit an episode while it is claimed; a commit that comes too late is refused, and seen by nobody."""
        if due.episode != view.known.episodes:
            view = self._look()
        plan = view.fit.plan(view.known.episodes, view.known)
        if (plan.episode, plan.rows) != (due.episode, due.room):
            raise StoreError(
                f"episode {due.episode} has {due.room} rounds in the database, and {plan.rows} by this "
                f"worker's plan: all workers must run the same version"
            )
        share = self.settings.exploration_in(due.episode)
        self.settings.exploration_in(due.episode + 1)  # a schedule that can't be followed is found out now
        episode = Episode(plan, due.first_round, self.settings.dtype, share)
        width, dtype = self.settings.row_width, self.settings.dtype

        def new_rows(layout: str) -> RowStore:
            return make_rows(layout, episode.length, width, dtype, self.memory_limit)

        try:
            self.database.fill(episode, due, new_rows)
            totals = self.database.totals_of(due.episode - 1)
            assert episode.rows is not None
            released = fitted(view.fit, episode, episode.rows.matrix(), view.known, totals)
            with contextlib.suppress(StepRefused):
                self.database.step(due.episode, "commit", release=stored_release(released), fence=life.fence)
                self._complete(due.episode)
        finally:
            if episode.rows is not None:
                episode.rows.wipe()

    def _complete(self, episode: int) -> None:
        """Ask the witness about a committed release, and show it: those bits that the database has."""
        if self.witnessed and self.witness is None:
            raise StoreError("the policy is played with a witness: open it again, with witness=")
        self._asked = (-1, 0.0)  # a copy that the witness refuses is refused in every call, not now and then
        with contextlib.suppress(StepRefused):  # another worker completed it
            if self.witness is not None:
                before = Record(episode, self.database.mark_of(episode - 1))
                now = Record(episode + 1, self.database.mark_of(episode))
                if not agrees(self.witness, name_of(self.secret), before, now):
                    self.database.step(episode, "refuse")
                    raise not_newest()
            self.database.step(episode, "accept")
            self.database.step(episode, "show")

    def _close(self, view: _View) -> None:
        """Drop the rows of episodes that are shown; other threads play on meanwhile."""
        if self._closing.acquire(blocking=False):
            try:
                for episode in view.to_close:
                    with contextlib.suppress(StepRefused):
                        self.database.step(episode, "close")
            finally:
                self._closing.release()

    def set_witness(self, witness: Witness | None) -> None:
        """See :class:`Engine`; other workers may release meanwhile, so that one look may not be enough."""
        for last in (False, False, True):
            due = self._look().due
            committed = due is not None and due.phase in (Phase.COMMITTED, Phase.WITNESSED)
            mark = self.database.mark_of(due.episode) if due is not None and committed else None
            try:
                self._agree_with(witness, mark)
                break
            except StoreError:
                if last or witness is None:
                    raise
        if witness is not None:
            self.database.keep("witnessed", True)

    # Rewards

    def update(self, decision: Any, reward: Any) -> bool:
        """Record a reward; False if its episode's estimate has been claimed."""
        identity = decision.id if type(decision) is Decision else inputs.identity(decision)
        number = inputs.checked_reward(reward, self.settings.loss)
        outcome = self._reward(identity, self._stored_reward(number))
        if outcome == 2:
            raise ValueError("decision already has a reward, or was cancelled: a second one is refused")
        return outcome == 1

    def update_batch(self, decisions: Any, given: Any) -> int:
        """Record the rewards that can be recorded, each whatever the others are; how many those were."""
        ids = inputs.identities(decisions)
        numbers, usable = inputs.usable_rewards(given, len(ids), self.settings.loss)
        taken: set[int] = set()
        rewards: list[float | None] = []
        for identity, number, use in zip(ids, numbers.tolist(), usable.tolist(), strict=True):
            # Only the first usable one of a decision is sent as a reward.
            send = use and identity not in taken
            taken |= {identity} if send else set()
            rewards.append(self._stored_reward(number) if send else None)
        return sum(outcome == 1 for outcome in self._rewards(ids, rewards)) if ids else 0

    def _stored_reward(self, reward: float) -> float:
        largest = self.episode.largest
        return min(max(reward, -largest), largest)

    def _reward(self, identity: int, reward: float) -> int:
        """Have the database keep a reward, together with those of other threads."""
        try:
            return self._combined_rewards((identity, reward))
        except UnknownDecision:
            pass  # perhaps another thread's: none was kept, each for itself
        except CutOff:
            raise _cut_off() from None
        return self._rewards([identity], [reward])[0]

    def _reward_group(self, group: list[tuple[int, float]]) -> list[int]:
        if any(not 0 < identity < 2**63 for identity, _ in group):
            raise UnknownDecision
        return self.database.reward([one for one, _ in group], [one for _, one in group], self._timeout)

    def _rewards(self, ids: list[int], rewards: list[float | None]) -> list[int]:
        return self._known_only(ids, lambda: self.database.reward(ids, rewards, self._timeout))

    def _known_only(self, ids: list[int], call: Callable[[], _Result]) -> _Result:
        unknown = "decision must be one that this policy made, or its id"
        if any(not 0 < identity < 2**63 for identity in ids):
            raise ValueError(unknown)
        try:
            return call()
        except UnknownDecision:
            raise ValueError(unknown) from None

    def pending(self) -> list[int]:
        """Return the ids of rounds whose reward may still come."""
        return self.database.pending(self._timeout)

    def cancel(self, decision: Any) -> bool:
        """Make a round one without contents; False if its episode's estimate has been claimed."""
        identity = inputs.identity(decision)
        return self._known_only([identity], lambda: self.database.cancel(identity))

    def settle(self, act: str) -> None:
        """See :class:`Engine`; whoever finds a turn that was cut off completes it."""
        self.refresh()

    def _forget(self, user: bytes | None) -> int:
        return self.database.forget(user)

    def expire(self) -> None:
        """Turn rows that were kept for as long as they may be, by the server's clock, into zeros."""
        if self.ages.retention is not None:
            self.database.expire(Age.of(self.ages.retention), Age.of(self.ages.early()))

    # Arms

    def change_arms(self, change: Callable[[], Any]) -> None:
        """See :class:`Engine`; of two workers that do so at once, the second changes what the first left."""
        while True:
            self._look()
            with self._refreshing:  # the table that `change` reads is of the version that is named
                record, version = change().to_record(), self._arms_version
            if self.database.change_arms(record, version):
                break
        self._look()


def _same_call(others: list[_Counted], item: _Counted) -> bool:
    """Whether a round can be counted in one call with others: same view, same layout, same kind of user."""
    (row, first, kind), (own_row, own, own_kind) = others[0], item
    return (
        (row.episode, row.releases, row.arms, kind)
        == (own_row.episode, own_row.releases, own_row.arms, own_kind)
        and (first.columns is None, first.owner is None) == (own.columns is None, own.owner is None)
        and row.filled + len(others) < row.room
    )


def _other_decision(others: list[tuple[int, float]], item: tuple[int, float]) -> bool:
    """Whether a reward is for another decision than others: a call takes one of each."""
    return all(identity != item[0] for identity, _ in others)


def _cut_off() -> StoreError:
    return StoreError(
        "the call was cut off: it may or may not have happened. Repeat it, a round with its key"
    )
