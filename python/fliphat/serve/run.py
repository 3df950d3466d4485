"""The server process: opening the policy, tokens, uvicorn, and a graceful stop."""

from __future__ import annotations

import gc
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import sys
import tempfile
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fliphat.policies.health import HealthWarning
from fliphat.policies.live import LivePolicy
from fliphat.policies.store.postgres import is_url
from fliphat.serve import logs
from fliphat.serve.app import make_app
from fliphat.serve.connections import impatient_protocol, most_connections, refuse_too_few
from fliphat.serve.decisions import DecisionLog
from fliphat.serve.opening import open_policy
from fliphat.serve.settings import Limits, Rules, Tokens

__all__ = ["Choices", "read_tokens", "run_server"]

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
    write_tokens, operator_tokens, limits : Path or None
        Files that are read when the server starts, and again on SIGHUP. Without the first two, tokens are
        those of the environment.
    no_token : bool
        Whether everybody on this machine may do everything.
    """

    store: str
    policy: dict[str, Any] | None
    write_tokens: Path | None = None
    operator_tokens: Path | None = None
    no_token: bool = False
    limits: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8377
    workers: int = 1
    log_requests: bool = False
    decision_log: Path | None = None

    def __post_init__(self) -> None:
        if self.no_token and self.host not in _LOOPBACK:
            raise ValueError("a server without tokens must listen on 127.0.0.1 only: anybody could write")
        if self.workers > 1 and not self.in_database:
            raise ValueError(
                "workers must be 1 with a directory, which has one owner; a database can have many"
            )

        if self.workers > 1 and self.decision_log is not None:
            raise ValueError("a decision log is one server's: it goes with one worker")

    @property
    def in_database(self) -> bool:
        """Whether the policy lives in a database, where many workers can play it."""
        return is_url(self.store)

    def rules(self) -> Rules:
        """Return the tokens and limits as their files have them now."""
        write = read_tokens("write", self.write_tokens)
        operator = read_tokens("operator", self.operator_tokens)
        if self.no_token:
            if write or operator:
                raise ValueError("--no-token goes with no token: leave one or the other out")
        elif not write or not operator:
            raise ValueError(
                "tokens for writing and for operators must be given, by --write-token-file and "
                "--operator-token-file or FLIPHAT_WRITE_TOKEN and FLIPHAT_OPERATOR_TOKEN; or --no-token"
            )
        limits = Limits() if self.limits is None else Limits.from_file(self.limits)
        tokens = Tokens(write=write, operator=operator)
        return Rules(tokens=tokens, limits=limits, connections=most_connections(limits.connections))

    def open_policy(self) -> LivePolicy:
        """Open the policy. The server syncs groups of calls itself, before it answers any of them."""
        return open_policy(self.store, self.policy, "full" if self.in_database else "group")


def run_server(chosen: Choices) -> int:
    """Serve until a signal asks to stop; requests under way are answered first."""
    rules = chosen.rules()
    if chosen.in_database:
        refuse_too_few(chosen.store, chosen.workers, rules.limits.threads)
    if chosen.workers == 1:
        _serve(chosen)
        return 0
    # An address or arguments that are wrong are said here, once, and not by workers that are started again.
    chosen.open_policy().close()
    logs.to_stderr()
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
        worker = context.Process(target=_work, args=(chosen, [listening]), name="fliphat-worker")
        worker.start()
        return worker

    def reload(*_: Any) -> None:
        for worker in workers:
            if worker.pid is not None and worker.exitcode is None:
                os.kill(worker.pid, signal.SIGHUP)

    workers: list[Any] = []
    signals = {signal.SIGTERM: lambda *_: asked.set(), signal.SIGINT: lambda *_: asked.set()}
    before = {number: signal.signal(number, do) for number, do in (signals | _on_reload(reload)).items()}
    workers += [started() for _ in range(chosen.workers)]
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
        for number, handler in before.items():
            signal.signal(number, handler)


def _on_reload(do: Any) -> dict[signal.Signals, Any]:
    return {signal.SIGHUP: do} if hasattr(signal, "SIGHUP") else {}


def _work(chosen: Choices, sockets: Any) -> None:
    """Run a worker that ends when its supervisor does, however that ended."""
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to reload
    logs.to_stderr()
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        logs.event("the supervisor ended")
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="fliphat-watch", daemon=True).start()
    try:
        _serve(chosen, sockets)
    except Exception as error:
        logs.failure("not started", error)
        sys.exit(1)


def _serve(chosen: Choices, sockets: Any = None) -> None:
    """Run one worker."""
    import uvicorn

    warnings.simplefilter("ignore", HealthWarning)  # /status and /metrics tell
    # Here, where an error is one line for whoever started the server, and not the trace of a framework.
    opened = [chosen.open_policy()]
    rules = chosen.rules()
    logs.to_stderr()
    decisions = None if chosen.decision_log is None else DecisionLog(chosen.decision_log)
    app = make_app(
        lambda: opened.pop() if opened else chosen.open_policy(),
        tokens=rules.tokens,
        limits=rules.limits,
        log_requests=chosen.log_requests,
        decision_log=decisions,
    )
    rules = _followed(app.state.service.rules, rules)

    def reload(*_: Any) -> None:
        try:
            _followed(rules, chosen.rules())
        except (ValueError, OSError) as error:
            logs.failure("not reloaded", error)
        else:
            logs.event("reloaded")

    config = uvicorn.Config(
        app,
        host=chosen.host,
        port=chosen.port,
        http=impatient_protocol(rules),
        lifespan="on",
        log_config=None,
        access_log=False,  # it writes addresses of clients
        server_header=False,
        proxy_headers=False,  # nobody looks at who the client is
        ws="none",
        timeout_graceful_shutdown=int(rules.limits.wait) + 1,
    )
    gc.freeze()  # what is loaded stays; requests leave little behind that only a collection finds
    gc.set_threshold(20_000, 50, 100)
    # uvicorn stops gracefully, then sends itself the signal again: to have been asked to stop is no failure.
    handlers = {signal.SIGTERM: lambda *_: None} | _on_reload(reload)
    before = {number: signal.signal(number, do) for number, do in handlers.items()}
    try:
        uvicorn.Server(config).run(sockets=sockets)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if decisions is not None:
            decisions.close()
        for left in opened:  # the port was taken
            left.close()


def _followed(rules: Rules, new: Rules) -> Rules:
    """Put what was read into force, and return what is in force."""
    rules.tokens, rules.limits, rules.connections = new.tokens, new.limits, new.connections
    return rules


def read_tokens(name: str, file: Path | None) -> tuple[str, ...] | None:
    """Return the tokens of a file, one a line, or the environment variable ``FLIPHAT_<NAME>_TOKEN``."""
    if file is None:
        given = os.environ.get(f"FLIPHAT_{name.upper()}_TOKEN")
        return (given,) if given else None
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    return tuple(line for line in lines if line) or None
