"""What an experiment is: cells to run, and what to say and draw about their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fliphat.lab.experiments.run.cells import Cell
from fliphat.lab.experiments.run.summary import Summary

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
