"""The files of one open episode: rows, and an append-only list of what happened. Private.

A call appends its rows, then one frame that names them; a frame counts only if it and its rows are whole, so
that a call cut off anywhere leaves either all of itself or nothing. Layout in ``docs/durability.md``.
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.policies import faults, files
from fliphat.policies.errors import StoreError
from fliphat.policies.records import ROUND

__all__ = ["Frame", "Journal"]

_MAGIC: Final = b"FLIPEV01"
_HEADER = struct.Struct("<8s4s4s")
_LAYOUTS: Final = {"dense": b"dens", "csr": b"csr_"}
_DTYPES: Final = {"float32": b"f4__", "float64": b"f8__"}

# kind, records, late rewards, checksum of rows, bytes of rows, checksum of this frame
_FRAME = struct.Struct("<IIIIQI4x")
_CHECKED = _FRAME.size - 8
_ROUNDS, _REWARDS = 1, 2

_REWARD = np.dtype([("row", "<u8"), ("code", "<f8")])
_ONE_REWARD = struct.Struct("<Qd")

_GO_ON: Final = "put it back as it was and try again, or forget() the episode's rows to go on without them"

#: Seconds between syncs when commits are grouped.
_GROUP: Final = 0.1


@dataclass(frozen=True)
class Frame:
    """What one call did: the rounds it played, or the rewards it brought."""

    rounds: npt.NDArray[Any] | None
    rewards: npt.NDArray[Any] | None
    late: int


class Journal:
    """Rows and events of one episode, in the directory of a store."""

    def __init__(
        self, directory: Path, stem: str, *, layout: str, dtype: str, dim: int, durability: str
    ) -> None:
        self.layout = layout
        self.paths = _paths(directory, stem, layout)
        self.dtype = np.dtype(dtype)
        self.dim = dim
        self._full = durability == "full"
        self._synced_at = time.monotonic()
        self._files: list[int] = []
        try:
            for path in self.paths:
                self._files.append(files.create_private(path, append=True))
            self._events = self._files[0]
            if os.fstat(self._events).st_size < _HEADER.size:
                os.ftruncate(self._events, 0)
                files.write_all(self._events, _HEADER.pack(_MAGIC, _LAYOUTS[layout], _DTYPES[dtype]))
            self.sync()
            files.sync_directory(directory)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def layout_of(directory: Path, stem: str) -> str | None:
        """Return the layout of the files with this stem, or None if none were begun."""
        try:
            with open(_paths(directory, stem, "dense")[0], "rb") as events:
                header = events.read(_HEADER.size)
        except FileNotFoundError:
            return None
        if len(header) < _HEADER.size:
            return None  # cut off while it was created: no call was acknowledged
        magic, layout, _ = _HEADER.unpack(header)
        if magic != _MAGIC:
            raise StoreError(f"{stem}.events is not a file of this version, or is damaged")
        return next(name for name, code in _LAYOUTS.items() if code == layout)

    @staticmethod
    def refuse_missing(directory: Path, stem: str, layout: str) -> None:
        """Raise if a row file is gone that some call wrote to: an empty one in its place would hide that."""
        events, *rows = _paths(directory, stem, layout)
        if events.stat().st_size > _HEADER.size:
            for path in rows:
                if not path.exists():
                    raise StoreError(
                        f"{_lost(path)} is missing: put it back, or remove all of {stem}.* to go on without "
                        f"that episode's rounds"
                    )

    def add_rounds(self, count: int, records: bytes, rows: Sequence[npt.NDArray[Any]]) -> None:
        """Append played rounds: `records` of :data:`ROUND`, and the chosen rows' arrays in file order."""
        checksum, size = 0, 0
        for descriptor, part in zip(self._files[1:], rows, strict=True):
            data = part.data.cast("B") if part.size else b""
            checksum, size = zlib.crc32(data, checksum), size + len(data)
            if data:
                files.write_all(descriptor, data)
            faults.reached("rows written")
        self._append(_ROUNDS, count, 0, checksum, size, records)

    def add_rewards(self, rows: Any, codes: Any, late: int) -> None:
        """Append rewards, by row, and a number of late ones."""
        if len(rows) == 1:
            payload = _ONE_REWARD.pack(rows[0], codes[0])
        else:
            records = np.empty(len(rows), _REWARD)
            records["row"], records["code"] = rows, codes
            payload = records.tobytes()
        self._append(_REWARDS, len(rows), late, 0, 0, payload)

    def _append(self, kind: int, count: int, late: int, rows_crc: int, size: int, payload: bytes) -> None:
        head = _FRAME.pack(kind, count, late, rows_crc, size, 0)[:_CHECKED]
        checksum = zlib.crc32(payload, zlib.crc32(head))
        files.write_all(self._events, _FRAME.pack(kind, count, late, rows_crc, size, checksum) + payload)
        faults.reached("frame written")
        if self._full or time.monotonic() - self._synced_at > _GROUP:
            self.sync()
        faults.reached("frame synced")

    def sync(self) -> None:
        """Return when everything appended so far is on disk."""
        for descriptor in reversed(self._files):  # rows before the frames that name them
            files.sync(descriptor)
        self._synced_at = time.monotonic()

    def mapped(self, file: int, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return a row file as an array, refusing one that is gone or has another size than it should.

        A mapping past the end of a file would stop the process when it is read.
        """
        path = self.paths[file]
        wanted = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        try:
            found = path.stat().st_size
        except FileNotFoundError:
            raise StoreError(f"{_lost(path)} is missing: {_GO_ON}") from None
        if found != wanted:
            raise StoreError(f"{_lost(path)} has {found} bytes instead of {wanted}: {_GO_ON}")
        if wanted == 0:  # an empty file can't be mapped
            return np.zeros(shape, dtype)
        return np.memmap(path, dtype, "r", shape=shape)

    def recover(self) -> list[Frame]:
        """Return all whole frames, and cut off whatever follows them."""
        frames, events, rows = [], _HEADER.size, 0
        for frame, size, row_bytes in self._read(check_rows=True):
            frames.append(frame)
            events, rows = events + size, rows + row_bytes
        os.ftruncate(self._events, events)
        for descriptor, size in zip(self._files[1:], self._shares(rows), strict=True):
            os.ftruncate(descriptor, size)
        self.sync()
        return frames

    def _shares(self, row_bytes: int) -> list[int]:
        """Return each row file's part of the row bytes: columns take 4 bytes where values take an item."""
        if self.layout == "dense":
            return [row_bytes]
        values = row_bytes // (4 + self.dtype.itemsize)
        return [4 * values, self.dtype.itemsize * values]

    def _read(self, *, check_rows: bool) -> Iterator[tuple[Frame, int, int]]:
        with open(self.paths[0], "rb") as events:
            wanted = self.paths[1:] if check_rows else ()
            rows = [open(path, "rb") for path in wanted]  # noqa: SIM115
            try:
                events.seek(_HEADER.size)
                while True:
                    head = events.read(_FRAME.size)
                    if len(head) < _FRAME.size:
                        return
                    kind, count, late, rows_crc, size, checksum = _FRAME.unpack(head)
                    record = {_ROUNDS: ROUND, _REWARDS: _REWARD}.get(kind)
                    if record is None:
                        return
                    payload = events.read(count * record.itemsize)
                    if (
                        len(payload) < count * record.itemsize
                        or zlib.crc32(payload, zlib.crc32(head[:_CHECKED])) != checksum
                    ):
                        return
                    found = 0 if check_rows else rows_crc
                    for file, share in zip(rows, self._shares(size), strict=check_rows):
                        part = file.read(share)
                        if len(part) < share:
                            return
                        found = zlib.crc32(part, found)
                    if found != rows_crc:
                        return
                    records = np.frombuffer(payload, record)
                    is_rounds = kind == _ROUNDS
                    frame = Frame(records if is_rounds else None, None if is_rounds else records, late)
                    yield frame, _FRAME.size + len(payload), size
            finally:
                for file in rows:
                    file.close()

    def frames(self, *, check_rows: bool) -> list[Frame]:
        """Return all whole frames, trusting their rows unless asked to check them."""
        return [frame for frame, _, _ in self._read(check_rows=check_rows)]

    def close(self) -> None:
        """Close the files."""
        while self._files:
            os.close(self._files.pop())

    def unlink(self) -> None:
        """Remove the files: the episode's rows are gone."""
        self.close()
        for path in self.paths:
            path.unlink(missing_ok=True)


def _lost(path: Path) -> str:
    return f"the store's file {path.name!r}, with rows of the open episode,"


def _paths(directory: Path, stem: str, layout: str) -> list[Path]:
    kinds = ("events", "rows") if layout == "dense" else ("events", "columns", "values")
    return [directory / f"{stem}.{kind}" for kind in kinds]
