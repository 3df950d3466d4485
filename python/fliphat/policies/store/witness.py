"""A witness outside a store: what keeps a restored copy from fitting rows that were fitted and seen.

A store knows how many estimates it has released, and with each it draws a new *fence*, a random name, which
it keeps in the same commit. The witness keeps both, somewhere a backup of the store does not reach. An
estimate is shown only after the witness has moved from the release before it to this one, which it does for
one fence alone.

- A copy that was restored from before a release finds the witness ahead of it, and is refused at opening.
- Of two copies that live at once the first to release moves the witness. The other's estimate is in its own
  store and was seen by nobody; from then on it is refused.
- A crash between the store's commit and the witness leaves the store one release ahead, with the witness at
  the fence before. That is the one state in which the witness is moved at opening.

What stays a promise: the witness itself is never restored, copied or shared between a store and its copy's
own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from fliphat.policies.store import files
from fliphat.policies.store.postgres import is_url
from fliphat.policies.types import StoreError

__all__ = ["FileWitness", "Record", "Witness", "checked_at_opening", "make_witness", "name_of", "tell"]

#: Seconds that one process waits for another that moves the same file.
_PATIENCE: Final = 10.0


@dataclass(frozen=True)
class Record:
    """What a witness knows of one policy: estimates released, and the fence of the last one."""

    releases: int
    fence: str


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


def make_witness(where: str | os.PathLike[str]) -> Witness:
    """Return the witness in a file, or in another database."""
    if is_url(where):
        from fliphat.policies.store.postgres.witness import PostgresWitness

        return PostgresWitness(str(where))
    return FileWitness(Path(where))


def checked_at_opening(witness: Witness, policy: str, now: Record, before: Record, known: bool) -> None:
    """Raise unless a store is the newest copy; move the witness if a crash kept it from moving.

    Parameters
    ----------
    witness : Witness
    policy : str
    now, before : Record
        The store's last release, and the one before it.
    known : bool
        Whether the store has been opened with a witness before.
    """
    found = witness.read(policy)
    if found is None and known:
        raise StoreError(
            "the witness does not know this store, which was played with one: give that one, as it was"
        )
    if found is None:
        found = now if witness.move(policy, None, now) else witness.read(policy)
    if found != now:
        tell(witness, policy, before, now)


def tell(witness: Witness, policy: str, before: Record, now: Record) -> None:
    """Move a witness from one release to the next, or raise: then a copy of the store was faster."""
    if witness.move(policy, before, now) or witness.read(policy) == now:
        return
    found = witness.read(policy)
    seen = "nothing of it" if found is None else f"{found.releases}, the last of which may be another"
    raise StoreError(
        f"the store is not the newest copy: it has released {now.releases} estimates, and its witness has "
        f"seen {seen}. A restored copy can't go on, because its rows may have been fitted and seen"
    )


class FileWitness:
    """A small file, replaced whole at every release; on another disk than the store, outside its backups."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, policy: str) -> Record | None:
        """See :class:`Witness`."""
        record = self._all().get(policy)
        return None if record is None else Record(record["releases"], record["fence"])

    def move(self, policy: str, before: Record | None, after: Record) -> bool:
        """See :class:`Witness`."""
        with self._alone():
            if self.read(policy) != before:
                return False
            records = self._all() | {policy: asdict(after)}
            new = self._path.with_name(f"{self._path.name}.new-{os.urandom(8).hex()}")
            descriptor = files.create_private(new, exclusive=True)
            try:
                files.write_all(descriptor, json.dumps(records, indent=1).encode())
                files.sync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(new, self._path)
            files.sync_directory(self._path.parent)
        return True

    def close(self) -> None:
        """See :class:`Witness`."""

    def _all(self) -> dict[str, Any]:
        try:
            found = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise StoreError("the witness can't be read: put it back as it was") from None
        if not isinstance(found, dict):
            raise StoreError("the witness can't be read: put it back as it was")
        return found

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes out: two copies, or several workers, may ask at the same moment."""
        descriptor = files.create_private(self._path.with_name(self._path.name + ".lock"))
        until = time.monotonic() + _PATIENCE
        try:
            while True:
                try:
                    files.lock(descriptor, f"witness {str(self._path)!r}")
                    break
                except StoreError:
                    if time.monotonic() > until:
                        raise
                time.sleep(0.01)
            yield
        finally:
            os.close(descriptor)
