"""The trial's faults on a database that several servers play: an independent log has what was acknowledged.

Clients note every answer; after each fault all keys are asked for again. Nothing acknowledged may be lost or
changed, no round may count twice, and play must go on by itself. How long nobody was answered is printed, and
bounded widely: the machine that runs this may be busy.
"""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

from fliphat import FLIPHAT
from fliphat.policies.engine.lifecycle import LEASE
from fliphat.policies.store.inspect import inspect_path, verify_path
from fliphat.serve import Client, ServerError
from postgres_server import running_server
from served import OPERATOR, WRITE, number

pytestmark = pytest.mark.slow

DIM, CLIENTS, SERVERS = 20, 6, 3
PLAYER = "player"
NEW = ["--dim", str(DIM), "--sparsity", "2", "--epsilon", "1", "--delta", "0.01"]
GOOD = np.ones((3, DIM), np.float32)
#: Seconds without an answer, beyond the fault's own, on a machine that does something else as well.
BOUND = 30

#: `fliphat serve` that stops itself when it has just got the right to fit, if a file says so.
HANGS = """
import os, signal, sys
from fliphat.cli import main
from fliphat.policies.engine import faults
def reached(name, flag=sys.argv.pop(1)):
    if name == "claim durable":
        try:
            os.remove(flag)
        except FileNotFoundError:
            return
        os.kill(os.getpid(), signal.SIGSTOP)
faults.reached = reached
sys.exit(main())
"""


@pytest.fixture
def database():
    with running_server() as server:
        yield server


