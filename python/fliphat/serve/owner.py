"""The one thread that plays a policy: a group of requests, one sync, then their answers.

Whoever asks waits until everything that the group did is on disk. While the disk is busy the next group
gathers, so that the number of syncs follows the disk and not the number of clients. Fits run in this thread
too, outside the event loop: addresses that only read answer meanwhile, and rounds wait, each at most as long
as the limits say.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fliphat.fit.known import Known
from fliphat.policies.engine.each import Single
from fliphat.policies.health import Health, examine
from fliphat.policies.live import LivePolicy
from fliphat.policies.named import NamedArms
from fliphat.policies.scoreboard import Scoreboard
from fliphat.policies.scoreboard import scoreboard as boarded
from fliphat.policies.types import CopyError, EpisodeFacts, StoreError
from fliphat.privacy.guarantee import Guarantee
from fliphat.serve import logs
from fliphat.serve.play import keep_switch, refused, try_keeping
from fliphat.serve.receipts import Receipts
from fliphat.serve.refusal import Refusal
from fliphat.serve.settings import Rules
from fliphat.serve.terms import Terms, terms_of

__all__ = ["Owner", "Public", "Ready"]

#: Jobs of one group at most, so that the first of them need not wait for ever.
_LARGEST_GROUP: Final = 1024
#: The same where several threads play: what one takes is one transaction.
_LARGEST_SHARE: Final = 32
#: Seconds between two looks at what such a policy has released, by whichever worker, while rounds are played.
_PUBLISH: Final = 0.1
#: Seconds between attempts to open a store that failed.
_REOPEN: Final = 1.0

#: Seconds for which something that was kept shows that rounds can be, and that a trial may take.
_STILL_TRUE: Final = 0.5
_TRIAL: Final = 1.5

_STORE_FAILED: Final = (
    "the store can't be written now, or its witness refuses it, the log says; nothing acknowledged is lost"
)
_NO_ESTIMATE: Final = "the estimate that is due could not be computed, as the log says; rounds try again"
_UNKNOWN: Final = "this may or may not have happened: try again with the same key"


@dataclass(frozen=True)
class Public:
    """What everybody may see of the policy, as it was when a group was done; `shown` is its ``/estimate``.

    `known` is everything released until then, in one object: an estimate and the number of releases that were
    read one after the other could be those of two moments.
    """

    known: Known
    shown: dict[str, Any]
    guarantee: Guarantee
    health: Health
    history: tuple[EpisodeFacts, ...]
    scoreboard: Scoreboard
    episode: int
    remaining: int
    rounds: int

    @property
    def releases(self) -> int:
        """How many estimates were released."""
        return self.known.episodes

    @property
    def played_in_episode(self) -> int:
        """Rounds of the open episode so far, as far as its beginning is public."""
        last = self.history[-1] if self.history else None
        return self.rounds - (last.first_round - 1 + last.rounds if last is not None else 0)


@dataclass(slots=True)
class _Job:
    """One request that waits. Whoever gets `taken` decides: the owner plays it, or its time is up."""

    asked: Single | Callable[[LivePolicy], Any]  # one round, or anything else
    answer: asyncio.Future[Any]
    deadline: float
    taken: threading.Lock


@dataclass(frozen=True)
class Ready:
    """Whether a round could be played, and why or why not."""

    ready: bool
    words: str


class Owner:
    """Opens the policy, plays it and closes it, all in one thread, or in a few if many workers play it."""

    def __init__(self, open_policy: Callable[[], LivePolicy], rules: Rules) -> None:
        self._open = open_policy
        self._rules = rules
        #: Requests, whatever else a thread is to do, and None at the end.
        self._jobs: queue.SimpleQueue[_Job | Callable[[], None] | None] = queue.SimpleQueue()
        self._waiting: deque[_Job] = deque()
        self._policy: LivePolicy | None = None
        self._opened = threading.Event()
        self._failure: BaseException | None = None
        self._reopen_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._concurrent = False  # whether several threads may play the policy at once
        self._changing = threading.Lock()  # the policy
        self._renewing = threading.Lock()  # what bodies must look like
        self._publishing = threading.Lock()  # what is public, which goes forward only
        self._published = 0.0
        self.public: Public | None = None
        self._terms = Terms("", 0, "float32")
        self._table: Any = None
        self.receipts, self.secret = Receipts(b""), b""
        #: The arm that every round gets; None while the policy plays.
        self.switched_off: str | int | None = None
        self._switching = 0  # changes of it that are not kept yet
        self._proved = float("-inf")  # when rounds, or a trial, were last kept
        self._mine = threading.local()  # when this thread's group began
        self._group_began: float | None = None
        self._trial: asyncio.Future[Ready] | None = None
        #: Told how many requests each group had, once it is durable.
        self.on_group: Callable[[int], None] = lambda jobs: None
        #: Told how many seconds a group took that released an estimate.
        self.on_release: Callable[[float], None] = lambda seconds: None
        #: Called now and then, in the event loop.
        self.on_tick: Callable[[], None] = lambda: None

    @property
    def waiting(self) -> int:
        """Requests that have no answer yet."""
        return len(self._waiting)

    @property
    def alive(self) -> bool:
        """Whether the thread that plays is there."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def open(self) -> bool:
        """Whether the policy is open."""
        return self.alive and self._policy is not None and not self._stopping

    async def ready(self) -> Ready:
        """Try whether a round could be kept, in the queue of those that wait; within two seconds."""
        if self._stopping or not self.alive:
            return Ready(False, "the server is stopping")
        if self.switched_off is not None:
            return Ready(True, "play is switched off: every round gets the same arm, and nothing is learned")
        if time.monotonic() - self._proved < _STILL_TRUE:
            return _PLAYED
        if self._trial is None or self._trial.done():
            self._trial = asyncio.get_running_loop().create_future()
            self._jobs.put(functools.partial(self._try, self._trial))
        try:
            return await asyncio.wait_for(asyncio.shield(self._trial), _TRIAL)
        except TimeoutError:
            began, policy = self._group_began, self._policy
            engine = None if policy is None or self._concurrent else policy._engine
            if began is not None and engine is not None and engine.waits_for_a_fit:
                if time.monotonic() - began < self._rules.limits.wait:
                    return Ready(True, "an estimate is being computed; rounds wait for it")
                return Ready(False, "an estimate takes longer than requests may wait")
            return Ready(False, f"nothing could be kept for {_TRIAL:g} seconds; rounds wait or fail")

    async def switch(self, arm: str | int | None) -> None:
        """Give every round one arm, or None to play again; off at once, on when it is kept."""
        self._switching += 1
        try:
            if arm is not None:
                self.switched_off = arm
            await self.submit(functools.partial(keep_switch, arm))
            self.switched_off = arm
            logs.event("switched", off=arm is not None)
        finally:
            self._switching -= 1

    def _try(self, answer: asyncio.Future[Ready]) -> None:
        """Find out whether a round could be kept."""
        policy = self._policy or self._reopened()
        if policy is None:
            found = Ready(False, "the store can't be opened")
        else:
            try:
                if try_keeping(policy):
                    self._proved, found = time.monotonic(), _PLAYED
                else:
                    another, own = "rounds wait for an estimate that another worker computes", _NO_ESTIMATE
                    found = Ready(False, another if self._concurrent else own)
            except Exception as error:  # whatever it is: this thread must go on
                self._give_up(policy, error)
                found = Ready(False, "the store can't be written, or its witness refuses it: the log says")
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop was closed
            self._loop.call_soon_threadsafe(lambda: None if answer.done() else answer.set_result(found))

    async def start(self) -> None:
        """Open the policy; raises what opening raised."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, name="fliphat-owner", daemon=True)
        self._thread.start()
        await asyncio.to_thread(self._opened.wait)
        if self._failure is not None:
            raise self._failure
        self._expire()

    async def stop(self) -> None:
        """Play what was accepted, close the policy, and return."""
        self._stopping = True
        if self._thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(self._thread.join)
        if self._timer is not None:
            self._timer.cancel()

    @property
    def terms(self) -> Terms:
        """What bodies must look like; at least as new as the answers that were given."""
        return self._terms

    def submit(self, asked: Single | Callable[[LivePolicy], Any]) -> asyncio.Future[Any]:
        """Return a future of a round's decision, or of what a function returns, once it is all on disk."""
        if self._stopping:
            raise Refusal(503, "stopping", "the server is stopping; nothing happened")
        if len(self._waiting) >= self._rules.limits.waiting:
            raise Refusal(503, "busy", "too many requests are waiting; nothing happened")
        assert self._loop is not None
        job = _Job(
            asked, self._loop.create_future(), time.monotonic() + self._rules.limits.wait, threading.Lock()
        )
        self._waiting.append(job)
        self._jobs.put(job)
        return job.answer

    # In the event loop

    def _expire(self) -> None:
        """Answer requests whose time is up; looked at a few times in the longest wait."""
        assert self._loop is not None
        now, waiting = time.monotonic(), self._waiting
        while waiting and (waiting[0].answer.done() or waiting[0].deadline < now):
            job = waiting.popleft()
            if job.answer.done():
                continue
            if job.taken.acquire(blocking=False):
                job.answer.set_exception(Refusal(503, "busy", "the wait was too long; nothing happened"))
            else:
                job.answer.set_exception(Refusal(504, "unknown", f"the wait was too long; {_UNKNOWN}"))
        self.on_tick()
        if self._concurrent and not self._stopping:
            self._jobs.put(self._look)  # others release, also while nobody asks this worker for a round
        self._timer = self._loop.call_later(min(1.0, self._rules.limits.wait / 8), self._expire)

    def _deliver(self, answers: list[tuple[_Job, Any, Refusal | None]]) -> None:
        waiting = self._waiting
        for job, result, refusal in answers:
            if job.answer.done():
                continue  # its time was up, or its client went away
            if refusal is None:
                job.answer.set_result(result)
            else:
                job.answer.set_exception(refusal)
        while waiting and waiting[0].answer.done():
            waiting.popleft()

    # In the owner's thread

    def _work(self) -> None:
        try:
            self._become_ready()
        except BaseException as error:
            self._failure = error
            return
        finally:
            self._opened.set()
        helpers: list[threading.Thread] = []
        if self._concurrent:  # each waits for the database most of the time
            threads = self._rules.limits.threads - 1
            helpers = [threading.Thread(target=self._play_groups, daemon=True) for _ in range(threads)]
        for helper in helpers:
            helper.start()
        self._play_groups()
        for helper in helpers:
            helper.join()
        if self._policy is not None:
            self._policy.close()
            self._policy = None

    def _play_groups(self) -> None:
        """Play what comes until the server stops: all that waits at once, or rounds alone among several."""
        largest = _LARGEST_SHARE if self._concurrent else _LARGEST_GROUP
        stop = False
        while not stop:
            job = self._jobs.get()
            group: list[_Job] = []
            while True:
                if job is None:
                    stop = True
                    break
                if not isinstance(job, _Job):
                    job()
                    break
                if job.taken.acquire(blocking=False):
                    group.append(job)
                    if self._concurrent and not isinstance(job.asked, Single):
                        break  # other threads' calls like it are made together with it
                if len(group) >= largest:
                    break
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
            if group:
                self._mine.began = self._group_began = time.monotonic()
                try:
                    answers = self._play(group)
                except BaseException as error:  # a panic of native code, say: this thread must go on
                    if self._policy is not None:
                        self._give_up(self._policy, error)
                    answers = [(job, None, _uncertain()) for job in group]
                self._mine.began = self._group_began = None
                assert self._loop is not None
                with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
                    self._loop.call_soon_threadsafe(self._deliver, answers)
        self._jobs.put(None)  # for the other threads

    def _look(self) -> None:
        policy = self._policy or self._reopened()
        if policy is not None:
            try:
                self._show(policy)
            except (StoreError, OSError, CopyError) as error:
                self._give_up(policy, error)

    def _show(self, policy: LivePolicy) -> None:
        """Show what is public now. What can't be shown takes nothing back: rounds are durable by then."""
        try:
            with self._renewing:
                self._renew_terms(policy)
            self._publish(policy)
        except (StoreError, OSError, CopyError):
            raise
        except Exception as error:
            logs.event("not shown", kind=type(error).__name__)

    def _become_ready(self) -> None:
        policy = self._open()
        engine = policy._engine
        if engine is None or (engine.store is None and not engine.concurrent):
            # After an error it would be opened again, as a new policy that counts users anew.
            policy.close()
            raise ValueError("a policy that is served must have a store: give store=")
        self.receipts, self.secret = Receipts(engine.secret), engine.secret
        self._renew_terms(policy)
        self._policy = policy
        self._concurrent = bool(getattr(policy._engine, "concurrent", False))
        self._publish(policy)

    def _renew_terms(self, policy: LivePolicy) -> None:
        """Follow the policy's table of arms, which a call of this or another worker may have changed."""
        table = getattr(policy._fit, "table", None)
        if self._terms.dim == 0 or table is not self._table:
            self._terms, self._table = terms_of(policy, table), table

    def _play(self, group: list[_Job]) -> list[tuple[_Job, Any, Refusal | None]]:
        """Play a group and make it durable; each request has a result or a refusal of its own."""
        results: list[Any] = []
        played = False
        while len(results) < len(group):
            policy = self._policy or self._reopened()
            if policy is None:
                results.append(Refusal(503, "store", _STORE_FAILED))
                continue
            try:
                some = self._play_some(policy, group, len(results))
                played = played or not all(isinstance(one, Refusal) for one in some)
                results += some
            except (StoreError, OSError, CopyError) as error:
                self._give_up(policy, error)
                # What the group did before is as uncertain: its sync will never come.
                results = [one if isinstance(one, Refusal) else _uncertain() for one in results]
                results += [_uncertain()] * (_run_end(group, len(results)) - len(results))
                played = False
        policy = self._policy
        if policy is not None and played:
            try:
                if not self._concurrent:  # a database's calls are durable when they return
                    policy.flush()
                self._proved = time.monotonic()
                self.on_group(sum(not isinstance(one, Refusal) for one in results))
                self._show(policy)
            except (StoreError, OSError, CopyError) as error:
                self._give_up(policy, error)
                results = [one if isinstance(one, Refusal) else _uncertain() for one in results]
        return [
            (job, None, one) if isinstance(one, Refusal) else (job, one, None)
            for job, one in zip(group, results, strict=True)
        ]

    def _play_some(self, policy: LivePolicy, group: list[_Job], at: int) -> list[Any]:
        """Return results of one request, or of rounds that are played together, from place `at` on."""
        asked = group[at].asked
        if not isinstance(asked, Single):
            try:
                return [asked(policy)]
            except Refusal as refusal:
                return [refusal]
            except (StoreError, OSError, CopyError):
                raise
            except Exception as error:
                return [refused(error) if isinstance(error, (ValueError, TypeError)) else _internal(error)]
        singles: list[Any] = [job.asked for job in group[at : _run_end(group, at)]]
        results: list[Any] = [None] * len(singles)
        try:
            policy._select_each(singles, results)
        except (StoreError, OSError, CopyError):
            raise
        except Exception as error:  # one that is asked for again: those after it were not played
            first = next(place for place, one in enumerate(results) if one is None)
            del results[first:]
            results.append(_internal(error))
        return [refused(one) if isinstance(one, (ValueError, TypeError)) else one for one in results]

    def _give_up(self, policy: LivePolicy, error: BaseException) -> None:
        """Close a policy whose store failed: only the disk knows how much of a call arrived."""
        with self._changing:
            if self._policy is not policy:
                return  # another thread did
            logs.failure("store failed", error)
            self._policy, self._reopen_at = None, time.monotonic() + _REOPEN
            self._proved = float("-inf")
        with contextlib.suppress(Exception):
            policy.close()

    def _reopened(self) -> LivePolicy | None:
        with self._changing:
            return self._policy or self._opened_again()

    def _opened_again(self) -> LivePolicy | None:
        if time.monotonic() < self._reopen_at:
            return None
        try:
            self._become_ready()
        except Exception as error:
            logs.failure("store can't be opened", error)
            self._reopen_at = time.monotonic() + _REOPEN
            return None
        logs.event("store opened again")
        return self._policy

    def _publish(self, policy: LivePolicy) -> None:
        arms, public = self._terms.arms, self.public
        if self._concurrent:  # what is public is asked of the database: not after every round
            same = public is not None and public.shown.get("arms") == arms
            if same and time.monotonic() < self._published + _PUBLISH:
                return
            self._published = time.monotonic()
        before, seen = self.public, policy._look()
        known, history = seen.known, seen.history[: seen.known.episodes]
        same_release = before is not None and before.releases == known.episodes
        with_users = policy._engine is not None and bool(policy._engine.with_users)
        if before is not None and same_release and before.guarantee.user_ids_checked == with_users:
            guarantee, health, scoreboard = before.guarantee, before.health, before.scoreboard
        else:
            guarantee = policy.guarantee
            health = examine(policy._settings, history, known, policy._table)
            scoreboard = boarded(policy._settings, history, known, policy._table)
        if before is not None and same_release and before.shown.get("arms") == arms:
            shown = before.shown
        else:
            shown = _shown(policy, known, arms)
        if not self._switching and policy._engine is not None:
            self.switched_off = policy._engine.switched_off
        standing = seen.episode, seen.remaining, seen.rounds
        now = Public(known, shown, guarantee, health, history, scoreboard, *standing)
        with self._publishing:
            before = self.public
            if before is not None:
                if self._concurrent and (now.releases, now.rounds) < (before.releases, before.rounds):
                    return  # another thread looked later and was faster
                began = getattr(self._mine, "began", None)
                for episode in range(before.releases, now.releases):
                    logs.event("released", episode=episode)
                    if began is not None:
                        self.on_release(time.monotonic() - began)
            self.public = now


