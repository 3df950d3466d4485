"""The durable policy: reopening, refusing, and being cut off at every point of every call."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from fliphat import FLIPHAT
from fliphat.policies import StoreError
from fliphat.policies.engine import faults, files
from fliphat.policies.store.directory import ledger
from policy_model import DIM, GROWTH, Model, same
from small_store import FIRST, crash_at, kill, open_store, points_of, twins

# Reopening


def test_ids_of_a_reopened_store_never_meet_those_of_rounds_it_lost(tmp_path):
    # Power fails in "batch" mode: the last round was shown, and its files are as before it.
    policy = open_store(tmp_path / "s", durability="batch")
    X = np.ones((2, DIM))
    policy.select(X)
    shutil.copytree(tmp_path / "s", tmp_path / "disk")
    lost = policy.select(X)
    kill(policy)
    policy = open_store(tmp_path / "disk", durability="batch")
    replacement = policy.select(X)
    assert policy.rounds == 2 and lost.id != replacement.id
    with pytest.raises(ValueError, match="decision must be one that this policy made"):
        policy.update(lost, 1.0)
    assert policy.update(replacement, 1.0)


def test_forgetting_is_real_and_survives(tmp_path, fits):
    secret = np.float32(321.123)
    for sparse in (False, True):
        path = tmp_path / str(sparse)
        policy = open_store(path)
        X = np.full((2, DIM), secret)
        decision = policy.select(sp.csr_array(X) if sparse else X)
        policy.update(decision, float(secret))
        found = [file for file in path.iterdir() if secret.tobytes() in file.read_bytes()]
        assert found  # the search can find it
        policy.forget()
        kill(policy)
        assert not any(secret.tobytes() in file.read_bytes() for file in path.iterdir())
        policy = open_store(path)
        with pytest.raises(ValueError, match="already has a reward"):
            policy.update(decision.id, 1.0)
        fits.calls.clear()
        for _ in range(3):
            decision = policy.select(np.ones((2, DIM)))
            policy.update(decision, 2.0)
        assert fits.calls[0][1][2].tolist() == [False, True, True]


def test_released_rows_are_gone_from_the_disk(tmp_path, fits):
    policy, secret = open_store(tmp_path), np.float32(77.125)
    for _ in range(FIRST):
        policy.update(policy.select(np.full((1, DIM), secret)), float(secret))
    assert any(secret.tobytes() in file.read_bytes() for file in tmp_path.iterdir())
    policy.select(np.ones((1, DIM)))
    kill(policy)
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["episode-00001.0.events", "episode-00001.0.rows", "ledger.sqlite3", "lock"]
    wide = np.float64(secret).tobytes()
    for file in tmp_path.iterdir():
        assert secret.tobytes() not in file.read_bytes() and wide not in file.read_bytes()


# Refusing


def test_everything_is_readable_by_the_owner_alone(tmp_path):
    old = os.umask(0)
    try:
        policy = open_store(tmp_path / "s")
        for sparse in (False, True):
            for _ in range(FIRST):
                policy.select(twins(np.random.default_rng(0), sparse)[0])
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "s").iterdir()}
    assert len(modes) >= 5 and set(modes.values()) == {0o600}, modes


def test_a_second_process_gets_a_clear_error(tmp_path):
    policy = open_store(tmp_path)
    policy.select(np.ones((2, DIM)))
    code = (
        f"from fliphat import FLIPHAT\n"
        f"FLIPHAT(dim={DIM}, sparsity=1, epsilon=1.0, delta=0.01, first_episode={FIRST}, growth={GROWTH}, store={str(tmp_path)!r})"
    )
    second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "StoreError: store" in second.stderr and "is in use by another process" in second.stderr
    with pytest.raises(StoreError, match="is in use by another process or another policy"):
        open_store(tmp_path)
    policy.close()
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_other_directories_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(StoreError, match="must be an empty directory or one that a policy made"):
        open_store(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["thesis.tex"]


def test_a_newer_or_damaged_ledger_is_refused(tmp_path):
    open_store(tmp_path).close()
    with sqlite3.connect(tmp_path / "ledger.sqlite3") as connection:
        ledger.put(connection, "version", 9)
    connection.close()
    with pytest.raises(StoreError, match=r"written by a newer version \(format 9, this one reads 4\)"):
        open_store(tmp_path)
    (tmp_path / "ledger.sqlite3").write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(StoreError, match="the ledger can't be read or written"):
        open_store(tmp_path)


def test_after_a_failed_write_the_store_must_be_opened_again(tmp_path, monkeypatch):
    policy = open_store(tmp_path)
    first = policy.select(np.ones((2, DIM)))
    with monkeypatch.context() as patch:

        def full(descriptor, data):
            os.write(descriptor, bytes(data)[:5])  # a disk that fills up takes a part
            raise OSError(28, "No space left on device")

        patch.setattr(files, "write_all", full)
        with pytest.raises(OSError, match="No space left"):
            policy.update(first, 1.0)
    for call in (lambda: policy.update(first, 1.0), lambda: policy.select(np.ones((2, DIM))), policy.flush):
        with pytest.raises(StoreError, match="failed or was closed: open it again"):
            call()
    kill(policy)
    policy = open_store(tmp_path)
    assert policy.pending == [first.id] and policy.update(first, 1.0)


# Being cut off


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("rounds", [0, 1, FIRST, FIRST + 2])
def test_a_select_cut_off_anywhere(tmp_path, monkeypatch, fits, rounds, sparse):
    rng = np.random.default_rng(rounds)

    def prepare(path):
        policy, model = open_store(path), Model(FIRST, growth=GROWTH)
        for i in range(rounds):
            X, row = twins(rng, sparse)
            decision = policy.select(X, key=i)
            model.select(decision.id, row, True)
            if i != 1:
                policy.update(decision, float(row[0])), model.update(decision.id, float(row[0]))
        return policy, model

    X, row = twins(rng, sparse)
    policy, _ = prepare(tmp_path / "dry")
    points = points_of(monkeypatch, lambda: policy.select(X, key="new"))
    assert {"rows written", "frame written", "frame synced"} <= set(points)
    if rounds == FIRST:
        steps = [
            "before claim",
            "claimed",
            "before commit",
            "commit written",
            "committed",
            "unlinked",
            "released",
        ]
        assert [point for point in points if point in steps] == steps
    for number, point in enumerate(points):
        fits.calls.clear()
        policy, model = prepare(tmp_path / str(number))
        shown = policy.estimate.to_dense().tolist()
        crash_at(monkeypatch, number, lambda policy=policy: policy.select(X, key="new"))
        kill(policy)
        policy = open_store(tmp_path / str(number))
        assert policy.rounds in (rounds, rounds + 1), point
        if point in ("rows written",):
            assert policy.rounds == rounds
        committed = len(policy.history) > len(model.released)
        # What was never committed was never seen, what was is not fitted again.
        assert committed or policy.estimate.to_dense().tolist() == shown
        before = len(fits.calls)
        decision = policy.select(X, key="new")  # the caller retries
        model.select(decision.id, row, True)
        assert policy.rounds == rounds + 1 == model.played
        assert len(policy.history) == len(model.released)
        assert (len(fits.calls) > before) == (rounds == FIRST and not committed), point
        if rounds >= FIRST:
            assert same(fits.of(0)[-1][1], model.released[0])
            # Of all estimates fitted from these rows, exactly one is ever visible.
            visible = policy.history[0].estimate.to_dense().tolist()
            assert visible == fits.of(0)[-1][2].to_dense().tolist()
        assert policy.pending == model.pending()
        kill(policy)


def test_an_estimate_is_durable_before_it_is_visible(tmp_path, monkeypatch, fits):
    policy = open_store(tmp_path)
    for _ in range(FIRST):
        policy.update(policy.select(np.ones((1, DIM))), 1.0)
    visible = {}

    def look(point):  # as another thread could at this moment
        visible[point] = len(policy.history), len(policy.estimate.indices)

    monkeypatch.setattr(faults, "reached", look)
    policy.select(np.ones((1, DIM)))
    for point in ("before claim", "claimed", "before commit", "commit written", "committed"):
        assert visible[point] == (0, 0), point
    assert visible["unlinked"] == visible["released"] == (1, 1)


def test_an_update_cut_off_anywhere(tmp_path, monkeypatch, fits):
    dry = open_store(tmp_path / "dry")
    decision = dry.select(np.ones((2, DIM)))
    points = points_of(monkeypatch, lambda: dry.update(decision, 1.0))
    assert points == ["frame written", "frame synced"]
    for number in range(len(points)):
        policy = open_store(tmp_path / str(number))
        decision = policy.select(np.ones((2, DIM)))
        crash_at(monkeypatch, number, lambda p=policy, d=decision: p.update(d, 1.0))
        assert policy.pending == [decision.id]  # memory is never ahead of the call
        kill(policy)
        policy = open_store(tmp_path / str(number))
        assert policy.pending == []  # it was written, if not acknowledged: a second one is refused
        with pytest.raises(ValueError, match="a second one is refused"):
            policy.update(decision.id, 1.0)


def test_a_forget_cut_off_anywhere(tmp_path, monkeypatch, fits):
    def prepare(path):
        policy = open_store(path)
        policy.update(policy.select(np.ones((2, DIM))), 5.0)
        return policy

    dry = prepare(tmp_path / "dry")
    points = points_of(monkeypatch, dry.forget)
    assert points[-2:] == ["before forget", "forgotten"]
    for number, point in enumerate(points):
        policy = prepare(tmp_path / str(number))
        crash_at(monkeypatch, number, policy.forget)
        kill(policy)
        policy = open_store(tmp_path / str(number))
        assert policy.rounds == 1 and policy.pending == []
        # A half-made generation must not stay: the next forget would append to it.
        stems = {name.name.rsplit(".", 1)[0] for name in (tmp_path / str(number)).glob("episode-*")}
        assert stems == {f"episode-00000.{int(point == 'forgotten')}"}
        fits.calls.clear()
        for _ in range(FIRST):
            policy.select(np.ones((2, DIM)))
        assert fits.calls[0][1][2].tolist() == [point != "forgotten", False, False]


def test_opening_cut_off_after_a_commit_still_never_fits_again(tmp_path, monkeypatch, fits):
    policy = open_store(tmp_path)
    for _ in range(FIRST):
        policy.update(policy.select(np.ones((1, DIM))), 1.0)
    points = points_of(monkeypatch, lambda: None)
    assert points == []
    number = 4  # before claim, claimed, before commit, commit written, committed
    crash_at(monkeypatch, number, lambda: policy.select(np.ones((1, DIM))))
    kill(policy)
    crash_at(monkeypatch, 0, lambda: open_store(tmp_path))  # and again while recovering
    policy = open_store(tmp_path)
    assert len(fits.calls) == 1 and len(policy.history) == 1 and policy.episode == 1
    policy.select(np.ones((1, DIM)))
    assert len(fits.calls) == 1


def test_every_torn_tail_recovers_to_the_calls_before_it(tmp_path):
    """Cut each file anywhere in the last two calls' bytes, as a torn write would."""
    policy = open_store(tmp_path / "s", durability="batch")
    rng, events, sizes = np.random.default_rng(0), [], []
    stem = tmp_path / "s" / "episode-00000.0"
    for i in range(2):
        decision = policy.select(twins(rng)[0])
        events.append((policy.rounds, tuple(policy.pending)))
        sizes.append(
            (stem.with_suffix(".0.events").stat().st_size, stem.with_suffix(".0.rows").stat().st_size)
        )
        if i == 0:
            policy.update(decision, 1.0)
            events.append((policy.rounds, tuple(policy.pending)))
            sizes.append((stem.with_suffix(".0.events").stat().st_size, sizes[-1][1]))
    kill(policy)
    outcomes = set()
    for kind, column in (("events", 0), ("rows", 1)):
        for size in range(sizes[0][column] - 1, sizes[-1][column], 3):
            shutil.rmtree(tmp_path / "cut", ignore_errors=True)
            shutil.copytree(tmp_path / "s", tmp_path / "cut")
            os.truncate(tmp_path / "cut" / f"episode-00000.0.{kind}", size)
            policy = open_store(tmp_path / "cut", durability="batch")
            state = (policy.rounds, tuple(policy.pending))
            whole = [event for event, sized in zip(events, sizes, strict=True) if sized[column] <= size]
            if kind == "events":
                assert state == (whole[-1] if whole else (0, ()))
            assert state in [(0, ()), *events]
            outcomes.add(state)
            policy.select(twins(rng)[0])  # and it goes on
            policy.close()
    assert outcomes == {(0, ()), *events[:2]}


