"""A served policy does what the policy does: rounds, batches, keys, rewards, public facts, numbers."""

import json
import re
import threading

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("starlette", reason="needs fliphat[serve]")
pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

from fliphat import FLIPHAT, Store
from fliphat.policies.engine import faults
from fliphat.serve import Limits, ServerError, compact, openapi
from served import OPERATOR, WRITE, served
from served import number as number_of

DIM = 6
ARGUMENTS = {"dim": DIM, "sparsity": 2, "epsilon": 1.0, "delta": 0.01, "first_episode": 8}


def contexts(number, rounds=None):
    shape = (3, DIM) if rounds is None else (rounds, 3, DIM)
    return np.random.default_rng(number).standard_normal(shape).astype(np.float32)


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def server(store):
    with served(lambda: FLIPHAT(**ARGUMENTS, store=Store(store, durability="group"))) as server:
        yield server


def seeded(store=None):
    return lambda: FLIPHAT(**ARGUMENTS, seed=5, store=Store(store, durability="group"))


@pytest.mark.parametrize("how", ["json", "compact", "client"])
def test_decisions_and_estimates_are_those_of_the_policy(how, store):
    direct = seeded()()
    with served(seeded(store)) as server, server.client() as client:
        for number in range(30):
            expected = direct.select(contexts(number), user=f"u{number}", key=number)
            direct.update(expected, 0.5)
            if how == "client":
                decided = client.select(contexts(number), user=f"u{number}", key=number)
                assert decided == (server.id(expected.id), *expected[1:])
                assert client.update(decided, 0.5)
                continue
            if how == "json":
                body = {"contexts": contexts(number).tolist(), "user": f"u{number}", "key": number}
                status, told = server.ask("POST", "/select", body)
                assert (status, told) == (200, expected._asdict() | {"id": server.id(expected.id)})
            else:
                body = compact.write_rounds(contexts(number), users=f"u{number}", keys=number)
                status, told = server.ask("POST", "/select", body, kind=compact.COMPACT)
                assert (status, told) == (200, expected._asdict() | {"id": server.id(expected.id)})
            assert server.ask("POST", "/update", {"id": server.id(expected.id), "reward": 0.5}) == (
                200,
                {"taken": True},
            )
        shown = server.ask("GET", "/estimate", token=None)[1]
        assert shown["values"] == direct.estimate.values.tolist()
        assert shown["indices"] == direct.estimate.indices.tolist()
        assert shown["episodes_released"] == direct.episode > 0
    with FLIPHAT(**ARGUMENTS, seed=5, store=store) as again:
        assert again.rounds == 30


@pytest.mark.parametrize("layout", ["json", "dense", "csr"])
@pytest.mark.parametrize("keyed", [False, True])
def test_batches_cross_episodes_and_are_those_of_the_policy(layout, keyed, store):
    direct, X = seeded()(), contexts(1, 25)
    keys = [f"k{i}" for i in range(25)] if keyed else None
    expected = [direct.select(one, key=keys[i] if keys else None) for i, one in enumerate(X)]
    with served(seeded(store)) as server, server.client() as client:
        for _ in range(2 if keyed else 1):  # with keys the same batch again is the same rounds
            if layout == "json":
                body = {"contexts": X.tolist()} | ({"keys": keys} if keys else {})
                told = server.ask("POST", "/select", body)[1]
                found = list(zip(told["ids"], told["arms"], told["episodes"], strict=True))
            else:
                given = X if layout == "dense" else sp.csr_array(X.reshape(-1, DIM))
                decided = client.select_batch(given, keys=keys, arms=None if layout == "dense" else 3)
                found = [(one.id, one.arm, one.episode) for one in decided]
            assert found == [(server.id(one.id), one.arm, one.episode) for one in expected]
        assert len({episode for _, _, episode in found}) > 1
        assert server.owner.public.rounds == 25
        # Those of the open episode are taken, the others are late.
        taken = client.update_batch([one[0] for one in found], np.full(25, 0.5))
        assert taken == sum(one[2] == direct.episode for one in found)


def test_the_same_key_again_is_the_same_round_whatever_the_contexts(server):
    body = {"contexts": contexts(0).tolist(), "user": "a", "key": "k"}
    first = server.ask("POST", "/select", body)
    assert server.ask("POST", "/select", body | {"contexts": contexts(1).tolist()}) == first
    assert server.owner.public.rounds == 1
    assert server.ask("POST", "/select", body | {"user": "b"})[1]["id"] != first[1]["id"]


