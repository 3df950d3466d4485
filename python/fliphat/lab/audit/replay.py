"""Fits that a policy or a regressor made, recorded by noise that draws nothing and made again many times.

Everything around a fit runs for real, once: rounds are played, rewards come, rows are kept, the plan is made
and the noise is calibrated. What :class:`RecordingNoise` kept of the fit is repeated natively with fresh
noise, so that millions of runs see the rows, flags, start and scales that the caller really uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native
from fliphat.lab.audit.bounds import Counts
from fliphat.lab.audit.cases import Counter, View

#: Rows, rewards, start, settings and which rewards count: what one call of the kernel was given.
FitCall = tuple[
    npt.NDArray[Any],
    npt.NDArray[np.float64],
    npt.NDArray[np.float64],
    _native.FitSettings,
    npt.NDArray[np.uint8] | None,
]

#: The fits of the two sides, and what is looked at.
Recording = tuple[list[FitCall], list[FitCall], list[View]]


def replaying(record: Callable[[], Recording]) -> Counter:
    """Return what counts the views of recorded fits, each made again in every run.

    Parameters
    ----------
    record : callable
        Plays and returns the fits of both sides and the views; called once, by the first count.
    """
    recording: list[Recording] = []

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        if not recording:
            recording.append(record())
        first, second, views = recording[0]
        if not (first and second):
            raise RuntimeError("no fit was recorded: the audit must be told how fits reach the kernel now")
        return _native.audit_fits((first, second), views, runs, threads, seed)

    return count
