"""Look at a store, a database or a saved file without its arguments and without changing it, also in use.

What :func:`inspect_path` returns is public unless it is asked for private numbers: arguments, episodes,
released estimates, health and the guarantee. :func:`verify_path` reads every byte and says what damage would
cost.
"""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from fliphat.fit import make_fit, read_settings
from fliphat.fit.dense import DenseSettings
from fliphat.fit.options import PerEpisode
from fliphat.fit.settings import EngineSettings, complete
from fliphat.policies.engine import snapshot, state
from fliphat.policies.engine.engine import Engine
from fliphat.policies.health import examine
from fliphat.policies.linear import PrivateLinear
from fliphat.policies.store.directory import ledger
from fliphat.policies.store.directory.journal import Frame, Journal
from fliphat.policies.store.directory.ledger import CLAIMED
from fliphat.policies.store.directory.records import HAS_USER, codes_of
from fliphat.policies.store.directory.recover import fill_from
from fliphat.policies.store.postgres import is_url
from fliphat.policies.types import SnapshotError, SparseEstimate, StoreError

__all__ = ["Verdict", "inspect_path", "verify_path"]

#: Newest format of an episode's events; the ledger's and the saved file's are where those are written.
EVENTS_VERSION: Final = 2

_Answer = TypeVar("_Answer")


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
    >>> Verdict(("the ledger",), ()).ok
    True
    """

    checked: tuple[str, ...]
    damage: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damage


@dataclass(frozen=True)
class _Found:
    """A directory as it was at one moment: the ledger's small tables, and the open episode's frames."""

    meta: dict[str, str]
    episodes: list[Any]
    users: int
    keys: int
    frames: list[Frame]
    events_version: int | None


def inspect_path(path: str | os.PathLike[str], *, private: bool = False) -> dict[str, Any]:
    """Return what a store or a saved file says about its policy, as values for JSON.

    Parameters
    ----------
    path : path or URL
        The directory of a store, a database, or a file that `save` wrote.
    private : bool
        Whether to add an operator's numbers: rewards, late and invalid rounds, users, keys.

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
    if is_url(path):
        return _inspect_database(str(path), private)
    place = Path(path)
    return _inspect_directory(place, private) if place.is_dir() else _inspect_file(place, private)


def verify_path(path: str | os.PathLike[str]) -> Verdict:
    """Read a whole store or saved file and compare sums, frames and counts; changes nothing.

    Examples
    --------
    >>> import tempfile
    >>> from fliphat import FLIPHAT
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=1e-2, store=directory).close()
    ...     verify_path(directory).ok
    True
    """
    if is_url(path):
        return _verify_database(str(path))
    place = Path(path)
    return _verify_directory(place) if place.is_dir() else _verify_file(place)


# Directories


def _inspect_directory(path: Path, private: bool) -> dict[str, Any]:
    found = _settled(lambda: _look(path, check=False))
    settings, engine, reason = _engine(json.loads(found.meta["settings"]))
    index, step = found.episodes[-1][:2]
    filled = _rounds(found.frames)
    before = sum(json.loads(row[3])["rounds"] for row in found.episodes if row[3] is not None)
    facts: dict[str, Any] = {
        "kind": "store",
        "format": {
            "ledger": int(found.meta["version"]),
            "events": found.events_version,
            "current": int(found.meta["version"]) >= ledger.PLAIN
            and found.events_version in (None, EVENTS_VERSION),
        },
        "in_use": _in_use(path / "lock"),
        "handed_over": found.meta.get("handed_over"),
        "policy": _class_of(settings),
        "settings": settings,
        "episode": index,
        "state": step,
        "rounds": before + filled,
    }
    if engine is not None:
        fill_from(engine, found.meta, found.episodes)
        if any(frame.rounds is not None for frame in found.frames):
            engine.with_users = _with_users(found.frames)
        engine.episode = engine.new_episode(1 + before)
    facts |= _public(engine, reason, filled)
    if private:
        facts["private"] = _private_numbers(found)
    return facts


