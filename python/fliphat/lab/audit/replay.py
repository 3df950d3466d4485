"""Fits that a policy or a regressor made, recorded where they reach the kernel and made again many times.

Everything around a fit runs for real, once: rounds are played, rewards come, rows are kept, the plan is made
and the noise is calibrated. What the kernel was then asked to do is repeated natively with fresh noise, so
that millions of runs see the rows, flags, start and scales that the caller really uses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native
from fliphat.lab.audit.bounds import Counts
from fliphat.lab.audit.cases import Counter, View

__all__ = ["FitCall", "Recording", "recorded_fits", "replaying"]

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


@contextlib.contextmanager
def recorded_fits() -> Iterator[list[FitCall]]:
    """Record the private fits that reach the kernel; they run as always.

    For the audit's process alone: while it records, fits of other threads would be recorded too.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import kernels
    >>> public = dict(sparsity=1, iterations=1, step_size=1.0, l1_radius=1.0, clip=1.0)
    >>> with recorded_fits() as calls:
    ...     theta = kernels.niht(np.ones((3, 2)), np.ones(3), **public, pick_scale=9, value_scale=9)
    >>> rows, rewards, start, settings, present = calls[0]
    >>> len(calls), rows.shape
    (1, (3, 2))
    """
    calls: list[FitCall] = []
    fit = _native.niht_fit

    def recording(
        rows: Any,
        y: npt.NDArray[np.float64],
        start: npt.NDArray[np.float64],
        settings: _native.FitSettings,
        present: npt.NDArray[np.uint8] | None = None,
        threads: int | None = None,
        seeded: tuple[int, int] | None = None,
    ) -> Any:
        # Copies: the caller may use its memory again.
        flags = None if present is None else present.copy()
        calls.append((np.array(rows), y.copy(), start.copy(), settings, flags))
        return fit(rows, y, start, settings, present, threads, seeded)

    _native.niht_fit = recording
    try:
        yield calls
    finally:
        _native.niht_fit = fit


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
