"""The doubly robust Lasso bandit: a Lasso on the mean context of all arms. Without privacy.

| Kim and Paik (algorithm DR Lasso) | here |
|---|---|
| first z rounds uniform | `warm_up` |
| explore with probability min(1, lambda_1 sqrt((ln t + ln d) / t)) | `_chance` |
| pseudo-reward: mean over arms of x'b, plus (r - x_a'b) / (K pi_a), cut | `_pseudo_rewards` |
| Lasso on mean contexts, lambda_2 sqrt((ln t + ln d) / t) | `_level` |
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import arguments, kernels
from fliphat.lab.baselines.lasso import LassoBandit
from fliphat.policies.outcomes import Environment, plain_block
from fliphat.policies.types import Decisions


class DoublyRobustLasso(LassoBandit):
    """Greedy with some exploring, on a Lasso of pseudo-rewards of mean contexts. Not private.

    It reads the contexts of all arms, also of those that it did not play.

    Parameters
    ----------
    exploration : float
        lambda_1.
    penalty : float
        lambda_2.
    reward_clip : float
        Pseudo-rewards are cut here.
    warm_up : int
        z.

    References
    ----------
    G. Kim, M. Paik, "Doubly-Robust Lasso Bandit", NeurIPS 2019.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.baselines import DoublyRobustLasso
    >>> played = DoublyRobustLasso(dim=50, seed=1).play(SparseLinear(dim=50, seed=1), 2000)
    >>> bool(played.regret[-500:].mean() < 0.3 * played.regret[:20].mean())
    True
    """

    def __init__(
        self,
        dim: int,
        *,
        exploration: float = 0.3,
        penalty: float = 0.1,
        reward_clip: float = 4.0,
        warm_up: int = 20,
        refit_every: int = 200,
        seed: int | None = None,
    ) -> None:
        super().__init__(dim, penalty=penalty, refit_every=refit_every, seed=seed)
        self.exploration = arguments.positive("exploration", exploration)
        self.reward_clip = arguments.positive("reward_clip", reward_clip)
        self.warm_up = arguments.integer("warm_up", warm_up, 1, 2**31 - 1)

    def _chance(self, rounds: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        t = np.maximum(rounds, 2)
        chance = np.minimum(1.0, self.exploration * np.sqrt((np.log(t) + math.log(self.dim)) / t))
        return np.where(rounds <= self.warm_up, 1.0, chance)

    def _choose(self, contexts: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return arms, and what is learned from: chosen row, mean row and K times its probability."""
        count, arms = contexts.shape[:2]
        chance = self._chance(self.rounds + np.arange(1, count + 1))
        best = np.asarray(kernels.select_arms(contexts, self._estimate, self._rng), np.int64)
        explores = self._rng.random(count) < chance
        chosen = np.where(explores, self._rng.integers(0, arms, count), best)
        probability = chance / arms + (1 - chance) * (chosen == best)
        rows = contexts[np.arange(count), chosen]
        kept = np.column_stack([rows, contexts.mean(axis=1), arms * probability])
        return chosen, kept.astype(np.float64)

    def _select(self, contexts: Any, count: int, arms: int) -> Decisions:
        decisions = super()._select(contexts, count, arms)
        chosen, kept = self._choose(contexts.reshape(count, arms, self.dim))
        self._waiting.update(zip(decisions.ids.tolist(), kept, strict=True))
        decisions.arms[:] = chosen
        return decisions

    def _play_some(self, environment: Environment, most: int) -> Any:
        drawn = environment.draw(min(most, plain_block(environment)))
        chosen, kept = self._choose(drawn.contexts)
        outcome = drawn.settle(chosen, rows=False)
        self._take_in(kept, outcome.rewards)
        return outcome

    def _learn(self, rows: npt.NDArray[Any], rewards: npt.NDArray[np.float64]) -> None:
        chosen, mean, weight = np.split(rows, [self.dim, 2 * self.dim], axis=1)
        pseudo = mean @ self._estimate + (rewards - chosen @ self._estimate) / weight[:, 0]
        super()._learn(mean, np.clip(pseudo, -self.reward_clip, self.reward_clip))

    def _level(self, rounds: int) -> float:
        return self.penalty * math.sqrt((math.log(rounds) + math.log(max(self.dim, 2))) / rounds)
