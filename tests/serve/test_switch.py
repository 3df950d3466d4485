"""The switch: one arm for every round, at once, kept, and without the store."""

import time

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs fliphat[serve]")
pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

from fliphat import FLIPHAT, PrivateLinear, Store
from fliphat.policies.types import StoreError
from fliphat.serve import Client, owner
from served import OPERATOR, WRITE, served

DIM = 5


def sparse(store, durability="group"):
    made = {"dim": DIM, "sparsity": 2, "epsilon": 1.0, "delta": 0.01, "first_episode": 8}
    return FLIPHAT(**made, store=Store(store, durability=durability))


def linear(store, durability="group"):
    made = {"dim": DIM, "epsilon": 1.0, "delta": 0.01, "context_norm": 2.0, "first_episode": 8}
    return PrivateLinear(["red", "blue"], **made, store=Store(store, durability=durability))


def contexts(make, rounds=None):
    shape = (3, DIM) if make is sparse else (DIM,)
    return np.ones(shape if rounds is None else (rounds, *shape), np.float32)


@pytest.mark.parametrize(("make", "arm", "wrong"), [(sparse, 2, "red"), (linear, "blue", 1)])
def test_the_switch_plays_one_arm_and_learns_nothing(make, arm, wrong, tmp_path):
    with served(lambda: make(tmp_path / "s")) as server, server.client() as client:
        before = client.select(contexts(make), key="before")
        for body in ({"arm": wrong}, {"arm": True}, {"arm": -1}, {}, {"arm": [arm]}):
            assert server.ask("POST", "/switch", body, token=OPERATOR)[0] == 422
        assert server.ask("POST", "/switch", {"arm": arm}, token=WRITE)[0] == 401
        with Client(client.url, OPERATOR) as operator:
            operator.switch_off(arm)
            decided = [client.select(contexts(make)) for _ in range(20)]
            decided += client.select_batch(contexts(make, 20))
            status, told = server.ask("POST", "/select", {"contexts": contexts(make).tolist()})
            assert (status, told["arm"], told["valid"], told["probability"]) == (200, arm, False, 1.0)
            assert {one.arm for one in decided} == {arm}
            assert not any(client.update(one, 1.0) for one in decided[:3])
            assert client.update_batch([before.id, *(one.id for one in decided[:4])], [1.0] * 5) == 1
            shown = server.ask("GET", "/status", token=None)[1]
            assert shown["switched_off"] == arm and shown["rounds"] == 1
            operator.switch_on()
        assert client.select(contexts(make), key="before") == before
        client.select(contexts(make))
        assert server.owner.public.rounds == 2


@pytest.mark.parametrize("make", [sparse, linear])
def test_the_switch_outlasts_a_restart(make, tmp_path):
    arm = 1 if make is sparse else "red"
    for off in (arm, None):
        with (
            served(lambda: make(tmp_path / "s")) as server,
            Client(server.client().url, OPERATOR) as operator,
        ):
            operator.switch_off(arm)
            if off is None:
                operator.switch_on()
        with served(lambda: make(tmp_path / "s")) as server:
            assert server.owner.switched_off == off


def test_rounds_have_an_arm_while_the_store_is_broken(tmp_path, monkeypatch):
    monkeypatch.setattr(owner, "_REOPEN", 1e9)
    with served(lambda: sparse(tmp_path / "s")) as server, server.client(attempts=1) as client:
        client.select(contexts(sparse))

        def broken(*_, **__):
            raise StoreError("broken")

        monkeypatch.setattr(server.owner._policy._engine.store, "keep", broken)
        assert server.ask("POST", "/switch", {"arm": 1}, token=OPERATOR)[0] == 503  # off, and not kept
        assert [client.select(contexts(sparse)).arm for _ in range(5)] == [1] * 5
        status, told = server.ask("GET", "/readyz", token=None)
        assert status == 200 and "switched off" in told["detail"]


def test_every_worker_follows_the_switch(database):
    url = database.new()
    with (
        served(lambda: sparse(url, "full")) as one,
        served(lambda: sparse(url, "full")) as other,
        Client(one.client().url, OPERATOR) as operator,
        other.client() as client,
    ):
        operator.switch_off(1)
        for _ in range(200):
            if other.owner.switched_off == 1:
                break
            time.sleep(0.05)
        assert {client.select(contexts(sparse)).arm for _ in range(20)} == {1}
        assert other.owner.public.rounds == 0
