"""The release of an episode of pursuit: private sums go in, noisy means come out.

Rows of this process are released by one call of a kernel, from which no sum comes back. Episodes in which a
pick follows another, rows that live elsewhere, and noise of a seed take the same steps one by one.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat.fit import draw, model, sums
from fliphat.fit.model import KnownSparse
from fliphat.fit.pursuit_plan import RADIUS, PursuitPlan
from fliphat.privacy.priced import PickNoise

__all__ = ["RowSums", "Sums", "in_steps", "release"]

#: New columns in the order picked, their signs (0 where they were not picked with one), and the noisy vector.
Drawn: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[Any]]


class Sums(Protocol):
    """An episode's private sums: all that the noise is added to. Each is asked for once."""

    def candidates(self) -> npt.NDArray[np.int64]:
        """Return the sums that columns are picked by, one a column."""

    def further(self, columns: npt.NDArray[np.int64], signs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the sums that the next column is picked by, after these of the same episode."""

    def vector(self, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return what is released of the public and the picked columns.

        Gradients, second moments on and above the diagonal, the residuals' size and, where they are released,
        three numbers of whole rows.
        """


class RowSums:
    """The sums of rows in this process. Private.

    Parameters
    ----------
    plan : PursuitPlan
    rows : ndarray or CSR, shape (n, plan.dim)
        The episode's rows, or some of them: the sums of several such parts are added.
    rewards, present : ndarray, shape (n,)
    known : KnownSparse
        What the plan was made from.
    threads : int, optional
        By default all cores, or one if the work is small. It never changes the result.
    """

    def __init__(
        self,
        plan: PursuitPlan,
        rows: Any,
        rewards: npt.NDArray[np.float64],
        present: npt.NDArray[np.bool_],
        known: KnownSparse,
        *,
        threads: int | None = None,
    ) -> None:
        self._plan, self._rows, self._present, self._known = plan, rows, present, known
        self._rewards, self._threads = rewards, threads
        self._support: npt.NDArray[np.float64] | None = None
        self._left: npt.NDArray[np.float64] | None = None

    def candidates(self) -> npt.NDArray[np.int64]:
        """Return the sums of all columns; replacing one row moves each by at most ``2 * LIMIT``."""
        self._support = np.empty((self._rows.shape[0], 1 + len(self._known.columns)))
        scores, self._left = sums.candidate_sums(
            self._rows,
            self._rewards,
            self._present,
            self._public(),
            self._plan.steps.pick_clip,
            self._support,
            threads=self._threads,
        )
        return scores

    def further(self, columns: npt.NDArray[np.int64], signs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the sums of all columns at residuals less what these picks may explain.

        Replacing one row moves each by at most ``2 * LIMIT``, whatever was picked.
        """
        if self._left is None:
            self.candidates()
        assert self._left is not None
        assert self._support is not None
        steps = self._plan.steps
        found, _ = sums.further_sums(
            self._rows,
            columns,
            signs,
            self._support,
            self._left,
            self._present,
            one=steps.one,
            taken=steps.taken,
            shift=steps.shift,
            clip=steps.pick_clip,
            units=self._plan.units,
            threads=self._threads,
        )
        return found

    def vector(self, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the vector's sums, each with the sensitivity that the plan's parts say."""
        if self._left is None:
            self.candidates()
        assert self._left is not None
        assert self._support is not None
        plan, present, threads = self._plan, self._present, self._threads
        steps = plan.steps
        gradient, moments, size = sums.settled_sums(
            self._rows,
            columns,
            self._support,
            self._left,
            present,
            whiten=steps.whiten,
            clip=steps.value_clip,
            radius=RADIUS,
            ball=steps.ball,
            cap=steps.size_cap,
            units=plan.units,
            threads=threads,
        )
        layout = _Layout.of(len(gradient), len(plan.parts))
        values = np.empty(layout.length, np.int64)
        values[: layout.moments] = gradient
        values[layout.moments : layout.size] = moments.ravel()[layout.upper]
        values[layout.size] = size
        if "rows" in steps.shares:
            values[layout.size + 1 :] = sums.row_numbers(
                self._rows, present, steps.one, plan.octaves, plan.units, threads=threads
            )
        return values

    def release(self, sigmas: npt.NDArray[np.int64]) -> Drawn:
        """Release picks and vector, by one call of a kernel unless a pick follows another."""
        plan = self._plan
        steps, noise = plan.steps, plan.picks
        count = 0 if noise is None else noise.count
        if steps.taken and count > 1:
            return in_steps(plan, self, self._known, sigmas)
        signed = _with_sign(plan, 0, count)
        columns, signs, released = sums.release(
            self._rows,
            self._rewards,
            self._present,
            self._public(),
            pick_clip=steps.pick_clip,
            picks=count,
            pick_scale=1 if noise is None else noise.scale,
            signed=signed,
            whiten=steps.whiten,
            clip=steps.value_clip,
            radius=RADIUS,
            ball=steps.ball,
            cap=steps.size_cap,
            octaves=plan.octaves if "rows" in steps.shares else None,
            sigmas=sigmas,
            threads=self._threads,
        )
        return columns, signs if signed else 0 * signs, released

    def _public(self) -> sums.Public:
        steps, told = self._plan.steps, self._plan.told
        return sums.Public(
            columns=self._known.columns,
            theta=self._known.theta,
            one=steps.one,
            shift=steps.shift,
            units=self._plan.units,
            loss="logistic" if told.loss == "logistic" else "squared",
            reward_range=told.reward_range,
        )


def in_steps(plan: PursuitPlan, private: Sums, known: KnownSparse, sigmas: npt.NDArray[np.int64]) -> Drawn:
    """Release picks and vector of sums that live elsewhere, or with noise of a seed: step after step."""
    noise = draw.seeded(plan.seed, plan.episode)
    columns = signs = np.zeros(0, np.int64)
    if plan.picks is not None:
        columns, signs = _picked(plan, plan.picks, private, known, noise)
    return columns, signs, noise.vector(private.vector(columns), sigmas)


def _picked(
    plan: PursuitPlan, charged: PickNoise, private: Sums, known: KnownSparse, noise: draw.Drawn
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pick as many columns as were charged for, all by the same sums or each by what the others leave."""
    scores = private.candidates()
    if not plan.steps.taken:
        return noise.picks(scores, charged, excluded=known.columns, signed=plan.signed)
    one = replace(charged, count=1)
    columns = signs = np.zeros(0, np.int64)
    for pick in range(charged.count):
        if pick:
            scores = private.further(columns, signs)
        signed = _with_sign(plan, pick, charged.count)
        excluded = np.concatenate([known.columns, columns])
        column, sign = noise.picks(scores, one, excluded=excluded, signed=signed)
        columns, signs = np.concatenate([columns, column]), np.concatenate([signs, sign])
    return columns, signs


def _with_sign(plan: PursuitPlan, pick: int, count: int) -> bool:
    """Whether a pick has a sign: that of the last one is of use only as what coefficients start from."""
    return plan.signed and (not plan.steps.taken or pick + 1 < count or plan.told.tuning.guess != 0)


def release(plan: PursuitPlan, private: Sums, known: KnownSparse) -> model.Released:
    """Release an episode's numbers: private sums go in, noisy means come out."""
    steps, n, units = plan.steps, plan.rows, plan.units
    sigma_gradient, sigma_moments, sigma_size, *sigma_rows = [part.sigma for part in plan.parts]
    layout = _Layout.of(len(steps.whiten), len(plan.parts))
    # The diagonal's noise must be at least sqrt(2) times that above it: the sensitivity B^4 counts on it.
    sigma_diagonal = math.isqrt(2 * sigma_moments**2) + 1
    sigmas = np.array([sigma_gradient, sigma_moments, sigma_diagonal, sigma_size, *sigma_rows], np.int64)
    sigmas = sigmas[layout.part]
    if plan.seed is None and isinstance(private, RowSums):
        columns, signs, vector = private.release(sigmas)
    else:
        columns, signs, vector = in_steps(plan, private, known, sigmas)
    released = vector / n
    scale = RADIUS / steps.ball
    gradient_step, size_step = steps.value_clip / sums.LIMIT, steps.size_cap / sums.LIMIT
    rows = rows_noise = None
    if sigma_rows:
        row_steps = np.array([plan.octaves, 1.0, 1.0]) / sums.LIMIT
        rows = tuple(released[layout.size + 1 :] * row_steps)
        rows_noise = tuple(np.array(sigma_rows) * row_steps / n)
    return model.Released(
        columns=columns,
        units=np.ones(len(columns)) if units is None else units[columns],
        signs=signs,
        gradient=released[: layout.moments] * gradient_step,
        gradient_noise=sigma_gradient * gradient_step / n,
        moments=released[layout.square] / scale**2,
        moment_noise=sigma_moments / scale**2 / n,
        size=float(released[layout.size] * size_step),
        size_noise=sigma_size * size_step / n,
        rows=rows,
        rows_noise=rows_noise,
    )


class _Layout(NamedTuple):
    """Where the numbers of the vector are.

    Attributes
    ----------
    moments, size, length : int
        First of the second moments; the residuals' size, behind them; all numbers.
    part : ndarray of intp, shape (length,)
        Whose noise each number has: 0 gradients, 1 and 2 second moments off and on the diagonal, 3 the size,
        4 to 6 whole rows.
    upper : ndarray of intp, shape (size - moments,)
        Places of the released second moments in a square, row after row: the diagonal and what is above it.
    square : ndarray of intp, shape (m, m)
        Places in the vector of a square's second moments.
    """

    moments: int
    size: int
    length: int
    part: npt.NDArray[np.intp]
    upper: npt.NDArray[np.intp]
    square: npt.NDArray[np.intp]

    @staticmethod
    @functools.lru_cache(maxsize=256)
    def of(m: int, parts: int) -> _Layout:
        """Return the layout of m columns and so many parts."""
        above, right = np.triu_indices(m)
        square = np.empty((m, m), np.intp)
        square[above, right] = square[right, above] = m + np.arange(len(above))
        part = np.concatenate([np.zeros(m, np.intp), 1 + (above == right), np.arange(3, parts + 1)])
        size = m + len(above)
        return _Layout(m, size, len(part), part, above * m + right, square)
