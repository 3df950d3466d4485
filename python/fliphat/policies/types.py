"""What every policy offers and gives back: decisions, public facts of episodes, and errors.

Messages of errors hold no value of a context, a reward or a user id.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from fliphat.fit.board import Board
from fliphat.fit.known import SparseEstimate

__all__ = [
    "CopyError",
    "Decision",
    "Decisions",
    "EpisodeFacts",
    "Policy",
    "SnapshotError",
    "SparseEstimate",
    "SpillError",
    "StoreError",
]


class Decision(NamedTuple):
    """The arm played in one round.

    Attributes
    ----------
    id : int
        Opaque; what `update` needs to know.
    arm : int
        From 0 to K - 1, or the arm's id where `select` was given ids.
    valid : bool
        False if the contexts could not be used (NaN, infinity): the arm is then uniformly random, and the
        round is not learned from.
    episode : int
        The episode the round belongs to.
    probability : float
        The chance that this arm had, given the round's contexts and the public estimate: what off-policy
        evaluation divides by. It is a function of private contexts and belongs to whoever may see the
        decision. NaN where it is not known: baselines, and retries of rounds that an earlier version played.
    """

    id: int
    arm: int
    valid: bool
    episode: int
    probability: float = math.nan


@dataclass(frozen=True, eq=False)
class Decisions:
    """The arms of a batch of rounds; iterating gives a :class:`Decision` for each.

    Attributes
    ----------
    ids, arms : ndarray of int64, shape (n,)
        `arms` are ids where `select_batch` was given some, as objects unless all are integers.
    valid : ndarray of bool, shape (n,)
    episode : int
    probabilities : ndarray of float64, shape (n,)
        See :class:`Decision`.
    """

    ids: npt.NDArray[np.int64]
    arms: npt.NDArray[np.int64]
    valid: npt.NDArray[np.bool_]
    episode: int
    probabilities: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Decision]:
        columns = (self.ids, self.arms.tolist(), self.valid, self.probabilities)
        for one, arm, valid, probability in zip(*columns, strict=True):
            yield Decision(int(one), arm, bool(valid), self.episode, float(probability))


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


@dataclass(frozen=True, kw_only=True)
class EpisodeFacts:
    """What is public about one episode whose estimate was released.

    Attributes
    ----------
    episode : int
    first_round : int
        t of the episode's first round; the very first round is 1.
    rounds : int
        n: rounds played, with or without a reward.
    sparsity : int
        Coordinates that the fit picked.
    iterations : int
        M of the fit; 0 means that nothing was computed from the rows.
    step_size : float
        eta of the fit.
    warm : bool
        Whether the fit started from the estimate before.
    noise_scale : float
        Noise of a released value, in units of a coefficient.
    smallest_coefficient : float
        About the smallest coefficient the fit could tell from noise, given the stated scale of contexts.
    estimate : SparseEstimate
        What the fit released: the estimate the next episode played with.
    board : Board, optional
        What the episode earned, if that was released.
    """

    episode: int
    first_round: int
    rounds: int
    sparsity: int
    iterations: int
    step_size: float
    warm: bool
    noise_scale: float
    smallest_coefficient: float
    estimate: SparseEstimate = field(repr=False, compare=False)
    board: Board | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the estimate, for JSON; an infinite number becomes None."""
        record = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "estimate"}
        record["board"] = None if self.board is None else self.board.to_record()
        return {
            name: None if isinstance(value, float) and math.isinf(value) else value
            for name, value in record.items()
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any], estimate: SparseEstimate) -> EpisodeFacts:
        """Return the facts that :meth:`to_dict` wrote."""
        filled: dict[str, Any] = {
            name: math.inf if value is None else value for name, value in record.items() if name != "board"
        }
        if record.get("board") is not None:
            filled["board"] = Board.from_record(record["board"])
        return cls(**filled, estimate=estimate)


class CopyError(RuntimeError):
    """Not the one live policy: a copy, a forked child's, or one that was handed over or closed."""


class StoreError(RuntimeError):
    """A store can't be opened, or failed and must be opened again."""


class SnapshotError(ValueError):
    """A saved file can't be loaded; nothing was consumed."""


class SpillError(OSError):
    """Rows beyond `memory_limit` could not be written to their temporary file, or read from it."""