def test_a_reward_finds_its_round_by_key_and_user(server):
    with server.client() as client:
        key = "a key of 16 characters"
        client.select(contexts(0), user="a", key=key)
        client.select(contexts(0), user="b", key=key)
        assert client.update(reward=1.0, key=key, user="b")
        assert server.owner._policy.pending == [1]
        with pytest.raises(ServerError, match="422"):
            client.update(reward=1.0, key=key, user="c")


def test_a_second_reward_is_a_conflict_and_a_late_one_is_told(server):
    with server.client() as client:
        first = client.select(contexts(0))
        assert client.update(first, 1.0)
        with pytest.raises(ServerError, match="409 already"):
            client.update(first, 1.0)
        unrewarded = client.select(contexts(1))
        client.select_batch(contexts(2, 10))
        assert client.update(unrewarded, 1.0) is False


def test_public_addresses_need_no_token_and_the_others_do(server):
    for path in ("/estimate", "/guarantee", "/livez", "/readyz", "/metrics", "/openapi.json", "/"):
        assert server.ask("GET", path, token=None)[0] == 200, path
    for token in (None, "wrong", OPERATOR, WRITE + "x", WRITE[:-1]):
        for path in ("/select", "/update"):
            status, told = server.ask("POST", path, {"contexts": contexts(0).tolist()}, token=token)
            assert (status, told["error"]) == (401, "token")
    assert server.owner.public.rounds == 0


def test_the_guarantee_and_health_are_the_policys(server):
    told = server.ask("GET", "/guarantee", token=None)[1]
    assert told["epsilon"] == 1.0 and "epsilon = 1.0" in told["text"] and told["proven"]
    assert told["user_ids"] == server.owner.public.guarantee.user_ids
    server.ask("POST", "/select", {"contexts": contexts(0).tolist(), "user": "a"})
    assert server.ask("GET", "/guarantee", token=None)[1]["user_ids"] != told["user_ids"]
    assert server.ask("GET", "/readyz", token=None)[1]["status"] == "ready"
    assert server.ask("GET", "/livez", token=None) == (200, {"status": "alive"})


def test_private_counts_are_for_operators_only(server):
    bad = contexts(0)
    bad[0, 0] = np.nan
    with server.client() as client:
        assert not client.select(bad).valid
        client.update(client.select(contexts(1)), 0.5)
    public = server.ask("GET", "/metrics", token=None)[1].decode()
    assert "fliphat_rounds_total 2.0" in public
    assert not re.search("rewards|invalid|late|request|sync", public)
    assert server.ask("GET", "/metrics", token=WRITE)[0] == 401
    private = server.ask("GET", "/metrics", token=OPERATOR)[1].decode()
    assert "fliphat_invalid_rounds_total 1.0" in private and "fliphat_rewards_total 1.0" in private
    assert 'fliphat_requests_total{route="/select",status="200"} 2.0' in private


def together(server, count, what):
    """Do something `count` times at once; the results."""
    results, threads = [None] * count, []
    for i in range(count):
        threads.append(threading.Thread(target=lambda i=i: results.__setitem__(i, what(i))))
        threads[-1].start()
    for thread in threads:
        thread.join(60)
    return results


def test_rounds_that_wait_for_the_disk_share_a_sync(server, monkeypatch):
    server.ask("POST", "/select", {"contexts": contexts(0).tolist(), "key": "first"})
    begun, go_on = threading.Event(), threading.Event()

    def slow(point):
        if point == "calls written":
            begun.set()
            assert go_on.wait(30)

    monkeypatch.setattr(faults, "reached", slow)
    before, groups, told = server.owner.public.rounds, [], server.owner.on_group
    monkeypatch.setattr(server.owner, "on_group", lambda jobs: (groups.append(jobs), told(jobs)))
    body = {"contexts": contexts(1).tolist()}
    one = threading.Thread(target=lambda: server.ask("POST", "/select", body))
    one.start()
    assert begun.wait(30)

    def release_when_all_wait():
        while server.owner.waiting < 6:
            pass
        assert server.owner.public.rounds == before  # nobody was told before the disk was
        go_on.set()

    watcher = threading.Thread(target=release_when_all_wait)
    watcher.start()
    answers = together(server, 5, lambda _: server.ask("POST", "/select", body))
    one.join()
    watcher.join()
    assert [status for status, _ in answers] == [200] * 5
    assert server.owner.public.rounds == before + 6
    assert len(groups) == 2  # the first alone, then all that had gathered