def test_full_durability_syncs_every_call_and_batch_does_not(tmp_path, monkeypatch):
    counts = {}
    for durability in ("full", "batch"):
        policy, synced = open_store(tmp_path / durability, durability=durability, first_episode=50), []
        decision = policy.select(np.ones((1, DIM)))
        with monkeypatch.context() as patch:
            patch.setattr(files, "sync_all", synced.extend)
            patch.setattr("fliphat.policies.store.directory.journal._GROUP", 1e9)
            policy.update(decision, 1.0)
            for _ in range(9):
                policy.update(policy.select(np.ones((1, DIM))), 1.0)
            counts[durability] = len(synced)
            policy.flush()
            assert len(synced) == counts[durability] + 2
    assert counts == {"full": 38, "batch": 0}


def test_what_is_known_is_kept_with_each_release(tmp_path):
    policy = open_store(tmp_path / "s", seed=4)
    for _ in range(FIRST + 1):
        policy.update(policy.select(np.ones((2, DIM))), 1.0)
    known = policy._engine.known.to_record()
    assert known["episodes"] == 1 and known["values"]
    policy.close()
    with sqlite3.connect(tmp_path / "s" / "ledger.sqlite3") as connection:
        assert json.loads(ledger.meta(connection)["known"]) == known
    connection.close()
    policy = open_store(tmp_path / "s", seed=4)
    assert policy._engine.known.to_record() == known
    policy.save(tmp_path / "file")
    assert FLIPHAT.load(tmp_path / "file")._engine.known.to_record() == known


def test_rows_begun_by_an_interrupted_call_do_not_fix_the_layout(tmp_path, monkeypatch):
    policy = open_store(tmp_path)
    policy._engine.store.rows("dense")  # as far as the interrupted call got
    X = np.ones((2, DIM), np.float32)
    policy.update(policy.select(sp.csr_array(X)), 1.0)
    kill(policy)
    with open_store(tmp_path) as policy:
        assert policy.rounds == 1 and policy.pending == []
