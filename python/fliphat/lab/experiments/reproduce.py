"""`fliphat reproduce`: run experiments by name, write CSV, figures and a report, print a table."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor
from pathlib import Path

from fliphat import __version__
from fliphat.lab.display.figure_style import save
from fliphat.lab.experiments.catalog import NAMES, Experiment, experiment
from fliphat.lab.experiments.executors import open_executor
from fliphat.lab.experiments.experiment import plain_words, text_table, to_records, write_csv
from fliphat.lab.experiments.report import Section, write_report
from fliphat.lab.experiments.sweep import ResultFile, Summary, summarise, sweep


def reproduce(
    name: str,
    *,
    out: Path,
    repeats: int | None = None,
    quick: bool = False,
    workers: int | None = None,
    dask: str | None = None,
    resume: bool = False,
    again: str | None = None,
    as_json: bool = False,
    report: bool = False,
) -> int:
    """Run one experiment, or "all"; 0 if everything was run and drawn.

    In `out`, made if it is missing, each experiment leaves its runs (``.jsonl``), means (``.csv``) and
    figures (``.png``, ``.svg``), and `report` all of it in one ``report.html``. `resume` keeps the runs that
    are there already, but for policies with `again` in their name, which changed.
    """
    if name != "all" and name not in NAMES:
        raise ValueError(f"NAME must be 'all' or one of {', '.join(NAMES)}, got {name!r}")
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("figures need matplotlib: pip install 'fliphat[experiments]'")
    if again is not None and not resume:
        raise ValueError("--again needs --resume: without it everything is run again")
    _make_directory(out)
    chosen = [experiment(one, quick=quick) for one in (NAMES if name == "all" else (name,))]
    records = {}
    sections = []
    with open_executor(workers, dask) as executor:
        for number, one in enumerate(chosen, 1):
            started = time.monotonic()
            task = f"[{number}/{len(chosen)}] {one.name}"
            summaries = _run(one, repeats or one.repeats, executor, out, resume, again, task)
            paths = _write(one, summaries, out)
            sentence = one.sentence(summaries)
            sections.append(Section(one, summaries, plain_words(sentence)))
            if as_json:
                records[one.name] = {"finding": sentence, "results": to_records(one, summaries)}
            else:
                seconds = time.monotonic() - started
                print(f"{one.name}: {plain_words(sentence)}\n\n{text_table(one, summaries)}\n")
                print(f"{', '.join(str(path) for path in paths)} ({seconds:.0f} s)\n", flush=True)
    if report:
        command = _again(name, repeats, quick)
        write_report(sections, out / "report.html", command)
    if as_json:
        print(json.dumps(records, indent=2))
    elif report:
        print(out / "report.html")
    return 0


def _again(name: str, repeats: int | None, quick: bool) -> str:
    options = [*(["--quick"] if quick else []), *([f"--repeats {repeats}"] if repeats else []), "--report"]
    return f"pip install 'fliphat[experiments]=={__version__}'\nfliphat reproduce {name} {' '.join(options)}"


def _run(
    one: Experiment,
    repeats: int,
    executor: Executor | None,
    out: Path,
    resume: bool,
    again: str | None,
    task: str,
) -> list[Summary]:
    path = out / f"{one.name}.jsonl"
    try:
        with ResultFile(path, resume=resume) as results:
            if again is not None:
                results.forget(_keys_of(one, again, repeats))
            runs = sweep(one.cells, one.seeds(repeats), executor=executor, results=results, task=task)
    except KeyboardInterrupt:
        print(f"\nfinished runs are kept in {path}: --resume goes on from there", file=sys.stderr)
        raise
    except BrokenExecutor:
        raise OSError(
            f"a worker died (out of memory?); finished runs are kept in {path}: --resume goes on from there"
        ) from None
    return summarise(one.cells, runs)


def _keys_of(one: Experiment, policy: str, repeats: int) -> list[str]:
    cells = [cell for cell in one.cells if policy in str(dict(cell.labels).get("policy", ""))]
    if not cells:
        names = sorted({str(dict(cell.labels).get("policy", "")) for cell in one.cells})
        raise ValueError(f"--again must be part of a policy's name ({', '.join(names)}), got {policy!r}")
    return [cell.key(seed) for cell in cells for seed in one.seeds(repeats)]


def _write(one: Experiment, summaries: Sequence[Summary], out: Path) -> list[Path]:
    from fliphat.lab.experiments.figures import draw

    table, *pictures = [out / f"{one.name}{ending}" for ending in (".csv", ".png", ".svg")]
    write_csv(one, summaries, table)
    save(draw(one, summaries), pictures)
    return [table, *pictures]


def _make_directory(out: Path) -> None:
    """Find out before the first run, not after the last, whether files can be written."""
    probe = out / f".writable-{os.getpid()}"
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OSError(
            f"--out must be a directory that can be written, got {str(out)!r}: {error.strerror}"
        ) from None
