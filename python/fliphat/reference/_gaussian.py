"""Float twin of the Gaussian release. INSECURE: for races and for checks of distributions only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def gaussian_release(
    values: npt.NDArray[np.int64], sigmas: npt.NDArray[np.int64] | int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Add rounded float Gaussian noise: INSECURE, from a seeded generator."""
    noisy: npt.NDArray[np.int64] = values + np.rint(rng.normal(0.0, sigmas, np.shape(values))).astype(
        np.int64
    )
    return noisy
