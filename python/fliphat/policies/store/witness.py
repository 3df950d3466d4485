"""Where a witness is: a small file, or a row of another database."""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from fliphat.policies.engine import files
from fliphat.policies.engine.witness import Record, Witness
from fliphat.policies.store.postgres import is_url
from fliphat.policies.types import StoreError

__all__ = ["FileWitness", "make_witness"]

#: Seconds that one process waits for another that moves the same file.
_PATIENCE: Final = 10.0


def make_witness(where: str | os.PathLike[str], store: str | os.PathLike[str]) -> Witness:
    """Return the witness in a file, or in another database; refuses one inside the store that it watches."""
    if is_url(where):
        from fliphat.policies.store.postgres.witness import PostgresWitness

        return PostgresWitness(str(where), str(store) if is_url(store) else None)
    if not is_url(store) and Path(where).resolve().is_relative_to(Path(store).resolve()):
        raise ValueError("witness must lie outside its store: a copy of the store would have a copy of it")
    return FileWitness(Path(where))


class FileWitness:
    """A small file, replaced whole at every release; on another disk than the store, outside its backups."""

    def __init__(self, path: Path) -> None:
        # Where it is now, whatever the working directory becomes and whichever link led there: replacing the
        # file under another name would leave the old record there, for a copy of the store to be shown.
        self._path = path.resolve()

    def read(self, policy: str) -> Record | None:
        """See :class:`Witness`."""
        record = self._all().get(policy)
        return None if record is None else Record(record["releases"], record["mark"])

    def move(self, policy: str, before: Record | None, after: Record) -> bool:
        """See :class:`Witness`."""
        with self._alone():
            if self.read(policy) != before:
                return False
            records = self._all() | {policy: asdict(after)}
            new = self._path.with_name(f"{self._path.name}.new")
            new.unlink(missing_ok=True)  # of a move that was cut off, or found the disk full
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
        path, until = self._path.with_name(self._path.name + ".lock"), time.monotonic() + _PATIENCE
        # A file object, which gives the lock back even if an interrupt keeps this from closing it.
        with io.FileIO(files.create_private(path), "r+") as file:
            while True:
                try:
                    files.lock(file.fileno(), f"witness {str(self._path)!r}")
                    break
                except StoreError:
                    if time.monotonic() > until:
                        raise
                time.sleep(0.01)
            try:
                yield
            finally:
                files.unlock(file.fileno())  # though a child that was forked meanwhile has the file open
