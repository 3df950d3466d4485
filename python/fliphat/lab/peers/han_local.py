"""Two greedy bandits with local privacy, for contexts that vary enough to explore by themselves.

| Han et al. 2021 | here |
|---|---|
| LDP-OLS: the release of Zheng et al., V and u reset at t = d, 2 d, 4 d, ... | :class:`HanOLS` |
| LDP-SGD: g = (x'theta - y) x, cut to length r | `_send` |
| sent: z of length B, on the half-sphere of +-g with probability e^eps / (1 + e^eps) | `_send` |
| B = r (e^eps + 1)/(e^eps - 1) (sqrt(pi)/2) d Gamma((d+1)/2) / Gamma(d/2 + 1) | `sphere_radius` |
| step 5 / (t + 1) | 1 / (t + `_offset`): larger first steps leave the noise of the first rounds for ever |

The ratio of Gammas overflows for d >= 342 if each is computed alone; their logarithms do not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.lab.peers.peer import RidgePeer, SteppingPeer
from fliphat.lab.peers.rules import Blocks, Draw, ReleasedSums, Running
from fliphat.lab.peers.sums import GramAndMoment
from fliphat.lab.peers.zheng import published_statistic
from fliphat.privacy.priced import VectorNoise


class _Restarts(Blocks):
    """Doubling boundaries; every row is sent by its own person, and sums begin anew at each boundary."""

    def running(self, draw: Draw) -> Running:
        return Running(draw, each_row=True, forget=True)


class HanOLS(RidgePeer):
    """Greedy least squares on what every person releases alone, restarted at each doubling. Locally private.

    Parameters
    ----------
    options
        See :class:`fliphat.lab.peers.peer.RidgePeer`.

    References
    ----------
    Y. Han, Z. Liang, Y. Wang, J. Zhang, "Generalized Linear Bandits with Local Differential Privacy", NeurIPS
    2021.

    Examples
    --------
    >>> from fliphat.lab.peers import HanOLS
    >>> HanOLS(5, 1.0, 0.01).privacy.notion
    'local'
    """

    notion = "local"
    protects = "a round's chosen context and reward, from the server too"

    def __init__(self, dim: int, epsilon: float, delta: float, **options: Any) -> None:
        super().__init__(dim, epsilon, delta, rule=_Restarts(dim), optimistic=False, **options)

    def _published(
        self, dim: int, rule: Any, norm: float, reward_clip: float, epsilon: float, delta: float
    ) -> tuple[GramAndMoment, VectorNoise]:
        return published_statistic(dim, norm, reward_clip, epsilon, delta)

    def _shift(self, released: ReleasedSums) -> float:
        return self._noise_norm(released, released.rows)


def sphere_radius(dim: int, epsilon: float) -> float:
    """Return B / r: how long what is sent must be, so that it is unbiased for a gradient of length r."""
    odds = (math.exp(epsilon) + 1) / math.expm1(epsilon)
    gammas = math.exp(math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2 + 1))
    return odds * math.sqrt(math.pi) / 2 * dim * gammas


class HanSGD(SteppingPeer):
    """Greedy stochastic gradient steps on directions that people send. Locally private, delta = 0.

    What is sent has one length, and its direction lies on the gradient's side with probability
    ``e^epsilon / (1 + e^epsilon)``: pure epsilon-DP for any gradient, in real arithmetic. Directions are made
    of float normals here, so that this is no theorem about the code (:class:`PeerPrivacy`).

    Parameters
    ----------
    gradient_clip : float, optional
        r; by default half the length of contexts whose columns have size 1.

    References
    ----------
    Y. Han, Z. Liang, Y. Wang, J. Zhang, "Generalized Linear Bandits with Local Differential Privacy", NeurIPS
    2021.

    J. Duchi, M. Jordan, M. Wainwright, "Minimax Optimal Procedures for Locally Private Estimation", JASA 2018
    (what is sent).

    Examples
    --------
    >>> from fliphat.lab.peers import HanSGD
    >>> privacy = HanSGD(5, 1.0, seed=1).privacy
    >>> privacy.epsilon, privacy.delta, privacy.proven
    (1.0, 0.0, False)
    """

    notion = "local"
    protects = "a round's chosen context and reward, from the server too"
    proven = False

    def __init__(
        self,
        dim: int,
        epsilon: float,
        *,
        gradient_clip: float | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(dim, epsilon, 0.0, seed)
        clip = math.sqrt(self.dim) / 2 if gradient_clip is None else gradient_clip
        self._clip = arguments.positive("gradient_clip", clip)
        self._length = self._clip * sphere_radius(self.dim, self.epsilon)
        # From here on a step's noise is about as long as coefficients of size 1 are.
        self._offset = self._length**2
        self._agrees = 1 / (1 + math.exp(-self.epsilon))

    def _bought(self) -> float:
        """Return the claim: pure epsilon-DP of what a person sends."""
        return self.epsilon

    def _send(self, gradient: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return what one person sends."""
        size = float(np.linalg.norm(gradient))
        if not math.isfinite(size):
            gradient, size = np.zeros(self.dim), 0.0
        share = 0.5 + min(size, self._clip) / (2 * self._clip)
        direction = gradient if self._rng.random() < share else -gradient
        z = self._rng.standard_normal(self.dim)
        agrees = self._rng.random() < self._agrees
        side = float(z @ direction) > 0 if size else bool(self._rng.random() < 0.5)
        length = self._length if side == agrees else -self._length
        return np.asarray(z * (length / np.linalg.norm(z)))

    def _step_on(self, row: npt.NDArray[Any], reward: float) -> None:
        x = row.astype(np.float64)
        gradient = (float(x @ self._estimate) - reward) * x
        self._estimate = self._estimate - self._send(gradient) / (self.rounds + self._offset)
