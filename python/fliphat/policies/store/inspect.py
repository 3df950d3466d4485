"""Look at a store, a database or a saved file without its arguments and without changing it, also in use.

What :func:`inspect_path` returns is public unless it is asked for private numbers: arguments, episodes,
releases that were witnessed and shown, health and the guarantee. :func:`verify_path` reads everything and
says what damage would cost.
"""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.fit import read_settings
from fliphat.fit.dense import class_of
from fliphat.fit.options import PerEpisode
from fliphat.policies.engine import snapshot, state
from fliphat.policies.engine.engine import Engine
from fliphat.policies.engine.lifecycle import MAY, Phase
from fliphat.policies.engine.turn import recalled
from fliphat.policies.fliphat import FLIPHAT
from fliphat.policies.health import examine
from fliphat.policies.linear import PrivateLinear
from fliphat.policies.scoreboard import scoreboard
from fliphat.policies.store import checking
from fliphat.policies.store.opening import reading
from fliphat.policies.store.options import Store
from fliphat.policies.store.postgres import is_url
from fliphat.policies.store.sql import Transaction, policy_in, seen_in
from fliphat.policies.store.tables import FORMAT
from fliphat.policies.types import SnapshotError, SparseEstimate, StoreError

__all__ = ["Verdict", "inspect_path", "verify_path"]


@dataclass(frozen=True)
class Verdict:
    """What a check of a store or a saved file found.

    Attributes
    ----------
    checked : tuple of str
        What was read and is whole.
    damage : tuple of str
        What is not, what it would cost, and what to do; empty if all is whole.

    Examples
    --------
    >>> Verdict(("the policy's row",), ()).ok
    True
    """

    checked: tuple[str, ...]
    damage: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damage


def inspect_path(path: str | os.PathLike[str], *, private: bool = False) -> dict[str, Any]:
    """Return what a store or a saved file says about its policy, as values for JSON.

    Parameters
    ----------
    path : path or URL
        The directory of a store, a database, or a file that `save` wrote.
    private : bool
        Whether to add an operator's numbers: rewards, late rounds, users, keys.

    Returns
    -------
    dict

    Raises
    ------
    StoreError, SnapshotError
        If it is none, or can't be read.

    Examples
    --------
    >>> import tempfile
    >>> from fliphat import FLIPHAT
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     policy = FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=1e-2, store=directory)
    ...     found = inspect_path(directory)
    ...     policy.close()
    >>> found["episode"], found["rounds"], found["settings"]["dim"]
    (0, 0, 20)
    """
    if not is_url(path) and not Path(path).is_dir():
        return _inspect_file(Path(path), private)
    with reading(path) as tx:
        return _inspect_store(tx, path, private)


def verify_path(path: str | os.PathLike[str]) -> Verdict:
    """Read a whole store or saved file and compare checksums and counts; changes nothing.

    Examples
    --------
    >>> import tempfile
    >>> from fliphat import FLIPHAT
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=1e-2, store=directory).close()
    ...     verify_path(directory).ok
    True
    """
    if not is_url(path) and not Path(path).is_dir():
        return _verify_file(Path(path))
    try:
        with reading(path) as tx:
            checked, damage = checking.check(tx, embedded=not is_url(path))
    except StoreError as error:
        return Verdict((), (str(error),))
    return Verdict(() if damage else tuple(checked), tuple(damage))


# Stores


def _inspect_store(tx: Transaction, path: str | os.PathLike[str], private: bool) -> dict[str, Any]:
    policy, seen = policy_in(tx), seen_in(tx)
    settings, engine, reason = _engine(json.loads(policy["settings"]))
    row, due = seen.unseen[-1], seen.unseen[0]
    if not is_url(path):
        row = due  # nobody plays ahead in a directory
    facts: dict[str, Any] = {
        "kind": "database" if is_url(path) else "store",
        "format": {"store": policy["format"], "current": policy["format"] == FORMAT},
        "in_use": _in_use(tx, path),
        "handed_over": policy["handed_over"],
        "policy": policy["policy"],
        "witnessed": policy["witnessed"],
        "options": json.loads(policy["options"]),
        "settings": settings,
        "episode": row.episode,
        "state": str(row.phase) if row is due else f"open, and episode {due.episode} is {due.phase}",
        "rounds": row.first_round - 1 + row.filled,
    }
    if engine is not None:
        engine.arms = json.loads(policy["arms"])
        state.set_releases(engine, [recalled(engine.fit, one) for one in seen.releases])
        engine.with_users = policy["with_users"]
        engine.episode = engine.new_episode(row.first_round)
    facts |= _public(engine, reason, row.filled)
    if engine is not None:
        left = row.room - row.filled
        ahead = row.phase is Phase.AHEAD
        facts["remaining"] = left or (1 if ahead else engine.fit.least_rows(row.episode + 1))
    if private:
        facts["private"] = _private_numbers(tx, policy)
    return facts


def _private_numbers(tx: Transaction, policy: dict[str, Any]) -> dict[str, Any]:
    # Rows of an episode that is shown may not be gone yet, and are not counted.
    phases = ", ".join(f"'{phase}'" for phase in sorted(MAY["empty"]))
    ((first,),) = tx.all(f"SELECT min(first_round) FROM fliphat_episodes WHERE phase IN ({phases})")
    counts = tx.all(
        "SELECT (SELECT count(*) FROM fliphat_rewards WHERE round >= ?),"
        " (SELECT count(*) FROM fliphat_rounds WHERE round >= ? AND NOT learned),"
        " (SELECT count(*) FROM fliphat_users), (SELECT count(*) FROM fliphat_keys)",
        *(first or 0, first or 0),
    )[0]
    names = ("rewards", "rounds_not_learned_from", "users", "keys")
    return {"late": policy["late"], **dict(zip(names, counts, strict=True))}


