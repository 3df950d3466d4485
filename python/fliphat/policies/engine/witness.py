"""A witness outside a store: what keeps a restored copy from fitting rows that were fitted and seen.

A store knows how many estimates it has released, and with each it draws a *mark*, a random name, which it
keeps in the same commit. The witness keeps both, somewhere a backup of the store does not reach. An estimate
is shown only after the witness has moved from the release before it to this one, which it does for one mark
alone.

- A copy that was restored from before a release finds the witness ahead of it, and is refused at opening.
- Of two copies that live at once the first to release moves the witness. The other's estimate is in its own
  store and was seen by nobody; from then on it is refused, whatever it is asked.
- A crash between the store's commit and the witness leaves the episode committed: whoever goes on with it
  asks the witness again.
- A policy that is saved to a file moves the witness to a mark that no store has.

What stays a promise: the witness itself is never restored, copied or shared between a store and its copy's
own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

from fliphat.policies.types import StoreError

__all__ = ["Record", "Witness", "agrees", "left_to", "name_of", "not_newest"]


@dataclass(frozen=True)
class Record:
    """What a witness knows of one policy: estimates released, and the mark of the last one."""

    releases: int
    mark: str


class Witness(Protocol):
    """A monotone counter outside a store."""

    def read(self, policy: str) -> Record | None:
        """Return what is known of a policy, None if nothing is."""

    def move(self, policy: str, before: Record | None, after: Record) -> bool:
        """Replace one record by another, durably; False if another than `before` is there."""

    def close(self) -> None:
        """Let go."""


def name_of(secret: bytes) -> str:
    """Return the public name of a policy: a copy has it too, and nobody can guess it."""
    return hashlib.blake2b(secret, digest_size=16, person=b"witness").hexdigest()


def agrees(witness: Witness, policy: str, before: Record, now: Record) -> bool:
    """Move a witness from one release to the next; False if it knows of another: then a copy was faster.

    It may have moved already, for a call that was cut off.
    """
    return witness.move(policy, before, now) or witness.read(policy) == now


def left_to(witness: Witness, policy: str, now: Record, checksum: str) -> bool:
    """Move a witness to the file that a policy is handed over to; False if it knows of another copy.

    The file is named by its checksum, so that of two copies that are saved one can be loaded.
    """
    return agrees(witness, policy, now, Record(now.releases, f"handed over to {checksum}"))


def not_newest() -> StoreError:
    """Return what a copy is told that its witness refused, now and for ever."""
    return StoreError(
        "the store is not the newest copy: its witness has seen a release, or a hand-over, that this copy "
        "did not make. It can't go on, because its rows may have been fitted and seen"
    )