def _look(path: Path, *, check: bool) -> _Found:
    """Read a directory; an episode that is released meanwhile takes its files away: see :func:`_settled`."""
    with ledger.reading(path / "ledger.sqlite3") as connection:
        meta = ledger.checked_meta(connection) if check else ledger.meta(connection)
        if int(meta["version"]) > ledger.VERSION:
            raise StoreError(
                f"the store was written by a newer version (format {meta['version']}, this one reads "
                f"{ledger.VERSION})"
            )
        episodes = connection.execute("SELECT * FROM episodes ORDER BY episode").fetchall()
        users, keys = (connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in _COUNTED)
    frames: list[Frame] = []
    version = None
    if "handed_over" not in meta:
        settings = complete(json.loads(meta["settings"]))
        stem = f"episode-{episodes[-1][0]:05d}.{episodes[-1][2]}"
        layout = Journal.layout_of(path, stem, settings["dtype"])
        if layout is not None:
            Journal.refuse_missing(path, stem, layout)
            journal = Journal.only_read(
                path, stem, layout=layout, dtype=settings["dtype"], dim=_row_width(settings)
            )
            frames, version = journal.look()
    return _Found(meta, episodes, users, keys, frames, version)


_COUNTED: Final = ("users", "keys")
_TRIES: Final = 5


def _settled(look: Callable[[], _Answer]) -> _Answer:
    """Look again if the store moved on while it was read; what stays wrong is wrong."""
    for _ in range(_TRIES - 1):
        try:
            return look()
        except (StoreError, OSError):
            continue
    return look()


def _verify_directory(path: Path) -> Verdict:
    try:
        found = _settled(lambda: _look(path, check=True))
    except StoreError as error:
        return Verdict((), (str(error),))
    except OSError as error:
        return Verdict((), (f"a file of the store can't be read: {error.strerror}",))
    counts = _wrong_counts(found)
    filled = _rounds(found.frames)
    checked = (
        f"ledger: format {found.meta['version']}, checksums of settings, {len(found.episodes)} episodes, "
        f"users and keys",
        f"open episode: {len(found.frames)} frames with {filled} rounds, each with its checksum and that of "
        f"its rows",
    )
    return Verdict(checked if not counts else checked[:1], counts)


def _wrong_counts(found: _Found) -> tuple[str, ...]:
    """Return what does not add up between episodes, their rounds and the open files."""
    wrong, expected = [], 1
    for number, (index, step, _, facts, *_estimate) in enumerate(found.episodes):
        if index != number:
            wrong.append(f"episode {number} is missing from the ledger")
            break
        last = number == len(found.episodes) - 1
        if last != (facts is None):
            wrong.append(f"episode {index} is {step} and {'has' if facts else 'has no'} estimate")
        if facts is not None:
            told = json.loads(facts)
            if told["first_round"] != expected:
                wrong.append(f"episode {index} begins at round {told['first_round']} instead of {expected}")
            expected += told["rounds"]
    _, engine, _ = _engine(json.loads(found.meta["settings"]))
    if engine is None or "handed_over" in found.meta or wrong:
        return tuple(wrong)
    fill_from(engine, found.meta, found.episodes)
    length, filled = engine.new_episode(expected).length, _rounds(found.frames)
    index, step = found.episodes[-1][:2]
    if filled > length or (step == CLAIMED and filled != length):
        wrong.append(
            f"episode {index} is {step} and has {filled} rounds on disk instead of {length}: put its files "
            f"back as they were, or its {length} rounds are lost to learning (never used twice)"
        )
    rows, codes = _rewards(found.frames)
    first = rows[np.isfinite(codes)]  # a round that is cancelled after its reward has a second code
    if len(rows) and (int(rows.max()) >= filled or len(np.unique(first)) != len(first)):
        wrong.append(f"episode {index} has rewards of rounds that were not played, or two for one round")
    return tuple(wrong)


