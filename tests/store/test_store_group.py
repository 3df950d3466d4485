"""Calls that nobody hears of before `flush`: one write and one sync for all of them, and nothing between."""

import os
import shutil

import numpy as np
import pytest

from fliphat import FLIPHAT, Iht, Store
from fliphat.policies.engine import faults
from fliphat.policies.engine.each import Single
from fliphat.policies.store.inspect import verify_path
from policy_model import Fits

ARGUMENTS = {"dim": 5, "sparsity": 2, "epsilon": 1.0, "delta": 0.01, "first_episode": 12, "seed": 3}


def contexts(number):
    return np.random.default_rng(number).standard_normal((3, 5)).astype(np.float32)


def play(policy, numbers):
    for number in numbers:
        decision = policy.select(contexts(number), user=f"u{number}", key=number)
        if number % 3:
            policy.update(decision, 0.5)


def seen(policy):
    return (
        policy.rounds,
        policy.pending,
        policy.late,
        [facts.estimate.values.tobytes() for facts in policy.history],
    )


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def test_it_does_what_full_does(store, tmp_path):
    group = FLIPHAT(**ARGUMENTS, store=Store(store, durability="group"))
    full = FLIPHAT(**ARGUMENTS, store=tmp_path / "full")
    for numbers in (range(5), range(5, 40), range(40, 41), range(41, 90)):  # over several releases
        play(group, numbers)
        play(full, numbers)
        group.flush()
        assert seen(group) == seen(full)
        assert verify_path(store).ok
    group.forget()
    full.forget()
    expected = seen(full)
    assert seen(group) == expected and expected[3]
    group.close()
    full.close()
    with FLIPHAT(**ARGUMENTS, store=store) as again:
        assert seen(again) == expected


def test_a_crash_leaves_what_was_flushed(store, tmp_path):
    with FLIPHAT(**ARGUMENTS, store=Store(store, durability="group")) as policy:
        play(policy, range(4))
        policy.flush()
        flushed = seen(policy)
        play(policy, range(4, 8))
        shutil.copytree(store, tmp_path / "crashed")
        last = seen(policy)
    assert verify_path(tmp_path / "crashed").ok
    with FLIPHAT(**ARGUMENTS, store=tmp_path / "crashed") as again:
        assert seen(again) == flushed
    with FLIPHAT(**ARGUMENTS, store=store) as again:  # closing writes what is left
        assert seen(again) == last


def test_a_group_is_one_transaction(store, monkeypatch):
    calls = []
    with FLIPHAT(**ARGUMENTS, store=Store(store, durability="group")) as policy:
        play(policy, range(1))
        policy.flush()
        monkeypatch.setattr(faults, "reached", calls.append)
        play(policy, range(1, 10))
        assert calls == []
        policy.flush()
        assert calls == ["calls written", "calls durable"]


def test_a_log_cut_off_anywhere_is_cut_off_as_a_whole_group(store, tmp_path):
    with FLIPHAT(**ARGUMENTS, store=Store(store, durability="group")) as policy:
        play(policy, range(2))
        policy.flush()
        path = store / "policy.sqlite3-wal"
        before = path.stat().st_size
        play(policy, range(2, 6))
        policy.flush()
        after = path.stat().st_size
        shutil.copytree(store, tmp_path / "copy")
    whole = (tmp_path / "copy" / path.name).read_bytes()
    for size in range(before, after, 997):
        shutil.rmtree(tmp_path / "torn", ignore_errors=True)
        shutil.copytree(tmp_path / "copy", tmp_path / "torn")
        (tmp_path / "torn" / path.name).write_bytes(whole[:size])
        with FLIPHAT(**ARGUMENTS, store=tmp_path / "torn") as again:
            assert again.rounds == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_write_what_its_parent_holds(store):
    with FLIPHAT(**ARGUMENTS, store=Store(store, durability="group")) as policy:
        play(policy, range(3))
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        policy.flush()
        assert verify_path(store).ok
    with FLIPHAT(**ARGUMENTS, store=store) as again:
        assert again.rounds == 3


def test_a_group_that_fails_is_not_tried_again(store, monkeypatch):
    policy = FLIPHAT(**ARGUMENTS, store=Store(store, durability="group"))
    play(policy, range(3))
    policy.flush()
    play(policy, range(3, 6))

    def full(_):
        raise OSError(28, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(faults, "reached", full)
        with pytest.raises(OSError, match="no space"):
            policy.flush()
    policy.close()
    with FLIPHAT(**ARGUMENTS, store=store) as again:
        assert again.rounds == 3


@pytest.mark.parametrize("over", [False, True])
def test_rounds_of_a_group_beyond_the_limit_are_zeros_in_the_fit(store, monkeypatch, over):
    fits = Fits(monkeypatch)
    given = ARGUMENTS | {"first_episode": 3, "fit": Iht(growth=2)}
    with FLIPHAT(**given, store=Store(store, durability="group")) as policy:
        policy.select(contexts(0), user="a")  # decides that rounds have users
        results = [None] * 2
        users = ["a", "b"] if over else ["b", "c"]
        policy._select_each([Single(contexts(i + 1), user) for i, user in enumerate(users)], results)
        assert policy.update_batch([one.id for one in results], [1.0, 2.0]) == 2
        policy.select(contexts(9), user="z")
    X, _, present = fits.calls[0][1]
    assert present.tolist() == [False, not over, True] and X[1].any() == (not over)
