"""The course that pursuit takes when everything it releases is what it is on average.

Lengths, picks and scales of pursuit follow what was found, so they can't be listed beforehand. But the rules
are public arithmetic (:mod:`fliphat.fit.model`), so they can be run on releases without noise: the means that
a stated world would give. What noise does to the picks is worked out beside them: the chance that the
exponential mechanism picks a column that matters is that of its score, with Gumbel noise of the pick's scale,
passing the height that the other columns reach. No random number is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, gammainc, ndtr

from fliphat.fit import model
from fliphat.fit.pursuit import Pursuit, PursuitPlan
from fliphat.fit.sums import LIMIT
from fliphat.fit.tuning import tuning

__all__ = ["ExpectedCourse", "Step", "World"]

_Array = npt.NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_SIZES: Final = 200
# Averages leave out that luck differs: of the picks that are right on average this share counts. Measured.
_CAUTION: Final = 0.75
#: The chance from which a coefficient counts as found.
FOUND: Final = 0.6


@dataclass(frozen=True, kw_only=True)
class World:
    """What is assumed about rounds.

    Attributes
    ----------
    dim, arms : int
    matter : int
        Columns that matter, all with coefficients of one size and random signs.
    coefficient : float
    context_scale : float
        Root mean square of a context's values that are not zero; they are normal around 0.
    density : float
        Share of a context's values that are not zero.
    correlation : float
        Of every two columns.
    intercept : float
        Mean reward; with the logistic loss, its log odds.
    noise : float
        Standard deviation of what the columns do not explain of a reward.
    logistic : bool
    """

    dim: int
    arms: int
    matter: int
    coefficient: float
    context_scale: float
    density: float
    correlation: float
    intercept: float
    noise: float
    logistic: bool

    @property
    def variance(self) -> float:
        """Variance of an arm's score, on average over the coefficients' signs: correlations cancel."""
        return self.matter * self.coefficient**2 * self.density * self.context_scale**2

    @property
    def random_regret(self) -> float:
        """Mean regret of a round played at random, of normal scores."""
        grid = np.linspace(-9, 9, 4001)
        density = self.arms * np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi) * ndtr(grid) ** (self.arms - 1)
        regret = math.sqrt(self.variance) * float((grid * density).sum() * (grid[1] - grid[0]))
        likely = float(expit(self.intercept))
        return regret * likely * (1 - likely) if self.logistic else regret


@dataclass(frozen=True, kw_only=True)
class Step:
    """An episode's plan, and what is known after it.

    Attributes
    ----------
    plan : PursuitPlan
    noise : float
        Standard deviation of the privacy noise in a released coefficient.
    smallest : float
        The size from which a coefficient has been picked at least three times in five; infinite if none has.
    share : float
        Regret of a round after this episode, over that of a round played at random.
    """

    plan: PursuitPlan
    noise: float
    smallest: float
    share: float


class ExpectedCourse:
    """Episodes of pursuit in a stated world, one after the other.

    Examples
    --------
    >>> from fliphat import FLIPHAT
    >>> world = World(dim=400, arms=3, matter=5, coefficient=0.7, context_scale=1.0, density=1.0,
    ...               correlation=0.0, intercept=0.0, noise=0.1, logistic=False)
    >>> fit = FLIPHAT(dim=400, sparsity=10, epsilon=1.0, delta=0.01, reward_scale=1.5, fit="pursuit")._fit
    >>> course = ExpectedCourse(fit, world)
    >>> shares = [course.step().share for _ in range(12)]
    >>> shares[0] > 0.5 > shares[-1]
    True
    """

    def __init__(self, fit: Pursuit, world: World) -> None:
        self._fit, self._world = fit, world
        self._known = fit.begin()
        self._expected = 0.0  # true picks expected and not yet made
        self._others = world.matter  # the next column that does not matter
        largest = 8.0 if world.logistic else 0.999 * self._scale_of_rewards()
        largest /= world.context_scale * math.sqrt(world.density * (1 - world.correlation))
        self._sizes = np.geomspace(1e-3 * largest, largest, _SIZES)
        self._missed = np.ones(_SIZES)

    def step(self) -> Step:
        """Play and fit the next episode."""
        known, fit, world = self._known, self._fit, self._world
        plan = fit.plan(known.episodes, known)
        assert isinstance(plan, PursuitPlan)  # a plan has no pilot
        chance = self._chances(plan)
        left = world.matter - self._true(known.columns)
        picks = plan.steps.picks
        right = min(left * float(np.interp(world.coefficient, self._sizes, chance)), picks)
        self._expected += _CAUTION * self._kept(plan) * right
        now = min(int(self._expected), left, picks)
        self._expected -= now
        fresh = np.setdiff1d(np.arange(world.matter), known.columns)[:now]
        wrong = np.arange(self._others, self._others + picks - now)
        self._others += len(wrong)
        self._known = model.learn(
            known, fit.told, plan.steps, self._released(plan, np.concatenate([fresh, wrong]).astype(np.int64))
        )
        self._missed *= 1 - chance
        return Step(
            plan=plan,
            noise=float(fit.facts(plan, self._known)["noise_scale"]),
            smallest=self._smallest(),
            share=self._share(),
        )

    def _kept(self, plan: PursuitPlan) -> float:
        """Return the chance that a column which matters, once picked, stands out enough to be kept."""
        world, steps, t = self._world, plan.steps, tuning(plan.told.mu)
        own = world.context_scale * math.sqrt(world.density * (1 - world.correlation))
        seen = t.gain * self._slope() * world.coefficient * own
        noise = plan.parts[0].sigma * steps.value_clip / LIMIT / plan.rows
        noise = math.hypot(noise, math.sqrt(t.sampling / plan.rows) * steps.value_clip)
        return float(ndtr(seen / noise - t.prune))

    def _slope(self) -> float:
        """Return the slope of the mean reward in the score."""
        if not self._world.logistic:
            return 1.0
        likely = float(expit(self._world.intercept))
        return likely * (1 - likely)

    def _scale_of_rewards(self) -> float:
        return math.sqrt(self._world.variance + self._world.noise**2)

    def _true(self, columns: npt.NDArray[np.int64]) -> int:
        return int((columns < self._world.matter).sum())

    def _coefficients(self, columns: npt.NDArray[np.int64]) -> _Array:
        signs = np.where(columns % 2 == 0, 1.0, -1.0)
        return np.where(columns < self._world.matter, self._world.coefficient * signs, 0.0)

    def _moments(self, count: int) -> _Array:
        """Return the second moments of so many columns."""
        square = self._world.density * self._world.context_scale**2
        moments = np.full((count, count), square * self._world.correlation)
        np.fill_diagonal(moments, square)
        return moments

    def _residual(self) -> tuple[float, float]:
        """Return mean and standard deviation of a residual at what is known."""
        known, world = self._known, self._world
        columns = np.union1d(known.columns, np.arange(world.matter))
        error = self._coefficients(columns)
        error[np.searchsorted(columns, known.columns)] -= known.theta[1:]
        moments = self._moments(len(columns))
        blurred = float(np.sum(known.covariance[1:, 1:] * self._moments(len(known.columns))))
        if world.logistic:
            likely = float(expit(world.intercept))
            return likely - float(expit(known.theta[0])), math.sqrt(likely * (1 - likely))
        return (
            world.intercept - float(known.theta[0]),
            math.sqrt(float(error @ moments @ error) + blurred + world.noise**2),
        )

    def _chances(self, plan: PursuitPlan) -> _Array:
        """Return the chance that an episode picks a column, by the size of its coefficient."""
        world, picks = self._world, plan.picks
        if picks is None:
            return np.zeros(_SIZES)
        steps, n = plan.steps, plan.rows
        offset, spread = self._residual()
        z = world.context_scale * math.sqrt(1 - world.correlation) * _NODES
        bound = steps.pick_clip / np.maximum(np.abs(z), 1e-12)
        if world.logistic:
            likely = float(expit(world.intercept))
            one, zero = np.clip(1 - likely, -bound, bound), np.clip(-likely, -bound, bound)
            chance = expit(world.intercept + np.outer(self._sizes, z))
            means = (chance * one + (1 - chance) * zero) @ (_WEIGHTS * z)
            square = float(_WEIGHTS @ (z**2 * (likely * one**2 + (1 - likely) * zero**2)))
        else:
            slopes = np.outer(self._sizes, z)
            own = (self._sizes * z.std()) ** 2 * world.density
            rest = np.sqrt(np.maximum(spread**2 - own, (0.05 * spread) ** 2))[:, None]
            means = _clipped_mean(offset + slopes, rest, bound) @ (_WEIGHTS * z)
            residuals = offset + spread * _NODES
            products = np.clip(np.outer(z, residuals), -steps.pick_clip, steps.pick_clip)
            square = float(_WEIGHTS @ products**2 @ _WEIGHTS)
        rough = math.sqrt(world.density * square / n) * _NODES
        scale = picks.scale * steps.pick_clip / LIMIT / n
        means = world.density * means
        known = len(self._known.columns)
        wrong = max(world.dim - known - world.matter, 1)
        left = world.matter - self._true(self._known.columns)
        there = float(np.interp(world.coefficient, self._sizes, means))
        height = _height(steps.picks, wrong, left, there, rough, scale, plan.signed)
        return _passes(means, height, rough, scale, plan.signed)

    def _released(self, plan: PursuitPlan, new: npt.NDArray[np.int64]) -> model.Released:
        """Return the means that an episode releases in this world, without noise."""
        world, steps, known, n = self._world, plan.steps, self._known, plan.rows
        t = tuning(plan.told.mu)
        columns = np.concatenate([known.columns, new])
        m = 1 + len(columns)
        moments = np.zeros((m, m))
        moments[0, 0] = steps.one**2
        moments[1:, 1:] = self._moments(m - 1)
        truth = np.concatenate([[world.intercept], self._coefficients(columns)])
        now = np.concatenate([known.theta, np.zeros(len(new))])
        error = truth - now
        error[0] /= steps.one
        offset, spread = self._residual()
        gradient = t.gain * self._slope() * steps.whiten @ moments @ error
        # A clipped gradient ends where nearly every row is cut.
        gradient = np.clip(gradient, -0.9 * steps.value_clip, 0.9 * steps.value_clip)
        sigmas = [part.sigma for part in plan.parts]
        # What cutting to the ball leaves of normal rows.
        inside = gammainc(m / 2 + 1, t.ball * m / 2) + t.ball * (1 - gammainc(m / 2, t.ball * m / 2))
        radius = 2**15 - 1
        size = float(_WEIGHTS @ np.minimum(np.abs(offset + spread * _NODES), steps.size_cap))
        rows = rows_noise = None
        if "rows" in steps.shares:
            octaves = math.log2(world.context_scale / steps.one)
            product = world.correlation + (1 - world.correlation) * world.density / world.dim
            rows = (min(max(octaves, -t.octaves), t.octaves), 0.0, product)
            widths = (t.octaves, 1.0, 1.0)
            rows_noise = tuple(s * w / LIMIT / n for s, w in zip(sigmas[3:], widths, strict=True))
        return model.Released(
            columns=new,
            units=np.ones(len(new)),
            signs=np.where(self._coefficients(new) < 0, -1, 1)
            if plan.signed
            else np.zeros(len(new), np.int64),
            gradient=gradient,
            gradient_noise=sigmas[0] * steps.value_clip / LIMIT / n,
            moments=moments * inside,
            moment_noise=sigmas[1] * (steps.ball / radius) ** 2 / n,
            size=size,
            size_noise=sigmas[2] * steps.size_cap / LIMIT / n,
            rows=rows,
            rows_noise=rows_noise,  # type: ignore[arg-type]  # three of them
        )

    def _smallest(self) -> float:
        enough = np.flatnonzero(1 - self._missed >= FOUND)
        return math.inf if len(enough) == 0 else float(self._sizes[enough[0]])

    def _share(self) -> float:
        """Return the regret of greedy play over random play's: one less the correlation of the scores."""
        known = self._known
        square = self._world.density * self._world.context_scale**2
        theta, truth = known.theta[1:], self._coefficients(known.columns)
        blurred = float(np.trace(known.covariance[1:, 1:])) * square
        # A pick that is expected with some chance counts with that chance.
        likely = min(self._expected, self._world.matter - self._true(known.columns))
        common = float(truth @ theta) * square
        common += 0.5 * likely * self._world.coefficient**2 * square
        spread = float(theta @ theta) * square + blurred
        spread += 0.5 * likely * self._world.coefficient**2 * square
        if common <= 0 or spread <= 0:
            return 1.0
        return min(max(1 - common / math.sqrt(spread * self._world.variance), 0.0), 1.0)


