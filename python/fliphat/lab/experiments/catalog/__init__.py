"""The experiments by name: the paper's, and some that nobody has published.

A file of this folder whose name has no underscore in front has ``EXPERIMENTS``: by name, a place in lists and
a function of ``quick`` that returns an :class:`Experiment`, which is cells, published values, headline and
figure. A new file is found by itself; nothing else has to be edited.

All have d = 400, s* = 5, K = 3, s = 10, delta = 0.01, and contexts and coefficients as
:class:`fliphat.environments.SparseLinear` draws them by default, unless they say otherwise. Every repeat
draws coefficients of its own.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import Final

from fliphat import arguments
from fliphat.lab.experiments import factories
from fliphat.lab.experiments.catalog._parts import EPSILONS, NO_PRIVACY, labels, playing_at_random, private
from fliphat.lab.experiments.cells import Cell, Recipe
from fliphat.lab.experiments.experiment import Experiment, at_the_end, nothing_published
from fliphat.lab.experiments.sweep import Summary

__all__ = ["DEMO_DELTA", "NAMES", "NO_PRIVACY", "Experiment", "experiment", "first_look"]


def _found() -> dict[str, Callable[[bool], Experiment]]:
    """Return what makes the folder's experiments, by name, in their order."""
    files = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    found = [
        (order, name, build)
        for file in files
        for name, (order, build) in importlib.import_module(f"{__name__}.{file}").EXPERIMENTS.items()
    ]
    by_name = {name: build for _, name, build in sorted(found, key=lambda one: one[:2])}
    if len(by_name) < len(found):
        raise ValueError("every experiment must have a name of its own")
    return by_name


_FOUND: Final = _found()

#: Names of all experiments, the paper's first.
NAMES: Final = tuple(_FOUND)


def experiment(name: str, *, quick: bool = False) -> Experiment:
    """Return an experiment by name.

    `name`: one of `NAMES`.
    `quick`: A few repeats and fewer points, for a first look in seconds.
    """
    return _FOUND[arguments.choice("experiment", name, NAMES)](quick)


#: The demo's delta: well below one over its 20 000 people.
DEMO_DELTA: Final = 1e-6


def first_look(repeats: int) -> Experiment:
    """Return what ``fliphat demo`` runs: regret against time, beside the best policy without privacy."""
    published = experiment("regret-vs-time", quick=True)
    like = published.cells[0]
    policies = [
        (labels("random"), playing_at_random()),
        *((labels("FLIPHAT", epsilon=epsilon), private(epsilon, delta=DEMO_DELTA)) for epsilon in EPSILONS),
        (labels(NO_PRIVACY), Recipe.of(factories.lasso)),
    ]
    cells = tuple(Cell(named, made, like.world, like.rounds, like.checkpoints) for named, made in policies)
    return dataclasses.replace(
        published,
        cells=cells,
        repeats=repeats,
        published=nothing_published,
        delta=f"{DEMO_DELTA:g}",
        headline=_what_privacy_costs,
    )


def _what_privacy_costs(one: Experiment, summaries: Sequence[Summary]) -> str:
    ends = {(s.label("policy"), s.label("epsilon")): s.mean for s in at_the_end(summaries)}
    random = ends["random", None]
    shares = [mean / random for (policy, _), mean in ends.items() if policy == "FLIPHAT"]
    return f"With privacy, {min(shares):.1%} to {max(shares):.1%} of what random play loses"
