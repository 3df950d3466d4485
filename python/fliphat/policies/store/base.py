"""What an engine asks of a store, whatever it is made of.

A store has one live owner. Each call returns when what it was told is durable (or, with grouped syncs, will
be from some moment on), or raises; after it raised, the store must be opened again, because only the store
knows how much of the call arrived. A release is three calls in this order: `claim`, `commit`, `finish`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fliphat.fit import kept_tuning
from fliphat.fit.dense import DenseTuning
from fliphat.fit.settings import EngineSettings, complete
from fliphat.fit.tuning import Tuning
from fliphat.policies.types import StoreError

if TYPE_CHECKING:
    from fliphat.policies.engine.episode import Episode, Released
    from fliphat.policies.engine.rows import RowStore

__all__ = ["KeptChoices", "PlayedRounds", "Store", "kept_from", "refuse_other_settings"]


class PlayedRounds(NamedTuple):
    """The rounds of one call, whose rows are staged and which do not count yet.

    Attributes
    ----------
    first_id : int
        Ids are consecutive.
    arms : sequence of int, shape (n,)
        ``-1 - arm`` for an invalid round.
    learned : sequence of bool or uint8, shape (n,), or None
        0 for rounds of users beyond their limit; None if there are none.
    users : list of bytes, or None
        Digests of user ids.
    user_kind : str or None
        The kind of all user ids.
    offered : int, or ndarray of int64, shape (n,)
        Arms of each round.
    tied : sequence of int, shape (n,)
        How many arms share the first place with the one shown, 0 if it is not a best one.
    key : bytes
        The digest of a single round's key, empty without one.
    keys : list of bytes, or None
        Those of several rounds, empty for a round without one.
    """

    first_id: int
    arms: Sequence[int] | npt.NDArray[np.int64]
    learned: Sequence[bool] | npt.NDArray[np.uint8] | None
    users: list[bytes] | None
    user_kind: str | None
    offered: int | npt.NDArray[np.int64]
    tied: Sequence[int] | npt.NDArray[np.uint32]
    key: bytes = b""
    keys: list[bytes] | None = None


class Store(Protocol):
    """The durable half of one live policy."""

    def rows(self, layout: str) -> RowStore:
        """Begin the open episode's rows."""

    def append_rounds(self, played: PlayedRounds) -> None:
        """Keep played rounds, with the rows that were staged for them."""

    def append_rewards(self, rows: Any, codes: Any, late: int = 0) -> None:
        """Keep rewards, by row of the open episode, and how many came too late.

        A code of +inf is a round that was cancelled, unless its row is one of zeros already.
        """

    def append_time(self, row: int, seconds: float) -> None:
        """Keep when a row of the open episode was about to be played, in seconds since 1970."""

    def keep(self, name: str, value: Any) -> None:
        """Keep one of the engine's own numbers now, as JSON, in place of what was kept under its name."""

    def claim(self, episode: Episode) -> None:
        """Fix which rewards count; done again after a fit that failed, it changes nothing."""

    def commit(self, released: Released, scalars: dict[str, Any]) -> None:
        """Keep what an episode released, with its users' counts, its keys and the engine's numbers."""

    def finish(self, episode: int, next_length: int) -> None:
        """Drop a committed episode's rows and turn to the next; done again, it changes nothing."""

    def forget(self, episode: Episode, only: npt.NDArray[np.int64] | None = None) -> RowStore | None:
        """Replace the open episode's rows, or some of them, by ones without contents; None if it has none."""

    def hand_over(self, path: Path, checksum: str) -> None:
        """Keep that the policy goes on in a file: from now on it can't be opened here."""

    def was_handed_over(self) -> bool:
        """Whether that was kept, after a `hand_over` that was cut off; if in doubt it was."""

    def discard_rows(self) -> None:
        """Drop the open episode's rows."""

    def flush(self) -> None:
        """Return when every call so far is durable."""

    def refuse_until_reopened(self) -> None:
        """Raise, now and in every later call."""

    def close(self) -> None:
        """Give the store up; another policy may open it."""


class KeptChoices(NamedTuple):
    """What a store goes on with, whatever a new policy would get: its fit, its accounting, its constants."""

    fit: str
    accounting: str
    constants: Any


def kept_from(record: dict[str, Any]) -> KeptChoices | None:
    """Return what a record of settings says; None if it is damaged, which whoever opens the store tells."""
    settings = complete(record)
    fit, accounting = settings.get("fit"), settings.get("accounting")
    if not isinstance(fit, str) or not isinstance(accounting, str):
        return None
    try:
        constants = kept_tuning.read(settings["constants"], DenseTuning if fit == "dense" else Tuning)
    except (ValueError, TypeError):
        return None
    return KeptChoices(fit, accounting, constants)


def refuse_other_settings(recorded: dict[str, Any], settings: EngineSettings) -> None:
    """Raise if a store was made with other arguments, and name them."""
    before, now = complete(recorded), settings.to_dict()
    kept = kept_from(recorded)
    if kept is not None and kept.constants is not None:
        # Constants that there were not yet are those that change nothing, as whoever reads them fills in.
        before["constants"] = kept_tuning.written(kept.constants)
    changed = sorted(name for name in now if before.get(name) != now[name])
    if "fit" in changed:
        changed = [name for name in changed if name != "constants"]  # which follow from it
    if changed:
        told = ", ".join(f"{name} was {before.get(name)!r}, got {now[name]!r}" for name in changed)
        raise StoreError(f"the store was made with other arguments: {told}")
