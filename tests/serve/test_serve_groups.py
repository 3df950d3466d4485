"""Requests that are played together: each has its own answer, and none before the disk has all of them."""

import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs fliphat[serve]")
pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

from fliphat import FLIPHAT, PrivateLinear, Store
from fliphat.policies.store.inspect import verify_path
from fliphat.serve import Client, ServerError
from served import OPERATOR, WRITE, number, served

DIM = 6


def sparse(store):
    arguments = {"dim": DIM, "sparsity": 2, "epsilon": 1.0, "delta": 0.01, "first_episode": 8}
    return FLIPHAT(**arguments, store=Store(store, durability="group"))


def dense(store):
    arguments = {"dim": DIM, "epsilon": 1.0, "delta": 0.01, "context_norm": 2.0, "first_episode": 8}
    return PrivateLinear(["red", "blue"], **arguments, store=Store(store, durability="group"))


def good(make, number):
    shape = (3, DIM) if make is sparse else (DIM,)
    return np.random.default_rng(number).standard_normal(shape).round(3).tolist()


class Held:
    """A server whose owner waits, so that what comes meanwhile is one group."""

    def __init__(self, server, make):
        self.server, self.go_on, self.begun = server, threading.Event(), threading.Event()
        policy = server.owner._policy
        self.real, self.sizes = policy._select_each, []
        policy._select_each = self.waiting
        self.threads = [
            threading.Thread(target=server.ask, args=("POST", "/select", {"contexts": good(make, 0)}))
        ]
        self.threads[0].start()
        assert self.begun.wait(30)

    def waiting(self, asked, results):
        self.begun.set()
        assert self.go_on.wait(30)
        self.sizes.append(len(asked))
        return self.real(asked, results)

    def answers(self, requests):
        """Send requests in this order, let the owner go on, and return what each was answered."""
        found = [None] * len(requests)
        for place, (path, body) in enumerate(requests):
            before = self.server.owner.waiting

            def ask(place=place, path=path, body=body):
                found[place] = self.server.ask("POST", path, body)

            self.threads.append(threading.Thread(target=ask))
            self.threads[-1].start()
            while self.server.owner.waiting == before and found[place] is None:
                time.sleep(0.001)
        self.go_on.set()
        for thread in self.threads:
            thread.join(60)
        return found


@pytest.mark.parametrize("make", [sparse, dense])
def test_a_bad_request_in_a_group_harms_no_other(make, tmp_path):
    with served(lambda: make(tmp_path / "s")) as server:
        held = Held(server, make)
        requests = [
            ("/select", {"contexts": good(make, 1), "key": "k"}),
            ("/select", {"contexts": good(make, 2), "user": "against the rule of the first round"}),
            ("/select", {"contexts": good(make, 3), "key": "k"}),
            ("/update", {"id": server.id(99), "reward": 1.0}),
            ("/select", {"contexts": [good(make, 4), good(make, 5)]}),
            ("/select", {"contexts": good(make, 6)}),
            ("/update", {"id": server.id(1), "reward": 1.0}),
            ("/update", {"id": server.id(1), "reward": 1.0}),
            *(("/select", {"contexts": good(make, place)}) for place in range(10, 20)),
        ]
        found = held.answers(requests)
        statuses = [status for status, _ in found]
        assert statuses == [200, 422, 200, 422, 200, 200, 200, 409] + [200] * 10
        assert found[0] == found[2] and "user" in found[1][1]["detail"]
        ids = [number(told["id"]) for status, told in found if status == 200 and "id" in told]
        assert ids == [2, 2, 5, *range(6, 16)] and found[4][1]["ids"] == [server.id(3), server.id(4)]
        assert held.sizes == [1, 3, 1, 10]  # what stands together was played together
        assert server.owner.public.rounds == 15 and server.owner.public.episode == 1
    assert verify_path(tmp_path / "s").ok


def test_an_unexpected_error_is_one_requests_own(tmp_path, monkeypatch):
    with served(lambda: sparse(tmp_path / "s")) as server:
        held = Held(server, sparse)
        engine, failed = server.owner._policy._engine, []
        run = engine.fit.run

        def fails_once(*given):
            if not failed:
                failed.append(1)
                raise ZeroDivisionError("Erika Mustermann")
            return run(*given)

        monkeypatch.setattr(engine.fit, "run", fails_once)
        found = held.answers([("/select", {"contexts": good(sparse, i), "key": i}) for i in range(12)])
        statuses = [status for status, _ in found]
        assert statuses == [200] * 7 + [500] + [200] * 4  # the ninth round asked for the fit
        assert "Erika" not in json.dumps(found) and "same key" in found[7][1]["detail"]
        again = server.ask("POST", "/select", {"contexts": good(sparse, 7), "key": 7})
        assert again[0] == 200 and server.owner.public.rounds == 13


class Panic(BaseException):
    """What native code that panics raises."""


def test_a_panic_ends_no_thread(tmp_path):
    with served(lambda: sparse(tmp_path / "s")) as server:
        policy = server.owner._policy

        def panics(asked, results):
            raise Panic("Erika Mustermann")

        policy._select_each = panics
        status, told = server.ask("POST", "/select", {"contexts": good(sparse, 1), "key": "k"})
        assert status >= 500 and "Erika" not in json.dumps(told)
        deadline = time.monotonic() + 30  # the store is opened again after a moment
        while (found := server.ask("POST", "/select", {"contexts": good(sparse, 1), "key": "k"}))[0] != 200:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        assert server.owner.open


