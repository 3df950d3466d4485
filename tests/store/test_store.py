"""The durable policy: reopening, refusing, and being cut off at every point of every call."""

import json
import multiprocessing
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from fliphat import FLIPHAT
from fliphat.fit.iht.fit import IhtFit
from fliphat.policies import CopyError, StoreError
from fliphat.policies.engine import faults, files
from fliphat.policies.store import sqlite, tables
from fliphat.policies.store.inspect import inspect_path
from policy_model import DIM, GROWTH, Model, same
from small_store import FIRST, crash_at, kill, open_store, points_of, reader, twins

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
    assert sorted(file.name for file in tmp_path.iterdir()) == ["lock", "policy.sqlite3"]
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
    assert len(modes) >= 4 and set(modes.values()) == {0o600}, modes


def test_a_second_process_gets_a_clear_error(tmp_path):
    policy = open_store(tmp_path)
    policy.select(np.ones((2, DIM)))
    code = (
        f"from fliphat import FLIPHAT, Iht\n"
        f"FLIPHAT(dim={DIM}, sparsity=1, epsilon=1.0, delta=0.01, first_episode={FIRST}, fit=Iht(growth={GROWTH}), store={str(tmp_path)!r})"
    )
    second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "StoreError: store" in second.stderr and "is in use by another process" in second.stderr
    with pytest.raises(StoreError, match="is in use by another process or another policy"):
        open_store(tmp_path)
    policy.close()
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_of_processes_that_begin_one_store_at_once_one_plays(tmp_path):
    """The others get a clear error, wherever they were when the first one had tidied up."""
    fork = multiprocessing.get_context("fork")
    told = fork.Queue()

    def begin(path, began, ended):
        began.wait(30)
        try:
            policy = open_store(path)
            told.put("it plays")
            ended.wait(30)
            policy.close()
        except BaseException as error:
            told.put(repr(error))

    for number in range(5):
        began, ended = fork.Barrier(4), fork.Event()
        given = (tmp_path / str(number), began, ended)
        processes = [fork.Process(target=begin, args=given, daemon=True) for _ in range(4)]
        for one in processes:
            one.start()
        answers = [told.get(timeout=30) for _ in processes]
        ended.set()
        for one in processes:
            one.join(30)
        assert sum("is in use by another process" in one for one in answers) == 3, answers
        assert "it plays" in answers


ONES = np.ones((2, DIM), np.float32)


@pytest.mark.parametrize("act", ["select", "update", "forget", "save"])
def test_an_owner_whose_lock_was_lost_does_nothing_after_another_opened_the_store(tmp_path, fits, act):
    policy = open_store(tmp_path / "s")
    decisions = [policy.select(ONES) for _ in range(FIRST)]
    (tmp_path / "s" / "lock").unlink()  # or a file system that keeps no locks
    with open_store(tmp_path / "s") as other:
        call = {
            "select": lambda: policy.select(ONES),  # which would release
            "update": lambda: policy.update(decisions[0], 1.0),  # into rows that the other may have fitted
            "forget": policy.forget,
            "save": lambda: policy.save(tmp_path / "file"),
        }[act]
        for _ in range(2):
            with pytest.raises((StoreError, CopyError)):
                call()
            call = policy.flush
        assert not policy.history and not (tmp_path / "file").exists()
        other.select(ONES)
        assert len(other.history) == len(fits.calls) == 1


