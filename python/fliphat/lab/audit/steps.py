"""Releases of picks and then one vector, recorded at the kernels and made again many times.

The vector's integers depend on what was picked, and so do the scores of a pick that follows another: the
caller's own code makes the release once for every outcome of the picks, from the same rows. With all of them
known, the picks and the noise are drawn again as often as wanted, by the kernels, and the score of a run is
its log-likelihood ratio: no observer does better.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import kernels
from fliphat.lab.audit.bounds import Counts
from fliphat.lab.audit.cases import Counter

__all__ = ["StepsCall", "counting", "recorded_steps"]

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
            columns, signs = kernels.pick_columns(
                self.scores, self.count, scale=self.scale, excluded=excluded, signed=True
            )
            return tuple(zip(columns.tolist(), signs.tolist(), strict=True))
        columns = kernels.pick_columns(self.scores, self.count, scale=self.scale, excluded=excluded)
        return tuple((column, 0) for column in columns.tolist())


@dataclass(frozen=True, eq=False)
class StepsCall:
    """What the kernels were asked for in one release.

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


def recorded_steps(release: Callable[[], Any]) -> StepsCall:
    """Record what a release asks of the kernels, for every outcome of its picks.

    Parameters
    ----------
    release : callable
        Makes the release by the code that people's rows go through, each time from the same state.
    """
    pickings: dict[Outcome, Picking] = {}
    values: dict[Outcome, _Integers] = {}
    sigmas: _Integers | None = None
    # A release that picks nothing has one outcome, that of no picks.
    known: list[Outcome] = [()]
    while known:
        outcome = known.pop(0)
        with _watched(outcome) as (picks, vectors):
            release()
        if not vectors:
            raise RuntimeError(
                "no release was recorded: the audit must be told how releases reach the kernels now"
            )
        if len(vectors) > 1:
            raise RuntimeError(
                f"one release was expected, got {len(picks)} of picks and {len(vectors)} of vectors"
            )
        made = 0
        for picking in picks:
            if made == len(outcome):
                pickings[outcome] = picking
                known += [outcome + more for more in picking.outcomes()]
                break
            made += picking.count
        else:
            values[outcome], sigmas = vectors[0]
    assert sigmas is not None
    return StepsCall(pickings, sigmas, values)


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


@contextlib.contextmanager
def _watched(forced: Outcome) -> Iterator[tuple[list[Picking], list[Any]]]:
    """Record picks and vectors where they reach the kernels; `forced` picks replace the first ones."""
    picks: list[Picking] = []
    vectors: list[Any] = []
    pick, release, at_once = kernels.pick_columns, kernels.gaussian_release, kernels.pursuit_release

    def picking(
        scores: _Integers, count: int, *, scale: int, excluded: _Integers, signed: bool = False
    ) -> _Integers | tuple[_Integers, _Integers]:
        outside = tuple(int(column) for column in excluded)
        made = sum(one.count for one in picks)
        picks.append(Picking(np.array(scores, np.int64), count, int(scale), outside, bool(signed)))
        if made >= len(forced):
            return pick(scores, count, scale=scale, excluded=excluded, signed=signed)  # type: ignore[call-overload, no-any-return]
        columns, signs = (np.array(part, np.int64) for part in zip(*forced[made : made + count], strict=True))
        return (columns, signs) if signed else columns

    def releasing(values: _Integers, sigmas: _Integers) -> _Integers:
        vectors.append((np.array(values, np.int64), np.array(sigmas, np.int64)))
        return release(values, sigmas)

    kernels.pick_columns = picking  # type: ignore[assignment]
    kernels.gaussian_release = releasing  # type: ignore[assignment]
    kernels.pursuit_release = _in_steps  # type: ignore[assignment]
    try:
        yield picks, vectors
    finally:
        kernels.pick_columns, kernels.gaussian_release = pick, release
        kernels.pursuit_release = at_once


def _in_steps(
    X: Any,
    y: Any,
    columns: Any,
    weights: Any,
    *,
    pick_clip: float,
    picks: int,
    pick_scale: int,
    signed: bool,
    whiten: Any,
    value_clip: float,
    sigmas: Any,
    octaves: float | None,
    units: Any,
    present: Any,
    threads: Any,
    radius: int,
    scale: float,
    cap: float,
    **public: Any,
) -> tuple[_Integers, _Integers, _Integers]:
    """Release by the kernels that `pursuit_release` consists of: its own test shows that it is no other."""
    support = np.empty((X.shape[0], 1 + len(columns)))
    same: dict[str, Any] = {"present": present, "threads": threads}
    scores, left, _ = kernels.relative_gradient(
        X, y, columns, weights, pick_clip, support, units=units, **public, **same
    )
    new = signs = np.zeros(0, np.int64)
    if picks:
        pick: Any = kernels.pick_columns
        found = pick(scores, picks, scale=pick_scale, excluded=columns, signed=signed)
        new, signs = found if signed else (found, np.ones(picks, np.int64))
    gradient, moments, size = kernels.settled_sums(
        X,
        new,
        support,
        left,
        whiten=whiten,
        clip=value_clip,
        radius=radius,
        scale=scale,
        cap=cap,
        units=None if units is None else units[new],
        **same,
    )
    whole = [] if octaves is None else kernels.row_numbers(X, public["one"], octaves, units=units, **same)
    values = np.array([*gradient, *moments[np.triu_indices(len(gradient))], size, *whole], np.int64)
    return new, signs, kernels.gaussian_release(values, sigmas)