def _private_numbers(found: _Found) -> dict[str, Any]:
    rounds = [frame.rounds for frame in found.frames if frame.rounds is not None]
    codes = np.concatenate([np.zeros(0), *(codes_of(part) for part in rounds)])
    return {
        "rewards": len(np.unique(_rewards(found.frames)[0])),
        "late": int(found.meta["late"]) + sum(frame.late for frame in found.frames),
        "invalid_rounds": sum(int((part["arm"] < 0).sum()) for part in rounds),
        "rounds_not_learned_from": int(np.isinf(codes).sum()),
        "users_of_released_episodes": found.users,
        "keys_of_released_episodes": found.keys,
    }


def _rewards(frames: list[Frame]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return rows and codes of all rewards, in the order in which they came."""
    parts = [frame.rewards for frame in frames if frame.rewards is not None]
    rows = np.concatenate([np.zeros(0, np.int64), *(part["row"].astype(np.int64) for part in parts)])
    return rows, np.concatenate([np.zeros(0), *(part["code"] for part in parts)])


def _rounds(frames: list[Frame]) -> int:
    return sum(len(frame.rounds) for frame in frames if frame.rounds is not None)


def _with_users(frames: list[Frame]) -> bool:
    first = next(frame.rounds for frame in frames if frame.rounds is not None)
    return bool(first["flags"][0] & HAS_USER)


def _in_use(lock: Path) -> bool | None:
    """Whether a policy holds the store; None where the system does not tell without taking the lock."""
    try:
        told = lock.stat()
        listed = Path("/proc/locks").read_text()
    except OSError:
        return None
    file = f"{os.major(told.st_dev):02x}:{os.minor(told.st_dev):02x}:{told.st_ino}"
    return any(f" {file} " in line for line in listed.splitlines())


# Saved files


def _inspect_file(path: Path, private: bool) -> dict[str, Any]:
    version, record, arrays = _saved(path)
    settings, engine, reason = _engine(record["settings"])
    episode = record["episode"]
    facts: dict[str, Any] = {
        "kind": "saved file",
        "format": {"file": version, "current": version == snapshot.VERSION},
        "policy": _class_of(settings),
        "settings": settings,
        "episode": episode["index"],
        "state": CLAIMED if episode["claimed"] else "open",
        "rounds": episode["first_round"] - 1 + episode["filled"],
    }
    if engine is not None:
        without_rows = record | {"episode": episode | {"layout": None}}
        state.fill(engine, without_rows, arrays)
    facts |= _public(engine, reason, episode["filled"])
    if private:
        codes = arrays["codes"]
        facts["private"] = {
            "rewards": int((np.isfinite(codes) | (codes == np.inf)).sum()),
            "late": record["late"],
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


# Databases


def _inspect_database(url: str, private: bool) -> dict[str, Any]:
    from fliphat.policies.store.postgres import looking, schema

    found = looking.look(url)
    policy, row = found.policy, found.open
    settings, engine, reason = _engine(json.loads(policy["settings"]))
    due = next((one for one in found.episodes if one["claimed"] and not one["seen"]), None)
    facts: dict[str, Any] = {
        "kind": "database",
        "format": {"database": policy["format"], "current": policy["format"] == schema.FORMAT},
        "in_use": found.counts["sessions"] > 0,
        "sessions": found.counts["sessions"],
        "policy": policy["policy"],
        "witnessed": policy["witnessed"],
        "settings": settings,
        "episode": row["episode"],
        "state": "open" if due is None else f"open, and episode {due['episode']} is being fitted",
        "rounds": row["first_round"] - 1 + row["filled"],
    }
    if engine is not None:
        engine.arms = json.loads(policy["arms"])
        state.set_releases(engine, found.releases, found.known)
        engine.with_users = policy["with_users"]
        engine.episode = engine.new_episode(1)
    facts |= _public(engine, reason, row["filled"])
    if engine is not None:
        left = row["room"] - row["filled"]
        facts["remaining"] = left or (engine.fit.least_rows(row["episode"] + 1) if row["opened"] else 1)
    if private:
        counted = looking.look(url, row_bytes=_row_bytes(settings))
        facts["private"] = {
            "rewards": sum(half["rewards"]["rewards"] for half in counted.halves if half["episode"]),
            "late": counted.policy["late"],
            "rounds_not_learned_from": sum(half["rows"]["not_learned"] for half in counted.halves),
            "users": counted.counts["users"],
            "keys": counted.counts["keys"],
        }
    return facts


def _verify_database(url: str) -> Verdict:
    from fliphat.policies.store.postgres import looking

    try:
        settings = complete(json.loads(looking.look(url).policy["settings"]))
        found = looking.look(url, row_bytes=_row_bytes(settings))
    except StoreError as error:
        return Verdict((), (str(error),))
    checksums = "on" if found.checksums else "off: a changed bit in a row is not noticed"
    rows = sum(half["rows"]["rounds"] for half in found.halves)
    checked = (
        f"database: format {found.policy['format']}, {len(found.episodes)} episodes and their fences, rounds "
        f"of users, keys, functions",
        f"open episodes: {rows} rows, each with its slot, its size and its reward",
        f"the server's own checksums of pages are {checksums}",
    )
    damage = tuple(looking.wrong(found))
    return Verdict(() if damage else checked, damage)


def _row_bytes(settings: dict[str, Any]) -> tuple[int, int]:
    number = np.dtype(settings["dtype"]).itemsize
    return _row_width(settings) * number, number


# All of them


def _row_width(settings: dict[str, Any]) -> int:
    return int(settings["dim"]) + (1 if settings["fit"] == "dense" else 0)


def _engine(record: dict[str, Any]) -> tuple[dict[str, Any], Engine | None, str | None]:
    """Return the settings, and an engine without rows made of them, or why there can be none."""
    functions: dict[str, PerEpisode | None] = dict.fromkeys(("iterations", "step_size", "exploration"))
    try:
        settings = read_settings(record, functions)
    except ValueError as error:
        return complete(record), None, str(error)
    return settings.to_dict(), _without_rows(settings), None


def _without_rows(settings: EngineSettings) -> Engine:
    if isinstance(settings, DenseSettings):
        return PrivateLinear._engine_for(settings, None)
    return Engine(make_fit(settings))


def _class_of(settings: dict[str, Any]) -> str:
    return "PrivateLinear" if settings["fit"] == "dense" else "FLIPHAT"


def _arms_of(engine: Engine) -> list[str | int] | None:
    """Return ids of the arms that are played now, bytes as text; None where rounds bring their arms."""
    table = getattr(engine.rule, "table", None)
    return None if table is None else [one if isinstance(one, int) else str(one) for one in table.playable]


def _public(engine: Engine | None, reason: str | None, filled: int) -> dict[str, Any]:
    """Return what everybody may see; without an engine, why it is not known."""
    if engine is None:
        unknown = ("remaining", "arms", "history", "estimate", "health", "guarantee")
        return dict.fromkeys(unknown) | {"not_known_because": reason}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its reasons are in the record
        claim = engine.fit.guarantee()
    claim = dataclasses.replace(claim, user_ids_checked=bool(engine.with_users))
    length = engine.episode.length
    health = examine(engine.settings, engine.history, engine.known)
    return {
        "remaining": length - filled or engine.fit.least_rows(engine.episode.index + 1),
        "arms": _arms_of(engine),
        "history": [facts.to_dict() | _plain(facts.estimate) for facts in engine.history],
        "estimate": _plain(engine.estimate),
        "health": list(health.findings),
        "guarantee": claim.to_dict() | {"text": str(claim)},
    }


def _plain(estimate: SparseEstimate) -> dict[str, Any]:
    return {"indices": estimate.indices.tolist(), "values": estimate.values.tolist()}
