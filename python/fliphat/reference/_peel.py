"""Float twins of Peeling. INSECURE: for races and for checks of distributions only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fliphat.kernels import _units


def peel(
    v: npt.ArrayLike,
    s: int,
    *,
    pick_scale: float | None = None,
    value_scale: float | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    sensitivity: float | None = None,
    mechanism: str = "exponential",
    value_noise: str | None = None,
    rng: np.random.Generator,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Peel with float noise: INSECURE.

    The exponential mechanism by the Gumbel trick: one draw a coordinate serves all picks, because the s
    largest of ``|v| / pick_scale`` + Gumbel noise, in order, are distributed as s picks one after the other.
    """
    given = {"pick_scale": pick_scale, "value_scale": value_scale, "epsilon": epsilon, "delta": delta}
    how = {"sensitivity": sensitivity, "mechanism": mechanism, "value_noise": value_noise}
    points, unit, scales = _units.resolved(_units.numbers("v", v), s, **given, **how)  # type: ignore[arg-type]
    scores = np.abs(points).astype(np.float64)
    if mechanism == "exponential":
        scores += rng.gumbel(scale=scales.pick, size=len(points))
        largest = np.argpartition(-scores, s - 1)[:s] if 0 < s < len(points) else np.arange(len(points))[:s]
        support = largest[np.argsort(-scores[largest])]
    else:
        support = np.empty(s, np.int64)
        for pick in range(s):
            support[pick] = (scores + rng.laplace(scale=scales.pick, size=len(points))).argmax()
            scores[support[pick]] = -np.inf
    draw = rng.laplace if scales.value_noise == "laplace" else rng.normal
    noisy = points[support] + draw(scale=scales.value, size=s)
    return support, noisy if unit is None else noisy * unit
