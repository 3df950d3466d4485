"""Sums of rows cut to an l2 ball, for all columns and each arm, and what it costs to release them.

Private until :func:`release`: rows are moved and scaled by public numbers, one by one, cut to a ball, turned
into integers whose norm is checked in integers, and added exactly (:func:`fliphat.kernels.ball_gradient`,
:func:`fliphat.kernels.second_moments`). By how much replacing one row, its arm and its reward moves each part
of the vector, in l2 norm:

| part | what is added up | at most |
|---|---|---|
| gradient | ``(q, R)`` in the block of the row's arm; ``q`` in the ball of radius R | 2 R |
| columns | ``(q+, q-)``: what of the row is above zero and what is below, without the constant | sqrt 2 R |
| moments | ``q q'``, entries on the diagonal divided by sqrt 2 | R^2 |
| each | the same, in the block of the row's arm | R^2 |

*Gradient*: with the same arm the R stays and q moves by at most 2 R; with another arm two blocks move by
``(q, R)``, each of norm at most sqrt 2 R, together 2 R. So how often each arm was played costs nothing more.
*Columns*: no number in it is below zero, so ``|q - p|^2 = |q|^2 + |p|^2 - 2 q'p <= 2 R^2``. Means of columns
are the difference of both halves, with the noise that they would have alone; sizes, their sum, are free.
*Moments*: ``|q q' - p p'|_F^2 = |q|^4 + |p|^4 - 2 (q'p)^2 <= 2 R^4``; an entry off the diagonal is counted
twice in it and released once, so with half the weight on the diagonal R^4 is left. *Each*: the same with one
arm; with two, two blocks of at most ``R^4 / 2``.

A round without a reward counts as zeros in every part: its context is not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat import kernels
from fliphat.fit.draw import Drawn
from fliphat.privacy.priced import Part, PricedRelease, VectorNoise

__all__ = ["RADIUS", "SENSITIVITY_SQUARED", "ReleasedSums", "RowMap", "integer_sums", "noise_for", "release"]

#: Radius of the ball that rows' integers lie in.
RADIUS: Final = 2**15 - 1

#: Squared distance by which replacing one row moves a part of the vector.
SENSITIVITY_SQUARED: Final[Mapping[str, int]] = {
    "gradient": 4 * RADIUS**2,
    "columns": 2 * RADIUS**2,
    "moments": RADIUS**4,
    "each": RADIUS**4,
}

#: Parts of which the numbers on and above the diagonal are released.
_SYMMETRIC: Final = ("moments", "each")

#: Values of a block of rows that are moved and scaled, which are a copy: 32 MB.
_BLOCK: Final = 2**22

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowMap:
    """How a row becomes a vector: ``u = ((x - center) * inverse, 1)``, cut to the ball. Public.

    Attributes
    ----------
    center, inverse : ndarray, shape (d,)
    ball : float
        Largest norm of ``u``; a gradient's is half of it, for rewards from -1/2 to 1/2.
    """

    center: _Floats
    inverse: _Floats
    ball: float

    @property
    def width(self) -> int:
        """Columns with the constant behind them."""
        return len(self.center) + 1

    def moved(self, rows: npt.NDArray[Any]) -> _Floats:
        """Return rows without the constant, not yet cut; what floats can't hold is as large as they can."""
        with np.errstate(over="ignore", invalid="ignore"):
            moved = (rows.astype(np.float64) - self.center) * self.inverse
        largest = np.finfo(np.float64).max
        finite: _Floats = np.nan_to_num(moved, nan=0.0, posinf=largest, neginf=-largest)
        return finite


