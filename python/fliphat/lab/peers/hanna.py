"""Phased elimination with Laplace noise on sums of rewards, for contexts whose distribution is known.

| Hanna et al. | here |
|---|---|
| a core set of arms, each pulled equally often in a phase | `_core`, 2 d or 2 (d - 1) directions |
| Laplace noise on each core arm's reward sum | `_release`, in integers |
| least squares, then arms below the best by two widths go | `_read`, a cap around the estimate |
| contexts: play theta, the best of a round's contexts, regress on g(theta) = E chosen | `_directions` |

For K independent contexts N(0, Sigma) the law gives ``g(theta) = c_K Sigma theta / |theta|_Sigma``, c_K the
mean of the largest of K normals: in whitened coordinates the arms are a sphere, and elimination leaves a cap.
Only rewards are released, and contexts enter through them alone: where the law is known and public, the
paper's reward-DP is joint privacy of context and reward. Its own widths were not at hand; these are the usual
ones of phased elimination, with (``optimistic=True``) or without their logarithms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm as normal

from fliphat import arguments, kernels
from fliphat.kernels._units import unit_of
from fliphat.lab.peers.peer import CALIBRATIONS, FAILURE, PrivatePeer

_Floats = npt.NDArray[np.float64]

#: Steps of a reward's clip: rewards are integers before the noise.
STEPS = 2**15


def largest_of(arms: int) -> float:
    """Return the mean of the largest of so many standard normals."""
    x = np.linspace(-9, 9, 20_001)
    return float(np.sum(x * arms * normal.pdf(x) * normal.cdf(x) ** (arms - 1)) * (x[1] - x[0]))


def laplace_delta(shift: int, scale: int, epsilon: float) -> float:
    """Return the delta of discrete Laplace noise of an integer scale, for a sum that moves by `shift`."""
    both = 1 + math.exp(-1 / scale)

    def up_to(z: int) -> float:
        return 1 - math.exp(-(z + 1) / scale) / both if z >= 0 else math.exp(z / scale) / both

    last = math.ceil((shift - epsilon * scale) / 2) - 1
    return max(0.0, up_to(last) - math.exp(epsilon) * up_to(last - shift)) + 1e-12


class HannaElimination(PrivatePeer):
    """Phased elimination with noisy reward sums. Joint, where the law of contexts is public.

    Parameters
    ----------
    arms : int
        K, of every round.
    correlation : float
        Of neighbouring columns: the law is N(0, Sigma), Sigma_ij = correlation^abs(i - j), arms independent.
    reward_clip : float
        R.
    calibration : {"proven", "paper"}
        The smallest Laplace noise for (epsilon, delta), or the paper's 2 R / epsilon, which is pure.
    optimistic : bool
        Whether widths have their logarithms, with which little is eliminated.

    References
    ----------
    O. Hanna, A. Girgis, C. Fragouli, S. Diggavi, "Differentially Private Stochastic Linear Bandits: (Almost)
    for Free", JSAIT 2024.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.peers import HannaElimination
    >>> policy = HannaElimination(5, 10.0, 0.01, horizon=20_000, optimistic=False, seed=1)
    >>> played = policy.play(SparseLinear(dim=5, sparsity=3, seed=1), 20_000)
    >>> bool(played.regret[-4000:].mean() < 0.3 * played.regret[:200].mean()), policy.privacy.kept
    (True, True)
    """

    protects = "a round's contexts and reward, where the law of contexts is public"

    def __init__(
        self,
        dim: int,
        epsilon: float,
        delta: float,
        *,
        horizon: int,
        arms: int = 3,
        correlation: float = 0.1,
        reward_clip: float = 4.0,
        calibration: str = "proven",
        optimistic: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__(dim, epsilon, delta, seed)
        arguments.choice("calibration", calibration, CALIBRATIONS)
        self._clip, self._seeded = arguments.positive("reward_clip", reward_clip), seed is not None
        self.noise_scale = math.ceil(2 * STEPS / epsilon)
        if calibration == "proven":
            self.noise_scale = _smallest(2 * STEPS, epsilon, delta)
        steps = np.arange(self.dim)
        values, vectors = np.linalg.eigh(correlation ** np.abs(steps[:, None] - steps))
        self._whitened = (
            vectors / np.sqrt(values)
        ) @ vectors.T  # from a direction u to the theta that plays it
        self._mean = largest_of(arms)
        self._width = math.sqrt(2 * math.log(2 * self.dim * horizon / FAILURE)) if optimistic else 1.0
        self._directions = _sphere(self.dim)
        self._length = len(self._directions)
        self._next = self._length
        self._totals = np.zeros(len(self._directions), np.int64)
        self._begun = 0

    def _bought(self) -> float:
        """Return what the noise on one reward sum buys: each reward is in one of them."""
        moved, low, high = 2 * STEPS, 0.0, 2 * STEPS / self.noise_scale
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (
                (low, middle) if _delta(moved, self.noise_scale, middle) <= self.delta else (middle, high)
            )
        return high

    @property
    def estimate(self) -> _Floats:
        """What the next phase's directions lie around, in the contexts' own coordinates."""
        return np.asarray(self._whitened @ self._estimate)  # which is whitened

    def _turns(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """Return which direction each round plays: in turn, public."""
        return (first - self._begun + np.arange(count)) % len(self._directions)

    def _arms(self, contexts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        thetas = (self._directions @ self._whitened)[self._turns(self.rounds, len(contexts))]
        return np.asarray(np.einsum("nkd,nd->nk", contexts, thetas).argmax(axis=1), np.int64)

    def _learn(self, rows: npt.NDArray[Any], rewards: _Floats) -> None:
        # Rewards alone: what a row holds is never added up.
        steps = np.trunc(np.clip(rewards, -self._clip, self._clip) * (STEPS / self._clip)).astype(np.int64)
        np.add.at(self._totals, self._turns(self.rounds - len(rewards), len(rewards)), steps)
        if self.rounds >= self._next:
            self._read(self._release(self._totals))

    def _release(self, totals: npt.NDArray[np.int64]) -> _Floats:
        """Return the phase's reward sums with noise: public."""
        noise = noisy(totals, self.noise_scale, self._rng if self._seeded else None)
        return np.asarray(noise * (self._clip / STEPS))

    def _read(self, sums: _Floats) -> None:
        d, pulls = self.dim, self._length / len(self._directions)
        u = self._directions * self._mean
        self._estimate = np.asarray(np.linalg.lstsq(u, sums / pulls, rcond=None)[0], np.float64)
        noise = math.sqrt(2) * self.noise_scale * self._clip / STEPS
        sampling = d * (self._clip / 2) ** 2 / self._length
        width = self._width * math.sqrt(sampling + (noise * d / self._length) ** 2)
        best = self._mean * float(np.linalg.norm(self._estimate))
        self._begun, self._length = self.rounds, 2 * self._length
        lost = min(1.0, 2 * width / best) if best > 0 else 1.0
        self._directions = _sphere(d) if lost >= 1 else _cap(self._estimate, math.acos(1 - lost))
        self._length = max(self._length, len(self._directions))
        self._next = self.rounds + self._length
        self._totals = np.zeros(len(self._directions), np.int64)


