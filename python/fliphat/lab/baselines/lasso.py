"""Lasso bandits: what can be reached without privacy where few columns matter.

| Oh, Iyengar, Zeevi (algorithm SA Lasso Bandit) | `LassoBandit` |
|---|---|
| lambda_0 | `penalty` |
| lambda_t = 2 lambda_0 sqrt((4 ln t + 2 ln d) / t) | `_level` |
| beta-hat_t | `estimate` |

| Ariu, Abe, Proutiere (algorithm TH Lasso) | `ThresholdedLasso` |
|---|---|
| lambda_t = lambda_0 sqrt(2 ln t ln d / t) | `_level` |
| S_0: coefficients above 4 lambda_t; S_1: above 4 lambda_t sqrt(abs(S_0)) | `_finish` |
| least squares on S_1 | `estimate` |

| Hao, Lattimore, Wang (algorithm ESTC) | `ExploreThenCommit` |
|---|---|
| n_1 ~ T^(2/3) (s^2 ln d)^(1/3) | `exploration_rounds` |
| lambda_1 ~ 4 sigma sqrt(ln d / n_1) | `_level` |

The fit minimises ``|y - X b|^2 / t + lambda_t |b|_1`` over all rows so far. Only X'X and X'y are kept: a
refit costs the same after a million rounds as after a hundred.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import arguments, kernels
from fliphat.lab.baselines.baseline import GreedyBaseline, RefitTimes

_TOLERANCE = 1e-3


class LassoBandit(GreedyBaseline):
    """Greedy on a Lasso fit of all past rounds. Not private.

    Parameters
    ----------
    penalty : float
        lambda_0; theory asks for about the noise's standard deviation times the largest context coordinate.
    refit_every : int
        Rounds between fits in the long run. At first every round is followed by a fit, then every tenth more.

    References
    ----------
    M. Oh, G. Iyengar, A. Zeevi, "Sparsity-Agnostic Lasso Bandit", ICML 2021.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.baselines import LassoBandit
    >>> played = LassoBandit(dim=100, seed=1).play(SparseLinear(dim=100, seed=1), 1000)
    >>> bool(played.regret[-100:].mean() < 0.02)
    True
    """

    def __init__(
        self, dim: int, *, penalty: float = 0.1, refit_every: int = 200, seed: int | None = None
    ) -> None:
        super().__init__(dim, seed)
        self.penalty = arguments.positive("penalty", penalty)
        self._times = RefitTimes(refit_every)
        self._next = self._times.after(0)
        self._gram = np.zeros((self.dim, self.dim))
        self._correlations = np.zeros(self.dim)
        self._fitted = np.zeros(self.dim)
        self._new: list[tuple[npt.NDArray[Any], npt.NDArray[np.float64]]] = []

    def _learn(self, rows: npt.NDArray[Any], rewards: npt.NDArray[np.float64]) -> None:
        self._new.append((rows, rewards))
        if self.rounds >= self._next:
            X = np.concatenate([rows for rows, _ in self._new])
            y = np.concatenate([rewards for _, rewards in self._new])
            self._new.clear()
            self._gram += X.T @ X  # NumPy sees the symmetry and does half the work
            self._correlations += X.T @ y
            self._fitted = kernels.lasso(
                self._gram,
                self._correlations,
                self.rounds / 2 * self._level(self.rounds),
                start=self._fitted,
                tolerance=_TOLERANCE,
            )
            self._estimate = self._finish(self._fitted)
            self._next = self._times.after(self.rounds)

    def _finish(self, fitted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return what arms are scored by, from the Lasso's coefficients."""
        return fitted

    def _level(self, rounds: int) -> float:
        log_dim = math.log(max(self.dim, 2))
        return 2 * self.penalty * math.sqrt((4 * math.log(rounds) + 2 * log_dim) / rounds)


class ThresholdedLasso(LassoBandit):
    """Greedy on least squares over the columns that a thresholded Lasso keeps. Not private.

    Parameters
    ----------
    penalty : float
        lambda_0; the authors' Gaussian simulations have 0.02.
    refit_every : int
        Rounds between fits in the long run.

    References
    ----------
    K. Ariu, K. Abe, A. Proutiere, "Thresholded Lasso Bandit", ICML 2022.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.baselines import ThresholdedLasso
    >>> played = ThresholdedLasso(dim=100, seed=1).play(SparseLinear(dim=100, seed=1), 1000)
    >>> bool(played.regret[-100:].mean() < 0.02)
    True
    """

    def __init__(
        self, dim: int, *, penalty: float = 0.02, refit_every: int = 200, seed: int | None = None
    ) -> None:
        super().__init__(dim, penalty=penalty, refit_every=refit_every, seed=seed)

    def _level(self, rounds: int) -> float:
        logarithms = math.log(max(rounds, 2)) * math.log(max(self.dim, 2))
        return self.penalty * math.sqrt(2 * logarithms / rounds)

    def _finish(self, fitted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        level, sizes = 4 * self._level(self.rounds), np.abs(fitted)
        first = int((sizes > level).sum())
        kept = np.flatnonzero(sizes > level * math.sqrt(max(first, 1)))
        estimate = np.zeros(self.dim)
        if len(kept):
            block = self._gram[np.ix_(kept, kept)]
            estimate[kept] = np.linalg.lstsq(block, self._correlations[kept], rcond=None)[0]
        return estimate


class ExploreThenCommit(LassoBandit):
    """Uniform for a public number of rounds, then greedy on one Lasso fit. Not private.

    Parameters
    ----------
    dim, sparsity, horizon : int
        d, s and T, which set the number of rounds that explore.
    reward_noise : float
        sigma.

    References
    ----------
    B. Hao, T. Lattimore, M. Wang, "High-Dimensional Sparse Linear Bandits", NeurIPS 2020.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.baselines import ExploreThenCommit
    >>> policy = ExploreThenCommit(dim=100, sparsity=5, horizon=1000, seed=1)
    >>> played = policy.play(SparseLinear(dim=100, seed=1), 1000)
    >>> policy.exploration_rounds, bool(played.regret[-100:].mean() < 0.02)
    (486, True)
    """

    def __init__(
        self, dim: int, sparsity: int, horizon: int, *, reward_noise: float = 0.1, seed: int | None = None
    ) -> None:
        super().__init__(dim, penalty=reward_noise, seed=seed)
        self.sparsity = arguments.integer("sparsity", sparsity, 1, self.dim)
        self.horizon = arguments.integer("horizon", horizon, 1, 2**40)
        wanted = self.horizon ** (2 / 3) * (self.sparsity**2 * math.log(max(self.dim, 2))) ** (1 / 3)
        self.exploration_rounds = max(1, min(math.floor(wanted), self.horizon // 2))
        self._next = self.exploration_rounds
        self._committed = False

    @property
    def remaining(self) -> int:
        """Rounds until the fit; after it there is no other."""
        return 2**31 - 1 if self._committed else super().remaining

    def _learn(self, rows: object, rewards: object) -> None:
        if not self._committed:
            super()._learn(rows, rewards)  # type: ignore[arg-type]
            self._committed = self.rounds >= self.exploration_rounds

    def _level(self, rounds: int) -> float:
        return 4 * self.penalty * math.sqrt(math.log(max(self.dim, 2)) / rounds)
