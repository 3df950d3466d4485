"""One live policy: threads share it, and copies, pickles and forked children can't play."""

import copy
import os
import pickle
import signal
import threading

import numpy as np
import pytest

from flat_options import nested
from fliphat import FLIPHAT
from fliphat.policies import CopyError, StoreError
from policy_model import DIM, Fits

X = np.ones((2, DIM), np.float32)


def make(**changes):
    given = {"dim": DIM, "sparsity": 1, "epsilon": 1.0, "delta": 0.01, "first_episode": 4, "growth": 2}
    return FLIPHAT(**nested(given | changes))


def refuses_to_play(policy, message):
    for call in (
        lambda: policy.select(X),
        lambda: policy.select(X, key="known"),
        lambda: policy.select_batch(X[None]),
        lambda: policy.update(1, 1.0),
        lambda: policy.update_batch([1], [1.0]),
        lambda: policy.pending,
        lambda: policy.late,
        lambda: policy.forget(),
        lambda: policy.flush(),
        lambda: policy.save("never"),
    ):
        with pytest.raises(CopyError, match=message):
            call()


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
@pytest.mark.parametrize("stored", [False, True])
def test_copies_can_be_read_but_not_played(how, stored, tmp_path):
    policy = make(**({"store": tmp_path / "s"} if stored else {}))
    for i in range(6):
        policy.update(policy.select(X, key=i, user=i), 1.0)
    twin = how(policy)
    refuses_to_play(twin, "this policy is a copy")
    assert (twin.episode, twin.remaining, twin.rounds) == (policy.episode, policy.remaining, policy.rounds)
    assert str(twin.guarantee) == str(policy.guarantee) and twin.guarantee.user_ids_checked
    np.testing.assert_array_equal(twin.estimate.to_dense(), policy.estimate.to_dense())
    assert twin.history == policy.history and repr(twin) == repr(policy)
    assert how(twin).rounds == 6
    twin.close()
    assert policy.select(X, user=9).episode == 1  # the original goes on


def test_a_pickle_holds_no_contents():
    policy = make()
    secret = np.float32(1234.5678)
    policy.update(policy.select(np.full((2, DIM), secret), user="marker-of-a-person"), float(secret))
    data = pickle.dumps(policy)
    assert secret.tobytes() not in data and b"marker-of-a-person" not in data
    assert secret.tobytes() in pickle.dumps(policy._engine.episode.codes)  # the search can find it


