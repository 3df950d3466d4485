"""What an engine asks of whatever keeps its policy, and the values that go between them.

A store has one set of tables in two dialects. With SQLite an engine is the only owner: rows in memory are its
working copy, and the database is the log. With PostgreSQL the database orders everything, and each worker has
an engine that holds public things alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fliphat.policies.engine.lifecycle import Life, Phase
from fliphat.policies.types import Decision

__all__ = ["EpisodeRow", "Key", "PackedRound", "PlayedRounds", "Release", "Seen", "Tallies"]


class PlayedRounds(NamedTuple):
    """The rounds of one call, whose rows are staged and which do not count yet.

    Attributes
    ----------
    first_id : int
        Ids are consecutive.
    learned : sequence of bool, shape (n,)
        Whether a row may be learned from: its contexts can be used, and its user is within the limit.
    users : list of bytes, or None
        Digests of user ids.
    user_kind : str or None
        The kind of all user ids.
    played : float or None
        When, in seconds since 1970, if anything depends on it.
    keys : dict from bytes to Decision
        Digests of keys, with their decisions.
    """

    first_id: int
    learned: Sequence[bool]
    users: list[bytes] | None
    user_kind: str | None
    played: float | None
    keys: dict[bytes, Decision]


@dataclass(frozen=True, slots=True)
class Key:
    """What is kept of a round for whoever asks again; `name` is the id of its arm, if arms have ids."""

    digest: bytes
    arm: int
    probability: float
    name: Any = None


@dataclass(frozen=True, slots=True)
class PackedRound:
    """A round as it is sent to a database: its row in bytes, `columns` only if it is sparse."""

    valid: bool
    owner: bytes | None
    columns: bytes | None
    numbers: bytes
    key: Key | None


class EpisodeRow(NamedTuple):
    """An episode as a store has it.

    `releases` and `arms` say by how many public estimates, and by which table of arms, its rounds are chosen.
    """

    episode: int
    first_round: int
    room: int
    filled: int
    releases: int
    arms: int
    expired: int
    phase: Phase
    owner: str
    fence: int
    until: float

    @property
    def life(self) -> Life:
        """Where it is; what was committed is read apart."""
        return Life(*self[7:])


class Release(NamedTuple):
    """What an episode's rows were turned into, as values that a store can hold.

    Attributes
    ----------
    facts, known : dict
        For JSON.
    indices, numbers : ndarray
        The estimate.
    mark : str
        A random name, by which a witness tells this release from a copy's.
    next_room : int
        Rounds of the episode after it.
    totals : bytes or None
        Secret, and shown to nobody; see :class:`fliphat.fit.known.FitWithTotals`.
    """

    facts: dict[str, Any]
    indices: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.float64]
    known: dict[str, Any]
    mark: str
    next_room: int
    totals: bytes | None = None


@dataclass(frozen=True)
class Seen:
    """What one look at a store shows.

    Attributes
    ----------
    unseen : tuple of EpisodeRow
        Episodes that nobody may see yet; the last is the one that rounds are played in.
    releases : list of Release
        Those that became visible.
    policy : dict
        The policy's row.
    to_close : tuple of int
        Episodes that are shown and still have rows.
    """

    unseen: tuple[EpisodeRow, ...]
    releases: list[Release]
    policy: dict[str, Any]
    to_close: tuple[int, ...] = ()


class Tallies(Protocol):
    """Values by digest, such as the rounds of each user."""

    def get(self, name: bytes, default: Any = None, /) -> Any:
        """Return what is kept under a digest."""

    def __setitem__(self, name: bytes, value: Any, /) -> None: ...

    def items(self) -> Any:
        """Return all of them."""
