"""Means and sizes of columns, from which rows get their map, and when it is settled. Public.

Sizes are upper estimates, and once they are known well the map is frozen: sizes that are learned from rows
that were cut would make columns larger, cut rows more, and so on.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fliphat.fit.dense.known import KnownLinear
from fliphat.fit.dense.parts import Released

__all__ = ["learned", "shrunk", "stale"]

_Floats = npt.NDArray[np.float64]


def learned(
    known: KnownLinear, released: Released, rows: int, mu: float
) -> tuple[KnownLinear, _Floats, float]:
    """Return what is known with an episode's columns: a new map, settled if they are known well enough.

    Also the episode's own means, in units of ``v``, and the noise in them.
    """
    constants, d = known.constants, known.dim
    unit = known.ball / ((2**15 - 1) * rows)
    above, below = released.values.reshape(2, d) * unit
    noise = math.sqrt(2) * float(released.noise[0]) * unit
    mean, size = above - below, above + below
    # Of a Gaussian column, whose mean absolute value is sqrt(2 / pi) standard deviations.
    variance = np.pi / 2 * (size**2 - noise**2) - (mean**2 - noise**2)
    weights = 1 / (known.size * noise) ** 2
    spread_weights = 1 / (known.size**2 * (3 * noise + 2 * noise**2)) ** 2
    known = replace(
        known,
        means=known.means + weights * (known.center + known.size * mean),
        mean_weights=known.mean_weights + weights,
        spreads=known.spreads + spread_weights * known.size**2 * variance,
        spread_weights=known.spread_weights + spread_weights,
    )
    center, _ = shrunk(known.means / known.mean_weights, 1 / known.mean_weights)
    raw = known.spreads / known.spread_weights
    # With few columns noise can hide that they are there: too small a size would cut nearly all rows.
    error = math.hypot(*known.spread_weights**-0.5) / d
    common = max(float(raw.mean()) + constants.common_upper * error, 0.01)
    found, doubt = shrunk(raw, 1 / known.spread_weights, common)
    upper = np.maximum(found + constants.upper * np.sqrt(doubt), constants.smallest_size * common)
    sizes = np.sqrt(upper) ** constants.power * math.sqrt(common) ** (1 - constants.power)
    variances = np.maximum(found, 0.0) / sizes**2
    ball = constants.ball * math.sqrt(min(max(float(variances.sum()), 0.2 * d), d))
    doubt_of_means = 2 * ball / (mu * math.sqrt(constants.column_share) * known.rows)
    settled = known.episodes if doubt_of_means <= constants.column_noise else 0
    moved = replace(
        known,
        center=center,
        size=sizes,
        ball=ball,
        variances=np.maximum(variances, 0.02),
        settled=settled,
    )
    return moved, mean, noise


def stale(known: KnownLinear, mean: _Floats, noise: float) -> bool:
    """Return whether rows are so far from the map's center that it must be learned again.

    Parameters
    ----------
    mean : ndarray, shape (d,)
        Of rows, in units of the map; `noise` is the standard deviation of the noise in an entry.
    """
    # Beyond what noise alone reaches once in some thousand releases, with one column or with many.
    error = noise**2 * (known.dim + 5 * math.sqrt(known.dim) + 8)
    return float(mean @ mean) - error > known.constants.stale * known.ball**2


def shrunk(found: _Floats, noise_squared: _Floats, towards: float | None = None) -> tuple[_Floats, _Floats]:
    """Return numbers without the part of their spread that noise explains, and what doubt is left."""
    if towards is None:
        towards = float(np.mean(found))
    spread = max(float(np.mean((found - towards) ** 2 - noise_squared)), 0.0)
    kept = spread / (spread + noise_squared + 1e-300)
    return towards + (found - towards) * kept, kept * noise_squared
