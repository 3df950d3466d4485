"""`fliphat serve` on a database: many servers and workers, one policy."""

import contextlib
import re
import subprocess
import sys
import threading
import time
from http.client import HTTPException

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

from fliphat import FLIPHAT, Iht
from fliphat.fit.iht.fit import IhtFit
from fliphat.policies.store.inspect import inspect_path, verify_path
from fliphat.serve import Client, ServerError
from served import OPERATOR, SERVE, WRITE, Process, served
from served import number as number_of

DIM = 6
GOOD = np.ones((2, DIM), np.float32)
NEW = ["--dim", str(DIM), "--sparsity", "2", "--epsilon", "1", "--delta", "0.01"]


@pytest.fixture
def url(database):
    return database.new()


@pytest.fixture
def start():
    """Start servers that do not outlive their test."""
    with contextlib.ExitStack() as stack:
        yield lambda *given: stack.enter_context(Process(*given))


def counted(process, token=OPERATOR):
    import urllib.request

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = urllib.request.Request(f"{process.client.url}/metrics", headers=headers)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return dict(re.findall(r"^(fliphat_\S+) (\S+)$", answer.read().decode(), re.M))


def test_two_servers_play_one_policy(url, tmp_path, start):
    file = tmp_path / "policy.toml"
    file.write_text("dim = 6\nsparsity = 2\nepsilon = 1.0\ndelta = 0.01\nfirst_episode = 60\n")
    one, other = start(url, "--policy", str(file)), start(url)  # the second takes the policy as it finds it
    decisions = {number: one.client.select(GOOD, user=number % 7, key=number) for number in range(20)}
    for number, decision in decisions.items():  # a retry that reaches another server
        assert other.client.select(GOOD * 2, user=number % 7, key=number) == decision
    more = [other.client.select(GOOD, user=number % 7, key=number).id for number in range(20, 40)]
    assert len({decision.id for decision in decisions.values()} | set(more)) == 40
    for decision in decisions.values():
        assert other.client.update(decision, 0.5)
    with pytest.raises(ServerError, match="409 already"):
        one.client.update(decisions[0], 0.5)
    assert one.client.update(more[1], reward=1.0)
    batch = one.client.select_batch(np.ones((30, 2, DIM), np.float32), users=[100 + i for i in range(30)])
    assert len(batch) == 30
    for process in (one, other):
        told = counted(process)
        assert float(told["fliphat_rewards_total"]) > 0
        assert "fliphat_rewards_total" not in counted(process, token=None)
        assert process.client.get("/guarantee")["user_ids"] == "checked"
    for _ in range(200):  # what one released, the other shows when it has looked
        if one.client.get("/estimate") == other.client.get("/estimate"):
            break
        time.sleep(0.05)
    assert one.client.get("/estimate") == other.client.get("/estimate")
    ends = [process.end() for process in (one, other)]
    assert [code for code, _ in ends] == [0, 0] and all('"stopped"' in lines for _, lines in ends)
    found = inspect_path(url, private=True)
    assert found["rounds"] == 70 and found["private"]["users"] == 37 and verify_path(url).ok


