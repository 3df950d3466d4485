"""NumPy twin of the price of a sequence of releases (without the float error that the kernel adds)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

__all__ = ["price"]

_Values = NDArray[Any]
_REACH = 12.0


def price(
    epsilon: float,
    menu: Sequence[Sequence[tuple[str, float]]],
    *,
    step: float,
    below: int,
    above: int,
    users: int = 1,
) -> float:
    """Return delta at `epsilon` of releases in a fixed order, on a grid of losses."""
    losses = step * np.arange(-below, above + 1)
    left: list[_Values] = []
    for rows in range(1, users + 1):
        candidates = []
        for fit in menu:
            for entering in range(1, rows + 1):
                part = [(kind, size * entering / users) for kind, size in fit if size > 0]
                if entering == rows:
                    if not part:
                        candidates.append(np.maximum(0.0, -np.expm1(epsilon - losses)))
                        continue
                    value = _alone(part.pop(), epsilon - losses)
                else:
                    value = left[rows - entering - 1]
                for kind, size in reversed(part):
                    value = _pick(value, size, step) if kind == "pick" else _gaussian(value, size, step)
                candidates.append(value)
        left.append(np.max(candidates, axis=0))
    return float(max(value[below] for value in left))


def _alone(event: tuple[str, float], epsilon: _Values) -> _Values:
    kind, size = event
    if kind == "gaussian":
        return _gaussian_delta(epsilon, size)
    inside = np.clip(epsilon, 0, size)
    above = (np.exp(size / 2) - np.exp(inside / 2)) ** 2 / np.expm1(size)
    distance = np.expm1((size + np.clip(epsilon, -size, 0)) / 2)
    under = -np.expm1(np.minimum(epsilon, 0)) + distance**2 / np.expm1(size)
    return cast(_Values, np.where(epsilon >= 0, above, under))


def _gaussian_delta(epsilon: _Values, mu: float) -> _Values:
    # When it is used: SciPy's special functions take longer to import than all of fliphat.
    from scipy.special import log_ndtr, ndtr

    tail = np.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2))
    return cast(_Values, ndtr(mu / 2 - epsilon / mu) - tail)


def _extended(value: _Values, count: int, step: float) -> _Values:
    """Constant below, the line in exp(-loss) to 1 above."""
    line = 1 - (1 - value[-1]) * np.exp(-step * np.arange(1, count + 1))
    return np.concatenate([np.full(count, value[0]), value, line])


def _pick(value: _Values, eta: float, step: float) -> _Values:
    """Pieces of the adversary's choice t end where either point meets a node."""
    cells = max(int(np.ceil(eta / step - 1e-9)), 1)
    nodes = _extended(value, cells + 1, step)
    growth, width = np.exp(eta), -np.expm1(-step)
    ends = np.unique(np.clip(np.r_[step * np.arange(cells + 1), eta - step * np.arange(cells + 1)], 0, eta))
    ends = ends[np.diff(ends, prepend=-1.0) > 1e-9 * step]

    def at(losses: _Values) -> _Values:
        """Return the function at losses relative to each node, linear in x between nodes."""
        cell = np.floor(losses / step + 1e-9).astype(int)
        place = np.clip(-np.expm1(cell * step - losses) / width, 0, 1)
        low = np.take(nodes, np.arange(len(value)) + cells + 1 + cell)
        high = np.take(nodes, np.arange(len(value)) + cells + 2 + cell)
        return cast(_Values, low + (high - low) * place)

    def chord(t: _Values) -> _Values:
        q = np.expm1(t) / np.expm1(eta)
        return cast(_Values, (1 - q) * at(t) + q * at(t - eta))

    best = value.copy()
    for low, high in itertools.pairwise(ends):
        # On a piece the chord is B + A/u + D u with u = exp(-t): A and D from two slopes in u.
        (u0, u1), (first, second) = (
            np.exp([-low, -high]),
            (np.full(len(value), low), np.full(len(value), high)),
        )
        inner = 1e-9 * step
        a0, a1 = at(first + inner), at(second - inner)
        b0, b1 = at(first + inner - eta), at(second - inner - eta)
        slope_a, slope_b = (a0 - a1) / (u0 - u1), (b0 - b1) / (u0 - u1)
        top = (a0 - slope_a * u0) - (b0 - slope_b * u0)
        bottom = slope_b - growth * slope_a
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.sqrt(top / bottom)
        u = np.clip(np.where(np.isfinite(u), u, u0), u1, u0)
        best = np.maximum(best, np.maximum(chord(-np.log(u)), chord(second)))
    return np.minimum(best, 1.0)


def _gaussian(value: _Values, mu: float, step: float) -> _Values:
    reach = int(np.ceil((_REACH * mu + mu * mu) / step)) + 1
    nodes = _extended(value, reach + 1, step)[1:]
    at = _gaussian_delta(step * np.arange(-reach, reach + 1), mu)
    ramps = np.clip((np.exp(step) * at[:-1] - at[1:]) / np.expm1(step), 0, 1)
    increments = np.diff(nodes)
    count = len(value)
    beyond = (1 - nodes[2 * reach : 2 * reach + count]) * ramps[-1]
    return cast(_Values, nodes[:count] + np.convolve(increments, ramps[::-1], "valid")[:count] + beyond)
