"""A support that grows: few of many columns are public, and more are picked. Public: nothing here sees rows.

Arms' constants are known from the start. An episode whose support has room picks some columns more by scores
that add up what all arms say of a column (``rust/core/src/private/candidates.rs``): a row has one arm, so K
arms cost what one does. Then it releases the vector of all columns that are public now. What was released of
the others goes on; those that do not stand out of noise make room when columns are picked again.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.dense.known import KnownLinear, Weighted
from fliphat.fit.dense.parts import RADIUS
from fliphat.privacy.priced import PickNoise

__all__ = ["PICKED", "clip", "explained", "fits_picks", "grown", "kept_columns", "pick_template"]

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]

#: Stands for columns that are not picked yet.
PICKED: Final = -1

#: By how much one row moves a score, at most.
PICK_SENSITIVITY: Final = 2**16

#: A clip, in standard deviations of a reward times the size of a column; how many of them a typical residual
#: is, which even the largest one of rewards in a range exceeds only by so much.
_CLIP: Final = 1.3
_TYPICAL: Final = 0.8


def pick_template(count: int, share: float, digits: int) -> PickNoise:
    """Return picks that have `share` of a squared size of ``2**-digits``, squared."""
    return PickNoise(PICK_SENSITIVITY, math.ceil(PICK_SENSITIVITY * math.sqrt(count / share) * 2**digits), count)


def fits_picks(count: int, scale: int, charged: PickNoise | None) -> bool:
    """Return whether picks cost no more than those that were charged."""
    return count == 0 or (charged is not None and count <= charged.count and scale >= charged.scale)


def kept_columns(known: KnownLinear, room: int, least: float) -> _Integers:
    """Return which public columns stay, at most `room`: those that stand out of noise by so many deviations."""
    arms = max(known.groups, 1)
    clear = known.evidence > arms + least * math.sqrt(2 * arms)
    order = np.argsort(-known.evidence, kind="stable")
    return np.sort(order[clear[order]][:room])


def grown(known: KnownLinear, kept: _Integers, new: _Integers) -> KnownLinear:
    """Return what is known with some of its columns, and new ones behind them of which nothing is known.

    The map of rows is to be learned again: totals begin anew. What was released of columns that stay stays.
    """
    more, before, d = len(new), known.dim, len(kept)

    def longer(values: _Floats, filled: float = 0.0) -> _Floats:
        return np.append(values[kept], np.full(more, filled))

    def typical(values: _Floats, else_: float) -> float:
        return float(np.mean(values[kept])) if d else else_

    def both(values: _Floats) -> _Floats:
        """Along the last axis: columns' products, a level, columns and a number of rows."""
        pad = [(0, 0)] * (values.ndim - 1) + [(0, more)]
        parts = [
            np.pad(values[..., kept], pad),
            values[..., [before]],
            np.pad(values[..., before + 1 + kept], pad),
            values[..., [-1]],
        ]
        return np.concatenate(parts, axis=-1)

    def levels(values: _Floats) -> _Floats:
        pad = [(0, 0)] * (values.ndim - 1) + [(0, more)]
        return np.concatenate([np.pad(values[..., kept], pad), values[..., [-1]]], axis=-1)

    arms = replace(known.arms, sums=both(known.arms.sums), noise=both(known.arms.noise))
    ball = known.ball * math.sqrt((d + more) / max(d, 1))
    if not d:
        ball = max(known.constants.first_ball * math.sqrt(more), 1.0)
    return replace(
        known,
        columns=np.concatenate([known.columns[kept], new]),
        since=longer(known.since, len(known.arms.rows)),
        center=longer(known.center),
        size=longer(known.size, typical(known.size, 1.0)),
        ball=ball,
        variances=longer(known.variances, typical(known.variances, 1.0)),
        means=longer(known.means),
        mean_weights=longer(known.mean_weights),
        spreads=longer(known.spreads),
        spread_weights=longer(known.spread_weights),
        evidence=longer(known.evidence),
        arms=arms,
        moments=Weighted.none((d + more, d + more), ()),
        squares=Weighted.none((known.groups, d + more + 1), ()),
        settled=0,
        chains={},
        coefficients=levels(known.coefficients),
        draws=levels(known.draws),
    )


def clip(known: KnownLinear, scale: float) -> float:
    """Return the clip of a value times a residual, for columns of size `scale` and rewards from -1/2 to 1/2.

    Rare large residuals carry what there is to learn of rare rewards: they are not cut.
    """
    low, high = known.reward_range
    spread, middle = 0.5, 0.0
    if known.earned.whole is not None:
        spread = min(known.earned.whole.spread() / (high - low), 0.5)
        mean = (known.earned.whole.reward.mean - (low + high) / 2) / (high - low)
        middle = min(max(mean, -0.5), 0.5)
    return scale * max(_CLIP * spread, 0.5 + abs(middle) - _TYPICAL * spread)


def explained(known: KnownLinear, kept: _Integers, groups: int) -> _Floats:
    """Return what columns that stay explain: for each arm a weight of their integers each, and a level."""
    weights = np.zeros((groups, len(kept) + 1))
    found = grown(known, kept, np.zeros(0, np.int64))
    weights[: known.groups] = found.coefficients
    weights[:, :-1] *= found.ball / RADIUS
    return weights
