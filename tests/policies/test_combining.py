"""Calls of several threads that are made as one: who gets which answer, errors, interrupts."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from fliphat.policies.engine import combining
from fliphat.policies.engine.combining import Combined, CutOff


class Calls:
    """Answers items with their doubles; can be held, and raise."""

    def __init__(self):
        self.groups, self.begun, self.go_on = [], threading.Semaphore(0), threading.Semaphore(0)
        self.held, self.error = False, None

    def __call__(self, items):
        self.groups.append(list(items))
        if self.held:
            self.begun.release()
            assert self.go_on.acquire(timeout=30)
        if self.error is not None:
            raise self.error
        return [2 * item for item in items]


def waiting(combined, count):
    """Return when so many items wait for the call under way."""
    until = time.monotonic() + 30
    while len(combined._queue) < count and time.monotonic() < until:
        time.sleep(0.001)


@pytest.fixture
def calls():
    return Calls()


def test_alone_an_item_has_its_own_call(calls):
    combined = Combined(calls, lambda others, item: True)
    assert [combined(item) for item in range(5)] == [0, 2, 4, 6, 8]
    assert calls.groups == [[0], [1], [2], [3], [4]]


def test_items_that_come_meanwhile_are_one_call(calls):
    combined = Combined(calls, lambda others, item: True)
    calls.held = True
    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(combined, 0)
        assert calls.begun.acquire(timeout=30)
        others = [pool.submit(combined, item) for item in range(1, 6)]
        waiting(combined, 5)
        calls.go_on.release(), calls.go_on.release()
        assert first.result(30) == 0
        assert [other.result(30) for other in others] == [2, 4, 6, 8, 10]
    assert calls.groups[0] == [0] and sorted(calls.groups[1]) == [1, 2, 3, 4, 5] and len(calls.groups) == 2
    calls.held = False
    assert combined(7) == 14  # and the next one is alone again


def test_items_that_do_not_fit_wait_for_the_next_call(calls):
    combined = Combined(calls, lambda others, item: item not in others)
    calls.held = True
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(combined, 0)]
        assert calls.begun.acquire(timeout=30)
        futures += [pool.submit(combined, 1) for _ in range(3)]
        waiting(combined, 3)
        for _ in range(4):
            calls.go_on.release()
        assert [future.result(30) for future in futures] == [0, 2, 2, 2]
    assert calls.groups == [[0], [1], [1], [1]]


def test_an_error_is_everybodys_of_that_call_and_nobody_elses(calls):
    combined = Combined(calls, lambda others, item: True)
    calls.held, calls.error = True, ValueError("no")
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(combined, 0)]
        assert calls.begun.acquire(timeout=30)
        futures += [pool.submit(combined, item) for item in (1, 2)]
        waiting(combined, 2)
        calls.go_on.release(), calls.go_on.release()
        for future in futures:
            with pytest.raises(ValueError, match="no"):
                future.result(30)
    calls.held, calls.error = False, None
    assert combined(1) == 2


def test_an_interrupted_call_is_cut_off_for_the_others_and_another_leads(calls):
    combined = Combined(calls, lambda others, item: True)
    calls.held = True
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(combined, 0)
        assert calls.begun.acquire(timeout=30)
        others = [pool.submit(combined, item) for item in (1, 2)]
        waiting(combined, 2)
        calls.go_on.release()
        assert first.result(30) == 0 and calls.begun.acquire(timeout=30)
        last = pool.submit(combined, 3)
        waiting(combined, 1)
        calls.error = KeyboardInterrupt()
        calls.go_on.release()
        raised = {type(other.exception(30)) for other in others}
        assert raised == {KeyboardInterrupt, CutOff}
        assert calls.begun.acquire(timeout=30)
        calls.error = None
        calls.go_on.release()
        assert last.result(30) == 6


@pytest.mark.parametrize("leads", [False, True])
def test_a_thread_that_is_interrupted_while_it_waits_leaves_nobody_behind(calls, leads, monkeypatch):
    combined = Combined(calls, lambda others, item: True)
    calls.held = True

    class Interrupted:
        """A lock whose wait ends with an interrupt, before or after leadership was handed to it."""

        def __init__(self, real):
            self.real = real

        def acquire(self):
            if leads:
                self.real.acquire()
            raise KeyboardInterrupt

        def release(self):
            self.real.release()

    class Leaving(combining._Waiting):
        def __init__(self, item):
            super().__init__(item)
            if item == 1:
                self.woken = Interrupted(self.woken)

    monkeypatch.setattr(combining, "_Waiting", Leaving)

    def leave():
        with pytest.raises(KeyboardInterrupt):
            combined(1)

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(combined, 0)
        assert calls.begun.acquire(timeout=30)
        left = pool.submit(leave)
        if leads:
            waiting(combined, 1)
        else:
            left.result(30)
        last = pool.submit(combined, 2)
        waiting(combined, 2 if leads else 1)
        calls.go_on.release(), calls.go_on.release()
        assert first.result(30) == 0 and left.result(30) is None and last.result(30) == 4
    assert calls.groups == [[0], [2]]
