"""Results as one HTML file that needs nothing else: for a phone, a desk or paper, in light and dark."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

from fliphat import FLIPHAT, __version__
from fliphat.html import pairs, table
from fliphat.lab.display.page import page, picture, versions
from fliphat.lab.experiments.experiment import Experiment, at_the_end, table_rows
from fliphat.lab.experiments.figures import draw
from fliphat.lab.experiments.sweep import Summary


@dataclass(frozen=True)
class Section:
    """One experiment's part of a report: what was run, and what came out."""

    experiment: Experiment
    summaries: Sequence[Summary]
    headline: str


def write_report(sections: Sequence[Section], path: Path, command: str) -> None:
    """Write a report of experiments, with the command that makes the same report again."""
    body = Template(Path(__file__).with_name("report.html").read_text(encoding="utf-8"))
    # At the epsilon that most figures share; each cell states its own.
    policy = FLIPHAT(dim=400, sparsity=10, epsilon=1.0, delta=0.01, reward_scale=1.5)
    filled = body.substitute(
        version=html.escape(__version__),
        contents="\n".join(_entry(section) for section in sections),
        sections="\n".join(_section(section) for section in sections),
        guarantee=html.escape(str(policy.guarantee)),
        command=html.escape(command),
        versions=pairs(versions()),
    )
    path.write_text(page("fliphat: results", filled), encoding="utf-8")


def _entry(section: Section) -> str:
    name = html.escape(section.experiment.name)
    return f'<li><a href="#{name}">{name}</a>: {html.escape(section.headline)}</li>'


def _section(section: Section) -> str:
    name = html.escape(section.experiment.name)
    header, *rows = table_rows(section.experiment, section.summaries)
    drawn = partial(draw, section.experiment, section.summaries)
    return (
        f'<section id="{name}"><h2>{name}</h2>\n'
        f"<p>{html.escape(section.experiment.explained)}</p>\n"
        f"{picture(drawn, f'{section.experiment.name}: {section.headline}')}\n"
        f"{table(header, rows)}\n"
        f"<details open><summary>Settings</summary><dl>{pairs(_settings(section))}</dl></details></section>"
    )


def _settings(section: Section) -> list[tuple[str, Any]]:
    cells = section.experiment.cells
    repeats = min(summary.repeats for summary in at_the_end(section.summaries))
    seeds = section.experiment.seeds(repeats)
    named: list[tuple[str, Any]] = [
        ("experiment", section.experiment.name),
        ("repeats", f"{repeats}, with seeds {seeds[0]} to {seeds[-1]}"),
        ("rounds", " ".join(sorted({f"{cell.rounds:,}" for cell in cells}))),
    ]
    named += [("environment", text) for text in dict.fromkeys(str(cell.world) for cell in cells)]
    named += [("policy", text) for text in dict.fromkeys(str(cell.policy) for cell in cells)]
    return named
