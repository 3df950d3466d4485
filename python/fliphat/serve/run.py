"""The server process: opening the policy, tokens, uvicorn, and a graceful stop."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fliphat.policies.health import HealthWarning
from fliphat.policies.live import LivePolicy
from fliphat.serve import logs
from fliphat.serve.app import make_app
from fliphat.serve.opening import open_policy
from fliphat.serve.settings import Limits, Tokens

__all__ = ["Choices", "run_server"]

#: Bytes of a request's head at most, and of what one read may bring beyond it.
_MOST_HEAD: Final = 1 << 19
#: Seconds between two looks after workers, which is also how long one that ended is missed.
_LOOK_AFTER: Final = 0.5
_BACKLOG: Final = 2048
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Everything that an operator chose, as it is handed to each worker.

    Attributes
    ----------
    store : str
        A directory, or the address of a database.
    policy : dict or None
        Arguments of the policy, and perhaps its class as ``policy``; None to go on with those that the store
        was made with.
    """

    store: str
    policy: dict[str, Any] | None
    tokens: Tokens
    limits: Limits = field(default_factory=Limits)
    host: str = "127.0.0.1"
    port: int = 8377
    workers: int = 1
    log_requests: bool = False

    def __post_init__(self) -> None:
        if self.tokens.write is None and self.host not in _LOOPBACK:
            raise ValueError("a server without tokens must listen on 127.0.0.1 only: anybody could write")
        if self.workers > 1 and not self.in_database:
            raise ValueError(
                "workers must be 1 with a directory, which has one owner; a database can have many"
            )

    @property
    def in_database(self) -> bool:
        """Whether the policy lives in a database, where many workers can play it."""
        return self.store.startswith(("postgresql://", "postgres://"))

    def open_policy(self) -> LivePolicy:
        """Open the policy. The server syncs groups of calls itself, before it answers any of them."""
        return open_policy(self.store, self.policy, "full" if self.in_database else "group")


def run_server(chosen: Choices) -> int:
    """Serve until a signal asks to stop; requests under way are answered first."""
    if chosen.workers == 1:
        _serve(chosen)
        return 0
    # An address or arguments that are wrong are said here, once, and not by workers that are started again.
    chosen.open_policy().close()
    _log_to_stderr()
    with tempfile.TemporaryDirectory() as counts, socket.socket() as listening:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts  # workers add up what they count there
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((chosen.host, chosen.port))
        listening.listen(_BACKLOG)
        _supervise(chosen, listening)
    return 0


def _supervise(chosen: Choices, listening: socket.socket) -> None:
    """Keep as many workers as were asked for, until a signal asks to stop; then wait for all of them."""
    context = multiprocessing.get_context("spawn")  # a forked child would share its parent's connections
    asked = threading.Event()

    def started() -> Any:
        worker = context.Process(target=_serve, args=(chosen, [listening]), name="fliphat-worker")
        worker.start()
        return worker

    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: asked.set()) for number in signals]
    workers = [started() for _ in range(chosen.workers)]
    try:
        while not asked.wait(_LOOK_AFTER):
            for place, worker in enumerate(workers):
                if worker.exitcode is not None:
                    logs.event("worker ended", code=worker.exitcode)
                    workers[place] = started()
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _serve(chosen: Choices, sockets: Any = None) -> None:
    """Run one worker."""
    import uvicorn

    warnings.simplefilter("ignore", HealthWarning)  # /healthz and /metrics tell
    _log_to_stderr()
    # Here, where an error is one line for whoever started the server, and not the trace of a framework.
    opened = [chosen.open_policy()]
    app = make_app(
        lambda: opened.pop() if opened else chosen.open_policy(),
        tokens=chosen.tokens,
        limits=chosen.limits,
        log_requests=chosen.log_requests,
    )
    config = uvicorn.Config(
        app,
        host=chosen.host,
        port=chosen.port,
        http=impatient_protocol(chosen.limits.read),
        lifespan="on",
        log_config=None,
        access_log=False,  # it writes addresses of clients
        server_header=False,
        proxy_headers=False,  # nobody looks at who the client is
        ws="none",
        timeout_graceful_shutdown=int(chosen.limits.wait) + 1,
    )
    gc.freeze()  # what is loaded stays; requests leave little behind that only a collection finds
    gc.set_threshold(20_000, 50, 100)
    # uvicorn stops gracefully, then sends itself the signal again: to have been asked to stop is no failure.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        uvicorn.Server(config).run(sockets=sockets)
    finally:
        signal.signal(signal.SIGTERM, before)
        for left in opened:  # the port was taken
            left.close()


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logs.LOGGER.handlers = [handler]
    logs.LOGGER.setLevel(logging.INFO)
    logs.LOGGER.propagate = False


class _HeadWithBody:
    """A transport that sends the head of an answer with its body, in one piece: uvicorn hands over both."""

    def __init__(self, transport: Any) -> None:
        self._transport, self._head = transport, b""

    def write(self, data: bytes) -> None:
        """Send, or hold a head that has a body of known length."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        elif data.endswith(b"\r\n\r\n") and b"\r\ncontent-length: " in data:
            self._head = data
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Send a head whose answer has no body."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        """Send what is held, and close."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def impatient_protocol(seconds: float) -> Any:
    """Return uvicorn's protocol with limits on how long a request's head may take and how large it may be.

    Without them a client that sends a byte now and then keeps a connection for ever, and one that never ends
    its head fills the memory. Answers are sent in one piece.
    """
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class Impatient(HttpToolsProtocol):  # type: ignore[misc, unused-ignore]
        _timer: Any = None  # while a head is awaited
        _in_head = False
        _head_bytes = 0

        def data_received(self, data: bytes) -> None:
            if self._timer is not None:
                self._head_bytes += len(data)  # what is left of the last read may be of the body
                if self._head_bytes > _MOST_HEAD:
                    self.transport.close()
                    return
            super().data_received(data)
            if self._in_head and self._timer is None:  # most heads come whole, and need no timer
                self._timer = self.loop.call_later(seconds, self.transport.close)

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.transport = _HeadWithBody(transport)
            self._timer = self.loop.call_later(seconds, transport.close)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._in_head = True

        def on_headers_complete(self) -> None:
            self._in_head = False
            self._stop_timer()
            super().on_headers_complete()

        def on_response_complete(self) -> None:
            self.transport.flush()
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer, self._head_bytes = None, 0

    return Impatient


def read_token(name: str, file: Path | None) -> str | None:
    """Return a token from a file, or from the environment variable ``FLIPHAT_<NAME>_TOKEN``."""
    if file is not None:
        return file.read_text(encoding="utf-8").strip()
    return os.environ.get(f"FLIPHAT_{name.upper()}_TOKEN")
