"""Bad input and attacks: a clear status, nothing lost, nothing leaked in answers or logs."""

import errno
import json
import resource
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="needs fliphat[serve]")
pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

from fliphat import FLIPHAT, Store
from fliphat.policies.engine import faults
from fliphat.policies.store.inspect import inspect_path, verify_path
from fliphat.serve import Client, Limits, ServerError, compact, owner
from served import OPERATOR, WRITE, Process, lines_of_the_log, served

DIM = 6
ARGUMENTS = {"dim": DIM, "sparsity": 2, "epsilon": 1.0, "delta": 0.01, "first_episode": 50}
GOOD = np.random.default_rng(0).standard_normal((3, DIM)).astype(np.float32)
#: What a line of the log may have.
LINE = {"time", "worker", "event", "request", "kind", "cause", "reason", "route", "status", "code", "ms"}
LINE |= {"episode"}
SECRET = "37.1234567"
NAME = "Erika Mustermann"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A server that no test may break for the next."""
    store = tmp_path_factory.mktemp("shared") / "store"
    with served(
        lambda: FLIPHAT(**ARGUMENTS, store=Store(store, durability="group")),
        limits=Limits(body=20_000, read=0.5, idle=0.7, rounds=40),
        log_requests=True,
    ) as server:
        yield server


def packed(head, rest=b""):
    return compact._HEAD.pack(*head) + rest


DENSE = (b"FHB1", 1, 4, 1, 0, 1, 3, DIM, 0)
BAD_SELECTS = {
    "empty": (b"", 400),
    "not json": (b'{"contexts": [[' + SECRET.encode(), 400),
    "not utf-8": (b'{"contexts": "\xff\xfe"}', 400),
    "deeply nested": (b"[" * 9000, 400),
    "deeply nested contexts": (b'{"contexts":' + b"[" * 900 + b"]" * 900 + b"}", 422),
    "a huge integer": (b'{"contexts": [[1, 2, 3, 4, 5, ' + b"9" * 5000 + b"]]}", 200),
    "beyond every double": (b'{"contexts": [[1, 2, 3, 4, 5, 1e999]]}', 200),
    "not a number": (b'{"contexts": [[1, 2, 3, 4, 5, NaN]]}', 200),
    "a list": ([1, 2], 422),
    "null": (b"null", 422),
    "no contexts": ({}, 422),
    "contexts are text": ({"contexts": SECRET}, 422),
    "no arm": ({"contexts": []}, 422),
    "an empty arm": ({"contexts": [[]]}, 422),
    "another member": ({"contexts": GOOD.tolist(), NAME: 1}, 422),
    "too few columns": ({"contexts": GOOD[:, 1:].tolist()}, 422),
    "arms of different lengths": ({"contexts": [[float(SECRET)] * DIM, [1.0]]}, 422),
    "too deep": ({"contexts": [[[[1.0] * DIM]]]}, 422),
    "an object": ({"contexts": [[{NAME: SECRET}] * DIM]}, 200),  # an element that is no number is contents
    "user is a list": ({"contexts": GOOD.tolist(), "user": [NAME]}, 422),
    "user is a float": ({"contexts": GOOD.tolist(), "user": 1.5}, 422),
    "key is true": ({"contexts": GOOD.tolist(), "key": True}, 422),
    "user is empty": ({"contexts": GOOD.tolist(), "user": ""}, 422),
    "a member twice": (b'{"contexts": [[1, 2, 3, 4, 5, 6]], "user": "a", "user": "b"}', 422),
    "too many rounds": ({"contexts": [[[1.0] * DIM]] * 41}, 413),
    "users of a single round": ({"contexts": GOOD.tolist(), "users": [NAME]}, 422),
    "too few users": ({"contexts": [GOOD.tolist()] * 2, "users": [NAME]}, 422),
    "users of two kinds": ({"contexts": [GOOD.tolist()] * 2, "users": [NAME, 1]}, 422),
}
BAD_COMPACT = {
    "short": (b"FHB1", 400),
    "other magic": (packed((b"XXXX", *DENSE[1:])), 400),
    "values of two bytes": (packed((*DENSE[:2], 2, *DENSE[3:])), 400),
    "names beyond the end": (packed((*DENSE[:8], 80)), 400),
    "no values": (packed(DENSE), 400),
    "too many values": (packed(DENSE, GOOD.tobytes() + b"1234"), 400),
    "more rounds than are taken": (packed((*DENSE[:3], 0, 0, 41, 1, DIM, 0), GOOD.tobytes()), 413),
    "more rounds than bytes": (
        packed((*DENSE[:3], 0, 0, 40, 2**32 - 1, DIM, 0), GOOD.tobytes()),
        400,
    ),
    "other dim": (packed((*DENSE[:7], DIM + 1, 0), GOOD.tobytes()), 422),
    "no round": (packed((*DENSE[:3], 0, 0, 0, 3, DIM, 0)), 422),
    "rewards": (packed((b"FHB1", 3, 8, 0, 0, 1, 0, 0, 0), b"\1" * 16), 422),
    "csr offsets that fall": (
        packed((b"FHB1", 2, 4, 1, 0, 1, 3, DIM, 0), np.array([0, 2, 1, 2], "<i8").tobytes() + b"\0" * 16),
        400,
    ),
    "csr offsets below zero": (
        packed((b"FHB1", 2, 4, 1, 0, 1, 3, DIM, 0), np.array([0, 0, 0, -5], "<i8").tobytes()),
        400,
    ),
    "a column beyond dim": (
        packed(
            (b"FHB1", 2, 4, 1, 0, 1, 3, DIM, 0),
            np.array([0, 1, 1, 1], "<i8").tobytes() + np.array([DIM], "<i4").tobytes() + b"\0" * 4,
        ),
        422,
    ),
}
ID = "ID"  # one that was given
BAD_UPDATES = {
    "nothing": ({}, 422),
    "reward without id": ({"reward": 1.0}, 422),
    "a key never played": ({"key": NAME, "reward": float(SECRET)}, 422),
    "key and id": ({"key": NAME, "id": "1", "reward": 1.0}, 422),
    "key is a list": ({"key": [NAME], "reward": 1.0}, 422),
    "user without key": ({"id": "1", "user": NAME, "reward": 1.0}, 422),
    "both forms": ({"id": "1", "reward": 1.0, "ids": ["1"], "rewards": [1.0]}, 422),
    "too many": ({"ids": ["1"] * 41, "rewards": [1.0] * 41}, 413),
    "a short key": ({"key": "visit 3", "reward": 1.0}, 422),
    "a number as a key": ({"key": 3, "reward": 1.0}, 422),
    "without a receipt": ({"id": "1", "reward": 1.0}, 422),
    "a receipt made up": ({"id": "1.0123456789abcdef", "reward": 1.0}, 422),
    "one of two made up": ({"ids": [ID, "2.0123456789abcdef"], "rewards": [1.0, 1.0]}, 422),
    "an id never given": ({"id": str(2**50 + 1), "reward": float(SECRET)}, 422),
    "sql": ({"id": "1; DROP TABLE meta", "reward": 1.0}, 422),
    "other digits": ({"id": "\u0661", "reward": 1.0}, 422),
    "negative": ({"id": -1, "reward": 1.0}, 422),
    "too long": ({"id": "9" * 400, "reward": 1.0}, 422),
    "true": ({"id": True, "reward": 1.0}, 422),
    "reward is text": ({"id": ID, "reward": NAME}, 422),
    "reward is NaN": (b'{"id": "ID", "reward": NaN}', 422),
    "reward is infinite": (b'{"id": "ID", "reward": 1e999}', 422),
    "reward is a huge integer": (b'{"id": "ID", "reward": ' + b"9" * 400 + b"}", 422),
    "reward is null": ({"id": ID, "reward": None}, 422),
    "lists of two lengths": ({"ids": ["1"], "rewards": [1.0, float(SECRET)]}, 422),
}


def safe(told, lines):
    text = json.dumps(told) + "".join(lines)
    return not any(secret in text for secret in (SECRET, NAME, "DROP", WRITE, OPERATOR))


@pytest.mark.parametrize("name", BAD_SELECTS)
def test_bad_rounds_have_a_clear_status(shared, name):
    body, expected = BAD_SELECTS[name]
    check(shared, "/select", body, expected, "application/json")


@pytest.mark.parametrize("name", BAD_COMPACT)
def test_bad_compact_rounds_have_a_clear_status(shared, name):
    body, expected = BAD_COMPACT[name]
    check(shared, "/select", body, expected, compact.COMPACT)


@pytest.mark.parametrize("name", BAD_UPDATES)
def test_bad_rewards_have_a_clear_status(shared, name):
    body, expected = BAD_UPDATES[name]
    told = shared.ask("POST", "/select", {"contexts": GOOD.tolist(), "key": name})[1]
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    body = text.replace(b'"ID"', json.dumps(told["id"]).encode())
    check(shared, "/update", body, expected, "application/json")


def check(server, path, body, expected, kind):
    before = server.owner.public.rounds
    with lines_of_the_log() as lines:
        status, told = server.ask("POST", path, body, kind=kind)
        while not lines:  # it is written after the answer
            time.sleep(0.001)
    assert status == expected
    assert safe(told, lines) and len(lines) == 1
    if status != 200:
        assert set(told) == {"error", "detail"} and server.owner.public.rounds == before
    else:
        assert told["valid"] is False


def test_the_check_for_leaks_can_fail():
    assert not safe({"detail": f"user {NAME} is wrong"}, [])
    assert not safe({}, [f"reward {SECRET}"])


def test_unknown_addresses_and_methods_are_refused_without_a_line(shared):
    with lines_of_the_log() as lines:
        assert shared.ask("GET", f"/{NAME.split()[0]}")[0] == 404
        assert shared.ask("GET", "/select")[0] == 405
        assert shared.ask("POST", "/estimate")[0] == 405
    assert lines == []


def test_nan_is_one_round_that_is_not_learned_from(shared):
    bad = GOOD.copy()
    bad[1, 1] = np.nan
    missing = GOOD.tolist()
    missing[1][1] = None  # JSON has no NaN
    told = shared.ask("POST", "/select", {"contexts": [GOOD.tolist(), missing, GOOD.tolist()]})
    assert told[1]["valid"] == [True, False, True]
    status, one = shared.ask("POST", "/select", compact.write_rounds(bad), kind=compact.COMPACT)
    assert status == 200 and one["valid"] is False


def test_sql_in_users_and_keys_is_only_a_name(tmp_path):
    evil = "'; DROP TABLE users; --"
    opened = served(lambda: FLIPHAT(**ARGUMENTS, store=Store(tmp_path / "s", durability="group")))
    with opened as server, server.client() as client:
        first = client.select(GOOD, user=evil, key=evil)
        for number in range(60):  # into the ledger, when the episode is released
            client.select(GOOD, user=f"{evil}{number}", key=evil)
        assert client.select(GOOD, user=evil, key=evil)[:4] == first[:4]
    assert verify_path(tmp_path / "s").ok


def test_a_body_of_a_gigabyte_is_refused_by_its_length(shared):
    with shared.raw() as connection:
        connection.sendall(
            f"POST /select HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {WRITE}\r\n"
            f"Content-Length: {10**9}\r\n\r\n".encode()
        )
        assert all_of(connection).startswith(b"HTTP/1.1 413")  # nothing of it was sent


@pytest.mark.parametrize("token", [WRITE, "wrong"])
def test_a_body_without_an_end_is_cut_off(shared, token):
    head = f"POST /select HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    with shared.raw() as connection:
        connection.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        sent = 0
        try:
            for _ in range(4000):
                connection.sendall(b"3e8\r\n" + b"1" * 1000 + b"\r\n")
                sent += 1000
        except OSError:
            pass
        assert sent < 4_000_000
    assert shared.ask("GET", "/readyz")[0] == 200


def all_of(connection):
    data = b""
    try:
        while part := connection.recv(65536):
            data += part
    except OSError:
        pass
    return data


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"POST /sel", b""),  # a head that never ends
        (b"", b""),
        (
            f"POST /select HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {WRITE}\r\n"
            f"Content-Length: 100\r\n\r\n{{".encode(),
            b"HTTP/1.1 408",
        ),
    ],
)
def test_slow_clients_are_let_go(shared, sent, answer):
    with shared.raw() as connection:
        connection.sendall(sent)
        assert all_of(connection)[:12] == answer  # ends: the connection was closed


def test_a_slow_second_head_is_let_go_too(shared):
    with shared.raw() as connection:
        connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\nGET /hea")
        assert all_of(connection).count(b"HTTP/1.1 200") == 1


def test_a_head_without_an_end_is_cut_off(shared):
    with shared.raw() as connection:
        connection.sendall(b"GET /readyz HTTP/1.1\r\nX: ")
        sent = 0
        try:
            while sent < 50_000_000:
                sent += connection.send(b"x" * 100_000)
        except OSError:
            pass
        assert sent < 50_000_000
    assert shared.ask("GET", "/readyz")[0] == 200


def test_slow_clients_do_not_keep_others_waiting(shared):
    slow = [shared.raw() for _ in range(50)]
    for connection in slow:
        connection.sendall(b"POST /select HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n")
    assert shared.ask("POST", "/select", {"contexts": GOOD.tolist()})[0] == 200
    for connection in slow:
        connection.close()


_numbers = st.one_of(st.floats(), st.integers(), st.none(), st.text(max_size=3), st.booleans())
_json = st.recursive(
    _numbers,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
_members = st.sampled_from(["contexts", "user", "key", "users", "keys", "id", "reward", "ids", "rewards"])
_bodies = st.one_of(
    st.binary(max_size=200),
    st.binary(max_size=200).map(lambda data: b"FHB1" + data),
    _json.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(_members, _json | st.just(GOOD.tolist()), max_size=4).map(
        lambda value: json.dumps(value).encode()
    ),
    st.tuples(
        *(st.integers(0, 3), st.sampled_from([4, 8]), st.integers(0, 1)),
        *(st.integers(0, 4), st.integers(0, 4), st.sampled_from([DIM, DIM, 0, 2**32 - 1])),
        st.binary(max_size=300),
    ).map(lambda v: packed((b"FHB1", *v[:3], 0, *v[3:6], 0), v[6])),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(["/select", "/update"]),
    body=_bodies,
    kind=st.sampled_from(["application/json", compact.COMPACT, "text/plain"]),
)
def test_no_body_is_an_internal_error_or_counts_what_was_refused(shared, path, body, kind):
    before = shared.owner.public.rounds
    status, told = shared.ask("POST", path, body, kind=kind)
    assert status in (200, 400, 409, 413, 422)
    after = shared.owner.public.rounds
    if status == 200 and path == "/select":
        assert after == before + len(told.get("ids", "1"))
    else:
        assert after == before


# A store that fails


@pytest.mark.parametrize(("point", "code"), [("written", errno.ENOSPC), ("durable", errno.EROFS)])
def test_a_store_that_fails_loses_nothing_acknowledged_and_comes_back(tmp_path, monkeypatch, point, code):
    monkeypatch.setattr(owner, "_REOPEN", 0.05)
    with served(lambda: FLIPHAT(**ARGUMENTS, store=Store(tmp_path / "s", durability="group"))) as server:
        acknowledged = {}

        def play(number):
            body = {"contexts": GOOD.tolist(), "user": NAME + str(number), "key": number}
            status, told = server.ask("POST", "/select", body)
            if status == 200:
                assert acknowledged.setdefault(number, told["id"]) == told["id"]
            return status, told

        for number in range(5):
            assert play(number)[0] == 200

        def broken(reached):
            if reached.endswith(point):
                raise OSError(code, f"{NAME}: {SECRET}")

        with lines_of_the_log() as lines:
            with monkeypatch.context() as patched:
                patched.setattr(faults, "reached", broken)
                for number in range(5, 9):
                    status, told = play(number)
                    assert (status, told["error"]) == (503, "store") and safe(told, [])
                assert server.ask("GET", "/readyz")[0] == 503
                assert server.ask("GET", "/livez") == (200, {"status": "alive"})
                assert server.ask("GET", "/estimate")[0] == 200  # what is public is still known
            with server.client() as client:  # its retries outlast the time until the store is opened again
                client.select(GOOD, user=NAME, key="back")
        assert safe({}, lines) and any("store opened again" in line for line in lines)
        for number in range(9):  # again, with the same keys
            assert play(number)[0] == 200
        assert len(set(acknowledged.values())) == 9
    with FLIPHAT.open(tmp_path / "s") as policy:
        assert policy.rounds == 10


def test_answers_wait_for_the_sync_of_their_round(tmp_path, monkeypatch):
    points = []
    with served(lambda: FLIPHAT(**ARGUMENTS, store=Store(tmp_path / "s", durability="group"))) as server:
        server.ask("POST", "/select", {"contexts": GOOD.tolist()})
        monkeypatch.setattr(faults, "reached", points.append)
        for _ in range(5):
            points.clear()
            told = server.ask("POST", "/select", {"contexts": GOOD.tolist()})[1]
            assert points == ["calls written", "calls durable"]
            server.ask("POST", "/update", {"id": told["id"], "reward": 0.5})
            assert points == ["calls written", "calls durable"] * 2


def test_control_an_owner_that_does_not_sync_would_be_noticed(tmp_path, monkeypatch):
    points = []
    monkeypatch.setattr(FLIPHAT, "flush", lambda self: None)
    with served(lambda: FLIPHAT(**ARGUMENTS, store=Store(tmp_path / "s", durability="group"))) as server:
        server.ask("POST", "/select", {"contexts": GOOD.tolist()})
        monkeypatch.setattr(faults, "reached", points.append)
        server.ask("POST", "/select", {"contexts": GOOD.tolist()})
        assert points == []


# The command in a process of its own

NEW = ["--dim", str(DIM), "--sparsity", "2", "--epsilon", "1", "--delta", "0.01"]


def test_a_disk_that_is_full_and_has_room_again(tmp_path):
    server = Process(tmp_path / "s", *NEW)
    ids = {}
    for number in range(10):
        ids[number] = server.client.select(GOOD, key=number).id
    written = max(one.stat().st_size for one in (tmp_path / "s").iterdir())
    # A limit on the size of files is a real disk that fills up: a write arrives in part, then fails.
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (written + 100, resource.RLIM_INFINITY))
    hasty = Client(server.client.url, WRITE, attempts=1)
    refused = 0
    for number in range(10, 60):
        try:
            ids[number] = hasty.select(GOOD, key=number).id
        except ServerError as error:
            assert error.status == 503 and error.code == "store"
            refused += 1
    hasty.close()
    assert refused
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    for number in range(60):
        identity = server.client.select(GOOD, key=number).id
        assert ids.setdefault(number, identity) == identity
    assert len(set(ids.values())) == 60
    code, lines = server.end()
    assert code == 0 and "store failed" in lines and "store opened again" in lines
    for line in lines.splitlines():
        assert set(json.loads(line)) <= LINE
    assert verify_path(tmp_path / "s").ok


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_is_ended_under_load_keeps_what_it_acknowledged(tmp_path, number):
    server = Process(tmp_path / "s", *NEW)
    acknowledged, lock = [], threading.Lock()

    def play(client_number):
        client = Client(server.client.url, WRITE, attempts=1)
        for i in range(10_000):
            try:
                decision = client.select(GOOD, user=f"{client_number} {i}")
            except (OSError, ServerError):
                break
            with lock:
                acknowledged.append(decision.id)
        client.close()

    threads = [threading.Thread(target=play, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    while len(acknowledged) < 100:
        time.sleep(0.01)
    code, _ = server.end(number)
    assert code == (0 if number == signal.SIGTERM else -number)
    for thread in threads:
        thread.join(30)
    assert len(set(acknowledged)) == len(acknowledged)
    again = Process(tmp_path / "s")  # without arguments: the store knows them
    assert inspect_path(tmp_path / "s")["rounds"] >= len(acknowledged)
    assert again.client.update_batch(acknowledged, [0.5] * len(acknowledged)) >= 0  # every id is known
    assert again.end()[0] == 0


def test_a_lost_answer_is_asked_for_again_and_counts_once(tmp_path):
    with served(lambda: FLIPHAT(**ARGUMENTS, store=Store(tmp_path / "s", durability="group"))) as server:
        client = server.client()
        real = client._connection.getresponse
        lost = []

        def losing():
            answer = real()
            if not lost:
                lost.append(answer.read())
                raise ConnectionResetError
            return answer

        client._connection.getresponse = losing
        decision = client.select(GOOD)
        assert json.loads(lost[0])["id"] == decision.id
        assert server.owner.public.rounds == 1
        lost.clear()
        assert client.update(decision, 0.5)
        lost.clear()
        with pytest.raises(ConnectionResetError):  # without keys it might be played twice
            client.select_batch(np.stack([GOOD] * 3))
        client.close()


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        ([], {}, "tokens for writing and for operators must be given"),
        (["--no-token", "--host", "0.0.0.0", *NEW], {}, "must listen on 127.0.0.1"),
        (["--no-token"], {"FLIPHAT_WRITE_TOKEN": WRITE}, "leave one or the other out"),
        (["--no-token", "--workers", "2", *NEW], {}, "workers must be 1 with a directory"),
        (["--no-token", "--limits", "limits.toml", *NEW], {}, "wait must be"),
        (["--no-token", "--limits", "others.toml", *NEW], {}, "is no limit"),
        ([], {"FLIPHAT_WRITE_TOKEN": "short", "FLIPHAT_OPERATOR_TOKEN": OPERATOR}, "at least 16 characters"),
    ],
)
def test_wrong_choices_are_refused_in_one_line(tmp_path, monkeypatch, capsys, arguments, environment, words):
    from fliphat import cli

    for name in ("FLIPHAT_WRITE_TOKEN", "FLIPHAT_OPERATOR_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "limits.toml").write_text("wait = -1\n")
    (tmp_path / "others.toml").write_text("patience = 1\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["serve", str(tmp_path / "s"), *arguments]) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1
    assert not any(value in told for value in environment.values())
