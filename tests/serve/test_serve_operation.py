"""What an operator relies on: limits, tokens that change, health that is honest, erasure, logs."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs fliphat[serve]")
pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

from fliphat import FLIPHAT, Store
from fliphat.serve import Client, Limits, ServerError, Tokens, make_app, owner
from fliphat.serve.connections import KEPT_APART
from served import OPERATOR, SERVE, TOKENS, WRITE, Process, lines_of_the_log, served

DIM = 6
ARGUMENTS = {"dim": DIM, "sparsity": 2, "epsilon": 1.0, "delta": 0.01, "first_episode": 50}
NEW = ["--dim", str(DIM), "--sparsity", "2", "--epsilon", "1", "--delta", "0.01"]
GOOD = np.random.default_rng(0).standard_normal((3, DIM)).astype(np.float32)
BODY = {"contexts": GOOD.tolist()}


@pytest.fixture
def opened(tmp_path):
    return lambda: FLIPHAT(**ARGUMENTS, store=Store(tmp_path / "s", durability="group"))


def eventually(what, seconds=30):
    """Wait until something is true; what it was at last."""
    until = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < until:
        time.sleep(0.02)
    return found


# A policy without a store


def test_a_policy_without_a_store_is_not_served():
    app = make_app(lambda: FLIPHAT(**ARGUMENTS), tokens=TOKENS)

    async def start():
        await app.state.service.owner.start()

    import asyncio

    with pytest.raises(ValueError, match="must have a store"):
        asyncio.run(start())


# Health


def test_ready_is_what_was_tried(opened, monkeypatch):
    with served(opened) as server:
        assert server.ask("GET", "/readyz", token=None)[1]["status"] == "ready"
        begun, go_on = threading.Event(), threading.Event()
        real = server.owner._policy._select_each

        def hangs(*given):
            begun.set()
            assert go_on.wait(30)
            return real(*given)

        server.owner._policy._select_each = hangs
        thread = threading.Thread(target=server.ask, args=("POST", "/select", BODY))
        thread.start()
        assert begun.wait(30)
        time.sleep(owner._STILL_TRUE)
        before = time.monotonic()
        status, told = server.ask("GET", "/readyz", token=None)
        assert status == 503 and told["status"] == "unavailable" and "nothing could be kept" in told["detail"]
        assert time.monotonic() - before < 2 * owner._TRIAL  # it does not wait for what hangs
        assert server.ask("GET", "/livez", token=None)[0] == 200
        go_on.set()
        thread.join(30)
        assert eventually(lambda: server.ask("GET", "/readyz", token=None)[0] == 200)


def test_a_trial_that_fails_as_nobody_thought_of_ends_no_thread(opened, monkeypatch):
    def fails(policy):
        raise RuntimeError("123.25")

    with served(opened) as server:
        monkeypatch.setattr(owner, "try_keeping", fails)
        status, told = server.ask("GET", "/readyz", token=None)
        assert status == 503 and "123" not in str(told) and server.ask("GET", "/livez", token=None)[0] == 200
        monkeypatch.undo()
        assert eventually(lambda: server.ask("GET", "/readyz", token=None)[0] == 200)
        assert server.ask("POST", "/select", BODY)[0] == 200


def test_a_fit_that_fails_is_told_and_nobody_else_is_said_to_be_at_it(opened):
    def fails(*given):
        raise RuntimeError("123.25")

    with served(opened) as server, server.client() as client:
        client.select_batch(np.stack([GOOD] * 50))
        engine = server.owner._policy._engine
        run, engine.fit.run = engine.fit.run, fails
        assert server.ask("POST", "/select", BODY)[0] == 500
        time.sleep(owner._STILL_TRUE)
        status, told = server.ask("GET", "/readyz", token=None)
        assert status == 503 and "could not be computed" in told["detail"] and "123" not in str(told)
        engine.fit.run = run
        assert server.ask("POST", "/select", BODY)[0] == 200


def test_a_fit_is_no_reason_to_send_rounds_elsewhere_until_they_would_wait_too_long(opened, tmp_path):
    with served(opened, limits=Limits(wait=4.0)) as server:
        with server.client() as client:
            client.select_batch(np.stack([GOOD] * 50))
        engine = server.owner._policy._engine
        begun, go_on, run = threading.Event(), threading.Event(), engine.fit.run
        engine.fit.run = lambda *given: (begun.set(), go_on.wait(30), run(*given))[2]
        thread = threading.Thread(target=server.ask, args=("POST", "/select", BODY))
        thread.start()
        assert begun.wait(30)
        time.sleep(owner._STILL_TRUE)
        status, told = server.ask("GET", "/readyz", token=None)
        assert status == 200 and "being computed" in told["detail"]
        assert eventually(lambda: server.ask("GET", "/readyz", token=None)[0] == 503)
        go_on.set()
        thread.join(30)


# Limits


def held(server, count):
    """Connections whose first answer was read, and that then sent one byte."""
    found = []
    for _ in range(count):
        connection = server.raw()
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"G")
        found.append(connection)
    return found


def ended(connection):
    connection.settimeout(30)
    try:
        return connection.recv(65536) == b""
    except ConnectionResetError:
        return True


def test_a_connection_that_says_a_byte_now_and_then_is_let_go(opened):
    with served(opened, limits=Limits(idle=0.5, read=0.5)) as server:
        connections = held(server, 5)
        until = time.monotonic() + 30
        left = set(connections)
        for connection in left:
            connection.sendall(b"ET / HTTP/1.1\r\nX: ")
        while left and time.monotonic() < until:
            time.sleep(0.1)
            for connection in list(left):
                try:
                    connection.sendall(b"E")
                except OSError:
                    left.discard(connection)
        for connection in connections:
            connection.close()
        assert not left
        assert server.ask("POST", "/select", BODY)[0] == 200


def test_connections_beyond_the_limit_take_the_place_of_idle_ones(opened):
    with served(opened, limits=Limits(connections=8)) as server:
        server.service.rules.connections = 8
        connections = held(server, 40)
        assert server.service.rules.open_connections <= 8
        assert server.ask("POST", "/select", BODY)[0] == 200
        assert sum(ended(connection) for connection in connections[:30]) == 30
        for connection in connections:
            connection.close()


def test_who_does_not_read_its_answer_is_let_go(opened):
    with served(opened, limits=Limits(idle=0.5, read=0.5)) as server:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 400)
        assert eventually(lambda: server.service.rules.open_connections == 0)
        connection.close()


def test_descriptors_are_left_for_the_store(tmp_path):
    few = KEPT_APART + 40

    def limited():
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))

    with Process(tmp_path / "s", *NEW, preexec_fn=limited) as server:
        connections = []
        for _ in range(2 * few):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
            connection.sendall(b"G")
            connections.append(connection)
        for number in range(60):  # over a release, which opens files
            server.client.select(GOOD, key=number)
        for connection in connections:
            connection.close()
        code, lines = server.end()
    assert code == 0 and "store failed" not in lines


def test_too_few_descriptors_are_said_when_the_server_starts(tmp_path):
    command = [sys.executable, "-c", SERVE, "serve", str(tmp_path / "s"), *NEW, "--no-token"]
    few = KEPT_APART
    told = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (few, few)),
    )
    assert told.returncode == 2 and "descriptors" in told.stderr and told.stderr.count("\n") == 1


# Rewards


def test_rewards_cant_be_taken_by_counting(opened):
    with served(opened) as server, server.client() as client, server.client() as thief:
        decided = [client.select(GOOD) for _ in range(20)]
        for number in range(1, 21):
            for identity in (
                str(number),
                number,
                f"{number}.{'0' * 16}",
                decided[0].id.replace("1.", f"{number}."),
            ):
                status, told = server.ask("POST", "/update", {"id": identity, "reward": 0.0})
                assert status == (422 if identity != decided[0].id else 200), told
        with pytest.raises(ServerError, match="422"):
            thief.update_batch([f"{number}.{'f' * 16}" for number in range(2, 21)], np.zeros(19))
        assert all(client.update(one, 1.0) for one in decided[1:])


def test_a_receipt_is_the_same_for_every_worker_and_after_a_restart(opened):
    with served(opened) as server:
        identity = server.ask("POST", "/select", BODY | {"key": "k"})[1]["id"]
    with served(opened) as server:
        assert server.ask("POST", "/select", BODY | {"key": "k"})[1]["id"] == identity
        assert server.ask("POST", "/update", {"id": identity, "reward": 1.0}) == (200, {"taken": True})


# Erasure


def test_a_user_is_erased_and_a_round_cancelled_while_the_server_plays(opened):
    with served(opened) as server, server.client() as client:
        for number in range(3):
            client.select(GOOD, user="me", key=f"mine {number}")
        other = client.select(GOOD, user="other")
        assert server.ask("POST", "/forget", {"user": "me"})[0] == 401  # the token for writing is not enough
        with Client(client.url, OPERATOR) as operator:
            assert operator.forget("me") == 3 and operator.forget("nobody") == 0
            for wrong in ("", None, [1]):
                assert server.ask("POST", "/forget", {"user": wrong}, token=OPERATOR)[0] == 422
        assert client.cancel(other) is True
        with pytest.raises(ServerError, match="409"):
            client.update(other, 1.0)
        assert server.ask("POST", "/cancel", {"id": "4." + "0" * 16})[0] == 422
        assert server.owner.public.rounds == 4


# Tokens


def test_several_tokens_are_good_and_sighup_changes_them(tmp_path):
    old, new = "the first token for writing", "the second token for writing"
    write, operator, limits = tmp_path / "w", tmp_path / "o", tmp_path / "l"
    write.write_text(f"{WRITE}\n{old}\n")
    operator.write_text(OPERATOR)
    limits.write_text("rounds = 3\n")
    files = [
        "--write-token-file",
        str(write),
        "--operator-token-file",
        str(operator),
        "--limits",
        str(limits),
    ]
    with Process(tmp_path / "s", *NEW, *files) as server:

        def may(token, rounds=1):
            with Client(server.client.url, token, attempts=1) as client:
                try:
                    client.select_batch(np.stack([GOOD] * rounds))
                except ServerError as error:
                    return error.status
            return 200

        assert [may(WRITE), may(old), may(new), may(old, 4)] == [200, 200, 401, 413]
        write.write_text(f"{WRITE}\n\n{new}\n")
        limits.write_text("rounds = 5\n")
        server.process.send_signal(signal.SIGHUP)
        assert eventually(lambda: may(new) == 200)
        assert [may(WRITE), may(old), may(new, 4)] == [200, 401, 200]
        write.write_text("short\n")
        server.process.send_signal(signal.SIGHUP)  # what is wrong changes nothing
        time.sleep(0.5)
        assert [may(WRITE), may(new)] == [200, 200]
        code, lines = server.end()
    assert code == 0 and '"reloaded"' in lines and '"not reloaded"' in lines
    assert not any(token in lines for token in (WRITE, old, new, "short"))


@pytest.mark.parametrize(
    ("headers", "kind", "status"),
    [
        ({}, "application/json", 200),
        ({"Origin": "http://127.0.0.1:{port}"}, "application/json", 200),
        ({"Origin": "https://example.com"}, "application/json", 403),
        ({"Origin": "null"}, "application/json", 403),
        ({"Host": "rebound.example.com:{port}"}, "application/json", 403),
        ({}, "text/plain", 415),
        ({}, "application/x-www-form-urlencoded", 415),
    ],
)
def test_without_tokens_pages_of_other_sites_write_nothing(opened, headers, kind, status):
    with served(opened, tokens=Tokens(write=None, operator=None)) as server:
        given = {name: value.format(port=server.port) for name, value in headers.items()}
        assert server.ask("POST", "/select", BODY, token=None, kind=kind, headers=given)[0] == status


def test_without_an_operators_token_its_numbers_are_for_whoever_may_write(opened):
    private = "fliphat_rewards"
    with served(opened, tokens=Tokens(write=WRITE, operator=None)) as server:
        assert private not in str(server.ask("GET", "/metrics", token=None)[1])
        assert private in str(server.ask("GET", "/metrics", token=WRITE)[1])


def test_an_address_with_a_slash_leads_nowhere(opened):
    with served(opened) as server, server.raw() as connection:
        connection.sendall(b"GET /estimate/ HTTP/1.1\r\nHost: evil.example.com\r\nConnection: close\r\n\r\n")
        data = b""
        while part := connection.recv(65536):
            data += part
        assert data.startswith(b"HTTP/1.1 404") and b"evil" not in data


# Description and logs


def test_every_operation_has_a_name_and_every_status(opened):
    with served(opened) as server:
        told = server.ask("GET", "/openapi.json", token=None)[1]
    operations = [one for methods in told["paths"].values() for one in methods.values()]
    names = [one["operationId"] for one in operations]
    assert len(set(names)) == len(names)
    for methods in told["paths"].values():
        for method, one in methods.items():
            statuses = set(one["responses"])
            assert {"200", "500"} <= statuses
            if method == "post":
                assert {"400", "401", "403", "408", "413", "415", "422", "503", "504"} <= statuses
    assert "409" in told["paths"]["/update"]["post"]["responses"]
    assert "503" in told["paths"]["/readyz"]["get"]["responses"]


def test_all_lines_are_json_with_a_worker_and_requests_have_ids(tmp_path):
    with Process(tmp_path / "s", *NEW, "--log-requests") as server:
        server.client.select(GOOD)
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        connection.sendall(b"no request at all\r\n\r\n")  # uvicorn has a line of its own about it
        connection.recv(65536)
        connection.close()
        with Client(server.client.url, "no such token, though long", attempts=1) as stranger:
            stranger._connection.request("POST", "/select", b"{}", {"Authorization": "Bearer wrong"})
            refused = stranger._connection.getresponse()
            identity = refused.headers["x-request-id"]
            refused.read()
        code, lines = server.end()
    told = [json.loads(line) for line in lines.splitlines()]
    assert code == 0 and all({"time", "worker", "event"} <= set(line) for line in told)
    assert any(line.get("logger") == "uvicorn.error" for line in told)
    requests = [line["request"] for line in told if line["event"] == "request"]
    assert len(set(requests)) == len(requests) >= 2 and identity in requests


def test_a_store_that_fails_is_named_by_its_code(opened, monkeypatch):
    import errno

    monkeypatch.setattr(owner, "_REOPEN", 0.05)
    for code, name in ((errno.ENOSPC, "ENOSPC"), (errno.EROFS, "EROFS")):
        with served(opened) as server, lines_of_the_log() as lines:

            def fails(*_, code=code):
                raise OSError(code, "Erika Mustermann")

            server.owner._policy.flush = fails
            assert server.ask("POST", "/select", BODY)[0] == 503
            (line,) = [json.loads(line) for line in lines if "store failed" in line]
            assert line["code"] == name and line["reason"] == os.strerror(code)
            assert "Erika" not in "".join(lines)


# Many workers


def test_workers_end_with_their_supervisor(tmp_path, database):
    url = database.new()
    with Process(url, *NEW, "--workers", "2") as server:
        server.client.select(GOOD)
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(server.process.pid)],
            capture_output=True,
            text=True,
            check=True,
        )
        workers = [int(one) for one in re.findall(r"\d+", listed.stdout)]
        server.process.kill()
        server.process.wait(30)

        def gone():
            return not any(os.path.exists(f"/proc/{one}") for one in workers)

        assert len(workers) >= 2 and eventually(gone)
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", server.port), timeout=5)


def test_the_workers_of_a_supervisor_reload_too(tmp_path, database):
    write, operator = tmp_path / "w", tmp_path / "o"
    new = "the second token for writing"
    write.write_text(WRITE)
    operator.write_text(OPERATOR)
    files = ["--write-token-file", str(write), "--operator-token-file", str(operator)]
    with Process(database.new(), *NEW, *files, "--workers", "2") as server:

        def all_take(token, status):
            found = []
            for _ in range(8):  # connections go to either worker
                with Client(server.client.url, token, attempts=1) as client:
                    try:
                        client.select(GOOD)
                        found.append(200)
                    except ServerError as error:
                        found.append(error.status)
                    except OSError:
                        found.append(0)
            return set(found) == {status}

        write.write_text(f"{WRITE}\n{new}\n")
        time.sleep(1)  # both workers have started
        server.process.send_signal(signal.SIGHUP)
        assert eventually(lambda: all_take(new, 200))
        assert server.end()[0] == 0
