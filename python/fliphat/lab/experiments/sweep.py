"""Running all cells for all seeds wherever there are cores, results in a file, and means with intervals."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from scipy.special import stdtrit

from fliphat import __version__
from fliphat.lab.display.terminal import Progress
from fliphat.lab.experiments.cells import KEY_FORMAT, Cell, Labels, Run, run_cell
from fliphat.lab.experiments.executors import finished


class ResultFile:
    """An append-only file of runs.

    A line is written whole and handed to the operating system before the next run is waited for. A crash can
    tear the last line only, and a torn line is dropped when the file is opened to resume.

    Parameters
    ----------
    path : path
    resume : bool
        True keeps the runs already in the file. False starts a new file; an old one is kept with the
        ending ``.old``, because it may have taken hours.

    Attributes
    ----------
    found : dict of str to tuple of float
        Cumulative regret of each run that was in the file, by key.
    costs : dict of str to pair of float or None
        Seconds and megabytes of those runs, where they were measured.

    Raises
    ------
    ValueError
        If the file to resume is damaged, or was written by another version: its runs would all be run again.
    """

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False) -> None:
        self.path = Path(path)
        self.found: dict[str, tuple[float, ...]] = {}
        self.costs: dict[str, tuple[float | None, float | None]] = {}
        if self.path.exists():
            if resume:
                self._load()
            else:
                os.replace(self.path, self.path.with_name(self.path.name + ".old"))
        self._file = open(self.path, "ab")  # noqa: SIM115 (closed in close)

    def _load(self) -> None:
        whole = 0
        with open(self.path, "rb") as lines:
            for line in lines:
                record = _record(line)
                if record is None:
                    break
                self._require_this_version(record)
                self.found[record["key"]] = tuple(record["regret"])
                self.costs[record["key"]] = (record.get("seconds"), record.get("megabytes"))
                whole += len(line)
            rest = lines.read()
        if rest:
            raise ValueError(f"{self.path} is damaged before its last line: remove it, or do not resume")
        os.truncate(self.path, whole)

    def _require_this_version(self, record: dict[str, Any]) -> None:
        """Refuse runs whose keys this version would not find, though they are there."""
        made_by = (record.get("format", 1), record.get("fliphat"))
        if made_by != (KEY_FORMAT, __version__):
            version, form = made_by[1] or "an earlier version", made_by[0]
            raise ValueError(
                f"{self.path} has runs of fliphat {version} (format {form}), this is {__version__} (format "
                f"{KEY_FORMAT}): resume with that version, or run without resuming, which keeps them as .old"
            )

    def forget(self, keys: Iterable[str]) -> None:
        """Let runs be run again; what they will have been is appended, and a file's last word counts."""
        for key in keys:
            self.found.pop(key, None)
            self.costs.pop(key, None)

    def add(self, run: Run) -> None:
        """Append one run."""
        self._file.write(json.dumps(run.to_dict()).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Bring everything to disk and close; twice is harmless."""
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def __enter__(self) -> ResultFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _record(line: bytes) -> dict[str, Any] | None:
    """Return a whole line's record, or None for a torn one."""
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(record, dict) and isinstance(record.get("regret"), list) and "key" in record
    return record if whole else None


@dataclass(frozen=True)
class Summary:
    """The mean cumulative regret of a cell at one checkpoint.

    Attributes
    ----------
    labels : tuple of (name, value)
    round : int
    repeats : int
    mean, low, high : float
        The mean and the ends of its 95 % interval; the ends are NaN for a single repeat.
    seconds, megabytes : float, optional
        The mean CPU time and the largest memory of the cell's runs, where they were measured.
    """

    labels: Labels
    round: int
    repeats: int
    mean: float
    low: float
    high: float
    seconds: float | None = None
    megabytes: float | None = None

    def label(self, name: str) -> Any:
        """Return one label, or None."""
        return dict(self.labels).get(name)


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and its 95 % Student t interval."""
    numbers = np.asarray(values, np.float64)
    mean = float(numbers.mean())
    if len(numbers) < 2:
        return mean, math.nan, math.nan
    half = float(stdtrit(len(numbers) - 1, 0.975) * numbers.std(ddof=1) / math.sqrt(len(numbers)))
    return mean, mean - half, mean + half


def summarise(cells: Iterable[Cell], runs: Iterable[Run]) -> list[Summary]:
    """Return a summary for each cell and checkpoint that has runs, in the cells' order."""
    found: dict[Labels, list[Run]] = {}
    for run in runs:
        found.setdefault(run.labels, []).append(run)
    summaries = []
    for cell in cells:
        repeats = found.get(cell.labels, [])
        seconds = [run.seconds for run in repeats if run.seconds is not None]
        megabytes = [run.megabytes for run in repeats if run.megabytes is not None]
        costs = (float(np.mean(seconds)) if seconds else None, max(megabytes, default=None))
        regret = zip(*(run.regret for run in repeats), strict=True)
        for at, values in zip(cell.checkpoints, regret, strict=False):
            summaries.append(Summary(cell.labels, at, len(values), *mean_interval(values), *costs))
    return summaries


def sweep(
    cells: Sequence[Cell],
    seeds: Iterable[int],
    *,
    executor: Executor | None = None,
    results: ResultFile | None = None,
    task: str = "runs",
) -> list[Run]:
    """Run every cell for every seed.

    Parameters
    ----------
    cells : sequence of Cell
        With labels of their own.
    seeds : iterable of int
        One a repeat. All cells of a seed come before the next seed, so that what an interrupted sweep leaves
        covers the whole grid.
    executor : concurrent.futures.Executor, optional
        Any: of processes, or a cluster's, such as ``distributed.Client().get_executor()``. By default runs
        come one after the other in this process. :func:`fliphat.lab.experiments.open_executor` makes one
        that uses all cores.
    results : ResultFile, optional
        Where runs are written as they finish; runs that it already has are not run again.
    task : str
        What the progress bar says.

    Returns
    -------
    list of Run
        Ordered by seed, then cell: the same list for every executor.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C; what had finished is in `results`.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.experiments import Recipe, grid, makers, summarise
    >>> cells = grid({"random": Recipe.of(makers.random)}, {"small": Recipe.of(SparseLinear, dim=20)}, 1000)
    >>> summary, = summarise(cells, sweep(cells, seeds=range(5)))
    >>> bool(summary.low < summary.mean < summary.high), summary.repeats
    (True, 5)
    """
    seeds = list(seeds)
    if len({cell.labels for cell in cells}) < len(cells):
        raise ValueError("cells must have labels of their own: two of them share theirs")
    if len(set(seeds)) < len(seeds):
        raise ValueError("seeds must differ: a repeated seed is the same run again")
    planned = [
        (cell, seed)
        for number, seed in enumerate(seeds)
        for cell in cells
        if cell.most_repeats is None or number < cell.most_repeats
    ]
    wanted = {cell.key(seed): (cell, seed) for cell, seed in planned}
    if len(wanted) < len(planned):
        raise ValueError("cells must differ in more than their labels: two of them are the same run")
    known = {} if results is None else results.found
    costs = {} if results is None else results.costs
    done = {
        key: Run(key, cell.labels, seed, known[key], *costs.get(key, (None, None)))
        for key, (cell, seed) in wanted.items()
        if key in known
    }
    missing = [(cell, seed) for key, (cell, seed) in wanted.items() if key not in done]
    with Progress(task, len(wanted)) as progress:
        progress.advance(len(done))
        for run in finished(run_cell, missing, executor):
            if results is not None:
                results.add(run)
            done[run.key] = run
            progress.advance(1)
    return [done[key] for key in wanted]
