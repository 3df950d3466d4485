"""Which engine plays a policy: one in memory, the owner of a directory, or one worker of a database."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from fliphat.fit.known import Fit
from fliphat.policies.engine import snapshot
from fliphat.policies.engine.age import Ages
from fliphat.policies.engine.engine import Engine
from fliphat.policies.engine.episode import AWAITED, NOT_LEARNED, NOT_LEARNED_CAME
from fliphat.policies.engine.keeping import EpisodeRow
from fliphat.policies.engine.lifecycle import Phase, may
from fliphat.policies.engine.rows import ChosenRows, SparseChosen
from fliphat.policies.engine.rule import ArmRule
from fliphat.policies.engine.state import set_releases
from fliphat.policies.engine.turn import recalled, turn
from fliphat.policies.engine.witness import Record, Witness, left_to, name_of, not_newest
from fliphat.policies.store.kept import KeptChoices, kept_from
from fliphat.policies.store.options import Store
from fliphat.policies.store.sql import policy_in
from fliphat.policies.store.sqlite import SqliteStore, reading
from fliphat.policies.store.witness import make_witness
from fliphat.policies.types import StoreError

__all__ = ["kept_choices", "opened_engine", "recorded_settings"]

#: Rounds that are read at once.
_CHUNK: Final = 4096


def kept_choices(store: Store) -> KeptChoices | None:
    """Return what a store was made with and goes on with; None if it is new or can't be read.

    Only looks: whoever opens the store checks it, and says what is wrong with it.
    """
    if store.where is None:
        return None
    try:
        return kept_from(recorded_settings(store))
    except (StoreError, ValueError, LookupError, TypeError):
        return None


def recorded_settings(store: Store) -> dict[str, Any]:
    """Return the record of the settings that a store was made with; only looks."""
    assert store.where is not None
    if store.is_database:
        from fliphat.policies.store.postgres.store import recorded

        record = recorded(str(store.where))
        if record is None:
            raise StoreError("there is no policy in this database")
        return record
    with reading(Path(store.where)) as tx:
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
    witness = None if store.witness is None else make_witness(store.witness, _where(store))
    try:
        if store.is_database:
            from fliphat.policies.store.postgres.worker import SharedEngine

            return SharedEngine(fit, store, policy, rule, witness)
        engine = Engine(fit, rule=rule, memory_limit=store.bytes_in_memory, ages=store.ages)
        if store.users == "required":
            engine.with_users = True
        if store.where is not None:
            _open_directory(engine, store, policy, witness)
    except BaseException:
        if witness is not None:
            witness.close()
        raise
    return engine


def _where(store: Store) -> str | os.PathLike[str]:
    assert store.where is not None
    return store.where


def _open_directory(engine: Engine, store: Store, policy: str, witness: Witness | None) -> None:
    """Open or begin a directory, and fill the engine with everything that was acknowledged."""
    kept = SqliteStore(
        *(_where(store), engine.settings, store.durability, policy, store.to_record()),
        *(engine.secret, engine.episode.length, engine.arms),
    )
    try:
        row = kept.kept
        engine.secret, engine.incarnation = kept.secret, kept.opening
        engine.users, engine.keys = kept.users, kept.keys
        engine.ages = Ages.from_record(row["options"])
        engine.witnessed, engine.late = row["witnessed"], row["late"]
        engine.with_users, engine.user_kind = row["with_users"], row["user_kind"]
        engine.arm_ids, engine.column_names = (_read(row[name]) for name in ("arm_ids", "column_names"))
        engine.switched_off = _read(row["switched_off"])
        if engine.incarnation:
            engine.arms = _read(row["arms"])
            if engine.settings.seed is not None:
                engine.rng = np.random.default_rng([engine.settings.seed, engine.incarnation])
        seen = kept.look()
        set_releases(engine, [recalled(engine.fit, one) for one in seen.releases])
        engine.store, engine.totals = kept, kept.totals_of(len(seen.releases) - 1)
        if row["handed_over"] is not None:
            _finish_handing_over(engine, kept, row, witness, seen.unseen[0])
        for episode in seen.to_close:  # shown by a process that ended before its rows were dropped
            kept.step(episode, "close")
        _fill_episode(engine, kept, seen.unseen[0])
        engine.set_witness(witness)
        engine.require_alive()
        if may("see", engine.episode.life) or engine.episode.life.bits is not None:
            turn(engine)  # committed by a process that ended: never fitted again
        engine.expire()
    except BaseException:
        kept.close()  # whoever caught the error may put things right and open it again
        raise


def _read(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        raise StoreError("the policy's row is damaged: restore the store") from None


def _fill_episode(engine: Engine, kept: SqliteStore, row: EpisodeRow) -> None:
    """Play the open episode's rounds again."""
    episode = engine.episode = engine.new_episode(row.first_round)
    if row.room != episode.length or row.episode != episode.index:
        raise StoreError(
            f"episode {row.episode} has {row.room} rounds in the store, and {episode.length} by this "
            f"version's plan"
        )

    def play_again(rounds: Iterator[Any]) -> None:
        part: list[Any] = []
        for one in rounds:
            part.append(one)
            if len(part) == _CHUNK:
                _append(engine, part)
                part = []
        if part:
            _append(engine, part)

    committed = row.phase in (Phase.COMMITTED, Phase.WITNESSED)
    if not committed and row.phase not in (Phase.HANDED_OVER, Phase.REFUSED):
        kept.rounds(row, play_again)
        if episode.filled != row.filled:
            raise StoreError(
                f"the store's episode {row.episode} has {episode.filled} rounds on disk instead of the "
                f"{row.filled} that were played: put the store back as it was"
            )
    episode.expired = row.expired
    episode.life = row.life
    if committed:
        episode.filled = episode.length
        episode.life = row.life._replace(bits=engine.committed(row.episode))


