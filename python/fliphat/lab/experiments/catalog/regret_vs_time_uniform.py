"""Regret as rounds go by when rewards have uniform noise: the paper's second figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fliphat.lab.experiments.catalog._parts import repeats
from fliphat.lab.experiments.catalog.regret_vs_time import curves
from fliphat.lab.experiments.experiment import Experiment
from fliphat.lab.experiments.output.panels import draw_over_time
from fliphat.lab.experiments.output.sentences import PRIVATE, span
from fliphat.lab.experiments.run.summary import Summary

NAME: Final = "regret-vs-time-uniform"
ORDER: Final = 20


def build(quick: bool) -> Experiment:
    """Return the experiment."""
    return Experiment(
        name=NAME,
        cells=curves(noise="uniform", noise_scale=0.1),
        repeats=repeats(quick, 60),
        axis="round",
        explained="The same with uniform instead of normal noise in the rewards.",
        headline=_headline,
        panels=(draw_over_time,),
    )


def _headline(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    curves: dict[Any, dict[int, float]] = {}
    for summary in summaries:
        if summary.label("policy") == PRIVATE:
            curves.setdefault(summary.labels, {})[summary.round] = summary.mean
    late = [100 * (1 - curve[max(curve) // 2] / curve[max(curve)]) for curve in curves.values()]
    return f"Sublinear: the second half of the rounds adds {span(late, '.0f')} % of the regret"
