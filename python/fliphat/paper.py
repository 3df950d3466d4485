"""The paper's three algorithms line by line, with its symbols and its constants: to read beside the paper.

`peeling` is Algorithm 3, `n_iht` Algorithm 1 and `Fliphat` Algorithm 2 of S. Chakraborty, S. Roy and D. Basu,
"FLIPHAT: Joint Differential Privacy for High Dimensional Sparse Linear Bandits" (arXiv:2405.14038). A comment
``# 1.4`` is line 4 of Algorithm 1. Noise, projection and gradient are this package's kernels.

**Nothing is proven for the printed constants.** Algorithm 1 hands Peeling the sensitivity ``eta B / n``. For
the loss that the paper states, ``(y - x'theta)^2``, replacing a row moves ``theta - eta * gradient`` by up to
``4 x_max eta B / n``: the noise is ``4 x_max`` times too small, 13.8 times at d = 400. Were contexts within
x_max, a claimed epsilon of 1 would buy 17.7 (`printed_constants_buy`); simulated contexts are Gaussian and
clipped by nothing, and then no epsilon is shown. ``docs/privacy.md`` derives it, `fliphat audit` refutes the
claim from runs, and :class:`fliphat.FLIPHAT` is the policy whose guarantee is proven. What the published
figures ran is not all in the text: ``docs/reproduction.md`` has the source of each number.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments, kernels
from fliphat.policies.outcomes import Environment, Played, PlayedParts
from fliphat.policies.types import Decision, Decisions
from fliphat.privacy.conversion import epsilon_from_rho
from fliphat.privacy.guarantee import Guarantee, PrivacyWarning

__all__ = ["Fliphat", "n_iht", "peeling", "printed_constants_buy"]

_Floats = npt.NDArray[np.float64]
_Rng = np.random.Generator | None


def peeling(
    v: npt.ArrayLike, s: int, epsilon: float, delta: float, lam: float, *, rng: _Rng = None
) -> _Floats:
    """Algorithm 3: keep `s` large coordinates of `v`, with noise on the choice and on the values.

    By zCDP the noise keeps its claim for every s where ``epsilon <= 0.418 ln(1/delta)``, if no coordinate of
    `v` moves by more than `lam` between neighbours (the secure noise's lattice adds xi / 10^6 to that).

    Parameters
    ----------
    v : array_like, shape (d,)
    s : int
    epsilon, delta : float
    lam : float
        lambda, the sensitivity.
    rng : numpy.random.Generator, optional
        For simulation: predictable noise protects nobody. By default the noise is secure.

    Returns
    -------
    ndarray of float64, shape (d,)

    Examples
    --------
    >>> np.flatnonzero(peeling([0.1, 50.0, -0.2, -40.0, 0.3], 2, epsilon=1.0, delta=0.01, lam=0.01))
    array([1, 3])
    """
    v = np.array(v, np.float64)
    S = np.zeros(arguments.integer("s", s, 1, len(v)), np.int64)  # 3.1
    if not 0 < arguments.real("delta", delta) < 1:
        raise ValueError(f"delta must be above 0 and below 1, got {delta!r}")
    xi = arguments.positive("lam", lam) * 2 * math.sqrt(3 * s * math.log(1 / delta))  # 3.1
    xi /= arguments.positive("epsilon", epsilon)
    size = np.abs(v)
    for i in range(s):  # 3.2
        w = kernels.laplace(xi, len(v)) if rng is None else rng.laplace(scale=xi, size=len(v))  # 3.3
        S[i] = np.argmax(size + w)  # 3.4, 3.5
        size[S[i]] = -np.inf  # 3.4: the next j is not in S
    peeled = np.zeros(len(v))
    if rng is None:  # 3.7 to 3.9 in integers: which floats can occur gives a value away
        peeled[S] = kernels.laplace_mechanism(v[S], xi)
    else:
        peeled[S] = v[S] + rng.laplace(scale=xi, size=len(v))[S]  # 3.7 to 3.9
    return peeled


def n_iht(
    X: npt.ArrayLike, y: npt.ArrayLike, *, s: int, epsilon: float, delta: float,
    M: int, R: float, B: float, eta: float, C: float, rng: _Rng = None,
) -> _Floats:  # fmt: skip
    """Algorithm 1: noisy iterative hard thresholding, from 0, for the loss ``mean((y - X theta)^2)``.

    With the paper's ``B = R + x_max b_max`` the noise is too small; contexts within x_max need ``4 x_max B``.

    Parameters
    ----------
    X, y : array_like, shapes (n, d) and (n,)
    s, M : int
        Coordinates kept, and iterations; none leaves theta at 0.
    epsilon, delta : float
    R, B, eta, C : float
        Truncation of rewards, noise scale, step size, radius of the l1 ball.
    rng : numpy.random.Generator, optional
        See :func:`peeling`.

    Returns
    -------
    ndarray of float64, shape (d,)

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((4000, 30))
    >>> y = X[:, 3] - X[:, 7]
    >>> theta = n_iht(X, y, s=2, epsilon=1.0, delta=0.01, M=4, R=4.0, B=14.0, eta=0.4, C=3.0)
    >>> np.flatnonzero(theta)
    array([3, 7])
    """
    rows = np.ascontiguousarray(X)
    rows = rows if rows.dtype == np.float32 else np.asarray(rows, np.float64)
    y = np.clip(np.asarray(y, np.float64), -R, R)  # clip_R(y) of 1.3
    theta = np.zeros(rows.shape[1])  # 1.1
    for _ in range(M):  # 1.2
        theta = theta - eta * _native.squared_loss_gradient(rows, y, theta)  # 1.3
        theta = peeling(theta, s, epsilon / M, delta / M, eta * B / len(y), rng=rng)  # 1.4
        theta = kernels.project_l1(theta, C)  # 1.5
    return theta  # 1.7


def printed_constants_buy(epsilon: float, delta: float, *, s: int, M: int, x_max: float) -> float:
    """Return the epsilon that Algorithm 1 is shown to keep with ``B = R + x_max b_max``, abs(x) <= x_max.

    Examples
    --------
    >>> [round(printed_constants_buy(e, 0.01, s=10, M=1, x_max=3.46), 1) for e in (0.5, 1, 2, 5, 10)]
    [7.3, 17.7, 35.3, 88.3, 176.6]
    """
    # A row moves a coordinate by r noise scales: a pick is 2r-DP, a value r-DP, and there are M s of each.
    r = 4 * x_max * epsilon / (2 * M * math.sqrt(3 * s * math.log(M / delta)))
    return min(3 * M * s * r, epsilon_from_rho(M * s * 2.5 * r * r, delta))


class Fliphat:
    """Algorithm 2: doubling episodes, each played greedily on `n_iht` of the rows of the one before it.

    For simulations of the paper: its noise does not keep the claim, and constructing it warns.

    Parameters
    ----------
    d, s : int
    epsilon, delta : float
    b_max : float
        Bound on the coefficients' l1 norm, and C. The published simulations took the true coefficients' own.
    x_max : float, optional
        Bound on contexts; by default ``sqrt(2 ln d)``, as published, which Gaussian contexts exceed.
    eta, M, sigma : float
        ``M_l = floor(M ln(1 + n b_max^2))`` and ``R_l = x_max b_max + sigma sqrt(2 ln(1 + n))`` for n rows.
    rng : numpy.random.Generator, optional
        See :func:`peeling`; it breaks ties between arms, too.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> with warnings.catch_warnings(action="ignore"):
    ...     policy = Fliphat(50, 5, epsilon=10.0, delta=0.01, b_max=4.0, rng=np.random.default_rng(1))
    >>> regret = policy.play(SparseLinear(dim=50, seed=1), 4000).regret
    >>> bool(regret[-1000:].mean() < regret[:64].mean() / 2), policy.guarantee.proven
    (True, False)
    """

    def __init__(
        self, d: int, s: int, epsilon: float, delta: float, *, b_max: float, x_max: float | None = None,
        eta: float = 1e-4, M: float = 0.16, sigma: float = 1.0, rng: _Rng = None,
    ) -> None:  # fmt: skip
        self.dim, self.s = arguments.integer("d", d, 2, 2**31 - 1), arguments.integer("s", s, 1, d)
        self.epsilon, self.delta, self.eta, self.M, self.sigma = epsilon, delta, eta, M, sigma
        self.b_max = arguments.positive("b_max", b_max)
        self.x_max = math.sqrt(2 * math.log(d)) if x_max is None else arguments.positive("x_max", x_max)
        self._rng, self._ties = rng, np.random.default_rng() if rng is None else rng
        self.guarantee = Guarantee(
            epsilon=epsilon, delta=delta, rho=None, setting="bandit", rounds_per_user=1, mechanism="laplace",
            value_noise="laplace", calibration="paper", seeded=rng is not None,
            noise_shortfall=4 * self.x_max,
        )  # fmt: skip
        warnings.warn(f"No privacy is proven: {self.guarantee.reasons[0]}", PrivacyWarning, stacklevel=2)
        self.episode, self.length, self.beta = 0, 1, np.zeros(d)  # l; N_l, which is t_l, too; beta-hat_l
        self._forget()

    @property
    def remaining(self) -> int:
        """Rounds that the next batch may have at most."""
        return self.length - self._filled or 2 * self.length

    def select(self, contexts: Any, user: Any = None, key: Any = None) -> Decision:
        """Play one round, contexts of shape (K, d); `user` and `key` are accepted and not used."""
        return next(iter(self.select_batch(np.asarray(contexts)[None])))

    def select_batch(self, contexts: Any, users: Any = None, *, arms: int | None = None) -> Decisions:
        """Play several rounds, contexts of shape (n, K, d), at most `remaining`."""
        n, each = len(contexts), np.arange(len(contexts))
        if n > (most := self.remaining):
            raise ValueError(f"contexts must have at most policy.remaining = {most} rounds, got {n}")
        self._estimate()
        chosen = kernels.select_arms(contexts, self.beta, self._ties)  # 2.2, 2.11; a zero beta is one tie
        ids = each + self.length + self._filled  # t
        self._store(contexts[each, chosen])
        return Decisions(ids, chosen, np.ones(n, np.bool_), self.episode, np.full(n, np.nan))

    def update(self, decision: Decision | int, reward: float) -> bool:
        """Hand in a reward; False if its episode is over."""
        return bool(self.update_batch([decision], [reward]))

    def update_batch(self, decisions: Any, rewards: npt.ArrayLike) -> int:
        """Hand in several rewards; the number that came in time."""
        given = decisions.ids if isinstance(decisions, Decisions) else decisions
        at = np.array([getattr(one, "id", one) for one in given], np.int64) - self.length
        in_time = (at >= 0) & (at < self._filled)
        self._y[at[in_time]] = np.asarray(rewards, np.float64)[in_time]  # 2.3, 2.12
        return int(in_time.sum())

    def play(self, environment: Environment, rounds: int) -> Played:
        """Play simulated rounds; what `fliphat.simulation.play` calls."""
        parts = PlayedParts()
        while parts.rounds < rounds:
            n = min(rounds - parts.rounds, self.remaining)
            self._estimate()
            outcome = environment.play(n, self.beta)  # 2.2, 2.11
            self._y[self._filled : self._filled + n] = outcome.rewards  # 2.3, 2.12
            self._store(outcome.rows)
            parts.add(outcome)
        return parts.joined()

    def _store(self, rows: npt.NDArray[Any]) -> None:
        self._X.append(rows)  # 2.4, 2.13
        self._filled += len(rows)

    def _forget(self) -> None:
        self._X: list[npt.NDArray[Any]] = []  # 2.9
        self._y, self._filled = np.full(self.length, np.nan), 0  # 2.9

    def _estimate(self) -> None:
        if self._filled < self.length:
            return
        X, y, n = np.concatenate(self._X) if self._X[1:] else self._X[0], self._y, self.length
        X[np.isnan(y)] = 0  # the paper's rewards always come; a round without one is a row of zeros
        M = math.floor(self.M * math.log1p(n * self.b_max**2))
        R = self.x_max * self.b_max + self.sigma * math.sqrt(2 * math.log1p(n))
        B = R + self.x_max * self.b_max  # 2.7
        self.beta = n_iht(  # 2.8
            X, np.nan_to_num(y), s=self.s, epsilon=self.epsilon, delta=self.delta, M=M, R=R, B=B,
            eta=self.eta, C=self.b_max, rng=self._rng,
        )  # fmt: skip
        self.episode, self.length = self.episode + 1, 2 * n  # 2.6
        self._forget()
