"""A policy in a database can be looked at and checked without its arguments, while it plays, by whoever may only read."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fliphat import FLIPHAT, cli
from fliphat.fit.iht.fit import IhtFit
from fliphat.policies import StoreError
from fliphat.policies.store.inspect import inspect_path, verify_path
from policy_model import DIM
from small_linear import open_linear
from small_store import open_store

ONES = np.ones((2, DIM), np.float32)


@pytest.fixture
def url(server):
    return server.new()


def play(policy, rounds, sparse=False):
    for number in range(rounds):
        decision = policy.select(ONES, user=f"secret user {policy.rounds}", key=number)
        if number % 2:
            policy.update(decision, 0.25)


def as_reader(server, url):
    """The address of an account that may only read this database, with a password."""
    with server.connect(url) as admin:
        name = f"reader_{admin.info.dbname}"
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'secret-word'")
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}")
    return url.replace("fliphat@", f"{name}:secret-word@")


def test_a_live_policy_is_seen_as_it_sees_itself_by_a_reader(server, url, fits):
    with open_store(url) as policy:
        reader = as_reader(server, url)
        for rounds in (0, 1, 2, 3, 7, 20):
            play(policy, rounds)
            found = inspect_path(reader, private=True)
            assert verify_path(reader).damage == ()
            assert (found["episode"], found["rounds"], found["remaining"]) == (
                policy.episode,
                policy.rounds,
                policy.remaining,
            )
            assert found["estimate"]["values"] == policy.estimate.values.tolist()
            assert [one["episode"] for one in found["history"]] == [one.episode for one in policy.history]
            assert found["guarantee"]["text"] == str(policy.guarantee)
            assert found["health"] == list(policy.health.findings)
            assert found["private"]["late"] == policy.late
            assert found["private"]["rewards"] + len(policy.pending) == found["rounds"] - sum(
                facts.rounds for facts in policy.history
            )
            json.dumps(found)
        assert len(policy.history) > 0 and inspect_path(url)["in_use"] and "private" not in inspect_path(url)


def test_what_is_told_holds_nothing_of_a_person_nor_the_password(server, url, capsys):
    with open_store(url) as policy:
        play(policy, 12)
    with server.connect(url) as admin:
        digests = [row[0].hex() for row in admin.execute("SELECT digest FROM fliphat_users")]
    reader = as_reader(server, url)
    for arguments in (["inspect"], ["inspect", "--json"], ["verify"], ["verify", "--json"]):
        assert cli.main([arguments[0], reader, *arguments[1:]]) == 0
    wrong = reader.replace(f":{server.port}/", ":1/")
    for command in ("inspect", "verify"):
        assert cli.main([command, wrong]) != 0
    told = capsys.readouterr()
    shown = told.out + told.err
    assert "rounds played" in shown and "can't be reached" in shown
    assert "secret" not in shown and not any(digest in shown for digest in digests)


def test_a_policy_with_arms_and_one_that_is_being_fitted(url, server, monkeypatch):
    with open_linear(url) as policy:
        policy.add_arm("green")
        policy.select(np.ones(3))
        assert inspect_path(url)["policy"] == "PrivateLinear" and verify_path(url).ok
        assert cli.main(["inspect", url]) == 0
    begun, go_on, other, real = threading.Event(), threading.Event(), server.new(), IhtFit.run

    def run(self, *given):
        begun.set()
        assert go_on.wait(60)
        return real(self, *given)

    monkeypatch.setattr(IhtFit, "run", run)
    with open_store(other) as policy, open_store(other) as second, ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            policy.select(ONES)
        opener = pool.submit(policy.select, ONES)
        assert begun.wait(60)
        second.select(ONES)
        found = inspect_path(other)
        assert found["state"] == "open, and episode 0 is claimed" and found["episode"] == 1
        assert (found["rounds"], found["remaining"]) == (4, second.remaining) and verify_path(other).ok
        go_on.set()
        opener.result()
        assert inspect_path(other)["state"] == "open"


DAMAGE = {
    "DELETE FROM fliphat_rounds WHERE round = (SELECT max(round) FROM fliphat_rounds)": "has 2 rows of 3 rounds: restore what was removed, or its 3",
    "UPDATE fliphat_rounds SET round = round + 100": "has 0 rows of 3 rounds",
    "UPDATE fliphat_rounds SET id = id + 1 WHERE round = (SELECT max(round) FROM fliphat_rounds)": "rows of episode 1 have ids of other rounds",
    "UPDATE fliphat_rounds SET numbers = '\\x00' WHERE round = (SELECT max(round) FROM fliphat_rounds)": "1 rows of episode 1 are damaged or not whole",
    "UPDATE fliphat_rounds SET learned = false WHERE round = (SELECT max(round) FROM fliphat_rounds)": "damaged or not whole",
    "UPDATE fliphat_rounds SET owner = NULL WHERE round = (SELECT max(round) FROM fliphat_rounds)": "do not say whose they are",
    "INSERT INTO fliphat_rewards VALUES (8, 1.0, 1)": "rewards of rounds that were not played",
    "UPDATE fliphat_rewards SET reward = 'NaN'": "rewards that are no numbers",
    "DELETE FROM fliphat_users WHERE digest IN (SELECT min(digest::text)::bytea FROM fliphat_users)": (
        "instead of 6: somebody could be learned from beyond"
    ),
    "UPDATE fliphat_keys SET id = id + 100": "6 keys have decisions of rounds that were not played",
    "UPDATE fliphat_episodes SET filled = 9 WHERE episode = 1": "9 rounds in a room of",
    "UPDATE fliphat_episodes SET phase = 'open' WHERE episode = 0": "is open, and another follows",
    "UPDATE fliphat_episodes SET numbers = NULL WHERE episode = 0": "can't be computed again",
    "UPDATE fliphat_episodes SET facts = '{' WHERE episode = 0": "checksum does not match",
    "UPDATE fliphat_episodes SET first_round = 7 WHERE episode = 1": "begins at round 7 instead of 4",
    "DELETE FROM fliphat_episodes WHERE episode = 0": "episode 0 is missing",
    "DELETE FROM fliphat_episodes": "lost the policy's episodes",
    "DELETE FROM fliphat_policy": "lost the policy's row",
    "UPDATE fliphat_policy SET format = 99": "written by a newer version",
    "DROP FUNCTION fliphat_reward": "functions are missing (fliphat_reward)",
}


@pytest.fixture(scope="module")
def played(server):
    """A database with one release and an open episode, to be copied and damaged."""
    url = server.new()
    with open_store(url) as policy:
        play(policy, 6)
    assert verify_path(url).ok
    return url.rsplit("/", 1)[1]


@pytest.mark.parametrize("statement", DAMAGE)
def test_damage_is_found_and_its_cost_is_told(server, played, statement):
    server.databases += 1
    name = f"policy_{server.databases}"
    with server.connect() as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {played}")
    url = server.url(name)
    with server.connect(url) as admin:
        admin.execute(statement)
    verdict = verify_path(url)
    assert not verdict.ok and DAMAGE[statement] in "; ".join(verdict.damage), verdict.damage


def test_a_changed_mark_is_found(url, server):
    with open_store(url) as policy:
        for _ in range(12):
            policy.select(ONES)
        assert len(policy.history) == 2
    with server.connect(url) as admin:
        admin.execute("UPDATE fliphat_episodes SET mark = 'one' WHERE facts IS NOT NULL")
    assert "checksum does not match" in verify_path(url).damage[0]


def test_a_database_without_a_policy_is_refused_and_stays_empty(server, url):
    with pytest.raises(StoreError, match="there is no policy in this database"):
        inspect_path(url)
    assert verify_path(url).damage == ("there is no policy in this database",)
    with pytest.raises(StoreError, match="there is no policy in this database"):
        FLIPHAT.open(url)
    with server.connect(url) as admin:
        assert not admin.execute("SELECT to_regclass('fliphat_policy')").fetchone()[0]
