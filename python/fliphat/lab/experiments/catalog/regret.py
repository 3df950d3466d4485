"""Regret against rounds, dimension, sparsity and arms, the paper's figures, and against delta."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from fliphat.lab.experiments import factories
from fliphat.lab.experiments.catalog._parts import (
    EPSILONS,
    HELD_OUT,
    as_printed,
    at_end,
    labels,
    linear,
    playing_at_random,
    private,
    repeats,
)
from fliphat.lab.experiments.cells import Cell, Recipe
from fliphat.lab.experiments.experiment import (
    PAPER,
    PRIVATE,
    Experiment,
    at_the_end,
    ends_of_axis,
    growth,
    means,
    span,
)
from fliphat.lab.experiments.figures import draw_against_axis, draw_over_time
from fliphat.lab.experiments.sweep import Summary

#: Read off the first figure, by epsilon. Its noise is smaller than a proof needs: see :mod:`fliphat.paper`.
PUBLISHED: Final = {0.5: 10_900.0, 1.0: 5_600.0, 2.0: 2_900.0, 5.0: 1_250.0, 10.0: 700.0}
_PUBLISHED_BASELINES: Final = {"random": 28_000.0, "Lasso": 400.0}
# Means of 50 repeats, by dimension; columns: epsilon 0.5, 1, 2, 5.
_PUBLISHED_BY_DIM: Final = {
    400: (9944.2, 5490.8, 2850.5, 1252.5),
    800: (11375.7, 6807.0, 3523.4, 1546.4),
    1200: (11763.6, 7602.7, 4009.1, 1645.8),
    1600: (12484.0, 8756.7, 4535.2, 1862.1),
    2000: (12696.9, 9022.6, 4571.9, 1920.1),
    2400: (12846.3, 9347.9, 4770.4, 2024.5),
    2800: (13101.7, 9653.2, 4894.5, 2124.1),
    3200: (13296.3, 10274.3, 5296.6, 2213.5),
    3600: (13411.9, 10351.4, 5265.0, 2151.7),
    4000: (13242.5, 10061.1, 5217.3, 2191.2),
}
# Read off the figure at the true sparsity, by epsilon.
_TRUE_SPARSITY: Final = 10
_PUBLISHED_AT_TRUE_SPARSITY: Final = {0.5: 18_600.0, 1.0: 14_300.0, 2.0: 8_600.0, 5.0: 4_200.0}

_ROUNDS: Final = 20_000
_CURVE_POINTS: Final = 11 * 8 + 1


def _over_time(quick: bool) -> Experiment:
    return Experiment(
        name="regret-vs-time",
        cells=_curves(with_paper=True),
        repeats=repeats(quick, 60),
        axis="round",
        explained="Regret as rounds go by: the reward lost against always playing the best arm.",
        headline=_beside_the_paper,
        panels=(draw_over_time,),
        published=_published_curve,
        first_seed=HELD_OUT,
    )


def _over_time_uniform(quick: bool) -> Experiment:
    return Experiment(
        name="regret-vs-time-uniform",
        cells=_curves(noise="uniform", noise_scale=0.1),
        repeats=repeats(quick, 60),
        axis="round",
        explained="The same with uniform instead of normal noise in the rewards.",
        headline=_second_half,
        panels=(draw_over_time,),
    )


def _curves(*, with_paper: bool = False, **world_options: Any) -> tuple[Cell, ...]:
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


def _published_curve(labels: Mapping[str, str | float]) -> float | None:
    if labels.get("policy") in _PUBLISHED_BASELINES:
        return _PUBLISHED_BASELINES[str(labels["policy"])]
    return PUBLISHED.get(float(labels.get("epsilon", 0.0)))


def _beside_the_paper(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    ends = {(s.label("policy"), s.label("epsilon")): s.mean for s in at_the_end(summaries)}
    shares = [100 * ends[PRIVATE, epsilon] / mean for (name, epsilon), mean in ends.items() if name == PAPER]
    return f"Proven privacy at {span(shares, '.0f')} % of the regret of the paper's algorithm and constants"


def _second_half(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    curves: dict[Any, dict[int, float]] = {}
    for summary in summaries:
        if summary.label("policy") == PRIVATE:
            curves.setdefault(summary.labels, {})[summary.round] = summary.mean
    late = [100 * (1 - curve[max(curve) // 2] / curve[max(curve)]) for curve in curves.values()]
    return f"Sublinear: the second half of the rounds adds {span(late, '.0f')} % of the regret"


def _against(
    axis: str,
    values: Iterable[float],
    recipes: Callable[[float, Any], tuple[Recipe, Recipe]],
    rounds: int = 10_000,
    epsilons: Sequence[float] = EPSILONS[:4],
) -> tuple[Cell, ...]:
    """Return FLIPHAT at every value of an axis and every epsilon; `recipes` makes its policy and world."""
    return tuple(
        at_end(labels("FLIPHAT", epsilon=epsilon, **{axis: value}), *recipes(epsilon, value), rounds)
        for value in values
        for epsilon in epsilons
    )


def _dimension(quick: bool) -> Experiment:
    dims = (400, 1200, 4000) if quick else tuple(range(400, 4001, 400))
    draw = partial(draw_against_axis, axis_name="dimension $d$", crowded=(1600, 2400, 2800, 3200, 3600))
    return Experiment(
        name="regret-vs-dimension",
        cells=_against("dim", dims, lambda epsilon, dim: (private(epsilon), linear(dim=dim))),
        repeats=repeats(quick, 50),
        axis="dim",
        explained="Regret when contexts have more coordinates, of which the same few matter.",
        headline=_straight_in_log,
        # What is published needs an axis on which straight lines in log d are no longer straight.
        panels=(partial(draw, beside_published=False), draw),
        published=_published_by_dim,
    )


def _published_by_dim(labels: Mapping[str, str | float]) -> float | None:
    row = _PUBLISHED_BY_DIM.get(int(labels.get("dim", 0)), ())
    return dict(zip(EPSILONS, row, strict=False)).get(float(labels.get("epsilon", 0.0)))


def _straight_in_log(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    # R squared of a line through regret against log d.
    curves = means(summaries, "dim").values()
    fits = [100 * float(np.corrcoef(np.log(list(c)), list(c.values()))[0, 1] ** 2) for c in curves]
    cost = growth(experiment, summaries, "dimensions")
    return f"{cost}; a line in log d explains {span(fits, '.0f')} % of it"


def _sparsity(quick: bool) -> Experiment:
    guesses = (5, 10, 20, 60) if quick else (5, 8, 10, 15, 20, 30, 40, 50, 60)
    world = linear(sparsity=_TRUE_SPARSITY)
    return Experiment(
        name="regret-vs-sparsity",
        cells=_against(
            "sparsity", guesses, lambda epsilon, guess: (private(epsilon, sparsity=guess, fit="iht"), world)
        ),
        repeats=repeats(quick, 50),
        axis="sparsity",
        explained="Regret when the policy is told a smaller or larger number of coordinates.",
        headline=_best_sparsity,
        panels=(partial(draw_against_axis, axis_name="sparsity $s$ given to the policy", crowded=(50,)),),
        published=_published_at_true_sparsity,
    )


def _published_at_true_sparsity(labels: Mapping[str, str | float]) -> float | None:
    if labels.get("sparsity") != _TRUE_SPARSITY:
        return None
    return _PUBLISHED_AT_TRUE_SPARSITY.get(float(labels.get("epsilon", 0.0)))


def _best_sparsity(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    _, last = ends_of_axis(experiment)
    curves = means(summaries, "sparsity").values()
    ratios = [curve[last] / curve[_TRUE_SPARSITY] for curve in curves]
    best = [min(curve, key=curve.__getitem__) for curve in curves]
    cost = f"s = {last:g} costs {span(ratios, '.1f')} times the regret"
    return f"Best at s = {span(best, 'g')}, where s* = {_TRUE_SPARSITY}; {cost}"


def _arms(quick: bool) -> Experiment:
    counts = (2, 6, 24) if quick else (2, 3, 4, 6, 8, 12, 16, 20, 24)
    return Experiment(
        name="regret-vs-arms",
        cells=_against("arms", counts, lambda epsilon, arms: (private(epsilon), linear(arms=arms))),
        repeats=repeats(quick, 50),
        axis="arms",
        explained="Regret when each person is offered more arms.",
        headline=partial(growth, thing="arms"),
        panels=(partial(draw_against_axis, axis_name="arms $K$"),),
    )


def _delta(quick: bool) -> Experiment:
    deltas = (1e-6, 1e-2) if quick else (1e-8, 1e-6, 1e-4, 1e-2)
    make = partial(_against, "delta", deltas, rounds=_ROUNDS, epsilons=EPSILONS)
    return Experiment(
        name="regret-vs-delta",
        cells=make(lambda epsilon, delta: (private(epsilon, delta=delta), linear())),
        repeats=repeats(quick, 60),
        axis="delta",
        explained="Regret when delta is smaller than the published 0.01, which is one person in a hundred.",
        headline=_cost_of_delta,
        panels=(partial(draw_against_axis, axis_name=r"$\delta$"),),
        delta="as shown",
        first_seed=HELD_OUT,
    )


def _cost_of_delta(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    _, published = ends_of_axis(experiment)
    small = 1e-6
    ratios = [curve[small] / curve[published] for curve in means(summaries, "delta").values()]
    return f"$\\delta$ = {small:g} costs {span(ratios, '.1f')} times the regret of $\\delta$ = {published:g}"


EXPERIMENTS: Final = {
    "regret-vs-time": (10, _over_time),
    "regret-vs-time-uniform": (20, _over_time_uniform),
    "regret-vs-dimension": (30, _dimension),
    "regret-vs-sparsity": (40, _sparsity),
    "regret-vs-arms": (50, _arms),
    "regret-vs-delta": (80, _delta),
}
