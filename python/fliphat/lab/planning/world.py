"""The world that a plan assumes: how contexts and rewards are drawn, and what the best play earns there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr, ndtri

_Array = npt.NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
#: Numbers drawn together where every arm has to be drawn.
_TOGETHER: Final = 2**21
#: Rounds that say what playing at random costs where there is no formula.
_RANDOM_ROUNDS: Final = 20_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Chosen:
    """Rows of the arms that an estimate chooses, on some columns only."""

    values: _Array
    #: What all columns of a row have in common; a column that is not among the m is this and noise of
    #: its own, whatever the estimate.
    common: _Array
    rewards: _Array
    regret: _Array


@dataclass(frozen=True, kw_only=True)
class World:
    """What is assumed about rounds."""

    dim: int
    arms: int
    #: Columns that matter, all with coefficients of one size and random signs.
    matter: int
    coefficient: float
    #: Root mean square of a context's values that are not zero; they are normal around 0.
    context_scale: float
    #: Share of a context's values that are not zero.
    density: float
    #: Of every two columns.
    correlation: float
    #: Mean reward; with the logistic loss, its log odds.
    intercept: float
    #: Standard deviation of what the columns do not explain of a reward.
    noise: float
    logistic: bool

    @property
    def own(self) -> float:
        """Standard deviation of what a column has for itself, where it is not zero."""
        return self.context_scale * math.sqrt(1 - self.correlation)

    @property
    def shared(self) -> float:
        """Standard deviation of what all columns of a context have in common."""
        return self.context_scale * math.sqrt(self.correlation)

    def signs(self, rng: np.random.Generator) -> _Array:
        """Return the signs of the coefficients, drawn."""
        return rng.choice([-1.0, 1.0], self.matter)

    def deviation(self, coefficients: _Array) -> float:
        """Return the standard deviation of a context's score."""
        each = self.density * self.own**2 * float(coefficients @ coefficients)
        return math.sqrt(each + (self.shared * float(coefficients.sum())) ** 2)

    @cached_property
    def random_regret(self) -> float:
        """Mean regret of a round played at random, on average over the signs."""
        if self.density < 1:
            rng = np.random.default_rng(0)
            drawn = self.play(
                _RANDOM_ROUNDS, np.arange(self.matter), np.zeros(self.matter), self.signs(rng), rng
            )
            return float(drawn.regret.mean())
        plus = np.arange(self.matter + 1)
        logs = [-math.lgamma(k + 1) - math.lgamma(self.matter - k + 1) for k in range(self.matter + 1)]
        chances = np.exp(np.array(logs) + math.lgamma(self.matter + 1) - self.matter * math.log(2))
        squares = self.matter * self.own**2 + (self.shared * (2 * plus - self.matter)) ** 2
        deviations = self.coefficient * np.sqrt(squares)
        return float(sum(c * self.greedy_regret(0.0, s) for c, s in zip(chances, deviations, strict=True)))

    def greedy_regret(self, correlation: float, deviation: float) -> float:
        """Return a round's mean regret where scores as estimated have this correlation with those that are.

        Both are normal. For contexts without zeros.
        """
        largest, chances = self._largest
        if not self.logistic:
            return deviation * (1 - correlation) * float(largest @ chances)
        rest = math.sqrt(max(1 - correlation**2, 0.0)) * _NODES
        played = expit(self.intercept + deviation * np.add.outer(correlation * largest, rest))
        best = expit(self.intercept + deviation * largest)
        return float(best @ chances - chances @ played @ _WEIGHTS)

    @cached_property
    def _largest(self) -> tuple[_Array, _Array]:
        """The largest of as many standard normals as there are arms: a grid, and its probabilities."""
        grid = np.linspace(-9, 9, 1201)
        chances = np.diff(ndtr(np.linspace(-9.0075, 9.0075, 1202)) ** self.arms)
        return grid, chances / chances.sum()

    def play(
        self,
        rounds: int,
        columns: npt.NDArray[np.int64],
        estimate: _Array,
        signs: _Array,
        rng: np.random.Generator,
    ) -> Chosen:
        """Play rounds greedily by an estimate, drawing only the given columns of the arms that are chosen.

        `columns`: all that matter, which come first of all columns, and those of the estimate.
        """
        true = np.where(columns < self.matter, self.coefficient, 0.0)
        true *= signs[np.minimum(columns, self.matter - 1)]
        if self.density < 1:
            values, regret = self._of_all_arms(rounds, true, estimate, rng)
            common = np.zeros(rounds)
        else:
            values, common = self._of_the_best(rounds, estimate, rng)
            regret = np.zeros(0)
        score = self.intercept + values @ true
        if self.logistic:
            rewards = (rng.random(rounds) < expit(score)).astype(np.float64)
        else:
            rewards = score + self.noise * rng.normal(size=rounds)
        return Chosen(values=values, common=common, rewards=rewards, regret=regret)

    def _of_the_best(self, rounds: int, estimate: _Array, rng: np.random.Generator) -> tuple[_Array, _Array]:
        """Return values and what is common of chosen arms.

        Contexts are normal, so what is not in the direction of the estimated score does not depend on the
        choice; the score itself is the largest of as many as there are arms.
        """
        values = self.own * rng.normal(size=(rounds, len(estimate)))
        common = self.shared * rng.normal(size=rounds)
        values += common[:, None]
        deviation = self.deviation(estimate)
        if deviation > 0:
            best = deviation * ndtri(rng.random(rounds) ** (1 / self.arms))
            of_common = self.shared**2 * float(estimate.sum())
            missing = (best - values @ estimate) / deviation**2
            values += np.outer(missing, self.own**2 * estimate + of_common)
            common += missing * of_common
        return values, common

    def _of_all_arms(
        self, rounds: int, true: _Array, estimate: _Array, rng: np.random.Generator
    ) -> tuple[_Array, _Array]:
        """Return values and regret of chosen arms where most values are zero."""
        values, regret = np.empty((rounds, len(true))), np.empty(rounds)
        together = max(1, _TOGETHER // (self.arms * max(len(true), 1)))
        for begin in range(0, rounds, together):
            n = min(together, rounds - begin)
            all_arms = self.context_scale * rng.normal(size=(n, self.arms, len(true)))
            all_arms *= rng.random(all_arms.shape) < self.density
            scores = all_arms @ estimate
            # Ties are many, of zeros, and are broken at random.
            ties = rng.random(scores.shape)
            arm = np.where(scores == scores.max(axis=1, keepdims=True), ties, -1.0).argmax(axis=1)
            means = self.intercept + all_arms @ true
            means = expit(means) if self.logistic else means
            here = np.arange(n)
            values[begin : begin + n] = all_arms[here, arm]
            regret[begin : begin + n] = means.max(axis=1) - means[here, arm]
        return values, regret
