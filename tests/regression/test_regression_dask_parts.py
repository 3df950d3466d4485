"""Fits in parts over dask arrays: the same bits as on one machine, noise only on the client."""

import numpy as np
import pytest

from fliphat import PrivateSparseClassifier, PrivateSparseRegressor, Pursuit
from fliphat.regression.dask import blocks as on_worker
from fliphat.regression.dask import cluster
from fliphat.regression.dask import fit as dask_fit
from matrices import problem

da = pytest.importorskip("dask.array")
sp = pytest.importorskip("scipy.sparse")

ROWS, DIM = 600, 25
CHUNKINGS = [(ROWS,), (37,) * 16 + (8,), (1, 598, 1), (0, 300, 0, 300), (1,) * 40 + (560,)]


def model(kind=PrivateSparseRegressor, **options):
    return kind(5.0, 1e-4, **{"sparsity": 4, "solver": Pursuit(), "random_state": 11} | options)


def rows_and_target(dtype=np.float64, labels=False):
    X, y, _ = problem(3, ROWS, DIM, dtype, density=0.4, labels=labels)
    return X, y


def cut(X, lengths, sparse=False):
    blocks = da.from_array(X, chunks=(lengths, (X.shape[1],)))
    return blocks.map_blocks(sp.csr_array, dtype=X.dtype) if sparse else blocks


def same(one, other):
    assert one.noise_ == other.noise_ and one.guarantee_ == other.guarantee_ and one.n_iter_ == other.n_iter_
    return np.array_equal(one.coef_, other.coef_) and np.array_equal(one.intercept_, other.intercept_)


@pytest.mark.parametrize("lengths", CHUNKINGS)
@pytest.mark.parametrize(("dtype", "sparse"), [(np.float32, True), (np.float64, False)])
@pytest.mark.parametrize("sparsity", [4, DIM])
def test_any_cut_has_the_bits_of_one_machine(lengths, dtype, sparse, sparsity):
    X, y = rows_and_target(dtype)
    options = {"sparsity": sparsity, "fit_intercept": sparsity == 4}
    local = model(**options).fit(X, y)
    assert local.n_iter_ > 2 and local.coef_.any()
    assert same(model(**options).fit(cut(X, lengths, sparse), y), local)
    other = model(**options).fit(cut(X, lengths, sparse), y + 0.5)  # the control
    assert not np.array_equal(other.coef_, local.coef_)


def test_labels_are_fitted_where_they_are():
    X, y = rows_and_target(labels=True)
    local = model(PrivateSparseClassifier).fit(X, y.astype(int))
    blocks = cut(X, (250, 350))
    assert same(model(PrivateSparseClassifier).fit(blocks, da.from_array(y.astype(int), chunks=100)), local)


def test_tasks_are_pure_functions_that_know_no_noise(monkeypatch):
    X, y = rows_and_target()
    functions, task = set(), cluster.task

    def recorded(function, *rest, **public):
        functions.add(function)
        return task(function, *rest, **public)

    monkeypatch.setattr(cluster, "task", recorded)
    model().fit(cut(X, (250, 350)), y)
    assert functions == {on_worker.prepare, on_worker.part_sums, on_worker.add}
    assert not hasattr(on_worker, "draw") and not hasattr(on_worker, "_native")


def test_workers_add_up_each_row_once(monkeypatch):
    X, y = rows_and_target()
    local, ask, seen = model().fit(X, y), on_worker.part_sums, np.zeros(ROWS, int)

    def counted(block, begin, question, step, columns, signs):
        if step == "vector":
            end = begin + block.rows.shape[0]
            seen[begin:end] += question.parts.of(begin, end) == question.part
        found = ask(block, begin, question, step, columns, signs)
        assert isinstance(found, bytes)  # sums without noise cross as nothing else
        return found

    monkeypatch.setattr(on_worker, "part_sums", counted)
    assert same(model().fit(cut(X, (250, 350)), y), local)
    assert (seen == 1).all()


@pytest.mark.parametrize("sums_done", [0, 1, 3, 4])
def test_a_failure_says_whether_noise_was_drawn(sums_done, monkeypatch):
    X, y = rows_and_target()
    added, calls = dask_fit._added, []

    def failing(*sums):
        calls.append(sums)
        if len(calls) > sums_done:
            raise KeyboardInterrupt
        return added(*sums)

    fitted = model().fit(X, y)
    before = vars(fitted).copy()
    with monkeypatch.context() as patch:
        patch.setattr(dask_fit, "_added", failing)
        with pytest.raises(KeyboardInterrupt) as caught:
            fitted.fit(cut(X, (250, 350)), y)
    notes = getattr(caught.value, "__notes__", [])
    parts = 1 + (sums_done > 3) if sums_done else 0  # numbers of rows, candidates, the vector; candidates
    assert len(notes) == (sums_done > 0)
    assert all(note.startswith(f"Noise was drawn for {parts} of {fitted.n_iter_} parts") for note in notes)
    assert vars(fitted) == before
    assert same(fitted.fit(cut(X, (250, 350)), y), model().fit(X, y))


@pytest.mark.parametrize("sparse", [False, True])
def test_values_that_are_not_finite_are_refused_before_any_noise(sparse):
    X, y = rows_and_target()
    fitted = model().fit(X, y)
    before = vars(fitted).copy()
    X[400, 3] = np.nan
    with pytest.raises(ValueError, match="X must be finite") as caught:
        fitted.fit(cut(X, (250, 350), sparse), y)
    assert not hasattr(caught.value, "__notes__") and vars(fitted) == before
