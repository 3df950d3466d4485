"""Ridge LinUCB: optimism for dense coefficients, without privacy; for modest d."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.lab.baselines.baseline import Baseline, RefitTimes


class LinUCB(Baseline):
    """Plays the arm with the highest upper confidence bound of a ridge regression. Not private.

    Parameters
    ----------
    dim : int
        d; memory grows as its square, and the time of a refit as its cube.
    optimism : float
        How many standard errors the bound lies above the fit; 0 is greedy ridge.
    ridge : float
        Added to the diagonal of X'X.
    refit_every : int
        Rounds between fits in the long run. At first every round is followed by a fit, then every tenth more.

    References
    ----------
    L. Li, W. Chu, J. Langford, R. Schapire, "A contextual-bandit approach to personalized news article
    recommendation", WWW 2010.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.baselines import LinUCB
    >>> played = LinUCB(dim=10, seed=1).play(SparseLinear(dim=10, seed=1), 1000)
    >>> bool(played.regret[-100:].mean() < 0.02)
    True
    """

    def __init__(
        self,
        dim: int,
        *,
        optimism: float = 0.1,
        ridge: float = 1.0,
        refit_every: int = 200,
        seed: int | None = None,
    ) -> None:
        super().__init__(dim, seed)
        self.optimism = arguments.within("optimism", optimism, 0.0, 1e9)
        ridge = arguments.positive("ridge", ridge)
        self._times = RefitTimes(refit_every)
        self._next = self._times.after(0)
        self._gram = ridge * np.eye(self.dim)
        self._correlations = np.zeros(self.dim)
        self._solve()

    def _arms(self, contexts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        # |W x| with W'W the inverse Gram matrix is the standard error of x'b, in units of the noise.
        errors = np.linalg.norm(contexts @ self._whitening.T, axis=-1)
        bounds = contexts @ self._estimate + self.optimism * errors
        return np.asarray(bounds.argmax(axis=1), np.int64)

    def _learn(self, rows: npt.NDArray[Any], rewards: npt.NDArray[np.float64]) -> None:
        self._gram += rows.T @ rows
        self._correlations += rows.T @ rewards
        if self.rounds >= self._next:
            self._solve()
            self._next = self._times.after(self.rounds)

    def _solve(self) -> None:
        self._whitening = np.linalg.inv(np.linalg.cholesky(self._gram))
        self._estimate = self._whitening.T @ (self._whitening @ self._correlations)
