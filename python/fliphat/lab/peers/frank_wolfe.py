"""Private online Frank-Wolfe on the l1 ball: the only published competitor whose regret has log d.

| Han et al. 2022, p = 1, one parameter for all arms | here |
|---|---|
| d_t = g_t(theta_t) + (1 - 1/t) (d_(t-1) - g_t(theta_(t-1))) | `_sum` / t: see below |
| vertex j = argmax abs(d_t + Lap(4 sqrt(ln T ln(1/delta)) / (epsilon sqrt(t)))) | `_vertex` |
| theta_(t+1) = theta_t + (+-radius e_j - theta_t) / (t + 1) | `_step_on` |
| forced sampling of ln(d T) ln(T) / epsilon^2 rounds | `forced` |

t d_t is a running sum of ``c_t = g_t(theta_t) + (t - 1) (g_t(theta_t) - g_t(theta_(t-1)))``: each
coordinate of c_t is cut to a public size and becomes an integer of at most 2^15, so that replacing a round
moves each coordinate of every later sum by at most 2^16. The published code releases the sign of d_t[j]
without noise. Here the vertex is picked with its sign, among 2 d candidates: as an exponential mechanism
("proven"), or by noisy maximum with the published Laplace scale ("paper").
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.kernels import _fits as fit_kernels
from fliphat.lab.peers.peer import CALIBRATIONS, SteppingPeer
from fliphat.privacy import epsilon_from_rho, rho_from_epsilon

#: Largest integer of a round's coordinate, and how far replacing a round moves a coordinate of the sum.
_LIMIT: Final = 2**15
_SENSITIVITY: Final = 2 * _LIMIT

#: Costs are added in steps of this size, rounded up.
_GRID: Final = 2**60


def vertex_cost(scales: npt.NDArray[np.int64], per_pick: Fraction) -> Fraction:
    """Return an upper bound on the zCDP cost of picks with these scales, each ``per_pick (L/scale)^2``."""
    numerator = per_pick.numerator * _SENSITIVITY**2 * _GRID
    total = sum(-(-numerator // (per_pick.denominator * scale * scale)) for scale in scales.tolist())
    return Fraction(total, _GRID)


class PrivateFrankWolfe(SteppingPeer):
    """Frank-Wolfe steps towards vertices that are picked privately, sign and all. Jointly private.

    Parameters
    ----------
    horizon : int
        T: noise suffices for so many rounds; more are refused.
    radius : float
        Of the l1 ball.
    gradient_clip : float
        c: coordinates of c_t are cut here.

    References
    ----------
    Y. Han, Z. Liang, Z. Liang, Y. Wang, Y. Yao, J. Zhang, "On Private Online Convex Optimization: Optimal
    Algorithms in lp-Geometry and High Dimensional Contextual Bandits", 2022.

    Examples
    --------
    >>> from fliphat.lab.peers import PrivateFrankWolfe
    >>> policy = PrivateFrankWolfe(50, 1.0, 0.01, horizon=1000, seed=1)
    >>> policy.privacy.kept, policy.forced
    (True, 75)
    """

    protects = "a round's chosen context and reward"

    def __init__(
        self,
        dim: int,
        epsilon: float,
        delta: float,
        *,
        horizon: int,
        radius: float = 4.0,
        gradient_clip: float = 6.0,
        calibration: str = "proven",
        seed: int | None = None,
    ) -> None:
        super().__init__(dim, epsilon, delta, seed)
        self.calibration = arguments.choice("calibration", calibration, CALIBRATIONS)
        self.proven = calibration == "proven"
        self.horizon = arguments.integer("horizon", horizon, 2, 2**31)
        self._radius = arguments.positive("radius", radius)
        self._clip = arguments.positive("gradient_clip", gradient_clip)
        log_horizon = math.log(self.horizon)
        self.forced = math.ceil(math.log(self.dim * self.horizon) * log_horizon / self.epsilon**2)
        self.forced = min(self.forced, self.horizon // 4)
        rounds = np.arange(1, self.horizon + 1)
        if calibration == "paper":
            # A scale for d_t, whose coordinates are within 1; the sum is t times as large.
            size = 4 * math.sqrt(log_horizon * math.log(1 / delta)) / self.epsilon * _LIMIT
            self._per_pick = Fraction(2)
        else:
            harmonic = float((1 / rounds).sum())
            size = _SENSITIVITY * math.sqrt(harmonic / (2 * rho_from_epsilon(epsilon, delta)))
            self._per_pick = Fraction(1, 2)
        self.scales = np.ceil(size * np.sqrt(rounds)).astype(np.int64)
        self._sum = np.zeros(self.dim, np.int64)
        self._theta, self._before = np.zeros(self.dim), np.zeros(self.dim)
        self._simulated = seed is not None

    def _bought(self) -> float:
        """Return what the picks of all rounds buy together, in zCDP."""
        return epsilon_from_rho(vertex_cost(self.scales, self._per_pick), self.delta)

    def _vertex(self, scale: int) -> tuple[int, int]:
        """Return a private column and sign that point down the gradient."""
        downhill = -self._sum
        if self.calibration == "paper":
            noisy = np.concatenate([downhill, -downhill]) + self._rng.laplace(scale=scale, size=2 * self.dim)
            best = int(noisy.argmax())
            return best % self.dim, 1 if best < self.dim else -1
        if not self._simulated:
            columns, signs = fit_kernels.pick_columns(downhill, 1, scale=scale, signed=True)
            return int(columns[0]), int(signs[0])
        # The largest of scores with Gumbel noise is a pick of the exponential mechanism.
        noise = self._rng.gumbel(size=(2, self.dim))
        keys = np.stack([downhill / scale, -downhill / scale]) + noise
        best = int(keys.argmax())
        return best % self.dim, 1 if best < self.dim else -1

    def _step_on(self, row: npt.NDArray[Any], reward: float) -> None:
        t = self.rounds
        if t > self.horizon:
            raise ValueError(
                f"rounds must be at most the horizon = {self.horizon} that the noise is made for"
            )
        x = row.astype(np.float64)
        now, before = float(x @ self._theta) - reward, float(x @ self._before) - reward
        change = (now + (t - 1) * (now - before)) * x
        steps = np.nan_to_num(change * (_LIMIT / self._clip), nan=0.0, posinf=_LIMIT, neginf=-_LIMIT)
        self._sum += np.clip(np.trunc(steps), -_LIMIT, _LIMIT).astype(np.int64)
        column, sign = self._vertex(int(self.scales[t - 1]))
        self._before = self._theta
        self._theta = self._theta * (t / (t + 1))
        self._theta[column] += sign * self._radius / (t + 1)
        # Forced rounds are played at random; what is learned in them counts.
        self._estimate = self._theta if t >= self.forced else np.zeros(self.dim)
