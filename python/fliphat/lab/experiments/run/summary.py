"""Means over repeats, with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from fliphat.lab.experiments.run.cells import Cell, Labels, Run


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
