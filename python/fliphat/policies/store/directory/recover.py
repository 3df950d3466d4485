"""Bring a policy back from its directory: what the ledger holds, and what the journal adds to it."""

from __future__ import annotations

import json
import math
import os
from typing import Any

import numpy as np

from fliphat.policies.engine import state
from fliphat.policies.engine.engine import Engine
from fliphat.policies.engine.episode import NOT_LEARNED, NOT_LEARNED_CAME
from fliphat.policies.store.directory import ledger
from fliphat.policies.store.directory.journal import Frame
from fliphat.policies.store.directory.ledger import CLAIMED, COMMITTED, OPEN
from fliphat.policies.store.directory.records import HAS_USER, codes_of, keys_of, user_kind_of, users_of
from fliphat.policies.store.directory.rows import FileRows
from fliphat.policies.store.directory.store import DirectoryStore
from fliphat.policies.types import Decision, StoreError

__all__ = ["fill_from", "open_store"]


def open_store(path: str | os.PathLike[str], durability: str, engine: Engine) -> None:
    """Open or begin the directory of a new engine, and fill the engine with everything acknowledged."""
    store = DirectoryStore(path, engine.settings, durability, engine.secret)
    try:
        episodes = _read_ledger(engine, store)
        _recover_episode(engine, store, episodes)
    except BaseException:
        store.close()  # whoever caught the error may put things right and open it again
        raise
    engine.store = store


def _read_ledger(engine: Engine, store: DirectoryStore) -> list[Any]:
    """Fill the engine from the ledger, and return the states of episodes."""
    with store.ledger().transaction() as connection:
        meta = ledger.meta(connection)
        episodes = connection.execute("SELECT * FROM episodes ORDER BY episode").fetchall()
        engine.secret = bytes.fromhex(meta["secret"])
        fill_from(engine, meta, episodes)
        engine.incarnation += not store.created
        ledger.put(connection, "incarnation", engine.incarnation)
        engine.users = dict(connection.execute("SELECT digest, rounds FROM users"))
        engine.keys = {
            name: Decision(identity, arm, bool(valid), episode, math.nan if chance is None else chance)
            for name, identity, arm, valid, episode, chance in connection.execute("SELECT * FROM keys")
        }
    if engine.settings.seed is not None:
        engine.rng = np.random.default_rng([engine.settings.seed, engine.incarnation])
    return episodes


def fill_from(engine: Engine, meta: dict[str, str], episodes: list[Any]) -> None:
    """Give an engine its numbers and everything released, as a ledger's two small tables hold them."""
    numbers = {name: meta[name] for name in state.scalars(engine) if name in meta}
    state.set_scalars(engine, {name: json.loads(text) for name, text in numbers.items()})
    releases = [
        (json.loads(facts), np.frombuffer(indices, np.int64), np.frombuffer(numbers))
        for _, _, _, facts, indices, numbers in episodes
        if facts is not None
    ]
    state.set_releases(engine, releases, json.loads(meta["known"]) if "known" in meta else None)


def _recover_episode(engine: Engine, store: DirectoryStore, episodes: list[Any]) -> None:
    """Finish releases that were cut off, and play the open episode's journal again."""
    lengths = [facts.rounds for facts in engine.history]
    episode = engine.episode = engine.new_episode(1 + sum(lengths))
    lengths.append(episode.length)
    for index, step, generation, *_ in episodes:
        store.turn_to(index, generation, lengths[index])
        if step == COMMITTED:  # its estimate was durable but perhaps not seen: never fitted again
            store.finish(index, lengths[index + 1])
    index, step, generation = episodes[-1][:3]
    assert step in (OPEN, CLAIMED)
    store.turn_to(index, generation, episode.length)
    store.remove_strays()
    journal, rows = store.reopen_rows()
    if journal is not None and rows is not None:
        episode.rows = rows
        for frame in journal.recover():
            _play_again(engine, rows, frame)
        if not episode.filled:  # begun, but no round was acknowledged: the first one decides the layout again
            episode.rows = None
            store.discard_rows()
    if step == CLAIMED and not episode.full:
        raise StoreError(
            f"the store's episode {index} has {episode.filled} rounds on disk instead of the "
            f"{episode.length} that were played: put its files back as they were"
        )
    episode.claimed = step == CLAIMED


def _play_again(engine: Engine, rows: FileRows, frame: Frame) -> None:
    """Do to the engine what the call did that wrote a frame."""
    episode, rounds = engine.episode, frame.rounds
    engine.late += frame.late
    if frame.rewards is not None:
        at, codes = frame.rewards["row"].astype(np.int64), frame.rewards["code"]
        cancelled = at[(codes == NOT_LEARNED_CAME) & (episode.codes[at] != NOT_LEARNED)]
        if len(cancelled):
            rows.empty(cancelled)
        episode.codes[at] = codes
    if frame.times is not None:
        episode.notes += [(int(row), float(seconds)) for row, seconds in frame.times.tolist()]
    if rounds is None:
        return
    rows.stage_again(rounds["length"])
    users = list(users_of(rounds))
    episode.append(len(rounds), int(rounds["id"][0]), codes_of(rounds), users or None)
    engine.with_users = bool(rounds["flags"][0] & HAS_USER)
    engine.user_kind = user_kind_of(rounds) or engine.user_kind
    for user in users:
        engine.users[user] = engine.users.get(user, 0) + 1
    engine.keys.update(keys_of(rounds, episode.index, episode.exploration))
