"""What clients send and get, as JSON. The compact form of the same is in :mod:`fliphat.serve.compact`.

One reader, native code, reads every body: what it makes of a number does not depend on which packages are
there. A number that is no finite double is an invalid value of its own round, and other rounds are played. A
body that can't be read raises a `Refusal`, whose words never hold a value of the body.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fliphat import _native
from fliphat.policies.types import Decision, Decisions
from fliphat.serve.receipts import Receipts, read_id
from fliphat.serve.refusal import malformed, too_many, unprocessable

__all__ = [
    "ArmChange",
    "Rewards",
    "Rounds",
    "each_decision",
    "json_answer",
    "names_of",
    "read_arm_change",
    "read_cancelled",
    "read_forgotten",
    "read_record",
    "read_rewards",
    "read_rounds",
    "read_switch",
]

#: Characters that a key must have to name a round in ``/update``: shorter ones could be found by counting.
SHORTEST_KEY: Final = 16


@dataclass(slots=True)
class Rounds:
    """Rounds that a client wants to be played.

    Attributes
    ----------
    contexts : ndarray, shape (K, dim) or (n, K, dim), or CSR, shape (n * K, dim)
        Without K, if one row is for all arms.
    arms : int or None
        K, of CSR contexts.
    single : bool
        Whether it is one round, and one decision is the answer.
    users, keys : list or None
        One for each round.
    depth : int
        Dimensions of one round's contexts.
    """

    contexts: Any
    arms: int | None
    single: bool
    users: list[Any] | None
    keys: list[Any] | None
    count: int
    depth: int = 2


@dataclass(frozen=True, slots=True)
class Rewards:
    """Rewards of one or several decisions, whose ids have receipts; a single one may be named by its key."""

    ids: list[int]
    receipts: list[int]
    rewards: Any
    single: bool
    key: Any = None
    user: Any = None

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.rewards)


@dataclass(frozen=True, slots=True)
class ArmChange:
    """An arm that is to be played from now on, or no more."""

    arm: str | int
    add: bool


def read_record(
    body: bytes, names: frozenset[str], most: int, dim: int = 0, dtype: str = "float32"
) -> dict[str, Any]:
    """Return the members of a body; its contexts as an array, lists of at most `most` values."""
    record = _native.read_body(body, dim, dtype == "float64", most)
    if isinstance(record, str):
        if record == "malformed":
            raise malformed("the body must be JSON, or compact with its content type")
        if record == "many":
            raise too_many(most)
        if record == "shape":
            raise unprocessable(
                f"contexts must be nested lists of equal lengths, the innermost of dim = {dim} numbers"
            )
        raise unprocessable("the body must be an object whose members have different names")
    if not record.keys() <= names:
        raise unprocessable(f"the body must be an object with no other members than {sorted(names)}")
    return record


def read_rounds(body: bytes, dim: int, dtype: str = "float32", depth: int = 2, most: int = 2**31) -> Rounds:
    """Return the rounds of a body of ``/select``, with a structure that the policy will take.

    Numbers are read as the `dtype` that the policy keeps. `depth` are the dimensions of one round's contexts:
    2 for a row for each arm, 1 for one row for all arms.
    """
    record = read_record(body, _SELECT, most, dim, dtype)
    contexts = record.get("contexts")
    if contexts is None or contexts.ndim not in (depth, depth + 1):
        raise unprocessable(_WANTED[depth])
    single = contexts.ndim == depth
    count = 1 if single else len(contexts)
    if count > most:
        raise too_many(most)
    users, keys = names_of(record, count, single) if len(record) > 1 else (None, None)
    return Rounds(contexts, None, single, users, keys, count, depth)


_SELECT: Final = frozenset(("contexts", "user", "key", "users", "keys"))
_WANTED: Final = {
    1: "contexts must be a list of numbers, or of rounds of such lists",
    2: "contexts must be a list of one list for each arm, or of rounds of such lists",
}


def names_of(record: dict[str, Any], count: int, single: bool) -> tuple[list[Any] | None, list[Any] | None]:
    """Return users and keys: of a single round as one value, of a batch as lists."""
    wrong = ("users", "keys") if single else ("user", "key")
    if any(name in record for name in wrong):
        raise unprocessable("a single round has user and key, a batch has users and keys")
    found: list[list[Any] | None] = []
    for name in ("user", "key") if single else ("users", "keys"):
        given = record.get(name)
        if given is None:
            found.append(None)
            continue
        values = [given] if single else given
        if not isinstance(values, list) or len(values) != count:
            raise unprocessable(f"{name} must be a list with one for each of the {count} rounds")
        for value in values:
            _name(name, value)
        if len({type(value) for value in values}) > 1:
            raise unprocessable(f"{name} must be all text or all integers")
        found.append(values)
    return found[0], found[1]


def _name(what: str, value: Any) -> str | int:
    """Return the id of a user or an arm, or a key. Empty text would be one person for all who left it out."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise unprocessable(f"{what} must be text that is not empty, or integers of 64 bits")
    return value


