import dataclasses
import hashlib
import json
import math
import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import distributed
import numpy as np
import pytest
from scipy import stats

from fliphat import __version__, environments
from fliphat.environments import SparseLinear, Uniform
from fliphat.lab.experiments import (
    Cell,
    Recipe,
    ResultFile,
    Run,
    grid,
    makers,
    run_cell,
    stable_name,
    summarise,
    sweep,
)
from fliphat.lab.experiments.catalog import NAMES, experiment
from fliphat.lab.experiments.executors import open_executor
from fliphat.lab.experiments.sweep import mean_interval

POLICIES = {
    "random": Recipe.of(makers.random),
    "private": Recipe.of(makers.private, sparsity=4, epsilon=5.0, delta=0.01, reward_scale=1.5),
    "Lasso": Recipe.of(makers.lasso),
    "LinUCB": Recipe.of(makers.linucb, optimism=0.2),
}
WORLDS = {
    "normal": Recipe.of(SparseLinear, dim=30, sparsity=3),
    "bounded": Recipe.of(SparseLinear, dim=30, sparsity=3, contexts=Uniform(), noise="uniform"),
}
CELLS = grid(POLICIES, WORLDS, rounds=400, checkpoints=[100, 400])
SEEDS = range(3)


@pytest.fixture(scope="module")
def serial():
    return sweep(CELLS, SEEDS)


def test_a_sweep_covers_the_grid_in_order(serial):
    assert [(run.labels, run.seed) for run in serial] == [(cell.labels, s) for s in SEEDS for cell in CELLS]
    assert len({run.key for run in serial}) == len(serial) == 8 * 3
    assert all(0 < run.regret[0] <= run.regret[1] for run in serial)
    assert serial[0] == run_cell(CELLS[0], 0)


def test_policies_of_one_seed_meet_the_same_world(serial):
    coefficients = [WORLDS["normal"](seed=seed).coefficients for seed in SEEDS]
    assert not np.array_equal(coefficients[0], coefficients[1])
    random = {run.seed: run.regret for run in serial if run.labels == CELLS[0].labels}
    assert len(set(random.values())) == 3


def test_threads_and_processes_give_the_same_runs(serial):
    with ThreadPoolExecutor(3) as pool:
        assert sweep(CELLS, SEEDS, executor=pool) == serial
    before = dict(os.environ)
    with open_executor(workers=2) as pool:
        assert sweep(CELLS, SEEDS, executor=pool) == serial
    assert dict(os.environ) == before


def test_one_worker_needs_no_executor():
    with open_executor(workers=1) as executor:
        assert executor is None


class Counting(ThreadPoolExecutor):
    """Counts what it is given, and presses Ctrl-C after some runs."""

    def __init__(self, interrupt_after=None):
        super().__init__(1)
        self.given, self.left, self.interrupt_after = 0, threading.Event(), interrupt_after

    def submit(self, call, /, *arguments):
        self.given += 1
        if self.interrupt_after is not None and self.given > self.interrupt_after:
            future = Future()
            if self.given == self.interrupt_after + 1:
                super().submit(lambda: future.set_exception(KeyboardInterrupt()))
            return future
        return super().submit(call, *arguments)


def test_an_interrupted_sweep_keeps_what_finished_and_resumes(tmp_path, serial):
    path = tmp_path / "runs.jsonl"
    interrupted = Counting(interrupt_after=5)
    with ResultFile(path) as results, pytest.raises(KeyboardInterrupt):
        sweep(CELLS, SEEDS, executor=interrupted, results=results)
    interrupted.shutdown()
    kept = path.read_text().splitlines()
    assert len(kept) == 5 and json.loads(kept[0])["policy"] == "random"
    with path.open("a") as file:
        file.write('{"key": "torn')  # a crash in the middle of a line
    with ResultFile(path, resume=True) as results, Counting() as executor:
        assert len(results.found) == 5
        assert sweep(CELLS, SEEDS, executor=executor, results=results) == serial
        assert executor.given == len(serial) - 5
    assert path.read_text().splitlines()[:5] == kept and len(path.read_text().splitlines()) == len(serial)
    with ResultFile(path, resume=True) as results, Counting() as executor:
        assert sweep(CELLS, SEEDS, executor=executor, results=results) == serial
        assert executor.given == 0


