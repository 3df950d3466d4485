"""What the experiments share: their setting, and short ways to write cells."""

from __future__ import annotations

from typing import Any, Final

from fliphat.environments import SparseLinear
from fliphat.lab.experiments import factories
from fliphat.lab.experiments.cells import Cell, Labels, Recipe

DELTA: Final = 0.01
EPSILONS: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
#: First seed of what the README quotes. No constant was chosen on this seed or a later one.
HELD_OUT: Final = 81_000
_REWARD_SCALE: Final = 1.5
_QUICK_REPEATS: Final = 4

#: The policy that privacy's price is measured against: the same machinery without noise.
NO_PRIVACY: Final = "no privacy"


def repeats(quick: bool, full: int) -> int:
    """Return how often an experiment is repeated."""
    return _QUICK_REPEATS if quick else full


def private(epsilon: float, *, sparsity: int = 10, delta: float = DELTA, **options: Any) -> Recipe:
    """Return the recipe of FLIPHAT with proven noise."""
    return Recipe.of(
        factories.private,
        sparsity=sparsity,
        epsilon=epsilon,
        delta=delta,
        reward_scale=_REWARD_SCALE,
        **options,
    )


def as_printed(epsilon: float) -> Recipe:
    """Return the recipe of the paper's algorithm with its constants, :class:`fliphat.paper.Fliphat`."""
    return Recipe.of(factories.paper, s=10, epsilon=epsilon, delta=DELTA)


def no_privacy() -> Recipe:
    """Return the recipe of the same machinery without noise."""
    return Recipe.of(factories.greedy_iht, sparsity=10, learn_from="all", reward_scale=_REWARD_SCALE)


def playing_at_random() -> Recipe:
    """Return the recipe of playing at random."""
    return Recipe.of(factories.random)


def linear(**options: Any) -> Recipe:
    """Return the recipe of the published environment, with some options changed."""
    return Recipe.of(SparseLinear, **{"dim": 400, "arms": 3, "sparsity": 5, **options})


def labels(policy: str, **more: str | float) -> Labels:
    """Return a cell's labels."""
    return (("policy", policy), *more.items())


def at_end(labels: Labels, policy: Recipe, world: Recipe, rounds: int) -> Cell:
    """Return a cell whose regret is recorded after its last round only."""
    return Cell(labels, policy, world, rounds, (rounds,))
