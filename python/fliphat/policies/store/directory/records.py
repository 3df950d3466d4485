"""Played rounds as the journal keeps them: fixed-size records, one a round. Private."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.policies.engine.episode import AWAITED, NOT_LEARNED
from fliphat.policies.engine.exploring import probability
from fliphat.policies.engine.inputs import DIGEST_BYTES
from fliphat.policies.store.base import PlayedRounds
from fliphat.policies.types import Decision

__all__ = ["HAS_USER", "ROUND", "codes_of", "emptied", "keys_of", "packed", "user_kind_of", "users_of"]

#: Flags of a round: its row may be learned from; it had a user id; it had a key.
LEARNED: Final = 1
HAS_USER: Final = 2
HAS_KEY: Final = 4
#: Two more bits of a round's flags: the kind of its user id, 0 if a first-version store did not say.
_KINDS: Final = {8: "str", 16: "int", 24: "bytes"}
_KIND_BITS: Final = {kind: bits for bits, kind in _KINDS.items()}

_ROUND = struct.Struct(f"<qiIII{DIGEST_BYTES}s{DIGEST_BYTES}s")
#: One played round: its id, arm (``-1 - arm`` if invalid), stored values, flags (the lowest byte) and how
#: many arms share the first place with it (the other three), arms that were offered (0 in stores of earlier
#: versions), user and key digests.
ROUND = np.dtype(
    {
        "names": ["id", "arm", "length", "flags", "flags_and_tied", "arms", "user", "key"],
        "formats": ["<i8", "<i4", "<u4", "u1", "<u4", "<u4", f"V{DIGEST_BYTES}", f"V{DIGEST_BYTES}"],
        "offsets": [0, 8, 12, 16, 16, 20, 24, 24 + DIGEST_BYTES],
        "itemsize": _ROUND.size,
    }
)


def packed(played: PlayedRounds, lengths: npt.NDArray[np.uint32] | None) -> bytes:
    """Return records of :data:`ROUND`; `lengths` are the stored values of sparse rows."""
    flags = (HAS_USER | _KIND_BITS[played.user_kind] if played.user_kind else 0) | (
        HAS_KEY if played.key else 0
    )
    if len(played.arms) == 1 and played.keys is None:
        learned = LEARNED if played.learned is None or played.learned[0] else 0
        length = 0 if lengths is None else int(lengths[0])
        user = b"" if played.users is None else played.users[0]
        flags |= learned | int(played.tied[0]) << 8
        return _ROUND.pack(played.first_id, played.arms[0], length, flags, played.offered, user, played.key)
    records = np.zeros(len(played.arms), ROUND)
    records["id"] = np.arange(played.first_id, played.first_id + len(records))
    records["arm"] = played.arms
    records["flags_and_tied"] = np.asarray(played.tied, np.uint32) << 8
    records["arms"] = played.offered
    records["flags"] = flags | (LEARNED if played.learned is None else np.asarray(played.learned) * LEARNED)
    if lengths is not None:
        records["length"] = lengths
    if played.users is not None:
        records["user"] = np.frombuffer(b"".join(played.users), ROUND["user"])
    if played.keys is not None:
        missing = bytes(DIGEST_BYTES)
        records["key"] = np.frombuffer(b"".join(key or missing for key in played.keys), ROUND["key"])
        records["flags"] |= np.array([HAS_KEY if key else 0 for key in played.keys], np.uint8)
    return records.tobytes()


def codes_of(rounds: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return what is known of the rounds' rewards before any came."""
    not_learned = (rounds["arm"] < 0) | ((rounds["flags"] & LEARNED) == 0)
    return np.where(not_learned, NOT_LEARNED, AWAITED)


def user_kind_of(rounds: npt.NDArray[Any]) -> str | None:
    """Return the kind of the rounds' user ids, None if they have none or it was not written."""
    return _KINDS.get(int(rounds["flags"][0]) & 24)


def emptied(rounds: npt.NDArray[Any], these: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Return rounds of which some have no contents: what a journal appends once those are forgotten."""
    empty = rounds.copy()
    empty["length"][these] = 0
    empty["flags"][these] &= 0xFF - LEARNED
    return empty


def users_of(rounds: npt.NDArray[Any]) -> Iterator[bytes]:
    """Yield the user of each round that had one."""
    for record in rounds[(rounds["flags"] & HAS_USER) != 0]:
        yield bytes(record["user"])


def keys_of(rounds: npt.NDArray[Any], episode: int, share: float) -> Iterator[tuple[bytes, Decision]]:
    """Yield the key of each round that had one, and its decision; `share` of them explored."""
    for record in rounds[(rounds["flags"] & HAS_KEY) != 0]:
        arm = int(record["arm"])
        played = arm if arm >= 0 else -1 - arm
        chance = probability(int(record["flags_and_tied"]) >> 8, int(record["arms"]), share)
        yield bytes(record["key"]), Decision(int(record["id"]), played, arm >= 0, episode, chance)
