"""Bring a policy back from its store: what the ledger holds, then what the open episode's journal adds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from fliphat.fit.known import KnownEstimate, SparseEstimate
from fliphat.policies import ledger
from fliphat.policies.base import Decision
from fliphat.policies.episode import AWAITED, UNUSED
from fliphat.policies.errors import StoreError
from fliphat.policies.facts import EpisodeFacts
from fliphat.policies.journal import Frame
from fliphat.policies.ledger import CLAIMED, COMMITTED, OPEN
from fliphat.policies.records import HAS_USER, KEPT, keys_of, user_kind_of, users_of
from fliphat.policies.store import Store

if TYPE_CHECKING:
    from fliphat.policies.engine import Engine

__all__ = ["restore"]


def restore(engine: Engine, store: Store) -> None:
    """Fill a new engine with everything acknowledged, and make the store its own."""
    with store.ledger().transaction() as connection:
        meta = ledger.meta(connection)
        engine.secret = bytes.fromhex(meta["secret"])
        engine.with_users = json.loads(meta["with_users"])
        engine.user_kind = json.loads(meta.get("user_kind", "null"))
        engine.late = int(meta["late"])
        engine.incarnation = int(meta["incarnation"]) + (not store.created)
        ledger.put(connection, "incarnation", engine.incarnation)
        engine.users = dict(connection.execute("SELECT digest, rounds FROM users"))
        engine.keys = {
            name: Decision(identity, arm, bool(valid), episode)
            for name, identity, arm, valid, episode in connection.execute("SELECT * FROM keys")
        }
        episodes = connection.execute("SELECT * FROM episodes ORDER BY episode").fetchall()
    if engine.settings.seed is not None:
        engine.rng = np.random.default_rng([engine.settings.seed, engine.incarnation])
    _restore_estimates(engine, episodes)
    lengths = [facts.rounds for facts in engine.history]
    engine.episode = engine.new_episode(1 + sum(lengths))
    lengths.append(engine.episode.length)
    for index, state, generation, *_ in episodes:
        store.turn_to(index, generation, lengths[index])
        if state == COMMITTED:  # its estimate was durable but perhaps not seen: never fitted again
            store.finish(index, lengths[index + 1])
    index, state, generation = episodes[-1][:3]
    assert state in (OPEN, CLAIMED)
    store.turn_to(index, generation, engine.episode.length)
    store.remove_strays()
    journal, rows = store.reopen_rows()
    if journal is not None and rows is not None:
        for frame in journal.recover():
            _replay(engine, frame, rows.lengths)
        if state == CLAIMED and not engine.episode.full:
            raise StoreError(
                f"the store's episode {index} has {engine.episode.filled} rounds on disk instead of the "
                f"{engine.episode.length} that were played: put its files back as they were"
            )
        if engine.episode.filled:
            engine.episode.rows = rows
        else:  # begun, but no round was acknowledged: the first one decides the layout again
            store.discard_rows()
    elif state == CLAIMED:
        raise StoreError(f"the files of the store's full episode {index} are missing: put them back")
    engine.episode.claimed = state == CLAIMED
    engine.store = store


def _restore_estimates(engine: Engine, episodes: list[Any]) -> None:
    dim = engine.settings.dim
    for _, _, _, facts, indices, numbers in episodes:
        if facts is not None:
            estimate = SparseEstimate(np.frombuffer(indices, np.int64), np.frombuffer(numbers), dim)
            engine.history.append(EpisodeFacts.from_dict(json.loads(facts), estimate))
            engine.show(KnownEstimate(estimate, len(engine.history)))


def _replay(engine: Engine, frame: Frame, lengths: Any) -> None:
    episode = engine.episode
    engine.late += frame.late
    if frame.rewards is not None:
        episode.codes[frame.rewards["row"].astype(np.int64)] = frame.rewards["code"]
    if frame.rounds is None:
        return
    at, count = episode.filled, len(frame.rounds)
    unused = (frame.rounds["arm"] < 0) | ((frame.rounds["flags"] & KEPT) == 0)
    if len(lengths):
        lengths[at : at + count] = frame.rounds["length"]
    episode.append(count, int(frame.rounds["id"][0]), np.where(unused, UNUSED, AWAITED))
    engine.with_users = bool(frame.rounds["flags"][0] & HAS_USER)
    engine.user_kind = user_kind_of(frame.rounds) or engine.user_kind
    for user in users_of(frame.rounds):
        engine.users[user] = engine.users.get(user, 0) + 1
    engine.keys.update(keys_of(frame.rounds, episode.index))
