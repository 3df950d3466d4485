"""`fliphat demo`: what privacy costs, seen in about ten seconds."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from fliphat import FLIPHAT
from fliphat.environments import SparseLinear
from fliphat.lab.display import Progress, TextTable
from fliphat.lab.display.figure_style import check_picture, save
from fliphat.lab.experiments.catalog import DEMO_DELTA, Experiment, first_look
from fliphat.lab.experiments.cells import Run, run_cell
from fliphat.lab.experiments.executors import finished, open_executor
from fliphat.lab.experiments.experiment import at_the_end
from fliphat.lab.experiments.sweep import Summary, summarise
from fliphat.policies import Health, HealthWarning
from fliphat.simulation import play

_EXTRA = "pip install 'fliphat[experiments]'"
_COLUMNS: Final = ("policy", "epsilon", "regret", "of random", "as if random for")
_WIDTHS: Final = (10, 7, 8, 9, 16)
_STATED_EPSILON: Final = 1.0
_STATED: Final[dict[str, Any]] = {
    "dim": 400,
    "sparsity": 10,
    "epsilon": _STATED_EPSILON,
    "delta": DEMO_DELTA,
    "reward_scale": 1.5,
}

Update: TypeAlias = Callable[[Sequence[Run]], None]


def show_demo(repeats: int, *, out: Path, as_json: bool) -> int:
    """Play every policy, show regret as it comes in, and say what was guaranteed."""
    can_draw = importlib.util.find_spec("matplotlib") is not None
    if can_draw:
        check_picture(out)
    one = first_look(repeats)
    if not as_json:
        print(_introduction(one), flush=True)
    summaries = _play(one, show=not as_json)
    if can_draw:
        from fliphat.lab.experiments.figures import draw

        save(draw(one, summaries), [out])
    policy, health = FLIPHAT(**_STATED), _health(one.cells[0].rounds)
    if as_json:
        ends = [{**dict(s.labels), "regret": s.mean, "repeats": s.repeats} for s in at_the_end(summaries)]
        figure = str(out) if can_draw else None
        words = {"guarantee": str(policy.guarantee), "health": str(health)}
        record = {"results": ends, **words, "figure": figure}
        print(json.dumps(record, indent=2))
        return 0
    print(f"\nWhat a policy with epsilon = {_STATED_EPSILON:g} guarantees (the runs above had seeds, to be")
    print("repeatable; this is one without, as people would meet it):\n")
    print(textwrap.indent(textwrap.fill(str(policy.guarantee), 92), "  "))
    print(f"\nHealth of a run with epsilon = {_STATED_EPSILON:g}, from public numbers: {health}")
    print(f"\nFigure: {out}" if can_draw else f"\nNo figure: that needs matplotlib. {_EXTRA}")
    print("Next: `fliphat plan --help` tells what you could learn from as many people as you have.")
    return 0


def _health(rounds: int) -> Health:
    """Return what public numbers say about one run of the policy that is described."""
    policy = FLIPHAT(**_STATED, seed=0)
    with warnings.catch_warnings():
        # Its findings are printed.
        warnings.simplefilter("ignore", HealthWarning)
        play(policy, SparseLinear(dim=400, seed=0), rounds)
    return policy.health


def _introduction(one: Experiment) -> str:
    return (
        f"{one.cells[0].rounds:,} people, one after the other; each is offered 3 arms, described by 400 "
        f"numbers of which 5 matter.\nRegret: reward lost against always knowing the best arm. "
        f"Mean of {one.repeats}; delta = {one.delta}. "
        f'"No privacy" is the Lasso bandit, which protects nobody.\n'
    )


def _play(one: Experiment, *, show: bool) -> list[Summary]:
    runs: list[Run] = []
    live = show and live_table_wanted()
    every = [(cell, seed) for seed in range(one.repeats) for cell in one.cells]
    if not live:  # a printed row stays as it is, so its repeats come one after the other
        every.sort(key=lambda pair: one.cells.index(pair[0]))
    table = _live(one) if live else _printed(one) if show else contextlib.nullcontext(_nowhere)
    with open_executor() as executor, table as update, Progress("playing", len(every)) as progress:
        if live or sys.stdout.isatty():
            progress.hide()  # the table moves by itself
        for run in finished(run_cell, every, executor):
            runs.append(run)
            update(runs)
            progress.advance(1)
    runs.sort(key=lambda run: run.seed)
    return summarise(one.cells, runs)


def live_table_wanted() -> bool:
    """Return whether a table that redraws itself can be shown: rich, and a terminal that can move."""
    if importlib.util.find_spec("rich") is None:
        return False
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _nowhere(runs: Sequence[Run]) -> None:
    """Show nothing."""


def _rows(one: Experiment, runs: Sequence[Run]) -> list[tuple[str, str, str, str, str] | None]:
    """Return a row for each cell, from the repeats there are; None for cells without any."""
    ends = {summary.labels: summary for summary in at_the_end(summarise(one.cells, runs))}
    random = ends.get(one.cells[0].labels)
    rows: list[tuple[str, str, str, str, str] | None] = []
    for cell in one.cells:
        end = ends.get(cell.labels)
        if end is None or random is None:
            rows.append(None)
            continue
        share, epsilon = end.mean / random.mean, end.label("epsilon")
        rounds = f"{share * end.round:,.0f} rounds"
        shown = "" if epsilon is None else f"{epsilon:g}"
        rows.append((end.label("policy"), shown, f"{end.mean:,.0f}", f"{share:.1%}", rounds))
    return rows


@contextlib.contextmanager
def _printed(one: Experiment) -> Iterator[Update]:
    """Print each row when the last of its repeats is in, and those before it are."""
    printed = 0
    if sys.stdout.isatty() and importlib.util.find_spec("rich") is None:
        print(f"(A live table needs rich: {_EXTRA})\n")
    table = TextTable(_COLUMNS, _WIDTHS)
    print(table.heading(), flush=True)

    def update(runs: Sequence[Run]) -> None:
        nonlocal printed
        repeats = Counter(run.labels for run in runs)
        rows = _rows(one, runs)
        while printed < len(rows) and repeats[one.cells[printed].labels] == one.repeats:
            row = rows[printed]
            if row is None:
                break
            print(table.line(row), flush=True)
            printed += 1

    yield update


@contextlib.contextmanager
def _live(one: Experiment) -> Iterator[Update]:
    """Redraw the table after every run."""
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    def table(runs: Sequence[Run]) -> Table:
        drawn = Table(box=None, header_style="bold cyan", pad_edge=False)
        for name in _COLUMNS:
            drawn.add_column(name, justify="left" if name == "policy" else "right")
        for cell, row in zip(one.cells, _rows(one, runs), strict=True):
            labels = dict(cell.labels)
            epsilon = labels.get("epsilon")
            drawn.add_row(*(row or (str(labels["policy"]), f"{epsilon:g}" if epsilon else "", "...", "", "")))
        return drawn

    # rich leaves colours out where NO_COLOR is set.
    with Live(table([]), console=Console(highlight=False), refresh_per_second=8) as live:
        yield lambda runs: live.update(table(runs))
