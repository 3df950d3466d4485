"""Pursuit's two draws, picks of the exponential mechanism and one Gaussian vector, and their scales.

Without a seed the kernels draw, exactly, with bits of the operating system. With one, NumPy's generator draws
from the same laws up to a float's rounding: for simulation, where nothing is private.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fliphat import kernels
from fliphat.fit.settings import Settings
from fliphat.privacy.priced import Noise, PickNoise, PricedRelease, fit_scales

__all__ = ["Drawn", "priced", "seeded"]

_Integers = npt.NDArray[np.int64]


class Drawn:
    """Noise of one fit, in the order it is drawn; `rng` is None where it protects somebody."""

    def __init__(self, rng: np.random.Generator | None) -> None:
        self._rng = rng

    def picks(
        self, scores: _Integers, noise: PickNoise, *, excluded: _Integers, signed: bool
    ) -> tuple[_Integers, _Integers]:
        """Return picked columns in order, and their signs, 0 where they were not picked with one."""
        if self._rng is None:
            if signed:
                return kernels.pick_columns(
                    scores, noise.count, scale=noise.scale, excluded=excluded, signed=True
                )
            columns = kernels.pick_columns(scores, noise.count, scale=noise.scale, excluded=excluded)
            return columns, np.zeros(noise.count, np.int64)
        # Largest scores with Gumbel noise: one after the other, that is the exponential mechanism.
        relative = scores / noise.scale
        if signed:
            plus = relative + self._rng.gumbel(size=len(scores))
            minus = self._rng.gumbel(size=len(scores)) - relative
            keys, signs = np.maximum(plus, minus), np.where(plus > minus, 1, -1)
        else:
            keys = np.abs(relative) + self._rng.gumbel(size=len(scores))
            signs = np.zeros(len(scores), np.int64)
        keys[excluded] = -np.inf
        columns = np.argpartition(-keys, noise.count - 1)[: noise.count]
        columns = columns[np.argsort(-keys[columns])].astype(np.int64)
        return columns, signs[columns].astype(np.int64)

    def vector(self, values: _Integers, sigmas: _Integers) -> npt.NDArray[np.float64]:
        """Return integers with independent rounded Gaussian noise, as floats: public from here on."""
        if self._rng is None:
            return kernels.gaussian_release(values, sigmas).astype(np.float64)
        noise: npt.NDArray[np.float64] = np.rint(self._rng.normal(size=len(values)) * sigmas)
        return values + noise


def seeded(seed: int | None, episode: int) -> Drawn:
    """Return the noise of an episode's fit."""
    return Drawn(None if seed is None else np.random.default_rng([seed, episode, 14]))


def priced(template: Sequence[Noise], settings: Settings, accounting: str) -> PricedRelease:
    """Return the releases of `template` at the smallest scales that the settings' claim allows."""
    return fit_scales(
        template,
        epsilon=settings.epsilon,
        delta=settings.delta,
        users=settings.rounds_per_user,
        accounting=accounting,
    )
