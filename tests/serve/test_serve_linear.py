"""PrivateLinear behind HTTP: one context a round, arms by id, arms that come and go; and what opens what."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("starlette", reason="needs fliphat[serve]")
pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

from fliphat import FLIPHAT, PrivateLinear, Store
from fliphat.lab.display.terminal import store_lines
from fliphat.policies.store.inspect import inspect_path, verify_path
from fliphat.policies.types import StoreError
from fliphat.serve import Client, ServerError, compact
from fliphat.serve.opening import checked_arguments, open_policy
from served import OPERATOR, WRITE, Process, served

DIM = 5
ARMS = ["red", "blue", 7]
ARGUMENTS = {"arms": ARMS, "dim": DIM, "epsilon": 1.0, "delta": 0.01, "context_norm": 2.0, "first_episode": 9}


def made(store=None, **more):
    return PrivateLinear(**ARGUMENTS, **more, store=Store(store, durability="group"))


def contexts(number, *shape):
    return np.random.default_rng(number).standard_normal((*shape, DIM)).astype(np.float32)


@pytest.fixture(params=["directory", "database"])
def store(request, tmp_path):
    return tmp_path / "store" if request.param == "directory" else request.getfixturevalue("database").new()


@pytest.fixture
def server(tmp_path):
    with served(lambda: made(tmp_path / "store")) as server:
        yield server


@pytest.mark.parametrize("model", ["disjoint", "shared"])
@pytest.mark.parametrize("how", ["json", "compact", "client"])
def test_decisions_and_estimates_are_those_of_the_policy(how, model, tmp_path):
    direct = made(seed=5, model=model)
    shape = () if model == "disjoint" else (3,)
    with served(lambda: made(tmp_path / "s", seed=5, model=model)) as server, server.client() as client:
        for number in range(30):
            X = contexts(number, *shape)
            expected = direct.select(X, user=f"u{number}", key=number)
            direct.update(expected, 0.5)
            if how == "client":
                decided = client.select(X, user=f"u{number}", key=number)
                assert decided == (server.id(expected.id), *expected[1:])
            elif how == "json":
                told = server.ask(
                    "POST", "/select", {"contexts": X.tolist(), "user": f"u{number}", "key": number}
                )
                assert told == (200, expected._asdict() | {"id": server.id(expected.id)})
            else:
                body = compact.write_rounds(X, users=f"u{number}", keys=number, single=True)
                told = server.ask("POST", "/select", body, kind=compact.COMPACT)
                assert told == (200, expected._asdict() | {"id": server.id(expected.id)})
            assert client.update(server.id(expected.id), 0.5)
        shown = client.get("/estimate")
        assert shown["arms"] == ARMS and shown["episodes_released"] == direct.episode > 0
        assert shown["coefficients"] == [row.tolist() for row in direct.coefficients.values()]
        assert client.get("/guarantee")["proven"] is False and client.get("/readyz")["status"] == "ready"
        assert "fliphat_rounds_total 30.0" in server.ask("GET", "/metrics", token=None)[1].decode()


@pytest.mark.parametrize("layout", ["json", "dense", "csr"])
@pytest.mark.parametrize("keyed", [False, True])
def test_batches_cross_episodes_and_are_those_of_the_policy(layout, keyed, tmp_path):
    direct, X = made(seed=5), contexts(1, 25)
    keys = [f"k{i}" for i in range(25)] if keyed else None
    expected = [direct.select(one, key=keys[i] if keys else None) for i, one in enumerate(X)]
    with served(lambda: made(tmp_path / "s", seed=5)) as server, server.client() as client:
        for _ in range(2 if keyed else 1):
            if layout == "json":
                body = {"contexts": X.tolist()} | ({"keys": keys} if keys else {})
                told = server.ask("POST", "/select", body)[1]
                found = list(zip(told["ids"], told["arms"], told["episodes"], strict=True))
            else:
                decided = client.select_batch(X if layout == "dense" else sp.csr_array(X), keys=keys)
                found = [(one.id, one.arm, one.episode) for one in decided]
            assert found == [(server.id(one.id), one.arm, one.episode) for one in expected]
        assert server.owner.public.rounds == 25


def test_a_stored_policy_is_played_inspected_and_gone_on_with(store):
    """The same for a directory and a database."""
    with served(lambda: made(store)) as server, server.client() as client:
        first = client.select(contexts(0), user="a", key="k")
        assert client.select(contexts(1), user="a", key="k") == first
        for number in range(1, 25):
            assert client.update(client.select(contexts(number), user=f"u{number}"), 1.0)
        with Client(client.url, OPERATOR) as operator:
            operator.add_arm("green")
            operator.remove_arm("red")
        shown = client.get("/estimate")
        assert shown["arms"] == client.get("/arms")["arms"] == ["blue", 7, "green"]
    seen = inspect_path(store)
    assert seen["rounds"] == 25 and verify_path(store).ok
    assert seen["policy"] == "PrivateLinear" and seen["arms"] == ["blue", 7, "green"]
    told = "\n".join(store_lines(seen))
    assert f"PrivateLinear: dim {DIM}" in told and "arms blue, 7, green" in told
    # Arguments of the beginning, whose arms are not those of now; and none at all.
    for given in (ARGUMENTS, ARGUMENTS | {"policy": "PrivateLinear"}, None):
        with open_policy(str(store), given, "full") as again:
            assert again.arms == ("blue", 7, "green") and again.rounds == 25
    with pytest.raises(StoreError, match=r"epsilon was 1\.0, got 2\.0"):
        open_policy(str(store), ARGUMENTS | {"epsilon": 2.0}, "full")
    with served(lambda: open_policy(str(store), None, "full")) as server, server.client() as client:
        assert client.select(contexts(0), user="a", key="k")[:4] == first[:4]  # an arm that is gone, too
        assert {
            one.arm for one in client.select_batch(contexts(3, 40), users=[f"v{i}" for i in range(40)])
        } <= {
            "blue",
            7,
            "green",
        }


def test_arms_change_for_operators_only_and_at_once(server):
    with server.client() as client, Client(f"http://127.0.0.1:{server.port}", OPERATOR) as operator:
        client.select(contexts(0))
        for token in (None, WRITE, "wrong"):
            assert server.ask("POST", "/arms", {"add": "green"}, token=token)[0] == 401
        for _ in range(2):  # a repeated change changes nothing
            operator.add_arm("green")
            assert server.ask("GET", "/arms", token=None)[1] == {"arms": [*ARMS, "green"]}
        for arm in ARMS:
            operator.remove_arm(arm)
        operator.remove_arm("red")
        # A client that knew three arms meets a fourth.
        assert {one.arm for one in client.select_batch(contexts(1, 5))} == {"green"}
        with pytest.raises(ServerError, match="422 unprocessable: the last arm"):
            operator.remove_arm("green")
        with pytest.raises(ServerError, match="422 unprocessable: remove must name"):
            operator.remove_arm("Erika Mustermann")
        operator.add_arm("red")
        assert client.get("/arms") == {"arms": ["red", "green"]}
        assert client.get("/estimate")["arms"] == ["red", "green"]
    described = server.ask("GET", "/openapi.json", token=None)[1]
    assert set(described["paths"]["/arms"]) == {"get", "post"}
    assert f"PrivateLinear, with {DIM} columns and 2 arms" in described["info"]["description"]
    assert server.ask("GET", "/status", token=None)[1]["arms"] == ["red", "green"]


BAD = {
    "too few columns": ({"contexts": [1.0] * 4}, 422, "dim = 5 numbers"),
    "a row for each arm": ({"contexts": [[[1.0] * DIM] * 3]}, 422, "must be a list of numbers"),
    "one of several too short": ({"contexts": [[1.0] * DIM, [1.0]]}, 422, "dim = 5 numbers"),
    "a number": ({"contexts": 1.0}, 422, "nested lists"),
    "nothing": ({"contexts": []}, 422, "nested lists"),
    "users of a single round": ({"contexts": [1.0] * DIM, "users": ["u"]}, 422, "a single round has user"),
    "user of a batch": ({"contexts": [[1.0] * DIM] * 2, "user": "u"}, 422, "a batch has users"),
    "compact, three rows": (
        compact.write_rounds(np.ones((3, DIM), np.float32)),
        422,
        "one row for all arms",
    ),
    "compact, other dim": (compact.write_rounds(np.ones(4, np.float32)), 422, "dim = 5 columns, got 4"),
    "compact, too short": (compact.write_rounds(np.ones(DIM, np.float32))[:-4], 400, "size"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_contexts_have_a_clear_status(server, name):
    body, status, words = BAD[name]
    kind = compact.COMPACT if isinstance(body, bytes) else "application/json"
    found, told = server.ask("POST", "/select", body, kind=kind)
    assert found == status and words in told["detail"] and server.owner.public.rounds == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        ({}, 422),
        ({"add": "a", "remove": "b"}, 422),
        ({"add": ["a"]}, 422),
        ({"add": True}, 422),
        ({"add": None}, 422),
        ({"arm": "a"}, 422),
        (b'{"add": "\\ud800"}', 400),
    ],
)
def test_bad_changes_of_arms_change_nothing(server, body, status):
    assert server.ask("POST", "/arms", body, token=OPERATOR)[0] == status
    assert server.ask("GET", "/arms")[1]["arms"] == ARMS


def test_nan_is_one_round_that_is_not_learned_from(server):
    told = server.ask("POST", "/select", {"contexts": [[1.0] * DIM, [None] + [1.0] * 4]})[1]
    assert told["valid"] == [True, False]


def test_rows_for_one_round_are_not_taken_for_rounds_of_fliphat(tmp_path):
    def opened():
        return FLIPHAT(
            dim=DIM, sparsity=2, epsilon=1.0, delta=0.01, store=Store(tmp_path / "s", durability="group")
        )

    with served(opened) as server, server.client() as client:
        for wrong in (contexts(0, 3), sp.csr_array(contexts(0, 3))):
            with pytest.raises(ServerError, match="422"):
                client.select_batch(wrong)  # three rounds of one row each, where each arm has a row
        with pytest.raises(ServerError, match="422"):
            client.select(contexts(0))
        with Client(client.url, OPERATOR) as operator, pytest.raises(ServerError, match="404 no arms"):
            operator.add_arm("green")
        assert server.owner.public.rounds == 0


def test_arms_that_json_can_not_hold_are_refused(tmp_path):
    PrivateLinear([b"red", b"blue"], DIM, 1.0, 0.01, context_norm=2.0, store=tmp_path / "s").close()
    with pytest.raises(ValueError, match="must be str or int"):
        open_policy(str(tmp_path / "s"), None, "group")
    PrivateLinear.open(tmp_path / "s").close()  # it was let go


# Which policy, from which arguments


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"policy": "Greedy"}, "policy must be one of"),
        ({"arms": 3, "step_size": 2}, "step_size is no argument of PrivateLinear"),
        ({"dim": 3, "context_norm": 1.0}, "context_norm is no argument of FLIPHAT"),
        ({"dim": 3, "store": "x"}, "store belongs to the command line"),
    ],
)
def test_arguments_of_no_policy_are_named(given, words):
    with pytest.raises(ValueError, match=words):
        checked_arguments(given)


def test_a_new_store_needs_all_arguments(tmp_path):
    with pytest.raises(ValueError, match=r"no store at .* yet: a new one needs"):
        open_policy(str(tmp_path / "s"), None, "group")
    with pytest.raises(ValueError, match="PrivateLinear needs epsilon, delta, context_norm too"):
        open_policy(str(tmp_path / "s"), {"arms": 2, "dim": 3}, "group")
    assert not (tmp_path / "s").exists()


def test_the_command_serves_it(tmp_path):
    new = [
        "--dim",
        str(DIM),
        "--arms",
        "red, blue",
        "--context-norm",
        "2",
        "--epsilon",
        "1",
        "--delta",
        "0.01",
    ]
    with Process(tmp_path / "s", *new) as process:
        decision = process.client.select(contexts(0), key="k")
        assert decision.arm in ("red", "blue") and process.client.update(decision, 1.0)
        answers = []

        def play():
            with Client(process.client.url, WRITE) as client:
                answers.append(client.select(contexts(1)))

        threads = [threading.Thread(target=play) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len({one.id for one in answers}) == 4
        assert process.end()[0] == 0
    file = tmp_path / "policy.toml"
    file.write_text(
        'policy = "PrivateLinear"\narms = ["red", "blue"]\ndim = 5\nepsilon = 1.0\ndelta = 0.01\ncontext_norm = 2.0\n'
    )
    with Process(tmp_path / "s", "--policy", str(file)) as process:
        assert process.client.select(contexts(9), key="k")[:4] == decision[:4]
        assert process.end()[0] == 0