def test_the_workers_of_one_port_share_rounds_counts_and_a_graceful_stop(url, start):
    process = start(url, *NEW, "--workers", "2")
    answers, failed, lock, enough = [], [], threading.Lock(), threading.Event()

    def play(number):
        with Client(process.client.url, WRITE, attempts=1) as client:
            while True:
                try:
                    decision = client.select(GOOD)
                    taken = client.update(decision, 1.0)
                except (OSError, HTTPException, ServerError) as error:
                    failed.append(error)
                    return
                with lock:
                    answers.append((number_of(decision.id), taken))
                    if len(answers) >= 60:
                        enough.set()

    threads = [threading.Thread(target=play, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    assert enough.wait(60)
    told = counted(process)
    assert float(told['fliphat_requests_total{route="/select",status="200"}']) >= 60  # of all workers
    assert float(told["fliphat_rewards_total"]) + float(told["fliphat_rewards_not_taken_total"]) >= 60
    code, lines = process.end()  # while all of them are in the middle of something
    for thread in threads:
        thread.join(60)
    begun = lines.count('"started"')  # the second one may still have been on its way
    assert code == 0 and lines.count('"stopped"') == begun >= 1 and len(failed) == 6
    numbers = [identity % 2**40 for identity, _ in answers]
    assert len(set(numbers)) == len(numbers)
    with FLIPHAT.open(url) as policy:
        assert policy.rounds >= max(numbers) and policy.rounds <= len(numbers) + 6
        open_ones = set(policy.pending)
        assert not open_ones & {identity for identity, taken in answers if taken}
    assert verify_path(url).ok


def test_a_worker_that_nobody_asks_shows_what_others_released(url):
    def opened():
        return FLIPHAT(dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, fit=Iht(), first_episode=3, store=url)

    with opened() as elsewhere, served(opened) as server:
        for number in range(4):
            elsewhere.update(elsewhere.select(GOOD * number), 1.0)
        seen = elsewhere.estimate.values.tolist()
        for _ in range(200):
            told = server.ask("GET", "/estimate", token=None)[1]
            if told["episodes_released"] == 1:
                break
            threading.Event().wait(0.05)
        assert told["values"] == seen
        assert b"fliphat_rounds_total 4.0" in server.ask("GET", "/metrics", token=None)[1]


def test_ready_says_no_while_another_worker_hangs_in_its_fit_and_there_is_no_room_ahead(url, monkeypatch):
    def opened():
        return FLIPHAT(dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, fit=Iht(), first_episode=3, store=url)

    begun, go_on, run = threading.Event(), threading.Event(), IhtFit.run
    monkeypatch.setattr(IhtFit, "run", lambda *given: (begun.set(), go_on.wait(60), run(*given))[2])
    with opened() as hangs, opened() as plays, served(opened) as server:
        for _ in range(3):
            hangs.select(GOOD)
        thread = threading.Thread(target=hangs.select, args=(GOOD,))
        thread.start()
        try:
            assert begun.wait(30)
            assert server.ask("GET", "/readyz", token=None)[0] == 200  # there is room to play ahead
            while not plays._engine.waits_for_a_fit:
                plays.select(GOOD)
                plays._engine.refresh()
            time.sleep(0.6)  # what was kept just before is believed for half a second
            status, told = server.ask("GET", "/readyz", token=None)
            assert status == 503 and "another worker computes" in told["detail"]
        finally:
            go_on.set()
            thread.join(60)
        for _ in range(100):
            if server.ask("GET", "/readyz", token=None)[0] == 200:
                break
            time.sleep(0.1)
        assert server.ask("GET", "/readyz", token=None)[0] == 200


def test_a_batch_goes_on_in_the_next_episode_where_others_took_the_room(url, monkeypatch):
    def opened():
        return FLIPHAT(dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, fit=Iht(), first_episode=20, store=url)

    with opened() as elsewhere, served(opened) as server:
        policy, real, taken = server.owner._policy, server.owner._policy.select_batch, []

        def select_batch(*given, **named):
            if not taken:  # in between "how many are left" and the batch
                taken.append(elsewhere.select_batch(np.ones((15, 2, DIM), np.float32)))
            return real(*given, **named)

        monkeypatch.setattr(policy, "select_batch", select_batch)
        status, told = server.ask("POST", "/select", {"contexts": np.ones((12, 2, DIM)).tolist()})
        assert status == 200 and told["episodes"] == [0] * 5 + [1] * 7 and len(set(told["ids"])) == 12


def test_a_database_that_is_away_for_a_while(url, database, start):
    process = start(url, *NEW)
    before = process.client.select(GOOD, key="before")
    with database.connect() as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            (url.rsplit("/", 1)[1],),
        )
    assert process.client.select(GOOD, key="before") == before
    assert number_of(process.client.select(GOOD, key="after").id) == number_of(before.id) + 1
    with database.connect(url) as admin:
        admin.execute("ALTER TABLE fliphat_rounds RENAME TO away")
    hasty = Client(process.client.url, WRITE, attempts=1)
    with pytest.raises(ServerError, match="503 store: the store can't be written now"):
        hasty.select(GOOD, key="away")
    hasty.close()
    with database.connect(url) as admin:
        admin.execute("ALTER TABLE away RENAME TO fliphat_rounds")
    assert number_of(process.client.select(GOOD, key="away").id) % 2**40 == 3
    code, lines = process.end()
    assert code == 0 and '"store failed"' in lines and "fliphat_rounds" not in lines


LINEAR = [*NEW[:2], "--arms", "a,b", "--context-norm", "2", *NEW[4:]]


OTHER = [*NEW[:4], "--epsilon", "2", *NEW[6:]]


@pytest.mark.parametrize(
    ("first", "second", "words", "workers"),
    [
        (NEW, OTHER, "epsilon was 1.0, got 2.0", 1),
        (NEW, OTHER, "epsilon was 1.0, got 2.0", 2),
        (LINEAR, [*LINEAR[:-4], "--epsilon", "2", *LINEAR[-2:]], "epsilon was 1.0, got 2.0", 1),
        (LINEAR, NEW, "PrivateLinear", 1),
        (NEW, LINEAR, "FLIPHAT", 1),
    ],
)
def test_another_policy_on_the_same_database_is_refused_in_words(url, start, first, second, words, workers):
    running = start(url, *first)
    command = [sys.executable, "-c", SERVE, "serve", url, *second, "--no-token", "--workers", str(workers)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 2 and words in told.stderr and told.stderr.count("\n") == 1
    assert running.client.get("/readyz")["status"] == "ready"


def test_a_database_that_goes_read_only_for_a_while(url, database, start):
    process, name = start(url, *NEW), url.rsplit("/", 1)[1]
    before = process.client.select(GOOD, key="before")

    def read_only(state):
        with database.connect() as admin:
            admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {state}")
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
            )

    read_only("on")
    with Client(process.client.url, WRITE, attempts=1) as hasty:
        with pytest.raises(ServerError, match="503 store: the store can't be written now"):
            hasty.select(GOOD, key="meanwhile")
        assert hasty.get("/estimate")["episodes_released"] == 0  # what is public is still known
    read_only("off")
    assert process.client.select(GOOD * 2, key="before")[:4] == before[:4]
    assert number_of(process.client.select(GOOD, key="meanwhile").id) % 2**40 == 2
    code, lines = process.end()
    assert code == 0 and name not in lines and verify_path(url).ok


def test_a_copy_that_its_witness_refused_is_not_ready_though_it_can_be_written(url, database, start):
    process = start(url, *NEW)
    process.client.select(GOOD)
    with database.connect(url) as admin:
        admin.execute("UPDATE fliphat_episodes SET phase = 'refused'")
    time.sleep(0.6)  # what was played shows for half a second that rounds can be
    with Client(process.client.url, attempts=1) as asking, pytest.raises(ServerError, match="503"):
        asking.get("/readyz")
    assert '"reason": "the witness refuses this copy"' in process.end()[1]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_wrong_address_is_said_once_without_the_password(database, workers):
    address = f"postgresql://fliphat:secret-word@127.0.0.1:{database.port}/nothing-here"
    command = [sys.executable, "-c", SERVE, "serve", address, *NEW, "--no-token", "--workers", str(workers)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 2 and "can't be reached" in told.stderr and told.stderr.count("\n") == 1
    assert "secret-word" not in told.stderr + told.stdout
