import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import fliphat
from fliphat import _native

MODULES = [info.name for info in pkgutil.walk_packages(fliphat.__path__, "fliphat.")]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_the_doctests_are_found():
    module = importlib.import_module("fliphat.kernels._gradient")
    assert doctest.testmod(module).attempted > 0


def test_every_public_name_is_documented():
    for name in ["fliphat", *MODULES]:
        module = importlib.import_module(name)
        assert module.__doc__, name
        for public in getattr(module, "__all__", []):
            assert getattr(module, public).__doc__, f"{name}.{public}"


def test_kernels_and_twins_have_the_same_names():
    assert set(fliphat.kernels.__all__) <= set(fliphat.reference.__all__)


def test_version_is_the_one_in_the_crate():
    assert fliphat.__version__ == _native.VERSION


def test_import_needs_only_numpy():
    # SciPy's modules, scikit-learn, matplotlib, rich and Dask are loaded when they are used.
    heavy = [
        "scipy.sparse",
        "scipy.special",
        "scipy.stats",
        "sklearn",
        "matplotlib",
        "rich",
        "dask",
        "pandas",
    ]
    code = f"import fliphat, fliphat.cli, sys; print([m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_read_probe_reads_everything():
    words = np.arange(1001, dtype=np.uint64)
    assert _native.read_all(words, 2) == np.bitwise_xor.reduce(words)


@pytest.mark.parametrize(
    ("name", "most"),
    [("FLIPHAT", 17), ("PrivateLinear", 15), ("PrivateSparseRegressor", 15), ("PrivateSparseClassifier", 15)],
)
def test_constructors_stay_small(name, most):
    """What only one fit or one store has belongs to `Pursuit`, `Iht` or `Store`."""
    assert len(inspect.signature(getattr(fliphat, name)).parameters) <= most
