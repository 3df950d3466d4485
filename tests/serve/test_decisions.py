"""The decision log has every decision with its chance and reward, and nobody who was forgotten."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("starlette", reason="needs fliphat[serve]")
pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

from fliphat import FLIPHAT, PrivateLinear, Store
from fliphat.cli import main
from fliphat.serve import Client
from fliphat.serve.decisions import DecisionLog, joined
from served import OPERATOR, Process, number, served

DIM = 4
NEW = {"dim": DIM, "epsilon": 1.0, "delta": 0.01, "first_episode": 6}


def sparse(store):
    return FLIPHAT(**NEW, sparsity=1, store=Store(store, durability="group"))


def linear(store):
    return PrivateLinear(["red", "blue"], **NEW, context_norm=2.0, store=Store(store, durability="group"))


def contexts(make, rounds, seed=0):
    shape = (rounds, 3, DIM) if make is sparse else (rounds, DIM)
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("make", [sparse, linear])
def test_every_decision_is_there_once_with_what_was_offered(make, tmp_path):
    log = DecisionLog(tmp_path / "log")
    X = contexts(make, 12)
    with served(lambda: make(tmp_path / "s"), decision_log=log) as server, server.client() as client:
        decided = [client.select(x, user=f"u{i}", key=f"a key of its own {i}") for i, x in enumerate(X)]
        client.select(X[11], user="u11", key="a key of its own 11")  # again: one decision
        decided += client.select_batch(X, users=[f"v{i}" for i in range(12)])
        last = decided[-1]
        assert client.update(last, 0.25)
        assert not client.update(key="a key of its own 3", user="u3", reward=0.75)  # late, and noted
        client.cancel(decided[-2])
    log.close()
    told = list(joined(tmp_path / "log"))
    kept = [*decided[:-2], last]
    assert [one["id"] for one in told] == [number(one.id) for one in kept]
    assert [(one["arm"], one["episode"], one["valid"]) for one in told] == [
        (one.arm, one.episode, one.valid) for one in kept
    ]
    np.testing.assert_allclose([one["probability"] for one in told], [one.probability for one in kept])
    offered = [*X, *X[:-2], X[-1]]
    np.testing.assert_array_equal([one["contexts"] for one in told], np.array(offered, float))
    assert [one["reward"] for one in told] == [None] * 3 + [0.75] + [None] * 18 + [0.25]
    assert len({one["user"] for one in told}) == 23 and "u1" not in (tmp_path / "log").read_text()
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


def test_sparse_rows_are_columns_and_values(tmp_path):
    log, X = DecisionLog(tmp_path / "log"), contexts(sparse, 2)
    X[:, :, 1] = 0
    with served(lambda: sparse(tmp_path / "s"), decision_log=log) as server, server.client() as client:
        client.select_batch(sp.csr_array(X.reshape(-1, DIM)), arms=3)
    log.close()
    one, other = joined(tmp_path / "log")
    assert one["contexts"][2] == {"columns": [0, 2, 3], "values": X[0, 2, [0, 2, 3]].tolist()}
    assert len(other["contexts"]) == 3


def test_who_is_forgotten_goes_from_the_log_too(tmp_path):
    log = DecisionLog(tmp_path / "log")
    with served(lambda: sparse(tmp_path / "s"), decision_log=log) as server, server.client() as client:
        X = contexts(sparse, 4)
        mine = client.select(X[0] * 17, user="me")
        client.update(mine, 0.125)
        other = client.select(X[1], user="other")
        with Client(client.url, OPERATOR) as operator:
            operator.forget("me")
        later = client.select(X[2], user="other too")
        client.update(later, 0.5)
    log.close()
    assert [one["id"] for one in joined(tmp_path / "log")] == [number(other.id), number(later.id)]
    text = (tmp_path / "log").read_text()
    assert "0.125" not in text and str(float(X[0, 0, 0] * 17)) not in text
    assert list(tmp_path.glob("log*")) == [tmp_path / "log"]


def test_the_command_prints_what_the_server_noted(tmp_path, capsys):
    log = tmp_path / "log"
    new = ["--dim", str(DIM), "--sparsity", "1", "--epsilon", "1", "--delta", "0.01"]
    with Process(tmp_path / "s", *new, "--decision-log", str(log)) as server:
        for place in range(3):
            server.client.update(server.client.select(np.ones((2, DIM))), place)
        assert main(["export", str(log)]) == 0  # while it plays
        assert server.end()[0] == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["reward"] for one in lines] == [0.0, 1.0, 2.0]
    assert all(one["probability"] == 0.5 for one in lines)
