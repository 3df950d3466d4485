"""Typical columns: mean and products of columns that were not picked, as far as they are known."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fliphat.fit.pursuit.constants import Tuning
from fliphat.fit.pursuit.known import KnownSparse

__all__ = ["averaged", "moments_of_typical", "typical_column", "typical_of_support"]

_Vector = npt.NDArray[np.float64]


def typical_column(known: KnownSparse, t: Tuning) -> tuple[float, float]:
    """Return e and c of columns that are not public: what was measured, as far as it is not noise."""
    x, product = known.context_size, (known.typical_product, known.typical_product_weight)
    found = _certain(known.typical_mean, known.typical_mean_weight, x * x, t)
    return found, _possible(_certain(*product, x**4, t), x)


def typical_of_support(known: KnownSparse, t: Tuning) -> tuple[float, float]:
    """Return the same of public columns: arms are chosen by them, which moves their means and products."""
    x, above = known.context_size, _above_diagonal(len(known.columns))
    # Precisions are of moments with a constant column of x, and not of 1.
    means, sure_means = known.moments[0, 1:], known.precision[0, 1:] * x * x
    products, sure_products = known.moments[1:, 1:][above], known.precision[1:, 1:][above]
    mean = averaged(
        known.typical_mean, known.typical_mean_weight, float(sure_means @ means), float(sure_means.sum())
    )
    product = averaged(
        known.typical_product,
        known.typical_product_weight,
        float(sure_products @ products),
        float(sure_products.sum()),
    )
    return _certain(*mean, x * x, t), _possible(_certain(*product, x**4, t), x)


@lru_cache(maxsize=256)
def _above_diagonal(k: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    return np.triu_indices(k, 1)


def averaged(mean: float, weight: float, more: float, sure: float) -> tuple[float, float]:
    """Return a mean with more values in it, and its precision.

    Of those values, `more` is their sum, each times its precision, and `sure` the sum of these.
    """
    total = weight + sure
    return (weight * mean + more) / total if total > 0 else 0.0, total


def _certain(value: float, weight: float, unit: float, t: Tuning) -> float:
    """Return a measured value drawn to zero by what may be noise in it."""
    drawn = value * weight / (weight + 1 / (t.typical_prior * unit))
    if drawn != 0:
        drawn *= max(0.0, 1 - t.typical_out**2 / (weight * drawn * drawn))
    return drawn


def _possible(product: float, x: float) -> float:
    """Return c where many columns of size x can have it among each other."""
    return min(max(product, -0.02 * x * x), 0.95 * x * x)


def moments_of_typical(m: int, x: float, mean: float, product: float) -> _Vector:
    """Return the second moments of the intercept's column and m - 1 typical ones."""
    moments = np.full((m, m), product)
    moments[0, :] = moments[:, 0] = mean * x
    np.fill_diagonal(moments, x * x)
    return moments
