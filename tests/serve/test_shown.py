"""What a server shows is what was released, under the number of that release, and nothing a witness may refuse."""

import json
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs fliphat[serve]")
pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

from fliphat import FLIPHAT, Iht, Store
from fliphat.cli import main
from fliphat.policies.engine import faults
from fliphat.policies.store.inspect import inspect_path
from served import OPERATOR, lines_of_the_log, served

DIM, FIRST = 4, 6
GOOD = np.ones((2, DIM), np.float32)
BODY = {"contexts": GOOD.tolist()}
MADE = {"dim": DIM, "sparsity": 2, "epsilon": 1.0, "delta": 0.01, "first_episode": FIRST, "fit": Iht()}
READ = ("/estimate", "/guarantee", "/readyz", "/livez", "/status", "/metrics", "/openapi.json", "/")


@pytest.fixture(params=["directory", "database"])
def place(request, tmp_path):
    return tmp_path / "s" if request.param == "directory" else request.getfixturevalue("database").new()


def published(server):
    """Let the server look at what is public now, in a thread that is in the middle of nothing."""
    thread = threading.Thread(target=server.owner._look)
    server.owner._published = 0.0
    thread.start()
    thread.join(30)


def test_every_answer_names_the_release_that_it_shows(place, monkeypatch):
    store, answers, ahead = Store(place), [], []

    def reached(point):
        if point in ("claim durable", "commit durable", "accept durable", "show durable", "close durable"):
            if server.owner._concurrent:
                published(server)
            told = server.ask("GET", "/estimate", token=None)[1]
            overview = server.ask("GET", "/status", token=None)[1]
            answers.append((told["episodes_released"], told["values"]))
            assert len(overview["releases"]) <= told["episodes_released"] + 1
            if point in ("claim durable", "commit durable"):  # the witness was not asked yet
                ahead.append(told["episodes_released"])

    with served(lambda: FLIPHAT(**MADE, store=store)) as server, lines_of_the_log() as lines:
        monkeypatch.setattr(faults, "reached", reached)
        for _ in range(9 * FIRST):
            decided = server.ask("POST", "/select", BODY)[1]
            server.ask("POST", "/update", {"id": decided["id"], "reward": 1.0})
        monkeypatch.undo()
        published(server)
        history = server.owner._policy.history
        released = [[], *(one.estimate.values.tolist() for one in history)]
        final = server.ask("GET", "/estimate", token=None)[1]
    assert len(history) >= 3 and len({str(one) for one in released}) == len(released)
    assert all(values == released[number] for number, values in answers)
    assert sorted(set(ahead)) == list(range(len(history)))
    assert final["episodes_released"] == len(history) and final["values"] == released[-1]
    told = [json.loads(line)["episode"] for line in lines if '"released"' in line]
    assert told == list(range(len(history)))


def test_a_look_that_took_long_takes_no_release_back(database, monkeypatch):
    url = database.new()
    with FLIPHAT(**MADE, store=url) as elsewhere, served(lambda: FLIPHAT(**MADE, store=url)) as server:
        policy, real = server.owner._policy, server.owner._policy._look
        seen, go_on = threading.Event(), threading.Event()

        def slow():
            found = real()
            if not seen.is_set():  # the first to look comes back after the others
                seen.set()
                assert go_on.wait(30)
            return found

        monkeypatch.setattr(policy, "_look", slow)
        with ThreadPoolExecutor(1) as pool, lines_of_the_log() as lines:
            first = pool.submit(published, server)
            assert seen.wait(30)
            for _ in range(FIRST + 1):
                elsewhere.select(GOOD)
            for _ in range(600):
                published(server)
                if server.owner.public.releases == 1:
                    break
            go_on.set()
            first.result(30)
            assert server.owner.public.releases == 1
            published(server)
        assert sum('"released"' in line for line in lines) == 1


def copied(place, request):
    """A copy of a store that nobody plays."""
    if not isinstance(place, str):
        shutil.copytree(place, place.with_name("copy"))
        return place.with_name("copy")
    server, name = request.getfixturevalue("database"), place.rsplit("/", 1)[1]
    with server.connect() as admin:
        admin.execute(f"CREATE DATABASE {name}_copy TEMPLATE {name}")
    return server.url(f"{name}_copy")


def committed(place, request):
    """The estimate that a store holds of its first episode, whoever may see it."""
    query = "SELECT numbers FROM fliphat_episodes WHERE episode = 0"
    if isinstance(place, str):
        with request.getfixturevalue("database").connect(place) as connection:
            ((numbers,),) = connection.execute(query).fetchall()
    else:
        connection = sqlite3.connect(place / "policy.sqlite3")
        ((numbers,),) = connection.execute(query).fetchall()
        connection.close()
    return np.frombuffer(bytes(numbers), "<f8")


def test_what_the_witness_refused_is_shown_nowhere(place, tmp_path, request, capsys):
    witness = tmp_path / "witness"

    def opened(where=place):
        return FLIPHAT(**MADE, store=Store(where, witness=witness))

    with opened() as policy:
        for _ in range(FIRST):
            policy.update(policy.select(GOOD), 1.0)
    copy = copied(place, request)
    with served(opened) as server, lines_of_the_log() as lines:
        with opened(copy) as winner:
            winner.select(GOOD)
            shown = winner.estimate.values
        assert server.ask("POST", "/select", BODY)[0] == 503
        refused = committed(place, request)
        secret = {repr(float(one))[:12] for one in refused}
        assert len(secret) >= 1 and not secret & {repr(float(one))[:12] for one in shown}
        answers = [server.ask("GET", path, token=token) for path in READ for token in (None, OPERATOR)]
        assert server.ask("GET", "/estimate", token=None)[1]["episodes_released"] == 0
        assert server.ask("POST", "/select", BODY)[0] == 503
    main(["inspect", str(place), "--private"])
    main(["inspect", str(place), "--json", "--private"])
    main(["verify", str(place)])
    told = "".join([str(answers), *lines, *capsys.readouterr(), str(inspect_path(place, private=True))])
    assert "refused" in told and not [one for one in secret if one in told]
    main(["inspect", str(copy), "--json"])  # the control: what is witnessed is found by the same search
    assert repr(float(shown[0]))[:12] in capsys.readouterr().out
