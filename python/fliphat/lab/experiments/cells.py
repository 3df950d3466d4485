"""Cells of a grid (one policy on one environment, made from recipes) and their runs (one seed each)."""

from __future__ import annotations

import hashlib
import json
import time
import tracemalloc
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from fliphat import __version__, arguments
from fliphat.policies.health import HealthWarning
from fliphat.simulation import play

_Made = TypeVar("_Made", bound=Callable[..., Any])
_stable_names: dict[Callable[..., Any], str] = {}


def stable_name(name: str) -> Callable[[_Made], _Made]:
    """Give a function or class the name that results know it by, wherever it is moved.

    Without one, results know it by its module and name: once it is moved,
    ``--resume`` does not find its finished runs.

    Examples
    --------
    >>> @stable_name("coin")
    ... def coin(*, seed): ...
    >>> print(Recipe.of(coin, sides=2))
    coin(sides=2)
    """

    def give(make: _Made) -> _Made:
        if name in _stable_names.values() and _stable_names.get(make) != name:
            raise ValueError(f"name must be given once, got {name!r} for a second function")
        _stable_names[make] = name
        return make

    return give


@dataclass(frozen=True)
class Recipe:
    """A call that is still missing its last arguments.

    Unlike `functools.partial` it has a text that is the same in every process and every session: an
    interrupted sweep knows by it which runs it has.

    Attributes
    ----------
    make : callable
        A function or class that can be imported.
    options : tuple of (name, value)
        Numbers, strings, tuples or dataclasses of them.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> recipe = Recipe.of(SparseLinear, dim=50, arms=2)
    >>> print(recipe)
    SparseLinear(arms=2, dim=50)
    >>> recipe(seed=3).seed
    3
    """

    make: Callable[..., Any]
    options: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, make: Callable[..., Any], **options: Any) -> Recipe:
        """Return the recipe of ``make(**options, ...)``."""
        if "<" in getattr(make, "__qualname__", "<"):
            raise ValueError(
                f"make must be a function or class that other processes can import, got {make!r}"
            )
        return cls(make, tuple(sorted(options.items())))

    def __call__(self, **last: Any) -> Any:
        """Make one, with the arguments that were missing."""
        return self.make(**dict(self.options), **last)

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options)
        name = _stable_names.get(self.make, f"{self.make.__module__}.{self.make.__qualname__}")
        return f"{name}({options})"


#: How :meth:`Cell.key` is made. 1 had the modules of functions in it; 2 has their stable names. A change to
#: what keys are made of needs a new number, so that old results are refused and not silently run again.
KEY_FORMAT: Final = 2

#: Of a measured cell's runs, one in so many has its memory traced.
_TRACED_EVERY: Final = 5

#: What a cell is called, such as (("policy", "FLIPHAT"), ("epsilon", 1.0)).
Labels: TypeAlias = tuple[tuple[str, str | float], ...]


