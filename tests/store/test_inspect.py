"""A store and a saved file can be looked at and checked without their arguments."""

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from fliphat import FLIPHAT, Iht, cli
from fliphat.policies.store.inspect import inspect_path, verify_path
from fliphat.policies.types import SnapshotError, StoreError

ARGUMENTS = {"dim": 6, "sparsity": 2, "epsilon": 1.0, "delta": 0.01, "first_episode": 8, "seed": 1}


def bytes_of(directory):
    # SQLite keeps locks of readers in the shared memory beside a file that is in use.
    files = sorted(
        path for path in Path(directory).rglob("*") if path.is_file() and path.suffix != ".sqlite3-shm"
    )
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
    assert told["rewards"] == 2 and told["users"] == 5 and told["rounds_not_learned_from"] == 1


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
    for arguments in (["inspect"], ["inspect", "--json"], ["verify"]):
        assert cli.main([arguments[0], str(tmp_path / "store"), *arguments[1:]]) == 0
    shown = capsys.readouterr().out
    assert "secret user" not in shown and '"rewards"' not in shown
    with closing(sqlite3.connect(tmp_path / "store" / "policy.sqlite3")) as connection:
        digests = [row[0].hex() for row in connection.execute("SELECT digest FROM fliphat_users")]
    assert digests and not any(digest in shown for digest in digests)


def test_functions_can_not_be_run_and_that_is_said(tmp_path):
    FLIPHAT(**ARGUMENTS, fit=Iht(iterations=lambda n: 2), store=tmp_path / "store").close()
    found = inspect_path(tmp_path / "store")
    assert found["guarantee"] is None and "function" in found["not_known_because"]
    assert verify_path(tmp_path / "store").ok
    assert cli.main(["inspect", str(tmp_path / "store")]) == 0


def test_what_a_crash_left_is_completed_in_a_copy_only(policy, tmp_path):
    play(policy, 3)
    crashed = tmp_path / "crashed"
    shutil.copytree(tmp_path / "store", crashed, ignore=shutil.ignore_patterns("*-shm"))
    assert (crashed / "policy.sqlite3-wal").stat().st_size  # what was played is in the log alone
    before = bytes_of(crashed)
    assert inspect_path(crashed)["rounds"] == 3 and verify_path(crashed).ok
    assert bytes_of(crashed) == before


def test_damage_is_told_by_the_command(policy, tmp_path, capsys):
    play(policy, 3)
    policy.close()
    with closing(sqlite3.connect(tmp_path / "store" / "policy.sqlite3")) as connection, connection:
        connection.execute("UPDATE fliphat_rounds SET numbers = zeroblob(24)")
    before = bytes_of(tmp_path)
    assert cli.main(["verify", str(tmp_path / "store")]) == 1
    assert "DAMAGED" in capsys.readouterr().out and bytes_of(tmp_path) == before


def test_a_saved_file_is_looked_at_and_not_consumed(policy, tmp_path, capsys):
    play(policy, 12)
    policy.save(tmp_path / "saved")
    before = bytes_of(tmp_path)
    found = inspect_path(tmp_path / "saved", private=True)
    assert (found["rounds"], found["private"]["late"]) == (12, 0) and verify_path(tmp_path / "saved").ok
    assert cli.main(["inspect", str(tmp_path / "saved")]) == 0
    assert "saved file of format file 10" in capsys.readouterr().out
    assert bytes_of(tmp_path) == before
    data = bytearray((tmp_path / "saved").read_bytes())
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