class Trial:
    """Servers, clients that play through faults, and the log of what they were told."""

    def __init__(self, url, folder):
        self.url, self.flag = url, folder / "hang"
        self.ports = [free_port() for _ in range(SERVERS)]
        self.processes = [None] * SERVERS
        self.acknowledged, self.times, self.lock = {}, [], threading.Lock()
        self.stop, self.names = threading.Event(), itertools.count()
        self.start(0, *NEW)  # alone: it makes the policy
        for place in range(1, SERVERS):
            self.start(place)
        self.threads = [threading.Thread(target=self.play, args=(i,)) for i in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def start(self, place, *more):
        command = [sys.executable, "-c", HANGS, str(self.flag), "serve", self.url, *more]
        tokens = {"FLIPHAT_WRITE_TOKEN": WRITE, "FLIPHAT_OPERATOR_TOKEN": OPERATOR}
        self.processes[place] = subprocess.Popen(
            [*command, "--port", str(self.ports[place])],
            env=os.environ | tokens,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + 120
        while self.ready(place) != 200:
            assert time.monotonic() < until and self.processes[place].poll() is None
            time.sleep(0.1)

    def ready(self, place):
        """The status of /readyz; 0 if there is no answer."""
        with Client(f"http://127.0.0.1:{self.ports[place]}", attempts=1, timeout=4) as client:
            try:
                client.get("/readyz")
                return 200
            except ServerError as error:
                return error.status
            except OSError:
                return 0

    def play(self, mine):
        for turn in itertools.count(mine):
            url = f"http://127.0.0.1:{self.ports[turn % SERVERS]}"
            with Client(url, WRITE, attempts=1, timeout=8) as client:
                for _ in range(20):
                    if self.stop.is_set():
                        return
                    key = f"key {next(self.names)}"
                    try:
                        decided = client.select(GOOD, key=key)
                        self.note(key, decided.id)
                        client.update(decided, 1.0)
                    except (OSError, ServerError):
                        time.sleep(0.05)
                        break  # to another server, with another round

    def note(self, key, identity):
        with self.lock:
            assert self.acknowledged.setdefault(key, identity) == identity
            self.times.append(time.monotonic())

    def played_on(self, rounds=200):
        """Wait until so many more rounds were answered."""
        wanted, until = len(self.times) + rounds, time.monotonic() + 120
        while len(self.times) < wanted:
            assert time.monotonic() < until, "play did not go on"
            time.sleep(0.05)

    def silence(self, since):
        with self.lock:
            times = [since, *(one for one in self.times if one >= since)]
        return max(after - before for before, after in itertools.pairwise(times))

    def check(self):
        """Ask for every acknowledged round again, at a server that may not have played it."""
        with self.lock:
            told = dict(self.acknowledged)
        assert len(set(told.values())) == len(told)
        alive = next(place for place in range(SERVERS) if self.ready(place) == 200)
        with Client(f"http://127.0.0.1:{self.ports[alive]}", WRITE) as client:
            for key, identity in told.items():
                assert client.select(GOOD * 2, key=key).id == identity

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(60)
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes:
            assert process.wait(60) == 0
        told = inspect_path(self.url)
        numbers = {number(identity) % 2**40 for identity in self.acknowledged.values()}
        assert len(numbers) == len(self.acknowledged) <= told["rounds"]
        assert max(numbers) <= told["rounds"]
        with FLIPHAT.open(self.url) as policy:
            seen = sum(one.rounds for one in policy.history)
            assert seen <= policy.rounds and len({one.episode for one in policy.history}) == len(
                policy.history
            )
            assert [one.first_round for one in policy.history] == [
                1 + sum(one.rounds for one in policy.history[:place]) for place in range(len(policy.history))
            ]
        assert verify_path(self.url).ok


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def a_server_is_killed(trial, database):
    trial.processes[0].kill()
    trial.processes[0].wait(30)
    trial.start(0)
    return 0.0


def the_fitter_hangs(trial, database):
    trial.flag.touch()
    until = time.monotonic() + 60
    while trial.flag.exists():
        assert time.monotonic() < until, "nobody claimed an episode"
        time.sleep(0.05)
    trial.played_on()  # while it hangs: another one has overtaken it
    for process in trial.processes:
        process.send_signal(signal.SIGCONT)
    return LEASE


def a_reader_holds_its_locks(trial, database):
    with database.connect(trial.url) as reader:
        reader.execute("BEGIN")
        for table in ("rounds", "rewards", "episodes", "keys", "users", "policy"):
            reader.execute(f"SELECT count(*) FROM fliphat_{table}")
        before = inspect_path(trial.url)["episode"]
        until = time.monotonic() + 60
        while inspect_path(trial.url)["episode"] < before + 2:  # releases go on
            assert time.monotonic() < until
            time.sleep(0.1)
        reader.execute("ROLLBACK")
    return 0.0


def the_database_restarts(trial, database):
    began = time.monotonic()
    database.stop()
    time.sleep(1)
    assert [trial.ready(place) for place in range(SERVERS)] == [503] * SERVERS
    database.start()
    return time.monotonic() - began


def the_database_is_read_only(trial, database):
    name = trial.url.rsplit("/", 1)[1]
    began = time.monotonic()
    for state in ("on", "off"):
        with database.connect() as admin:
            admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {state}")
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
            )
        if state == "on":
            time.sleep(1)
            assert [trial.ready(place) for place in range(SERVERS)] == [503] * SERVERS
    return time.monotonic() - began


def connections_run_out(trial, database):
    name = trial.url.rsplit("/", 1)[1]
    began = time.monotonic()
    with database.connect() as admin, contextlib.ExitStack() as stack:
        admin.execute(f"ALTER ROLE {PLAYER} CONNECTION LIMIT {SERVERS + 2}")
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        time.sleep(3)
        stack.callback(admin.execute, f"ALTER ROLE {PLAYER} CONNECTION LIMIT -1")
    return time.monotonic() - began


FAULTS = [
    a_server_is_killed,
    the_fitter_hangs,
    a_reader_holds_its_locks,
    the_database_restarts,
    the_database_is_read_only,
    connections_run_out,
]


def as_player(database):
    """The address of a new database, for an account that limits hold for."""
    url = database.new()
    with database.connect() as admin:
        admin.execute(f"CREATE ROLE {PLAYER} LOGIN")
        admin.execute(f"ALTER DATABASE {url.rsplit('/', 1)[1]} OWNER TO {PLAYER}")
    return url.replace("fliphat@", f"{PLAYER}@")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_nothing_acknowledged_is_lost_and_play_goes_on(fault, database, tmp_path):
    trial = Trial(as_player(database), tmp_path)
    try:
        trial.played_on(100)
        for _ in range(2):
            began = time.monotonic()
            own = fault(trial, database)
            trial.played_on()
            silent = trial.silence(began)
            print(f"{fault.__name__}: {silent:.1f} s without an answer, {silent - own:.1f} beyond its own")
            assert silent < own + BOUND
            until = time.monotonic() + 60
            while 200 not in [trial.ready(place) for place in range(SERVERS)]:
                assert time.monotonic() < until
            trial.check()
    finally:
        trial.end()
