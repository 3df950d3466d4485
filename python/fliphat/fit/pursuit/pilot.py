"""The pilot: where rewards are, and how far apart, before anything else is asked of them.

Some rounds of their own, played uniformly, buy two picks of the exponential mechanism: about how far apart
two rewards are, on a geometric grid, and then the place where most rewards are, among multiples of that
distance. Both count what is near a candidate, so one reward moves a count by one. What was told, and near
zero, is more likely beforehand: a public weight of 1/(1 + j) for a candidate j octaves or steps away
lets few rounds find what is near and lets more of them find rewards a million distances away. The rows of a
pilot are never fitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat import _native
from fliphat.fit.pursuit.known import KnownSparse, Told
from fliphat.fit.pursuit.opening import centred
from fliphat.fit.release import Noise
from fliphat.fit.settings import Settings
from fliphat.privacy.priced import PickNoise, PricedRelease, fit_scales

__all__ = ["NEAR", "STEPS", "PilotPlan", "facts", "length", "plan", "run"]

#: Rounds of a pilot, times mu.
_ROUNDS: Final = 45.0

_FEWEST: Final = 60

#: Counts are scored in this many steps, so that a scale has digits enough.
STEPS: Final = 2**10

#: Distances reach from 2**-20 to 2**20 scales, by quarters of a factor of two.
_OCTAVES, _QUARTERS = 20, 4

#: Places reach this many steps to either side.
_MOST: Final = 2**21

#: Distances within this factor count for a candidate: most of a normal law's, and hardly any of a far one's.
_FACTOR: Final = math.sqrt(8.0)

#: The distance near which most distances of two draws from a normal law are, in standard deviations.
_USUAL_DISTANCE: Final = 1.02

#: Places are multiples of this many distances, and what is within two of these steps counts for them.
_STEP: Final = 0.7

#: What counts as near a candidate, of both picks.
NEAR: Final = (_FACTOR, _STEP)


@dataclass(frozen=True, kw_only=True)
class PilotPlan:
    """Everything a pilot will do."""

    told: Told
    rows: int
    release: PricedRelease
    episode: int = 0


def length(mu: float) -> int:
    """Return the rounds of a pilot."""
    return max(math.ceil(_ROUNDS / mu), _FEWEST)


def plan(told: Told, settings: Settings, accounting: str) -> PilotPlan:
    """Return the plan of a policy's pilot."""
    # Replacing one row changes one distance and one place, each of which moves a count by 1.
    release = fit_scales(
        [PickNoise(STEPS, 100 * STEPS), PickNoise(STEPS, 100 * STEPS)],
        epsilon=settings.epsilon,
        delta=settings.delta,
        users=settings.rounds_per_user,
        accounting=accounting,
    )
    return PilotPlan(told=told, rows=length(told.mu), release=release)


def run(
    plan: PilotPlan,
    rewards: npt.NDArray[np.float64],
    present: npt.NDArray[np.bool_],
    known: KnownSparse,
    noise: Noise,
) -> KnownSparse:
    """Release centre and spread of the rewards, and return what is known then."""
    points = np.arange(-_OCTAVES * _QUARTERS, _OCTAVES * _QUARTERS + 1) / _QUARTERS
    distances = plan.told.reward_scale * 2.0**points
    first, second = (pick.scale for pick in plan.release.noise if isinstance(pick, PickNoise))
    at, place = _native.release_pilot(
        rewards,
        present.view(np.uint8),
        distances,
        np.log1p(np.abs(points)),
        NEAR,
        (_MOST, STEPS),
        (first, second),
        noise,
    )
    distance = float(distances[at])
    found = centred(known, plan.told, place * _STEP * distance, distance / _USUAL_DISTANCE)
    return replace(found, episodes=known.episodes + 1)


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
