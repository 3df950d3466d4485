"""What every policy offers: arms for contexts, and a place to send rewards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = ["Decision", "Decisions", "Policy"]


class Decision(NamedTuple):
    """The arm played in one round.

    Attributes
    ----------
    id : int
        Opaque; what `update` needs to know.
    arm : int
        From 0 to K - 1.
    valid : bool
        False if the contexts could not be used (NaN, infinity): the arm is then uniformly random, and the
        round is not learned from.
    episode : int
        The episode the round belongs to.
    """

    id: int
    arm: int
    valid: bool
    episode: int


@dataclass(frozen=True, eq=False)
class Decisions:
    """The arms of a batch of rounds; iterating gives a :class:`Decision` for each.

    Attributes
    ----------
    ids, arms : ndarray of int64, shape (n,)
    valid : ndarray of bool, shape (n,)
    episode : int
    """

    ids: npt.NDArray[np.int64]
    arms: npt.NDArray[np.int64]
    valid: npt.NDArray[np.bool_]
    episode: int

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Decision]:
        for one, arm, valid in zip(self.ids, self.arms, self.valid, strict=True):
            yield Decision(int(one), int(arm), bool(valid), self.episode)


@runtime_checkable
class Policy(Protocol):
    """The calls a simulation or a service makes; `fliphat.FLIPHAT` is the private one."""

    @property
    def remaining(self) -> int:
        """Rounds that the next batch may have at most."""

    def select(self, contexts: Any, user: Any = None, key: Any = None) -> Decision:
        """Play one round."""

    def select_batch(
        self, contexts: Any, users: Sequence[Any] | None = None, *, arms: int | None = None
    ) -> Decisions:
        """Play several rounds at once."""

    def update(self, decision: Decision | int, reward: float) -> bool:
        """Hand in the reward of a round; False if it came too late to be used."""

    def update_batch(self, decisions: Any, rewards: npt.ArrayLike) -> int:
        """Hand in several rewards at once; the number that came in time."""