def in_child(action):
    """Run `action` in a forked child and return what it returned, as text."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, str(action()).encode())
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as pipe:
        return pipe.read()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("stored", [False, True])
def test_a_forked_child_can_be_read_but_not_played(stored, tmp_path, monkeypatch):
    fits = Fits(monkeypatch)
    policy = make(**({"store": tmp_path / "s"} if stored else {}))
    for _ in range(4):
        policy.update(policy.select(X), 1.0)
    for action in (
        lambda: policy.select(X),
        lambda: policy.update(1, 1.0),
        lambda: policy.select_batch(X[None]),
    ):
        assert in_child(action).startswith("CopyError: this policy belongs to the process that made it")
    assert in_child(lambda: policy.rounds) == "4"
    assert "CopyError" in in_child(lambda: copy.deepcopy(policy).select(X))
    policy.select(X)
    assert len(fits.calls) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_does_not_wait_for_a_lock_that_a_thread_of_its_parent_held():
    policy = make()
    with policy._lock:
        assert "CopyError" in in_child(lambda: policy.select(X))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_lives_on_does_not_keep_the_store_locked(tmp_path):
    policy = make(store=tmp_path / "s")
    policy.select(X)
    hold_read, hold_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(hold_write)
        os.read(hold_read, 1)
        os._exit(0)
    try:
        with pytest.raises(StoreError, match="in use"):
            make(store=tmp_path / "s")  # control: the parent does hold it
        policy.close()
        assert make(store=tmp_path / "s").rounds == 1
    finally:
        os.close(hold_write)
        os.waitpid(child, 0)
        os.close(hold_read)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_with_its_parents_process_id_can_not_play(monkeypatch):
    # In another namespace, or with the id of a process that is gone, a child may have the same one.
    policy, number = make(), os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: number)
    assert "CopyError: this policy belongs to the process" in in_child(lambda: policy.select(X))
    assert policy.select(X).id == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_closing_in_a_child_neither_waits_nor_unlocks(tmp_path):
    policy = make(store=tmp_path / "s")
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with policy._lock:
            entered.set()
            leave.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    entered.wait()

    def close():
        signal.alarm(10)  # a child that waits is ended by it, and says nothing
        policy.close()
        return "closed"

    assert in_child(close) == "closed"
    leave.set()
    holder.join()
    with pytest.raises(StoreError, match="in use"):
        make(store=tmp_path / "s")
    policy.select(X)


def in_the_middle(monkeypatch, call, action):
    """Run `action` in a signal's handler while `call` is at one of its durable steps."""
    from fliphat.policies.engine import faults

    old = signal.signal(signal.SIGUSR1, lambda *_: action())
    done = []

    def reached(point):
        if point == "calls durable" and not done:
            done.append(point)
            os.kill(os.getpid(), signal.SIGUSR1)

    monkeypatch.setattr(faults, "reached", reached)
    signal.alarm(30)  # a handler that waits for the lock ends the test
    try:
        return call()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGUSR1, old)
        assert done


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs signals")
def test_a_handler_can_close_in_the_middle_of_a_call(tmp_path, monkeypatch):
    policy = make(store=tmp_path / "s")
    decision = in_the_middle(monkeypatch, lambda: policy.select(X, user=1), policy.close)
    refuses_to_play(policy, "this policy was closed: open its store again")
    with make(store=tmp_path / "s") as again:  # the call was finished first
        assert again.pending == [decision.id]


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs signals")
def test_a_handler_can_close_and_end_the_process(tmp_path, monkeypatch):
    policy = make(store=tmp_path / "s")

    def stop():
        policy.close()
        raise SystemExit

    with pytest.raises(SystemExit):
        in_the_middle(monkeypatch, lambda: policy.select(X, user=1), stop)
    refuses_to_play(policy, "this policy was closed")
    with make(store=tmp_path / "s") as again:
        assert again.rounds == 1


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs signals")
def test_a_handler_can_not_play_in_the_middle_of_a_call(tmp_path, monkeypatch):
    policy, refused = make(store=tmp_path / "s"), []

    def play():
        for call in (lambda: policy.select(X, user=2), lambda: policy.update(1, 1.0), policy.flush):
            with pytest.raises(RuntimeError, match="in the middle of a call of the same thread"):
                call()
            refused.append(call)

    in_the_middle(monkeypatch, lambda: policy.select(X, user=1), play)
    assert len(refused) == 3 and policy.rounds == 1
    policy.select(X, user=2)


def test_threads_at_a_boundary_fit_once(monkeypatch):
    fits = Fits(monkeypatch)
    for _ in range(10):
        fits.calls.clear()
        policy, threads = make(first_episode=3), 6
        for _ in range(3):
            policy.select(X)
        barrier, decisions = threading.Barrier(threads), []

        def play(policy=policy, barrier=barrier, decisions=decisions):
            barrier.wait()
            decisions.append(policy.select(X))

        workers = [threading.Thread(target=play) for _ in range(threads)]
        [worker.start() for worker in workers], [worker.join() for worker in workers]
        assert len(fits.calls) == 1
        assert sorted(decision.id for decision in decisions) == list(range(4, 4 + threads))


def test_threads_lose_no_round_and_no_reward(monkeypatch):
    fits, policy = Fits(monkeypatch), make(first_episode=8)

    def play():
        rng = np.random.default_rng(threading.get_ident())
        for _ in range(250):
            row = rng.standard_normal(DIM).astype(np.float32)
            decision = policy.select(np.stack([row, row]))
            policy.update(decision, float(row[1]))

    workers = [threading.Thread(target=play) for _ in range(4)]
    [worker.start() for worker in workers], [worker.join() for worker in workers]
    assert policy.rounds == 1000 and policy.pending == []
    assert [call[0] for call in fits.calls] == list(range(6))
    for _, (rows, rewards, present), _ in fits.calls:
        # A reward that ended up at another round's row would differ from that row's own coordinate.
        np.testing.assert_array_equal(rewards[present], rows[present][:, 1])
    assert sum(call[1][2].sum() for call in fits.calls) + policy.late >= 504 - 8


def test_closing_twice_is_harmless_and_a_closed_policy_can_be_read(tmp_path):
    with make(store=tmp_path / "s") as policy:
        policy.select(X)
    policy.close()
    refuses_to_play(policy, "this policy was closed: open its store again")
    assert policy.rounds == 1
    with make(store=tmp_path / "s") as again:
        assert again.rounds == 1
