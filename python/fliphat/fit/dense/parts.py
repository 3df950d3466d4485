"""The parts of a release: what is added up, by how much one row moves it, and with which noise it leaves.

Private until :func:`release`. A row is moved and scaled by public numbers, cut to a ball and turned into
integers q of norm at most R, checked in integers; its reward is an integer r of at most P steps
(``rust/core/src/private/dense.rs``). By how much replacing one row, its arm and its reward moves each part,
in l2 norm squared:

| part | what is added up | at most |
|---|---|---|
| arms | in the block of the row's arm ``(q r, b R r, b P q, R P)``, b = 3/5 | 4 R^2 P^2 (1 + b^2) |
| columns | what of q is above zero and what is below | 2 R^2 |
| moments | ``q q'``, entries on the diagonal divided by sqrt 2 | R^4 |
| squares | in the block of the row's arm ``q * q``, cut to a ball of radius Q | 2 Q^2 |
| board | r, P, and P/2 each if the reward, or the row, was cut | 9/2 P^2 |

*Arms*: see ``arms.rs``; both kinds of neighbours, those with one arm and those with two, reach the bound,
whatever b is. The weights are not multiplied in: noise is divided by them. *Columns*, *squares*: no number is
below zero, so ``|x - y|^2 <= |x|^2 + |y|^2``. *Board*: see ``board.rs``.
*Moments*: ``|q q' - p p'|_F^2 <= 2 R^4``, and an entry off the
diagonal is counted twice in it and released once.

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

from fliphat import _native
from fliphat.fit.board import BOARD_SQUARED, BOARD_STEPS, BOARD_WIDTH
from fliphat.fit.dense.chain import Step
from fliphat.kernels import _rows
from fliphat.kernels._fits import Noise

__all__ = [
    "NAMES",
    "RADIUS",
    "STEPS",
    "Picking",
    "Released",
    "RowMap",
    "release",
    "root_up",
    "sensitivity_squared",
    "square_radius",
]

#: R, radius of the ball that rows' integers lie in, and P, steps of a reward to either side.
RADIUS: Final = 2**15 - 1
STEPS: Final = BOARD_STEPS

#: b: weight of sums of rewards and of rows beside that of their products.
BESIDE: Final = Fraction(3, 5)

#: Squares are divided by this.
SQUARE_UNIT: Final = 2**15

#: Numbers by which totals know their parts, for ever.
NAMES: Final[Mapping[str, int]] = {"arms": 0, "columns": 1, "moments": 2, "squares": 3, "board": 4}

#: Noise is counted in steps of a power of two, so that no sigma is above this.
_LARGEST_SIGMA_BITS: Final = 39

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowMap:
    """How a row becomes a vector: ``v = (x - center) * inverse``, cut to the ball. Public.

    Attributes
    ----------
    center, inverse : ndarray, shape (d,)
    ball : float
        Largest norm of ``v``.
    """

    center: _Floats
    inverse: _Floats
    ball: float

    @property
    def scale(self) -> float:
        """Integers per unit of ``v``."""
        return RADIUS / self.ball


def square_radius(dim: int, ball: float) -> int:
    """Return Q, for rows whose squares are about even: `ball` times their norm."""
    return max(1, min(SQUARE_UNIT, math.floor(ball / math.sqrt(dim) * SQUARE_UNIT)))


def sensitivity_squared(name: str, radius: int) -> Fraction:
    """Return by how much one row moves a part, squared; `radius` is that of squares."""
    return {
        "arms": 4 * RADIUS**2 * STEPS**2 * (1 + BESIDE**2),
        "columns": Fraction(2 * RADIUS**2),
        "moments": Fraction(RADIUS**4),
        "squares": Fraction(2 * radius**2),
        "board": Fraction(BOARD_SQUARED),
    }[name]


def entry_weights(name: str, dim: int, groups: int) -> list[tuple[Fraction, int]]:
    """Return squared weights of a part's numbers, in order, and how many have each: noise is over them."""
    if name == "arms":
        beside = BESIDE**2
        block = [
            (Fraction(1), dim),
            (beside * RADIUS**2, 1),
            (beside * STEPS**2, dim),
            (Fraction(RADIUS**2 * STEPS**2), 1),
        ]
        return block * groups
    if name == "moments":
        return [pair for row in range(dim) for pair in ((Fraction(1, 2), 1), (Fraction(1), dim - 1 - row))]
    return [(Fraction(1), {"columns": 2 * dim, "squares": groups * dim, "board": BOARD_WIDTH}[name])]


