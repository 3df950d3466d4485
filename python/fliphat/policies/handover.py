"""A policy's whole state as a record and arrays, and back: what a saved file holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.fit import make_fit
from fliphat.fit.known import KnownEstimate, SparseEstimate
from fliphat.fit.settings import PerEpisode, Settings
from fliphat.policies.base import Decision
from fliphat.policies.engine import Engine
from fliphat.policies.facts import EpisodeFacts
from fliphat.policies.identity import DIGEST_BYTES
from fliphat.policies.rows import DenseRows, SparseRows

__all__ = ["from_arrays", "to_arrays"]


def to_arrays(engine: Engine) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return everything the engine knows; the arrays hold private rows and rewards."""
    episode = engine.episode
    record = {
        "settings": engine.settings.to_dict(),
        "secret": engine.secret.hex(),
        "with_users": engine.with_users,
        "user_kind": engine.user_kind,
        "late": engine.late,
        "incarnation": engine.incarnation,
        "history": [facts.to_dict() for facts in engine.history],
        "episode": {
            "index": episode.index,
            "first_round": episode.first_round,
            "filled": episode.filled,
            "claimed": episode.claimed,
            "spans": episode.spans,
            "layout": None if episode.rows is None else episode.rows.layout,
        },
        "generator": engine.rng.bit_generator.state if engine.settings.seed is not None else None,
    }
    estimates = [facts.estimate for facts in engine.history]
    arrays: dict[str, npt.NDArray[Any]] = {
        "sizes": np.array([len(one.indices) for one in estimates], np.int64),
        "indices": np.concatenate([np.zeros(0, np.int64), *(one.indices for one in estimates)]),
        "numbers": np.concatenate([np.zeros(0), *(one.values for one in estimates)]),
        "users": _digests(engine.users),
        "counts": np.array(list(engine.users.values()), np.int64),
        "keys": _digests(engine.keys),
        "decisions": np.array(list(engine.keys.values()), np.int64).reshape(-1, 4),
        "codes": episode.codes[: episode.filled],
    }
    if episode.rows is not None:
        arrays.update(episode.rows.parts(episode.filled))
    return record, arrays


def from_arrays(
    record: dict[str, Any],
    arrays: dict[str, npt.NDArray[Any]],
    functions: dict[str, PerEpisode | None],
    memory_limit: int | None,
) -> Engine:
    """Return the engine that :func:`to_arrays` described."""
    fit = make_fit(Settings.from_dict(record["settings"], functions))
    engine = Engine(fit, memory_limit=memory_limit)
    engine.secret = bytes.fromhex(record["secret"])
    engine.with_users = record["with_users"]
    engine.user_kind = record.get("user_kind")
    engine.late = record["late"]
    engine.incarnation = record["incarnation"]
    if record["generator"] is not None:
        engine.rng.bit_generator.state = record["generator"]
    engine.users = {
        name.tobytes(): int(count) for name, count in zip(arrays["users"], arrays["counts"], strict=True)
    }
    engine.keys = {
        name.tobytes(): Decision(int(identity), int(arm), bool(valid), int(episode))
        for name, (identity, arm, valid, episode) in zip(arrays["keys"], arrays["decisions"], strict=True)
    }
    ends = np.cumsum(arrays["sizes"])
    for facts, end, size in zip(record["history"], ends, arrays["sizes"], strict=True):
        part = slice(end - size, end)
        estimate = SparseEstimate(arrays["indices"][part], arrays["numbers"][part], engine.settings.dim)
        engine.history.append(EpisodeFacts.from_dict(facts, estimate))
        engine.show(KnownEstimate(estimate, len(engine.history)))
    _restore_episode(engine, record["episode"], arrays)
    return engine


def _restore_episode(engine: Engine, record: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
    filled = record["filled"]
    episode = engine.new_episode(record["first_round"])
    episode.filled, episode.claimed = filled, record["claimed"]
    episode.spans = [(int(first), int(identity)) for first, identity in record["spans"]]
    episode.codes[:filled] = arrays["codes"]
    engine.episode = episode
    if record["layout"] is None:
        return
    rows = engine.new_rows(record["layout"])
    if isinstance(rows, SparseRows):
        rows.stage(0, arrays["lengths"], arrays["columns"], arrays["values"])
        rows.advance(0, filled)
    elif isinstance(rows, DenseRows):
        rows.array[:filled] = arrays["rows"]
    else:
        rows.stage(0, arrays["rows"])
    episode.rows = rows


def _digests(named: dict[bytes, Any]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(named), np.uint8).reshape(-1, DIGEST_BYTES)
