"""A PostgreSQL server of the test's own: on a free port of loopback, in a directory of its own.

`initdb` refuses root, so as root the server runs under an unprivileged account.
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

ACCOUNTS = ("postgres", "nobody")
#: Set by `.ci/run`: where there are binaries, a test that would be skipped fails.
REQUIRED = "FLIPHAT_REQUIRE_POSTGRES"


def skip(reason):
    """Skip a test, unless it must run here."""
    if os.environ.get(REQUIRED) and binaries() is not None:
        pytest.fail(f"{REQUIRED} is set, and there are PostgreSQL binaries: {reason}")
    pytest.skip(reason)


@contextlib.contextmanager
def running_server():
    """A server of this run's own. It keeps nothing that a test does not kill it for."""
    if importlib.util.find_spec("psycopg") is None:
        skip("needs psycopg: pip install 'fliphat[postgres]'")
    server = Server(fsync="off")
    yield server
    server.close()


def binaries():
    """The directory of the server's programs, None if there are none."""
    places = []
    if shutil.which("pg_config"):
        found = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=False)
        places.append(Path(found.stdout.strip()))
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), None)


def account():
    """The account that the server runs as, None for this one."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    skip("root can't run PostgreSQL, and there is no unprivileged account")


class Server:
    """One cluster; `start`, `stop` and `kill` as often as a test likes."""

    def __init__(self, **settings):
        self.bin = binaries()
        if self.bin is None:
            skip("no PostgreSQL server on this machine (pg_config --bindir has no initdb)")
        self.account = account()
        self.directory = Path(tempfile.mkdtemp(prefix="fliphat-postgres-"))
        self.settings = {"listen_addresses": "127.0.0.1", "max_connections": 200} | settings
        if self.account is not None:
            os.chown(self.directory, self.account.pw_uid, self.account.pw_gid)
        self.port = free_port()
        self.process = None
        self.databases = 0
        self.run("initdb", "-D", self.data, "-U", "fliphat", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()

    @property
    def data(self):
        return str(self.directory / "data")

    def as_account(self):
        if self.account is None:
            return {}
        return {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}

    def run(self, program, *arguments):
        subprocess.run(
            [str(self.bin / program), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.directory,
            **self.as_account(),
        )

    def start(self):
        given = {"port": self.port, "unix_socket_directories": "", **self.settings}
        log = open(self.directory / "log", "ab")  # noqa: SIM115
        with log:
            self.process = subprocess.Popen(
                [
                    str(self.bin / "postgres"),
                    "-D",
                    self.data,
                    *(f"--{name}={value}" for name, value in given.items()),
                ],
                stdout=log,
                stderr=log,
                cwd=self.directory,
                **self.as_account(),
            )
        for _ in range(600):
            ready = subprocess.run(
                [str(self.bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False
            )
            if ready.returncode == 0:
                return
            assert self.process.poll() is None, self.log()
            time.sleep(0.05)
        raise AssertionError(self.log())

    def log(self):
        return (self.directory / "log").read_text(errors="replace")

    def stop(self, how=signal.SIGINT):
        """End the server: SIGINT cuts connections, SIGQUIT leaves as a crash does."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None

    def restart(self, how=signal.SIGINT):
        self.stop(how)
        self.start()

    def url(self, database="postgres", **parameters):
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"postgresql://fliphat@127.0.0.1:{self.port}/{database}" + (f"?{query}" if query else "")

    def connect(self, url=None):
        import psycopg

        return psycopg.connect(url or self.url(), autocommit=True)

    def new(self):
        """The address of a new, empty database."""
        self.databases += 1
        name = f"policy_{self.databases}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def close(self):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
