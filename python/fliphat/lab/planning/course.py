"""Simulated runs of FLIPHAT that a plan is made of, drawn in a stated world with the fit's own code.

Lengths, picks and scales of pursuit follow what was found, and a mean of regrets is made by the courses that
went badly, so neither can be read off an average course. A plan therefore draws several. What makes that
cheap: only columns that matter or have been picked are drawn, and only of arms that are played. All other
columns are alike, and the sums that they are picked by are, given the rows' residuals, sums of many
independent numbers whose mean and variance have formulas. A column that is picked by such a sum is then drawn
so that it has that sum.

The rest is the fit itself (:class:`fliphat.fit.pursuit.Pursuit`): its plans, its noise, its rules and its
constants. Seeds are fixed, so a plan is a function of the numbers it is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from fliphat.fit.board import BOARD_WIDTH
from fliphat.fit.pursuit.constants import LIMIT, RADIUS
from fliphat.fit.pursuit.fit import PursuitFit
from fliphat.fit.pursuit.known import KnownSparse
from fliphat.fit.pursuit.plan import PursuitPlan
from fliphat.kernels import _fits as fit_kernels
from fliphat.lab.planning.world import Chosen, World

_Array = npt.NDArray[np.float64]
_Columns = npt.NDArray[np.int64]

#: Of longer episodes so many rows are drawn and counted several times: what rows differ by no longer matters.
_MOST_ROWS: Final = 2**14
_SIZES: Final = 60
#: As in the release: a picked column explains no more than at so many times its typical value.
_FARTHEST: Final = 2.0
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_QUANTILES: Final = (np.arange(24) + 0.5) / 24


@dataclass(frozen=True, kw_only=True)
class Step:
    """An episode of a course, and what is known after it."""

    plan: PursuitPlan
    #: Standard deviation of the privacy noise in a released coefficient.
    noise: float
    #: Mean regret of a round that this episode's estimate plays.
    regret: float
    #: Share of the columns that matter that are not in the estimate, or are with the wrong sign.
    missing: float
    #: Chance that a further coefficient, of each size, has been picked and kept by none of the fits so
    #: far.
    missed: _Array


class Course:
    """Episodes of pursuit in a stated world, one after the other, with the draws of one seed."""

    def __init__(self, fit: PursuitFit, world: World, seed: int, *, sizes: bool = True) -> None:
        self._fit, self._world = fit, world
        self._rng = np.random.default_rng([seed, 7])
        self._signs = world.signs(self._rng)
        self._known = fit.begin()
        self._sizes = sizes_of(world) if sizes else np.zeros(0)
        self._missed = np.ones(len(self._sizes))
        self._deviation = world.deviation(world.coefficient * self._signs)

    @property
    def random_regret(self) -> float:
        """Mean regret of a round played at random, with these signs."""
        world = self._world
        return world.random_regret if world.density < 1 else world.greedy_regret(0.0, self._deviation)

    def step(self) -> Step:
        """Play and fit the next episode."""
        known, fit, world = self._known, self._fit, self._world
        plan = fit.plan(known.episodes, known)
        assert isinstance(plan, PursuitPlan)  # a plan has no pilot
        private = _Drawn(plan, known, world, self._signs, self._rng)
        self._missed = self._missed * (1 - private.found(self._sizes))
        self._known = fit.run_sums(plan, private, known)
        return Step(
            plan=plan,
            noise=float(fit.facts(plan, self._known)["noise_scale"]),
            regret=self._regret(),
            missing=self._missing(),
            missed=self._missed,
        )

    def _missing(self) -> float:
        _, estimate = _columns(self._known, self._world)
        return float(np.mean(estimate[: self._world.matter] * self._signs <= 0))

    def _regret(self) -> float:
        known, world = self._known, self._world
        columns, estimate = _columns(known, world)
        if world.density < 1:
            return float(world.play(_MOST_ROWS // 8, columns, estimate, self._signs, self._rng).regret.mean())
        deviation = world.deviation(estimate)
        if deviation == 0:
            return world.greedy_regret(0.0, self._deviation)
        true = np.zeros(len(columns))
        true[: world.matter] = world.coefficient * self._signs
        common = world.own**2 * float(true @ estimate)
        common += world.shared**2 * float(true.sum() * estimate.sum())
        return world.greedy_regret(min(common / (deviation * self._deviation), 1.0), self._deviation)


def sizes_of(world: World) -> _Array:
    """Return sizes of coefficients, up to the largest that could be."""
    whole = math.sqrt(
        world.matter * world.density * (world.coefficient * world.context_scale) ** 2 + world.noise**2
    )
    largest = 8.0 if world.logistic else 0.999 * whole
    largest /= world.own * math.sqrt(world.density)
    return np.geomspace(1e-3 * largest, largest, _SIZES)


def _columns(known: KnownSparse, world: World) -> tuple[_Columns, _Array]:
    """Return columns that matter, then others of the estimate; and the estimate on them."""
    others = known.columns[known.columns >= world.matter]
    columns = np.concatenate([np.arange(world.matter), others])
    estimate = np.zeros(len(columns))
    place = np.where(known.columns < world.matter, known.columns, 0)
    place[known.columns >= world.matter] = world.matter + np.arange(len(others))
    estimate[place] = known.theta[1:]
    return columns, estimate


class _Drawn:
    """An episode's sums (:class:`fliphat.fit.pursuit.fit.Sums`), of rows that are drawn."""

    def __init__(
        self, plan: PursuitPlan, known: KnownSparse, world: World, signs: _Array, rng: np.random.Generator
    ) -> None:
        self._plan, self._known, self._world, self._rng = plan, known, world, rng
        rows = min(plan.rows, _MOST_ROWS)
        self._times = plan.rows / rows
        self._columns, estimate = _columns(known, world)
        self._played: Chosen = world.play(rows, self._columns, estimate, signs, rng)
        self._support = np.empty((rows, 1 + len(known.columns)))
        place = {int(column): at for at, column in enumerate(self._columns)}
        at = np.array([place[int(column)] for column in known.columns], np.int64)
        steps, given = plan.steps, plan.given
        weights = known.theta.copy()
        weights[0] /= steps.constant  # the constant's column has this value instead of 1
        self._sums, self._left, _ = fit_kernels.relative_gradient(
            self._played.values,
            self._played.rewards,
            at,
            weights,
            steps.pick_clip,
            self._support,
            one=steps.constant,
            shift=steps.shift,
            loss="logistic" if given.loss == "logistic" else "squared",
            reward_range=given.reward_range,
            threads=1,
        )
        self._shifts = np.zeros(rows) if steps.shift is None else self._support @ steps.shift
        self._picked_by(self._left)
        self._others = rng.normal(size=world.dim)
        self._scores: npt.NDArray[np.int64] | None = None
        self._picked = np.empty((rows, 0))

    def _picked_by(self, left: _Array) -> None:
        """Set what columns that do not matter are picked by at these residuals."""
        # What a row's products are where a column has nothing of its own, and how much its own adds.
        self._residuals = left
        self._centre = left * (self._played.common - self._shifts)
        self._width = np.abs(left) * self._world.own
        self._mean, self._square = self._other_columns()

    def _other_columns(self) -> tuple[float, float]:
        """Return mean and variance of the sum of a column that does not matter, in clipped products."""
        clip, density = self._plan.steps.pick_clip, self._world.density
        first, second = _clipped_moments(self._centre, self._width, clip)
        if density < 1:
            zero = np.clip(self._centre, -clip, clip)
            first = density * first + (1 - density) * zero
            second = density * second + (1 - density) * zero**2
        return float(first.sum()), float((second - first**2).sum())

    def numbers(self) -> bytes:
        """Return the sums of the three numbers of whole rows."""
        return self._bytes(np.array(self._whole_rows(self._rng)))

    def _bytes(self, sums_of_rows: _Array) -> bytes:
        """Return sums as if every row had been drawn as often as the episode is longer."""
        return np.rint(sums_of_rows * self._times).astype("<i8").tobytes()

    def candidates(self) -> bytes:
        """Return the sums of all columns."""
        step = self._plan.steps.pick_clip / LIMIT
        scores = (self._mean + math.sqrt(self._square) * self._others) / step
        scores[self._columns] = self._sums
        self._scores = np.rint(scores * self._times).astype("<i8")
        return self._scores.tobytes()

    def further(self, picked: list[int], signs: list[int]) -> bytes:
        """Return the sums that the next column is picked by, after these."""
        steps, columns = self._plan.steps, np.array(picked, np.int64)
        self._draw_picked(columns)
        farthest, slopes = _FARTHEST * steps.constant, np.array(signs) * steps.assumed / steps.constant
        explained = np.clip(self._picked, -farthest, farthest) @ slopes
        left = self._left - explained
        self._sums, _ = fit_kernels.shifted_gradient(
            self._played.values,
            left,
            steps.pick_clip,
            shifts=None if steps.shift is None else self._shifts,
            threads=1,
        )
        self._picked_by(left)
        return self.candidates()

    def _draw_picked(self, columns: _Columns) -> None:
        """Draw those of the picked columns that have not been drawn yet: one after each pick, or all."""
        for column in columns[self._picked.shape[1] :]:
            matters = column < self._world.matter
            drawn = self._played.values[:, column] if matters else self._column_with(int(column))
            self._picked = np.column_stack([self._picked, drawn])

    def vector(self, picked: list[int], signs: list[int]) -> bytes:
        """Return what is released of the public and the picked columns."""
        steps, columns = self._plan.steps, np.array(picked, np.int64)
        self._draw_picked(columns)
        gradient, moments, size = fit_kernels.settled_sums(
            np.ascontiguousarray(self._picked),
            np.arange(len(columns)),
            self._support,
            self._left,
            whiten=steps.whiten,
            clip=steps.value_clip,
            radius=RADIUS,
            scale=RADIUS / steps.ball,
            cap=steps.size_cap,
            threads=1,
        )
        # What an episode earns moves nothing in a course: its guard never sees a loss.
        board = np.zeros(BOARD_WIDTH if steps.reward_range else 0, np.int64)
        return self._bytes(np.concatenate([gradient, moments[np.triu_indices(len(gradient))], [size], board]))

    def _column_with(self, column: int) -> _Array:
        """Return a column that does not matter, drawn so that it has the sum that it was picked by."""
        world, clip = self._world, self._plan.steps.pick_clip
        assert self._scores is not None
        wanted = float(self._scores[column]) * clip / LIMIT / self._times
        own, left = world.own * self._rng.normal(size=len(self._left)), self._residuals
        if world.density < 1:
            there = self._rng.random(len(own)) < world.density
            own *= there
        else:
            there = np.ones(len(own), np.bool_)
        for _ in range(4):
            products = self._centre + left * own
            free = there & (np.abs(products) < clip)
            slope = float((left[free] ** 2).sum())
            if slope == 0:
                break
            missing = wanted - float(np.clip(products, -clip, clip).sum())
            own = own + np.where(free, missing / slope * left, 0.0)
        drawn: _Array = own + self._played.common
        return drawn

    def _whole_rows(self, rng: np.random.Generator) -> tuple[float, float, float]:
        """Return the sums of the three numbers of whole rows (:func:`fliphat.kernels._fits.row_numbers`)."""
        world, n = self._world, len(self._left)
        count = max(world.density * world.dim, 1.0)
        own, common = world.own, self._played.common
        mean = common + own / math.sqrt(count) * rng.normal(size=n)
        square = mean**2 + own**2 * np.maximum(
            1 - 1 / count + rng.normal(size=n) * math.sqrt(2 / count), 0.05
        )
        octaves = np.clip(
            np.log2(np.sqrt(square) / self._plan.steps.constant) / self._plan.given.tuning.octaves, -1, 1
        )
        ratio = np.clip(world.density * mean / np.sqrt(square), -1, 1)
        logs, ratios, squares = (float(number.sum()) * LIMIT for number in (octaves, ratio, ratio**2))
        return logs, ratios, squares

    def found(self, sizes: _Array) -> _Array:
        """Return the chance that the fit picks and keeps a further column, by the size of its coefficient."""
        plan, world, steps = self._plan, self._world, self._plan.steps
        if plan.picks is None or len(sizes) == 0:
            return np.zeros(len(sizes))
        # Residuals as they are, and what a column of each size would add to them: its mean product.
        left = np.quantile(self._left, _QUANTILES)[:, None]
        slope = float(np.mean(left**2)) if world.logistic else 1.0
        own, clip = world.own * _NODES, steps.pick_clip
        more = slope * np.multiply.outer(sizes, own)[:, None, :]
        means = np.clip((left + more) * own, -clip, clip).mean(axis=1) @ _WEIGHTS * world.density
        rough = math.sqrt(self._square / len(self._left) / plan.rows) * _NODES
        scale = plan.picks.scale * steps.pick_clip / LIMIT / plan.rows
        height = _height(steps.picks, world.dim, rough, scale, plan.given.tuning.signed)
        passed = _passes(means, height, rough, scale, plan.given.tuning.signed)
        t = plan.given.tuning
        seen = t.gain * slope * sizes * world.own * math.sqrt(world.density)
        noise = plan.parts[0].sigma * steps.value_clip / LIMIT / plan.rows
        noise = math.hypot(noise, math.sqrt(t.sampling / plan.rows) * steps.value_clip)
        kept: _Array = passed * ndtr(seen / noise - t.prune)
        return kept


