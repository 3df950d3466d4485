"""Where a policy is kept, and how: the options that only a store has."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final, Literal

from fliphat import arguments
from fliphat.policies.engine.age import AgeLimit, Ages
from fliphat.policies.engine.rows.limits import DEFAULT_MEMORY_LIMIT, MemoryLimit, checked_memory_limit
from fliphat.policies.store.postgres import is_url

__all__ = ["DURABILITIES", "Store", "StoreLike", "as_store"]

DURABILITIES: Final = ("full", "batch", "group")


@dataclass(frozen=True)
class Store:
    """Where a policy is kept, and how.

    A policy takes ``store=Store(...)``; a plain path or URL stands for one with all defaults.

    Parameters
    ----------
    where : path or URL, optional
        A directory that keeps the policy through crashes, or a database, ``"postgresql://..."``, that any
        number of workers play it in; see ``docs/durability.md``. It holds private rows. Left out, the policy
        is kept in memory alone.
    witness : path or URL, optional
        A file or a database outside the store and its backups, which keeps a restored copy of the store from
        releasing what was released already. Once given, it is needed at every opening.
    durability : {"full", "batch", "group"}
        "full" syncs every call to disk; "batch" groups syncs, and a failing machine (not a failing process)
        may lose the last tenth of a second. `flush` syncs at once. "group" is for servers that acknowledge
        nothing before they called `flush`: calls since then are lost with the process too.
    memory_limit : int or str, optional
        Bytes (or "3GB", "512MiB") that the open episode's rows may take in memory; 4 GB by default, None for
        no limit. Larger episodes keep their rows in a temporary file without a name, in the directory that
        the environment variable TMPDIR names: **private rows on disk**. The result has the same bits. See
        ``docs/scale.md``.
    retention : int or datetime.timedelta, optional
        How long a row of the open episode may be kept, in rounds or by the clock. Older ones become rows of
        zeros, up to an eighth of the time earlier: episodes keep their lengths and learn from fewer rows.
        Kept with the store: another opening may give a shorter one, and no longer one.
    reward_timeout : int or datetime.timedelta, optional
        How long after its round, in rounds or by the clock, a reward may come; later ones are dropped as if
        their episode were over. Kept with the store. Neither limit may be chosen by what rounds brought. See
        ``docs/erasure.md``.
    users : {"required"}, optional
        Whether every round must have a user id, decided when the store is made. Left out, the first round
        decides.

    Examples
    --------
    >>> from fliphat import FLIPHAT, Store
    >>> policy = FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=1e-2, store=Store(retention=500))
    """

    where: str | os.PathLike[str] | None = None
    witness: str | os.PathLike[str] | None = None
    durability: Literal["full", "batch", "group"] = "full"
    memory_limit: MemoryLimit = DEFAULT_MEMORY_LIMIT
    retention: AgeLimit | None = None
    reward_timeout: AgeLimit | None = None
    users: Literal["required"] | None = None

    def __post_init__(self) -> None:
        arguments.choice("durability", self.durability, DURABILITIES)
        if self.users is not None:
            arguments.choice("users", self.users, ("required",))
        _ = self.bytes_in_memory, self.ages
        if self.witness is not None and self.where is None:
            raise ValueError("witness is for a store that is a directory or a database: give where, too")

    @property
    def is_database(self) -> bool:
        """Whether it is the address of a database."""
        return is_url(self.where)

    @property
    def bytes_in_memory(self) -> int | None:
        """The limit of memory in bytes."""
        return checked_memory_limit(self.memory_limit)

    @property
    def ages(self) -> Ages:
        """Both limits of age."""
        return Ages(self.retention, self.reward_timeout)

    def to_record(self) -> dict[str, Any]:
        """Return what is kept with the store, for JSON."""
        return {**self.ages.to_record(), "users": self.users}


#: What a policy takes as its store.
StoreLike = Store | str | os.PathLike[str] | None


def as_store(given: StoreLike) -> Store:
    """Return the options that an argument stands for.

    Examples
    --------
    >>> as_store("policies/shop").where, as_store(None).where
    ('policies/shop', None)
    """
    return given if isinstance(given, Store) else Store(given)
