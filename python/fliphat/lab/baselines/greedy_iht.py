"""Greedy iterative hard thresholding: FLIPHAT's machinery without noise, to read off the price of privacy."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.fit.iht import constants as defaults
from fliphat.kernels import _niht
from fliphat.lab.baselines.baseline import GreedyBaseline

# A fit needs a few rows for each ln d, or the gradients are too rough to rank d coordinates.
_ROWS_PER_LOG_DIM = 13
_ITERATIONS = 20
# Greedy rounds choose rows that point along the coefficients: with K = 24 arms the curvature there is about
# 4, and steps above 1 / 2 would diverge.
_STEP = 0.3


class GreedyIHT(GreedyBaseline):
    """Doubling episodes, each played on a sparse fit of the rounds before it. Not private.

    Parameters
    ----------
    dim, sparsity : int
        d and s.
    learn_from : {"all", "episode"}
        All past rounds, or the last episode alone, as FLIPHAT must.
    reward_scale, context_scale : float
        As for `fliphat.FLIPHAT`: they set the clip, the step and the radius.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.baselines import GreedyIHT
    >>> policy = GreedyIHT(dim=100, sparsity=5, reward_scale=1.5, seed=1)
    >>> played = policy.play(SparseLinear(dim=100, seed=1), 1000)
    >>> bool(played.regret[-100:].mean() < 0.02)
    True
    """

    def __init__(
        self,
        dim: int,
        sparsity: int,
        *,
        learn_from: Literal["all", "episode"] = "all",
        reward_scale: float = 1.0,
        context_scale: float = 1.0,
        seed: int | None = None,
    ) -> None:
        super().__init__(dim, seed)
        self.sparsity = arguments.integer("sparsity", sparsity, 1, self.dim)
        self.learn_from = arguments.choice("learn_from", learn_from, ("all", "episode"))
        context_scale = arguments.positive("context_scale", context_scale)
        reward_scale = arguments.positive("reward_scale", reward_scale)
        self._settings: dict[str, Any] = {
            "sparsity": self.sparsity,
            "iterations": _ITERATIONS,
            "step_size": _STEP / context_scale**2,
            "l1_radius": defaults.l1_radius(self.sparsity, context_scale, reward_scale),
            "clip": defaults.bandit_clip(context_scale, reward_scale),
            "pick_scale": 1,
            "value_scale": 1,
            "noiseless": True,
        }
        self._next = math.ceil(_ROWS_PER_LOG_DIM * math.log(max(self.dim, 2))) + 1
        self._rows = np.empty((self._next, self.dim), np.float32)
        self._rewards = np.empty(self._next)
        self._kept = 0

    def _learn(self, rows: npt.NDArray[Any], rewards: npt.NDArray[np.float64]) -> None:
        end = self._kept + len(rows)
        if end > len(self._rewards):
            self._grow(max(end, self._kept + self._next - (self.rounds - len(rows))))
        self._rows[self._kept : end] = rows
        self._rewards[self._kept : end] = rewards
        self._kept = end
        if self.rounds >= self._next:
            X, y = self._rows[:end], self._rewards[:end]
            self._estimate = _niht.fit(X, y, start=self._estimate, **self._settings)[-1]
            self._next = 2 * self.rounds
            if self.learn_from == "episode":
                self._kept = 0

    def _grow(self, size: int) -> None:
        rows, rewards = np.empty((size, self.dim), np.float32), np.empty(size)
        rows[: self._kept], rewards[: self._kept] = self._rows[: self._kept], self._rewards[: self._kept]
        self._rows, self._rewards = rows, rewards
