"""Regret against the sparsity that the policy is told: the paper's fourth figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from fliphat.lab.experiments.catalog._parts import EPSILONS, at_end, labels, linear, private, repeats
from fliphat.lab.experiments.experiment import Experiment
from fliphat.lab.experiments.output.panels import draw_against_axis
from fliphat.lab.experiments.output.sentences import ends_of_axis, means, span
from fliphat.lab.experiments.run.summary import Summary

NAME: Final = "regret-vs-sparsity"
ORDER: Final = 40

# Read off the figure at the true sparsity, by epsilon.
_TRUE_SPARSITY: Final = 10
_PUBLISHED: Final = {0.5: 18_600.0, 1.0: 14_300.0, 2.0: 8_600.0, 5.0: 4_200.0}


def build(quick: bool) -> Experiment:
    """Return the experiment."""
    guesses = (5, 10, 20, 60) if quick else (5, 8, 10, 15, 20, 30, 40, 50, 60)
    return Experiment(
        name=NAME,
        cells=tuple(
            at_end(
                labels("FLIPHAT", epsilon=epsilon, sparsity=guess),
                private(epsilon, sparsity=guess, fit="iht"),
                linear(sparsity=_TRUE_SPARSITY),
                10_000,
            )
            for guess in guesses
            for epsilon in EPSILONS[:4]
        ),
        repeats=repeats(quick, 50),
        axis="sparsity",
        explained="Regret when the policy is told a smaller or larger number of coordinates.",
        headline=_headline,
        panels=(partial(draw_against_axis, axis_name="sparsity $s$ given to the policy", crowded=(50,)),),
        published=_published,
    )


def _published(labels: Mapping[str, str | float]) -> float | None:
    if labels.get("sparsity") != _TRUE_SPARSITY:
        return None
    return _PUBLISHED.get(float(labels.get("epsilon", 0.0)))


def _headline(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    _, last = ends_of_axis(experiment)
    curves = means(summaries, "sparsity").values()
    ratios = [curve[last] / curve[_TRUE_SPARSITY] for curve in curves]
    best = [min(curve, key=curve.__getitem__) for curve in curves]
    cost = f"s = {last:g} costs {span(ratios, '.1f')} times the regret"
    return f"Best at s = {span(best, 'g')}, where s* = {_TRUE_SPARSITY}; {cost}"
