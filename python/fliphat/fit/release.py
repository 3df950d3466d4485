"""Noise of a release, in three types of which only the first protects anybody.

`SecureNoise` takes bits of the operating system; `SeededNoise` is the same samplers on bits that anyone can
repeat, for simulation; `RecordingNoise` draws nothing and keeps what it was asked for, for the audit.
"""

from __future__ import annotations

from typing import TypeAlias

from fliphat import _native

__all__ = ["Noise", "noise_of"]

Noise: TypeAlias = _native.SecureNoise | _native.SeededNoise | _native.RecordingNoise


def noise_of(seed: int | None, stream: int) -> Noise:
    """Return noise of the operating system, or that of a seed, which protects nobody."""
    return _native.SecureNoise() if seed is None else _native.SeededNoise(seed, stream)
