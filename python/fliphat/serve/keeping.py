"""What the server itself keeps in a policy's store: the switch, and words that try whether it works."""

from __future__ import annotations

import time

from fliphat.policies.live import LivePolicy

__all__ = ["keep_switch", "switched_off", "try_keeping", "waits_for_a_fit"]


def try_keeping(policy: LivePolicy) -> bool:
    """Keep a word that means nothing, as durably as a round; raises what keeping a round would.

    Returns whether a round could be played now: in a database it may have to wait for another worker's fit.
    """
    engine = policy._engine
    assert engine is not None
    engine.keep("tried", round(time.time()))
    engine.refresh()
    return not engine.waits_for_a_fit


def waits_for_a_fit(policy: LivePolicy) -> bool:
    """Whether rounds wait for an estimate of this policy, as far as this process knows."""
    engine = policy._engine
    return engine is not None and not engine.concurrent and engine.waits_for_a_fit


def switched_off(policy: LivePolicy) -> str | int | None:
    """Return the arm that every round gets, None while the policy plays; as it was last looked at."""
    engine = policy._engine
    arm: str | int | None = None if engine is None else engine.switched_off
    return arm


def keep_switch(arm: str | int | None, policy: LivePolicy) -> None:
    """Keep which arm every round gets, for all workers and for the next start."""
    engine = policy._engine
    assert engine is not None
    engine.keep("switched_off", arm)
    engine.switched_off = arm
