"""Twin of the crate's logistic function: the same IEEE operations in the same order, so the same bits."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

_SMALLEST_EXPONENT = -700.0
_LN2_HIGH = 6.931471803691238e-1
_LN2_LOW = 1.9082149292705877e-10


def sigmoid(z: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return ``1 / (1 + exp(-z))``; NaN gives NaN."""
    exponent = -np.abs(z)
    with np.errstate(invalid="ignore"):
        tiny = exponent < _SMALLEST_EXPONENT
        x = np.where(tiny, 0.0, exponent)
        twos = np.rint(x * math.log2(math.e))
        rest = (x - twos * _LN2_HIGH) - twos * _LN2_LOW
        series = np.full_like(rest, 1.0 / math.factorial(13))
        for k in range(12, -1, -1):
            series = series * rest + 1.0 / math.factorial(k)
        small = np.where(tiny, 0.0, np.ldexp(series, np.nan_to_num(twos).astype(np.int64)))
        return np.where(z < 0, small, 1.0) / (1.0 + small)
