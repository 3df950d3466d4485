"""Noisy sums of rows: what is summed, in integers, the draw on it, and what that costs.

Each statistic says how far replacing one row can move it, as the parts of one Gaussian vector
(:class:`fliphat.privacy.priced.Part`). Contexts and rewards may be anything: what is too long is cut, and a
row whose length is not a finite number counts as zeros.

A row takes part in at most `nodes` noisy sums, released one after the other, later ones for arms that depend
on earlier ones. Gaussian mechanisms composed adaptively cost no more than one whose squared shift is the sum
(Dong, Roth, Su 2022, corollary 3.3), so a row costs one ``composition.Gaussian`` whose ``mu**2`` is `nodes`
times that of one sum: exactly priced, for a tree as for a block.

References
----------
J. Dong, A. Roth, W. Su (2022). Gaussian Differential Privacy. JRSS B 84 (1), arXiv:1905.02383.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat import arguments, kernels
from fliphat.kernels import _fits as fit_kernels
from fliphat.privacy import composition
from fliphat.privacy.priced import Part, PricedRelease, VectorNoise, fit_scales

#: Radius of the ball that rows are cut to, in integers: the largest that the kernels take.
RADIUS: Final = 2**15 - 1

#: Rows that are joined with their rewards at once: 13 MB at d = 400.
_ROWS_AT_ONCE: Final = 4096

_Integers = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


class Statistic(ABC):
    """Integers of rows and rewards that are added up."""

    dim: int
    #: How many integers.
    size: int

    @abstractmethod
    def of(self, rows: npt.NDArray[Any], rewards: _Floats) -> _Integers:
        """Return the sum over some rows: private, exact, the same for any order of rows."""

    @abstractmethod
    def noise(self, nodes: int, *sigmas: int) -> VectorNoise:
        """Return the noise of a row that takes part in `nodes` noisy sums, with these standard deviations."""

    @abstractmethod
    def spread(self, noise: VectorNoise) -> _Integers:
        """Return the standard deviation of each integer's noise."""

    @abstractmethod
    def noise_rows(self, noise: VectorNoise) -> float:
        """Return how many rows vary as much as one release's noise does: public."""


def ceil_root_two(sigma: int) -> int:
    """Return the smallest integer at or above ``sqrt(2) * sigma``."""
    return math.isqrt(2 * sigma * sigma - 1) + 1


