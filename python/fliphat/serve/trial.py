"""Whether a round could be kept now: something is written and durable, or an error says why not."""

from __future__ import annotations

from fliphat.policies.engine.lifecycle import Phase
from fliphat.policies.live import LivePolicy

__all__ = ["fits", "try_keeping"]


def try_keeping(policy: LivePolicy) -> None:
    """Keep a word that means nothing, as durably as a round is kept; raises what keeping a round would."""
    engine = policy._engine
    assert engine is not None
    if engine.concurrent:
        engine.flush()
    elif engine.store is not None:
        engine.store.try_writing()


def fits(policy: LivePolicy) -> bool:
    """Whether an estimate of this policy is being computed, as far as this process knows."""
    engine = policy._engine
    return engine is not None and not engine.concurrent and engine.episode.life.phase is Phase.CLAIMED
