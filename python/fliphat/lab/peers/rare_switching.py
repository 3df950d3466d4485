"""LinUCB that renews its estimate rarely, with private contexts: Azize and Basu's plan, jointly private.

| Azize and Basu, AdaC-OFUL | here |
|---|---|
| V_t = sum of a a' + lambda I, exact | noisy: contexts are private, so X'X is released with noise |
| episode ends where det V_t > (1 + C) det V_tau | at a public boundary, or by Rayleigh quotients |
| theta-tilde = V^-1 (u + Y_1 + ... + Y_l) | the same, of weighted noisy sums of blocks |
| beta-tilde | `_width` |

A determinant of private contexts must not end an episode, and one of noisy matrices bounds the volume and
not the worst direction. Zhou's rule is sound: switch where the largest eigenvalue of ``V_tau^(-1/2) V_t
V_tau^(-1/2)`` passes a factor. It reads released matrices alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.lab.peers.peer import RidgePeer
from fliphat.lab.peers.rules import Blocks, ReleasedSums, Rule, Tree

_SWITCHING = ("public", "rayleigh")


class RareSwitching(RidgePeer):
    """LinUCB (or greedy ridge) on noisy second moments of public blocks. Jointly private.

    Parameters
    ----------
    first : int
        Rounds before the first release; blocks double from there.
    switching : {"public", "rayleigh"}
        Whether the estimate changes with every block, or a tree is released and the estimate changes where a
        Rayleigh quotient of released matrices passes `factor`.
    leaf, horizon : int
        Of the tree.
    options
        See :class:`fliphat.lab.peers.peer.RidgePeer`.

    References
    ----------
    A. Azize, D. Basu, "Concentrated Differential Privacy for Bandits", SaTML 2024 (rewards alone are private
    there: :class:`AdaCOFUL`).

    X. Zhou, arXiv:2605.23131 (2026), on switching under noise.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.peers import RareSwitching
    >>> policy = RareSwitching(10, 10.0, 0.01, optimistic=False, seed=1)
    >>> played = policy.play(SparseLinear(dim=10, seed=1), 4000)
    >>> bool(played.regret[-1000:].mean() < 0.2 * played.regret[:64].mean())
    True
    """

    def __init__(
        self,
        dim: int,
        epsilon: float,
        delta: float,
        *,
        first: int = 64,
        switching: str = "public",
        factor: float = 2.0,
        leaf: int = 128,
        horizon: int = 2**20,
        **options: Any,
    ) -> None:
        arguments.choice("switching", switching, _SWITCHING)
        rule: Any = Blocks(first) if switching == "public" else Tree(leaf=leaf, horizon=horizon)
        super().__init__(dim, epsilon, delta, rule=rule, horizon=horizon, **options)
        self.switching, self.switches = switching, 0
        self.factor = arguments.within("factor", factor, 1.0, 1e9)
        self._at: npt.NDArray[np.float64] | None = None

    def _weighted(self, rule: Rule, noise_rows: float) -> Rule:
        return Blocks(rule.first, noise_rows=noise_rows) if isinstance(rule, Blocks) else rule

    def _use(
        self, matrix: npt.NDArray[np.float64], moment: npt.NDArray[np.float64], released: ReleasedSums
    ) -> None:
        before = self._at if self.switching == "rayleigh" else None
        if before is not None and largest_quotient(before, matrix) <= self.factor:
            return
        self._at = matrix
        self.switches += 1
        super()._use(matrix, moment, released)


def largest_quotient(before: npt.NDArray[np.float64], now: npt.NDArray[np.float64]) -> float:
    """Return the largest ``x' now x / x' before x``; infinite if `before` is not positive."""
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(before))
    except np.linalg.LinAlgError:
        return math.inf
    return float(np.linalg.eigvalsh(inverse @ now @ inverse.T)[-1])