def noise_steps(name: str, step: Step, dim: int, groups: int) -> tuple[npt.NDArray[np.uint64], int]:
    """Return the noise of each number of a part, as integers over a power of two, and that power."""
    weights = entry_weights(name, dim, groups)
    largest = max(step.noise_squared / weight for weight, _ in set(weights))
    shift = max(0, math.ceil(largest).bit_length() // 2 + 1 - _LARGEST_SIGMA_BITS)
    sigma = {
        weight: root_up(step.noise_squared / weight / 4**shift) for weight in {one for one, _ in weights}
    }
    sigmas = np.repeat([sigma[weight] for weight, _ in weights], [count for _, count in weights])
    return sigmas.astype(np.uint64), shift


@dataclass(frozen=True, eq=False)
class Released:
    """A part as it was released: discounted sums of everybody so far, over the weight of the newest. Public.

    Attributes
    ----------
    values : ndarray
        In integers of rows and rewards.
    noise : ndarray
        Standard deviations.
    """

    values: _Floats
    noise: _Floats


@dataclass(frozen=True, eq=False)
class Picking:
    """How columns are picked. Public.

    Attributes
    ----------
    picks, scale : int
        How many, and the scale of the mechanism.
    explained : ndarray, shape (groups * (columns + 1),)
        What the public columns explain already: a weight of their integers each, and a level. Nothing of
        arms that came after it was made.
    clip : float
        Largest size of a value times a residual.
    """

    picks: int
    scale: int
    explained: _Floats
    clip: float

    def asked(self, weights: int, candidates: int) -> tuple[int, int, _Floats, float, int]:
        """Return what the native function takes; `weights` is how many all arms of now have."""
        explained = np.pad(self.explained, (0, weights - len(self.explained)))
        return self.picks, self.scale, explained, self.clip, candidates


def release(
    rows: Any,
    slots: _Integers,
    rewards: _Floats,
    present: npt.NDArray[np.bool_],
    *,
    row_map: RowMap,
    groups: int,
    reward_range: tuple[float, float],
    steps: Mapping[str, Step],
    radius: int,
    secret: bytes | None,
    noise: Noise,
    columns: _Integers | None = None,
    picking: Picking | None = None,
) -> tuple[dict[str, Released], _Integers, bytes | None]:
    """Add an episode's sums to their totals and release these; also return what is secret until next time.

    All of it is one native call: no sum without noise comes back to Python.

    Parameters
    ----------
    rows : ndarray or CSR, shape (n, d + 1)
        Contexts, and a column that is not read.
    slots : ndarray of int64, shape (n,)
        Each row's arm, from 0 to ``groups - 1`` where `present`.
    rewards : ndarray, shape (n,)
        Those outside the range are moved to its ends.
    present : ndarray of bool, shape (n,)
    radius : int
        Of the ball of squares.
    secret : bytes, optional
        What the release before returned.
    columns : ndarray of int64, optional
        Public columns; those that are picked come behind them in `row_map`. All of them if left out.
    picking : Picking, optional

    Returns
    -------
    released : dict of Released
    picked : ndarray of int64
    secret : bytes, optional
    """
    dim = len(row_map.center)
    columns = np.arange(dim) if columns is None else columns
    noises = {name: noise_steps(name, step, dim, groups) for name, step in steps.items()}
    asked = [
        (NAMES[name], name, step.weight, (step.before.releases, step.before.weight), *noises[name], step.kept)
        for name, step in steps.items()
    ]
    picked, drawn, after = _native.release_dense(
        rows if isinstance(rows, np.ndarray) else _rows.native(_rows.sparse_rows("rows", rows)),
        np.ascontiguousarray(rewards, np.float64),
        slots,
        present.view(np.uint8),
        (groups, reward_range, RADIUS, radius),
        (columns, row_map.center, row_map.inverse * row_map.scale),
        asked,
        secret,
        noise,
        None if picking is None else picking.asked(groups * (len(columns) + 1), rows.shape[1] - 1),
    )
    found = {}
    for name, step in steps.items():
        sigmas, shift = noises[name]
        own, drawn = drawn[: len(sigmas)], drawn[len(sigmas) :]
        unit = 2.0**shift / step.weight
        found[name] = Released(own.astype(np.float64) * unit, sigmas.astype(np.float64) * unit)
    return found, picked, after if any(step.kept for step in steps.values()) else None


def root_up(exact: Fraction) -> int:
    """Return the smallest integer at or above a square root."""
    floor = math.isqrt(exact.numerator // exact.denominator)
    return max(floor if floor * floor >= exact else floor + 1, 1)
