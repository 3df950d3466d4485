"""Several simulated runs of one plan, a seed each, and what is said of them together."""

from __future__ import annotations

import dataclasses
import math
from typing import Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.pursuit.fit import PursuitFit
from fliphat.fit.settings import Settings
from fliphat.lab.planning.course import Course, Step, sizes_of
from fliphat.lab.planning.world import World

_Array = npt.NDArray[np.float64]

#: The mean of 24 is within 10 to 20 % of the limit.
COURSES: Final = 24
#: The share of courses from which a coefficient counts as found.
_FOUND: Final = 0.6
#: Of the courses, this share is below the range that is told, and above it.
_OUTSIDE: Final = 0.1


class Courses:
    """Courses of pursuit in a stated world, up to a round.

    `settings`: of pursuit; its seed is not used.
    `sizes`: whether to work out which sizes of coefficients are found, which takes time.

    `middle`: the episodes of the course whose regret is the middle one.
    `regret`: mean of the courses'. The worst counts as the second worst: of a few hundred runs one is lost
    for long, and two dozen courses can't say how often.
    `regret_range`: A tenth of the courses have less, and a tenth have more.
    """

    def __init__(self, settings: Settings, world: World, rounds: int, *, sizes: bool = True) -> None:
        self._rounds, self._sizes = rounds, sizes_of(world)
        self._matter, self._coefficient = world.matter, world.coefficient
        first = PursuitFit(settings).settings
        runs = []
        for seed in range(COURSES):
            course = Course(PursuitFit(dataclasses.replace(first, seed=seed)), world, seed, sizes=sizes)
            runs.append(_Run(course, rounds))
        # With other signs of the coefficients other regrets are possible: what matters is their mean.
        scale = world.random_regret / float(np.mean([run.random_regret for run in runs]))
        runs.sort(key=lambda run: run.regret)
        self.middle: list[Step] = runs[COURSES // 2].steps
        self._runs = [*runs[:-1], runs[-2]]
        totals = scale * np.array([run.regret for run in self._runs])
        self.regret = float(totals.mean())
        low, high = np.quantile(totals, [_OUTSIDE, 1 - _OUTSIDE])
        self.regret_range = (float(low), float(high))
        self._random = float(sum(run.random_regret for run in self._runs))

    def share(self, at: int) -> float:
        """Return the mean regret of a round over that of one played at random."""
        return float(sum(run.regret_at(at) for run in self._runs)) / self._random

    def band(self, at: int) -> tuple[float, float]:
        """Return between which shares eight courses in ten are, widened to hold their mean."""
        each = np.array([run.regret_at(at) for run in self._runs]) * len(self._runs) / self._random
        low, high = np.quantile(each, [_OUTSIDE, 1 - _OUTSIDE])
        mean = self.share(at)
        return min(float(low), mean), max(float(high), mean)

    def smallest(self, at: int) -> float:
        """Return the size from which three coefficients in five have been found by then; infinite if none.

        Chances of the sizes are worked out as if nothing that was found were lost again, so they are brought
        to what became of the columns that matter: the logarithms of all of them are scaled alike.
        """
        missed = np.mean([run.step_at(at).missed for run in self._runs], axis=0)
        missed = np.clip(missed, 1e-12, 1 - 1e-9)
        missing = float(np.mean([run.step_at(at).missing for run in self._runs]))
        fewest = 0.5 / (len(self._runs) * self._matter)
        here = float(np.interp(self._coefficient, self._sizes, missed))
        missed **= math.log(max(missing, fewest)) / math.log(here)
        enough = np.flatnonzero(1 - missed >= _FOUND)
        if len(enough) == 0:
            return math.inf
        last = int(enough[0])
        if last == 0:
            return float(self._sizes[0])
        before, after = missed[last - 1], missed[last]
        part = (before - (1 - _FOUND)) / (before - after)
        return float(self._sizes[last - 1] * (self._sizes[last] / self._sizes[last - 1]) ** part)

    def start(self) -> int | None:
        """Return the first round whose mean regret is at most half of random play's; None if none is."""
        for at in sorted({at for run in self._runs for at in run.released if at <= self._rounds}):
            if self.share(at) <= 0.5:
                return at
        return None


class _Run:
    """One course, played to the episode in which the rounds end."""

    def __init__(self, course: Course, rounds: int) -> None:
        self.random_regret = regret = course.random_regret
        self.steps: list[Step] = []
        self.released: list[int] = []
        self.regrets: list[float] = []
        self.regret, at = 0.0, 1
        while at <= rounds:
            step = course.step()
            self.regret += regret * min(step.plan.rows, rounds + 1 - at)
            at, regret = at + step.plan.rows, step.regret
            self.steps.append(step)
            self.released.append(at)
            self.regrets.append(regret)

    def regret_at(self, at: int) -> float:
        place = int(np.searchsorted(self.released, at, side="right"))
        return self.random_regret if place == 0 else self.regrets[place - 1]

    def step_at(self, at: int) -> Step:
        """Return the last episode whose estimate was there at a round; the first if none was."""
        return self.steps[max(int(np.searchsorted(self.released, at, side="right")) - 1, 0)]