def _in_use(tx: Transaction, path: str | os.PathLike[str]) -> bool | None:
    """Whether a policy holds the store; None where the system does not tell without taking the lock."""
    if is_url(path):
        ((sessions, _),) = tx.all(
            "SELECT count(*), 0 FROM pg_stat_activity WHERE application_name = 'fliphat'"
            " AND datname = current_database() AND pid <> pg_backend_pid()"
        )
        return bool(sessions)
    try:
        told = (Path(path) / "lock").stat()
        listed = Path("/proc/locks").read_text()
    except OSError:
        return None
    file = f"{os.major(told.st_dev):02x}:{os.minor(told.st_dev):02x}:{told.st_ino}"
    return any(f" {file} " in line and "FLOCK" in line for line in listed.splitlines())


# Saved files


def _inspect_file(path: Path, private: bool) -> dict[str, Any]:
    version, record, arrays = _saved(path)
    settings, engine, reason = _engine(record["settings"])
    episode = record["episode"]
    facts: dict[str, Any] = {
        "kind": "saved file",
        "format": {"file": version, "current": version == snapshot.VERSION},
        "policy": class_of(settings),
        "options": record["ages"],
        "settings": settings,
        "episode": episode["index"],
        "state": "open",
        "rounds": episode["first_round"] - 1 + episode["filled"],
    }
    if engine is not None:
        without_rows = record | {"episode": episode | {"layout": None}}
        state.fill(engine, without_rows, arrays)
    facts |= _public(engine, reason, episode["filled"])
    if private:
        codes = arrays["codes"]
        facts["private"] = {
            "late": record["late"],
            "rewards": int((np.isfinite(codes) | (codes == np.inf)).sum()),
            "rounds_not_learned_from": int(np.isinf(codes).sum()),
            "users": len(arrays["users"]),
            "keys": len(arrays["keys"]),
        }
    return facts


def _verify_file(path: Path) -> Verdict:
    try:
        version, record, arrays = _saved(path)
    except SnapshotError as error:
        return Verdict(
            (),
            (f"{error}. Without it the policy can't go on: its open episode's rounds and the rest of its "
             f"budget are lost; what was released stays as private as it was",),
        )  # fmt: skip
    filled = record["episode"]["filled"]
    if len(arrays["codes"]) != filled:
        return Verdict((), (f"the file has {len(arrays['codes'])} rounds instead of {filled}",))
    return Verdict((f"saved file: format {version}, its checksum, {filled} rounds of the open episode",), ())


def _saved(path: Path) -> tuple[int, dict[str, Any], dict[str, npt.NDArray[Any]]]:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise SnapshotError(f"{str(path)!r} is neither the directory of a store nor a saved policy")
        return snapshot.look(path)
    except FileNotFoundError:
        raise SnapshotError(f"{str(path)!r} does not exist") from None


# All of them


def _engine(record: dict[str, Any]) -> tuple[dict[str, Any], Engine | None, str | None]:
    """Return the settings, and an engine without rows made of them, or why there can be none."""
    functions: dict[str, PerEpisode | None] = dict.fromkeys(("iterations", "step_size", "exploration"))
    try:
        settings = read_settings(record, functions)
    except ValueError as error:
        return record, None, str(error)
    kind = PrivateLinear if class_of(record) == "PrivateLinear" else FLIPHAT
    return settings.to_dict(), kind._engine_for(settings, Store()), None


def _arms_of(engine: Engine) -> list[str | int] | None:
    """Return ids of the arms that are played now, bytes as text; None where rounds bring their arms."""
    table = getattr(engine.rule, "table", None)
    return None if table is None else [one if isinstance(one, int) else str(one) for one in table.playable]


def _public(engine: Engine | None, reason: str | None, filled: int) -> dict[str, Any]:
    """Return what everybody may see; without an engine, why it is not known."""
    if engine is None:
        unknown = (
            "remaining",
            "arms",
            "history",
            "estimate",
            "scoreboard",
            "health",
            "health_text",
            "guarantee",
        )
        return dict.fromkeys(unknown) | {"not_known_because": reason}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its reasons are in the record
        claim = engine.fit.guarantee()
    claim = dataclasses.replace(claim, user_ids_checked=bool(engine.with_users))
    length = engine.episode.length
    table = getattr(engine.rule, "table", None)
    remaining = length - filled or engine.fit.least_rows(engine.episode.index + 1)
    health = examine(engine.settings, engine.history, engine.known, table, remaining=remaining)
    board = scoreboard(engine.settings, engine.history, engine.known, table)
    return {
        "remaining": remaining,
        "arms": _arms_of(engine),
        "history": [facts.to_dict() | _plain(facts.estimate) for facts in engine.history],
        "estimate": _plain(engine.estimate),
        "scoreboard": board.to_dict() | {"text": str(board)},
        "health": list(health.findings),
        "health_text": str(health),
        "guarantee": claim.to_dict() | {"text": str(claim)},
    }


def _plain(estimate: SparseEstimate) -> dict[str, Any]:
    return {"indices": estimate.indices.tolist(), "values": estimate.values.tolist()}
