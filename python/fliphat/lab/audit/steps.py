"""Releases of picks and vectors, recorded by noise that draws nothing and made again many times.

The vector's integers depend on what was picked, and so do the scores of a pick that follows another: the
caller's own code makes the release once for every outcome of the picks, from the same rows. With all of them
known, the picks and the noise are drawn again as often as wanted, by the kernels, and the score of a run is
its log-likelihood ratio: no observer does better.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import kernels
from fliphat._native import RecordingNoise
from fliphat.kernels import _fits as fit_kernels
from fliphat.lab.audit.bounds import Counts
from fliphat.lab.audit.cases import Counter

_Integers = npt.NDArray[np.int64]

#: Columns in the order picked, each with its sign (0 without).
Outcome = tuple[tuple[int, int], ...]

_BINS = 256


@dataclass(frozen=True, eq=False)
class Picking:
    """One call that picks columns: scores, how many, and so on."""

    scores: _Integers
    count: int
    scale: int
    excluded: tuple[int, ...]
    signed: bool

    def outcomes(self) -> list[Outcome]:
        """Return all outcomes, in a fixed order."""
        columns = [column for column in range(len(self.scores)) if column not in self.excluded]
        signs = (1, -1) if self.signed else (0,)
        candidates = [(column, sign) for column in columns for sign in signs]
        orders = itertools.permutations(candidates, self.count)
        return [order for order in orders if len({column for column, _ in order}) == self.count]

    def log_chance(self, outcome: Outcome) -> float:
        """Return the logarithm of an outcome's probability."""
        signs = (1, -1) if self.signed else (0,)
        columns = [column for column in range(len(self.scores)) if column not in self.excluded]
        left = {(j, sign): self._score(j, sign) / self.scale for j in columns for sign in signs}
        total = 0.0
        for pick in outcome:
            total += left[pick] - float(np.logaddexp.reduce(list(left.values())))
            left = {other: size for other, size in left.items() if other[0] != pick[0]}
        return total

    def _score(self, column: int, sign: int) -> float:
        score = float(self.scores[column])
        return sign * score if self.signed else abs(score)

    def picked(self) -> Outcome:
        """Return what the kernel picks."""
        excluded = np.array(self.excluded, np.int64)
        if self.signed:
            columns, signs = fit_kernels.pick_columns(
                self.scores, self.count, scale=self.scale, excluded=excluded, signed=True
            )
            return tuple(zip(columns.tolist(), signs.tolist(), strict=True))
        columns, _ = fit_kernels.pick_columns(self.scores, self.count, scale=self.scale, excluded=excluded)
        return tuple((column, 0) for column in columns.tolist())


@dataclass(frozen=True, eq=False)
class StepsCall:
    """What one release asked of its noise.

    Attributes
    ----------
    pickings : dict
        The call that picks next, after each outcome of those before it.
    sigmas : ndarray
        Noise of the vector.
    values : dict
        The vector's integers for each outcome of all picks.
    """

    pickings: dict[Outcome, Picking]
    sigmas: _Integers
    values: dict[Outcome, _Integers]

    @property
    def outcomes(self) -> list[Outcome]:
        """All outcomes of the picks, in a fixed order."""
        return list(self.values)

    def log_chances(self) -> npt.NDArray[np.float64]:
        """Return the logarithm of each outcome's probability."""
        return np.array([self._log_chance(outcome) for outcome in self.outcomes])

    def _log_chance(self, outcome: Outcome) -> float:
        total, at = 0.0, 0
        while outcome[:at] in self.pickings:
            picking = self.pickings[outcome[:at]]
            total += picking.log_chance(outcome[at : at + picking.count])
            at += picking.count
        return total

    def noisier(self, times: float) -> StepsCall:
        """Return the same release with another amount of noise: for controls."""
        pickings = {
            before: replace(one, scale=int(one.scale * times)) for before, one in self.pickings.items()
        }
        return replace(self, pickings=pickings, sigmas=(self.sigmas * times).astype(np.int64))

    def drawn(self, runs: int, rng: np.random.Generator | None) -> npt.NDArray[np.int64]:
        """Return the outcomes of some runs, by their place in `outcomes`."""
        if not self.pickings:
            return np.zeros(runs, np.int64)
        if rng is not None:
            chances = np.exp(self.log_chances())
            found: npt.NDArray[np.int64] = rng.choice(len(chances), runs, p=chances / chances.sum())
            return found
        places = {outcome: place for place, outcome in enumerate(self.outcomes)}
        return np.array([places[self._picked()] for _ in range(runs)], np.int64)

    def _picked(self) -> Outcome:
        outcome: Outcome = ()
        while outcome in self.pickings:
            outcome += self.pickings[outcome].picked()
        return outcome

    def released(
        self, outcomes: npt.NDArray[np.int64], rng: np.random.Generator | None
    ) -> npt.NDArray[np.float64]:
        """Return the vectors of some runs."""
        values = np.array(list(self.values.values()))[outcomes]
        sigmas = np.broadcast_to(self.sigmas, values.shape)
        if rng is not None:
            noisy: npt.NDArray[np.float64] = values + np.rint(rng.normal(size=values.shape) * sigmas)
            return noisy
        return kernels.gaussian_release(values.ravel(), sigmas.ravel()).reshape(values.shape).astype(float)