def test_a_store_stays_where_it_is_when_the_working_directory_changes(tmp_path, monkeypatch, fits):
    monkeypatch.chdir(tmp_path)
    policy = open_store("s")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    with reader(tmp_path / "s"):  # a mark is written beside the file
        for _ in range(FIRST + 1):
            policy.select(ONES)
    policy.save("file")
    assert FLIPHAT.load(tmp_path / "elsewhere" / "file").rounds == FIRST + 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_other_directories_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(StoreError, match="must be an empty directory or one that a policy made"):
        open_store(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["thesis.tex"]


def test_other_formats_and_files_that_are_no_store_are_refused(tmp_path):
    open_store(tmp_path).close()
    for version, which in ((99, "a newer"), (4, "an earlier")):
        with closing(sqlite3.connect(tmp_path / "policy.sqlite3")) as connection, connection:
            connection.execute("UPDATE fliphat_policy SET format = ?", (version,))
        match = rf"written by {which} version \(format {version}, this one reads {tables.FORMAT}\)"
        with pytest.raises(StoreError, match=match):
            open_store(tmp_path)
    (tmp_path / "policy.sqlite3").write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(StoreError, match="is damaged"):
        open_store(tmp_path)
    (tmp_path / "ledger.sqlite3").touch()  # as 0.1 kept it
    with pytest.raises(StoreError, match="written by an earlier version"):
        open_store(tmp_path)


def test_after_a_failed_write_the_store_must_be_opened_again(tmp_path, monkeypatch):
    policy = open_store(tmp_path)
    first = policy.select(np.ones((2, DIM)))

    def full(point):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(faults, "reached", full)
        with pytest.raises(StoreError, match="disk is full"):
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
    assert points[-2:] == ["calls written", "calls durable"]
    if rounds == FIRST:
        steps = [point.split()[0] for point in points if point.endswith("durable")]
        assert steps == ["claim", "commit", "accept", "show", "close", "calls"]
    for number, point in enumerate(points):
        fits.calls.clear()
        policy, model = prepare(tmp_path / str(number))
        shown = policy.estimate.to_dense().tolist()
        crash_at(monkeypatch, number, lambda policy=policy: policy.select(X, key="new"))
        kill(policy)
        policy = open_store(tmp_path / str(number))
        assert policy.rounds in (rounds, rounds + 1), point
        if point == "calls written":
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
    for point in ("claim durable", "commit written", "commit durable", "accept written", "accept durable"):
        assert visible[point] == (0, 0), point
    assert visible["show durable"] == visible["close durable"] == (1, 1)


def test_an_update_cut_off_anywhere(tmp_path, monkeypatch, fits):
    dry = open_store(tmp_path / "dry")
    decision = dry.select(np.ones((2, DIM)))
    points = points_of(monkeypatch, lambda: dry.update(decision, 1.0))
    assert points == ["calls written", "calls durable"]
    for number, kept in ((0, False), (1, True)):
        policy = open_store(tmp_path / str(number))
        decision = policy.select(np.ones((2, DIM)))
        crash_at(monkeypatch, number, lambda p=policy, d=decision: p.update(d, 1.0))
        assert policy.pending == [decision.id]  # memory is never ahead of the call
        kill(policy)
        policy = open_store(tmp_path / str(number))
        assert policy.pending == ([] if kept else [decision.id])
        if kept:
            with pytest.raises(ValueError, match="a second one is refused"):
                policy.update(decision.id, 1.0)


def test_a_forget_cut_off_anywhere(tmp_path, monkeypatch, fits):
    def prepare(path):
        policy = open_store(path)
        policy.update(policy.select(np.ones((2, DIM))), 5.0)
        return policy

    dry = prepare(tmp_path / "dry")
    points = points_of(monkeypatch, dry.forget)
    assert points == ["empty written", "empty durable", "empty moved"]
    for number, point in enumerate(points):
        policy = prepare(tmp_path / str(number))
        crash_at(monkeypatch, number, policy.forget)
        kill(policy)
        policy = open_store(tmp_path / str(number))
        assert policy.rounds == 1 and policy.pending == []
        fits.calls.clear()
        for _ in range(FIRST):
            policy.select(np.ones((2, DIM)))
        assert fits.calls[0][1][2].tolist() == [point == "empty written", False, False]


def test_opening_cut_off_after_a_commit_still_never_fits_again(tmp_path, monkeypatch, fits):
    policy = open_store(tmp_path)
    for _ in range(FIRST):
        policy.update(policy.select(np.ones((1, DIM))), 1.0)
    points = points_of(monkeypatch, lambda: None)
    assert points == []
    number = 3  # claim written, claim durable, commit written, commit durable
    crash_at(monkeypatch, number, lambda: policy.select(np.ones((1, DIM))))
    kill(policy)
    crash_at(monkeypatch, 0, lambda: open_store(tmp_path))  # and again while recovering
    policy = open_store(tmp_path)
    assert len(fits.calls) == 1 and len(policy.history) == 1 and policy.episode == 1
    policy.select(np.ones((1, DIM)))
    assert len(fits.calls) == 1


def test_full_durability_syncs_every_call_and_batch_does_not(tmp_path, monkeypatch):
    counts = {}
    monkeypatch.chdir(tmp_path)
    for durability in ("full", "batch"):
        policy, asked = open_store(durability, durability=durability, first_episode=50), []
        decision, store = policy.select(np.ones((1, DIM))), policy._engine.store
        real = store._transaction

        def spied(name, work, *, sync, real=real, asked=asked):
            asked.append(sync)
            return real(name, work, sync=sync)

        monkeypatch.setattr(store, "_transaction", spied)
        monkeypatch.setattr(sqlite, "_GROUP", 1e9)
        policy.update(decision, 1.0)
        for _ in range(9):
            policy.update(policy.select(np.ones((1, DIM))), 1.0)
        counts[durability] = sum(asked), len(asked)
        synced = []
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path / durability)  # the log is found from everywhere
            patch.setattr(files, "sync", lambda file, synced=synced: synced.append(os.fstat(file).st_ino))
            policy.flush()
        log = (tmp_path / durability / "policy.sqlite3-wal").stat().st_ino
        assert synced == ([log] if durability == "batch" else [])  # SQLite has synced the other
        policy.close()
    assert counts == {"full": (19, 19), "batch": (0, 19)}


