"""The walks of one private row that CONTRIBUTING describes: the functions exist and are called in that order."""

import functools
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import fliphat
from code_names import ROOT, missing, tables
from fliphat import FLIPHAT, Iht, PrivateSparseRegressor
from fliphat.environments import SparseLinear
from fliphat.fit.pursuit.plan import priced_noise
from fliphat.lab.experiments import Recipe, grid, makers
from fliphat.lab.experiments.sweep import sweep

CONTRIBUTING = (Path(ROOT) / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = re.search(r"^## The walk of one private row\n(.*?)^## ", CONTRIBUTING, re.S | re.M)[1]
WALKS = {
    title: tables(body)[0]
    for title, body in re.findall(r"^### (.*?)\n(.*?)(?=^### |\Z)", SECTION, re.S | re.M)
}
PACKAGE = Path(fliphat.__file__).parent


@pytest.fixture(autouse=True)
def noise_is_new():
    priced_noise.cache_clear()  # equal noise is priced once in a process


def called(call):
    """Return the Python functions of the package that a call enters, as (file, name)."""
    entered = []

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            entered.append((path.relative_to(PACKAGE).as_posix(), frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered


def out_of_order(walk, entered):
    """Return the first Python function of a walk that is not called after the one before it, or None."""
    at = 0
    for row in walk:
        name, path = re.fullmatch(r"`(.+)` in `(.+)`", row["function"]).groups()
        if path.endswith(".rs"):
            continue
        place = next(
            (i for i in range(at, len(entered)) if entered[i] == (path.removeprefix("fliphat/"), name)), None
        )
        if place is None:
            return name
        at = place
    return None


def dense(solver=None):
    X = np.random.default_rng(0).standard_normal((50, 20))
    return lambda: PrivateSparseRegressor(solver=solver).fit(X, X[:, 0])


def distributed(solver=None):
    dask = pytest.importorskip("dask")
    array = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).standard_normal((50, 20))

    def fit():
        with dask.config.set(scheduler="synchronous"):
            PrivateSparseRegressor(solver=solver).fit(array.from_array(X, chunks=(25, 20)), X[:, 0])

    return fit


def stored(directory):
    return FLIPHAT(10, 2, 5.0, 0.01, first_episode=20, store=directory)


def releasing(directory):
    policy = stored(directory)
    for _ in range(20):
        policy.update(policy.select(np.ones((3, 10), np.float32)), 0.1)
    return lambda: policy.select(np.ones((3, 10), np.float32))


def reopening(directory):
    release = releasing(directory / "first")
    release()
    # A copy of the files is what a crash leaves: nobody closed them.
    shutil.copytree(directory / "first", directory / "crashed")
    return lambda: stored(directory / "crashed").close()


def cell():
    policies = {"private": Recipe.of(makers.private, sparsity=2, epsilon=5.0, delta=0.01, first_episode=50)}
    cells = grid(policies, {"small": Recipe.of(SparseLinear, dim=10)}, rounds=200)
    return lambda: sweep(cells, range(1))


CALLS = {
    "`PrivateSparseRegressor.fit`, rows in this process": dense,
    "`PrivateSparseRegressor.fit`, rows in a dask array": distributed,
    "`PrivateSparseRegressor.fit` by hard thresholding, rows in this process": functools.partial(
        dense, Iht()
    ),
    "`PrivateSparseRegressor.fit` by hard thresholding, rows in a dask array": functools.partial(
        distributed, Iht()
    ),
    "`fliphat reproduce`, one cell": cell,
}


@pytest.mark.parametrize("title", list(WALKS))
def test_the_functions_of_a_walk_exist(title):
    assert len(WALKS[title]) > 5
    assert missing("\n".join(row["function"] for row in WALKS[title])) == []


STORED_CALLS = {
    "`FLIPHAT.select` that releases, with a store": releasing,
    "Opening a store after a crash": reopening,
}


def test_every_walk_is_walked():
    assert set(WALKS) == {*CALLS, *STORED_CALLS}


@pytest.mark.parametrize("title", list(STORED_CALLS))
def test_a_walk_through_a_store_is_what_happens(title, tmp_path):
    assert out_of_order(WALKS[title], called(STORED_CALLS[title](tmp_path))) is None


@pytest.mark.parametrize("title", list(CALLS))
def test_a_walk_is_what_happens(title):
    # Only entries are recorded: what keeps the results is entered before the fit that it waits for.
    walk = [row for row in WALKS[title] if "are kept" not in row["what happens"]]
    assert out_of_order(walk, called(CALLS[title]())) is None


def test_a_wrong_walk_is_noticed():
    walk = WALKS["`PrivateSparseRegressor.fit`, rows in this process"]
    assert out_of_order(walk[::-1], called(dense())) is not None