def recorded_steps(release: Callable[[RecordingNoise], Any]) -> StepsCall:
    """Record what a release asks of its noise, for every outcome of its picks.

    Parameters
    ----------
    release : callable
        Makes the release by the code that people's rows go through, each time from the same state, with the
        noise it is given.
    """
    pickings: dict[Outcome, Picking] = {}
    values: dict[Outcome, _Integers] = {}
    sigmas: _Integers | None = None
    # A release that picks nothing has one outcome, that of no picks.
    known: list[Outcome] = [()]
    while known:
        outcome = known.pop(0)
        noise = RecordingNoise(list(outcome))
        release(noise)
        picks, vectors = _asked(noise)
        made = 0
        for picking in picks:
            if made == len(outcome):
                pickings[outcome] = picking
                known += [outcome + more for more in picking.outcomes()]
                break
            made += picking.count
        else:
            values[outcome] = np.concatenate([integers for integers, _ in vectors])
            sigmas = np.concatenate([scales for _, scales in vectors])
    assert sigmas is not None
    return StepsCall(pickings, sigmas, values)


def _asked(noise: RecordingNoise) -> tuple[list[Picking], list[tuple[_Integers, _Integers]]]:
    """Return the picks and the vectors of one release: numbers if there are any, picks, and a vector."""
    calls = _as_vectors(noise.calls)
    picks = [
        Picking(scores, count, scale, tuple(excluded), signed)
        for scores, count, scale, signed, excluded in (more for kind, *more in calls if kind == "picks")
    ]
    vectors = [
        (values, sigmas.astype(np.int64))
        for values, sigmas in (more for kind, *more in calls if kind == "vector")
    ]
    if not vectors:
        raise RuntimeError("no release was recorded: the audit must be told how releases reach their noise")
    order = "".join("v" if kind == "vector" else "p" for kind, *_ in calls)
    if re.fullmatch("(v?p+)?v", order) is None:
        raise RuntimeError(
            f"one release was expected, got {len(picks)} of picks and {len(vectors)} of vectors"
        )
    return picks, vectors


def _as_vectors(calls: Sequence[Any]) -> list[Any]:
    """Return the calls with the parts of new totals, released once, as the one vector that they are."""
    totals = [more for kind, *more in calls if kind == "total"]
    if not totals:
        return list(calls)
    if any(before != (0, 0) for _, _, _, before, *_ in totals):
        raise RuntimeError("totals that go on were not expected in one release")
    values = np.concatenate([added for _, added, *_ in totals])
    sigmas = [sigmas * 2.0**shift / weight for _, _, weight, _, sigmas, shift, _ in totals]
    others = [call for call in calls if call[0] != "total"]
    return [*others, ("vector", values, np.floor(np.concatenate(sigmas)))]


def record_by(policy: Any, noise: RecordingNoise) -> None:
    """Let a policy's releases be recorded from now on: they show nothing, and its guarantee says so."""
    # A worker of a database plays by a copy of its fit.
    for fit in (policy._fit, getattr(policy._engine, "_playing_with", (policy._fit,))[0]):
        fit.noise = lambda episode: noise


def counting(record: Callable[[], tuple[Sequence[StepsCall], Sequence[StepsCall]]]) -> Counter:
    """Return what counts the log-likelihood ratios of recorded releases, made again in every run.

    Parameters
    ----------
    record : callable
        Plays and returns the releases of both sides; called once, by the first count.
    """
    recording: list[tuple[Sequence[StepsCall], Sequence[StepsCall]]] = []

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        if not recording:
            recording.append(record())
        sides = recording[0]
        rng = None if seed is None else np.random.default_rng(seed)
        ratios = []
        for side in sides:
            total = np.zeros(runs)
            for made, first, second in zip(side, *sides, strict=True):
                outcomes = made.drawn(runs, rng)
                total += _log_ratio(outcomes, made.released(outcomes, rng), first, second)
            ratios.append(total)
        cuts = np.linspace(-_reach(sides), _reach(sides), _BINS + 1)
        counts = [np.histogram(np.clip(one, cuts[0], cuts[-1]), cuts)[0].astype(np.uint64) for one in ratios]
        return [(counts[0], counts[1])]

    return count


def _log_ratio(
    outcomes: npt.NDArray[np.int64],
    released: npt.NDArray[np.float64],
    first: StepsCall,
    second: StepsCall,
) -> npt.NDArray[np.float64]:
    """Return how much likelier each run is on the first side; noise is the same on both."""
    picks = (first.log_chances() - second.log_chances())[outcomes]
    one, two = (np.array(list(side.values.values()))[outcomes].astype(float) for side in (first, second))
    vectors = ((released - (one + two) / 2) * (one - two) / first.sigmas.astype(float) ** 2).sum(axis=1)
    ratio: npt.NDArray[np.float64] = picks + vectors
    return ratio


def _reach(sides: tuple[Sequence[StepsCall], Sequence[StepsCall]]) -> float:
    """Return a size that few log-likelihood ratios pass; those that do fall into the last bins."""
    mean = spread = 0.0
    for first, second in zip(*sides, strict=True):
        mean += float(np.abs(first.log_chances() - second.log_chances()).max())
        apart = [(first.values[o] - second.values[o]) / first.sigmas for o in first.outcomes]
        largest = max(float(shift @ shift) for shift in apart)
        mean, spread = mean + largest / 2, spread + largest
    return float(mean + 5 * spread**0.5)
