"""About how long a policy takes on a table, from public sizes: before it is started, not after minutes."""

from __future__ import annotations

import math
from typing import Final

from fliphat.lab.baselines.baseline import RefitTimes

#: Floating-point operations a second of one core, in matrix products and factorisations.
_SPEED: Final = 1e10
#: Values of contexts that a fit, and a round's bookkeeping, go through in a second.
_VALUES: Final = 1.5e8


def seconds(policy: str, rows: int, arms: int, columns: int) -> float:
    """Return about how long one run of a policy takes, within a factor of five on one core of today."""
    scanned = rows * arms * columns / _VALUES
    if policy == "LinUCB":
        times, at, fits = RefitTimes(200), 0, 0
        while at < min(rows, 4000):
            at, fits = times.after(at), fits + 1
        fits += max(0, rows - 4000) // 200
        used = min(rows, columns)
        work = (
            3 * fits * used**3 + 3 * rows * used**2 + (4 * columns * rows**2 / arms if columns > rows else 0)
        )
        return scanned + arms * work / _SPEED + 2e-4 * fits
    if policy == "PrivateLinear":
        # A factorisation an arm and episode, and random draws of its coefficients.
        episodes = max(1.0, math.log(max(rows, 60) / 30) / math.log(1.25))
        return 3 * scanned + episodes * (0.01 + arms * columns**3 / _SPEED)
    return (4 * scanned + 0.004 * max(1.0, math.log2(rows))) if policy == "FLIPHAT" else 0.01 * scanned + 1e-3
