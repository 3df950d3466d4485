"""The switch: every round gets one arm, nothing is played, kept or learned, until it is switched on again.

Answers do not need the store, so they come while it is broken too. A round that was not played has the number
0 in its id; its reward is taken by nobody. Keys are not looked up meanwhile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fliphat.policies.types import Decision, Decisions
from fliphat.serve.bodies import Rewards, Rounds
from fliphat.serve.refusal import unprocessable
from fliphat.serve.terms import Terms

__all__ = ["checked_arm", "fallback", "of_played"]

_NOT_PLAYED = 0


def checked_arm(arm: Any, terms: Terms) -> str | int | None:
    """Return the arm that rounds are to play, None for the policy's own."""
    if arm is None:
        return None
    if terms.arms is not None:
        if arm not in terms.arms or isinstance(arm, bool):
            raise unprocessable("arm must be one that is played now, or null to let the policy play")
    elif isinstance(arm, bool) or not isinstance(arm, int) or arm < 0:
        raise unprocessable("arm must be a number from 0 on, or null to let the policy play")
    found: str | int = arm
    return found


def fallback(
    rounds: Rounds, arm: str | int, terms: Terms, episode: int
) -> Decision | list[Decisions | Decision]:
    """Return the answer to rounds that nobody plays; a round that has no such arm gets its first."""
    if terms.arms is None:
        offered = rounds.arms if rounds.arms is not None else rounds.contexts.shape[-2]
        arm = arm if isinstance(arm, int) and arm < offered else 0
    if rounds.single:
        return Decision(_NOT_PLAYED, arm, False, episode, 1.0)  # type: ignore[arg-type]
    count = rounds.count
    arms: Any = np.full(count, arm) if isinstance(arm, int) else np.array([arm] * count, object)
    ids = np.full(count, _NOT_PLAYED, np.int64)
    return [Decisions(ids, arms, np.zeros(count, bool), episode, np.ones(count))]


def of_played(rewards: Rewards) -> Rewards:
    """Return the rewards of rounds that were played."""
    if _NOT_PLAYED not in rewards.ids:
        return rewards
    kept = [place for place, identity in enumerate(rewards.ids) if identity != _NOT_PLAYED]
    return Rewards(
        [rewards.ids[place] for place in kept],
        [rewards.receipts[place] for place in kept],
        [rewards.rewards[place] for place in kept],
        rewards.single,
    )
