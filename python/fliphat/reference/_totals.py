"""Twin of totals that are released again and again: the secret is equal bit for bit, noise is NumPy's."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fliphat.kernels._totals import TotalPart

__all__ = ["TotalPart", "release_totals"]

_MAGIC = b"totals 1"


def release_totals(
    secret: bytes | None, parts: Sequence[TotalPart], rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], bytes]:
    """Add to totals in Python's integers, which have no end, and release them with normal noise, rounded."""
    held = {} if secret is None else _read(secret)
    released, kept = [], [_MAGIC]
    for part in parts:
        total = [part.weight * int(added) for added in part.added]
        if part.before[0]:
            releases, weight, sums = held[part.name]
            if (releases, weight) != part.before or len(sums) > len(total):
                raise ValueError("secret must hold the total of the last release")
            total = [a + b for a, b in zip(total, sums + [0] * (len(total) - len(sums)), strict=True)]
        noise = rng.normal(size=len(total)) * part.sigmas.astype(np.float64)
        released += [round(one / 2**part.shift + own) for one, own in zip(total, noise, strict=True)]
        if part.kept:
            kept.append(struct.pack("<4Q", part.name, part.before[0] + 1, part.weight, len(total)))
            kept += [one.to_bytes(16, "little", signed=True) for one in total]
    return np.array(released, np.int64), b"".join(kept)


def _read(secret: bytes) -> dict[int, tuple[int, int, list[int]]]:
    held, at = {}, len(_MAGIC)
    while at < len(secret):
        name, releases, weight, count = struct.unpack_from("<4Q", secret, at)
        at += 32
        sums = [
            int.from_bytes(secret[at + 16 * i : at + 16 * i + 16], "little", signed=True)
            for i in range(count)
        ]
        held[name] = (releases, weight, sums)
        at += 16 * count
    return held
