"""What an experiment is: cells to run, what its numbers say, and its results as a table."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from fliphat.lab.display import TextTable
from fliphat.lab.experiments.cells import Cell
from fliphat.lab.experiments.sweep import Summary

#: From a cell's labels to the published mean regret at the last round, or None where nothing was published.
Published: TypeAlias = Callable[[Mapping[str, str | float]], float | None]

#: Draws on matplotlib's axes.
Panel: TypeAlias = Callable[[Any, "Experiment", Sequence[Summary]], None]


def nothing_published(labels: Mapping[str, str | float]) -> None:
    """Say that no published value stands beside this experiment."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Cells to run, how often, and what to say and draw about them."""

    name: str
    cells: tuple[Cell, ...]
    #: By default; the published number where there is one.
    repeats: int
    #: The label that figures have on their horizontal axis, or "round".
    axis: str
    #: A sentence for the report: what is varied, and what is measured.
    explained: str
    #: From an experiment and its summaries to a sentence computed from them: the title of the figure.
    headline: Callable[[Experiment, Sequence[Summary]], str]
    #: What the figure has, from left to right.
    panels: tuple[Panel, ...]
    #: See `Published`.
    published: Published = nothing_published
    #: What tables call the values of `published`.
    beside: str = "published"
    #: Repeats have this seed and those after it.
    first_seed: int = 0
    #: The delta of the private policies, as the figure states it.
    delta: str = "0.01"
    #: From an experiment and its summaries to a header and rows of text, where the ordinary table of
    #: means does not say enough.
    table: Callable[[Experiment, Sequence[Summary]], list[list[str]]] | None = None

    def sentence(self, summaries: Sequence[Summary]) -> str:
        """Return what the numbers say, whatever they are."""
        return self.headline(self, summaries)

    def seeds(self, repeats: int) -> range:
        """Return the seeds of so many repeats."""
        return range(self.first_seed, self.first_seed + repeats)

    def published_beside(self, summary: Summary) -> float | None:
        """Return the published value that a summary stands beside, if there is one."""
        if summary.round != self.cells[0].rounds:
            return None
        return self.published(dict(summary.labels))


#: Decimals of numbers in a CSV.
_DECIMALS: Final = {"mean_regret": 1, "low_95": 1, "high_95": 1, "cpu_seconds": 3, "megabytes": 1}


def at_the_end(summaries: Sequence[Summary]) -> list[Summary]:
    """Return the summaries of the last round of each cell."""
    last: dict[Any, Summary] = {}
    for summary in summaries:
        if summary.labels not in last or summary.round > last[summary.labels].round:
            last[summary.labels] = summary
    return list(last.values())


def to_records(experiment: Experiment, summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """Return one flat record a summary; missing labels, intervals and published values are None.

    Where runs were measured a record has their mean CPU seconds and the most memory of one.
    """
    names = _label_names(experiment)
    measured = any(cell.measured for cell in experiment.cells)
    return [
        {
            **{name: summary.label(name) for name in names},
            "round": summary.round,
            "repeats": summary.repeats,
            "mean_regret": summary.mean,
            "low_95": None if math.isnan(summary.low) else summary.low,
            "high_95": None if math.isnan(summary.high) else summary.high,
            "published": experiment.published_beside(summary),
            **({"cpu_seconds": summary.seconds, "megabytes": summary.megabytes} if measured else {}),
        }
        for summary in summaries
    ]


def write_csv(experiment: Experiment, summaries: Sequence[Summary], path: Path) -> None:
    """Write all checkpoints; regret with one decimal, as thousands deserve."""
    records = to_records(experiment, summaries)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, records[0], lineterminator="\n")
        writer.writeheader()
        for record in records:
            for name, decimals in _DECIMALS.items():
                if record.get(name) is not None:
                    record[name] = f"{record[name]:.{decimals}f}"
            writer.writerow(record)


def table_rows(experiment: Experiment, summaries: Sequence[Summary]) -> list[list[str]]:
    """Return a header and the last round's means, as text."""
    if experiment.table is not None:
        return experiment.table(experiment, summaries)
    names = _label_names(experiment)
    ends = at_the_end(summaries)
    compared = any(experiment.published_beside(summary) is not None for summary in ends)
    rows = [[*names, "regret", "95 %", *([experiment.beside, f"of {experiment.beside}"] if compared else [])]]
    for summary in ends:
        published = experiment.published_beside(summary)
        half = summary.high - summary.mean
        rows.append(
            [
                *("" if summary.label(name) is None else _plain(summary.label(name)) for name in names),
                f"{summary.mean:,.0f}",
                "" if math.isnan(half) else f"+-{half:,.0f}",
            ]
        )
        if compared:
            beside = (
                ["", ""] if published is None else [f"{published:,.0f}", f"{summary.mean / published:.0%}"]
            )
            rows[-1] += beside
    return rows


def text_table(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    """Return the last round's means as aligned text."""
    header, *rows = table_rows(experiment, summaries)
    return TextTable.fitting(header, rows).text(rows)


def _label_names(experiment: Experiment) -> list[str]:
    names: dict[str, None] = {}
    for cell in experiment.cells:
        names.update(dict.fromkeys(name for name, _ in cell.labels))
    return list(names)


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


#: The label of the private policy.
PRIVATE = "FLIPHAT"

#: The label of the paper's own algorithm and constants, run again.
PAPER = "paper, rerun"


def means(summaries: Sequence[Summary], axis: str) -> dict[float, dict[float, float]]:
    """Return FLIPHAT's mean regret at the end, by epsilon and then by the label `axis`."""
    curves: dict[float, dict[float, float]] = {}
    for summary in at_the_end(summaries):
        if summary.label("policy") == PRIVATE:
            curves.setdefault(summary.label("epsilon"), {})[summary.label(axis)] = summary.mean
    return curves


def ends_of_axis(experiment: Experiment) -> tuple[float, float]:
    """Return the smallest and the largest value on an experiment's axis."""
    numbers = [float(dict(cell.labels)[experiment.axis]) for cell in experiment.cells]
    return min(numbers), max(numbers)


def growth(experiment: Experiment, summaries: Sequence[Summary], thing: str) -> str:
    """Return what the largest value of an experiment's axis costs against the smallest."""
    first, last = ends_of_axis(experiment)
    ratios = [curve[last] / curve[first] for curve in means(summaries, experiment.axis).values()]
    return f"{last / first:g} times the {thing} cost {span(ratios, '.1f')} times the regret"


def span(values: Sequence[float], style: str) -> str:
    """Return "low to high", or one number if both read the same."""
    low, high = format(min(values), style), format(max(values), style)
    return low if low == high else f"{low} to {high}"


def plain_words(sentence: str) -> str:
    r"""Return a figure's title without its formulas' markup."""
    for markup, word in (
        ("$\\varepsilon$", "epsilon"),
        ("$\\alpha$", "alpha"),
        ("$\\delta$", "delta"),
        ("$\\infty$", "infinity"),
    ):
        sentence = sentence.replace(markup, word)
    return sentence
