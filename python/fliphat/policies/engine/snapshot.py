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

import contextlib
import hashlib
import io
import json
import os
import struct
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from fliphat.policies.engine import faults, files
from fliphat.policies.types import SnapshotError, StoreError

__all__ = ["VERSION", "Loading", "Saving", "look", "seal"]

VERSION: Final = 10

_MAGIC: Final = b"FLIPHAT\0"
_HEADER = struct.Struct("<8sII8s32sQ")
_STATE_AT: Final = 16
_UNSEALED, _SEALED, _CONSUMED = b"unsealed", b"sealed..", b"consumed"
_CHUNK: Final = 1 << 20
_MAPPED: Final = ("rows", "columns", "values")


class Saving:
    """A file on its way: written unsealed beside its path, then sealed under it, or discarded.

    It is locked until then: of two policies that are saved under one name, one is refused and lives on.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checksum = ""
        self._refuse_taken()
        # A file object, which gives the lock back even if an interrupt keeps this from closing it.
        self._file: io.FileIO | None = None

    def _refuse_taken(self) -> None:
        if self.path.exists():
            raise SnapshotError(f"path must be a new file: {str(self.path)!r} exists")

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
        descriptor = self._begin()
        header = _HEADER.pack(_MAGIC, VERSION, 0, _UNSEALED, digest.digest(), length)
        for part in (header, *body):
            files.write_all(descriptor, part)
        files.sync(descriptor)
        faults.reached("unsealed")

    def _begin(self) -> int:
        """Make the file that is written to, in place of one from a save that was cut off."""
        partial = _partial(self.path)
        with contextlib.suppress(FileNotFoundError), io.FileIO(partial, "r+") as left:
            _lock(left.fileno(), partial)
            partial.unlink()
        self._file = io.FileIO(files.create_private(partial, exclusive=True), "r+")
        _lock(self._file.fileno(), partial)
        if not _names(partial, self._file.fileno()):
            raise SnapshotError(f"another policy is being saved to {str(self.path)!r}")
        self._refuse_taken()  # whoever was saved there since has given up the name that is locked now
        return self._file.fileno()

    def seal(self) -> None:
        """Make the file loadable, under its own name; the policy it came from can't play any more."""
        assert self._file is not None
        _seal(self._file.fileno(), self.path)

    def discard(self) -> bool:
        """Remove the file unless it is sealed under its name; True if there was one to remove."""
        partial = _partial(self.path)
        if self._file is None or not _names(partial, self._file.fileno()):
            return False
        partial.unlink()
        return True

    def close(self) -> None:
        """Give the lock back."""
        if self._file is not None:
            files.unlock(self._file.fileno())
            self._file.close()


def seal(path: Path, checksum: str) -> None:
    """Make loadable what was written for `path` with this checksum, if it is still there to be sealed."""
    # If it is not, it was sealed before, and has been loaded since.
    with contextlib.suppress(FileNotFoundError), io.FileIO(_partial(path), "r+") as file:
        head = file.read(_HEADER.size) or b""
        if len(head) == _HEADER.size and _HEADER.unpack(head)[4].hex() == checksum:  # or another policy's
            _seal(file.fileno(), path)


def _seal(descriptor: int, path: Path) -> None:
    _mark(descriptor, _SEALED)
    faults.reached("sealed")
    os.rename(_partial(path), path)
    files.sync_directory(path.parent)


class Loading:
    """A file that a policy is made of, locked until it is consumed or left as it was.

    Attributes
    ----------
    consumed : bool
        Whether nobody else can load it any more. Told for sure when the block is over: until then, so that no
        other process can have loaded it in between, the file is locked.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.consumed = path, False

    def __enter__(self) -> Self:
        try:
            self._file = io.FileIO(self._path, "r+")
        except FileNotFoundError:
            raise SnapshotError(f"path must be a saved policy: {str(self._path)!r} does not exist") from None
        try:
            _lock(self._file.fileno(), self._path)
        except BaseException:
            self._file.close()
            raise
        return self

    def read(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Check the file, and return its record and arrays."""
        return _read(self._file.fileno(), self._path)

    def consume(self) -> None:
        """Let nobody load it any more, under any name."""
        faults.reached("before consume")
        _mark(self._file.fileno(), _CONSUMED)
        faults.reached("consumed")
        self.consumed = True
        self._unlink()

    def _unlink(self) -> None:
        if _names(self._path, self._file.fileno()):
            self._path.unlink()
            files.sync_directory(self._path.parent)

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._file.seek(_STATE_AT)
            self.consumed = self._file.read(len(_CONSUMED)) == _CONSUMED
            if self.consumed:
                self._unlink()
            # At once, though what was read may still be mapped, or a forked child have the file open.
            files.unlock(self._file.fileno())


def _lock(descriptor: int, path: Path) -> None:
    try:
        files.lock(descriptor, f"file {str(path)!r}")
    except StoreError as error:
        raise SnapshotError(str(error)) from None


def _names(path: Path, descriptor: int) -> bool:
    """Whether a file that is open is still there under a name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


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
