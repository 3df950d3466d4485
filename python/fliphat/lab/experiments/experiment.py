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
    """Cells to run, how often, and what to say and draw about them.

    Attributes
    ----------
    name : str
    cells : tuple of Cell
    repeats : int
        By default; the published number where there is one.
    axis : str
        The label that figures have on their horizontal axis, or "round".
    explained : str
        A sentence for the report: what is varied, and what is measured.
    headline : callable
        From an experiment and its summaries to a sentence computed from them: the title of the figure.
    panels : tuple of callable
        What the figure has, from left to right.
    published : callable
        See `Published`.
    beside : str
        What tables call the values of `published`.
    first_seed : int
        Repeats have this seed and those after it.
    delta : str
        The delta of the private policies, as the figure states it.
    table : callable, optional
        From an experiment and its summaries to a header and rows of text, where the ordinary table of means
        does not say enough.
    """

    name: str
    cells: tuple[Cell, ...]
    repeats: int
    axis: str
    explained: str
    headline: Callable[[Experiment, Sequence[Summary]], str]
    panels: tuple[Panel, ...]
    published: Published = nothing_published
    beside: str = "published"
    first_seed: int = 0
    delta: str = "0.01"
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
