"""A policy served on a free port of this machine, for as long as a test needs it."""

import contextlib
import http.client
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import uvicorn

from fliphat.serve import Client, Limits, ServerError, Tokens, make_app
from fliphat.serve.connections import impatient_protocol
from fliphat.serve.logs import LOGGER

WRITE, OPERATOR = "a token for writing", "a token for operators"
TOKENS = Tokens(write=WRITE, operator=OPERATOR)


def number(identity):
    """The number of an id as clients have it, without its receipt."""
    return int(identity.split(".")[0])


class Served:
    def __init__(self, app, port):
        self.app, self.port = app, port
        self.service = app.state.service
        self.owner = self.service.owner

    def client(self, **options):
        return Client(f"http://127.0.0.1:{self.port}", WRITE, **options)

    def ask(self, method, path, body=None, *, token=WRITE, kind="application/json", headers=()):
        """Return the status and what was answered."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            given = {"Content-Type": kind, **dict(headers)}
            if token is not None:
                given["Authorization"] = f"Bearer {token}"
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            content = answer.read()
            if answer.headers["Content-Type"] == "application/json":
                content = json.loads(content)
            return answer.status, content
        finally:
            connection.close()

    def id(self, number):
        """The id of a decision as its client has it."""
        return self.owner.receipts.id(number)

    def raw(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


@contextlib.contextmanager
def served(open_policy, *, limits=None, tokens=TOKENS, log_requests=False, decision_log=None):
    limits = limits or Limits()
    app = make_app(
        open_policy, tokens=tokens, limits=limits, log_requests=log_requests, decision_log=decision_log
    )
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        http=impatient_protocol(app.state.service.rules),
        timeout_keep_alive=3600,
        lifespan="on",
        log_config=None,
        access_log=False,
        ws="none",
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield Served(app, listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()
    assert not thread.is_alive()


@contextlib.contextmanager
def lines_of_the_log():
    """Collect what the server writes to its log."""
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    before = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(before)


SERVE = "import sys; from fliphat.cli import main; sys.exit(main())"


class Process:
    """A server that `fliphat serve` starts, and that ends by a signal."""

    def __init__(self, store, *arguments, **options):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        tokens = {"FLIPHAT_WRITE_TOKEN": WRITE, "FLIPHAT_OPERATOR_TOKEN": OPERATOR}
        command = [sys.executable, "-c", SERVE, "serve", str(store), "--port", str(self.port), *arguments]
        self.process = subprocess.Popen(
            command, env=os.environ | tokens, stderr=subprocess.PIPE, text=True, **options
        )
        self.client = Client(f"http://127.0.0.1:{self.port}", WRITE, attempts=8)
        for _ in range(600):
            assert self.process.poll() is None, self.process.stderr.read()
            try:
                assert self.client.get("/readyz")["status"] == "ready"
                return
            except (OSError, ServerError):
                time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)
        self.client.close()
        self.process.stderr.close()

    def end(self, number=signal.SIGTERM):
        self.client.close()
        self.process.send_signal(number)
        code = self.process.wait(30)
        lines = self.process.stderr.read()
        self.process.stderr.close()
        return code, lines
