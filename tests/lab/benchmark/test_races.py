"""The races run: all of them on tiny data, and one that fails leaves the others their rows."""

import json

import numpy as np
import pytest

from fliphat import cli, kernels
from fliphat.lab.benchmark.races import Race, best_times, one_thread_blas, races


def first_array(result):
    """What a contestant computed, without steps and sizes that twins do not repeat."""
    while isinstance(result, tuple):
        result = result[0]
    return np.asarray(result, np.float64)


@pytest.mark.parametrize("make", list(races(tiny=True)), ids=lambda make: make.func.__name__.strip("_"))
def test_every_contestant_runs_and_they_agree(make):
    race = make()
    assert race.best is not None
    results = {name: run() for name, run in race.contestants().items()}
    assert set(best_times(race, 1)) == set(results)
    results.pop("read bandwidth", None)
    if race.random:
        return
    expected = first_array(results["kernel"])
    if "two threads" in results:
        np.testing.assert_array_equal(first_array(results["two threads"]), expected)
    # Integers are equal; what is public may differ in the last bits.
    np.testing.assert_allclose(first_array(results["plain NumPy"]), expected, rtol=1e-9, atol=1e-9)
    if not race.name.startswith(
        "second_moments"
    ):  # BLAS on rows that are not cut: something else, on purpose
        # Sums of a row in another order may round otherwise.
        np.testing.assert_allclose(first_array(results["best NumPy"]), expected, rtol=1e-9, atol=8)


def test_a_race_that_fails_has_a_row_and_the_exit_code_says_so(capsys, monkeypatch):
    def refused():
        return Race(
            "refused", "3 x 2", lambda: kernels.second_moments(np.ones((2, 3)).T, radius=1, scale=1.0), list
        )

    def unmade():
        raise MemoryError("no room")

    good = next(iter(races(tiny=True)))
    monkeypatch.setattr("fliphat.lab.benchmark.table.races", lambda: iter([refused, good, unmade]))
    assert cli.main(["bench", "--repeats", "1"]) == 1
    captured = capsys.readouterr()
    rows = captured.out.splitlines()[2:5]
    assert [row.split("|")[1].strip() for row in rows] == ["refused", "project_l1", "unmade"]
    assert ["failed" in row for row in rows] == [True, False, True]
    assert "refused: ValueError: X must be aligned" in captured.err and "MemoryError: no room" in captured.err
    assert cli.main(["bench", "--repeats", "1", "--json"]) == 1
    failures = [race.get("failure") for race in json.loads(capsys.readouterr().out)["races"]]
    assert [bool(failure) for failure in failures] == [True, False, True]


def test_blas_is_held_to_one_thread_and_let_go():
    with one_thread_blas() as first, one_thread_blas() as second:
        assert first == second
