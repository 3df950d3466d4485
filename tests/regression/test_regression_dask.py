"""Fits over dask arrays: the same bits as on one machine, refusals without a value, noise only on the client."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from fliphat import Iht, PrivateSparseClassifier, PrivateSparseRegressor, _native, kernels
from fliphat.kernels import _niht
from fliphat.regression.dask import arrays, cluster
from fliphat.regression.dask import blocks as on_worker
from fliphat.regression.dask import fit as dask_fit
from matrices import problem

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

ROWS, DIM = 600, 25
CHUNKINGS = [(ROWS,), (200,) * 3, (37,) * 16 + (8,), (1, 598, 1), (0, 300, 0, 300), (1,) * 40 + (560,)]
SECRET = 271828.5


def model(kind=PrivateSparseRegressor, **options):
    return kind(5.0, 1e-4, **{"sparsity": 4, "solver": Iht(iterations=3), "random_state": 11} | options)


def rows_and_target(dtype=np.float64, labels=False, seed=3):
    X, y, _ = problem(seed, ROWS, DIM, dtype, density=0.4, labels=labels)
    return X, y


def cut(X, lengths, sparse=False):
    blocks = da.from_array(X, chunks=(lengths, (X.shape[1],)))
    return blocks.map_blocks(sp.csr_array, dtype=X.dtype) if sparse else blocks


def from_blocks(blocks, declared=None):
    """A dask array of the given blocks, whatever they are; `declared` are lengths that may be lies."""
    lengths = [block.shape[0] for block in blocks] if declared is None else declared
    parts = [
        da.from_delayed(
            dask.delayed(block, pure=False), (length, *blocks[0].shape[1:]), dtype=blocks[0].dtype
        )
        for block, length in zip(blocks, lengths, strict=True)
    ]
    return da.concatenate(parts)


def same(one, other):
    assert one.noise_ == other.noise_ and one.guarantee_ == other.guarantee_
    assert one.n_features_in_ == other.n_features_in_ and one.n_iter_ == other.n_iter_
    return np.array_equal(one.coef_, other.coef_) and np.array_equal(one.intercept_, other.intercept_)


@pytest.mark.parametrize("lengths", CHUNKINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_any_cut_has_the_bits_of_one_machine(lengths, dtype, sparse):
    X, y = rows_and_target(dtype)
    local = model().fit(X, y)
    assert same(model().fit(cut(X, lengths, sparse), y), local)
    assert same(model().fit(cut(X, lengths, sparse), da.from_array(y, chunks=97)), local)
    # The control: one row more or less in one block would be seen.
    X[-1, np.flatnonzero(local.coef_)[0]] += 1
    assert not same(model().fit(cut(X, lengths, sparse), y), local)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"fit_intercept": True, "feature_scale": 0.5},
        {"solver": Iht(iterations=3, start=np.linspace(-1, 1, DIM))},
        {"solver": Iht(iterations=3, reward_clip=0.5, mechanism="laplace")},
        {"delta": 0.0, "rows_per_user": 2},
    ],
)
def test_options_mean_the_same(options, sparse):
    X, y = rows_and_target()
    fitted, local = (model().set_params(**options).fit(x, y) for x in (cut(X, (150, 450), sparse), X))
    assert same(fitted, local)
    assert local.intercept_ != 0 or "fit_intercept" not in options


@pytest.mark.parametrize("declared", [None, ("no", "yes")])
@pytest.mark.parametrize("local_target", [False, True])
def test_labels(declared, local_target):
    X, y = rows_and_target(labels=True)
    words = np.where(y > 0, "yes", "no")
    target = words if local_target else da.from_array(words, chunks=140)
    fitted = model(PrivateSparseClassifier, classes=declared, fit_intercept=True).fit(
        cut(X, (100, 500)), target
    )
    assert same(fitted, model(PrivateSparseClassifier, classes=declared, fit_intercept=True).fit(X, words))
    assert list(fitted.classes_) == ["no", "yes"]


def test_a_class_missing_from_some_blocks_is_found_in_others():
    X, y = rows_and_target(labels=True)
    y = np.sort(y).astype(int)
    fitted = model(PrivateSparseClassifier).fit(cut(X, (60,) * 10), da.from_array(y, chunks=60))
    assert same(fitted, model(PrivateSparseClassifier).fit(X, y))


@pytest.mark.parametrize(
    "scheduler", ["threads", "synchronous", pytest.param("processes", marks=pytest.mark.slow)]
)
def test_schedulers_of_this_machine(scheduler):
    X, y = rows_and_target()
    with dask.config.set(scheduler=scheduler):
        assert same(model().fit(cut(X, (250, 350)), y), model().fit(X, y))


@pytest.mark.parametrize("unknown_target", [False, True])
def test_lengths_that_dask_does_not_know_are_counted(unknown_target):
    X, y = rows_and_target()
    lost, target = cut(X, (250, 350)), y
    lost = lost[lost[:, 0] > -1e9]
    assert np.isnan(lost.shape[0])
    if unknown_target:
        target = da.from_array(y, chunks=(200, 400))
        target = target[target > -1e9]
    assert same(model().fit(lost, target), model().fit(X, y))


def test_integers_and_a_column_of_targets():
    X, y = rows_and_target()
    X = np.rint(X).astype(np.int16)
    local = model().fit(X, y)
    with pytest.warns(UserWarning, match="column-vector y was passed") as caught:
        assert same(model().fit(cut(X, (250, 350)), da.from_array(y[:, None], chunks=100)), local)
    with pytest.warns(UserWarning, match="column-vector y was passed") as caught_local:
        assert same(model().fit(cut(X, (250, 350)), y[:, None]), local)
    assert {warning.filename for warning in (*caught, *caught_local)} == {__file__}


def test_each_block_is_computed_once():
    X, y = rows_and_target()
    reads = []

    def read(block):
        reads.append(len(block))
        return block

    model().fit(da.from_array(X, chunks=(200, DIM)).map_blocks(read, meta=X[:0]), y)
    assert reads == [200] * 3


def test_predictions_where_the_rows_are():
    X, y = rows_and_target()
    fitted, blocks = model().fit(X, y), cut(X, (250, 350))
    lazy = blocks.map_blocks(fitted.predict, drop_axis=1, dtype=float)
    np.testing.assert_array_equal(lazy.compute(), fitted.predict(X))
    np.testing.assert_array_equal(fitted.predict(blocks), fitted.predict(X))


def test_dask_is_not_imported_until_it_is_used():
    code = "import sys, fliphat; fliphat.PrivateSparseRegressor(sparsity=1).fit([[1.0], [2.0]], [1.0, 2.0])"
    code += "; assert not {'dask', 'distributed'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# Where the noise is drawn.


def test_tasks_are_pure_functions_that_know_no_noise(monkeypatch):
    X, y = rows_and_target()
    functions = set()
    task = cluster.task

    def recorded(function, *rest, **public):
        functions.add(function)
        return task(function, *rest, **public)

    monkeypatch.setattr(cluster, "task", recorded)
    model().fit(cut(X, (250, 350)), y)
    assert functions == {on_worker.prepare, on_worker.sums, on_worker.add}
    assert not hasattr(on_worker, "_native") and not hasattr(on_worker, "_niht")


@pytest.mark.uncharged_draws  # it hands sums and scales to the kernel itself
def test_noise_is_drawn_once_an_iteration_and_afresh(monkeypatch):
    settings = _niht.fit_settings(
        8, sparsity=8, iterations=3, step_size=1.0, l1_radius=1e6, clip=1.0, pick_scale=9, value_scale=2**30
    )
    asked = []

    def nothing(columns, values):
        asked.append(np.zeros(8))
        asked[-1][columns] = values
        return bytes(64)

    last = _native.niht_fit_sums(nothing, np.zeros(8), 100, settings, None)
    noise = np.diff([*asked, last], axis=0)
    assert len(asked) == 3 and not asked[0].any()
    assert (np.abs(np.corrcoef(noise)[np.triu_indices(3, 1)]) < 0.999).all()
    assert (noise[0] != noise[1]).all() and (noise[1] != noise[2]).all()
    # The control: a generator that starts over in each iteration repeats itself, and would be seen.
    once = _niht.fit_settings(
        8, sparsity=8, iterations=1, step_size=1.0, l1_radius=1e6, clip=1.0, pick_scale=9, value_scale=2**30
    )
    steps = [
        _native.niht_fit_sums(nothing, np.zeros(8), 100, once, _native.SeededNoise(1, 0)) for _ in range(2)
    ]
    assert np.corrcoef(steps)[0, 1] > 0.999


def test_sums_that_no_rows_have_are_refused():
    public = {"sparsity": 2, "iterations": 3, "step_size": 1.0, "l1_radius": 2.0, "clip": 1.0}
    settings = _niht.fit_settings(4, **public, pick_scale=9, value_scale=9)
    for sums, error, message in [
        (np.full(4, 2**15 * 10 + 1).tobytes(), ValueError, "sums must be sums of rows"),
        (bytes(24), ValueError, "sums must have one value for each column"),
        (bytes(31), ValueError, "sums must be bytes of whole integers"),
        (np.zeros(4, np.int64), TypeError, "not an instance of 'bytes'"),
        (None, TypeError, "not an instance of 'bytes'"),
    ]:
        with pytest.raises(error, match=message):
            _native.niht_fit_sums(lambda *_, sums=sums: sums, np.zeros(4), 10, settings)


@pytest.mark.parametrize("iterations_done", [0, 1, 2])
def test_a_failure_says_whether_noise_was_drawn(iterations_done, monkeypatch):
    X, y = rows_and_target()
    sums, calls = dask_fit._total, []

    def failing(*question):
        calls.append(question)
        if len(calls) > iterations_done:
            raise KeyboardInterrupt
        return sums(*question)

    fitted = model().fit(X, y)
    before = vars(fitted).copy()
    with monkeypatch.context() as patch:
        patch.setattr(dask_fit, "_total", failing)
        with pytest.raises(KeyboardInterrupt) as caught:
            fitted.fit(cut(X, (250, 350)), y)
    notes = getattr(caught.value, "__notes__", [])
    assert len(notes) == (iterations_done > 0)
    assert all(note.startswith(f"Noise was drawn for {iterations_done} of 3 iterations") for note in notes)
    assert vars(fitted) == before
    assert same(fitted.fit(cut(X, (250, 350)), y), model().fit(X, y))


# Refusals: by name, without a value, with the estimator as it was.


def refused(X, y, error, message, kind=PrivateSparseRegressor, **options):
    fitted = model(kind)
    clean, clean_target = rows_and_target(labels=True)
    fitted.fit(clean, clean_target)
    fitted.set_params(**options)
    before = vars(fitted).copy()
    with pytest.raises(error, match=message) as caught:
        fitted.fit(X, y)
    assert vars(fitted) == before
    assert not hasattr(caught.value, "__notes__"), "no noise may be drawn for a fit that is refused"
    assert (
        "271828" not in str(caught.value)
        and caught.value.__cause__ is None
        and caught.value.__context__ is None
    )
    return fitted


def broken(X, change):
    X = X.copy()
    change(X)
    return X


def replace_columns(matrix, number):
    matrix.indices[0] = number


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_block_that_is_not_finite(sparse, value):
    X, y = rows_and_target()
    X[0, 0], X[400, 3] = SECRET, value
    refused(cut(X, (250, 350), sparse), y, ValueError, "X must be finite")
    X, y = rows_and_target()
    y[400] = value
    refused(cut(X, (250, 350), sparse), da.from_array(y, chunks=100), ValueError, "y must be finite")


@pytest.mark.parametrize("number", [DIM, DIM + 1, -1, 2**31 - 1])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_csr_block_with_columns_out_of_range(number, fit_intercept):
    X, y = rows_and_target()
    good, bad = sp.csr_array(X[:250]), sp.csr_array(X[250:])
    replace_columns(bad, number)
    fitted = refused(
        from_blocks([good, bad]),
        y,
        ValueError,
        "X must have column numbers from 0 to 24",
        fit_intercept=fit_intercept,
    )
    replace_columns(bad, sp.csr_array(X[250:]).indices[0])
    assert same(fitted.fit(from_blocks([good, bad]), y), model(fit_intercept=fit_intercept).fit(X, y))


@pytest.mark.parametrize("change", [(0, 1), (3, -1), (-1, 10**6)])
def test_a_csr_block_with_broken_pointers(change):
    X, y = rows_and_target()
    good, bad = sp.csr_array(X[:250]), sp.csr_array(X[250:])
    bad.indptr[change[0]] = change[1]
    refused(from_blocks([good, bad]), y, ValueError, "X must have CSR blocks whose indptr grows from 0")


def test_repeated_columns_count_once_as_they_do_locally():
    X, y = rows_and_target()
    matrix = sp.csr_array(X)
    doubled = sp.csr_array(
        (np.repeat(matrix.data / 2, 2), np.repeat(matrix.indices, 2), matrix.indptr * 2), matrix.shape
    )
    assert same(model().fit(from_blocks([doubled[:250], doubled[250:]]), y), model().fit(X, y))


def test_lengths_that_do_not_match():
    X, y = rows_and_target()
    blocks = cut(X, (250, 350))
    refused(blocks, y[:-1], ValueError, r"y must have shape \(600,\)")
    refused(blocks, da.from_array(y[:-1], chunks=100), ValueError, r"y must have shape \(600,\).*\(599,\)")
    refused(blocks, da.from_array(y, chunks=100).reshape(300, 2), ValueError, "y must have one dimension")
    refused(blocks, None, ValueError, "fit requires y to be passed")
    lie = from_blocks([X[:250], X[250:]], declared=[300, 300])
    refused(
        lie,
        y,
        ValueError,
        r"X must have the chunks it declares: a block of \(300, 25\) has shape \(250, 25\)",
    )
    lie = from_blocks([y[:250], y[250:]], declared=[300, 300])
    refused(
        cut(X, (300, 300)), lie, ValueError, "y must have one value for each row of X: a block of 300 rows"
    )
    wide = from_blocks([X[:250], np.hstack([X, X])[250:]])
    refused(wide, y, ValueError, "X must have the chunks it declares")


def test_structures_that_are_refused():
    X, y = rows_and_target()
    refused(
        da.from_array(X, chunks=(100, 5)),
        y,
        ValueError,
        r"X must have all its columns in one chunk, got 5 chunks",
    )
    refused(da.from_array(X[0], chunks=5), y, ValueError, "X must have two dimensions, got 1")
    refused(cut(X, (600,)) * 1j, y, ValueError, "Complex data not supported")
    refused(cut(X.astype("U4"), (600,)), y, ValueError, "X must hold real numbers, got str_")
    refused(cut(X, (600,))[:0], y[:0], ValueError, r"Found array with 0 sample\(s\)")
    refused(cut(X, (600,))[:, :0], y, ValueError, r"Found array with 0 feature\(s\)")
    refused(dask.delayed(X), y, TypeError, "X must be a dask array, got a dask Delayed")
    refused(cut(X, (600,)), dask.delayed(y), TypeError, "y must be a dask array, got a dask Delayed")
    refused(cut(X, (600,)), da.from_array(y, chunks=100) * 1j, ValueError, "Complex data not supported")
    mixed = from_blocks([X[:250], X[250:].astype(np.float32)])
    refused(mixed, y, TypeError, "X must have the dtype it declares, float64, in every block, got float32")
    masked = from_blocks([np.ma.masked_array(X)])
    refused(masked, y, TypeError, "X must not be a masked array")
    refused(cut(X, (600,)), y, ValueError, "sparsity must be an integer from 1 to 25", sparsity=26)


@pytest.mark.parametrize("declared", [None, (0, 1)])
def test_labels_that_are_refused(declared):
    X, y = rows_and_target(labels=True)
    y[400] = SECRET + 0.5
    message = "y must hold only the two labels" if declared else "Only binary classification is supported"
    refused(
        cut(X, (250, 350)),
        da.from_array(y, chunks=100),
        ValueError,
        message,
        PrivateSparseClassifier,
        classes=declared,
    )


def test_continuous_labels_are_refused():
    X, y = rows_and_target()
    blocks, target = cut(X, (250, 350)), da.from_array(y, chunks=100)
    refused(blocks, target, ValueError, "Unknown label type: y is continuous", PrivateSparseClassifier)


def test_workers_of_another_version_are_refused(monkeypatch):
    X, y = rows_and_target()
    monkeypatch.setattr(on_worker, "__version__", "0.0.0")
    refused(cut(X, (250, 350)), y, RuntimeError, "workers must have the same version of fliphat")


def test_errors_of_whoever_made_the_array_are_passed_on():
    X, y = rows_and_target()

    def unreadable():
        raise FileNotFoundError("rows.npy")

    lost = da.from_delayed(dask.delayed(unreadable)(), X.shape, dtype=X.dtype)
    fitted = model()
    with pytest.raises(FileNotFoundError, match=r"rows\.npy"):
        fitted.fit(lost, y)
    assert not hasattr(fitted, "coef_")


def misaligned(array):
    """A copy that starts one byte off, as what came over a network may."""
    raw = np.empty(array.nbytes + 1, np.uint8)[1:].view(np.uint8)
    moved = np.ndarray(array.shape, array.dtype, raw)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_that_start_at_any_byte(sparse):
    X, y = rows_and_target(np.float32)
    rows = X
    moved = misaligned(X)
    if sparse:
        rows = sp.csr_array(X)
        moved = sp.csr_array(X)
        moved.data, moved.indices, moved.indptr = (
            misaligned(part) for part in (rows.data, rows.indices, rows.indptr)
        )
    with pytest.raises((TypeError, ValueError), match="aligned"):  # the control: the kernel refuses them
        kernels.clipped_gradient(moved, y, np.zeros(DIM), 1.0)
    question = on_worker.Question(np.arange(3), np.ones(3), DIM, 1.0, None, "squared")
    declared = on_worker.Declared(ROWS, DIM, X.dtype, None, None)
    expected = on_worker.sums(on_worker.Block(rows, y), question)
    np.testing.assert_array_equal(on_worker.sums(on_worker.Block(moved, misaligned(y)), question), expected)
    prepared = on_worker.prepare(moved, misaligned(y), declared)
    np.testing.assert_array_equal(on_worker.sums(prepared, question), expected)


def test_sums_are_added_in_a_tree_that_changes_nothing(monkeypatch):
    X, y = rows_and_target()
    theta = np.linspace(-1, 1, DIM)
    question = on_worker.Question(np.arange(DIM), theta, DIM, 1.0, None, "squared")
    rows = arrays.as_rows(cut(X, (1,) * 600))
    blocks = dask_fit._prepared(rows, arrays.as_target(y, rows), None)
    expected, _ = kernels.clipped_gradient(X, y, theta, 1.0)
    seen = []
    add = on_worker.add
    monkeypatch.setattr(on_worker, "add", lambda parts: (seen.append(len(parts)), add(parts))[1])
    for fan_in in (2, 3, 8, 1000):
        monkeypatch.setattr(dask_fit, "_MOST_ADDED", fan_in)
        seen.clear()
        assert dask_fit._total(blocks, question) == expected.tobytes()
        assert max(seen) == min(fan_in, 600)


def test_local_results_do_not_ask_for_a_client():
    assert cluster._client() is None
