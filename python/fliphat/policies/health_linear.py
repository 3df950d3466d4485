"""Signs that a dense policy does not learn, from what is known after its releases. Public numbers alone."""

from __future__ import annotations

from typing import Final

import numpy as np

from fliphat.fit.dense import DenseSettings, KnownLinear

__all__ = ["linear_findings"]

#: Mean square of contexts, where 1 is that of `context_norm`, below which most of a ball is empty.
_SHORT: Final = 0.002


def linear_findings(known: KnownLinear, settings: DenseSettings) -> list[str | None]:
    """Return a sentence for each sign of trouble, None where there is none."""
    return [_short(known, settings)]


def _short(known: KnownLinear, settings: DenseSettings) -> str | None:
    moments = known.moments
    if not len(moments.rows):
        return None
    # Second moments are about the map's center, and rows that short are not cut.
    center = known.center
    mean = known.arms.sums[:, known.dim + 1 : -1].sum(axis=0) / known.arms.total
    squares = np.diag(moments.sums) / moments.total * known.size**2 + center * (2 * mean - center)
    noise = 2 * float(moments.noise) / moments.total**2 * float((known.size**4).mean())
    doubt = (noise / known.dim) ** 0.5
    size = max(float(squares.mean()), 0.0)
    if size + 2 * doubt > _SHORT:
        return None
    length = settings.context_norm * size**0.5
    return (
        f"contexts are about {length:.2g} long, and context_norm is {settings.context_norm:g}: give it as a "
        f"length that few contexts pass, or noise hides them"
    )
