"""Kernels of this package's own fits, and the noise of their releases: not public, may change at any time."""

from typing import TypeAlias

from fliphat import _native
from fliphat.kernels._ball import arm_sums as arm_sums
from fliphat.kernels._ball import ball_gradient as ball_gradient
from fliphat.kernels._columns import pick_columns as pick_columns
from fliphat.kernels._kalman import KalmanRule as KalmanRule
from fliphat.kernels._kalman import KalmanStep as KalmanStep
from fliphat.kernels._kalman import kalman_step as kalman_step
from fliphat.kernels._relative import relative_gradient as relative_gradient
from fliphat.kernels._relative import row_numbers as row_numbers
from fliphat.kernels._relative import settled_sums as settled_sums
from fliphat.kernels._relative import shifted_gradient as shifted_gradient
from fliphat.kernels._totals import TotalPart as TotalPart
from fliphat.kernels._totals import release_totals as release_totals

#: Noise of a release, in three types of which only the first protects anybody: bits of the operating system;
#: the same samplers on bits that anyone can repeat, for simulation; and one that draws nothing and keeps what
#: it was asked for, for the audit.
Noise: TypeAlias = _native.SecureNoise | _native.SeededNoise | _native.RecordingNoise


def noise_of(seed: int | None, stream: int) -> Noise:
    """Return noise of the operating system, or that of a seed, which protects nobody."""
    return _native.SecureNoise() if seed is None else _native.SeededNoise(seed, stream)