def integer_sums(
    rows: npt.NDArray[Any],
    slots: _Integers,
    rewards: _Floats,
    present: npt.NDArray[np.bool_],
    *,
    row_map: RowMap,
    groups: int,
    parts: tuple[str, ...],
) -> dict[str, _Integers]:
    """Return the sums of all parts, exact. Private.

    Parameters
    ----------
    rows : ndarray, shape (n, d)
    slots : ndarray of int64, shape (n,)
        Each row's arm, from 0 to ``groups - 1`` where `present`.
    rewards : ndarray, shape (n,)
        From -1/2 to 1/2; others are moved to the ends.
    present : ndarray of bool, shape (n,)
    """
    n, p = len(rows), row_map.width
    scale = RADIUS / row_map.ball
    sums: dict[str, _Integers] = {
        "gradient": np.zeros((groups, p + 1), np.int64),
        "columns": np.zeros((2, p - 1), np.int64),
        "moments": np.zeros((p, p), np.int64),
        "each": np.zeros((groups, p, p), np.int64),
    }
    sums = {name: sums[name] for name in parts}
    left = np.clip(np.where(present, rewards, 0.0), -0.5, 0.5)
    block = max(1, _BLOCK // p)
    for start in range(0, n, block):
        part = slice(start, start + block)
        moved, here, arms = row_map.moved(rows[part]), present[part], np.where(present, slots, 0)[part]
        found = kernels.ball_gradient(
            moved,
            left[part],
            arms,
            count=groups,
            radius=RADIUS,
            scale=2 * scale,
            one=2 * scale,
            present=here,
        )
        sums["gradient"][:, :p] += found
        sums["gradient"][:, p] += RADIUS * np.bincount(arms[here], minlength=groups)
        if "columns" in parts:
            sums["columns"] += _column_sums(moved, here, scale)
        if "moments" in parts:
            sums["moments"] += kernels.second_moments(
                moved, radius=RADIUS, scale=scale, one=scale, present=here
            )
        if "each" in parts:
            for arm in range(groups):
                sums["each"][arm] += kernels.second_moments(
                    moved, radius=RADIUS, scale=scale, one=scale, present=here & (arms == arm)
                )
    return sums


def _column_sums(moved: _Floats, present: npt.NDArray[np.bool_], scale: float) -> _Integers:
    """Return sums over rows of what is above zero and of what is below, one vector a row cut to the ball."""
    n, d = moved.shape
    halves = np.concatenate([np.maximum(moved, 0.0), np.maximum(-moved, 0.0)], axis=1)
    return kernels.ball_gradient(
        halves,
        np.ones(n),
        np.zeros(n, np.int64),
        count=1,
        radius=RADIUS,
        scale=scale,
        present=present,
    ).reshape(2, d)


def noise_for(shares: Mapping[str, float], cap: Fraction) -> dict[str, Part]:
    """Return noise for each part, which gets its share of ``mu^2 = cap``; shares add up to at most 1."""
    if not 0 < sum(Fraction(share) for share in shares.values()) <= 1:
        raise ValueError(f"shares must add up to at most 1, got {dict(shares)}")
    return {
        name: Part(
            SENSITIVITY_SQUARED[name],
            _root_up(Fraction(SENSITIVITY_SQUARED[name]) / (Fraction(share) * cap)),
        )
        for name, share in shares.items()
    }


def require_within(parts: Mapping[str, Part], claim: PricedRelease) -> None:
    """Refuse noise that costs more than the one Gaussian vector that the claim was priced for."""
    for name, part in parts.items():
        if part.sensitivity_squared < SENSITIVITY_SQUARED[name]:
            raise ValueError(
                f"{name} must be charged a squared sensitivity of {SENSITIVITY_SQUARED[name]}, got "
                f"{part.sensitivity_squared}"
            )
    (allowed,) = claim.noise
    assert isinstance(allowed, VectorNoise)
    spent = VectorNoise(*parts.values()).mu_squared
    if spent > allowed.mu_squared:
        raise ValueError(
            f"the noise costs mu^2 = {float(spent):.6g}, but the claim allows {float(allowed.mu_squared):.6g}"
        )


@dataclass(frozen=True, eq=False)
class ReleasedSums:
    """What an episode released, in the units of ``u``. Public.

    Attributes
    ----------
    gradient : ndarray, shape (groups, p)
        Sums of ``u`` times reward; `gradient_noise` is the standard deviation of each.
    counts : ndarray, shape (groups,)
        Rows of each arm that came with a reward; `count_noise`.
    moments : ndarray, shape (p, p), or None
        Sums of ``u u'``; `moment_noise` off the diagonal, sqrt 2 times that on it.
    each : ndarray, shape (groups, p, p), or None
        The same for each arm; `each_noise`.
    columns : ndarray, shape (2, p - 1), or None
        Sums of ``u`` without the constant where it is above zero, and of ``-u`` where it is below;
        `column_noise`.
    """

    gradient: _Floats
    gradient_noise: float
    counts: _Floats
    count_noise: float
    moments: _Floats | None
    moment_noise: float
    each: _Floats | None
    each_noise: float
    columns: _Floats | None
    column_noise: float


def release(
    sums: Mapping[str, _Integers], parts: Mapping[str, Part], noise: Drawn, row_map: RowMap
) -> ReleasedSums:
    """Release all parts as one Gaussian vector, and return them in the units of ``u``."""
    p, scale = row_map.width, RADIUS / row_map.ball
    upper = np.triu_indices(p)
    values: list[_Integers] = []
    sigmas: list[_Integers] = []
    for name, part in parts.items():
        if name not in _SYMMETRIC:
            values.append(sums[name].ravel())
            sigmas.append(np.full(sums[name].size, part.sigma))
            continue
        stacked = sums[name].reshape(-1, p, p)
        flat = stacked[:, upper[0], upper[1]]
        # The diagonal's noise must be at least sqrt(2) times that above it: the sensitivity R^4 counts on it.
        diagonal = math.isqrt(2 * part.sigma**2) + 1
        values.append(flat.ravel())
        sigmas.append(np.tile(np.where(upper[0] == upper[1], diagonal, part.sigma), len(stacked)))
    drawn = noise.vector(np.concatenate(values), np.concatenate(sigmas).astype(np.int64))
    found: dict[str, _Floats] = {}
    for name in parts:
        size = sums[name].size // (p * p) * len(upper[0]) if name in _SYMMETRIC else sums[name].size
        found[name], drawn = drawn[:size], drawn[size:]
    gradient = found["gradient"].reshape(-1, p + 1)

    def symmetric(name: str, shape: tuple[int, ...]) -> _Floats | None:
        if name not in found:
            return None
        full = np.zeros((found[name].size // len(upper[0]), p, p))
        full[:, upper[0], upper[1]] = found[name].reshape(len(full), -1)
        full[:, upper[1], upper[0]] = full[:, upper[0], upper[1]]
        return full.reshape(shape) / scale**2

    def sigma(name: str) -> float:
        return parts[name].sigma / scale**2 if name in parts else math.inf

    return ReleasedSums(
        gradient=gradient[:, :p] / (2 * scale),
        gradient_noise=parts["gradient"].sigma / (2 * scale),
        counts=gradient[:, p] / RADIUS,
        count_noise=parts["gradient"].sigma / RADIUS,
        moments=symmetric("moments", (p, p)),
        moment_noise=sigma("moments"),
        each=symmetric("each", (len(gradient), p, p)),
        each_noise=sigma("each"),
        columns=found["columns"].reshape(2, -1) / scale if "columns" in found else None,
        column_noise=parts["columns"].sigma / scale if "columns" in parts else math.inf,
    )


def _root_up(exact: Fraction) -> int:
    """Return the smallest integer at or above a square root."""
    floor = math.isqrt(exact.numerator // exact.denominator)
    while floor * floor < exact:
        floor += 1
    return max(floor, 1)