def test_what_cant_be_shown_takes_no_round_back(tmp_path, monkeypatch):
    with served(lambda: dense(tmp_path / "s")) as server:

        def fails(policy):
            raise ValueError("Erika Mustermann")

        monkeypatch.setattr(server.owner, "_publish", fails)
        for number in range(3):
            assert server.ask("POST", "/select", {"contexts": good(dense, number)})[0] == 200
        assert server.owner.open


DYING = """
import os, sys
from fliphat.cli import main
from fliphat.policies.engine import faults
def dying(point):
    if point == "calls written" and os.path.exists(sys.argv[2] + ".die"):
        os.kill(os.getpid(), 9)  # all of the group is written, and nothing of it committed
faults.reached = dying
sys.exit(main())
"""


def test_a_crash_between_the_write_and_the_sync_acknowledges_nothing(tmp_path):
    store = tmp_path / "s"
    port = free_port()
    environment = os.environ | {"FLIPHAT_WRITE_TOKEN": WRITE, "FLIPHAT_OPERATOR_TOKEN": OPERATOR}
    new = ["--dim", str(DIM), "--sparsity", "2", "--epsilon", "1", "--delta", "0.01"]
    command = [sys.executable, "-c", DYING, "serve", str(store), "--port", str(port)]
    X = np.array(good(sparse, 1), np.float32)

    def started(*more):
        process = subprocess.Popen([*command, *more], env=environment, stderr=subprocess.DEVNULL)
        with Client(f"http://127.0.0.1:{port}", WRITE) as client:
            for _ in range(600):
                try:
                    assert client.get("/readyz")["status"] == "ready"
                    return process
                except (OSError, ServerError):
                    assert process.poll() is None
                    time.sleep(0.05)
        raise AssertionError("the server did not start")

    def play(number, found):
        with Client(f"http://127.0.0.1:{port}", WRITE, attempts=1) as client:
            try:
                found[number] = client.select(X, key=number).id
            except (OSError, ServerError):
                found[number] = None

    def play_all(numbers):
        found = {}
        threads = [threading.Thread(target=play, args=(number, found)) for number in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        return found

    process = started(*new)
    before = play_all(range(5))
    assert None not in before.values()
    (tmp_path / "s.die").touch()
    during = play_all(range(5, 13))
    assert set(during.values()) == {None} and process.wait(30) == -9
    (tmp_path / "s.die").unlink()
    process = started()
    after = play_all(range(13))
    assert {number: after[number] for number in before} == before
    assert len({number(identity) % 2**40 for identity in after.values()}) == 13  # each of them is one round
    process.terminate()
    assert process.wait(30) == 0
    assert verify_path(store).ok


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# Answers in one piece


def raw(server, head, body=b""):
    """Return everything that is answered to a request on a connection that is then closed."""
    with server.raw() as connection:
        connection.sendall(head.encode() + b"\r\n" + body)
        connection.settimeout(30)
        data = b""
        while part := connection.recv(65536):
            data += part
    return data


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    with served(lambda: sparse(tmp_path_factory.mktemp("plain") / "s")) as server:
        yield server


CLOSE = "Host: x\r\nConnection: close\r\n"


def test_an_answer_without_a_body_arrives(plain):
    data = raw(plain, f"HEAD /readyz HTTP/1.1\r\n{CLOSE}")
    assert data.startswith(b"HTTP/1.1 200") and data.endswith(b"\r\n\r\n")


def test_a_client_that_asks_before_it_sends_is_told_to_go_on(plain):
    body = json.dumps({"contexts": good(sparse, 1)}).encode()
    head = f"POST /select HTTP/1.1\r\n{CLOSE}Authorization: Bearer {WRITE}\r\nContent-Length: {len(body)}\r\n"
    with plain.raw() as connection:
        connection.settimeout(30)
        connection.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert b"HTTP/1.1 200" in connection.recv(65536)


def test_requests_one_behind_the_other_are_answered_in_order(plain):
    body = json.dumps({"contexts": good(sparse, 1)}).encode()
    head = f"POST /select HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {WRITE}\r\nContent-Length: {len(body)}\r\n\r\n"
    data = raw(plain, "", (head.encode() + body) * 3 + f"GET /readyz HTTP/1.1\r\n{CLOSE}\r\n".encode())
    parts = data.split(b"HTTP/1.1 200 OK")[1:]
    assert len(parts) == 4 and b'"status"' in parts[3]
    ids = [number(json.loads(part.split(b"\r\n\r\n", 1)[1])["id"]) for part in parts[:3]]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nowhere", 404), ("GET", "/select", 405)])
def test_what_starlette_answers_arrives_too(plain, method, path, status):
    assert raw(plain, f"{method} {path} HTTP/1.1\r\n{CLOSE}").startswith(b"HTTP/1.1 %d" % status)
    assert b"Invalid HTTP" in raw(plain, "no request at all\r\n")
