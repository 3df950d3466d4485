"""Bytes that change, go or come back: a store is refused, or is what it was after some earlier call."""

import shutil
import sqlite3
import time
from collections import Counter
from contextlib import closing, nullcontext

import numpy as np
import pytest

from fliphat.policies import StoreError
from fliphat.policies.engine import faults
from fliphat.policies.store.inspect import verify_path
from policy_model import DIM, GROWTH
from small_store import FIRST, Crash, kill, open_store, reader

ONES = np.ones((2, DIM), np.float32)


def played(path, rounds=FIRST + 2):
    """A store with a release and an open episode, as a process that was killed leaves it."""
    policy, states = open_store(path, rounds_per_user=2), [(0, ())]
    for number in range(rounds):
        decision = policy.select(np.full((2, DIM), 1.0 + number, np.float32), user=f"u{number}", key=number)
        states.append((policy.rounds, tuple(policy.pending)))
        policy.update(decision, 0.5 + number)
        states.append((policy.rounds, tuple(policy.pending)))
    history = [facts.estimate.values.tolist() for facts in policy.history]
    shutil.copytree(path, path.with_name("killed"))
    kill(policy)
    return path.with_name("killed"), states, history


#: Columns of the policy's row that no checksum covers: nothing, and how many rewards came late, which is told.
UNCHECKED = {"single", "late"}


def contents(path, copy):
    """All rows of all tables, read from a copy; None if they can't be read."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path, copy)
    with closing(sqlite3.connect(copy / "policy.sqlite3")) as connection:
        connection.row_factory = sqlite3.Row
        try:
            return {
                name: [dict(row) for row in connection.execute(f"SELECT * FROM {name}")]
                for name in ("fliphat_policy", "fliphat_episodes", "fliphat_users", "fliphat_keys",
                             "fliphat_rounds", "fliphat_rewards")
            }  # fmt: skip
        except (sqlite3.Error, UnicodeDecodeError):
            return None


def test_random_bytes_flipped_in_each_file(tmp_path, fits):
    """A flip in the log drops calls from its end, never a release. One in the file is refused, or is in bytes that
    hold nothing (the contents are the same), or in a column that no checksum covers."""
    killed, states, history = played(tmp_path / "s")
    rng, outcomes = np.random.default_rng(0), Counter()
    before = contents(killed, tmp_path / "copy")
    for name in ("policy.sqlite3", "policy.sqlite3-wal"):
        whole = (killed / name).read_bytes()
        used = [at for at, byte in enumerate(whole) if byte]  # nine in ten bytes of a small file are zeros
        for at in rng.choice(used, 100, replace=False).tolist():
            shutil.rmtree(tmp_path / "bad", ignore_errors=True)
            shutil.copytree(killed, tmp_path / "bad")
            data = bytearray(whole)
            data[at] ^= 1 << int(rng.integers(8))
            (tmp_path / "bad" / name).write_bytes(data)
            after = contents(tmp_path / "bad", tmp_path / "copy")
            try:
                policy = open_store(tmp_path / "bad", rounds_per_user=2)
            except StoreError:
                outcomes[name, "refused"] += 1
                continue
            with policy:
                assert (policy.rounds, tuple(policy.pending)) in states, at
                assert [facts.estimate.values.tolist() for facts in policy.history] == history, at
            outcomes[name, "opened"] += 1
            if not name.endswith("wal"):
                (old,), (new,) = before.pop("fliphat_policy"), after.pop("fliphat_policy")
                assert {column for column in old if old[column] != new[column]} <= UNCHECKED, at
                assert before == after, at
                before["fliphat_policy"] = [old]
    assert outcomes["policy.sqlite3", "refused"] > 50
    assert outcomes["policy.sqlite3", "opened"] and outcomes["policy.sqlite3-wal", "opened"]


def without_log(path, copy):
    shutil.copytree(path, copy)
    (copy / "policy.sqlite3-wal").unlink()
    return copy


@pytest.mark.parametrize("act", ["release", "save"])
def test_a_log_that_a_reader_kept_is_missed(tmp_path, fits, act):
    """What can't leave the log while somebody reads is marked: without the log the store is refused."""
    store = tmp_path / "s"
    policy = open_store(store)
    for _ in range(FIRST):
        policy.update(policy.select(ONES), 1.0)
    policy.close()
    policy = open_store(store)
    with reader(store):
        began = time.monotonic()
        policy.select(ONES) if act == "release" else policy.save(tmp_path / "file")
        assert time.monotonic() - began < 2  # nobody waits for a reader
        lost = without_log(store, tmp_path / "lost")
        with pytest.raises(
            StoreError, match=r"log 'policy\.sqlite3-wal' was lost, and what was released with it"
        ):
            open_store(lost)
        verdict = verify_path(lost)
        assert not verdict.ok and "was lost" in verdict.damage[0]
        assert verify_path(store).ok
    assert len(fits.calls) == (act == "release")
    if act == "release":
        policy.select(ONES)
        policy.close()
        open_store(store).close()  # with its log, or with all of it moved, it goes on
        assert len(fits.calls) == 1
        (store / "policy.sqlite3-released").write_bytes(b"[0, nothing")
        with pytest.raises(StoreError, match="damaged"):
            open_store(store)


