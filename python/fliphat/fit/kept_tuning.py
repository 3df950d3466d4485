"""Constants of policies that are kept: as a store's record holds them, and by name where it holds none.

A policy goes on with the constants it was made with, whatever a later version would give a new one: its
lengths, picks and clips are then the same, and its store is not refused. So all fields of
:class:`~fliphat.fit.tuning.Tuning`, as resolved for its budget, are written with its settings. They are
public, and so is everything that follows from them. A field that a record does not have yet is one whose
default changes nothing. Scales of noise are not kept: they are computed again, for the claim.

Stores that were made before that hold no constants. Those of pursuit are kept here, under the name
:data:`UNRECORDED`; they must never change.

No claim of privacy depends on any of these numbers: an episode's noise is priced for the parts, the numbers
of picks and the shares that its plan has, whatever they are (`PricedRelease` can't be built for less than its
price), and a person's rows are covered by the same claim in every episode.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Final

from fliphat.fit.tuning import Tuning

__all__ = ["UNRECORDED", "read", "unrecorded", "written"]

#: The name of the constants that fits had when stores did not record them.
UNRECORDED: Final = "not recorded"

_BOTH: Final[dict[str, Any]] = {
    "fast_growth": 1.2,
    "patience": 4,
    "picks_for_budget": 2.25,
    "fewer_picks": 1.5,
    "most_picks": 0.5,
    "moment_prior": 0.05,
    "typical_prior": 0.25,
    "smallest_eigenvalue": 0.15,
    "size_doubt": 0.2,
    "largest_growth": 1.3,
    "context_prior": 0.15,
    "octaves": 3.5,
}
_SMALL: Final[dict[str, Any]] = _BOTH | {
    "signed": True,
    "pick_share": 0.76,
    "late_pick_share": 0.5,
    "early": 8,
    "moment_share": 0.044,
    "size_share": 0.0245,
    "row_share": 0.07,
    "guess": 0.4,
    "doubt": 0.4,
    "pick_clip": 0.35,
    "value_clip": 0.55,
    "rows_for_noise": 1.0,
    "rows_for_sampling": 8.8,
    "growth": 1.0,
    "slow_growth": 1.03,
    "more_picks": 1.5,
    "stand_out": 1.96,
    "prune": 0.8,
    "gain": 0.65,
    "sampling": 0.5,
    "drift": 0.003,
    "typical_out": 1.63,
    "ball": 1.5,
    "size_cap": 2.2,
    "intercept_prior": 0.58,
}
_LARGE: Final[dict[str, Any]] = _BOTH | {
    "signed": False,
    "pick_share": 0.633,
    "late_pick_share": 0.456,
    "early": 3,
    "moment_share": 0.083,
    "size_share": 0.03,
    "row_share": 0.03,
    "guess": 0.0,
    "doubt": 0.64,
    "pick_clip": 0.7,
    "value_clip": 1.0,
    "rows_for_noise": 1.1,
    "rows_for_sampling": 6.5,
    "growth": 0.91,
    "slow_growth": 1.05,
    "more_picks": 1.1,
    "stand_out": 2.0,
    "prune": 0.9,
    "gain": 0.75,
    "sampling": 0.62,
    "drift": 0.006,
    "typical_out": 1.85,
    "ball": 1.1,
    "size_cap": 2.5,
    "intercept_prior": 1.0,
}
_SIGNED_BELOW: Final = 1.3
_BETWEEN: Final = (0.53, 2.86)


def unrecorded(mu: float) -> Tuning:
    """Return the constants that a store without a record of them was made with, for a budget of `mu`."""
    low, high = (math.log(end) for end in _BETWEEN)
    share = min(max((math.log(mu) - low) / (high - low), 0.0), 1.0)
    clips = {
        name: (1 - share) * _SMALL[name] + share * _LARGE[name]
        for name in ("pick_clip", "value_clip", "gain")
    }
    return Tuning(**(_SMALL if mu < _SIGNED_BELOW else _LARGE) | clips)


def written(constants: Any) -> dict[str, Any] | str | None:
    """Return constants, a dataclass or a name, as a record for JSON, which keeps every bit of a float64."""
    return constants if constants is None or isinstance(constants, str) else dataclasses.asdict(constants)


def read(record: Any, kind: Any = Tuning) -> Any:
    """Return what :func:`written` wrote; a constant that did not exist yet has its default.

    A constant that is added to a rule must have a default that leaves the rule as it was without it.
    """
    if record is None or record == UNRECORDED:
        return record
    known = {field.name for field in dataclasses.fields(kind)}
    if not isinstance(record, Mapping) or not known.issuperset(record):
        raise ValueError(
            "constants must be a record of numbers that this version knows: a newer one wrote this policy"
        )
    return kind(**record)
