"""Results as a table to read and a CSV to compute with."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from fliphat.lab.display import TextTable
from fliphat.lab.experiments.experiment import Experiment
from fliphat.lab.experiments.run.summary import Summary

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
