"""Float twins of the secure Laplace. INSECURE: for races and for checks of distributions only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def laplace(scale: float, size: int | tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Draw float Laplace noise: INSECURE, which floats can occur gives the value away."""
    return rng.laplace(scale=scale, size=size)


def laplace_mechanism(
    values: npt.NDArray[np.float64], scale: float, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Add float Laplace noise: INSECURE, the textbook mechanism that Mironov's attack breaks."""
    noisy: npt.NDArray[np.float64] = values + rng.laplace(scale=scale, size=np.shape(values))
    return noisy
