"""The draw on a sum of integers, and what it costs.

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

import numpy as np
import numpy.typing as npt

from fliphat import kernels
from fliphat.lab.peers.statistics.moments import Statistic
from fliphat.privacy import composition
from fliphat.privacy.priced import PricedRelease, VectorNoise, fit_scales

#: Starting scales of a search in which only ratios matter: enough digits, and room to grow.
_TEMPLATE = 10**9


def price(
    statistic: Statistic, nodes: int, *, epsilon: float, delta: float, ratios: tuple[float, ...] = (1.0,)
) -> PricedRelease:
    """Return the smallest noise at which a row's `nodes` noisy sums are (epsilon, delta)-DP.

    Parameters
    ----------
    nodes : int
        Noisy sums that a row takes part in.
    epsilon, delta : float
        delta above 0: the noise is Gaussian.
    ratios : tuple of float
        Relative sizes of the statistic's standard deviations.

    Examples
    --------
    >>> from fliphat.lab.peers.statistics import Moments
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
