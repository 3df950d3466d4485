"""What a request does to the policy, in the owner's thread. A ValueError or TypeError is its client's."""

from __future__ import annotations

import time
from typing import Any

from fliphat.policies.live import LivePolicy
from fliphat.policies.named import NamedArms
from fliphat.policies.types import Decision, Decisions
from fliphat.serve.bodies import ArmChange, Rewards, Rounds
from fliphat.serve.refusal import Refusal, unprocessable

__all__ = [
    "change_arms",
    "hand_in",
    "keep_switch",
    "named",
    "no_arms",
    "play_batch",
    "refused",
    "try_keeping",
]


def refused(error: Exception) -> Refusal:
    """Return the answer to a request whose arguments the policy does not take; its words hold no contents."""
    if "already has a reward" in str(error):
        return Refusal(409, "already", "this decision has a reward; a second one is refused")
    return unprocessable(str(error))


def play_batch(rounds: Rounds, policy: LivePolicy) -> list[Decisions | Decision]:
    """Play a request's rounds. What fails for its arguments fails before its first round."""
    users, keys, contexts = rounds.users, rounds.keys, rounds.contexts
    per_round = rounds.arms or 1  # rows of CSR are arms, of an array rounds
    decided: list[Decisions | Decision] = []
    if keys is not None:
        for i, key in enumerate(keys):
            part = contexts[i] if rounds.arms is None else contexts[i * per_round : (i + 1) * per_round]
            decided.append(policy.select(part, users[i] if users else None, key))
        return decided
    arms = None if rounds.arms is None or rounds.depth == 1 else rounds.arms
    at = 0
    while at < rounds.count:  # an episode may end inside the batch: its estimate changes there
        end = min(at + policy.remaining, rounds.count)
        part = contexts[at * per_round : end * per_round]
        try:
            decided.append(policy.select_batch(part, users[at:end] if users else None, arms=arms))
        except ValueError:
            if policy.remaining >= end - at:
                raise
            continue  # other workers took what was left of the episode meanwhile
        at = end
    return decided


def hand_in(rewards: Rewards, policy: LivePolicy) -> bool | int:
    """Hand in a request's rewards."""
    if rewards.key is not None:
        return policy.update(reward=rewards.rewards[0], key=rewards.key, user=rewards.user)
    if rewards.single:
        return policy.update(rewards.ids[0], rewards.rewards[0])
    return policy.update_batch(rewards.ids, rewards.rewards)


def named(rewards: Rewards, policy: LivePolicy) -> int:
    """Return the id of the round that a reward's key names."""
    engine = policy._engine
    assert engine is not None
    return engine.decided(rewards.key, rewards.user)


def no_arms() -> Refusal:
    """Return the answer to whoever asks for arms of a policy that has no table of them."""
    return Refusal(404, "no arms", "every round of this policy brings its arms: there is no list of them")


def change_arms(change: ArmChange, policy: LivePolicy) -> tuple[Any, ...]:
    """Add or remove an arm and return those that are played now; done again, it changes nothing."""
    if not isinstance(policy, NamedArms) or not policy._named:
        raise no_arms()
    if not change.add and change.arm not in policy._ids:
        raise unprocessable("remove must name an arm that there is or was")
    if (change.arm in policy.arms) == change.add:
        return policy.arms
    if not change.add and len(policy.arms) == 1:
        raise unprocessable("the last arm can't be removed: a round has to play something")
    try:
        (policy.add_arm if change.add else policy.remove_arm)(change.arm)
    except (ValueError, TypeError):
        raise unprocessable("the arm can't be added or removed") from None
    return policy.arms


def try_keeping(policy: LivePolicy) -> bool:
    """Keep a word that means nothing, as durably as a round; raises what keeping a round would.

    Returns whether a round could be played now: in a database it may have to wait for another worker's fit.
    """
    engine = policy._engine
    assert engine is not None
    engine.keep("tried", round(time.time()))
    engine.refresh()
    engine.require_alive()  # a copy that its witness refused can still write
    return not engine.waits_for_a_fit


def keep_switch(arm: str | int | None, policy: LivePolicy) -> None:
    """Keep which arm every round gets, for all workers and for the next start."""
    engine = policy._engine
    assert engine is not None
    engine.keep("switched_off", arm)
    engine.switched_off = arm
