"""What each step from the published constants to a proof does to the regret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fliphat.lab.display.figure_style import label_lines, thousands
from fliphat.lab.experiments import factories
from fliphat.lab.experiments.catalog._parts import (
    EPSILONS,
    HELD_OUT,
    NO_PRIVACY,
    as_printed,
    at_end,
    labels,
    linear,
    no_privacy,
    playing_at_random,
    private,
    repeats,
)
from fliphat.lab.experiments.catalog.regret import PUBLISHED
from fliphat.lab.experiments.cells import Recipe
from fliphat.lab.experiments.experiment import Experiment, at_the_end, span
from fliphat.lab.experiments.figures import BASELINES, draw_means, draw_published, sorted_by
from fliphat.lab.experiments.sweep import Summary

_ROUNDS: Final = 20_000
# Policies, their colours and what the figure calls them.
_VARIANTS: Final = {
    "paper constants": ("#CC79A7", "the paper's constants (not proven)"),
    "honest Laplace": ("#E69F00", "its Laplace peeling, proven"),
    "exponential mechanism": ("#56B4E9", "exponential mechanism, proven"),
    "planned episodes": ("#0072B2", "planned episodes, proven (default)"),
}


def _build(quick: bool) -> Experiment:
    world, same_truth = linear(), Recipe.of(factories.published_truth, dim=400, arms=3)
    cold: dict[str, Any] = {"episodes": "doubling", "warm_start": False}
    cells = []
    for epsilon in EPSILONS[::2] if quick else EPSILONS:
        policies = (
            as_printed(epsilon),
            private(epsilon, mechanism="laplace", **cold),
            private(epsilon, **cold),
            private(epsilon),
        )
        for name, policy in zip(_VARIANTS, policies, strict=True):
            cells.append(at_end(labels(name, epsilon=epsilon), policy, world, _ROUNDS))
        label = labels("paper constants, published coefficients", epsilon=epsilon)
        cells.append(at_end(label, as_printed(epsilon), same_truth, _ROUNDS))
    cells.append(at_end(labels(NO_PRIVACY), no_privacy(), world, _ROUNDS))
    cells.append(at_end(labels("random"), playing_at_random(), world, _ROUNDS))
    return Experiment(
        name="cost-of-proof",
        cells=tuple(cells),
        repeats=repeats(quick, 50),
        axis="epsilon",
        explained="What each step from the published constants to a proof does to the regret.",
        headline=_headline,
        panels=(_draw,),
        published=_published,
        first_seed=HELD_OUT,
    )


def _published(labels: Mapping[str, str | float]) -> float | None:
    """Return the published regret; our rerun of the paper stands beside it, and nothing else."""
    rerun = str(labels.get("policy", "")).startswith("paper constants")
    return PUBLISHED.get(float(labels.get("epsilon", 0.0))) if rerun else None


def _headline(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    ends = {(s.label("policy"), s.label("epsilon")): s.mean for s in at_the_end(summaries)}
    shares = [
        100 * mean / ends["paper constants", epsilon]
        for (policy, epsilon), mean in ends.items()
        if policy == "planned episodes"
    ]
    return f"With proof, {span(shares, '.0f')} % of the regret of the paper's algorithm and constants"


def _draw(axes: Any, experiment: Experiment, summaries: Sequence[Summary]) -> None:
    ends = at_the_end(summaries)
    names, published = [], []
    for policy, (colour, name) in _VARIANTS.items():
        curve = sorted_by("epsilon", (s for s in ends if s.label("policy") == policy))
        x = [s.label("epsilon") for s in curve]
        as_published = policy == "paper constants"
        style = "--" if as_published else "-"
        last = draw_means(axes, x, curve, colour, marker="o", linestyle=style, markersize=5)
        names.append((last, name, colour))
        for summary in curve if as_published else ():
            height = experiment.published_beside(summary)
            if height is not None:
                published.append((summary.label("epsilon"), height, colour))
    for policy, name in (("random", BASELINES["random"][0]), (NO_PRIVACY, "no noise, no privacy")):
        colour = BASELINES[policy][1]
        level = next(s.mean for s in ends if s.label("policy") == policy)
        axes.axhline(level, color=colour, linestyle=":", linewidth=1.2)
        names.append((level, name, colour))
    draw_published(axes, published)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sorted({s.label("epsilon") for s in ends if s.label("epsilon")}))
    axes.xaxis.minorticks_off()
    thousands(axes.xaxis)
    thousands(axes.yaxis)
    axes.set_xlabel(r"privacy budget $\varepsilon$")
    axes.set_ylabel("cumulative regret")
    label_lines(axes, names)


EXPERIMENTS: Final = {"cost-of-proof": (70, _build)}
