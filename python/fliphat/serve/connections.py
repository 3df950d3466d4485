"""Connections of workers, with clients and with their database: how many there may be, and for how long.

A connection has a time by which its next request's head must be whole, or its last answer read. Bytes do not
move it: who sends one now and then is let go as well. Between the head and the answer there is none; the body
and the wait have limits of their own.
"""

from __future__ import annotations

import http
import time
from collections.abc import Iterable
from typing import Any, Final

from fliphat.policies.types import StoreError
from fliphat.serve.settings import Rules

__all__ = ["BESIDE_THREADS", "EXCHANGE", "impatient_protocol", "most_connections", "refuse_too_few"]

#: The name under which a request's scope has what reads and answers it in one piece, with our protocol.
EXCHANGE: Final = "fliphat.exchange"

#: Bytes of a request's head at most, and of what one read may bring beyond it.
_MOST_HEAD: Final = 1 << 19
#: Descriptors that connections leave to the store, its files or database, and to logs.
KEPT_APART: Final = 64
_FEWEST: Final = 8


def most_connections(asked: int) -> int:
    """Return how many connections a worker may have; what the system allows is used as far as it goes.

    Raises
    ------
    ValueError
        If there are too few descriptors for a handful of connections beside a store.
    """
    try:
        import resource
    except ImportError:  # there is no such limit
        return asked
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and asked > hard - KEPT_APART:
        if hard < KEPT_APART + _FEWEST:
            raise ValueError(
                f"a server needs {KEPT_APART + _FEWEST} descriptors at least, and may have {hard}: ulimit -n"
            )
        return int(hard) - KEPT_APART
    return asked


class _Exchange:
    """A request and its answer, each in one piece where nothing has to be waited for."""

    __slots__ = ("_cycle", "_flow")

    def __init__(self, cycle: Any, flow: Any) -> None:
        self._cycle, self._flow = cycle, flow

    def body(self) -> bytes | None:
        """Return the request's body if all of it has come."""
        cycle = self._cycle
        return None if cycle.more_body or cycle.disconnected else bytes(cycle.body)

    def answer(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send an answer, unless its client is slow or leaves, or it must say more: then uvicorn does."""
        cycle = self._cycle
        if self._flow.write_paused or cycle.disconnected or not cycle.keep_alive:
            return False
        parts = [b"HTTP/1.1 %d %s\r\n" % (status, http.HTTPStatus(status).phrase.encode())]
        for name, value in (*cycle.default_headers, *headers):
            parts += (name, b": ", value, b"\r\n")
        parts += (b"\r\n", body)
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        cycle.transport.write(b"".join(parts))
        cycle.on_response()
        return True


def impatient_protocol(rules: Rules) -> Any:
    """Return uvicorn's protocol with limits on connections, on idle ones and on heads.

    A connection beyond the limit takes the place of the one whose time is up first, of those that wait for
    nothing from us; if there is none, it is closed at once.
    """
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    sweeping: list[Any] = []  # the timer, while there are connections

    class Impatient(HttpToolsProtocol):  # type: ignore[misc, unused-ignore]
        _until: float | None = None  # None while an answer is on its way
        _head_bytes = 0

        def connection_made(self, transport: Any) -> None:
            if len(self.connections) >= rules.connections:
                waiting = [one for one in self.connections if one._until is not None]
                if not waiting:
                    self.refused = True
                    transport.abort()
                    return
                min(waiting, key=lambda one: one._until).transport.abort()
            super().connection_made(transport)
            self._until = time.monotonic() + rules.limits.read
            rules.open_connections = len(self.connections)
            if not sweeping:
                sweeping.append(self.loop.call_later(rules.limits.read / 4, self._sweep))

        def _sweep(self) -> None:
            now = time.monotonic()
            for one in list(self.connections):
                if one._until is not None and one._until < now:
                    one.transport.abort()
            sweeping.clear()
            if self.connections:
                seconds = min(rules.limits.read, rules.limits.idle) / 4
                sweeping.append(self.loop.call_later(seconds, self._sweep))

        def data_received(self, data: bytes) -> None:
            if self.parser is None:  # aborted
                return
            if self._until is not None:
                self._head_bytes += len(data)  # what is left of the last read may be of the body
                if self._head_bytes > _MOST_HEAD:
                    self.transport.abort()
                    return
            super().data_received(data)

        def on_headers_complete(self) -> None:
            self._head_bytes = 0
            if not self.flow.write_paused:
                self._until = None
            super().on_headers_complete()
            self.scope["extensions"] = {EXCHANGE: _Exchange(self.cycle, self.flow)}

        def pause_writing(self) -> None:
            super().pause_writing()  # its client does not read
            self._until = time.monotonic() + rules.limits.idle

        def resume_writing(self) -> None:
            super().resume_writing()
            if self.cycle is not None and not self.cycle.response_complete:
                self._until = None

        def on_response_complete(self) -> None:
            if self.pipeline or self.transport.is_closing():
                super().on_response_complete()
                return
            # Without uvicorn's timer for every answer: all connections share one.
            self._until = time.monotonic() + rules.limits.idle
            self.server_state.total_requests += 1
            self.flow.resume_reading()

        def connection_lost(self, exc: Exception | None) -> None:
            if getattr(self, "refused", False):
                return
            super().connection_lost(exc)
            rules.open_connections = len(self.connections)

    return Impatient


# Connections to a database

#: Connections of a worker beside those of its threads: one renews a lease, one is made while another ends.
BESIDE_THREADS: Final = 2

_ASK: Final = """
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
    (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user),
    (SELECT datconnlimit FROM pg_database WHERE datname = current_database())
"""


def refuse_too_few(url: str, workers: int, threads: int) -> None:
    """Raise if a server has fewer connections than workers with so many threads need."""
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            limits = connection.execute(_ASK).fetchone()
    except psycopg.Error as error:
        raise StoreError(
            f"the database can't be reached ({type(error).__name__}): check address, account and password"
        ) from None
    assert limits is not None
    allowed = min(limit for limit in limits if limit is not None and limit >= 0)
    need = workers * (threads + BESIDE_THREADS)
    if need > allowed:
        raise ValueError(
            f"{workers} workers of {threads} threads need up to {need} connections, and the database allows "
            f"{allowed}: fewer workers, fewer threads (limits), or max_connections"
        )
