"""A store and a saved file can be looked at, checked and brought up to date without their arguments."""

import hashlib
import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from fliphat import FLIPHAT, Iht, cli
from fliphat.policies.store.inspect import inspect_path, verify_path
from fliphat.policies.store.migrate import migrate_path
from fliphat.policies.types import SnapshotError, StoreError

FIXTURES = Path(__file__).parents[1] / "fixtures" / "format-1"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())
ARGUMENTS = {"dim": 6, "sparsity": 2, "epsilon": 1.0, "delta": 0.01, "first_episode": 8, "seed": 1}


def bytes_of(directory):
    files = sorted(path for path in Path(directory).rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def play(policy, rounds, *, users=True):
    for number in range(rounds):
        contexts = np.random.default_rng(number).standard_normal((3, 6)).astype(np.float32)
        if number == 2:
            contexts[0, 0] = np.nan
        decision = policy.select(contexts, user=f"secret user {policy.rounds}" if users else None, key=number)
        if number % 2:
            policy.update(decision, 0.25)


@pytest.fixture
def policy(tmp_path):
    with FLIPHAT(**ARGUMENTS, store=tmp_path / "store") as policy:
        yield policy


def test_a_live_store_is_seen_as_its_policy_sees_itself_and_nothing_changes(policy, tmp_path):
    for rounds in (0, 3, 7, 20):
        play(policy, rounds)
        before = bytes_of(tmp_path)
        found = inspect_path(tmp_path / "store", private=True)
        assert verify_path(tmp_path / "store").ok
        assert bytes_of(tmp_path) == before
        assert found["in_use"] is True
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
        json.dumps(found)
    assert len(policy.history) > 0
    policy.close()
    assert inspect_path(tmp_path / "store")["in_use"] is False


def test_private_numbers_are_only_told_when_asked_for(policy, tmp_path):
    play(policy, 5)
    assert "private" not in inspect_path(tmp_path / "store")
    told = inspect_path(tmp_path / "store", private=True)["private"]
    assert told["rewards"] == 2 and told["invalid_rounds"] == 1 and told["rounds_not_learned_from"] == 1


def test_rounds_taken_back_and_users_erased_are_no_damage(policy, tmp_path):
    decision = policy.select(np.ones((3, 6), np.float32), user="a")
    policy.update(decision, 0.5)
    policy.cancel(decision)
    policy.cancel(policy.select(np.ones((3, 6), np.float32), user="b"))
    play(policy, 3)
    assert policy.forget(user="a") == 1
    assert verify_path(tmp_path / "store").ok
    assert inspect_path(tmp_path / "store")["rounds"] == policy.rounds == 5


def test_nothing_of_a_person_is_in_what_is_told(policy, tmp_path, capsys):
    play(policy, 12)
    for arguments in (["inspect"], ["inspect", "--json"], ["verify"], ["migrate", "--dry-run"]):
        assert cli.main([arguments[0], str(tmp_path / "store"), *arguments[1:]]) == 0
    shown = capsys.readouterr().out
    assert "secret user" not in shown and "rewards" not in shown
    with sqlite3.connect(tmp_path / "store" / "ledger.sqlite3") as connection:
        digests = [row[0].hex() for row in connection.execute("SELECT digest FROM users")]
    assert digests and not any(digest in shown for digest in digests)


def test_functions_can_not_be_run_and_that_is_said(tmp_path):
    FLIPHAT(**ARGUMENTS, fit=Iht(iterations=lambda n: 2), store=tmp_path / "store").close()
    found = inspect_path(tmp_path / "store")
    assert found["guarantee"] is None and "function" in found["not_known_because"]
    assert verify_path(tmp_path / "store").ok
    assert cli.main(["inspect", str(tmp_path / "store")]) == 0


def test_a_commit_that_was_cut_off_is_undone_in_a_copy_only(policy, tmp_path):
    play(policy, 3)
    store = tmp_path / "store"
    connection = sqlite3.connect(store / "ledger.sqlite3", isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("PRAGMA cache_spill = 1")
    connection.execute("UPDATE meta SET value = '99' WHERE name = 'late'")
    connection.execute("CREATE TABLE filler (x)")
    connection.executemany("INSERT INTO filler VALUES (?)", [("x" * 900,)] * 200)
    crashed = tmp_path / "crashed"
    shutil.copytree(store, crashed)  # as a power cut would leave it
    connection.execute("ROLLBACK")
    connection.close()
    assert (crashed / "ledger.sqlite3-journal").exists()
    before = bytes_of(crashed)
    assert inspect_path(crashed, private=True)["private"]["late"] == 0
    assert verify_path(crashed).ok
    assert bytes_of(crashed) == before


@pytest.mark.parametrize("part", ["events", "rows", "ledger", "missing rows", "missing ledger", "claimed"])
def test_damage_is_found_and_its_cost_is_told(policy, tmp_path, part, capsys):
    play(policy, 6)
    policy.close()
    store = tmp_path / "store"
    files = {"events": "episode-00000.0.events", "rows": "episode-00000.0.rows"}
    if part in files:
        data = bytearray((store / files[part]).read_bytes())
        data[len(data) // 2] ^= 1
        (store / files[part]).write_bytes(data)
    elif part == "missing rows":
        (store / files["rows"]).unlink()
    elif part == "missing ledger":
        (store / "ledger.sqlite3").unlink()
    else:
        with sqlite3.connect(store / "ledger.sqlite3") as connection:
            if part == "ledger":
                connection.execute("UPDATE meta SET value = '7' WHERE name = 'late'")
            else:
                from fliphat.policies.store.directory import ledger

                connection.execute("UPDATE episodes SET state = 'claimed'")
                ledger.put(connection, ledger._REST_SUM, ledger._rest_sum(connection))
        connection.close()
    before = bytes_of(store)
    verdict = verify_path(store)
    assert not verdict.ok and bytes_of(store) == before
    told = "; ".join(verdict.damage)
    assert {
        "events": "rounds of the open episode",
        "rows": "rounds of the open episode",
        "missing rows": "go on without that episode's rounds",
        "ledger": "which budget was promised and spent",
        "missing ledger": "which budget was promised and spent",
        "claimed": "6 rounds on disk instead of 8",
    }[part] in told
    assert cli.main(["verify", str(store)]) == 1
    assert "DAMAGED" in capsys.readouterr().out
    assert cli.main(["migrate", str(store)]) == 2  # damage is not migrated
    assert bytes_of(store) == before


@pytest.mark.parametrize("name", ["dense", "csr"])
def test_stores_of_the_first_format_are_looked_at_and_migrated(tmp_path, name):
    store = tmp_path / name
    shutil.copytree(FIXTURES / name, store)
    before, expected = bytes_of(store), EXPECTED[name]["state"]
    found = inspect_path(store)
    assert found["format"] == {"ledger": 1, "events": 1, "current": False}
    assert (found["rounds"], found["episode"], found["remaining"]) == (
        expected["rounds"],
        expected["episode"],
        expected["remaining"],
    )
    assert verify_path(store).ok
    assert migrate_path(store, dry_run=True)["after"] is None
    assert bytes_of(store) == before
    assert migrate_path(store)["after"] == {"ledger": 3, "events": 2, "current": True}
    assert verify_path(store).ok
    again = inspect_path(store)
    assert {k: v for k, v in again.items() if k != "format"} == {
        k: v for k, v in found.items() if k != "format"
    }
    assert migrate_path(store)["told"].startswith("nothing to do")


def test_a_saved_file_of_the_first_format_is_looked_at_and_not_consumed(tmp_path, capsys):
    shutil.copy(FIXTURES / "saved", tmp_path / "saved")
    before = bytes_of(tmp_path)
    found = inspect_path(tmp_path / "saved", private=True)
    assert found["rounds"] == EXPECTED["saved"]["state"]["rounds"]
    assert found["private"]["late"] == EXPECTED["saved"]["state"]["late"]
    assert verify_path(tmp_path / "saved").ok
    assert cli.main(["inspect", str(tmp_path / "saved")]) == 0
    assert cli.main(["migrate", str(tmp_path / "saved")]) == 0
    assert "saved file of format file 1" in capsys.readouterr().out
    assert bytes_of(tmp_path) == before
    FLIPHAT.load(tmp_path / "saved").close()
    data = bytearray((FIXTURES / "saved").read_bytes())
    data[-1] ^= 1
    (tmp_path / "damaged").write_bytes(data)
    assert "can't go on" in verify_path(tmp_path / "damaged").damage[0]


def test_what_is_no_store_is_refused(tmp_path):
    with pytest.raises(StoreError, match="missing or empty"):
        inspect_path(tmp_path)
    with pytest.raises(SnapshotError, match="does not exist"):
        inspect_path(tmp_path / "nothing")
    with pytest.raises(StoreError, match="missing or empty"):
        FLIPHAT.open(tmp_path)


def test_a_store_opens_without_its_arguments_and_goes_on(policy, tmp_path):
    play(policy, 5)
    policy.close()
    with FLIPHAT.open(tmp_path / "store") as again:
        assert again.rounds == 5 and again._settings == policy._settings
        play(again, 3)
    with FLIPHAT(**ARGUMENTS, store=tmp_path / "store") as third:
        assert third.rounds == 8