def read_rewards(body: bytes, most: int = 2**31) -> Rewards:
    """Return the rewards of a body of ``/update``."""
    record = read_record(body, _UPDATE, most)
    if "key" in record:
        if not record.keys() <= _BY_KEY or "reward" not in record:
            raise unprocessable("give key, reward and, if the round had one, user")
        key = record["key"]
        if not isinstance(key, str) or len(key) < SHORTEST_KEY:
            raise unprocessable(
                f"key must be text of at least {SHORTEST_KEY} characters that nobody can guess: a round with "
                f"another key is named by its id"
            )
        user = record.get("user")
        return Rewards([], [], [record["reward"]], True, key, None if user is None else _name("user", user))
    single = "id" in record
    if (
        "user" in record
        or single == ("ids" in record)
        or ("reward" in record) != single
        or ("rewards" in record) == single
    ):
        raise unprocessable("give id and reward, key and reward, or ids and rewards")
    if single:
        identity, receipt = read_id(record["id"])
        return Rewards([identity], [receipt], [record["reward"]], True)
    ids, rewards = record["ids"], record["rewards"]
    if not isinstance(ids, list) or not isinstance(rewards, list) or len(ids) != len(rewards):
        raise unprocessable("ids and rewards must be lists of the same length")
    read = [read_id(one) for one in ids]
    return Rewards([one for one, _ in read], [receipt for _, receipt in read], rewards, False)


_UPDATE: Final = frozenset(("id", "reward", "ids", "rewards", "key", "user"))
_BY_KEY: Final = frozenset(("key", "user", "reward"))


def read_cancelled(body: bytes) -> tuple[int, int]:
    """Return id and receipt of the round that a body of ``/cancel`` names."""
    record = read_record(body, frozenset(("id",)), 1)
    return read_id(record.get("id"))


def read_forgotten(body: bytes) -> str | int:
    """Return the user that a body of ``/forget`` names."""
    record = read_record(body, frozenset(("user",)), 1)
    return _name("user", record.get("user"))


def read_switch(body: bytes) -> Any:
    """Return the arm that a body of ``/switch`` names, None for the policy's own."""
    record = read_record(body, frozenset(("arm",)), 1)
    if "arm" not in record:
        raise unprocessable("give arm, or null to let the policy play")
    return record["arm"]


def read_arm_change(body: bytes) -> ArmChange:
    """Return what a body of ``/arms`` asks for: ``{"add": id}`` or ``{"remove": id}``."""
    record = read_record(body, frozenset(("add", "remove")), 1)
    if len(record) != 1:
        raise unprocessable("give either add or remove, with the id of one arm")
    ((what, arm),) = record.items()
    return ArmChange(_name("the id of an arm", arm), what == "add")


def json_answer(decided: Decision | Sequence[Decisions | Decision], receipts: Receipts) -> bytes:
    """Return decisions as JSON; ids are text, with the receipt that ``/update`` asks for."""
    if isinstance(decided, Decision):
        identity, arm, valid, episode, chance = decided
        return b'{"id":"%s","arm":%s,"valid":%s,"episode":%d,"probability":%s}' % (
            receipts.id(identity).encode(),
            b"%d" % arm if isinstance(arm, int) else json.dumps(arm).encode(),
            b"true" if valid else b"false",
            episode,
            b"null" if math.isnan(chance) else repr(chance).encode(),
        )
    every = [one for part in decided for one in each_decision(part)]
    ids, arms, were_valid, episodes, chances = map(list, zip(*every, strict=True))
    columns = {
        "ids": [receipts.id(one) for one in ids],
        "arms": arms,
        "valid": were_valid,
        "episodes": episodes,
        "probabilities": [None if math.isnan(one) else one for one in chances],
    }
    return json.dumps(columns, separators=(",", ":")).encode()


def each_decision(part: Decision | Decisions) -> Iterator[tuple[int, Any, bool, int, float]]:
    """Yield id, arm, whether it is valid, episode and chance of each decision."""
    if isinstance(part, Decision):
        yield (part.id, part.arm, bool(part.valid), part.episode, float(part.probability))
        return
    arrays = part.ids, part.arms, part.valid, part.probabilities
    for identity, arm, valid, chance in zip(*(one.tolist() for one in arrays), strict=True):
        yield identity, arm, valid, part.episode, chance
