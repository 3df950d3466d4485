"""Regret against the number of arms: the paper's fifth figure."""

from __future__ import annotations

from functools import partial
from typing import Final

from fliphat.lab.experiments.catalog._parts import EPSILONS, at_end, labels, linear, private, repeats
from fliphat.lab.experiments.experiment import Experiment
from fliphat.lab.experiments.output.panels import draw_against_axis
from fliphat.lab.experiments.output.sentences import growth

NAME: Final = "regret-vs-arms"
ORDER: Final = 50


def build(quick: bool) -> Experiment:
    """Return the experiment."""
    counts = (2, 6, 24) if quick else (2, 3, 4, 6, 8, 12, 16, 20, 24)
    return Experiment(
        name=NAME,
        cells=tuple(
            at_end(labels("FLIPHAT", epsilon=epsilon, arms=arms), private(epsilon), linear(arms=arms), 10_000)
            for arms in counts
            for epsilon in EPSILONS[:4]
        ),
        repeats=repeats(quick, 50),
        axis="arms",
        explained="Regret when each person is offered more arms.",
        headline=partial(growth, thing="arms"),
        panels=(partial(draw_against_axis, axis_name="arms $K$"),),
    )
