"""The one thread that plays a policy: a group of requests, one sync, then their answers.

Whoever asks waits until everything that the group did is on disk. While the disk is busy the next group
gathers, so that the number of syncs follows the disk and not the number of clients. Fits run in this thread
too, outside the event loop: addresses that only read answer meanwhile, and rounds wait, each at most as long
as the limits say.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fliphat.policies.live import LivePolicy
from fliphat.policies.types import CopyError, SparseEstimate, StoreError
from fliphat.privacy.guarantee import Guarantee
from fliphat.serve import logs
from fliphat.serve.bodies import Refusal
from fliphat.serve.settings import Limits

__all__ = ["Owner", "Public"]

#: Jobs of one group at most, so that the first of them need not wait for ever.
_LARGEST_GROUP: Final = 1024
#: Threads that play a policy which several may play: each waits for the database most of the time.
_THREADS: Final = 8
#: Seconds between two looks at what such a policy has released, by whichever worker, while rounds are played.
_PUBLISH: Final = 0.1
#: Seconds between attempts to open a store that failed.
_REOPEN: Final = 1.0

_STORE_FAILED: Final = "the store can't be written now; nothing acknowledged is lost"
_UNKNOWN: Final = "this may or may not have happened: try again with the same key"


@dataclass(frozen=True)
class Public:
    """What everybody may see of the policy, as it was when a group was done."""

    estimate: SparseEstimate
    guarantee: Guarantee
    findings: tuple[str, ...]
    episode: int
    remaining: int
    rounds: int


@dataclass(slots=True)
class _Job:
    """One request that waits. Whoever gets `taken` decides: the owner plays it, or its time is up."""

    play: Callable[[LivePolicy], Any]
    answer: asyncio.Future[Any]
    deadline: float
    taken: threading.Lock


class _Look:
    """Asks a thread to look at what other workers have released."""


class Owner:
    """Opens the policy, plays it and closes it, all in one thread, or in a few if many workers play it."""

    def __init__(self, open_policy: Callable[[], LivePolicy], limits: Limits) -> None:
        self._open = open_policy
        self._limits = limits
        self._jobs: queue.SimpleQueue[_Job | _Look | None] = queue.SimpleQueue()
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
        self._changing = threading.Lock()  # the policy, and what is public of it
        self._published = 0.0
        self.public: Public | None = None
        self.dim, self.dtype = 0, "float32"
        #: Told how many requests each group had, once it is durable.
        self.on_group: Callable[[int], None] = lambda jobs: None

    @property
    def waiting(self) -> int:
        """Requests that have no answer yet."""
        return len(self._waiting)

    @property
    def well(self) -> bool:
        """Whether rounds can be played."""
        return self._policy is not None and not self._stopping

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

    def submit(self, play: Callable[[LivePolicy], Any]) -> asyncio.Future[Any]:
        """Return a future of what `play` returns, once it and everything it did is on disk."""
        if self._stopping:
            raise Refusal(503, "stopping", "the server is stopping; nothing happened")
        if len(self._waiting) >= self._limits.waiting:
            raise Refusal(503, "busy", "too many requests are waiting; nothing happened")
        assert self._loop is not None
        job = _Job(play, self._loop.create_future(), time.monotonic() + self._limits.wait, threading.Lock())
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
        if self._concurrent and not self._stopping:
            self._jobs.put(_Look())  # others release, also while nobody asks this worker for a round
        self._timer = self._loop.call_later(min(1.0, self._limits.wait / 8), self._expire)

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
        if self._concurrent:
            helpers = [threading.Thread(target=self._play_groups, daemon=True) for _ in range(_THREADS - 1)]
        for helper in helpers:
            helper.start()
        self._play_groups()
        for helper in helpers:
            helper.join()
        if self._policy is not None:
            self._policy.close()
            self._policy = None

    def _play_groups(self) -> None:
        """Play what comes until the server stops: all that waits at once, or one by one among several."""
        largest = 1 if self._concurrent else _LARGEST_GROUP
        stop = False
        while not stop:
            job = self._jobs.get()
            group: list[_Job] = []
            while True:
                if job is None:
                    stop = True
                    break
                if isinstance(job, _Look):
                    self._look()
                    break
                if job.taken.acquire(blocking=False):
                    group.append(job)
                if len(group) >= largest:
                    break
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
            if group:
                answers = self._play(group)
                assert self._loop is not None
                with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
                    self._loop.call_soon_threadsafe(self._deliver, answers)
        self._jobs.put(None)  # for the other threads

    def _look(self) -> None:
        policy = self._policy or self._reopened()
        if policy is not None:
            try:
                self._publish(policy)
            except (StoreError, OSError, CopyError) as error:
                self._give_up(policy, error)

    def _become_ready(self) -> None:
        policy = self._open()
        self._policy, self.dim, self.dtype = policy, policy._settings.dim, policy._settings.dtype
        self._concurrent = bool(getattr(policy._engine, "concurrent", False))
        self._publish(policy)

    def _play(self, group: list[_Job]) -> list[tuple[_Job, Any, Refusal | None]]:
        answers: list[tuple[_Job, Any, Refusal | None]] = []
        played = False
        for job in group:
            policy = self._policy or self._reopened()
            if policy is None:
                answers.append((job, None, Refusal(503, "store", _STORE_FAILED)))
                continue
            try:
                answers.append((job, job.play(policy), None))
                played = True
            except Refusal as refusal:
                answers.append((job, None, refusal))
            except (StoreError, OSError, CopyError) as error:
                self._give_up(policy, error)
                # What the group did before is as uncertain: its sync will never come.
                answers = [one if one[2] is not None else (one[0], None, _uncertain()) for one in answers]
                answers.append((job, None, _uncertain()))
                played = False
            except Exception as error:
                logs.event("error", kind=type(error).__name__)
                answers.append((job, None, Refusal(500, "internal", f"an unexpected error; {_UNKNOWN}")))
                played = True
        policy = self._policy
        if policy is not None and played:
            try:
                if not self._concurrent:  # a database's calls are durable when they return
                    policy.flush()
                self.on_group(sum(refusal is None for _, _, refusal in answers))
                self._publish(policy)
            except (StoreError, OSError, CopyError) as error:
                self._give_up(policy, error)
                answers = [one if one[2] is not None else (one[0], None, _uncertain()) for one in answers]
        return answers

    def _give_up(self, policy: LivePolicy, error: BaseException) -> None:
        """Close a policy whose store failed: only the disk knows how much of a call arrived."""
        with self._changing:
            if self._policy is not policy:
                return  # another thread did
            logs.event("store failed", kind=type(error).__name__)
            self._policy, self._reopen_at = None, time.monotonic() + _REOPEN
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
            logs.event("store can't be opened", kind=type(error).__name__)
            self._reopen_at = time.monotonic() + _REOPEN
            return None
        logs.event("store opened again")
        return self._policy

    def _publish(self, policy: LivePolicy) -> None:
        if self._concurrent:  # what is public is asked of the database: not after every round
            if time.monotonic() < self._published + _PUBLISH:
                return
            self._published = time.monotonic()
        before, seen = self.public, policy._look()
        with_users = policy._engine is not None and bool(policy._engine.with_users)
        if before is not None and (before.episode, before.guarantee.user_ids_checked) == (
            seen.episode,
            with_users,
        ):
            guarantee, findings = before.guarantee, before.findings
        else:
            guarantee, findings = policy.guarantee, policy.health.findings
        if before is not None and before.episode != seen.episode:
            logs.event("released", episode=seen.episode - 1)
        self.public = Public(seen.estimate, guarantee, findings, seen.episode, seen.remaining, seen.rounds)


def _uncertain() -> Refusal:
    return Refusal(503, "store", f"{_STORE_FAILED}: {_UNKNOWN}")
