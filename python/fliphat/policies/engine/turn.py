"""The turn from a full episode to the next: claim, fit, commit, ask the witness, show, close.

Each step is one of :data:`fliphat.policies.engine.lifecycle.TABLE`. Cut off anywhere, the turn goes on where
it was, whoever asks next: a round, `save`, `forget`, or whoever opens the store again. An estimate is fitted
inside the call that opens the next episode, after that call's own arguments have been checked, and never when
a reward arrives.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from fliphat.fit.known import Fit, FitWithTotals, Known
from fliphat.policies.engine.episode import Episode, Released
from fliphat.policies.engine.keeping import Release
from fliphat.policies.engine.lifecycle import Asked, Phase, step
from fliphat.policies.engine.witness import Record, agrees, name_of, not_newest
from fliphat.policies.types import EpisodeFacts

if TYPE_CHECKING:
    from fliphat.policies.engine.engine import Engine

__all__ = ["fitted", "move", "recalled", "stored_release", "turn"]


def turn(engine: Engine) -> None:
    """Bring the full episode to its end, and open the next."""
    episode = engine.episode
    while engine.episode is episode:
        _STEPS[episode.life.phase](engine, episode)


def move(
    engine: Engine, event: str, *, bits: Released | None = None, next_room: int = 0, **asked: Any
) -> None:
    """Take one step of the open episode's life, durably, and then in memory."""
    episode = engine.episode
    life = step(episode.life, event, Asked(bits=bits, **asked))
    if engine.store is not None:
        engine._disk_is_ahead = True
        release = None if bits is None else stored_release(bits)
        kept = engine.store.step(episode.index, event, release=release, next_room=next_room, **asked)
        # What was committed is what the store says, also where its answer was lost on the way.
        life = kept._replace(bits=life.bits if bits is None else engine.committed(episode.index))
    episode.life = life
    engine._disk_is_ahead = False


def fitted(fit: Fit[Any, Any], episode: Episode, rows: Any, before: Known, totals: bytes | None) -> Released:
    """Fit a claimed episode: what comes back is seen by nobody until it is committed, witnessed and shown."""
    numbers, present = episode.rewards()
    if isinstance(fit, FitWithTotals):
        known, totals = fit.run_totals(episode.plan, rows, numbers, present, before, totals)
    else:
        known, totals = fit.run(episode.plan, rows, numbers, present, before), None
    estimate = known.estimate
    facts = EpisodeFacts(**fit.facts(episode.plan, known), first_round=episode.first_round, estimate=estimate)
    return Released(facts, known, os.urandom(16).hex(), fit.plan(known.episodes, known).rows, totals)


def stored_release(released: Released) -> Release:
    """Return a release as values that a store can hold."""
    facts, estimate = released.facts, released.facts.estimate
    known = released.known.to_record()
    return Release(
        facts.to_dict(), estimate.indices, estimate.values, known, released.mark, released.next_room,
        released.totals,
    )  # fmt: skip


def recalled(fit: Fit[Any, Any], kept: Release) -> Released:
    """Return what :func:`stored_release` made a record of."""
    estimate = fit.recall_estimate(kept.indices, kept.numbers)
    facts = EpisodeFacts.from_dict(kept.facts, estimate)
    return Released(facts, fit.recall(kept.known), kept.mark, kept.next_room, kept.totals)


def _fill(engine: Engine, episode: Episode) -> None:
    episode.life = step(episode.life, "fill")  # cut off between the last round and this


def _claim(engine: Engine, episode: Episode) -> None:
    assert episode.rows is not None
    episode.rows.matrix()  # before the claim: rows that can't be read leave the episode as it is
    engine.settings.exploration_in(episode.index + 1)  # so does a schedule that can't be followed
    # One owner for as long as the process lives: no lease is needed where nobody else can claim.
    room = 0 if engine.store is None else engine.fit.least_rows(episode.index + 1)
    engine.move("claim", next_room=room, owner=engine.owner, lease=math.inf, alone=True)


def _fit(engine: Engine, episode: Episode) -> None:
    if episode.life.owner != engine.owner:  # claimed by a process that is gone, or the claim was taken back
        _claim(engine, episode)
    assert episode.rows is not None
    rows = episode.rows.matrix()
    released = fitted(engine.fit, episode, rows, engine.known, engine.totals)
    engine.move("commit", bits=released, fence=episode.life.fence)


def _ask(engine: Engine, episode: Episode) -> None:
    """Ask the witness, before anything can be seen: of several copies of a store, one gets past this."""
    if engine.witness is not None:
        before = Record(episode.index, engine.mark)
        now = Record(episode.index + 1, episode.life.bits.mark)
        if not agrees(engine.witness, name_of(engine.secret), before, now):
            engine.move("refuse")
            raise not_newest()
    engine.move("accept")


def _show(engine: Engine, episode: Episode) -> None:
    """Make what the witness agreed to public; done again, it changes nothing."""
    released: Released = episode.life.bits
    if len(engine.history) == episode.index:
        engine.history.append(released.facts)
    engine.totals, engine.mark = released.totals, released.mark
    engine.show(released.known)
    engine.move("show")


def _close(engine: Engine, episode: Episode) -> None:
    engine.move("close")


def _go_on(engine: Engine, episode: Episode) -> None:
    engine.episode = engine.new_episode(episode.first_round + episode.length)


def _refuse(engine: Engine, episode: Episode) -> None:
    raise not_newest()


_STEPS: Final[dict[Phase, Callable[[Engine, Episode], None]]] = {
    Phase.OPEN: _fill,
    Phase.FULL: _claim,
    Phase.CLAIMED: _fit,
    Phase.COMMITTED: _ask,
    Phase.WITNESSED: _show,
    Phase.SHOWN: _close,
    Phase.CLOSED: _go_on,
    Phase.REFUSED: _refuse,
}
