"""The table of arms: ids that callers know, slots that rows and statistics know. Public.

A slot is never given to another arm: a row says which slot it was played in, and the coefficients of a slot
were learned from its rows. An arm that is removed keeps its slot, and comes back to it if it is added again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final

__all__ = ["MOST_ARMS", "ArmTable"]

#: Slots are kept in a column of float32 rows, where they must be exact.
MOST_ARMS: Final = 2**20

_KINDS: Final = ("str", "int", "bytes")


class ArmTable:
    """Arms in the order they were first added.

    Attributes
    ----------
    ids : list of hashable
        The arm of each slot.
    active : list of int
        Slots that may be played, ascending.
    initial : int
        How many arms there were at the beginning: the length of the first episode follows from it.

    Examples
    --------
    >>> table = ArmTable(["red", "blue"])
    >>> table = table.without("red").with_arm("green")
    >>> table.ids, table.active, table.initial
    (['red', 'blue', 'green'], [1, 2], 2)
    """

    def __init__(
        self, ids: Iterable[Hashable], active: Iterable[int] | None = None, initial: int = 0
    ) -> None:
        self.ids = list(ids)
        self.active = list(range(len(self.ids))) if active is None else list(active)
        self.initial = initial or len(self.ids)
        self._slots: dict[Hashable, int] = {}
        for slot, arm in enumerate(self.ids):
            try:
                before = self._slots.setdefault(arm, slot)
            except TypeError:
                raise TypeError(f"arms must be hashable ids, got {type(arm).__name__}") from None
            if before != slot:
                raise ValueError(f"arms must be different from each other: {arm!r} is there twice")
        if not self.ids:
            raise ValueError("arms must have at least one id, got none")
        if len(self.ids) > MOST_ARMS:
            raise ValueError(f"arms must be at most {MOST_ARMS}, got {len(self.ids)}")

    @property
    def slots(self) -> int:
        """Arms there ever were."""
        return len(self.ids)

    @property
    def playable(self) -> tuple[Hashable, ...]:
        """Arms that may be played, in the order of their slots."""
        return tuple(self.ids[slot] for slot in self.active)

    def with_arm(self, arm: Hashable) -> ArmTable:
        """Return a table with one arm more."""
        slot = self._slot(arm)
        if slot is None:
            return ArmTable([*self.ids, arm], [*self.active, len(self.ids)], self.initial)
        if slot in self.active:
            raise ValueError(f"arm must be a new one: {arm!r} is there already")
        return ArmTable(self.ids, sorted([*self.active, slot]), self.initial)

    def without(self, arm: Hashable) -> ArmTable:
        """Return a table in which an arm is not played any more."""
        slot = self._slot(arm)
        if slot is None or slot not in self.active:
            raise ValueError(f"arm must be one of {self.playable[:10]!r}, got {arm!r}")
        if len(self.active) == 1:
            raise ValueError(f"arm must not be the last one, got {arm!r}: a round has to play something")
        return ArmTable(self.ids, [one for one in self.active if one != slot], self.initial)

    def _slot(self, arm: Hashable) -> int | None:
        try:
            return self._slots.get(arm)
        except TypeError:
            raise TypeError(f"arm must be a hashable id, got {type(arm).__name__}") from None

    def to_record(self) -> dict[str, Any]:
        """Return a record for JSON; ids of a kind that it can't hold without loss are refused."""
        return {
            "ids": [_written(arm) for arm in self.ids],
            "active": self.active,
            "initial": self.initial,
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> ArmTable:
        """Return what :meth:`to_record` wrote."""
        return cls([_read(*one) for one in record["ids"]], record["active"], record["initial"])


def _written(arm: Hashable) -> list[Any]:
    kind = type(arm).__name__
    if kind not in _KINDS:
        raise TypeError(
            f"arms must be str, int or bytes to be kept in a store or a file, got {kind}: other ids can't be "
            f"written down and read again as the same id"
        )
    return [kind, arm.hex() if isinstance(arm, bytes) else arm]


def _read(kind: str, written: Any) -> Hashable:
    read: Hashable = bytes.fromhex(written) if kind == "bytes" else written
    return read
