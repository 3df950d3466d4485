"""The noise that pursuit really draws: every episode is priced again from what reached the kernels.

Nothing here looks at a plan or at its price. Picks, vectors and second moments are recorded where they reach
the kernels; how far one person can move each number is worked out below, and the whole is priced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fliphat import FLIPHAT, Pursuit, kernels
from fliphat.privacy import composition
from fliphat.privacy.conversion import epsilon_from_rho
from pursuit_steps import watch_steps

DIM, EPISODES, DELTA = 30, 6, 0.01

#: How far replacing a row moves a sum of numbers that are clipped to -2^15 .. 2^15, and of 0 .. 2^15.
SIGNED, ONE_SIDED = 2**16, 2**15


@dataclass
class Recorded:
    """What the kernels were asked for in one episode."""

    picks: list[tuple[int, int]] = field(default_factory=list)  # scale, columns
    picked: list[int] = field(default_factory=list)
    sigmas: list[np.ndarray] = field(default_factory=list)
    radii: list[int] = field(default_factory=list)
    width: int = 0  # columns whose moments were added up

    @property
    def mu_squared(self) -> float:
        """How far one row moves the vector, in standard deviations, squared."""
        (sigmas,), (radius,) = self.sigmas, self.radii
        # m gradients, the upper triangle of m x m moments, a size, and in the first episode three more.
        m = self.width
        assert len(sigmas) - (m + m * (m + 1) // 2 + 1) in (0, 3)
        gradient, moments, size, rows = np.split(sigmas, np.cumsum([m, m * (m + 1) // 2, 1]))
        above = np.zeros((m, m))
        above[np.triu_indices(m)] = moments
        # |v v' - w w'|_F^2 <= 2 B^4. Entries above the diagonal are half of it, which noise on the diagonal
        # that is sqrt(2) times larger makes true of all: the smallest noise then bounds the shift.
        smallest = min((np.diag(above) / math.sqrt(2)).min(), *above[np.triu_indices(m, 1)])
        shifts = [
            SIGNED / gradient,
            radius**2 / smallest,
            ONE_SIDED / size,
            np.array([SIGNED, SIGNED, ONE_SIDED])[: len(rows)] / rows,
        ]
        return float(sum(np.sum(shift**2) for shift in shifts))

    @property
    def etas(self) -> list[float]:
        """Range of the privacy loss of each pick: scores move by 2^16 at most, up or down."""
        return [2 * SIGNED / scale for scale, count in self.picks for _ in range(count)]


@pytest.fixture(params=["in one call", "in steps"])
def recorded(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[Recorded]:
    episodes = [Recorded()]
    pick, release, settled = kernels.pick_columns, kernels.gaussian_release, kernels.settled_sums
    together = kernels.pursuit_release

    def at_once(
        X: Any,
        y: Any,
        columns: Any,
        *more: Any,
        picks: int,
        pick_scale: int,
        radius: int,
        sigmas: Any,
        **rest: Any,
    ) -> Any:
        found = together(
            X, y, columns, *more, picks=picks, pick_scale=pick_scale, radius=radius, sigmas=sigmas, **rest
        )
        episode = episodes[-1]
        # What the kernel does with its arguments is shown in Rust: one call is its steps on the same words.
        episode.picks.append((int(pick_scale), len(found[0])))
        episode.picked.extend(found[0].tolist())
        episode.sigmas.append(np.array(sigmas, np.float64))
        episode.radii.append(radius)
        episode.width = 1 + len(columns) + len(found[0])
        return found

    def picking(scores: Any, count: int, *, scale: int, **more: Any) -> Any:
        found = pick(scores, count, scale=scale, **more)
        columns = found[0] if isinstance(found, tuple) else found
        episodes[-1].picks.append((int(scale), len(columns)))
        episodes[-1].picked.extend(columns.tolist())
        return found

    def releasing(values: Any, sigmas: Any, *rest: Any, **more: Any) -> Any:
        episodes[-1].sigmas.append(np.array(sigmas, np.float64))
        return release(values, sigmas, *rest, **more)

    def adding(*rows: Any, radius: int, **more: Any) -> Any:
        found = settled(*rows, radius=radius, **more)
        episodes[-1].radii.append(radius)
        episodes[-1].width = len(found[0])
        return found

    if request.param == "in steps":
        watch_steps(monkeypatch)
    monkeypatch.setattr(kernels, "pursuit_release", at_once)
    monkeypatch.setattr(kernels, "pick_columns", picking)
    monkeypatch.setattr(kernels, "gaussian_release", releasing)
    monkeypatch.setattr(kernels, "settled_sums", adding)
    return episodes


def play(policy: FLIPHAT, recorded: list[Recorded]) -> None:
    """Play whole episodes and the first round of the next, which releases the last one."""
    rng = np.random.default_rng(5)

    def rounds(count: int) -> None:
        contexts = rng.standard_normal((count, 2, DIM)).astype(np.float32)
        public = set(policy.estimate.indices.tolist())
        decisions = policy.select_batch(contexts)
        if recorded[-1].sigmas:
            assert not set(recorded[-1].picked) & public
            recorded.append(Recorded())
        shown = contexts[np.arange(count), decisions.arms]
        policy.update_batch(decisions, shown[:, :2] @ [2.0, -1.0])

    for _ in range(EPISODES):
        rounds(1)  # releases the episode before
        rounds(policy.remaining)
    rounds(1)
    assert not recorded.pop().sigmas
    assert len(recorded) == EPISODES


@pytest.mark.parametrize(("epsilon", "sparsity"), [(1.0, 4), (8.0, 10)])
def test_every_episode_draws_the_noise_that_its_claim_needs(
    recorded: list[Recorded], epsilon: float, sparsity: int
) -> None:
    play(
        FLIPHAT(dim=DIM, sparsity=sparsity, epsilon=epsilon, delta=DELTA, fit=Pursuit(), first_episode=40),
        recorded,
    )
    assert (len(recorded[0].etas) > 1) == (sparsity == 10)  # of several picks each follows those before
    for episode in recorded:
        events = [composition.Pick(eta) for eta in episode.etas]
        price = composition.delta(epsilon, [*events, composition.Gaussian(math.sqrt(episode.mu_squared))])
        # All of the claim and no more: less would be noise for nothing.
        assert 0.97 * DELTA < price <= DELTA * (1 + 1e-6)


@pytest.mark.parametrize("users", [3])
def test_every_episode_draws_the_noise_that_k_rounds_of_a_user_need(
    recorded: list[Recorded], users: int
) -> None:
    play(
        FLIPHAT(
            dim=DIM,
            sparsity=4,
            epsilon=2.0,
            delta=DELTA,
            rounds_per_user=users,
            fit=Pursuit(),
            first_episode=60,
        ),
        recorded,
    )
    for episode in recorded:
        rho = sum(eta**2 / 8 for eta in episode.etas) + episode.mu_squared / 2
        claimed = epsilon_from_rho(Fraction(rho) * users**2, DELTA)
        assert 0.98 * 2.0 < claimed <= 2.0 * (1 + 1e-6)