@dataclass(frozen=True)
class Cell:
    """One policy on one environment.

    Attributes
    ----------
    labels : tuple of (name, value)
        Columns of tables and coordinates of figures; no two cells of a sweep may share them.
    policy : Recipe
        Called with ``environment`` and ``seed``.
    world : Recipe
        Called with ``seed``.
    rounds : int
    checkpoints : tuple of int
        Rounds after which the cumulative regret is recorded, ascending; the last is `rounds`.
    most_repeats : int, optional
        Repeats of a slow cell, where a sweep has more for others.
    measured : bool
        Whether runs are timed and their memory is traced.
    """

    labels: Labels
    policy: Recipe
    world: Recipe
    rounds: int
    checkpoints: tuple[int, ...]
    most_repeats: int | None = None
    measured: bool = False

    def __post_init__(self) -> None:
        arguments.integer("rounds", self.rounds, 1, 2**40)
        ascending = all(a < b for a, b in zip(self.checkpoints, self.checkpoints[1:], strict=False))
        if not (self.checkpoints and ascending and self.checkpoints[0] >= 1):
            raise ValueError(f"checkpoints must be ascending rounds from 1, got {self.checkpoints}")
        if self.checkpoints[-1] != self.rounds:
            raise ValueError(f"checkpoints must end with rounds = {self.rounds}, got {self.checkpoints[-1]}")

    def key(self, seed: int) -> str:
        """Return what identifies a run: everything its result depends on."""
        parts = [
            KEY_FORMAT,
            __version__,
            str(self.policy),
            str(self.world),
            self.rounds,
            self.checkpoints,
            seed,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Run:
    """What one cell and one seed gave.

    Attributes
    ----------
    key : str
        See :meth:`Cell.key`.
    labels : tuple of (name, value)
    seed : int
    regret : tuple of float
        Cumulative regret at the cell's checkpoints.
    seconds, megabytes : float, optional
        CPU time, and the most memory that Python and NumPy held; see :func:`run_cell`.
    """

    key: str
    labels: Labels
    seed: int
    regret: tuple[float, ...]
    seconds: float | None = field(default=None, compare=False)
    megabytes: float | None = field(default=None, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return a record for JSON."""
        costs = {"seconds": self.seconds, "megabytes": self.megabytes}
        return {
            "format": KEY_FORMAT,
            "fliphat": __version__,
            "key": self.key,
            "seed": self.seed,
            **dict(self.labels),
            "regret": list(self.regret),
            **{name: cost for name, cost in costs.items() if cost is not None},
        }


def run_cell(cell: Cell, seed: int) -> Run:
    """Play one cell with one seed: a pure function, the same on any machine of the same kind.

    Environments of one seed draw the same contexts and the same reward noise, whatever the policy.

    A measured cell is timed, except for every fifth seed, whose memory is traced instead: tracing takes time.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.experiments import Recipe, grid, makers
    >>> cell, = grid({"random": Recipe.of(makers.random)}, {"small": Recipe.of(SparseLinear, dim=20)}, 100)
    >>> run = run_cell(cell, seed=1)
    >>> dict(run.labels)["policy"], len(run.regret)
    ('random', 1)
    """
    traced = cell.measured and seed % _TRACED_EVERY == 0
    if traced:
        tracemalloc.start()
    started = time.process_time()
    try:
        regret = _regret(cell, seed)
        seconds = time.process_time() - started if cell.measured and not traced else None
        megabytes = tracemalloc.get_traced_memory()[1] / 1e6 if traced else None
    finally:
        if traced:
            tracemalloc.stop()
    return Run(cell.key(seed), cell.labels, seed, regret, seconds, megabytes)


def _regret(cell: Cell, seed: int) -> tuple[float, ...]:
    environment = cell.world(seed=seed)
    policy = cell.policy(environment=environment, seed=seed)
    with warnings.catch_warnings():
        # How a policy fares is what an experiment measures: its warnings would only break the progress bar.
        warnings.simplefilter("ignore", HealthWarning)
        cumulative = np.cumsum(play(policy, environment, cell.rounds, to_the_end=True).regret)
    at = np.array(cell.checkpoints) - 1
    return tuple(float(value) for value in cumulative[at])


def grid(
    policies: Mapping[str, Recipe],
    worlds: Mapping[str, Recipe],
    rounds: int,
    checkpoints: Sequence[int] | None = None,
) -> list[Cell]:
    """Return every policy on every environment.

    Parameters
    ----------
    policies, worlds : mapping of name to Recipe
        See :class:`Cell` for what they are called with.
    rounds : int
    checkpoints : sequence of int, optional
        By default the end alone.

    Returns
    -------
    list of Cell
        Labelled ``policy`` and ``world``.
    """
    marks = (rounds,) if checkpoints is None else tuple(checkpoints)
    return [
        Cell((("policy", policy), ("world", world)), policies[policy], worlds[world], rounds, marks)
        for world in worlds
        for policy in policies
    ]
