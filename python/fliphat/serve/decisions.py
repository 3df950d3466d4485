"""The decision log: what off-policy evaluation needs of every round, for the operator alone.

A file of JSON lines, readable by its owner: a decision with everything that was offered, its chance and its
user as a keyed digest; then its reward, or that it was cancelled. It holds what people brought, **without
noise and for as long as the file exists**: the guarantee is about everybody else. A user who is forgotten
goes from here, too. :func:`joined` brings decisions and rewards together.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fliphat.policies.types import Decision, Decisions
from fliphat.serve.bodies import Rounds, each_decision

__all__ = ["DecisionLog", "joined"]


class DecisionLog:
    """Appends to one file, which one server has for itself.

    A line is handed to the system before its round is answered; a machine that fails may lose the last ones.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self._descriptor = _opened(path)
        self._secret = b""

    def keyed(self, secret: bytes) -> None:
        """Name users by digests with this key, which stays the same when the store is opened again."""
        self._secret = hashlib.blake2b(b"users of the decision log", key=secret, digest_size=32).digest()

    def decided(self, rounds: Rounds, decided: Decision | Sequence[Decisions | Decision]) -> None:
        """Note decisions, with what was offered."""
        lines, place = [], 0
        for one in [decided] if isinstance(decided, Decision) else decided:
            for identity, arm, valid, episode, chance in each_decision(one):
                user = rounds.users[place] if rounds.users else None
                told = {"id": identity, "episode": episode, "arm": arm, "probability": chance, "valid": valid}
                name = None if user is None else self._digest(user)
                lines.append({**told, "user": name, "contexts": _offered(rounds, place)})
                place += 1
        self._append(lines)

    def rewarded(self, ids: Iterable[int], rewards: Iterable[Any]) -> None:
        """Note rewards."""
        self._append([{"id": one, "reward": reward} for one, reward in zip(ids, rewards, strict=True)])

    def cancelled(self, identity: int) -> None:
        """Note that a round was taken back."""
        self._append([{"id": identity, "cancelled": True}])

    def forget(self, user: str | int) -> None:
        """Write the file again without a user's rounds and rewards."""
        name = self._digest(user)
        new = self._path.with_name(f"{self._path.name}.new-{os.urandom(4).hex()}")
        with self._lock:
            gone = {one["id"] for one in _lines(self._path) if one.get("user") == name}
            descriptor = _opened(new)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                for one in _lines(self._path):
                    if one["id"] not in gone:
                        file.write(json.dumps(one) + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self._path)
            os.close(self._descriptor)
            self._descriptor = _opened(self._path)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _append(self, lines: list[dict[str, Any]]) -> None:
        text = "".join(json.dumps(one) + "\n" for one in lines).encode()
        with self._lock:
            os.write(self._descriptor, text)

    def _digest(self, user: str | int) -> str:
        return hashlib.blake2b(repr(user).encode(), key=self._secret, digest_size=16).hexdigest()


def joined(path: Path) -> Iterator[dict[str, Any]]:
    """Yield decisions with their rewards, in the order in which they were made; None for one that never came.

    A decision that was asked for again is there once, a cancelled one is not.
    """
    rewards: dict[int, Any] = {}
    cancelled = set()
    for one in _lines(path):
        if "reward" in one:
            rewards.setdefault(one["id"], one["reward"])
        elif "cancelled" in one:
            cancelled.add(one["id"])
    seen: set[int] = set()
    for one in _lines(path):
        if "arm" in one and one["id"] not in seen and one["id"] not in cancelled:
            seen.add(one["id"])
            yield one | {"reward": rewards.get(one["id"])}


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):  # the last one may have been cut off
                yield json.loads(line)


def _offered(rounds: Rounds, place: int) -> Any:
    """Return the contexts of one round: lists, or columns and values of sparse rows."""
    if rounds.arms is None:
        return (rounds.contexts if rounds.single else rounds.contexts[place]).tolist()
    part = rounds.contexts[place * rounds.arms : (place + 1) * rounds.arms].tocsr()
    at = zip(part.indptr[:-1], part.indptr[1:], strict=True)
    return [
        {"columns": part.indices[begin:end].tolist(), "values": part.data[begin:end].tolist()}
        for begin, end in at
    ]