def _passes(means: _Array, height: float, rough: _Array, scale: float, signed: bool) -> _Array:
    """Return the probability that scores of these means, rough and with Gumbel noise, pass a height."""
    scores = means[:, None] + rough
    above = ((scores if signed else np.abs(scores)) - height) / scale
    passed: _Array = -np.expm1(-np.exp(np.minimum(above, 50.0))) @ _WEIGHTS
    return passed


def _height(
    picks: int, wrong: int, left: int, mean: float, rough: _Array, scale: float, signed: bool
) -> float:
    """Return the height that `picks` columns pass, of those that matter and those that do not."""
    low, high = -40 * scale, scale * (math.log(wrong) + 40) + abs(mean) + float(np.abs(rough).max())
    candidates = (2 if signed else 1) * wrong
    both = np.array([0.0, mean])
    for _ in range(60):
        middle = (low + high) / 2
        other, true = _passes(both, middle, rough, scale, signed)
        if candidates * other + left * true > picks:
            low = middle
        else:
            high = middle
    return high


def _clipped_mean(mean: _Array, deviation: _Array, bound: _Array) -> _Array:
    """Return the mean of a normal variable clipped to plus and minus `bound`."""
    low, high = (-bound - mean) / deviation, (bound - mean) / deviation
    density_low, density_high = (np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) for z in (low, high))
    inside = mean * (ndtr(high) - ndtr(low)) + deviation * (density_low - density_high)
    clipped: _Array = inside + bound * (ndtr(-high) - ndtr(low))
    return clipped
