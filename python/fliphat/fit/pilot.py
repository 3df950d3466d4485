"""The pilot: where rewards are, and how far apart, before anything else is asked of them.

Some rounds of their own, played uniformly, buy two picks of the exponential mechanism: the median distance
between two rewards, on a geometric grid, and then the place where most rewards are, among multiples of that
distance. Near zero is more likely beforehand: a public weight of 1/(1 + j) for the j-th multiple lets few
rounds find rewards near zero and lets more of them find rewards a million distances away. The rows of a pilot
are never fitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.fit import draw, model, sums
from fliphat.fit.settings import Settings
from fliphat.privacy.priced import PickNoise, PricedRelease

__all__ = ["PilotPlan", "facts", "length", "plan", "run"]

#: Rounds of a pilot, times mu.
_ROUNDS: Final = 60.0

_FEWEST: Final = 60

#: Counts are scored in this many steps, so that a scale has digits enough.
_STEPS: Final = 2**10

#: Distances reach from 2**-20 to 2**20 scales, by quarters of a factor of two.
_OCTAVES, _QUARTERS = 20, 4

#: Places reach this many distances to either side.
_MOST: Final = 2**21

#: Median distance of two draws from a normal law, in standard deviations.
_MEDIAN_DISTANCE: Final = 0.954


@dataclass(frozen=True, kw_only=True)
class PilotPlan:
    """Everything a pilot will do."""

    told: model.Told
    rows: int
    release: PricedRelease
    seed: int | None
    episode: int = 0


def length(mu: float) -> int:
    """Return the rounds of a pilot."""
    return max(math.ceil(_ROUNDS / mu), _FEWEST)


def plan(told: model.Told, settings: Settings, accounting: str) -> PilotPlan:
    """Return the plan of a policy's pilot."""
    # Replacing one row changes one distance, which moves its scores by 2, and one place, which moves by 1.
    template = [PickNoise(2 * _STEPS, 200 * _STEPS), PickNoise(_STEPS, 100 * _STEPS)]
    release = draw.priced(template, settings, accounting)
    return PilotPlan(told=told, rows=length(told.mu), release=release, seed=settings.seed)


def run(
    plan: PilotPlan,
    rewards: npt.NDArray[np.float64],
    present: npt.NDArray[np.bool_],
    known: model.KnownSparse,
) -> model.KnownSparse:
    """Release centre and spread of the rewards, and return what is known then."""
    noise = draw.seeded(plan.seed, plan.episode)
    pairs = len(rewards) // 2
    first, second = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    points = np.arange(-_OCTAVES * _QUARTERS, _OCTAVES * _QUARTERS + 1) / _QUARTERS
    grid = np.concatenate([[0.0], plan.told.reward_scale * 2.0**points])
    with np.errstate(over="ignore"):
        distances = np.abs(rewards[first] - rewards[second])
    even = sums.even_intervals(distances, present[first] & present[second], grid)
    at = _pick(noise, plan, 0, even)
    distance = math.sqrt(max(grid[at], grid[1] / 4) * grid[at + 1])
    # A little wider than found: of windows that are too narrow none has many rewards.
    width = 1.5 * distance
    counts = sums.windows(rewards, present, width, _MOST)
    where = np.arange(len(counts)) + 1 - _MOST
    centre = float(where[_pick(noise, plan, 1, counts, np.log1p(np.abs(where)))] * width)
    found = model.centred(known, plan.told, centre, distance / _MEDIAN_DISTANCE)
    return replace(found, episodes=known.episodes + 1)


def _pick(
    noise: draw.Drawn,
    plan: PilotPlan,
    which: int,
    counts: npt.NDArray[np.int64],
    unlikely: npt.NDArray[np.float64] | None = None,
) -> int:
    """Return a candidate picked by its count, less a public handicap."""
    pick = plan.release.noise[which]
    assert isinstance(pick, PickNoise)
    scores = counts * _STEPS
    if unlikely is not None:
        scores = scores - np.rint(pick.scale * unlikely).astype(np.int64)
    # Picks go by absolute values: all scores are raised above 0, by the same public number.
    lowest = plan.rows * _STEPS + math.ceil(pick.scale * math.log(2 * _MOST))
    columns, _ = noise.picks(scores + lowest, pick, excluded=np.zeros(0, np.int64), signed=False)
    return int(columns[0])


def facts(plan: PilotPlan) -> dict[str, Any]:
    """Return what may be told about a pilot: it releases no estimate."""
    return {
        "episode": plan.episode,
        "rounds": plan.rows,
        "sparsity": 0,
        "iterations": 0,
        "step_size": 1.0,
        "warm": False,
        "noise_scale": 0.0,
        "smallest_coefficient": math.inf,
    }
