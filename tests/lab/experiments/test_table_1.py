"""The table of peers: what it says of each row, and that its runs are measured."""

import json

import pytest

from fliphat.environments import SparseLinear
from fliphat.lab.experiments import Recipe, makers, summarise, sweep
from fliphat.lab.experiments.catalog import experiment
from fliphat.lab.experiments.catalog.table_1 import STEPS
from fliphat.lab.experiments.cells import Cell, run_cell
from fliphat.lab.experiments.experiment import table_rows
from fliphat.lab.experiments.sweep import ResultFile
from invented_results import invented


def test_the_table_has_privacy_what_is_protected_regret_seconds_and_memory():
    one, summaries = invented("table-1")
    header, *rows = table_rows(one, summaries)
    assert header[:3] == ["policy", "privacy", "protects"] and header[-2:] == ["CPU s", "MB"]
    assert "of random" in header and all(len(row) == len(header) for row in rows)
    said = {row[0]: row for row in rows}
    assert "contexts are public" in said["AdaC-OFUL"][2] and said["AdaC-OFUL"][1] == "rewards only"
    assert said["Zheng, published"][1] == "local" and said["FLIPHAT, pursuit"][1] == "joint"
    left_out = [row for row in rows if "not run" in row]
    assert [row[0].split()[0] for row in left_out] == ["Garcelon"]
    random = next(row for row in rows if row[0] == "random")
    assert random[header.index("of random")] == "1.0000"


def test_all_peers_run_at_both_dimensions_and_epsilons_on_seeds_of_their_own():
    full = experiment("table-1")
    private = [dict(cell.labels) for cell in full.cells if "epsilon" in dict(cell.labels)]
    assert {(one["dim"], one["epsilon"]) for one in private} == {
        (d, e) for d in (20, 400) for e in (1.0, 10.0)
    }
    # Garcelon's bits are too many at d = 400, and the table says so.
    narrow = {one["policy"] for one in private if one["policy"].startswith("Garcelon")}
    assert len(private) == 4 * len({one["policy"] for one in private}) - 2 * len(narrow)
    assert all(one["dim"] == 20 for one in private if one["policy"] in narrow)
    assert set(STEPS) <= {one["policy"] for one in private}
    assert full.repeats >= 10 and {cell.most_repeats for cell in full.cells} == {None, 5}
    assert all(cell.rounds == 20_000 and cell.measured for cell in full.cells)
    assert full.seeds(10)[0] == 15_000


def measured_cell(**options):
    recipe = Recipe.of(makers.peer, name="MomentGreedy", epsilon=1.0, delta=0.01)
    world = Recipe.of(SparseLinear, dim=20)
    return Cell((("policy", "moment"),), recipe, world, 500, (500,), measured=True, **options)


def test_runs_are_timed_or_traced_and_resumed_with_what_was_measured(tmp_path):
    cell = measured_cell(most_repeats=3)
    other = Cell((("policy", "random"),), Recipe.of(makers.random), cell.world, 500, (500,))
    with ResultFile(tmp_path / "runs.jsonl") as results:
        runs = sweep([cell, other], range(5, 10), results=results)
    assert len(runs) == 3 + 5  # the slow cell has fewer
    traced = [run for run in runs if run.megabytes is not None]
    assert [run.seed for run in traced] == [5] and traced[0].seconds is None
    assert traced[0].megabytes > 0.01 and sum(run.seconds is not None for run in runs) == 2
    records = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert sum("seconds" in one for one in records) == 2
    with ResultFile(tmp_path / "runs.jsonl", resume=True) as results:
        again = sweep([cell, other], range(5, 10), results=results)
    assert [(r.seconds, r.megabytes) for r in again] == [(r.seconds, r.megabytes) for r in runs]
    summary, plain = summarise([cell, other], runs)
    assert summary.repeats == 3 and summary.megabytes == traced[0].megabytes
    assert summary.seconds == pytest.approx(sum(r.seconds or 0 for r in runs) / 2)
    assert plain.seconds is None and plain.repeats == 5


def test_measuring_changes_no_result():
    cell = measured_cell()
    assert run_cell(cell, 5) == run_cell(cell, 5) and run_cell(cell, 5).regret != run_cell(cell, 6).regret


def test_unknown_peers_are_refused():
    with pytest.raises(ValueError, match="name must be one of"):
        makers.peer(environment=SparseLinear(20), seed=1, name="Nobody")
