"""What a simulation needs of an environment, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = ["Environment", "Played", "PlayedParts", "PlaysItself", "plain_block"]

#: Numbers drawn at once where every arm's row is drawn: 64 MB of float32.
_BLOCK_NUMBERS = 2**24


class Environment(Protocol):
    """The calls of :class:`fliphat.environments.Environment` that policies make."""

    layout: str
    dim: int
    arms: int

    def play(self, rounds: int, estimate: Any = None, *, rows: bool = True, out: Any = None) -> Any:
        """Play the next rounds greedily, drawing only what is looked at."""

    def draw(self, rounds: int) -> Any:
        """Draw the next rounds whole."""


@dataclass(frozen=True, eq=False)
class Played:
    """What happened in simulated rounds, one entry a round.

    Attributes
    ----------
    arms : ndarray of int64, shape (n,)
    rewards, regret : ndarray of float64, shape (n,)
    """

    arms: npt.NDArray[np.int64]
    rewards: npt.NDArray[np.float64]
    regret: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.arms)


@runtime_checkable
class PlaysItself(Protocol):
    """A policy that knows how to play a simulated environment: the baselines without privacy."""

    def play(self, environment: Environment, rounds: int) -> Played:
        """Play the next rounds of the environment."""


class PlayedParts:
    """Outcomes of consecutive rounds, without their rows."""

    def __init__(self) -> None:
        self.rounds = 0
        self._parts: list[tuple[npt.NDArray[Any], ...]] = []

    def add(self, outcome: Any) -> None:
        """Count an outcome's rounds as played."""
        self._parts.append((outcome.arms, outcome.rewards, outcome.regret))
        self.rounds += len(outcome.arms)

    def joined(self) -> Played:
        """Return all rounds as one."""
        if not self._parts:
            return Played(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        return Played(*(np.concatenate(column) for column in zip(*self._parts, strict=True)))


def plain_block(environment: Environment) -> int:
    """Return how many rounds to draw whole at once."""
    width = environment.dim if environment.layout == "dense" else 1024
    return max(1, _BLOCK_NUMBERS // (environment.arms * width))
