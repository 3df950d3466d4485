"""Calls of several threads as one: whoever comes first makes the call for all that wait.

A call to a database costs a round trip, a transaction and a wait for the disk, whether it brings one round or
ten. While one such call is under way, what other threads bring gathers; the first of them then makes the next
call for all. Alone, a thread makes its own call at once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

__all__ = ["Combined", "CutOff"]

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")

#: Items of one call at most, so that the first of them need not wait for all.
_MOST: Final = 64


class CutOff(Exception):
    """The thread that made the call for this one was interrupted: it may or may not have happened."""


class _Waiting(Generic[_Item, _Answer]):
    """One thread's item, and what became of it."""

    __slots__ = ("answer", "error", "item", "leads", "woken")

    def __init__(self, item: _Item) -> None:
        self.item = item
        self.answer: list[_Answer] = []
        self.error: BaseException | None = None
        self.leads = False
        self.woken = threading.Lock()
        self.woken.acquire()


class Combined(Generic[_Item, _Answer]):
    """Makes one call at a time.

    Parameters
    ----------
    call : function
        Given a list of items, returns their answers. What it raises is raised for every item.
    fits : function
        Whether an item can be in one call with others; asked with the list of those and the item.

    Examples
    --------
    >>> doubled = Combined(lambda items: [2 * item for item in items], lambda others, item: True)
    >>> doubled(4)
    8
    """

    def __init__(
        self, call: Callable[[list[_Item]], list[_Answer]], fits: Callable[[list[_Item], _Item], bool]
    ) -> None:
        self._call, self._fits = call, fits
        self._lock = threading.Lock()
        self._queue: deque[_Waiting[_Item, _Answer]] = deque()
        self._under_way = False

    def __call__(self, item: _Item) -> _Answer:
        """Return the answer to one item."""
        mine: _Waiting[_Item, _Answer] = _Waiting(item)
        with self._lock:
            self._queue.append(mine)
            mine.leads = not self._under_way
            self._under_way = True
        if not mine.leads:
            self._wait(mine)
        if mine.leads:
            self._lead(mine)
        if mine.error is not None:
            raise mine.error
        return mine.answer[0]

    def _wait(self, mine: _Waiting[_Item, _Answer]) -> None:
        try:
            mine.woken.acquire()
        except BaseException:  # an interrupt: nobody may wait for a thread that has left
            with self._lock:
                if mine in self._queue:
                    self._queue.remove(mine)
                leads = mine.leads
            if leads:
                self._hand_on()
            raise

    def _lead(self, mine: _Waiting[_Item, _Answer]) -> None:
        """Make a call for the first that wait, of which this thread is one, and let another lead."""
        group: list[_Waiting[_Item, _Answer]] = []
        try:
            with self._lock:
                items: list[_Item] = []
                while (
                    self._queue
                    and len(items) < _MOST
                    and (not items or self._fits(items, self._queue[0].item))
                ):
                    group.append(self._queue.popleft())
                    items.append(group[-1].item)
            for one, answer in zip(group, self._call(items), strict=True):
                one.answer.append(answer)
        except Exception as error:
            for one in group:
                one.error = error
        except BaseException:
            for one in group:
                one.error = CutOff()
            raise
        finally:
            for one in group:
                if one is not mine:
                    one.woken.release()
            self._hand_on()

    def _hand_on(self) -> None:
        with self._lock:
            if self._queue:
                self._queue[0].leads = True
                self._queue[0].woken.release()
            else:
                self._under_way = False