@pytest.mark.parametrize("read_meanwhile", [False, True])
def test_a_commit_that_a_killed_process_left_in_the_log_leaves_it_before_it_is_shown(
    tmp_path, monkeypatch, fits, read_meanwhile
):
    store = tmp_path / "s"
    policy = open_store(store)
    for _ in range(FIRST):
        policy.update(policy.select(ONES), 1.0)
    policy.close()
    policy = open_store(store)

    def kill_behind_the_commit(point):
        if point == "commit durable":
            shutil.copytree(store, tmp_path / "killed")
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(faults, "reached", kill_behind_the_commit)
        with pytest.raises(Crash):
            policy.select(ONES)
    with reader(tmp_path / "killed") if read_meanwhile else nullcontext():
        again = open_store(tmp_path / "killed")
        assert len(again.history) == 1  # shown: from now on it must not be undone
        lost = without_log(tmp_path / "killed", tmp_path / "lost")
    with open_store(lost) as policy:
        assert policy.history == again.history
    assert len(fits.calls) == 1


def test_what_was_erased_leaves_the_log_when_its_reader_is_gone(tmp_path, fits):
    store = tmp_path / "s"
    with open_store(store) as policy:
        secret = np.array([0.1234567, 0.7654321], np.float32).repeat(DIM)[:DIM]
        policy.select(np.stack([secret, secret]), user="eve")

        def there():
            names = ("policy.sqlite3", "policy.sqlite3-wal")
            return [name for name in names if secret.tobytes() in (store / name).read_bytes()]

        with reader(store):
            assert policy.forget("eve") == 1
            assert there() == ["policy.sqlite3-wal"]  # the control: its reader sees it
        time.sleep(0.15)
        policy.select(ONES, user="bob")
        assert there() == []


