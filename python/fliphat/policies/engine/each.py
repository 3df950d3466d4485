"""Single rounds of several callers, played together: one draw, one choice, one frame for all of them.

Everything is as if each round were played by a call of its own, in this order: arms, ids, limits of users,
keys, what is wrong with one of them, and the release of a full episode in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fliphat.policies.engine.episode import AWAITED, NOT_LEARNED
from fliphat.policies.engine.exploring import probability
from fliphat.policies.engine.keeping import PlayedRounds
from fliphat.policies.engine.rows import Rounds
from fliphat.policies.types import Decision

if TYPE_CHECKING:
    from fliphat.policies.engine.engine import Engine

__all__ = ["Single", "alone", "select_each"]


class Single(NamedTuple):
    """One round that somebody asks for; see :meth:`fliphat.FLIPHAT.select`."""

    contexts: Any
    user: Any = None
    key: Any = None


class _Checked(NamedTuple):
    """A round whose structure is right and whose key is new."""

    place: int
    rows: Any
    arms: int
    digest: bytes | None
    name: bytes


def select_each(engine: Engine, asked: Sequence[Single], results: list[Any]) -> None:
    """Play rounds in order; `results` gets a decision of each, or the error that its own call would raise.

    An error of the store or of a fit raises; what was played until then has its decision.
    """
    waiting: list[_Checked] = []
    names: set[bytes] = set()

    def play() -> None:
        # Taken first: what a fit's error interrupts must not be played again.
        work = waiting.copy()
        waiting.clear()
        names.clear()
        _play(engine, asked, work, results)

    for place, (contexts, user, key) in enumerate(asked):
        try:
            digests = engine._user_digests("user", None if user is None else [user])
            name = engine._key_name(key, digests)
        except (ValueError, TypeError) as error:
            results[place] = error
            continue
        if name in names:
            play()
        try:
            known = engine.keys.get(name) if name else None
            if known is not None:
                results[place] = engine._named(known)
                continue
            plain = type(contexts) is np.ndarray
            if plain:
                rows, arms = engine.rule.one_round(contexts)
                engine._offered(None, arms)
        except (ValueError, TypeError) as error:
            results[place] = error
            continue
        # The policy's first round decides whether all have users, and of which kind: others wait for it.
        if not plain or engine.with_users is None:
            play()
            results[place] = alone(engine, asked[place])
            continue
        if waiting and not _alike(waiting[0], rows, arms):
            play()
        waiting.append(_Checked(place, rows, arms, digests[0] if digests else None, name))
        if name:
            names.add(name)
    play()


def alone(engine: Engine, one: Single) -> Decision | ValueError | TypeError:
    """Play one round; its decision, or what is wrong with it."""
    try:
        return engine.select(*one)
    except (ValueError, TypeError) as error:
        return error


def _alike(first: _Checked, rows: Any, arms: int) -> bool:
    """Whether two rounds' contexts can stand in one matrix."""
    return first.arms == arms and first.rows.shape == rows.shape and first.rows.dtype == rows.dtype


def _play(engine: Engine, asked: Sequence[Single], waiting: Sequence[_Checked], results: list[Any]) -> None:
    """Play checked rounds, as many at once as the open episode has room for."""
    at = 0
    while at < len(waiting):
        if len(waiting) - at == 1:
            results[waiting[at].place] = alone(engine, asked[waiting[at].place])
            return
        engine.require_alive()
        episode = engine._ready()
        part = waiting[at : at + episode.length - episode.filled]
        _play_in_one_episode(engine, part, results)
        at += len(part)


def _play_in_one_episode(engine: Engine, part: Sequence[_Checked], results: list[Any]) -> None:
    episode, count, arms = engine.episode, len(part), part[0].arms
    stacked = np.concatenate([one.rows for one in part])
    digests = [one.digest for one in part if one.digest is not None] or None
    learned = engine._within_limit(digests)
    words, explored = engine._words(count)
    rows, share = engine.rows_for(stacked), episode.exploration
    try:
        chosen, tied = rows.play(
            Rounds(engine.chooser, stacked, arms, words, learned, explored), episode.filled
        )
    except OSError:
        engine._draw_again(count)
        raise
    first, valid = engine._next_id(), chosen >= 0
    used = valid if learned is None else valid & (learned != 0)
    shown = np.where(valid, chosen, -1 - chosen).tolist()
    chances = {same: probability(same, arms, share) for same in set(tied.tolist())}
    decisions = [
        Decision(first + i, arm, fine, episode.index, chances[same])
        for i, (arm, fine, same) in enumerate(zip(shown, valid.tolist(), tied.tolist(), strict=True))
    ]
    keys = {one.name: decision for one, decision in zip(part, decisions, strict=True) if one.name}
    played = PlayedRounds(first, used.tolist(), digests, engine.user_kind, None, keys)
    engine._append(played, np.where(used, AWAITED, NOT_LEARNED))
    for one, decision in zip(part, decisions, strict=True):
        results[one.place] = decision
