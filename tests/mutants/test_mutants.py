"""Every mutant must die: ``pytest -m mutants tests/mutants``, before a release. Takes a few minutes."""

import shutil

import pytest

from mutants.catalog import MUTANTS
from mutants.runner import Mutant, copy_crates, copy_package, killed, mutate, passed, run_cargo, run_pytest

pytestmark = pytest.mark.mutants

PYTHON = [mutant for mutant in MUTANTS if not mutant.rust]
RUST = [mutant for mutant in MUTANTS if mutant.rust]
needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")


def by_name(mutants):
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    return pytest.mark.parametrize("mutant", mutants, ids=[mutant.name for mutant in mutants])


@pytest.fixture(scope="module")
def python_killers_pass(tmp_path_factory):
    killers = sorted({mutant.killer for mutant in PYTHON})
    result = run_pytest(killers, copy_package(tmp_path_factory.mktemp("unchanged")))
    assert passed(result, len(killers)), result.stdout


@pytest.fixture(scope="module")
def rust_killers_pass():
    killers = sorted({mutant.killer for mutant in RUST})
    result = run_cargo(killers, copy_crates())
    assert passed(result, len(killers)), result.stdout + result.stderr


@by_name(PYTHON)
def test_a_mutant_of_the_package_is_killed(mutant, tmp_path, python_killers_pass):
    root = copy_package(tmp_path)
    mutate(mutant, root)
    result = run_pytest([mutant.killer], root)
    assert killed(result), f"{mutant.killer} did not notice: {mutant.breaks}\n{result.stdout}{result.stderr}"


@needs_cargo
@by_name(RUST)
def test_a_mutant_of_the_core_is_killed(mutant, rust_killers_pass):
    root = copy_crates()
    mutate(mutant, root)
    result = run_cargo([mutant.killer], root)
    assert killed(result), f"{mutant.killer} did not notice: {mutant.breaks}\n{result.stdout}{result.stderr}"


def test_a_change_that_breaks_nothing_survives(tmp_path, python_killers_pass):
    # The control of the runner itself: it must not call everything killed.
    harmless = Mutant(
        "harmless",
        "python/fliphat/__init__.py",
        "from fliphat.policies",
        "from  fliphat.policies",
        "tests/project/test_package.py",
        "nothing",
    )
    root = copy_package(tmp_path)
    mutate(harmless, root)
    assert not killed(run_pytest(["tests/fit/test_fit_noise.py"], root))


@pytest.mark.parametrize("times", [0, 2])
def test_a_mutant_whose_text_has_moved_is_an_error(times):
    mutant = Mutant("m", "python/x.py", "old", "new", "tests/test_x.py", "nothing")
    with pytest.raises(LookupError, match=f"found {times} times in python/x.py and must be found once"):
        mutant.applied_to("old " * times)
