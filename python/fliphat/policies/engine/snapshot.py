"""One file that a whole policy is handed over in: versioned, checked, no pickle. It holds private rows.

| bytes | what |
|---|---|
| 8 | ``FLIPHAT`` and a zero byte |
| 4, 4 | format version, zero (little endian, as all numbers here) |
| 8 | ``unsealed``, ``sealed..`` or ``consumed`` |
| 32 | SHA-256 of the body |
| 8 | length of the body |
| body | length of the JSON (8 bytes), the JSON, then the arrays it lists, one after the other |

A file is written unsealed, and sealed when its policy can't play any more; loading marks it consumed before
the loaded policy can play, so that even another name of the same file can't be loaded twice. A plain copy of
the bytes could: copying a sealed file is the one way to fit rows twice that no code can prevent.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from fliphat.policies.engine import faults, files
from fliphat.policies.types import SnapshotError, StoreError

__all__ = ["VERSION", "Saving", "consume", "look", "seal"]

VERSION: Final = 10

_MAGIC: Final = b"FLIPHAT\0"
_HEADER = struct.Struct("<8sII8s32sQ")
_STATE_AT: Final = 16
_UNSEALED, _SEALED, _CONSUMED = b"unsealed", b"sealed..", b"consumed"
_CHUNK: Final = 1 << 20
_MAPPED: Final = ("rows", "columns", "values")

_Loaded = TypeVar("_Loaded")


class Saving:
    """A file on its way: written unsealed beside its path, then sealed under it, or discarded."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            raise SnapshotError(f"path must be a new file: {str(path)!r} exists")
        self.path = path
        self.checksum = ""
        self._begun = False

    def write(self, record: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Write the file; nothing can load it yet."""
        parts = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        listed = [[name, str(part.dtype.str), list(part.shape)] for name, part in parts.items()]
        # Its number makes every file another: a hand-over's record names this one by its checksum.
        content = {"number": os.urandom(16).hex(), "record": record, "arrays": listed}
        text = json.dumps(content).encode()
        body: list[bytes | memoryview] = [struct.pack("<Q", len(text)), text]
        body += [part.data.cast("B") for part in parts.values() if part.size]
        digest, length = hashlib.sha256(), 0
        for part in body:
            digest.update(part)
            length += len(part)
        self.checksum = digest.hexdigest()
        partial = _partial(self.path)
        partial.unlink(missing_ok=True)  # an unsealed file from a save that was cut off
        self._begun = True
        descriptor = files.create_private(partial, exclusive=True)
        try:
            header = _HEADER.pack(_MAGIC, VERSION, 0, _UNSEALED, digest.digest(), length)
            for part in (header, *body):
                files.write_all(descriptor, part)
            files.sync(descriptor)
        finally:
            os.close(descriptor)
        faults.reached("unsealed")

    def seal(self) -> None:
        """Make the file loadable, under its own name; the policy it came from can't play any more."""
        seal(self.path, self.checksum)

    def discard(self) -> bool:
        """Remove the file unless it is sealed under its name; True if there was one to remove."""
        if not self._begun:
            return False
        try:
            _partial(self.path).unlink()
        except FileNotFoundError:
            return False
        return True


def seal(path: Path, checksum: str) -> None:
    """Make loadable what was written for `path` with this checksum, if it is still there to be sealed."""
    partial = _partial(path)
    try:
        descriptor = os.open(partial, os.O_RDWR | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return  # it was sealed before, and has been loaded since
    try:
        head = os.read(descriptor, _HEADER.size)
        if len(head) < _HEADER.size or _HEADER.unpack(head)[4].hex() != checksum:
            return  # another policy's
        _mark(descriptor, _SEALED)
    finally:
        os.close(descriptor)
    faults.reached("sealed")
    os.rename(partial, path)
    files.sync_directory(path.parent)


def consume(path: Path, build: Callable[[dict[str, Any], dict[str, npt.NDArray[Any]]], _Loaded]) -> _Loaded:
    """Check a file, build from it, and only then mark it consumed and unlink it."""
    try:
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise SnapshotError(f"path must be a saved policy: {str(path)!r} does not exist") from None
    try:
        try:
            files.lock(descriptor, f"file {str(path)!r}")
        except StoreError as error:
            raise SnapshotError(str(error)) from None
        loaded = build(*_read(descriptor, path))
        faults.reached("before consume")
        _mark(descriptor, _CONSUMED)
        faults.reached("consumed")
        path.unlink(missing_ok=True)
        files.sync_directory(path.parent)
    finally:
        os.close(descriptor)
    return loaded


def look(path: Path) -> tuple[int, dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Check a file that can be loaded; its format version, record and arrays. Nothing is consumed."""
    with open(path, "rb", buffering=0) as file:
        return VERSION, *_read(file.fileno(), path)


def _read(descriptor: int, path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        head = file.read(_HEADER.size)
        if len(head) < _HEADER.size or head[:8] != _MAGIC:
            raise SnapshotError(f"{str(path)!r} is not a saved policy, or is damaged")
        _, version, zero, state, expected, length = _HEADER.unpack(head)
        if version != VERSION:
            age = "a newer" if version > VERSION else "an unknown"
            raise SnapshotError(
                f"{str(path)!r} was saved by {age} version (format {version}, this one reads {VERSION})"
            )
        if state == _CONSUMED:
            raise SnapshotError(f"{str(path)!r} was loaded before: a policy has one live copy")
        if state == _UNSEALED:
            raise SnapshotError(f"{str(path)!r} was cut off while it was saved: its policy did not let go")
        size = os.fstat(descriptor).st_size - _HEADER.size
        if state != _SEALED or zero != 0 or size != length:
            raise SnapshotError(f"{str(path)!r} is truncated or damaged")
        digest = hashlib.sha256()
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
        if digest.digest() != expected:
            raise SnapshotError(f"{str(path)!r} is damaged: its checksum does not match")
        file.seek(_HEADER.size)
        (text,) = struct.unpack("<Q", file.read(8))
        listing = json.loads(file.read(text))
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, dtype, shape in listing["arrays"]:
            count = int(np.prod(shape, dtype=np.int64))
            if name in _MAPPED and count:
                # Copied once, to where the policy keeps rows; its memory may not have room for a second copy.
                place = file.tell()
                arrays[name] = np.memmap(file, dtype, "r", place, tuple(shape))
                file.seek(place + arrays[name].nbytes)
                continue
            array = np.empty(shape, dtype)
            if count:
                file.readinto(array.data.cast("B"))
            arrays[name] = array
        return listing["record"], arrays


def _mark(descriptor: int, state: bytes) -> None:
    os.lseek(descriptor, _STATE_AT, os.SEEK_SET)
    files.write_all(descriptor, state)
    files.sync(descriptor)


def _partial(path: Path) -> Path:
    return path.with_name(path.name + ".partial")
