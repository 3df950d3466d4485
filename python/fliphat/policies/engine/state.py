"""Everything an engine knows, as values that a saved file can hold, and back.

A new number of the engine is one new name in `_SCALARS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.policies.engine.episode import Released
from fliphat.policies.engine.inputs import DIGEST_BYTES
from fliphat.policies.engine.rows import SparseChosen
from fliphat.policies.types import Decision, EpisodeFacts

if TYPE_CHECKING:
    from fliphat.policies.engine.engine import Engine

__all__ = ["fill", "set_releases", "to_arrays"]

#: The engine's own numbers, each as JSON can hold it.
_SCALARS: Final = (
    "with_users",
    "user_kind",
    "late",
    "incarnation",
    "arm_ids",
    "column_names",
    "arms",
    "mark",
)


def set_releases(engine: Engine, releases: Iterable[Released]) -> None:
    """Show what was released, after what the engine shows already."""
    last = None
    for last in releases:
        engine.history.append(last.facts)
    if last is not None:
        engine.totals, engine.mark = last.totals, last.mark
        engine.show(last.known)
    elif not engine.history:
        engine.show(engine.fit.begin())  # with the arms that were read, not those it was made with


def to_arrays(engine: Engine) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return a record for JSON and arrays, which hold private rows and rewards."""
    episode = engine.episode
    record = {
        "settings": engine.settings.to_dict(),
        "secret": engine.secret.hex(),
        "ages": engine.ages.to_record(),
        **{name: getattr(engine, name) for name in _SCALARS},
        "history": [facts.to_dict() for facts in engine.history],
        "known": engine.known.to_record(),
        "episode": {
            "index": episode.index,
            "first_round": episode.first_round,
            "filled": episode.filled,
            "spans": episode.spans,
            "notes": episode.notes,
            "expired": episode.expired,
            "layout": None if episode.rows is None else episode.rows.layout,
        },
        "generator": engine.rng.bit_generator.state if engine.settings.seed is not None else None,
    }
    estimates = [facts.estimate for facts in engine.history]
    users, keys = dict(engine.users.items()), dict(engine.keys.items())
    arrays: dict[str, npt.NDArray[Any]] = {
        "sizes": np.array([len(one.indices) for one in estimates], np.int64),
        "indices": np.concatenate([np.zeros(0, np.int64), *(one.indices for one in estimates)]),
        "numbers": np.concatenate([np.zeros(0), *(one.values for one in estimates)]),
        "users": _digests(users),
        "counts": np.array(list(users.values()), np.int64),
        "keys": _digests(keys),
        "decisions": np.array([one[:4] for one in keys.values()], np.int64).reshape(-1, 4),
        "probabilities": np.array([one.probability for one in keys.values()], np.float64),
        "codes": episode.codes[: episode.filled],
    }
    if engine.totals is not None:
        arrays["totals"] = np.frombuffer(engine.totals, np.uint8)
    if episode.owners is not None:
        owners = np.frombuffer(episode.owners, np.uint8).reshape(-1, DIGEST_BYTES)
        arrays["owners"] = owners[: episode.filled]
    if episode.rows is not None:
        rows = episode.rows.first(episode.filled)
        if isinstance(rows, SparseChosen):
            arrays |= {"lengths": rows.lengths, "columns": rows.columns, "values": rows.values}
        else:
            arrays["rows"] = rows
    return record, arrays


def fill(engine: Engine, record: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Make a new engine the one that :func:`to_arrays` described."""
    engine.secret = bytes.fromhex(record["secret"])
    for name in _SCALARS:
        setattr(engine, name, record[name])
    if record["generator"] is not None:
        engine.rng.bit_generator.state = record["generator"]
    engine.users = {
        name.tobytes(): int(count) for name, count in zip(arrays["users"], arrays["counts"], strict=True)
    }
    decisions = arrays["decisions"].tolist()
    chances = arrays["probabilities"].tolist()
    engine.keys = {
        name.tobytes(): Decision(identity, arm, bool(valid), episode, chance)
        for name, (identity, arm, valid, episode), chance in zip(
            arrays["keys"], decisions, chances, strict=True
        )
    }
    ends = np.cumsum(arrays["sizes"])
    parts = [slice(end - size, end) for end, size in zip(ends, arrays["sizes"], strict=True)]
    for facts, part in zip(record["history"], parts, strict=True):
        estimate = engine.fit.recall_estimate(arrays["indices"][part], arrays["numbers"][part])
        engine.history.append(EpisodeFacts.from_dict(facts, estimate))
    engine.show(engine.fit.recall(record["known"]) if engine.history else engine.fit.begin())
    engine.totals = arrays["totals"].tobytes() if "totals" in arrays else None
    _fill_episode(engine, record["episode"], arrays)


def _fill_episode(engine: Engine, record: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
    episode = engine.episode = engine.new_episode(record["first_round"])
    if record["layout"] is not None:
        episode.rows = engine.new_rows(record["layout"])
        if record["layout"] == "csr":
            episode.rows.put(0, SparseChosen(arrays["lengths"], arrays["columns"], arrays["values"]))
        else:
            episode.rows.put(0, arrays["rows"])
    spans = [(int(first), int(identity)) for first, identity in record["spans"]]
    ends = [*(first for first, _ in spans[1:]), record["filled"]]
    owners = arrays.get("owners")  # where rounds have users
    for (first, identity), end in zip(spans, ends, strict=False):  # no span, if no round was played
        users = None if owners is None else [one.tobytes() for one in owners[first:end]]
        episode.append(end - first, identity, arrays["codes"][first:end], users)
    episode.notes = [(int(row), float(when)) for row, when in record["notes"]]
    episode.expired = record["expired"]


def _digests(named: dict[bytes, Any]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(named), np.uint8).reshape(-1, DIGEST_BYTES)