def test_addresses_that_read_answer_while_an_estimate_is_fitted(server):
    with server.client() as client:
        client.select_batch(contexts(0, 8))
        engine = server.owner._policy._engine
        begun, go_on, run = threading.Event(), threading.Event(), engine.fit.run

        def slow(*arguments):
            begun.set()
            assert go_on.wait(30)
            return run(*arguments)

        engine.fit.run = slow
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(client.select(contexts(1))))
        waiting.start()
        assert begun.wait(30)
        assert server.ask("GET", "/readyz", token=None)[0] == 200
        assert server.ask("GET", "/estimate", token=None)[1]["episodes_released"] == 0
        assert not answers
        go_on.set()
        waiting.join(30)
        assert answers[0].episode == 1
        assert server.ask("GET", "/estimate", token=None)[1]["episodes_released"] == 1


def test_whoever_waits_too_long_is_told_whether_it_happened(store):
    limits = Limits(wait=0.4)
    with served(
        lambda: FLIPHAT(**ARGUMENTS, store=Store(store, durability="group")), limits=limits
    ) as server:
        begun, go_on = threading.Event(), threading.Event()
        real = server.owner._policy._select_each

        def slow(*arguments):
            begun.set()
            assert go_on.wait(30)
            return real(*arguments)

        server.owner._policy._select_each = slow
        first = []
        body = {"contexts": contexts(0).tolist(), "key": "first"}
        thread = threading.Thread(target=lambda: first.append(server.ask("POST", "/select", body)))
        thread.start()
        assert begun.wait(30)
        status, told = server.ask("POST", "/select", {"contexts": contexts(1).tolist()})
        assert (status, told["error"]) == (503, "busy") and "nothing happened" in told["detail"]
        thread.join(30)
        assert first[0][0] == 504 and "same key" in first[0][1]["detail"]
        go_on.set()
        status, told = server.ask("POST", "/select", body)
        assert status == 200 and number_of(told["id"]) == 1  # the round that nobody was told of
        assert server.owner.public.rounds == 1


def test_more_than_may_wait_are_refused_at_once(store):
    limits = Limits(waiting=1)
    with served(
        lambda: FLIPHAT(**ARGUMENTS, store=Store(store, durability="group")), limits=limits
    ) as server:
        policy, begun, go_on = server.owner._policy, threading.Event(), threading.Event()
        real = policy._select_each
        policy._select_each = lambda *given: (begun.set(), go_on.wait(30), real(*given))[2]
        body = {"contexts": contexts(0).tolist()}
        thread = threading.Thread(target=lambda: server.ask("POST", "/select", body))
        thread.start()
        assert begun.wait(30)
        assert server.ask("POST", "/select", body)[1]["error"] == "busy"
        go_on.set()
        thread.join(30)
        assert server.owner.public.rounds == 1


def test_the_description_has_every_address(server):
    told = server.ask("GET", "/openapi.json", token=None)[1]
    paths = {route.path for route in server.app.routes}
    assert set(told["paths"]) | {"/arms"} == paths  # arms only where the policy has a list of them
    assert server.ask("GET", "/arms", token=None)[1]["error"] == "no arms"
    assert json.dumps(openapi.document(Limits(), server.owner.terms)) == json.dumps(told)
    assert told["components"]["schemas"]["Round"]["properties"]["contexts"]["items"]["maxItems"] == DIM
    assert f"FLIPHAT, with {DIM} columns" in told["info"]["description"]


def test_stopping_answers_what_was_accepted_and_keeps_it(store):
    answers, lock = [], threading.Lock()
    stop = threading.Event()

    def play(client_number):
        with server.client(attempts=1) as client:
            while not stop.is_set():
                try:
                    decision = client.select(contexts(client_number))
                except (OSError, ServerError):
                    return
                with lock:
                    answers.append(number_of(decision.id))

    with served(lambda: FLIPHAT(**ARGUMENTS, store=Store(store, durability="group"))) as server:
        threads = [threading.Thread(target=play, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        while len(answers) < 30:
            pass
    stop.set()
    for thread in threads:
        thread.join(30)
    assert len(set(answers)) == len(answers)
    with FLIPHAT.open(store) as policy:
        assert policy.rounds >= len(answers)
        assert policy.rounds == max(answers)
