"""Constants of a fit as the record of a policy holds them.

A policy goes on with the constants it was made with, whatever a later version would give a new one: its
lengths, picks and clips are then the same, and its store is not refused. So all constants, as resolved for
its budget, are written with its settings. They are public, and so is everything that follows from them. A
constant that a record does not have yet is one whose default changes nothing. Scales of noise are not kept:
they are computed again, for the claim.

No claim of privacy depends on any of these numbers: an episode's noise is priced for the parts, the numbers
of picks and the shares that its plan has, whatever they are (`PricedRelease` can't be built for less than its
price), and a person's rows are covered by the same claim in every episode.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from fliphat.fit.pursuit.constants import Tuning

__all__ = ["read", "written"]


def written(constants: Any) -> dict[str, Any] | None:
    """Return constants, a dataclass, as a record for JSON, which keeps every bit of a float64."""
    return None if constants is None else dataclasses.asdict(constants)


def read(record: Any, kind: Any = Tuning) -> Any:
    """Return what :func:`written` wrote; a constant that did not exist yet has its default.

    A constant that is added to a rule must have a default that leaves the rule as it was without it.
    """
    if record is None:
        return None
    known = {field.name for field in dataclasses.fields(kind)}
    if not isinstance(record, Mapping) or not known.issuperset(record):
        raise ValueError(
            "constants must be a record of numbers that this version knows: a newer one wrote this policy"
        )
    return kind(**record)
