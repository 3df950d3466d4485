"""Simulated rounds at full speed.

In an episode FLIPHAT plays greedily on one public estimate, which is all that an environment's lazy drawing
asks for. So a simulation need not draw the rows of arms that nobody plays: the environment writes the chosen
rows where the episode keeps them. What the policy has seen afterwards is what `select_batch` and
`update_batch` would have left, ties broken by the environment's generator instead of the policy's.

That is for simulation only. A policy that keeps its rounds durably, or whose noise is meant to protect
somebody, must be played through its own calls, and is refused here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fliphat import arguments
from fliphat.fit.pursuit.known import KnownSparse
from fliphat.policies.engine.engine import Engine
from fliphat.policies.engine.episode import NOT_LEARNED
from fliphat.policies.engine.inputs import usable_rewards
from fliphat.policies.engine.rows import RowStore, SparseChosen
from fliphat.policies.engine.rows.base import DenseStore
from fliphat.policies.fliphat import FLIPHAT
from fliphat.policies.outcomes import Environment, Played, PlayedParts, PlaysItself, plain_block

__all__ = ["play"]

_MOST_ROUNDS = 2**40
_OVER = "this policy's simulation was played to the end: its last rounds were not kept"


def play(
    policy: FLIPHAT | PlaysItself,
    environment: Environment,
    rounds: int,
    *,
    lazy: bool = True,
    to_the_end: bool = False,
) -> Played:
    """Play the next rounds of a simulated environment.

    Parameters
    ----------
    policy : FLIPHAT or a baseline
        FLIPHAT must have a seed and no store, unless `lazy` is False.
    environment : fliphat.environments.Environment
    rounds : int
        As many as you like: episodes and refits happen on the way.
    lazy : bool, default True
        False plays FLIPHAT through `select_batch` and `update_batch` on rounds drawn whole: the same
        distribution, several times slower. A policy that explores is always played so: lazy drawing is
        greedy. Baselines always play in their own way.
    to_the_end : bool, default False
        True says that FLIPHAT will play no further: rows of the episode that these rounds end in are not
        even drawn, for no estimate will be made of them. The outcome is the same; the policy can't go on.

    Returns
    -------
    Played
        Arms, rewards and regret of each round.

    Raises
    ------
    ValueError
        If the policy is not one for simulation, or its dim is not the environment's.

    Examples
    --------
    >>> from fliphat import FLIPHAT
    >>> from fliphat.environments import SparseLinear
    >>> policy = FLIPHAT(dim=50, sparsity=5, epsilon=5.0, delta=1e-2, reward_scale=1.5, seed=1)
    >>> played = play(policy, SparseLinear(dim=50, seed=1), 4000)
    >>> bool(played.regret[-1000:].mean() < played.regret[:50].mean() / 5), policy.rounds
    (True, 4000)
    """
    rounds = arguments.integer("rounds", rounds, 0, _MOST_ROUNDS)
    if isinstance(policy, PlaysItself):
        return policy.play(environment, rounds)
    if environment.dim != policy._settings.dim:
        raise ValueError(
            f"environment must have the policy's dim = {policy._settings.dim}, got dim = {environment.dim}"
        )
    parts = PlayedParts()
    explores = policy._settings.exploration != 0
    if lazy and explores:
        with policy._playing() as engine:
            _check_simulated(engine)
    if not lazy or explores:
        while parts.rounds < rounds:
            parts.add(_plain(policy, environment, rounds - parts.rounds))
        if lazy and to_the_end:
            with policy._playing():
                policy._let_go(_OVER)
        return parts.joined()
    with policy._playing() as engine:
        _check_simulated(engine)
        while parts.rounds < rounds:
            parts.add(_lazy(engine, environment, rounds - parts.rounds, to_the_end))
        if to_the_end:
            policy._let_go(_OVER)
    return parts.joined()


def _check_simulated(engine: Engine) -> None:
    if engine.settings.seed is None:
        raise ValueError(
            "policy must have a seed to be simulated: without one its noise is meant to protect people, "
            "who play through select and update"
        )
    if engine.store is not None:
        raise ValueError(
            "policy must have no store to be simulated: stored rounds go through select and update"
        )
    if engine.with_users:
        raise ValueError("policy must have been played without user ids to be simulated")


def _plain(policy: FLIPHAT, environment: Environment, most: int) -> Any:
    drawn = environment.draw(min(most, policy.remaining, plain_block(environment)))
    arms = environment.arms if environment.layout == "csr" else None
    decisions = policy.select_batch(drawn.contexts, arms=arms)
    outcome = drawn.settle(decisions.arms, rows=False)
    policy.update_batch(decisions, outcome.rewards)
    return outcome


def _copied_block(environment: Environment) -> int:
    """Return how many chosen rows to draw at once where they are copied: 64 MB of them or so."""
    return max(1, 2**24 // (environment.dim if environment.layout == "dense" else 256))


def _lazy(engine: Engine, environment: Environment, most: int, to_the_end: bool) -> Any:
    """Play rounds of one episode; the order of changes is the engine's own: stage, then count."""
    episode = engine._ready()
    at, count = episode.filled, min(most, episode.length - episode.filled)
    estimate: Any = (engine.estimate.indices, engine.estimate.values)
    if isinstance(engine.known, KnownSparse) and engine.known.earned.fallback is not None:
        estimate = None  # the guard plays uniformly
    if to_the_end and count == most:
        outcome = environment.play(count, estimate, rows=False)
        _require_usable(outcome.rewards, engine.settings.loss)
        episode.append(count, episode.first_round + at, NOT_LEARNED)
        return outcome
    if episode.rows is None:
        episode.rows = engine.new_rows(environment.layout)
    rows = episode.rows
    if rows.layout != environment.layout:
        raise ValueError(
            f"environment must have {rows.layout} contexts, as the rounds that the open episode began with"
        )
    if not rows.in_place:
        # Rows on their way to a file, and sparse ones before they are copied, are a second set in memory.
        count = min(count, _copied_block(environment))
    outcome = _play_into(rows, environment, at, count, estimate)
    _require_usable(outcome.rewards, engine.settings.loss)
    engine.with_users = False
    codes = np.clip(outcome.rewards, -episode.largest, episode.largest)
    episode.append(count, episode.first_round + at, codes)
    return outcome


def _play_into(rows: RowStore, environment: Environment, at: int, count: int, estimate: Any) -> Any:
    """Play rounds and stage their rows, drawn where they are kept if that can be."""
    if isinstance(rows, DenseStore) and rows.in_place and rows.dtype == np.float32:
        return environment.play(count, estimate, out=rows.place(at, count))
    outcome = environment.play(count, estimate)
    chosen = outcome.rows
    if rows.layout == "csr":
        chosen = SparseChosen(np.diff(chosen.indptr).astype(np.uint32), chosen.indices, chosen.data)
    rows.put(at, chosen)
    return outcome


def _require_usable(given: Any, loss: str) -> None:
    if not usable_rewards(given, len(given), loss)[1].all():
        raise ValueError("environment must give finite rewards, and 0 or 1 for loss='logistic'")
