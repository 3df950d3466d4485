"""Regret as rounds go by: the paper's first figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fliphat.lab.experiments.catalog._parts import (
    EPSILONS,
    HELD_OUT,
    as_printed,
    labels,
    linear,
    playing_at_random,
    private,
    repeats,
)
from fliphat.lab.experiments.experiment import Experiment
from fliphat.lab.experiments.output.panels import draw_over_time
from fliphat.lab.experiments.output.sentences import PAPER, PRIVATE, span
from fliphat.lab.experiments.output.table import at_the_end
from fliphat.lab.experiments.run import factories
from fliphat.lab.experiments.run.cells import Cell
from fliphat.lab.experiments.run.recipe import Recipe
from fliphat.lab.experiments.run.summary import Summary

NAME: Final = "regret-vs-time"
ORDER: Final = 10

#: Read off the figure, by epsilon. Its noise is smaller than a proof needs: see :mod:`fliphat.paper`.
PUBLISHED: Final = {0.5: 10_900.0, 1.0: 5_600.0, 2.0: 2_900.0, 5.0: 1_250.0, 10.0: 700.0}
PUBLISHED_BASELINES: Final = {"random": 28_000.0, "Lasso": 400.0}

_ROUNDS: Final = 20_000
_CURVE_POINTS: Final = 11 * 8 + 1


def build(quick: bool) -> Experiment:
    """Return the experiment."""
    return Experiment(
        name=NAME,
        cells=curves(with_paper=True),
        repeats=repeats(quick, 60),
        axis="round",
        explained="Regret as rounds go by: the reward lost against always playing the best arm.",
        headline=_headline,
        panels=(draw_over_time,),
        published=_published,
        first_seed=HELD_OUT,
    )


def curves(*, with_paper: bool = False, **world_options: Any) -> tuple[Cell, ...]:
    """Return FLIPHAT (and the paper's own) at every epsilon and two policies without privacy, all along."""
    # Evenly on a logarithmic axis, backwards from the end and half of it.
    marks = tuple(sorted({round(_ROUNDS * 2 ** (-i / 8)) for i in range(_CURVE_POINTS)}))
    world = linear(**world_options)
    policies = [
        *((labels("FLIPHAT", epsilon=epsilon), private(epsilon)) for epsilon in EPSILONS),
        (labels("random"), playing_at_random()),
        (labels("Lasso"), Recipe.of(factories.lasso)),
    ]
    if with_paper:
        policies += [(labels(PAPER, epsilon=epsilon), as_printed(epsilon)) for epsilon in EPSILONS]
    return tuple(Cell(named, policy, world, _ROUNDS, marks) for named, policy in policies)


def _published(labels: Mapping[str, str | float]) -> float | None:
    if labels.get("policy") in PUBLISHED_BASELINES:
        return PUBLISHED_BASELINES[str(labels["policy"])]
    return PUBLISHED.get(float(labels.get("epsilon", 0.0)))


def _headline(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    ends = {(s.label("policy"), s.label("epsilon")): s.mean for s in at_the_end(summaries)}
    shares = [100 * ends[PRIVATE, epsilon] / mean for (name, epsilon), mean in ends.items() if name == PAPER]
    return f"Proven privacy at {span(shares, '.0f')} % of the regret of the paper's algorithm and constants"
