"""When a coefficient is found: the chance that a fit picks it, from public numbers alone.

A fit picks s coordinates by the exponential mechanism, which is the same as adding Gumbel noise of the pick's
scale to every coordinate's size and keeping the s largest. So whether a coefficient is picked depends on
three numbers: its mean clipped gradient, how rough gradients of n rows are, and the height that s of the d
coordinates pass by noise alone. All three are integrals over one normal context coordinate and a normal
reward (or one click) of the stated scales.

A coefficient that the fit before had picked starts from the value released for it and is easily picked again;
one that it had missed starts from zero. That gives a recursion over episodes, which is run for many sizes of
coefficient at once. It leaves out that the rest of the reward becomes known too: to each coefficient, what
the others explain is noise, throughout.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.iht.plan import IhtPlan
from fliphat.fit.settings import Settings
from fliphat.privacy.scales import NoiseScales

__all__ = ["Detection"]

_Array = npt.NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_SIZES: Final = 400
_SMALLEST_SHARE: Final = 1e-4
# One coefficient can't explain more than all of the reward; of log odds 8 is as good as certain.
_LARGEST_SHARE: Final = 0.999
_LARGEST_LOG_ODDS: Final = 8.0
# Where predicted and simulated rounds agree best, from much noise to little.
_FOUND: Final = 0.6


class Detection:
    """The chance of having found coefficients of every size, fit after fit.

    Examples
    --------
    >>> from fliphat import FLIPHAT, Iht
    >>> fit = FLIPHAT(dim=400, sparsity=10, epsilon=1.0, delta=0.01, fit=Iht())._fit
    >>> detection, known = Detection(fit.settings), fit.begin()
    >>> first, second = (detection.after(fit.plan(episode, known))[0] for episode in (0, 1))
    >>> first > second
    True
    """

    def __init__(self, settings: Settings) -> None:
        self._dim, self._clip = settings.dim, settings.gradient_clip
        self._context, self._reward = settings.context_scale, settings.reward_scale
        self._logistic = settings.loss == "logistic"
        largest = (_LARGEST_LOG_ODDS if self._logistic else _LARGEST_SHARE * self._reward) / self._context
        self.sizes = np.geomspace(_SMALLEST_SHARE * largest, largest, _SIZES)
        self._gradients = self._mean(self.sizes)
        self._roughness = self._spread()
        self._found, self._values = np.zeros(_SIZES), np.zeros(_SIZES)

    def after(self, fit: IhtPlan) -> tuple[float, float]:
        """Take the next fit into account.

        Returns
        -------
        smallest : float
            The size from which a coefficient is found at least three times in five; infinite if none is.
        noise : float
            Standard deviation of the noise in a released coefficient.
        """
        assert isinstance(fit.noise, NoiseScales)
        noise = fit.step_size * fit.noise.value_gradient_noise
        if not fit.warm:
            self._found, self._values = np.zeros(_SIZES), np.zeros(_SIZES)
        rough = self._roughness / math.sqrt(fit.rows) * _NODES
        scale = fit.noise.pick_gradient_noise
        height = _height(fit.sparsity, self._dim, rough, scale)
        missing = np.interp(self.sizes - self._values, self.sizes, self._gradients, left=0.0)
        again = _passes(self._values / fit.step_size + missing, height, rough, scale)
        fresh = _passes(self._gradients, height, rough, scale)
        self._found = self._found * again + (1 - self._found) * fresh
        values = self._values + fit.step_size * missing
        # What is released is shrunk by the noise in it: see `fliphat.fit.iht.fit.shrunk`.
        shrunk = values * np.maximum(0.0, 1 - (noise / np.maximum(values, 1e-300)) ** 2)
        self._values = np.minimum(shrunk, self.sizes)
        return self._smallest(), noise

    def chance(self, size: float) -> float:
        """Return the chance that a coefficient of this size has been found."""
        return float(np.interp(size, self.sizes, self._found))

    def _smallest(self) -> float:
        enough = np.flatnonzero(self._found >= _FOUND)
        if len(enough) == 0:
            return math.inf
        at = int(enough[0])
        if at == 0:
            return float(self.sizes[0])
        share = (_FOUND - self._found[at - 1]) / (self._found[at] - self._found[at - 1])
        return float(self.sizes[at - 1] * (self.sizes[at] / self.sizes[at - 1]) ** share)

    def _mean(self, sizes: _Array) -> _Array:
        """Return a row's mean clipped gradient at coordinates with these coefficients."""
        x = np.abs(_NODES) * self._context
        if self._logistic:
            # The residual is one half in size; the click only decides its sign.
            return np.tanh(np.outer(sizes, x) / 2) @ (_WEIGHTS * np.minimum(x / 2, self._clip))
        rest = np.sqrt(self._reward**2 - (sizes * self._context) ** 2)[:, None]
        clipped: _Array = _clipped_mean(np.outer(sizes, x), rest, self._clip / x) @ (_WEIGHTS * x)
        return clipped

    def _spread(self) -> float:
        """Return the standard deviation of a row's clipped gradient at a coordinate that does not matter."""
        x = np.abs(_NODES) * self._context
        if self._logistic:
            return math.sqrt(_WEIGHTS @ np.minimum(x / 2, self._clip) ** 2)
        products = np.clip(np.outer(x, self._reward * _NODES), -self._clip, self._clip)
        return math.sqrt(_WEIGHTS @ products**2 @ _WEIGHTS)


def _passes(means: _Array, height: float, rough: _Array, scale: float) -> _Array:
    """Return the probability that gradients of these means, rough and with Gumbel noise, pass a height."""
    above = (np.abs(means[:, None] + rough) - height) / scale
    passed: _Array = -np.expm1(-np.exp(np.minimum(above, 50.0))) @ _WEIGHTS
    return passed


def _height(picks: int, dim: int, rough: _Array, scale: float) -> float:
    """Return the height that `picks` of `dim` coordinates pass though they do not matter."""
    none = np.zeros(1)
    low, high = -40 * scale, scale * (math.log(dim) + 40) + float(np.abs(rough).max())
    for _ in range(60):
        middle = (low + high) / 2
        if dim * _passes(none, middle, rough, scale)[0] > picks:
            low = middle
        else:
            high = middle
    return high


def _clipped_mean(mean: _Array, deviation: _Array, bound: _Array) -> _Array:
    """Return the mean of a normal variable clipped to plus and minus `bound`."""
    from scipy.special import ndtr

    low, high = (-bound - mean) / deviation, (bound - mean) / deviation
    density_low, density_high = (np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) for z in (low, high))
    inside = mean * (ndtr(high) - ndtr(low)) + deviation * (density_low - density_high)
    clipped: _Array = inside + bound * (ndtr(-high) - ndtr(low))
    return clipped