def test_a_lost_file_is_not_replaced_by_a_new_one(tmp_path):
    open_store(tmp_path / "s").close()
    (tmp_path / "s" / "policy.sqlite3").unlink()
    for _ in range(2):
        with pytest.raises(StoreError, match="missing or empty: without it nobody knows which budget"):
            open_store(tmp_path / "s")
    (tmp_path / "s" / "policy.sqlite3").touch()
    with pytest.raises(StoreError, match="missing or empty"):
        open_store(tmp_path / "s")


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (
            "UPDATE fliphat_policy SET settings = replace(settings, '1.0', '9.0')",
            "the policy's row is damaged",
        ),
        ("UPDATE fliphat_policy SET secret = zeroblob(32)", "the policy's row is damaged"),
        ("UPDATE fliphat_policy SET witnessed = 1 - witnessed", "the policy's row is damaged"),
        (
            "UPDATE fliphat_policy SET options = replace(options, 'null', '4444')",
            "the policy's row is damaged",
        ),
        ("UPDATE fliphat_policy SET openings = openings + 1", "the policy's row is damaged"),
        ("UPDATE fliphat_policy SET with_users = 0", "does not say of users what was played"),
        ("UPDATE fliphat_policy SET with_users = NULL", "does not say of users what was played"),
        ("UPDATE fliphat_policy SET user_kind = 'int?'", "does not say of users what was played"),
        ("UPDATE fliphat_policy SET user_kind = NULL", "does not say of users what was played"),
        ("UPDATE fliphat_episodes SET numbers = zeroblob(8) WHERE episode = 0", "was released is damaged"),
        ("UPDATE fliphat_episodes SET facts = NULL WHERE episode = 0", "can't be computed again"),
        ("UPDATE fliphat_users SET rounds = 0", "users have 0 rounds in all instead of 5"),
        ("UPDATE fliphat_users SET digest = zeroblob(16) WHERE rowid = 1", ""),
        ("UPDATE fliphat_keys SET arm = 1 - arm", "rows of keys are damaged"),
        ("DELETE FROM fliphat_rounds WHERE round = 5", "rows of 2 rounds"),
        ("UPDATE fliphat_rounds SET numbers = zeroblob(16)", "damaged or not whole"),
        ("UPDATE fliphat_rounds SET owner = zeroblob(16)", "damaged or not whole"),
        ("UPDATE fliphat_rewards SET reward = reward + 1", "rewards of episode 1 are damaged"),
        ("UPDATE fliphat_episodes SET filled = 1 WHERE episode = 1", "rounds"),
        ("UPDATE fliphat_episodes SET phase = 'open' WHERE episode = 0", "is open, and another follows"),
        ("DELETE FROM fliphat_episodes", "lost the policy's episodes"),
        ("DELETE FROM fliphat_policy", "lost the policy's row"),
    ],
)
def test_what_a_store_says_is_checked(tmp_path, fits, statement, told):
    policy = open_store(tmp_path / "s", rounds_per_user=2)
    for number in range(FIRST + 2):
        policy.update(policy.select(ONES, user=f"u{number}", key=number), 1.0)
    policy.close()
    assert verify_path(tmp_path / "s").ok  # the control
    if "rowid" in statement:
        statement = "UPDATE fliphat_users SET digest = zeroblob(16) WHERE digest IN (SELECT min(digest) FROM fliphat_users)"
        told = "rows of users are damaged"
    with closing(sqlite3.connect(tmp_path / "s" / "policy.sqlite3")) as connection, connection:
        connection.execute(statement)
    verdict = verify_path(tmp_path / "s")
    assert not verdict.ok and told in "; ".join(verdict.damage), verdict.damage
    if "fliphat_policy SET" in statement:
        with pytest.raises(StoreError, match=told):
            open_store(tmp_path / "s", rounds_per_user=2)


@pytest.mark.parametrize(("users", "wrong"), [(None, 0), (None, 1), ("required", 0), ("required", None)])
def test_whether_rounds_have_users_is_checked_before_the_first(tmp_path, users, wrong):
    open_store(tmp_path / "s", users=users).close()
    with closing(sqlite3.connect(tmp_path / "s" / "policy.sqlite3")) as connection, connection:
        connection.execute("UPDATE fliphat_policy SET with_users = ?", (wrong,))
    with pytest.raises(StoreError, match="does not say of users"):
        open_store(tmp_path / "s")


def test_rows_that_were_lost_are_told_at_opening(tmp_path, fits):
    policy = open_store(tmp_path / "s")
    policy.select(ONES), policy.select(ONES)
    policy.close()
    with closing(sqlite3.connect(tmp_path / "s" / "policy.sqlite3")) as connection, connection:
        connection.execute("DELETE FROM fliphat_rounds WHERE round = 2")
    with pytest.raises(StoreError, match="has 1 rounds in the store instead of the 2 that were played"):
        open_store(tmp_path / "s")


def test_a_store_that_somebody_else_changed_is_not_gone_on_with(tmp_path, fits):
    policy = open_store(tmp_path / "s")
    policy.select(ONES)
    with closing(sqlite3.connect(tmp_path / "s" / "policy.sqlite3")) as connection, connection:
        connection.execute("UPDATE fliphat_episodes SET filled = 2")
    with pytest.raises(StoreError, match="is not where this policy left it"):
        policy.select(ONES)
    assert GROWTH > 1
