"""Rounds as the tables have them: rows as bytes, their checksums, and an episode made of them again."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.settings import EngineSettings
from fliphat.policies.engine.age import Ages
from fliphat.policies.engine.episode import AWAITED, NOT_LEARNED, NOT_LEARNED_CAME, Episode
from fliphat.policies.engine.rows import ChosenRows, RowStore, SparseChosen

__all__ = ["ROUND", "append", "contents_checksum", "packed", "row_checksum"]

#: Columns of a round, in the order of its checksum.
ROUND: Final = "round, id, learned, sparse, attempt, played, owner, columns, numbers"

_PACKED: Final = struct.Struct("<qqqqqdqqq")


def packed(rows: ChosenRows, dtype: str) -> list[tuple[bytes | None, bytes]]:
    """Return the columns (None of dense rows) and the numbers of each row, in bytes."""
    stored = np.dtype(dtype).newbyteorder("<")
    if not isinstance(rows, SparseChosen):
        whole, width = rows.astype(stored, copy=False).tobytes(), rows.shape[1] * stored.itemsize
        return [(None, whole[at : at + width]) for at in range(0, len(whole), width)]
    columns, values = rows.columns.astype("<i4").tobytes(), rows.values.astype(stored, copy=False).tobytes()
    ends = np.cumsum(rows.lengths, dtype=np.int64).tolist()
    return [
        (columns[4 * begin : 4 * end], values[stored.itemsize * begin : stored.itemsize * end])
        for begin, end in zip([0, *ends[:-1]], ends, strict=True)
    ]


def contents_checksum(columns: bytes | None, numbers: bytes) -> int:
    """Return the checksum of a row, whichever round it is of: a server gives rounds their numbers."""
    return zlib.crc32(numbers, zlib.crc32(columns or b""))


def row_checksum(
    number: int,
    identity: int,
    learned: int,
    sparse: int,
    attempt: int,
    played: float | None,
    owner: bytes | None,
    columns: bytes | None,
    numbers: bytes | None,
) -> int:
    """Return the checksum of a whole round; packed, because every round has one."""
    parts = (owner or b"", columns or b"", numbers or b"")
    crc = zlib.crc32(
        _PACKED.pack(number, identity, learned, sparse, attempt, played or 0.0, *map(len, parts))
    )
    return zlib.crc32(parts[2], zlib.crc32(parts[1], zlib.crc32(parts[0], crc)))


def append(
    episode: Episode,
    part: Sequence[Any],
    settings: EngineSettings,
    new_rows: Callable[[str], RowStore],
    ages: Ages | None,
) -> None:
    """Append rounds to an episode, each its columns and the code of its reward (None if none came).

    Without `ages` ids and times do not matter: the rounds are those of many workers, and are only fitted.
    """
    if episode.rows is None:
        episode.rows = new_rows("csr" if part[0][3] else "dense")
    episode.rows.put(episode.filled, _unpacked(part, settings, episode.rows.layout == "csr"))
    codes = np.array([_code(bool(one[2]), one[9]) for one in part])
    if ages is None:
        episode.append(len(part), part[0][0], codes)
        return
    begin = 0
    for end in range(1, len(part) + 1):
        if end < len(part) and part[end][1] == part[end - 1][1] + 1:
            continue
        run = part[begin:end]
        owners = [bytes(one[6]) for one in run] if run[0][6] is not None else None
        for offset, one in enumerate(run):
            if one[5] is not None and ages.now() is not None:
                episode.note(ages, one[5], offset)
        episode.append(len(run), run[0][1], codes[begin:end], owners)
        begin = end


def _code(learned: bool, reward: float | None) -> float:
    if learned:
        return AWAITED if reward is None else reward
    return NOT_LEARNED if reward is None else NOT_LEARNED_CAME


def _unpacked(part: Sequence[Any], settings: EngineSettings, sparse: bool) -> ChosenRows:
    """Return rows of whatever layout each was played in, in one; one without contents is zeros."""
    stored, width = np.dtype(settings.dtype).newbyteorder("<"), settings.row_width
    if not sparse and not any(one[3] for one in part):
        nothing = bytes(width * stored.itemsize)
        whole = b"".join(one[8] or nothing for one in part)
        return np.frombuffer(whole, stored).reshape(len(part), width)
    rows = []
    for one in part:
        values = np.frombuffer(one[8] or b"", stored)
        if one[3]:
            rows.append((np.frombuffer(one[7] or b"", "<i4"), values))
        else:
            (kept,) = np.nonzero(values)
            rows.append((kept.astype("<i4"), values[kept]))
    if not sparse:
        dense: npt.NDArray[Any] = np.zeros((len(rows), width), stored)
        for row, (columns, values) in zip(dense, rows, strict=True):
            row[columns] = values
        return dense
    lengths = np.array([len(columns) for columns, _ in rows], np.uint32)
    return SparseChosen(lengths, *(np.concatenate(every) for every in zip(*rows, strict=True)))