def _append(engine: Engine, part: list[Any]) -> None:
    """Append rounds as a store has them, with consecutive ids or not."""
    episode = engine.episode
    if episode.rows is None:
        episode.rows = engine.new_rows("csr" if part[0][3] else "dense")
    begin = 0
    for end in range(1, len(part) + 1):
        if end < len(part) and part[end][1] == part[end - 1][1] + 1:
            continue
        run, begin = part[begin:end], end
        episode.rows.put(episode.filled, _unpacked(run, engine))
        codes = np.array([_code(bool(one[2]), one[9]) for one in run])
        owners = [bytes(one[6]) for one in run] if run[0][6] is not None else None
        for offset, one in enumerate(run):
            if one[5] is not None and engine.ages.now() is not None:
                episode.note(engine.ages, one[5], offset)
        episode.append(len(run), run[0][1], codes, owners)


def _code(learned: bool, reward: float | None) -> float:
    if learned:
        return AWAITED if reward is None else reward
    return NOT_LEARNED if reward is None else NOT_LEARNED_CAME


def _unpacked(run: list[Any], engine: Engine) -> ChosenRows:
    """Return rows as they were staged; one without contents is zeros."""
    dtype, width = np.dtype(engine.settings.dtype), engine.settings.row_width
    if run[0][3]:
        columns = [np.frombuffer(one[7] or b"", "<i4") for one in run]
        values = [np.frombuffer(one[8] or b"", dtype) for one in run]
        lengths = np.array([len(one) for one in columns], np.uint32)
        return SparseChosen(lengths, np.concatenate(columns), np.concatenate(values))
    nothing = bytes(width * dtype.itemsize)
    return np.frombuffer(b"".join(one[8] or nothing for one in run), dtype).reshape(len(run), width)


def _finish_handing_over(
    engine: Engine, kept: SqliteStore, row: dict[str, Any], witness: Witness | None, open_row: EpisodeRow
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
            kept.step(open_row.episode, "refuse")
            raise not_newest()
    if not path.exists():  # only the very file that the record names is sealed
        snapshot.seal(path, checksum)
    kept.discard_rows()
    raise StoreError(f"the store was handed over to the file {str(path)!r}: load that")
