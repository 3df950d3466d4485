"""Fits on a real cluster of two worker processes, some of them lost on the way."""

import contextlib
import gc
import os
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp

from fliphat import Iht, PrivateSparseClassifier, PrivateSparseRegressor
from fliphat.regression.dask import cluster
from fliphat.regression.dask import fit as dask_fit
from matrices import problem

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

SECRET = 271828.5


@contextlib.contextmanager
def two_workers():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield cluster, client


@pytest.fixture(scope="module")
def client():
    with two_workers() as (_, client):
        yield client


def model(kind=PrivateSparseRegressor, **options):
    return kind(5.0, 1e-4, **{"sparsity": 4, "solver": Iht(iterations=4), "random_state": 11} | options)


def rows_and_target(labels=False):
    X, y, _ = problem(5, 4000, 300, np.float32, density=0.3, labels=labels)
    return X, y


def cut(X, rows=250):
    return da.from_array(X, chunks=(rows, X.shape[1]))


def same(one, other):
    assert one.guarantee_ == other.guarantee_
    return np.array_equal(one.coef_, other.coef_) and np.array_equal(one.intercept_, other.intercept_)


def held(client, worker):
    """How many prepared blocks a worker holds."""
    return sum(str(key).startswith("fliphat-block") for key in client.has_what()[worker])


def during_iteration(monkeypatch, number, action):
    """Do `action` right after the tasks of an iteration, counted from 1, were submitted."""
    submit, total, iterations = distributed.Client.compute, dask_fit._total, []

    def counted(*question):
        iterations.append(question)
        return total(*question)

    def acting(self, *args, **kwargs):
        future = submit(self, *args, **kwargs)
        if len(iterations) == number:
            action()
        return future

    monkeypatch.setattr(dask_fit, "_total", counted)
    monkeypatch.setattr(distributed.Client, "compute", acting)
    return iterations


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("form", ["dense", "csr", "persisted"])
def test_two_workers_have_the_bits_of_one_machine(client, form):
    X, y = rows_and_target()
    rows = cut(X, 333)
    if form == "csr":
        rows = rows.map_blocks(sp.csr_array, dtype=X.dtype)
    if form == "persisted":
        rows = rows.persist()
    assert cluster._client() is client
    local = model(fit_intercept=True).fit(X, y)
    assert same(model(fit_intercept=True).fit(rows, da.from_array(y, chunks=1000)), local)
    assert not same(model(fit_intercept=True).fit(rows, y + 0.01), local)  # the control


def test_labels_on_two_workers(client):
    X, y = rows_and_target(labels=True)
    fitted = model(PrivateSparseClassifier).fit(cut(X), da.from_array(y.astype(int), chunks=1000))
    assert same(fitted, model(PrivateSparseClassifier).fit(X, y.astype(int)))


def test_nothing_is_left_on_the_workers(client):
    X, y = rows_and_target()
    model().fit(cut(X), y)
    patience = time.monotonic() + 30  # releasing is asynchronous
    while any(client.has_what().values()) and time.monotonic() < patience:
        gc.collect()  # errors of tests before this one hold what they failed on until they are collected
        time.sleep(0.05)
    assert not any(client.has_what().values())


def test_refusals_reach_the_client_and_no_value_reaches_a_log(client):
    X, y = rows_and_target()
    bad = X.copy()
    bad[0], bad[3000, 7] = SECRET, np.nan
    fitted = model().fit(X, y)
    before = vars(fitted).copy()
    with pytest.raises(ValueError, match="X must be finite") as caught:
        fitted.fit(cut(bad, 4000), y)
    assert "271828" not in str(caught.value) and vars(fitted) == before

    sparse = [sp.csr_array(X[:2000]), sp.csr_array(X[2000:])]
    sparse[1].indices[5], sparse[1].data[:] = 300, SECRET
    blocks = [da.from_delayed(dask.delayed(block), block.shape, dtype=block.dtype) for block in sparse]
    with pytest.raises(ValueError, match="X must have column numbers from 0 to 299 in every CSR block"):
        fitted.fit(da.concatenate(blocks), y)
    assert vars(fitted) == before
    assert same(fitted.fit(cut(X), y), model().fit(X, y))

    logs = str(client.get_worker_logs())
    assert "271828" not in logs
    # The control: what a task raises does get into the log, whatever its arguments.
    with pytest.raises(ValueError, match="271828"):
        client.submit(float, f"not a number: {SECRET}").result()
    assert "271828" in str(client.get_worker_logs())


@pytest.mark.parametrize("moment", [1, 3])
def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(moment, monkeypatch):
    X, y = rows_and_target()
    with two_workers() as (_, client):
        processes = client.run(os.getpid)
        victim = next(iter(processes))
        blocks_lost = []

        def kill():
            patience = time.monotonic() + 60  # blocks are made while the first iteration is under way
            while not held(client, victim) and time.monotonic() < patience:
                time.sleep(0.01)
            blocks_lost.append(held(client, victim))
            os.kill(processes[victim], signal.SIGKILL)

        iterations = during_iteration(monkeypatch, moment, kill)
        fitted = model().fit(cut(X), da.from_array(y, chunks=1000))
        assert len(iterations) == 4
        assert len(blocks_lost) == 1 and blocks_lost[0] > 0, "the victim must have held rows"
        assert victim not in client.scheduler_info()["workers"] or not is_running(processes[victim])
    assert same(fitted, model().fit(X, y))


def test_all_workers_lost_is_an_error_and_a_second_try_works(monkeypatch):
    X, y = rows_and_target()
    local = model().fit(X, y)
    with two_workers() as (cluster, client):
        fitted = model(solver=Iht(iterations=2)).fit(X, y)
        before = vars(fitted).copy()
        fitted.set_params(solver=Iht(iterations=4))

        def lose_all():
            cluster.scale(0)
            patience = time.monotonic() + 60
            while client.nthreads() and time.monotonic() < patience:
                time.sleep(0.05)
            assert not client.nthreads()

        with monkeypatch.context() as patch, dask.config.set({"fliphat.no-workers-timeout": "1s"}):
            during_iteration(patch, 2, lose_all)
            with pytest.raises(
                RuntimeError, match="the Dask cluster has had no workers for 1 seconds"
            ) as caught:
                fitted.fit(cut(X), y)
        assert caught.value.__notes__[0].startswith("Noise was drawn for 1 of 4 iterations")
        assert vars(fitted) == before | {"solver": Iht(iterations=4)}
        cluster.scale(2)
        assert same(fitted.fit(cut(X), y), local)


def test_rows_that_can_not_be_computed_again_are_an_error(monkeypatch):
    X, y = rows_and_target()
    with two_workers() as (_, client):
        processes = client.run(os.getpid)
        victim, other = processes
        futures = [client.scatter(X[:2000], workers=[victim]), client.scatter(X[2000:], workers=[other])]
        rows = da.concatenate([da.from_delayed(part, (2000, 300), dtype=X.dtype) for part in futures])
        during_iteration(monkeypatch, 2, lambda: os.kill(processes[victim], signal.SIGKILL))
        fitted = model()
        with pytest.raises(RuntimeError, match="were lost during fit") as caught:
            fitted.fit(rows, y)
        assert caught.value.__notes__[0].startswith("Noise was drawn for 1 of 4 iterations")
        assert not hasattr(fitted, "coef_")