def test_runs_that_are_forgotten_are_run_again_and_the_last_ones_count(tmp_path, serial):
    path = tmp_path / "runs.jsonl"
    stale = dataclasses.replace(serial[0], regret=(-1.0,) * len(serial[0].regret))
    with ResultFile(path) as results:
        for run in (stale, *serial[1:]):
            results.add(run)
    with ResultFile(path, resume=True) as results, Counting() as executor:
        results.forget([serial[0].key, "not a key of this file"])
        assert sweep(CELLS, SEEDS, executor=executor, results=results) == serial
        assert executor.given == 1
    with ResultFile(path, resume=True) as results, Counting() as executor:
        assert sweep(CELLS, SEEDS, executor=executor, results=results) == serial
        assert executor.given == 0


def test_without_resume_old_results_are_set_aside(tmp_path, serial):
    path = tmp_path / "runs.jsonl"
    for _ in range(2):
        with ResultFile(path) as results:
            assert results.found == {}
            results.add(serial[0])
    assert (tmp_path / "runs.jsonl.old").read_text() == path.read_text()


def test_a_damaged_middle_is_not_resumed(tmp_path, serial):
    path = tmp_path / "runs.jsonl"
    with ResultFile(path) as results:
        results.add(serial[0])
    path.write_text("not a run\n" + path.read_text())
    with pytest.raises(ValueError, match="is damaged before its last line"):
        ResultFile(path, resume=True)


def test_other_settings_are_other_runs(serial):
    cell = CELLS[1]
    others = [
        Cell(cell.labels, Recipe.of(makers.private, sparsity=5, epsilon=5.0), cell.world, 400, (100, 400)),
        Cell(cell.labels, cell.policy, WORLDS["bounded"], 400, (100, 400)),
        Cell(cell.labels, cell.policy, cell.world, 500, (100, 500)),
        Cell(cell.labels, cell.policy, cell.world, 400, (200, 400)),
    ]
    keys = {one.key(0) for one in [cell, *others]} | {cell.key(1)}
    assert len(keys) == 6
    assert cell.key(0) == Cell((("policy", "x"),), cell.policy, cell.world, 400, (100, 400)).key(0)


def test_results_do_not_know_where_functions_live(monkeypatch):
    before = [cell.key(0) for cell in CELLS]
    for make in (makers.random, makers.private, makers.lasso, makers.linucb, SparseLinear):
        monkeypatch.setattr(make, "__module__", "fliphat.moved.elsewhere")
    assert [cell.key(0) for cell in CELLS] == before
    # Control: a function without a stable name is known by its module.
    control = Cell(CELLS[0].labels, Recipe.of(grid), WORLDS["normal"], 400, (400,))
    known = control.key(0)
    monkeypatch.setattr(grid, "__module__", "fliphat.moved.elsewhere")
    assert control.key(0) != known


def test_keys_are_pinned():
    """A key that changes makes every finished run a stranger: change KEY_FORMAT with it."""
    cell = Cell((), Recipe.of(makers.private, epsilon=1.0), Recipe.of(SparseLinear, dim=9), 10, (5, 10))
    assert str(cell.policy) == "private(epsilon=1.0)" and str(cell.world) == "SparseLinear(dim=9)"
    parts = [2, __version__, str(cell.policy), str(cell.world), 10, [5, 10], 3]
    assert cell.key(3) == hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def test_every_function_of_the_catalog_and_every_environment_has_a_stable_name():
    recipes = {
        recipe for name in NAMES for cell in experiment(name).cells for recipe in (cell.policy, cell.world)
    }
    own = {
        name: one for name, one in vars(makers).items() if getattr(one, "__module__", "") == makers.__name__
    }
    made = {recipe.make for recipe in recipes} | {one for name, one in own.items() if name[0] != "_"}
    assert {makers.private, makers.lasso, makers.peer} <= made
    made |= {getattr(environments, name) for name in ("SparseClicks", "from_classification", "hard_instance")}
    for make in made:
        assert str(Recipe.of(make)) == f"{make.__name__}()"


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="name must be given once, got 'private' for a second function"):
        stable_name("private")(sweep)
    assert stable_name("private")(makers.private) is makers.private


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 1}, r"has runs of fliphat .* \(format 1\), this is .* \(format 2\)"),
        ({"format": None, "fliphat": None}, r"has runs of fliphat an earlier version \(format 1\)"),
        ({"fliphat": "0.0.9"}, r"has runs of fliphat 0.0.9 \(format 2\), this is"),
    ],
)
def test_runs_of_another_version_are_refused_and_kept(tmp_path, serial, change, message):
    path = tmp_path / "runs.jsonl"
    record = {**serial[0].to_dict(), **change}
    record = {name: value for name, value in record.items() if value is not None}
    path.write_text(json.dumps(record) + "\n")
    written = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        ResultFile(path, resume=True)
    assert path.read_bytes() == written
    ResultFile(path).close()
    assert path.with_name("runs.jsonl.old").read_bytes() == written