def _clipped_moments(mean: _Array, deviation: _Array, clip: float) -> tuple[_Array, _Array]:
    """Return mean and mean square of normal variables clipped to plus and minus `clip`."""
    deviation = np.maximum(deviation, 1e-12 * clip)
    low, high = (-clip - mean) / deviation, (clip - mean) / deviation
    below, above = ndtr(low), ndtr(-high)
    at_low, at_high = (np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) for z in (low, high))
    inside = 1 - below - above
    first = mean * inside + deviation * (at_low - at_high) + clip * (above - below)
    second = (mean**2 + deviation**2) * inside + clip**2 * (above + below)
    second += 2 * mean * deviation * (at_low - at_high) + deviation**2 * (low * at_low - high * at_high)
    return first, second


def _passes(means: _Array, height: float, rough: _Array, scale: float, signed: bool) -> _Array:
    """Return the probability that scores of these means, rough and with Gumbel noise, pass a height."""
    scores = means[:, None] + rough
    above = ((scores if signed else np.abs(scores)) - height) / scale
    passed: _Array = -np.expm1(-np.exp(np.minimum(above, 50.0))) @ _WEIGHTS
    return passed


def _height(picks: int, dim: int, rough: _Array, scale: float, signed: bool) -> float:
    """Return the height that `picks` of `dim` columns pass though they do not matter."""
    low, high = -40 * scale, scale * (math.log(dim) + 40) + float(np.abs(rough).max())
    candidates, none = (2 if signed else 1) * dim, np.zeros(1)
    for _ in range(40):
        middle = (low + high) / 2
        if candidates * _passes(none, middle, rough, scale, signed)[0] > picks:
            low = middle
        else:
            high = middle
    return high
