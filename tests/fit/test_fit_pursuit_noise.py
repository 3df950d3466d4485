"""The noise that pursuit really asks for: every episode is priced again from what reached its noise.

Nothing here looks at a plan or at its price. Picks and vectors are kept by noise that draws none; how far one
person can move each number is worked out below, and the whole is priced in the order in which it was drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from fliphat import FLIPHAT, Pursuit, _native
from fliphat.fit.pursuit.plan import _factor, priced_noise
from fliphat.privacy import composition
from fliphat.privacy.conversion import epsilon_from_rho

DIM, EPISODES, DELTA = 30, 6, 0.01

#: How far replacing a row moves a sum of numbers that are clipped to -2^15 .. 2^15, and of 0 .. 2^15.
SIGNED, ONE_SIDED = 2**16, 2**15

#: Radius of the ball that second moments are of.
RADIUS = 2**12 - 1


@dataclass
class Recorded:
    """What an episode asked of its noise."""

    calls: list[tuple]
    public: set[int]

    @property
    def events(self) -> list[composition.Event]:
        """Picks and vectors in the order drawn."""
        found: list[composition.Event] = []
        for kind, values, *more in self.calls:
            if kind == "picks":
                count, scale, _, excluded = more
                assert self.public <= set(excluded) and len(values) == DIM
                found += [composition.Pick(2 * SIGNED / scale)] * count
            else:
                found.append(composition.Gaussian(math.sqrt(mu_squared(more[0].astype(float)))))
        return found


def mu_squared(sigmas: np.ndarray) -> float:
    """How far one row moves a vector, in standard deviations, squared."""
    if len(sigmas) == 3:
        # Three numbers of whole rows, before everything else.
        return float(np.sum((np.array([SIGNED, SIGNED, ONE_SIDED]) / sigmas) ** 2))
    # m gradients, the upper triangle of m x m moments, a size, five numbers of what was earned.
    m = next(m for m in range(1, 100) if m + m * (m + 1) // 2 + 6 == len(sigmas))
    gradient, moments, size, board = np.split(sigmas, np.cumsum([m, m * (m + 1) // 2, 1]))
    above = np.zeros((m, m))
    above[np.triu_indices(m)] = moments
    # |v v' - w w'|_F^2 <= 2 B^4. Entries above the diagonal are half of it, which noise on the diagonal
    # that is sqrt(2) times larger makes true of all: the smallest noise then bounds the shift.
    smallest = min((np.diag(above) / math.sqrt(2)).min(), *above[np.triu_indices(m, 1)])
    # A reward of at most 2^10 steps, its square and its count, and two flags of half as much: sqrt(9/2) 2^10.
    shifts = [SIGNED / gradient, RADIUS**2 / smallest, ONE_SIDED / size, 4.5**0.5 * 2**10 / board.min()]
    return float(sum(np.sum(shift**2) for shift in shifts))


def play(policy: FLIPHAT) -> list[Recorded]:
    """Play whole episodes and the first round of the next, which releases the last one."""
    rng = np.random.default_rng(5)
    noises: dict[int, _native.RecordingNoise] = {}
    policy._fit.noise = lambda episode: noises.setdefault(episode, _native.RecordingNoise())
    recorded = []

    def rounds(count: int) -> None:
        contexts = rng.standard_normal((count, 2, DIM)).astype(np.float32)
        public = set(policy.estimate.indices.tolist())
        decisions = policy.select_batch(contexts)
        if len(noises) > len(recorded):
            recorded.append(Recorded(noises[len(recorded)].calls, public))
        shown = contexts[np.arange(count), decisions.arms]
        policy.update_batch(decisions, shown[:, :2] @ [2.0, -1.0])

    for _ in range(EPISODES):
        rounds(1)  # releases the episode before
        rounds(policy.remaining)
    rounds(1)
    assert len(recorded) == len(noises) == EPISODES
    return recorded


@pytest.mark.parametrize(("epsilon", "sparsity"), [(1.0, 4), (8.0, 10)])
def test_every_episode_asks_for_the_noise_that_its_claim_needs(epsilon: float, sparsity: int) -> None:
    recorded = play(
        FLIPHAT(dim=DIM, sparsity=sparsity, epsilon=epsilon, delta=DELTA, fit=Pursuit(), first_episode=40)
    )
    kinds = ["".join(kind[0] for kind, *_ in episode.calls) for episode in recorded]
    # Whole rows are measured first, then picks, then one vector; of several picks each follows those before.
    assert kinds[0] == ("vppppv" if sparsity == 10 else "vpv")
    assert all(kind.lstrip("v").strip("p") == "v" for kind in kinds)
    for episode in recorded:
        # All of the claim and no more: less would be noise for nothing.
        assert 0.97 * DELTA < composition.delta(epsilon, episode.events) <= DELTA * (1 + 1e-6)


def test_control_the_numbers_that_come_first_cost_more_than_with_the_last_vector() -> None:
    recorded = play(FLIPHAT(dim=DIM, sparsity=4, epsilon=1.0, delta=DELTA, fit=Pursuit(), first_episode=40))
    first, *picks, last = recorded[0].events
    assert isinstance(first, composition.Gaussian) and isinstance(last, composition.Gaussian)
    together = composition.Gaussian(math.hypot(first.mu, last.mu))
    assert composition.delta(1.0, [*picks, together]) < 0.999 * composition.delta(1.0, recorded[0].events)


@pytest.mark.parametrize("users", [3])
def test_every_episode_asks_for_the_noise_that_k_rounds_of_a_user_need(users: int) -> None:
    recorded = play(
        FLIPHAT(
            dim=DIM,
            sparsity=4,
            epsilon=2.0,
            delta=DELTA,
            rounds_per_user=users,
            fit=Pursuit(),
            first_episode=60,
        )
    )
    for episode in recorded:
        claimed = epsilon_from_rho(Fraction(composition.zcdp(episode.events)) * users**2, DELTA)
        assert 0.98 * 2.0 < claimed <= 2.0 * (1 + 1e-6)


def test_noise_does_not_depend_on_what_else_was_priced() -> None:
    fit = FLIPHAT(dim=60, sparsity=6, epsilon=2.0, delta=1e-3)._fit
    t = fit.given.tuning
    shares = {"picks": t.late_pick_share, "moments": t.moment_share, "size": t.size_share, "board": 0.02}
    shares["gradient"] = 1 - sum(shares.values())
    found = []
    for columns in ((2, 6), (6, 2), (9, 6)):
        for kept in (priced_noise, _factor):
            kept.cache_clear()
        found.append({m: priced_noise(fit._claim, m, 1, tuple(shares.items())).noise for m in columns}[6])
    assert found[0] == found[1] == found[2]
