"""Files that hold private data: mode 0600, written completely, and on disk when we say so."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

from fliphat.policies.types import StoreError

__all__ = ["create_private", "lock", "sync", "sync_directory", "unlock", "write_all"]


def create_private(path: Path, *, exclusive: bool = False) -> int:
    """Open a file for reading and writing, creating it readable by its owner alone."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    if exclusive:
        flags |= os.O_EXCL
    return os.open(path, flags, 0o600)


def write_all(descriptor: int, data: Any) -> None:
    """Write all of a buffer; the system may take it in parts."""
    written = os.write(descriptor, data)
    size = len(data) if isinstance(data, bytes) else memoryview(data).nbytes
    if written < size:
        rest = memoryview(data).cast("B")
        while written < size:
            written += os.write(descriptor, rest[written:])


def sync(descriptor: int) -> None:
    """Return when a file's contents are on disk."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def sync_directory(path: Path) -> None:
    """Return when a directory's names are on disk."""
    if sys.platform == "win32":
        return  # directories can't be synced there
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(descriptor: int, what: str) -> None:
    """Lock an open file for as long as it stays open, against other processes and this one's other opens."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise StoreError(f"{what} is in use by another process or another policy of this one") from None


def unlock(descriptor: int) -> None:
    """Give a lock back at once, even if a forked child still has the file open."""
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_UN)
