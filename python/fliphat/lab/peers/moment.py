"""Greedy play on noisy sums of context times reward: from no paper, and the strongest simple rival.

Without X'X there are d numbers to protect and not d^2 / 2, and cutting the *product* of context and reward
asks for far less noise than the product of their bounds. Contexts whose columns have about one size need no
X'X to find the direction. Keeping the largest entries is post-processing: it costs nothing.
"""

from __future__ import annotations

import numpy as np

from fliphat import arguments
from fliphat.lab.peers.peer import Peer, default_norm
from fliphat.lab.peers.rules import Blocks, ReleasedSums
from fliphat.lab.peers.sums import Moments


class MomentGreedy(Peer):
    """Greedy on the noisy sum of ``x y``, or on its largest entries. Jointly private.

    Parameters
    ----------
    context_norm, reward_scale : float
        L (by default sqrt(d)) and the usual size of a reward: products are cut to ``L * reward_scale``.
    sparsity : int, optional
        Keep so many of the largest entries; by default all.
    first : int
        Rounds before the first release; blocks double from there.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.peers import MomentGreedy
    >>> policy = MomentGreedy(100, 5.0, 0.01, sparsity=10, seed=1)
    >>> played = policy.play(SparseLinear(dim=100, seed=1), 4000)
    >>> bool(played.regret[-1000:].mean() < 0.2 * played.regret[:64].mean())
    True
    >>> int(np.count_nonzero(policy.estimate))
    10
    """

    statistic: Moments

    def __init__(
        self,
        dim: int,
        epsilon: float,
        delta: float,
        *,
        context_norm: float | None = None,
        reward_scale: float = 1.5,
        sparsity: int | None = None,
        first: int = 64,
        seed: int | None = None,
    ) -> None:
        clip = default_norm(dim, context_norm) * arguments.positive("reward_scale", reward_scale)
        statistic = Moments(dim, product_clip=clip)
        noise = self._proven(statistic, Blocks(first), epsilon, delta)
        rule = Blocks(first, noise_rows=statistic.noise_rows(noise))
        super().__init__(dim, epsilon, delta, statistic=statistic, rule=rule, noise=noise, seed=seed)
        self.sparsity = None if sparsity is None else arguments.integer("sparsity", sparsity, 1, self.dim)

    def _read(self, released: ReleasedSums) -> None:
        estimate = self.statistic.read(released.values) / released.rows
        if self.sparsity is not None and self.sparsity < self.dim:
            estimate[np.argsort(-np.abs(estimate), kind="stable")[self.sparsity :]] = 0.0
        self._estimate = estimate
