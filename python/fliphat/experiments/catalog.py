"""The experiments by name: the paper's five, and two that nobody has published.

All have delta = 0.01 and, unless they say otherwise, d = 400, s* = 5, K = 3, s = 10, and contexts and
coefficients as :class:`fliphat.environments.SparseLinear` draws them by default. Every repeat draws
coefficients of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fliphat import _check
from fliphat.environments import SparseLinear, margin_family
from fliphat.experiments import makers
from fliphat.experiments.cells import Cell, Labels
from fliphat.experiments.recipe import Recipe

__all__ = ["NAMES", "NO_PRIVACY", "Experiment", "experiment", "first_look"]

_DELTA: Final = 0.01
_REWARD_SCALE: Final = 1.5
_QUICK_REPEATS: Final = 4
_CURVE_POINTS: Final = 11 * 8 + 1
_EPSILONS: Final = (0.5, 1.0, 2.0, 5.0, 10.0)

#: The policy that privacy's price is measured against: the same machinery without noise.
NO_PRIVACY: Final = "no privacy"


@dataclass(frozen=True)
class Experiment:
    """Cells to run, how often, and what the figure's horizontal axis is.

    Attributes
    ----------
    name : str
    cells : tuple of Cell
    repeats : int
        By default; the published number where there is one.
    axis : str
        The label that figures have on their horizontal axis, or "round".
    """

    name: str
    cells: tuple[Cell, ...]
    repeats: int
    axis: str


def experiment(name: str, *, quick: bool = False) -> Experiment:
    """Return an experiment by name.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    quick : bool
        A few repeats and fewer points, for a first look in seconds.

    Examples
    --------
    >>> full, quick = experiment("regret-vs-arms"), experiment("regret-vs-arms", quick=True)
    >>> full.repeats > quick.repeats, len(full.cells) > len(quick.cells), full.axis
    (True, True, 'arms')
    """
    _check.choice("experiment", name, NAMES)
    return _BUILDERS[name](quick)


def first_look(repeats: int) -> Experiment:
    """Return what ``fliphat demo`` runs: regret against time, with the price of privacy beside it."""
    published = _regret_vs_time(quick=True)
    private = [cell for cell in published.cells if dict(cell.labels)["policy"] == "FLIPHAT"]
    like = private[0]
    random = Cell(_labels("random"), Recipe.of(makers.random), like.world, like.rounds, like.checkpoints)
    open_ = Cell(_labels(NO_PRIVACY), _no_privacy(), like.world, like.rounds, like.checkpoints)
    return Experiment(published.name, (random, *private, open_), repeats, published.axis)


def _private(epsilon: float, *, sparsity: int = 10, **options: Any) -> Recipe:
    return Recipe.of(
        makers.private,
        sparsity=sparsity,
        epsilon=epsilon,
        delta=_DELTA,
        reward_scale=_REWARD_SCALE,
        **options,
    )


def _no_privacy() -> Recipe:
    return Recipe.of(makers.greedy_iht, sparsity=10, learn_from="all", reward_scale=_REWARD_SCALE)


def _linear(**options: Any) -> Recipe:
    return Recipe.of(SparseLinear, **{"dim": 400, "arms": 3, "sparsity": 5, **options})


def _labels(policy: str, **more: str | float) -> Labels:
    return (("policy", policy), *more.items())


def _end(labels: Labels, policy: Recipe, world: Recipe, rounds: int) -> Cell:
    return Cell(labels, policy, world, rounds, (rounds,))


def _regret_vs_time(quick: bool, *, name: str = "regret-vs-time", **world_options: Any) -> Experiment:
    rounds = 20_000
    # Evenly on a logarithmic axis, backwards from the end and half of it.
    marks = tuple(sorted({round(rounds * 2 ** (-i / 8)) for i in range(_CURVE_POINTS)}))
    world = _linear(**world_options)
    cells = [
        Cell(_labels("FLIPHAT", epsilon=epsilon), _private(epsilon), world, rounds, marks)
        for epsilon in _EPSILONS
    ]
    cells.append(Cell(_labels("random"), Recipe.of(makers.random), world, rounds, marks))
    cells.append(Cell(_labels("Lasso"), Recipe.of(makers.lasso), world, rounds, marks))
    return Experiment(name, tuple(cells), _QUICK_REPEATS if quick else 60, "round")


def _regret_vs_time_uniform(quick: bool) -> Experiment:
    return _regret_vs_time(quick, name="regret-vs-time-uniform", noise="uniform", noise_scale=0.1)


def _regret_vs_dimension(quick: bool) -> Experiment:
    dims = (400, 1200, 4000) if quick else tuple(range(400, 4001, 400))
    cells = [
        _end(_labels("FLIPHAT", epsilon=epsilon, dim=dim), _private(epsilon), _linear(dim=dim), 10_000)
        for dim in dims
        for epsilon in _EPSILONS[:4]
    ]
    return Experiment("regret-vs-dimension", tuple(cells), _QUICK_REPEATS if quick else 50, "dim")


def _regret_vs_sparsity(quick: bool) -> Experiment:
    guesses = (5, 10, 20, 60) if quick else (5, 8, 10, 15, 20, 30, 40, 50, 60)
    cells = [
        _end(
            _labels("FLIPHAT", epsilon=epsilon, sparsity=guess),
            _private(epsilon, sparsity=guess),
            _linear(sparsity=10),
            10_000,
        )
        for guess in guesses
        for epsilon in _EPSILONS[:4]
    ]
    return Experiment("regret-vs-sparsity", tuple(cells), _QUICK_REPEATS if quick else 50, "sparsity")


def _regret_vs_arms(quick: bool) -> Experiment:
    counts = (2, 6, 24) if quick else (2, 3, 4, 6, 8, 12, 16, 20, 24)
    cells = [
        _end(_labels("FLIPHAT", epsilon=epsilon, arms=arms), _private(epsilon), _linear(arms=arms), 10_000)
        for arms in counts
        for epsilon in _EPSILONS[:4]
    ]
    return Experiment("regret-vs-arms", tuple(cells), _QUICK_REPEATS if quick else 50, "arms")


def _privacy_vs_hardness(quick: bool) -> Experiment:
    rounds = 20_000
    epsilons = (0.5, 2.0, 8.0) if quick else (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    cells = []
    margins = (("0", 0.0, rounds), ("1", 1.0, None), ("infinity", math.inf, None))
    for label, alpha, horizon in margins:
        world = Recipe.of(margin_family, alpha=alpha, dim=400, arms=2, sparsity=5, horizon=horizon)
        for epsilon in epsilons:
            labels = _labels("FLIPHAT", epsilon=epsilon, alpha=label)
            cells.append(_end(labels, _private(epsilon), world, rounds))
        cells.append(_end(_labels(NO_PRIVACY, alpha=label), _no_privacy(), world, rounds))
        cells.append(_end(_labels("random", alpha=label), Recipe.of(makers.random), world, rounds))
    return Experiment("privacy-vs-hardness", tuple(cells), _QUICK_REPEATS if quick else 50, "epsilon")


def _cost_of_proof(quick: bool) -> Experiment:
    rounds, world = 20_000, _linear()
    cold: dict[str, Any] = {"episodes": "doubling", "warm_start": False}
    cells = []
    for epsilon in _EPSILONS[::2] if quick else _EPSILONS:
        variants = {
            "paper constants": Recipe.of(makers.paper, sparsity=10, epsilon=epsilon, delta=_DELTA),
            "honest Laplace": _private(epsilon, mechanism="laplace", **cold),
            "exponential mechanism": _private(epsilon, **cold),
            "planned episodes": _private(epsilon),
        }
        for name, policy in variants.items():
            cells.append(_end(_labels(name, epsilon=epsilon), policy, world, rounds))
    cells.append(_end(_labels(NO_PRIVACY), _no_privacy(), world, rounds))
    cells.append(_end(_labels("random"), Recipe.of(makers.random), world, rounds))
    return Experiment("cost-of-proof", tuple(cells), _QUICK_REPEATS if quick else 50, "epsilon")


_BUILDERS: Final[dict[str, Callable[[bool], Experiment]]] = {
    "regret-vs-time": _regret_vs_time,
    "regret-vs-time-uniform": _regret_vs_time_uniform,
    "regret-vs-dimension": _regret_vs_dimension,
    "regret-vs-sparsity": _regret_vs_sparsity,
    "regret-vs-arms": _regret_vs_arms,
    "privacy-vs-hardness": _privacy_vs_hardness,
    "cost-of-proof": _cost_of_proof,
}

#: Names of all experiments, the paper's first.
NAMES: Final = tuple(_BUILDERS)