_PLAYED: Final = Ready(True, "rounds can be played")


def _run_end(group: list[_Job], at: int) -> int:
    """Return where rounds that can be played together with the one at `at` end; after it, if it is none."""
    end = at
    while end < len(group) and isinstance(group[end].asked, Single):
        end += 1
    return max(end, at + 1)


def _shown(policy: LivePolicy, known: Known, arms: Any) -> dict[str, Any]:
    """Return what was released, for JSON."""
    if isinstance(policy, NamedArms) and policy._named:
        found = policy._coefficients(known)
        there = [arm for arm in arms if arm in found]  # another worker may have removed one
        return {
            "dim": policy._settings.dim,
            "arms": there,
            "coefficients": [found[arm].tolist() for arm in there],
            "episodes_released": known.episodes,
        }
    estimate = known.estimate
    return {
        "dim": estimate.dim,
        "indices": estimate.indices.tolist(),
        "values": estimate.values.tolist(),
        "episodes_released": known.episodes,
    }


def _internal(error: Exception) -> Refusal:
    logs.event("error", kind=type(error).__name__)
    return Refusal(500, "internal", f"an unexpected error; {_UNKNOWN}")


def _uncertain() -> Refusal:
    return Refusal(503, "store", f"{_STORE_FAILED}: {_UNKNOWN}")
