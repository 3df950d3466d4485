"""Results as one HTML file that needs nothing else: for a phone, a desk or paper, in light and dark."""

from __future__ import annotations

import base64
import html
import importlib.metadata
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import numpy

from fliphat import FLIPHAT, __version__
from fliphat.experiments.experiment import Experiment
from fliphat.experiments.output.figures import draw_to
from fliphat.experiments.output.table import at_the_end, table_rows
from fliphat.experiments.run.summary import Summary

__all__ = ["Section", "write_report"]


@dataclass(frozen=True)
class Section:
    """One experiment's part of a report: what was run, what came out, and its figure as a PNG file."""

    experiment: Experiment
    summaries: Sequence[Summary]
    headline: str
    figure: Path


def write_report(sections: Sequence[Section], path: Path, command: str) -> None:
    """Write a report of experiments.

    Parameters
    ----------
    sections : sequence of Section
    path : Path
    command : str
        What to type to get the same report again.
    """
    page = Template(Path(__file__).with_name("report.html").read_text(encoding="utf-8"))
    # At the epsilon that most figures share; each cell states its own.
    policy = FLIPHAT(dim=400, sparsity=10, epsilon=1.0, delta=0.01, reward_scale=1.5)
    filled = page.substitute(
        version=html.escape(__version__),
        contents="\n".join(_entry(section) for section in sections),
        sections="\n".join(_section(section) for section in sections),
        guarantee=html.escape(str(policy.guarantee)),
        command=html.escape(command),
        versions="\n".join(_pair(name, value) for name, value in _versions()),
    )
    path.write_text(filled, encoding="utf-8")


def _entry(section: Section) -> str:
    name = html.escape(section.experiment.name)
    return f'<li><a href="#{name}">{name}</a>: {html.escape(section.headline)}</li>'


def _section(section: Section) -> str:
    name = html.escape(section.experiment.name)
    wide, narrow = _data(section.figure), _narrow(section)
    alternative = html.escape(f"{section.experiment.name}: {section.headline}", quote=True)
    return (
        f'<section id="{name}"><h2>{name}</h2>\n'
        f"<p>{html.escape(section.experiment.explained)}</p>\n"
        f'<figure><picture><source media="(max-width: 36rem)" srcset="{narrow}">'
        f'<img alt="{alternative}" src="{wide}"></picture></figure>\n'
        f'<div class="wide">{_table(section)}</div>\n'
        f"<details open><summary>Settings</summary><dl>{_settings(section)}</dl></details></section>"
    )


def _data(picture: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode('ascii')}"


def _narrow(section: Section) -> str:
    """Return the figure as it is drawn for the width of a telephone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "narrow.png"
        draw_to(section.experiment, section.summaries, [path], narrow=True)
        return _data(path)


def _table(section: Section) -> str:
    header, *rows = table_rows(section.experiment, section.summaries)
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in header)
    body = "\n".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _cell(text: str) -> str:
    return f"<td>{html.escape(text.replace('+-', '±'))}</td>"


def _settings(section: Section) -> str:
    cells = section.experiment.cells
    repeats = min(summary.repeats for summary in at_the_end(section.summaries))
    seeds = section.experiment.seeds(repeats)
    pairs: list[tuple[str, Any]] = [
        ("experiment", section.experiment.name),
        ("repeats", f"{repeats}, with seeds {seeds[0]} to {seeds[-1]}"),
        ("rounds", " ".join(sorted({f"{cell.rounds:,}" for cell in cells}))),
    ]
    pairs += [("environment", text) for text in dict.fromkeys(str(cell.world) for cell in cells)]
    pairs += [("policy", text) for text in dict.fromkeys(str(cell.policy) for cell in cells)]
    return "\n".join(_pair(name, value) for name, value in pairs)


def _pair(name: str, value: Any) -> str:
    return f"<dt>{html.escape(name)}</dt><dd>{html.escape(str(value))}</dd>"


def _versions() -> list[tuple[str, str]]:
    found = [
        ("fliphat", __version__),
        ("Python", platform.python_version()),
        ("NumPy", numpy.__version__),
        ("machine", f"{platform.system()} {platform.machine()}"),
    ]
    for name in ("scipy", "matplotlib"):
        found.append((name, importlib.metadata.version(name)))
    return found
