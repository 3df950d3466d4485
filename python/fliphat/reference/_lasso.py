"""Twin of the Lasso's coordinate descent."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def lasso(
    gram: npt.NDArray[np.float64],
    correlations: npt.NDArray[np.float64],
    penalty: float,
    *,
    start: npt.NDArray[np.float64] | None = None,
    tolerance: float = 1e-4,
    most_sweeps: int = 1000,
) -> npt.NDArray[np.float64]:
    """Minimise ``w'Gw/2 - c'w + penalty * sum(|w|)``, one coordinate after the other."""
    weights = np.zeros(len(correlations)) if start is None else np.array(start, np.float64)
    slopes = correlations - gram @ weights
    for _ in range(most_sweeps):
        signs = np.sign(weights)
        broken = np.where(weights == 0, np.abs(slopes) - penalty, np.abs(slopes - penalty * signs))
        if broken.max() <= tolerance * penalty:
            break
        for j in range(len(weights)):
            if gram[j, j] > 0:
                pull = slopes[j] + gram[j, j] * weights[j]
                new = np.sign(pull) * max(abs(pull) - penalty, 0.0) / gram[j, j]
                slopes -= (new - weights[j]) * gram[j]
                weights[j] = new
    return weights
