"""Float twins of the secure Laplace. INSECURE: for races and for checks of distributions only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fliphat.kernels._laplace import mechanism_scale


def laplace(scale: float, size: int | tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Draw float Laplace noise: INSECURE, which floats can occur gives the value away."""
    return rng.laplace(scale=scale, size=size)


def laplace_mechanism(
    values: npt.ArrayLike,
    scale: float | None = None,
    *,
    epsilon: float | None = None,
    sensitivity: float | None = None,
    rng: np.random.Generator,
) -> npt.NDArray[np.float64]:
    """Add float Laplace noise: INSECURE, the textbook mechanism that Mironov's attack breaks."""
    clear = np.asarray(values, np.float64)
    noise = rng.laplace(scale=mechanism_scale(clear.size, scale, epsilon, sensitivity), size=clear.shape)
    noisy: npt.NDArray[np.float64] = clear + noise
    return noisy
