"""The thresholded Lasso bandit: a support from the Lasso, least squares on it. Without privacy.

| Ariu, Abe, Proutiere (algorithm TH Lasso) | here |
|---|---|
| lambda_t = lambda_0 sqrt(2 ln t ln d / t) | `_level` |
| S_0: coefficients above 4 lambda_t; S_1: above 4 lambda_t sqrt(abs(S_0)) | `_finish` |
| least squares on S_1 | `estimate` |
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fliphat.lab.baselines.lasso import LassoBandit


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