def test_errors_of_a_run_reach_the_caller(tmp_path):
    broken = grid({"bad": Recipe.of(makers.private, sparsity=0, epsilon=1.0, delta=0.1)}, WORLDS, 10)
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="sparsity must be an integer"):
        sweep(broken, [0], executor=pool)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sweep([CELLS[0], CELLS[0]], [0]), "labels of their own"),
        (lambda: sweep(CELLS, [0, 0]), "seeds must differ"),
        (lambda: sweep([CELLS[0], Cell((("a", 1.0),), *_parts(CELLS[0]))], [0]), "are the same run"),
        (lambda: grid(POLICIES, WORLDS, 10, [5, 9]), "checkpoints must end with rounds = 10, got 9"),
        (lambda: grid(POLICIES, WORLDS, 10, [5, 5, 10]), "checkpoints must be ascending"),
        (lambda: Recipe.of(lambda seed: None), "that other processes can import"),
    ],
)
def test_bad_grids_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def _parts(cell):
    return cell.policy, cell.world, cell.rounds, cell.checkpoints


def test_intervals_are_students():
    values = np.random.default_rng(0).normal(5, 2, 12)
    mean, low, high = mean_interval(values)
    expected = stats.t.interval(0.95, 11, loc=values.mean(), scale=stats.sem(values))
    assert (low, high) == pytest.approx(expected) and mean == pytest.approx(values.mean())
    assert math.isnan(mean_interval([3.0])[1])


def test_summaries_follow_cells_and_checkpoints(serial):
    summaries = summarise(CELLS, serial)
    assert [(s.labels, s.round) for s in summaries] == [(c.labels, t) for c in CELLS for t in (100, 400)]
    first = [run.regret[1] for run in serial if run.labels == CELLS[0].labels]
    assert summaries[1].mean == pytest.approx(np.mean(first)) and summaries[1].repeats == 3
    assert summarise(CELLS, []) == []


def test_a_dask_cluster_gives_the_same_runs(serial):
    with open_executor(workers=2, dask="local") as executor:
        assert sweep(CELLS, SEEDS, executor=executor) == serial
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        open_executor(dask=cluster.scheduler_address) as executor,
    ):
        assert sweep(CELLS[:2], SEEDS, executor=executor) == sweep(CELLS[:2], SEEDS)


def test_runs_are_plain_data(serial):
    assert isinstance(serial[0], Run)
    assert json.loads(json.dumps(serial[0].to_dict()))["regret"] == list(serial[0].regret)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals can't be blocked here")
def test_workers_never_see_an_interrupt_not_even_while_they_start():
    # A worker that Ctrl-C ends while it imports can leave a lock of the pool taken: the parent then hangs.
    with open_executor(workers=2) as executor:
        assert signal.SIGINT in executor.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result()
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as plain:
        assert signal.SIGINT not in plain.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_runs_of_this_process_use_one_thread_of_linear_algebra_and_give_the_others_back():
    threadpoolctl = pytest.importorskip("threadpoolctl")

    def threads():
        return {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}

    with threadpoolctl.threadpool_limits(2, "blas"):
        with open_executor(workers=1):
            assert threads() == {1}
        assert threads() == {2}