class SecondMoments(Statistic):
    """Sums of ``v v'`` for ``v = (x, y)`` cut to one ball: X'X and X'y at once.

    A context of length `context_norm` with a reward of `reward_clip` has exactly the ball's radius B. A
    longer ``v`` is cut as a whole, context and reward alike: what is linear in x stays linear.

    Replacing v by w moves the sum by ``|vv' - ww'|_F^2 = |v|^4 + |w|^4 - 2 (v'w)^2 <= 2 B^4``. Entries above
    the diagonal count twice in that norm and are released once, with sigma; those on the diagonal with at
    least ``sqrt(2) * sigma``. So the shifts, in standard deviations, have a squared norm of at most
    ``2 B^4 / (2 sigma^2) = B^4 / sigma^2``. The reward's own square is not released.

    `context_norm`: L, public.
    `reward_clip`: R, public.
    `reward_share`: kappa: squared length of a reward at its clip, relative to that of a context at its
    norm. More of it makes X'y more accurate and X'X less.
    """

    def __init__(
        self, dim: int, *, context_norm: float, reward_clip: float, reward_share: float = 0.5
    ) -> None:
        self.dim = arguments.integer("dim", dim, 1, 2**15)
        norm = arguments.positive("context_norm", context_norm)
        clip = arguments.positive("reward_clip", reward_clip)
        share = arguments.positive("reward_share", reward_share)
        self.context_scale = RADIUS / (norm * math.sqrt(1 + share))
        self._entry = (self.context_scale * norm) ** 2 / self.dim
        self.reward_scale = math.sqrt(share) * self.context_scale * norm / clip
        self._scales = np.append(np.full(self.dim, self.context_scale), self.reward_scale)
        upper = np.triu_indices(self.dim + 1)
        # The last entry of the upper triangle is the reward's square: nobody needs it.
        self._upper = (upper[0][:-1], upper[1][:-1])
        self.size = len(self._upper[0])

    def of(self, rows: npt.NDArray[Any], rewards: _Floats) -> _Integers:
        """Return the upper triangle of the sum of ``v v'``."""
        total = np.zeros((self.dim + 1, self.dim + 1), np.int64)
        for start in range(0, len(rewards), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            joined = np.column_stack([rows[part], rewards[part]]).astype(np.float64, copy=False)
            total += kernels.second_moments(np.ascontiguousarray(joined), radius=RADIUS, scale=self._scales)
        return total[self._upper]

    def noise(self, nodes: int, *sigmas: int) -> VectorNoise:
        """Return the noise with `sigmas` = (that above the diagonal,)."""
        (sigma,) = sigmas
        return VectorNoise(Part(nodes * RADIUS**4, sigma))

    def spread(self, noise: VectorNoise) -> _Integers:
        """Return sigma above the diagonal and ``sqrt(2) * sigma``, rounded up, on it."""
        sigma = noise.parts[0].sigma
        return np.where(self._upper[0] == self._upper[1], ceil_root_two(sigma), sigma).astype(np.int64)

    def read(self, values: _Floats) -> tuple[_Floats, _Floats]:
        """Return X'X and X'y, in the rows' units, from a released (or summed) upper triangle."""
        full = np.zeros((self.dim + 1, self.dim + 1))
        full[self._upper] = values
        gram = full[:-1, :-1] + np.triu(full[:-1, :-1], 1).T
        return gram / self.context_scale**2, full[:-1, -1] / (self.context_scale * self.reward_scale)

    def noise_rows(self, noise: VectorNoise) -> float:
        """Return the squared ratio of sigma to an entry of ``x x'`` whose row is at its norm."""
        return (noise.parts[0].sigma / self._entry) ** 2

    def gram_deviation(self, noise: VectorNoise) -> float:
        """Return the standard deviation of one release's noise above X'X's diagonal, in the rows' units."""
        return noise.parts[0].sigma / self.context_scale**2


class Moments(Statistic):
    """Sums of ``x y``, each product cut to length `product_clip`: X'y alone.

    Replacing one row moves the sum by at most ``2 B`` in l2 norm. That holds as well if contexts are public
    and the rewards alone are private.

    `product_clip`: C, public: ``|x y|_2`` is cut here. The bound L R of the worst row is far above what
    rows usually have.
    """

    def __init__(self, dim: int, *, product_clip: float) -> None:
        self.dim = self.size = arguments.integer("dim", dim, 1, 2**31 - 1)
        self.scale = RADIUS / arguments.positive("product_clip", product_clip)

    def of(self, rows: npt.NDArray[Any], rewards: _Floats) -> _Integers:
        """Return the sum of the cut products."""
        one_arm = np.zeros(len(rewards), np.int64)
        rows = np.ascontiguousarray(rows)
        sums = fit_kernels.ball_gradient(rows, rewards, one_arm, count=1, radius=RADIUS, scale=self.scale)
        return sums.reshape(-1)

    def noise(self, nodes: int, *sigmas: int) -> VectorNoise:
        """Return the noise with `sigmas` = (that of every integer,)."""
        (sigma,) = sigmas
        return VectorNoise(Part(nodes * 4 * RADIUS**2, sigma))

    def spread(self, noise: VectorNoise) -> _Integers:
        """Return one sigma for all."""
        return np.full(self.size, noise.parts[0].sigma, np.int64)

    def read(self, values: _Floats) -> _Floats:
        """Return X'y in the rows' units."""
        return values / self.scale

    def noise_rows(self, noise: VectorNoise) -> float:
        """Return the squared ratio of sigma to an entry of a product at its clip."""
        return self.dim * (noise.parts[0].sigma / RADIUS) ** 2

    def deviation(self, noise: VectorNoise) -> float:
        """Return the standard deviation of one release's noise, in the rows' units."""
        return noise.parts[0].sigma / self.scale


class GramAndMoment(Statistic):
    """X'X and X'y as two vectors with noise of their own, as the local peers publish them.

    All entries of X'X's upper triangle have one sigma, the diagonal too. Replacing a row moves the triangle
    by at most ``sqrt(2) B^2`` and the moment by ``2 B``. :class:`SecondMoments` is cheaper: there the two
    moves can't be largest at once.

    `context_norm`, `reward_clip`: L and R: contexts are cut to L, products to L R.
    """

    def __init__(self, dim: int, *, context_norm: float, reward_clip: float) -> None:
        self.dim = arguments.integer("dim", dim, 1, 2**15)
        norm = arguments.positive("context_norm", context_norm)
        self.context_scale = RADIUS / norm
        self._moments = Moments(dim, product_clip=norm * arguments.positive("reward_clip", reward_clip))
        self._upper = np.triu_indices(self.dim)
        self.size = len(self._upper[0]) + self.dim

    def of(self, rows: npt.NDArray[Any], rewards: _Floats) -> _Integers:
        """Return the upper triangle of X'X, then X'y."""
        rows = np.ascontiguousarray(rows)
        gram = kernels.second_moments(rows, radius=RADIUS, scale=self.context_scale)
        return np.concatenate([gram[self._upper], self._moments.of(rows, rewards)])

    def noise(self, nodes: int, *sigmas: int) -> VectorNoise:
        """Return the noise with `sigmas` = (that of X'X, that of X'y)."""
        gram, moment = sigmas
        return VectorNoise(Part(nodes * 2 * RADIUS**4, gram), Part(nodes * 4 * RADIUS**2, moment))

    def spread(self, noise: VectorNoise) -> _Integers:
        """Return the sigma of each entry."""
        gram, moment = (part.sigma for part in noise.parts)
        return np.repeat(np.array([gram, moment], np.int64), (len(self._upper[0]), self.dim))

    def read(self, values: _Floats) -> tuple[_Floats, _Floats]:
        """Return X'X and X'y in the rows' units."""
        full = np.zeros((self.dim, self.dim))
        full[self._upper] = values[: -self.dim]
        return (full + np.triu(full, 1).T) / self.context_scale**2, self._moments.read(values[-self.dim :])

    def noise_rows(self, noise: VectorNoise) -> float:
        """Return the squared ratio of X'X's sigma to an entry of ``x x'`` whose row is at its norm."""
        return (self.dim * noise.parts[0].sigma / RADIUS**2) ** 2

    def gram_deviation(self, noise: VectorNoise) -> float:
        """Return the standard deviation of one release's noise in X'X, in the rows' units."""
        return noise.parts[0].sigma / self.context_scale**2


#: Starting scales of a search in which only ratios matter: enough digits, and room to grow.
_TEMPLATE = 10**9


def price(
    statistic: Statistic, nodes: int, *, epsilon: float, delta: float, ratios: tuple[float, ...] = (1.0,)
) -> PricedRelease:
    """Return the smallest noise at which a row's `nodes` noisy sums are (epsilon, delta)-DP.

    `nodes`: noisy sums that a row takes part in.
    `epsilon`, `delta`: delta above 0: the noise is Gaussian.
    `ratios`: relative sizes of the statistic's standard deviations.

    Examples
    --------
    >>> from fliphat.lab.peers.sums import Moments
    >>> release = price(Moments(2, product_clip=1.0), 1, epsilon=1.0, delta=0.01)
    >>> release.price <= 0.01, round(float(release.noise[0].mu_squared) ** 0.5, 3)
    (True, 0.533)
    """
    if not delta > 0:
        raise ValueError(f"delta must be above 0 for Gaussian noise, got {delta!r}")
    template = statistic.noise(nodes, *(round(_TEMPLATE * ratio) for ratio in ratios))
    return fit_scales((template,), epsilon=epsilon, delta=delta)


def bought(noise: VectorNoise, delta: float) -> float:
    """Return the epsilon that noise really buys at `delta`, whatever its formula claimed; may be infinite."""
    (event,) = noise.events(1)
    return composition.epsilon(delta, [event])


class Noise:
    """Noise for the integers of one statistic, drawn anew for every sum.

    Without a generator the kernel draws, exactly, with bits of the operating system. With one, NumPy draws
    from the same law up to a float's rounding: for simulation, where nothing is private.
    """

    def __init__(self, statistic: Statistic, noise: VectorNoise, rng: np.random.Generator | None) -> None:
        self.noise = noise
        self._sigmas = statistic.spread(noise)
        self._rng = rng

    def __call__(self, sums: npt.NDArray[np.int64], times: int = 1) -> npt.NDArray[np.float64]:
        """Return sums with noise, public from here on; with `times`, that many independent noises."""
        if times > 1 and self._rng is not None:
            # The sum of so many normals, drawn at once: rows of a simulation protect nobody.
            scales = self._sigmas * math.sqrt(times)
            return np.asarray(sums + np.rint(self._rng.normal(size=len(sums)) * scales), np.float64)
        released = self._drawn(sums)
        for _ in range(times - 1):
            released += self._drawn(np.zeros_like(sums))
        return released

    def _drawn(self, sums: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        if self._rng is None:
            return kernels.gaussian_release(sums, self._sigmas).astype(np.float64)
        noise: npt.NDArray[np.float64] = np.rint(self._rng.normal(size=len(sums)) * self._sigmas)
        return sums + noise
