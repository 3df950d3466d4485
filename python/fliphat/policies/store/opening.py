"""Which engine plays a policy: one in memory, the owner of a directory, or one worker of a database."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fliphat.fit.dense import DenseTuning
from fliphat.fit.known import Fit
from fliphat.fit.pursuit.constants import Tuning
from fliphat.fit.settings import read_constants
from fliphat.policies.engine import snapshot
from fliphat.policies.engine.age import Ages
from fliphat.policies.engine.engine import Engine
from fliphat.policies.engine.keeping import EpisodeRow
from fliphat.policies.engine.lifecycle import Phase, may
from fliphat.policies.engine.rule import ArmRule
from fliphat.policies.engine.state import set_releases
from fliphat.policies.engine.turn import recalled, turn
from fliphat.policies.engine.witness import Record, Witness, left_to, name_of, not_newest
from fliphat.policies.store import sqlite
from fliphat.policies.store.options import Store
from fliphat.policies.store.postgres import is_url
from fliphat.policies.store.sql import Transaction, policy_in
from fliphat.policies.store.sqlite import SqliteStore
from fliphat.policies.store.witness import make_witness
from fliphat.policies.types import StoreError

__all__ = ["KeptChoices", "kept_choices", "opened_engine", "reading", "recorded_settings"]


class KeptChoices(NamedTuple):
    """What a store goes on with, whatever a new policy would get: its fit, its accounting, its constants."""

    fit: str
    accounting: str
    constants: Any


def kept_choices(store: Store) -> KeptChoices | None:
    """Return what a store was made with and goes on with; None if it is new or can't be read.

    Only looks: whoever opens the store checks it, and says what is wrong with it.
    """
    if store.where is None:
        return None
    try:
        record = recorded_settings(store)
        fit, accounting = record["fit"], record["accounting"]
        constants = read_constants(record["constants"], DenseTuning if fit == "dense" else Tuning)
    except (StoreError, ValueError, LookupError, TypeError):
        return None
    return KeptChoices(fit, accounting, constants) if isinstance(fit, str) else None


@contextlib.contextmanager
def reading(where: str | os.PathLike[str]) -> Iterator[Transaction]:
    """Give one moment of the policy in a directory or a database, and change nothing, also while it plays."""
    if is_url(where):
        from fliphat.policies.store.postgres.store import reading as reading_database

        with reading_database(str(where)) as tx:
            yield tx
    else:
        with sqlite.reading(Path(where)) as tx:
            yield tx


def recorded_settings(store: Store) -> dict[str, Any]:
    """Return the record of the settings that a store was made with; only looks."""
    with reading(_where(store)) as tx:
        found: dict[str, Any] = json.loads(policy_in(tx)["settings"])
        return found


def opened_engine(fit: Fit[Any, Any], store: Store, *, policy: str, rule: ArmRule | None = None) -> Engine:
    """Return an engine that knows everything its store holds.

    Parameters
    ----------
    fit : Fit
    store : Store
    policy : str
        The class that plays, which a store remembers.
    rule : ArmRule, optional
        How contexts become arms; by default each round brings a row for each arm.
    """
    witness, engine = None, None
    try:
        witness = None if store.witness is None else make_witness(store.witness, _where(store))
        if store.is_database:
            from fliphat.policies.store.postgres.worker import SharedEngine

            return SharedEngine(fit, store, policy, rule, witness)
        engine = Engine(fit, rule=rule, memory_limit=store.bytes_in_memory, ages=store.ages)
        if store.users == "required":
            engine.with_users = True
        if store.where is not None:
            _open_directory(engine, store, policy, witness)
        return engine
    except BaseException:
        # Whoever caught the error may put things right and open it again.
        for left in (witness, engine):
            if left is not None:
                left.close()
        raise


def _where(store: Store) -> str | os.PathLike[str]:
    assert store.where is not None
    return store.where


def _open_directory(engine: Engine, store: Store, policy: str, witness: Witness | None) -> None:
    """Open or begin a directory, and fill the engine with everything that was acknowledged."""
    engine.store = database = SqliteStore(
        *(_where(store), engine.settings, store.durability, policy, store.to_record()),
        *(engine.secret, engine.episode.length, engine.arms),
    )
    row = database.kept
    engine.secret, engine.incarnation = database.secret, database.opening
    engine.users, engine.keys = database.users, database.keys
    engine.ages = Ages.from_record(row["options"])
    engine.witnessed, engine.late = row["witnessed"], row["late"]
    engine.with_users, engine.user_kind = row["with_users"], row["user_kind"]
    engine.arm_ids, engine.column_names = (_read(row[name]) for name in ("arm_ids", "column_names"))
    engine.switched_off = _read(row["switched_off"])
    if engine.incarnation:
        engine.arms = _read(row["arms"])
        if engine.settings.seed is not None:
            engine.rng = np.random.default_rng([engine.settings.seed, engine.incarnation])
    seen = database.look()
    set_releases(engine, [recalled(engine.fit, one) for one in seen.releases])
    engine.totals = database.totals_of(len(seen.releases) - 1)
    if row["handed_over"] is not None:
        _finish_handing_over(engine, database, row, witness, seen.unseen[0])
    for episode in seen.to_close:  # shown by a process that ended before its rows were dropped
        database.step(episode, "close")
    _fill_episode(engine, database, seen.unseen[0])
    engine.set_witness(witness)
    engine.require_alive()
    if may("see", engine.episode.life) or engine.episode.life.bits is not None:
        turn(engine)  # committed by a process that ended: never fitted again
    engine.expire()


def _read(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        raise StoreError("the policy's row is damaged: restore the store") from None


def _fill_episode(engine: Engine, database: SqliteStore, row: EpisodeRow) -> None:
    """Play the open episode's rounds again."""
    episode = engine.episode = engine.new_episode(row.first_round)
    if row.room != episode.length or row.episode != episode.index:
        raise StoreError(
            f"episode {row.episode} has {row.room} rounds in the store, and {episode.length} by this "
            f"version's plan"
        )

    committed = row.phase in (Phase.COMMITTED, Phase.WITNESSED)
    if not committed and row.phase not in (Phase.HANDED_OVER, Phase.REFUSED):
        database.fill(episode, row, engine.new_rows, engine.ages)
    episode.expired = row.expired
    episode.life = row.life
    if committed:
        episode.filled = episode.length
        episode.life = row.life._replace(bits=engine.committed(row.episode))


def _finish_handing_over(
    engine: Engine, database: SqliteStore, row: dict[str, Any], witness: Witness | None, open_row: EpisodeRow
) -> None:
    """Complete a hand-over that a crash or an interrupt cut off, and say where the policy is."""
    path, checksum = Path(row["handed_over"]), row["handed_over_checksum"]
    if open_row.phase is Phase.REFUSED:
        raise not_newest()
    if row["witnessed"]:
        if witness is None:
            raise StoreError("the store was played with a witness: give it as witness=")
        now = Record(len(engine.history), engine.mark)
        if not left_to(witness, name_of(engine.secret), now, checksum):
            database.step(open_row.episode, "refuse")
            raise not_newest()
    if not path.exists():  # only the very file that the record names is sealed
        snapshot.seal(path, checksum)
    database.discard_rows()
    raise StoreError(f"the store was handed over to the file {str(path)!r}: load that")
