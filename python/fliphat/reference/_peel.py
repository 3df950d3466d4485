"""Float twins of Peeling. INSECURE: for races and for checks of distributions only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def peel(
    v: npt.NDArray[np.int64],
    s: int,
    *,
    pick_scale: float,
    value_scale: float,
    rng: np.random.Generator,
    mechanism: str = "laplace",
    value_noise: str = "rounded_gaussian",
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Peel with float noise: INSECURE.

    The exponential mechanism by the Gumbel trick: one draw a coordinate serves all picks, because the s
    largest of ``|v| / pick_scale`` + Gumbel noise, in order, are distributed as s picks one after the other.
    """
    scores = np.abs(v).astype(np.float64)
    if mechanism == "exponential":
        scores += rng.gumbel(scale=pick_scale, size=len(v))
        largest = np.argpartition(-scores, s - 1)[:s] if 0 < s < len(v) else np.arange(len(v))[: s or 0]
        support = largest[np.argsort(-scores[largest])]
    else:
        support = np.empty(s, np.int64)
        for pick in range(s):
            support[pick] = (scores + rng.laplace(scale=pick_scale, size=len(v))).argmax()
            scores[support[pick]] = -np.inf
    if value_noise != "laplace":
        return support, v[support] + rng.normal(scale=value_scale, size=s)
    return support, v[support] + rng.laplace(scale=value_scale, size=s)