def test_what_is_known_is_kept_with_each_release(tmp_path):
    policy = open_store(tmp_path / "s", seed=4)
    for _ in range(FIRST + 1):
        policy.update(policy.select(np.ones((2, DIM))), 1.0)
    known = policy._engine.known.to_record()
    assert known["episodes"] == 1 and known["values"]
    policy.close()
    policy = open_store(tmp_path / "s", seed=4)
    assert policy._engine.known.to_record() == known
    policy.save(tmp_path / "file")
    assert FLIPHAT.load(tmp_path / "file")._engine.known.to_record() == known


class KeepsTotals:
    """A fit that keeps the number of each episode as its secret totals, and begins anew without them."""

    given: ClassVar = []

    @staticmethod
    def run_totals(self, plan, rows, rewards, present, known, secret):
        KeepsTotals.given.append(secret)
        return self.run(plan, rows, rewards, present, known), b"totals after %d" % plan.episode


def test_secret_totals_are_committed_with_their_release_and_shown_to_nobody(
    place, tmp_path, monkeypatch, fits
):
    monkeypatch.setattr(IhtFit, "run_totals", KeepsTotals.run_totals, raising=False)
    monkeypatch.setattr(KeepsTotals, "given", [])
    policy = open_store(place)
    for number in range(24):
        policy.update(policy.select(np.ones((1, DIM))), 1.0)
        if number in (4, 15):
            kill(policy)
            policy = open_store(place)
    assert KeepsTotals.given == [None, b"totals after 0", b"totals after 1"]
    assert "totals after" not in json.dumps(inspect_path(place, private=True))
    store = policy._engine.database if isinstance(place, str) else policy._engine.store
    assert store.totals_of(2) == b"totals after 2" and store.totals_of(0) is None is store.totals_of(1)
    if isinstance(place, str):
        policy.close()
        return
    policy.save(tmp_path / "file")
    policy = FLIPHAT.load(tmp_path / "file")
    while len(policy.history) < 4:
        policy.select(np.ones((1, DIM)))
    assert KeepsTotals.given[-1] == b"totals after 2"


def test_totals_of_a_fit_that_is_run_again_are_those_of_the_release_before(tmp_path, monkeypatch, fits):
    monkeypatch.setattr(IhtFit, "run_totals", KeepsTotals.run_totals, raising=False)
    monkeypatch.setattr(KeepsTotals, "given", [])
    policy = open_store(tmp_path)
    for _ in range(FIRST + 6):
        policy.update(policy.select(np.ones((1, DIM))), 1.0)
    crash_at(monkeypatch, 2, lambda: policy.select(np.ones((1, DIM))))  # before its commit is durable
    kill(policy)
    policy = open_store(tmp_path)
    policy.select(np.ones((1, DIM)))
    assert KeepsTotals.given == [None, b"totals after 0", b"totals after 0"]  # never added twice
