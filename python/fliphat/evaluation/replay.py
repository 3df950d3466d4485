"""Let a policy learn from a log: rounds in which it would have shown the logged arm happened, others did not.

Whether a round counts depends on its contents, so episode boundaries move with the data, which the proof of
the guarantee forbids. A replay is an evaluation, never a deployment: the policy must have a seed, and its
guarantee then says that nothing is proven.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import arguments, kernels
from fliphat.evaluation.estimators import Value, value_of_mean
from fliphat.evaluation.log import Log
from fliphat.policies.fliphat import FLIPHAT

__all__ = ["Replayed", "replay"]

#: Logged rounds whose arms are chosen at once.
_BLOCK = 16_384


@dataclass(frozen=True, eq=False)
class Replayed:
    """What happened in a replay.

    Attributes
    ----------
    value : Value
        Mean reward of the rounds that matched.
    matched : ndarray of int64
        Their positions in the log.
    rewards : ndarray of float64
        Their rewards, in order: a learning curve.
    """

    value: Value
    matched: npt.NDArray[np.int64]
    rewards: npt.NDArray[np.float64]


def replay(policy: FLIPHAT, log: Log, *, seed: int = 0, confidence: float = 0.95) -> Replayed:
    """Play a policy through a log of uniformly shown arms.

    Each logged round offers its contexts. If the policy's arm is the logged one, the round is played and its
    reward handed in; otherwise the policy never sees the round. With uniformly shown arms the rounds that
    match are distributed as the policy's own would be.

    Parameters
    ----------
    policy : FLIPHAT
        With a seed and without a store.
    log : Log
        With contexts of shape (n, K, dim) and ``probabilities`` all equal to ``1/K``.
    seed : int, default 0
        Breaks ties, and draws the arms where the policy explores or has no estimate.
    confidence : float, default 0.95

    Raises
    ------
    ValueError
        If the policy has no seed, the log was not shown uniformly, contexts are missing or of another size,
        or no round matches.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import FLIPHAT
    >>> rng = np.random.default_rng(0)
    >>> contexts = rng.standard_normal((20_000, 2, 10)).astype(np.float32)
    >>> shown = rng.integers(0, 2, 20_000)
    >>> rewards = contexts[np.arange(20_000), shown, 0]
    >>> log = Log(shown, 0.5, rewards, 2, contexts)
    >>> played = replay(FLIPHAT(dim=10, sparsity=2, epsilon=5.0, delta=1e-3, seed=1), log)
    >>> bool(played.rewards[-1000:].mean() > 0.4), len(played.matched) > 9_000
    (True, True)
    """
    if policy.guarantee.proven or not policy.guarantee.seeded:
        raise ValueError(
            "policy must have a seed to be replayed: which rounds count depends on their contents, and no "
            "guarantee covers that"
        )
    if log.contexts is None or log.contexts.ndim != 3:
        raise ValueError("log must have contexts of shape (n, K, dim) to be replayed")
    if not np.allclose(log.probabilities, 1 / log.arm_count, rtol=1e-6, atol=0):
        raise ValueError(
            f"log must have been shown uniformly to be replayed: probabilities of 1/{log.arm_count}; "
            f"use inverse_propensity, self_normalised or doubly_robust for a fixed policy"
        )
    rng = np.random.default_rng(arguments.integer("seed", seed, 0, 2**63 - 1))
    matched: list[npt.NDArray[np.int64]] = []
    at = 0
    while at < len(log):
        with policy._playing() as engine:
            # A full episode is fitted first: arms are chosen by the estimate that is next.
            share = engine._ready().exploration
        block = slice(at, min(at + _BLOCK, len(log)))
        contexts = log.contexts[block]
        arms = kernels.select_arms(contexts, policy.estimate.to_dense(), rng)
        if share > 0:
            uniform = rng.integers(0, log.arm_count, len(arms))
            arms = np.where(rng.random(len(arms)) < share, uniform, arms)
        same = np.flatnonzero(arms == log.arms[block])[: policy.remaining]
        if len(same) == policy.remaining:
            # The estimate changes after this match: what follows is chosen again, by the new one.
            block = slice(at, at + int(same[-1]) + 1)
        _play(policy, contexts, same, log, at)
        matched.append(same + at)
        at = block.stop
    positions = np.concatenate(matched)
    if len(positions) == 0:
        raise ValueError("no logged round matches an arm of the policy: the log is too short")
    rewards = log.rewards[positions]
    value = value_of_mean("replay", rewards, float(len(positions)), confidence)
    return Replayed(value=value, matched=positions, rewards=rewards)


def _play(policy: FLIPHAT, contexts: Any, same: npt.NDArray[np.int64], log: Log, at: int) -> None:
    """Play matching rounds as rounds that offer their logged arm alone: the policy keeps just that row."""
    if len(same) == 0:
        return
    chosen = np.ascontiguousarray(contexts[same, log.arms[at + same]][:, None, :])
    decisions = policy.select_batch(chosen)
    policy.update_batch(decisions, log.rewards[at + same])
