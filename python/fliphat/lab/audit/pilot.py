"""The pilot's cases for the audit: two picks about where rewards are, of which one person moves both.

The real plan prices the pilot, and the real kernel counts and picks; only its grids are small, so that
every outcome is one that is often seen. Four pairs of others say "near" and one says "far": that "far" wins
is rare, and the person, who moves from one to the other, makes it several times as likely.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fliphat import _native
from fliphat._native import SecureNoise, SeededNoise
from fliphat.fit.pursuit.constants import PILOT_NEAR, PILOT_STEPS
from fliphat.fit.pursuit.fit import PilotPlan
from fliphat.lab.audit.bounds import Counts
from fliphat.lab.audit.cases import Case
from fliphat.policies.fliphat import FLIPHAT
from fliphat.privacy.priced import PickNoise

_EPSILON, _DELTA = 1.0, 0.01
#: Candidates of a distance, far enough apart that a distance counts for one of them.
_DISTANCES = np.array([1.0, 64.0])
#: Rewards of the others, in pairs; the person's is the last, in a pair with one at zero.
_OTHERS = (0.0, 1.0) * 4 + (0.0, 64.0, 0.0)
_SIDES = (1.0, 64.0)
#: Places to either side.
_MOST = 8
_COST = 16


def pilot_cases() -> list[Case]:
    """Return the pilot's claims, for one and for three rounds of a person, and a control of each."""
    return [
        _case("a pilot", 1, 1),
        _case("a pilot, three rounds where k = 3", 3, 3),
        _case("a pilot, half the noise", 1, 1, 2, "half the noise"),
        _case("a pilot, three rounds with noise for one", 3, 1, 1, "two rounds are not paid for"),
    ]


def _case(name: str, rounds: int, covered: int, divide: int = 1, broken: str | None = None) -> Case:
    policy = FLIPHAT(2, 1, _EPSILON, _DELTA, reward_scale="estimate", rounds_per_user=covered)
    plan = policy._fit.plan(0, policy._fit.begin())
    assert isinstance(plan, PilotPlan)
    first, second = (pick.scale // divide for pick in plan.release.noise if isinstance(pick, PickNoise))

    def outcomes(side: int, runs: int, seed: int | None) -> npt.NDArray[np.uint64]:
        rewards = np.array(_OTHERS + (_SIDES[side], 0.0) * (rounds - 1) + (_SIDES[side],))
        present, equal = np.ones(len(rewards), np.uint8), np.zeros(len(_DISTANCES))
        asked = (_DISTANCES, equal, PILOT_NEAR, (_MOST, PILOT_STEPS), (first, second))
        found = []
        for run in range(runs):
            # Seeded noise begins anew in every release: each has a stream of its own.
            noise = SecureNoise() if seed is None else SeededNoise(seed, 2 * run + side)
            found.append(_native.release_pilot(rewards, present, *asked, noise))
        places = 2 * _MOST
        at = [distance * places + place + _MOST for distance, place in found]
        return np.bincount(at, minlength=len(_DISTANCES) * places).astype(np.uint64)

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        return [(outcomes(0, runs, seed), outcomes(1, runs, seed))]

    return Case(name, _EPSILON, _DELTA, count, broken, cost=_COST)
