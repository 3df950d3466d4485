"""The files of one open episode: rows, and an append-only list of what happened. Private.

A call appends its rows, then one frame that names them; a frame counts only if it and its rows are whole, so
that a call cut off anywhere leaves either all of itself or nothing. What such a call leaves at the end of a
file is told from damage (see `Journal._scan`): the first is dropped silently, because nobody was told
that the call happened, the second is an error. Layout in ``docs/durability.md``.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.policies.store import faults, files
from fliphat.policies.store.directory.records import ROUND
from fliphat.policies.types import StoreError

__all__ = ["Frame", "Journal"]

#: The first version's frames have no checksum of their head and no end mark; they are written again.
_MAGICS: Final = {b"FLIPEV01": 1, b"FLIPEV02": 2}
_MAGIC: Final = b"FLIPEV02"
_HEADER = struct.Struct("<8s4s4s")
_LAYOUTS: Final = {"dense": b"dens", "csr": b"csr_"}
_DTYPES: Final = {"float32": b"f4__", "float64": b"f8__"}

# kind and flags, records, late rewards, checksum of rows, bytes of rows, checksum of this frame, of its head
_FRAME = struct.Struct("<IIIIQII")
_CHECKED = _FRAME.size - 8
_ROUNDS, _REWARDS, _TIMES = 1, 2, 3
_SYNCED: Final = 0x100  # the call returned only when its bytes were on disk
#: No byte is zero: a frame whose last blocks never reached the disk reads as zeros there.
_END: Final = b"FLIPEND\n"

_REWARD = np.dtype([("row", "<u8"), ("code", "<f8")])
_ONE_REWARD = struct.Struct("<Qd")
#: When a row was about to be played, in seconds since 1970; stores of format 4 on.
_TIME = np.dtype([("row", "<u8"), ("seconds", "<f8")])
_RECORDS: Final = {_ROUNDS: ROUND, _REWARDS: _REWARD, _TIMES: _TIME}

_GO_ON: Final = "put it back as it was and try again, or forget() the episode's rows to go on without them"

#: Seconds between syncs when commits are grouped.
_GROUP: Final = 0.1
#: A disk writes blocks of at least this many bytes.
_BLOCK: Final = 512
_NEW: Final = "new-"
_CHUNK: Final = 1 << 17
#: Bytes that are held at most before they are written.
_MOST_HELD: Final = 1 << 23


@dataclass(frozen=True)
class Frame:
    """What one call did: the rounds it played, the rewards it brought, or the time it noted."""

    rounds: npt.NDArray[Any] | None
    rewards: npt.NDArray[Any] | None
    late: int
    times: npt.NDArray[Any] | None = None


@dataclass
class _Scan:
    """What was read: whole frames, where they end, and what is wrong with what follows, if anything."""

    frames: list[Frame] = field(default_factory=list)
    to_rewrite: list[tuple[_Head, bytes]] = field(default_factory=list)
    events_end: int = _HEADER.size
    row_bytes: int = 0
    torn: bool = False
    damaged: list[Path] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        """Rounds of the whole frames."""
        return sum(len(frame.rounds) for frame in self.frames if frame.rounds is not None)


@dataclass(frozen=True)
class _Head:
    """The fixed part of a frame."""

    raw: bytes
    kind: int
    synced: bool
    count: int
    late: int
    rows_crc: int
    row_bytes: int
    checksum: int

    @classmethod
    def unpack(cls, raw: bytes) -> _Head:
        """Return the head that these bytes are."""
        kind, count, late, rows_crc, row_bytes, checksum, _ = _FRAME.unpack(raw)
        return cls(raw, kind & 0xFF, bool(kind & _SYNCED), count, late, rows_crc, row_bytes, checksum)

    def fits(self, payload: bytes) -> bool:
        """Whether these are the records that the frame was written with."""
        return zlib.crc32(payload, zlib.crc32(self.raw[:_CHECKED])) == self.checksum


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
        # With "group": bytes for each file that are written when somebody asks for them, all at once.
        self._held: list[list[bytes]] | None = [[] for _ in self.paths] if durability == "group" else None
        self._held_bytes = 0
        self._synced_at = time.monotonic()
        self._waits = False
        self._files: list[int] = []
        self._version = 2
        # Checksums of all that the row files should hold: the fit reads them back in one go.
        self._row_sums = [0] * (len(self.paths) - 1)
        try:
            for path in self.paths:
                self._files.append(files.create_private(path, append=True))
            self._events = self._files[0]
            if os.fstat(self._events).st_size < _HEADER.size:
                os.ftruncate(self._events, 0)
                files.write_all(self._events, _HEADER.pack(_MAGIC, _LAYOUTS[layout], _DTYPES[dtype]))
            else:
                self._version = _MAGICS[os.pread(self._events, len(_MAGIC), 0)]
            self.sync()
            files.sync_directory(directory)
        except BaseException:
            self.close()
            raise

    @classmethod
    def only_read(cls, directory: Path, stem: str, *, layout: str, dtype: str, dim: int) -> Journal:
        """Return the files of an episode to be looked at, also while their policy plays."""
        journal = cls.__new__(cls)
        journal.layout, journal.dtype, journal.dim = layout, np.dtype(dtype), dim
        journal.paths, journal._files = _paths(directory, stem, layout), []
        journal._held, journal._held_bytes = None, 0
        with open(journal.paths[0], "rb") as events:
            journal._version = _MAGICS[events.read(len(_MAGIC))]
        return journal

    def look(self) -> tuple[list[Frame], int]:
        """Return all whole frames and the format they are in; damage raises, and nothing is changed.

        What a call under way or one that was cut off left at the end is passed over.
        """
        scan = self._scan(check_rows=True)
        self._refuse_damage(scan)
        return scan.frames, self._version

    @staticmethod
    def layout_of(directory: Path, stem: str, dtype: str) -> str | None:
        """Return the layout of the files with this stem, or None if none were begun."""
        rows = {path: path.stat().st_size for path in _row_files(directory, stem)}
        try:
            with open(_paths(directory, stem, "dense")[0], "rb") as events:
                header = events.read(_HEADER.size)
        except FileNotFoundError:
            # A journal's events are made before its row files.
            if rows:
                raise StoreError(
                    f"the store's file '{stem}.events' is missing: what happened in the rounds whose rows "
                    f"are in {_names(rows)} ({sum(rows.values())} bytes) is not known. {_way_out(stem)}"
                ) from None
            return None
        if len(header) < _HEADER.size:
            if any(rows.values()):
                raise StoreError(f"the store's file '{stem}.events' was cut off. {_way_out(stem)}")
            return None  # cut off while it was created: no call was acknowledged
        magic, layout, stored = _HEADER.unpack(header)
        if magic not in _MAGICS or layout not in _LAYOUTS.values() or stored != _DTYPES[dtype]:
            raise StoreError(
                f"the store's file '{stem}.events' is not one that this version reads, or its first bytes "
                f"are damaged. {_way_out(stem)}"
            )
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
        for i, (descriptor, part) in enumerate(zip(self._files[1:], rows, strict=True)):
            data = part.data.cast("B") if part.size else b""
            checksum, size = zlib.crc32(data, checksum), size + len(data)
            self._row_sums[i] = zlib.crc32(data, self._row_sums[i])
            if data:
                self._write(i + 1, descriptor, data)
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

    def add_time(self, row: int, seconds: float) -> None:
        """Append when a row was about to be played."""
        self._append(_TIMES, 1, 0, 0, 0, _ONE_REWARD.pack(row, seconds))

    @contextlib.contextmanager
    def written_at_once(self) -> Iterator[None]:
        """Sync all that is appended in the block when it ends: nobody is told of a part of it."""
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
        self.sync()

    def _append(self, kind: int, count: int, late: int, rows_crc: int, size: int, payload: bytes) -> None:
        self._write(0, self._events, self._frame(kind, count, late, rows_crc, size, payload))
        faults.reached("frame written")
        if self._held is not None:
            if self._held_bytes > _MOST_HELD:
                self.write_held()
        elif not self._waits and (self._full or time.monotonic() - self._synced_at > _GROUP):
            self.sync()
        faults.reached("frame synced")

    def _write(self, file: int, descriptor: int, data: Any) -> None:
        if self._held is None:
            files.write_all(descriptor, data)
        else:
            self._held[file].append(bytes(data))
            self._held_bytes += len(data)

    def write_held(self) -> None:
        """Hand what is held to the operating system: rows before the frames that name them."""
        if self._held_bytes and self._held is not None:
            held, self._held, self._held_bytes = self._held, [[] for _ in self.paths], 0
            for descriptor, parts in zip(reversed(self._files), reversed(held), strict=True):
                if parts:
                    files.write_all(descriptor, b"".join(parts))

    def drop_held(self) -> None:
        """Forget what is held: in a forked child it is the parent's to write."""
        if self._held is not None:
            self._held, self._held_bytes = [[] for _ in self.paths], 0

    def _frame(self, kind: int, count: int, late: int, rows_crc: int, size: int, payload: bytes) -> bytes:
        if self._full:
            kind |= _SYNCED
        head = _FRAME.pack(kind, count, late, rows_crc, size, 0, 0)[:_CHECKED]
        head += zlib.crc32(payload, zlib.crc32(head)).to_bytes(4, "little")
        return head + zlib.crc32(head).to_bytes(4, "little") + payload + _END

    def sync(self) -> None:
        """Return when everything appended so far is on disk."""
        self.write_held()
        # A frame may reach the disk before its rows: nobody is told until both did, and a frame without its
        # rows is found to be cut off.
        files.sync_all(self._files)
        self._synced_at = time.monotonic()

    def mapped(self, file: int, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return a row file as an array, refusing one that is gone or has another size than it should.

        Writing to the array changes this view of the file, and not the file.
        A mapping past the end of a file would stop the process when it is read.
        """
        self.write_held()
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
        return np.memmap(path, dtype, "c", shape=shape)

    def check_rows(self) -> None:
        """Refuse row files that are not what was written to them, byte for byte."""
        self.write_held()
        for path, expected in zip(self.paths[1:], self._row_sums, strict=True):
            found = 0
            with open(path, "rb", buffering=0) as file:
                while chunk := file.read(_CHUNK):
                    found = zlib.crc32(chunk, found)
            if found != expected:
                raise StoreError(f"{_lost(path)} is damaged: its checksum does not match: {_GO_ON}")

    def recover(self) -> list[Frame]:
        """Return all whole frames, and cut off what a call that nobody heard of left behind them."""
        scan = self._scan(check_rows=True)
        self._refuse_damage(scan)
        os.ftruncate(self._events, scan.events_end)
        for descriptor, size in zip(self._files[1:], self._shares(scan.row_bytes), strict=True):
            os.ftruncate(descriptor, size)
        self.sync()
        if self._version == 1:
            self._rewrite(scan)
        return scan.frames

    def _rewrite(self, scan: _Scan) -> None:
        """Write the first version's events again with the checksums of this one."""
        events, self._version = self.paths[0], 2
        parts = [_HEADER.pack(_MAGIC, _LAYOUTS[self.layout], _DTYPES[self.dtype.name])]
        for head, payload in scan.to_rewrite:
            parts.append(
                self._frame(head.kind, head.count, head.late, head.rows_crc, head.row_bytes, payload)
            )
        new = events.with_name(_NEW + events.name)
        new.unlink(missing_ok=True)
        descriptor = files.create_private(new, append=True, exclusive=True)
        try:
            files.write_all(descriptor, b"".join(parts))
            files.sync(descriptor)
            os.replace(new, events)
            files.sync_directory(events.parent)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(self._events)
        self._events = self._files[0] = descriptor

    def frames(self, rounds: int) -> list[Frame]:
        """Return all frames of a live policy, which played `rounds` rounds; their rows are not looked at."""
        scan = self._scan(check_rows=False)
        if scan.torn:
            scan.damaged = self.paths[:1]  # nothing was cut off: the process that wrote it is still here
        self._refuse_damage(scan)
        if scan.rounds != rounds:
            raise StoreError(
                f"the store's file {self.paths[0].name!r} has {scan.rounds} rounds instead of the {rounds} "
                f"that were played: put it back as it was"
            )
        return scan.frames

    # Reading: is what can't be read a call that was cut off, or damage?

    def _scan(self, *, check_rows: bool) -> _Scan:
        """Read frames until one is not whole.

        A call that was cut off leaves the first part of its bytes, or all of them with blocks of zeros where
        the disk was never written, and nothing after it (rows may be missing for several calls where syncs
        are grouped). Anything else is damage.
        """
        self.write_held()
        scan = _Scan()
        with open(self.paths[0], "rb") as events:
            rows = [open(path, "rb") for path in self.paths[1:]] if check_rows else []  # noqa: SIM115
            sums = [0] * len(rows)
            try:
                events.seek(_HEADER.size)
                while head := self._read_head(events, scan):
                    payload = self._read_payload(events, head, scan)
                    if payload is None or not self._read_rows(rows, sums, head, events, scan):
                        break
                    records = np.frombuffer(payload, _RECORDS[head.kind])
                    if self._version == 1:
                        scan.to_rewrite.append((head, payload))
                    scan.frames.append(
                        Frame(
                            records if head.kind == _ROUNDS else None,
                            records if head.kind == _REWARDS else None,
                            head.late,
                            records if head.kind == _TIMES else None,
                        )
                    )
                    scan.events_end = events.tell()
                    scan.row_bytes += head.row_bytes
            finally:
                for file in rows:
                    file.close()
        if check_rows:
            self._row_sums = sums
        return scan

    def _read_head(self, events: IO[bytes], scan: _Scan) -> _Head | None:
        raw = events.read(_FRAME.size)
        if not raw:
            return None
        if len(raw) < _FRAME.size:
            scan.torn = True
            return None
        head = _Head.unpack(raw)
        sound = self._version == 1 or zlib.crc32(raw[:-4]).to_bytes(4, "little") == raw[-4:]
        if sound and head.kind in _RECORDS:
            return head
        self._judge(scan, events, scan.events_end)
        return None

    def _read_payload(self, events: IO[bytes], head: _Head, scan: _Scan) -> bytes | None:
        size = head.count * _RECORDS[head.kind].itemsize
        end = _END if self._version > 1 else b""
        if self._size(events) - events.tell() < size + len(end):
            # Cut off in the first version's files, unless the number of records is what is damaged.
            scan.torn = self._version > 1 or not any(
                True for _ in self._frames_after(events, scan.events_end)
            )
            scan.damaged = [] if scan.torn else self.paths[:1]
            return None
        payload = events.read(size)
        if not head.fits(payload) or events.read(len(end)) != end:
            self._judge(scan, events, scan.events_end)
            return None
        return payload

    def _read_rows(
        self, rows: Sequence[IO[bytes]], sums: list[int], head: _Head, events: IO[bytes], scan: _Scan
    ) -> bool:
        if not rows or not head.row_bytes:
            return True
        shares, starts = self._shares(head.row_bytes), [file.tell() for file in rows]
        parts = [file.read(share) for file, share in zip(rows, shares, strict=True)]
        found = 0
        for part in parts:
            found = zlib.crc32(part, found)
        short = [len(part) < share for part, share in zip(parts, shares, strict=True)]
        if found == head.rows_crc and not any(short):
            sums[:] = [zlib.crc32(part, known) for part, known in zip(parts, sums, strict=True)]
            return True
        last = events.tell() == self._size(events)
        unwritten = any(short) or any(
            _zeros_to_the_end(file, start, least=_BLOCK) or _only_zeros(file, start)
            for file, start in zip(rows, starts, strict=True)
        )
        if unwritten and (last or not head.synced):
            scan.torn = True
        else:
            scan.damaged = self.paths[1:]
        return False

    def _judge(self, scan: _Scan, events: IO[bytes], at: int) -> None:
        if _zeros_to_the_end(events, at, least=1):
            scan.torn = True
        else:
            scan.damaged = self.paths[:1]

    def _refuse_damage(self, scan: _Scan) -> None:
        if not scan.damaged:
            return
        with open(self.paths[0], "rb") as events:
            later = sum(
                head.count for head in self._frames_after(events, scan.events_end) if head.kind == _ROUNDS
            )
        concerned = f"at least {later}"
        if self.layout == "dense":
            stored = self.paths[1].stat().st_size // (self.dim * self.dtype.itemsize)
            concerned = str(max(later, stored - scan.rounds))
        stem = self.paths[0].name.removesuffix(".events")
        raise StoreError(
            f"the store's file {_names(scan.damaged)} is damaged: {concerned} rounds of the open episode, "
            f"and whatever rewards came from there on, are concerned; the {scan.rounds} rounds before are "
            f"whole. "
            f"{_way_out(stem)}"
        )

    def _frames_after(self, events: IO[bytes], at: int) -> Iterator[_Head]:
        """Yield the heads of whole frames from some place on; frames begin at multiples of 8 bytes."""
        events.seek(at)
        data, at = events.read(), 0
        end = _END if self._version > 1 else b""
        while at + _FRAME.size <= len(data):
            head = _Head.unpack(data[at : at + _FRAME.size])
            if head.kind in _RECORDS:
                stop = at + _FRAME.size + head.count * _RECORDS[head.kind].itemsize
                payload, mark = data[at + _FRAME.size : stop], data[stop : stop + len(end)]
                if stop <= len(data) and mark == end and head.fits(payload):
                    yield head
                    at = stop + len(end)
                    continue
            at += 8

    @staticmethod
    def _size(file: IO[bytes]) -> int:
        return os.fstat(file.fileno()).st_size

    def _shares(self, row_bytes: int) -> list[int]:
        """Return each row file's part of the row bytes: columns take 4 bytes where values take an item."""
        if self.layout == "dense":
            return [row_bytes]
        values = row_bytes // (4 + self.dtype.itemsize)
        return [4 * values, self.dtype.itemsize * values]

    def close(self) -> None:
        """Close the files."""
        while self._files:
            os.close(self._files.pop())

    def wipe(self) -> None:
        """Overwrite the files with zeros, and remove them."""
        self.close()
        for path in self.paths:
            files.wipe(path)

    def unlink(self) -> None:
        """Remove the files: the episode's rows are gone."""
        self.close()
        for path in self.paths:
            path.unlink(missing_ok=True)


def _zeros_to_the_end(file: IO[bytes], start: int, *, least: int) -> bool:
    """Whether a file ends in `least` zeros or more, from `start` or the beginning of a later block on."""
    file.seek(start)
    data = file.read()
    zeros_from = start + len(data.rstrip(b"\0"))
    if zeros_from > start:
        zeros_from = -(-zeros_from // _BLOCK) * _BLOCK
    return start + len(data) - zeros_from >= least


def _only_zeros(file: IO[bytes], start: int) -> bool:
    """Whether a file has zeros alone from `start` on: its size was on disk before its contents."""
    file.seek(start)
    data = file.read()
    return bool(data) and not data.strip(b"\0")


def _lost(path: Path) -> str:
    return f"the store's file {path.name!r}, with rows of the open episode,"


def _way_out(stem: str) -> str:
    return f"Put it back as it was, or remove all of {stem}.* to go on without that episode's rounds"


def _names(paths: Sequence[Path] | dict[Path, int]) -> str:
    return " or ".join(repr(path.name) for path in paths)


def _row_files(directory: Path, stem: str) -> list[Path]:
    wanted = {*_paths(directory, stem, "dense")[1:], *_paths(directory, stem, "csr")[1:]}
    return sorted(path for path in wanted if path.exists())


def _paths(directory: Path, stem: str, layout: str) -> list[Path]:
    kinds = ("events", "rows") if layout == "dense" else ("events", "columns", "values")
    return [directory / f"{stem}.{kind}" for kind in kinds]
