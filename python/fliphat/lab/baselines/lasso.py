"""The sparsity-agnostic Lasso bandit: what can be reached without privacy.

| Oh, Iyengar, Zeevi (algorithm SA Lasso Bandit) | here |
|---|---|
| lambda_0 | `penalty` |
| lambda_t = 2 lambda_0 sqrt((4 ln t + 2 ln d) / t) | `_level` |
| beta-hat_t | `estimate` |

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
