"""Regret against delta: the published setting, at a delta that protects more people than there are rounds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from fliphat.lab.experiments.catalog._parts import (
    EPSILONS,
    HELD_OUT,
    at_end,
    labels,
    linear,
    private,
    repeats,
)
from fliphat.lab.experiments.experiment import Experiment
from fliphat.lab.experiments.output.panels import draw_against_axis
from fliphat.lab.experiments.output.sentences import ends_of_axis, means, span
from fliphat.lab.experiments.run.summary import Summary

NAME: Final = "regret-vs-delta"
ORDER: Final = 80

_ROUNDS: Final = 20_000


def build(quick: bool) -> Experiment:
    """Return the experiment."""
    deltas = (1e-6, 1e-2) if quick else (1e-8, 1e-6, 1e-4, 1e-2)
    return Experiment(
        name=NAME,
        cells=tuple(
            at_end(
                labels("FLIPHAT", epsilon=epsilon, delta=delta),
                private(epsilon, delta=delta),
                linear(),
                _ROUNDS,
            )
            for delta in deltas
            for epsilon in EPSILONS
        ),
        repeats=repeats(quick, 60),
        axis="delta",
        explained="Regret when delta is smaller than the published 0.01, which is one person in a hundred.",
        headline=_headline,
        panels=(partial(draw_against_axis, axis_name=r"$\delta$"),),
        delta="as shown",
        first_seed=HELD_OUT,
    )


def _headline(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    _, published = ends_of_axis(experiment)
    small = 1e-6
    ratios = [curve[small] / curve[published] for curve in means(summaries, "delta").values()]
    return f"$\\delta$ = {small:g} costs {span(ratios, '.1f')} times the regret of $\\delta$ = {published:g}"