def noisy(totals: npt.NDArray[np.int64], scale: int, rng: np.random.Generator | None) -> _Floats:
    """Add Laplace noise of an integer scale, secure without a generator."""
    if rng is not None:
        return np.asarray(totals + np.rint(rng.laplace(scale=scale, size=len(totals))))
    # The lattice divides the integer scale: the noise is exactly what is priced.
    return kernels.laplace_mechanism(totals, float(scale))


def _delta(shift: int, scale: int, epsilon: float) -> float:
    return laplace_delta(shift * _fine(scale), scale * _fine(scale), epsilon)


def _fine(scale: int) -> int:
    """Return the steps of the noise's own lattice in one unit of its scale."""
    return max(1, round(1 / unit_of(scale)))


def _smallest(shift: int, epsilon: float, delta: float) -> int:
    """Return the smallest integer scale whose delta is within the claim, on the noise's own lattice."""
    low, high = 1, math.ceil(shift / epsilon)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _delta(shift, middle, epsilon) <= delta else (middle + 1, high)
    return high


def _sphere(dim: int) -> _Floats:
    return np.concatenate([np.eye(dim), -np.eye(dim)])


def _cap(centre: _Floats, angle: float) -> _Floats:
    """Return directions at an angle around a centre that span all coordinates: a core set of the cap."""
    first = centre / np.linalg.norm(centre)
    if len(first) == 1:
        return first[None]
    across = np.linalg.svd(first[None])[2][1:]
    return np.concatenate([math.cos(angle) * first + sign * math.sin(angle) * across for sign in (1, -1)])
