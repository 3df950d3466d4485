"""The audit's cases for PrivateLinear and for named arms of FLIPHAT: one person's contents swapped.

There are two columns; a person's contents are context, reward and arm.

The person's row is in every release from its episode on, so a case is a *life*: the fit plays episodes before
the person comes, the person's and several later ones, all from its own plans. What its release
asks of a recording noise is kept on both sides, and then released again many times by `release_totals`, each
time from the secret that the one before returned. The log-likelihood ratio of all
releases together is the score. Rows along different axes with rewards at different ends move every part
nearly as far as any two rows do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat import _native
from fliphat.fit.board import BOARD_SQUARED
from fliphat.fit.dense import Dense, DenseSettings, parts
from fliphat.fit.dense.arms import ArmTable
from fliphat.fit.dense.chain import FIRST_WEIGHT
from fliphat.kernels import _fits as fit_kernels
from fliphat.kernels._fits import TotalPart
from fliphat.lab.audit.bounds import Counts
from fliphat.lab.audit.cases import Case, Counter
from fliphat.lab.audit.peers import boundary_case
from fliphat.lab.audit.steps import StepsCall, counting, recorded_steps

__all__ = ["linear_cases"]

#: A large delta, as in the other cases: the most telling event is then a frequent one.
_EPSILON, _DELTA = 1.0, 0.2
_DIM, _ROUNDS = 2, 12

#: Context, arm and reward of the person on the two sides; contexts are cut to the ball.
_SIDES: Final = (((1e9, 0.0), 0, 1.0), ((-1e9, 0.0), 0, 1.0))
_AXES: Final = (((1e9, 0.0), 0, 1.0), ((0.0, 1e9), 1, 1.0))

#: A reward and a context that are cut, and a reward at the other end: no rows differ more on the board.
_REWARDS: Final = (((1e9, 0.0), 0, 2.0), ((0.0, 0.0), 0, 0.0))

#: Native cases make about this many runs in the time of one here.
_COST = 10

_BINS = 256

#: Parts of each release.
_Life = list[list[TotalPart]]
_Both = tuple[_Life, _Life]


def linear_cases() -> list[Case]:
    """Return the claims and the controls of PrivateLinear."""

    def case(name: str, record: Callable[[], _Both], broken: str | None = None) -> Case:
        return Case(f"PrivateLinear, {name}", _EPSILON, _DELTA, _counting(record), broken, cost=_COST)

    return [
        case("the first episode", lambda: _lived(0, 0)),
        case("a life in totals, from their first release on", lambda: _lived(3, 6)),
        case("a life in totals, with second moments", lambda: _lived(4, 6, _AXES)),
        case("without totals", lambda: _lived(3, 2, totals=False)),
        case(
            "noise at 2/3 of what is needed", lambda: _less(_lived(3, 6)), "a third of the noise is missing"
        ),
        case(
            "rows centered by their own mean",
            lambda: _lived(0, 0, own_center=True),
            "one row moves the integers of all others",
        ),
        case(
            "moments priced for a row that is only added",
            lambda: _one_row(),
            "B^2 for sqrt(2) B^2, which is how far two rows differ",
        ),
        case(
            "a discount above the promised one",
            lambda: _chained([4, 5, 6, 7, 8], promised=[8, 10, 12, 14, 16]),
            "0.5 was promised and 0.8 is used",
        ),
        case(
            "noise that falls while a total lives",
            lambda: _chained([4, 5, 6, 12, 24, 96], variances=[1.0, 1.0, 0.4, 0.4, 0.4, 0.4]),
            "a larger share after a smaller one, without beginning anew",
        ),
        case(
            "a part that is filled in later",
            lambda: _chained([4, 8, 16], later=0.5),
            "rows of before are in a part that they did not pay for",
        ),
        case(
            "rows added to their total twice",
            lambda: _chained([4, 5, 6, 7], times=2),
            "rows that are in a total already",
        ),
        case(
            "an old total with newer rows",
            lambda: _chained([4, 5, 6, 7, 8, 9], again=True),
            "the releases of two copies",
        ),
        _board_case("the five numbers of its scoreboard"),
        _board_case("its scoreboard with half the noise", 0.5, "half of the noise is missing"),
        _grown_case("a pick and what it opens"),
        _grown_case("a pick and what it opens, noise at 2/3", 2 / 3, "a third of the noise is missing"),
        boundary_case("PrivateLinear, an episode that ends when rewards are high"),
    ]


# Lives, as the fit plays them


def _fit(totals: bool = True, grows: bool = False) -> Dense:
    settings = DenseSettings.checked(
        arms=2,
        dim=_DIM,
        epsilon=_EPSILON,
        delta=_DELTA,
        context_norm=1.0,
        first_episode=_ROUNDS,
        growth=1.2,
        totals=totals,
        grows=grows,
        sparsity=1 if grows else None,
    )
    fit = Dense(settings)
    fit.use_arms(ArmTable(range(2)))
    return fit


def _lived(
    before: int, after: int, sides: Any = _SIDES, totals: bool = True, own_center: bool = False
) -> _Both:
    """Return what noise is asked for in all episodes, on both sides.

    Everybody else comes without a reward, and what is released is taken to be the same on both sides: the
    integers of the episodes before with no noise. So plans are the same, too.
    """
    lives: list[_Life] = []
    for context, arm, reward in sides:
        fit = _fit(totals)
        recorded = _watched(fit)
        known, secret = fit.begin(), None
        for episode in range(before + 1 + after):
            plan = fit.plan(episode, known)
            rows = np.zeros((plan.rows, _DIM + 1))
            rewards, present = np.zeros(plan.rows), np.zeros(plan.rows, bool)
            if episode < before:
                # Two rows of each kind, so that columns have sizes and the map is settled.
                rows[:4, :_DIM], present[:4] = [[0.3, 0.3], [-0.3, -0.3], [0.3, -0.3], [-0.3, 0.3]], True
            if episode == before:
                rows[0], rewards[0], present[0] = [*context, arm], reward, True
            if own_center:
                rows[1:], rewards[1:], present[1:] = [0.5, 0.25, 1], 1.0, True
                rows[:, :_DIM] -= np.clip(rows[:, :_DIM], -10, 10).mean(axis=0)
            known, secret = fit.run_totals(plan, rows, rewards, present, known, secret)
        lives.append([_parts(noise) for noise in recorded])
    return lives[0], lives[1]


def _watched(fit: Dense) -> list[_native.RecordingNoise]:
    """Let a fit release the numbers of nobody, and return what keeps what it asks for, release by release."""
    recorded: list[_native.RecordingNoise] = []

    def noise(episode: int) -> _native.RecordingNoise:
        recorded.append(_native.RecordingNoise())
        return recorded[-1]

    fit.noise = noise
    return recorded


def _parts(noise: _native.RecordingNoise) -> list[TotalPart]:
    if not noise.calls or any(kind != "total" for kind, *_ in noise.calls):
        raise RuntimeError("totals alone were expected of a release")
    return [TotalPart(*call) for _, *call in noise.calls]


def _board_case(name: str, noise: float = 1.0, broken: str | None = None) -> Case:
    """Return a case of the scoreboard alone, at the price of its own share."""
    fit = _fit()
    variance = fit.plan(0, fit.begin()).steps["board"].variance
    mu = (BOARD_SQUARED / variance) ** 0.5
    epsilon, normal = mu / 2, NormalDist()
    delta = normal.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal.cdf(-mu / 2 - epsilon / mu)

    def record() -> _Both:
        board = parts.NAMES["board"]
        first, second = (
            [[part for part in release if part.name == board] for release in life]
            for life in _lived(0, 0, _REWARDS)
        )
        return _less((first, second), noise) if broken else (first, second)

    return Case(f"PrivateLinear, {name}", epsilon, delta, _counting(record), broken, cost=_COST)


def _grown_case(name: str, noise: float = 1.0, broken: str | None = None) -> Case:
    """Return a case of an episode of a support that grows: the pick, and the vector of what was picked.

    The person says the opposite of two columns; one other row makes the sizes of their sums tell that.
    """

    def record() -> tuple[list[StepsCall], list[StepsCall]]:
        sides = []
        for sign in (1.0, -1.0):
            fit = _fit(grows=True)
            plan, known = fit.plan(0, fit.begin()), fit.begin()
            rows = np.zeros((plan.rows, _DIM + 1))
            rows[:2, :_DIM] = [sign * 1e9, -sign * 1e9], [1e9, 1e9]
            given = plan, rows, np.ones(plan.rows), np.arange(plan.rows) < 2, known, None

            def release(noise: _native.RecordingNoise, fit: Dense = fit, given: Any = given) -> None:
                fit.noise = lambda episode: noise
                fit.run_totals(*given)

            sides.append([recorded_steps(release).noisier(noise)])
        return sides[0], sides[1]

    return Case(f"FLIPHAT, named arms, {name}", _EPSILON, _DELTA, counting(record), broken, cost=_COST)


# Controls


def _less(both: _Both, share: float = 2 / 3) -> _Both:
    """Return the same with a share of the noise."""

    def part(one: TotalPart) -> TotalPart:
        return one._replace(sigmas=(one.sigmas * share).astype(np.uint64))

    first, second = ([[part(one) for one in release] for release in life] for life in both)
    return first, second


def _one_row() -> _Both:
    """Return one release of second moments with noise for R^2 where R^2 sqrt(2) is needed."""
    cap = float(_fit().cap)
    sigma = parts.RADIUS**2 / (cap * 2) ** 0.5
    lives = []
    for q in ((parts.RADIUS, 0), (0, parts.RADIUS)):
        moments = np.array([q[0] ** 2, q[0] * q[1], q[1] ** 2])
        sigmas = np.ceil(sigma * np.array([2**0.5, 1, 2**0.5])).astype(np.uint64)
        lives.append([[TotalPart(0, moments, 1, (0, 0), sigmas, 0, False)]])
    return lives[0], lives[1]


def _chained(
    weights: list[int],
    promised: list[int] | None = None,
    variances: list[float] | None = None,
    later: float = 0.0,
    times: int = 1,
    again: bool = False,
) -> _Both:
    """Return the life of one number that the person moves as far as is allowed, with one rule broken.

    Parameters
    ----------
    weights : list of int
        In units of the first weight over 4.
    promised : list of int, optional
        What the noise counts on as the next weight.
    variances : list of float, optional
        Of each release, over that of the price of the whole claim.
    later : float
        Share of a second part that starts with the second release, and holds the first one's rows.
    times : int
        How often the person is in the total.
    again : bool
        Whether a second copy makes the same releases.
    """
    unit, cap, moved = FIRST_WEIGHT // 4, _fit().cap, 2**20
    following = promised or [*weights[1:], weights[-1] + 1]
    lives = []
    for side in (0, 1):
        life: _Life = []
        for copy in range(2 if again else 1):
            for index, (weight, later_one) in enumerate(zip(weights, following, strict=True)):
                variance = Fraction(moved**2) / cap * Fraction((variances or [1.0] * len(weights))[index])
                own, then = Fraction(1, (weight * unit) ** 2), Fraction(1, (later_one * unit) ** 2)
                sigma = parts.root_up(variance / (own - then))
                person = np.array([side * moved * times if index == 0 else 0])
                before = (0, 0) if index == 0 else (index, weights[index - 1] * unit)
                # The copy's total is one of its own, named by another number.
                release = [
                    TotalPart(copy, person, weight * unit, before, np.array([sigma], np.uint64), 0, True)
                ]
                if later and index > 0:
                    share = parts.root_up(variance / Fraction(later) / own)
                    filled = np.array([side * moved])
                    release.append(
                        TotalPart(2, filled, weight * unit, (0, 0), np.array([share], np.uint64), 0, False)
                    )
                life.append(release)
        lives.append(life)
    return lives[0], lives[1]


# Runs


def _counting(record: Callable[[], _Both]) -> Counter:
    """Return what counts the log-likelihood ratios of lives, each released again in every run."""
    recording: list[_Both] = []

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        if not recording:
            recording.append(record())
        both = recording[0]
        shifts = _shifts(both)
        squared = sum(float(one @ one) for one in shifts)
        reach = squared / 2 + 5 * squared**0.5 + 1e-9
        cuts = np.linspace(-reach, reach, _BINS + 1)
        counts = []
        for side, life in enumerate(both):
            ratios = _ratios(life, both[0], shifts, runs, None if seed is None else (2 * seed + side) % 2**63)
            counts.append(
                np.histogram(np.clip(ratios - squared / 2, -reach, reach), cuts)[0].astype(np.uint64)
            )
        return [(counts[0], counts[1])]

    return count


def _totals(life: _Life) -> list[npt.NDArray[np.float64]]:
    """Return the exact totals of each release, in units of their noise."""
    found, held = [], dict[int, npt.NDArray[Any]]()
    for release in life:
        numbers = []
        for part in release:
            total = part.weight * part.added.astype(object)
            if part.before[0]:
                total = total + held[part.name]
            held[part.name] = total
            numbers.append((total / 2**part.shift).astype(np.float64) / part.sigmas.astype(np.float64))
        found.append(np.concatenate(numbers))
    return found


def _shifts(both: _Both) -> list[npt.NDArray[np.float64]]:
    """Return by how much the sides differ in each release, in units of the noise."""
    return [second - first for first, second in zip(*(_totals(life) for life in both), strict=True)]


def _ratios(
    life: _Life,
    first: _Life,
    shifts: list[npt.NDArray[np.float64]],
    runs: int,
    seed: int | None,
) -> npt.NDArray[np.float64]:
    """Return the score of each run of a life: released by the kernel, secret after secret."""
    ratios, secret = np.zeros(runs), None
    held: dict[int, bytes] = {}
    for index, (release, middle, shift) in enumerate(zip(life, _totals(first), shifts, strict=True)):
        at = 0
        for part in release:
            size = len(part.added)
            # All runs in one vector: each has a total of its own in the secret.
            asked = part._replace(added=np.tile(part.added, runs), sigmas=np.tile(part.sigmas, runs))
            seeded = None if seed is None else (seed, 8 * index + part.name)
            drawn, secret = fit_kernels.release_totals(held.get(part.name), [asked], seeded=seeded)
            held[part.name] = secret
            own = slice(at, at + size)
            noisy = drawn.reshape(runs, size) / part.sigmas.astype(np.float64) - middle[own]
            ratios += noisy @ shift[own]
            at += size
    return ratios
