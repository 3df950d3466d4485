"""The operator's page: public facts, nothing from elsewhere, and it runs in a browser."""

import re
import shutil
import subprocess
import threading

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs fliphat[serve]")
pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

from fliphat import FLIPHAT, PrivateLinear, Store
from fliphat.serve import page
from fliphat.serve.refusal import Refusal
from served import served

DIM = 5
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def sparse(store):
    made = {"dim": DIM, "sparsity": 2, "epsilon": 1.0, "delta": 0.01, "first_episode": 8}
    return FLIPHAT(**made, store=Store(store, durability="group"))


def linear(store):
    made = {"dim": DIM, "epsilon": 1.0, "delta": 0.01, "context_norm": 2.0, "first_episode": 8}
    return PrivateLinear(["red", "<b>blue</b>"], **made, store=Store(store, durability="group"))


def play(server, make, rounds):
    shape = (rounds, 3, DIM) if make is sparse else (rounds, DIM)
    with server.client() as client:
        return client.select_batch(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize("make", [sparse, linear])
def test_the_status_is_what_is_public(make, tmp_path):
    with served(lambda: make(tmp_path / "s")) as server:
        told = server.ask("GET", "/status", token=None)[1]
        assert told["released"] == told["rounds"] == 0 and told["releases"] == [] and told["ready"]
        play(server, make, 20)
        told = server.ask("GET", "/status", token=None)[1]
        policy = server.owner._policy
        assert (told["rounds"], told["episode"], told["released"]) == (
            20,
            policy.episode,
            len(policy.history),
        )
        assert told["played_in_episode"] == 20 - sum(one.rounds for one in policy.history)
        assert [one["episode"] for one in told["releases"]] == [one.episode for one in policy.history][::-1]
        assert told["guarantee"] == str(policy.guarantee) and told["scoreboard"] == str(policy.scoreboard)
        assert told["arms"] == (None if make is sparse else ["red", "<b>blue</b>"])
        assert not re.search("reward", str(told["releases"])) and "late" not in told and "pending" not in told


def test_what_is_not_known_yet_is_told_and_shown(tmp_path):
    """Too few rounds to say whether the policy learns is neither "no sign of trouble" nor a finding."""
    with served(lambda: linear(tmp_path / "s")) as server:
        told = server.ask("GET", "/status", token=None)[1]
        assert told["findings"] == [] and told["health"].startswith("nothing was measured yet")
        counted = server.ask("GET", "/metrics", token=None)[1].decode()
        assert "fliphat_health_findings 0.0" in counted and "fliphat_health_unknown 1.0" in counted
        play(server, linear, 60)
        told = server.ask("GET", "/status", token=None)[1]
        assert told["released"] > 2 and told["findings"] == []
        assert told["health"].startswith("not known yet whether the policy earns more than uniform play")
        # How many rounds there are until the next release is told elsewhere.
        assert told["health"] == server.owner._policy.health.unknown
    shown_where_nothing_is_found = (
        page.shown().body.decode().split("told.findings.length")[1].split('at("earns")')[0]
    )
    assert "told.health" in shown_where_nothing_is_found


def test_the_page_is_one_file_that_may_ask_this_server_alone(tmp_path):
    with served(lambda: sparse(tmp_path / "s")) as server, server.raw() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        data = b""
        while part := connection.recv(65536):
            data += part
    head, body = data.decode().split("\r\n\r\n", 1)
    assert not re.search(r"https?://|@import|src=|<link|innerHTML|url\(", body)
    policy = re.search("content-security-policy: (.*)", head)[1]
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy and "unsafe" not in policy
    assert page._digest(body, "script") in policy


def shown(server, seconds=4000):
    """Return the page as a browser has it, when its scripts have run."""
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", f"--virtual-time-budget={seconds}"]
    found = subprocess.run(
        [*command, "--dump-dom", f"http://127.0.0.1:{server.port}/"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return found.stdout


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs a Chromium")
def test_a_browser_shows_where_the_policy_is(tmp_path):
    with served(lambda: linear(tmp_path / "s")) as server:
        play(server, linear, 20)
        seen = shown(server)
        assert re.search(r"<b>20</b><span[^>]*>rounds played", seen) and ">ready</span>" in seen
        assert "&lt;b&gt;blue&lt;/b&gt;" in seen and "<span><b>blue" not in seen  # an arm's name is text
        assert "epsilon = 1.0" in seen and "POST /select" in seen and "<p>Not known yet whether" in seen
        go_on = threading.Event()
        server.owner._policy._select_each = lambda *_: go_on.wait(60)
        waiting = threading.Thread(
            target=server.ask, args=("POST", "/select", {"contexts": [0.0] * DIM}), daemon=True
        )
        waiting.start()
        assert "not ready" in shown(server, 9000)
        go_on.set()
        waiting.join(60)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs a Chromium")
def test_a_page_whose_server_says_nothing_any_more_does_not_go_on_saying_that_it_is_well(tmp_path):
    with served(lambda: linear(tmp_path / "s")) as server:
        play(server, linear, 20)
        real, asked = server.owner.ready, []

        async def once():
            asked.append(1)
            if len(asked) > 1:
                raise Refusal(503, "starting", "words of the server")
            return await real()

        server.owner.ready = once
        seen = shown(server, 9000)
    assert len(asked) > 1 and ">no answer</span>" in seen and "<b>20</b>" in seen
    assert "words of the server" in seen and "Rounds can be played" not in seen
