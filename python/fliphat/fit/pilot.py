"""The pilot: where rewards are, and how far apart, before anything else is asked of them.

Some rounds of their own, played uniformly, buy two picks of the exponential mechanism on public grids: the
median of the rewards, then the median of their distance from it. Both grids are geometric, so that rewards a
million scales from zero are found as well as those at zero. The rows of a pilot are never fitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.fit import draw, model, sums
from fliphat.fit.settings import Settings
from fliphat.privacy.priced import PickNoise, PricedRelease, fit_scales

__all__ = ["PilotPlan", "facts", "length", "plan", "run"]

#: Rounds of a pilot, times mu.
_ROUNDS: Final = 45.0

#: Scores are counted in this many steps, so that a scale has digits enough.
_STEPS: Final = 2**10

#: The grids reach from 2**-20 to 2**20 scales, by eighths and quarters of a factor of two.
_OCTAVES: Final = 20
_CENTRES, _SPREADS = 8, 4

#: Standard deviations of a normal law in its median distance from the median.
_DEVIATIONS: Final = 1.48


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
    return max(math.ceil(_ROUNDS / mu), 16)


def plan(told: model.Told, settings: Settings, accounting: str) -> PilotPlan:
    """Return the plan of a policy's pilot."""
    # Replacing one row moves a count below by 1 and a score by 2.
    pick = PickNoise(2 * _STEPS, 2 * _STEPS * 100)
    release = fit_scales(
        [pick, pick],
        epsilon=settings.epsilon,
        delta=settings.delta,
        users=settings.rounds_per_user,
        accounting=accounting,
    )
    return PilotPlan(told=told, rows=length(told.mu), release=release, seed=settings.seed)


def run(
    plan: PilotPlan,
    rewards: npt.NDArray[np.float64],
    present: npt.NDArray[np.bool_],
    known: model.KnownSparse,
) -> model.KnownSparse:
    """Release centre and spread of the rewards, and return what is known then."""
    noise = draw.seeded(plan.seed, plan.episode)
    unit = plan.told.reward_scale
    sizes = unit * 2.0 ** (np.arange(-_OCTAVES * _CENTRES, _OCTAVES * _CENTRES + 1) / _CENTRES)
    centre = _pick(noise, plan, 0, rewards, present, np.concatenate([-sizes[::-1], [0.0], sizes]))
    spreads = unit * 2.0 ** (np.arange(-_OCTAVES * _SPREADS, _OCTAVES * _SPREADS + 1) / _SPREADS)
    spread = _pick(noise, plan, 1, np.abs(rewards - centre), present, spreads)
    found = model.centred(known, plan.told, centre, _DEVIATIONS * spread)
    return replace(found, episodes=known.episodes + 1)


def _pick(
    noise: draw.Drawn,
    plan: PilotPlan,
    which: int,
    values: npt.NDArray[np.float64],
    present: npt.NDArray[np.bool_],
    grid: npt.NDArray[np.float64],
) -> float:
    """Return the point of a grid that divides the values evenly, about."""
    # Picks take absolute values: scores are raised above 0, all by the public number of rows.
    scores = (sums.below(values, present, grid) + plan.rows) * _STEPS
    pick = plan.release.noise[which]
    assert isinstance(pick, PickNoise)
    columns, _ = noise.picks(scores, pick, excluded=np.zeros(0, np.int64), signed=False)
    return float(grid[columns[0]])


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
