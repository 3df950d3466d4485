"""A lock that lets many threads in at once, and one alone: for policies whose rounds a database orders."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

__all__ = ["Gate"]


class Gate:
    """Entered by any number of threads, each once; `alone` waits until all have left and keeps others out.

    Examples
    --------
    >>> gate = Gate()
    >>> with gate:
    ...     gate._is_owned()
    True
    >>> with gate.alone():
    ...     gate._is_owned()
    False
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside: set[int] = set()
        self._closed = False

    def __enter__(self) -> None:
        with self._condition:
            while self._closed:
                self._condition.wait()
            self._inside.add(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._inside.discard(threading.get_ident())
            self._condition.notify_all()

    def _is_owned(self) -> bool:
        """Whether this thread is inside: as :class:`threading.RLock` names it."""
        return threading.get_ident() in self._inside

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until nobody is inside, and let nobody in."""
        with self._condition:
            while self._closed:
                self._condition.wait()
            self._closed = True
            try:
                while self._inside:
                    self._condition.wait()
                yield
            finally:
                self._closed = False
                self._condition.notify_all()
