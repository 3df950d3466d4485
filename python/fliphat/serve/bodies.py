"""What clients send and get: JSON, and a compact binary form for large contexts.

A body that can't be read raises :class:`Refusal`, whose words never hold a value of the body. The compact
form, little endian:

| bytes | what |
|---|---|
| 4 | ``FHB1`` |
| 1 | kind: 1 dense contexts, 2 CSR contexts, 3 rewards |
| 1 | bytes of a value: 4 or 8 |
| 1 | 1 for a single round, 0 for a batch |
| 1 | zero |
| 4, 4, 4 | n rounds or rewards, arms K (0: one row for all arms), dim (zeros for rewards) |
| 4 | length of the names, a multiple of 8 |
| names | JSON, padded with spaces: ``{"user", "key"}`` of a single round, ``{"users", "keys"}`` of a batch |
| arrays of contexts | dense: n * K * dim values; CSR: n * K + 1 offsets (int64), columns (int32), values |
| arrays of rewards | ids (int64), rewards (float64) |

Its answer to contexts is one record a round, :data:`ANSWER`. A policy that knows its arms by ids answers with
an arm's number there: ``/arms`` says whose it is, for ever.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat import _native
from fliphat.policies.engine import inputs
from fliphat.policies.types import Decision, Decisions

try:  # a server reads JSON all day; a client alone does without
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment, unused-ignore]


__all__ = [
    "ANSWER",
    "COMPACT",
    "ArmChange",
    "Refusal",
    "Rewards",
    "Rounds",
    "compact_answer",
    "compact_rewards",
    "compact_rounds",
    "json_answer",
    "read_arm_change",
    "read_rewards",
    "read_rounds",
]

#: The media type of the compact form.
COMPACT: Final = "application/vnd.fliphat"

_MAGIC: Final = b"FHB1"
_HEAD = struct.Struct("<4sBBBBIIII")
_DENSE, _CSR, _REWARDS = 1, 2, 3
_ONE_ANSWER = struct.Struct("<qiiB7xd")
#: One decision of a compact answer.
ANSWER: Final = np.dtype(
    {
        "names": ["id", "arm", "episode", "valid", "probability"],
        "formats": ["<i8", "<i4", "<i4", "u1", "<f8"],
        "offsets": [0, 8, 12, 16, 24],
        "itemsize": _ONE_ANSWER.size,
    }
)
_LONGEST_ID: Final = 19


class Refusal(Exception):
    """A request that is refused: its status, a stable code, and words without contents."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail


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
    """Rewards of one or several decisions; a single one may be named by its round's key and user."""

    ids: list[int]
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


def read_rounds(body: bytes, compact: bool, dim: int, dtype: str = "float32", depth: int = 2) -> Rounds:
    """Return the rounds of a body of ``/select``, with a structure that the policy will take.

    Numbers in JSON are read as the `dtype` that the policy keeps. `depth` are the dimensions of one round's
    contexts: 2 for a row for each arm, 1 for one row for all arms.
    """
    if compact:
        return _compact_rounds(body, dim, depth)
    plain = _native.read_contexts(body, dim, dtype == "float64")
    if plain is not None:
        contexts, user, key = plain
        if contexts.ndim == depth:
            return Rounds(
                contexts,
                None,
                True,
                None if user is None else [user],
                None if key is None else [key],
                1,
                depth,
            )
        if contexts.ndim == depth + 1 and user is None and key is None:
            return Rounds(contexts, None, False, None, None, len(contexts), depth)
    return _read_rounds(body, dim, dtype, depth)


def _read_rounds(body: bytes, dim: int, dtype: str, depth: int) -> Rounds:
    """Read any JSON, and say what is wrong with it."""
    record = _record(body, _SELECT_NAMES)
    contexts = record.get("contexts")
    nested, inner = 0, contexts
    while isinstance(inner, list) and nested <= depth:
        nested, inner = nested + 1, inner[0] if inner else None
    if not isinstance(contexts, list) or not contexts or nested < depth:
        raise _unprocessable(_WANTED[depth])
    single = nested == depth
    count = 1 if single else len(contexts)
    users, keys = _names(record, count, single)
    with _saying_what_is_wrong():
        if depth == 1:
            lists = [contexts] if single else contexts
            if not all(isinstance(one, list) and len(one) == dim for one in lists):
                raise _unprocessable(f"contexts must have dim = {dim} numbers, in one list for each round")
            rows = _kept(inputs.one_round(lists, dim)[0], dtype)
            return Rounds(rows[0] if single else rows, None, single, users, keys, count, depth)
        if single:
            return Rounds(_kept(inputs.one_round(contexts, dim)[0], dtype), None, True, users, keys, 1)
        every, count, arms = inputs.many_rounds(contexts, dim, None)
    return Rounds(_kept(every, dtype).reshape(count, arms, dim), None, False, users, keys, count)


_WANTED: Final = {
    1: "contexts must be a list of numbers, or of rounds of such lists",
    2: "contexts must be a list of one list for each arm, or of rounds of such lists",
}


def _kept(rows: Any, dtype: str) -> npt.NDArray[Any]:
    """Return numbers of JSON as they will be kept; one beyond the range is infinite, and contents."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(rows, dtype)


def read_rewards(body: bytes, compact: bool) -> Rewards:
    """Return the rewards of a body of ``/update``."""
    if compact:
        return _compact_rewards(body)
    record = _record(body, _UPDATE_NAMES)
    if "key" in record:
        if not record.keys() <= _BY_KEY or "reward" not in record:
            raise _unprocessable("give key, reward and, if the round had one, user")
        users, keys = _names({name: record.get(name) for name in ("user", "key")}, 1, single=True)
        if keys is None:
            raise _unprocessable("key must be text or an integer")
        return Rewards([], [record["reward"]], True, keys[0], users[0] if users else None)
    single = "id" in record
    if (
        "user" in record
        or single == ("ids" in record)
        or ("reward" in record) != single
        or ("rewards" in record) == single
    ):
        raise _unprocessable("give id and reward, key and reward, or ids and rewards")
    if single:
        return Rewards([_identity(record["id"])], [record["reward"]], True)
    ids, rewards = record["ids"], record["rewards"]
    if not isinstance(ids, list) or not isinstance(rewards, list) or len(ids) != len(rewards):
        raise _unprocessable("ids and rewards must be lists of the same length")
    return Rewards([_identity(one) for one in ids], rewards, False)


_SELECT_NAMES: Final = frozenset(("contexts", "user", "key", "users", "keys"))
_UPDATE_NAMES: Final = frozenset(("id", "reward", "ids", "rewards", "key", "user"))
_BY_KEY: Final = frozenset(("key", "user", "reward"))


def _record(body: bytes, names: frozenset[str]) -> dict[str, Any]:
    try:
        record = _loads(body)
    except (ValueError, RecursionError):
        record = _MALFORMED
    if record is _MALFORMED:  # outside the handler: the parser's own error quotes the body
        raise Refusal(400, "malformed", "the body must be JSON, or compact with its content type")
    if not isinstance(record, dict) or not record.keys() <= names:
        raise _unprocessable(f"the body must be an object with no other members than {sorted(names)}")
    return record


_MALFORMED: Final = object()


def _loads(text: bytes) -> Any:
    if orjson is not None:
        return orjson.loads(text)
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError("NaN and infinity are no JSON: null stands for a number that is missing")


def _names(record: dict[str, Any], count: int, single: bool) -> tuple[list[Any] | None, list[Any] | None]:
    """Return users and keys: of a single round as one value, of a batch as lists."""
    wrong = ("users", "keys") if single else ("user", "key")
    if any(name in record for name in wrong):
        raise _unprocessable("a single round has user and key, a batch has users and keys")
    found: list[list[Any] | None] = []
    for name in ("user", "key") if single else ("users", "keys"):
        given = record.get(name)
        if given is None:
            found.append(None)
            continue
        values = [given] if single else given
        if not isinstance(values, list) or len(values) != count:
            raise _unprocessable(f"{name} must be a list with one for each of the {count} rounds")
        if any(isinstance(value, bool) or not isinstance(value, (str, int)) for value in values):
            raise _unprocessable(f"{name} must be text or integers")
        if len({type(value) for value in values}) > 1:
            raise _unprocessable(f"{name} must be all text or all integers")
        found.append(values)
    return found[0], found[1]


def read_arm_change(body: bytes) -> ArmChange:
    """Return what a body of ``/arms`` asks for: ``{"add": id}`` or ``{"remove": id}``."""
    record = _record(body, frozenset(("add", "remove")))
    if len(record) != 1:
        raise _unprocessable("give either add or remove, with the id of one arm")
    (what, arm), *_ = record.items()
    if isinstance(arm, bool) or not isinstance(arm, (str, int)):
        raise _unprocessable("the id of an arm must be text or an integer")
    return ArmChange(arm, what == "add")


def _identity(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63:
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _LONGEST_ID:
        return int(value)
    raise _unprocessable("id must be one that /select answered with, as text or an integer")


def _compact_rounds(body: bytes, dim: int, depth: int) -> Rounds:
    kind, width, single, n, arms, columns, names, at = _compact_head(body)
    if kind not in (_DENSE, _CSR):
        raise _unprocessable("the compact body of /select must hold contexts")
    if columns != dim:
        raise _unprocessable(f"contexts must have dim = {dim} columns, got {columns}")
    if depth == 1:
        if arms > 1:
            raise _unprocessable(f"contexts must have one row for all arms, got {arms} rows a round")
        arms = 1
    if n < 1 or arms < 1 or (single and n != 1):
        raise _unprocessable("contexts must have at least one round and one arm, and a single round is one")
    users, keys = _names(names, n, single) if names else (None, None)
    values, left = np.dtype(f"<f{width}"), len(body) - at
    if kind == _DENSE:
        if left != n * arms * columns * width:
            raise _wrong_size()
        dense = np.frombuffer(body, values, n * arms * columns, at).copy()
        shape = (n, columns) if depth == 1 else (n, arms, columns)
        dense = dense.reshape(shape)
        return Rounds(dense[0] if single else dense, None, single, users, keys, n, depth)
    offsets = n * arms + 1
    if left < 8 * offsets:
        raise _wrong_size()
    indptr = np.frombuffer(body, "<i8", offsets, at)
    stored, rest = int(indptr[-1]), left - 8 * offsets
    if stored < 0 or rest != stored * (4 + width) or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise _wrong_size()
    columns_at = at + 8 * offsets
    matrix = _csr(
        np.frombuffer(body, values, stored, columns_at + 4 * stored).copy(),
        np.frombuffer(body, "<i4", stored, columns_at).copy(),
        indptr.copy(),
        (n * arms, dim),
    )
    return Rounds(matrix, arms, single, users, keys, n, depth)


def _csr(
    values: npt.NDArray[Any], columns: npt.NDArray[Any], indptr: npt.NDArray[Any], shape: tuple[int, int]
) -> Any:
    from scipy.sparse import csr_array

    if len(columns) and (columns.min() < 0 or columns.max() >= shape[1]):
        raise _unprocessable(f"columns must be from 0 to dim - 1 = {shape[1] - 1}")
    return csr_array((values, columns, indptr), shape=shape)


def _compact_rewards(body: bytes) -> Rewards:
    kind, _, single, n, _, _, names, at = _compact_head(body)
    if kind != _REWARDS or names:
        raise _unprocessable("the compact body of /update must hold rewards, without names")
    if len(body) - at != 16 * n or (single and n != 1):
        raise _wrong_size()
    ids = np.frombuffer(body, "<i8", n, at).tolist()
    if ids and min(ids) <= 0:
        raise _unprocessable("ids must be those that /select answered with")
    return Rewards(ids, np.frombuffer(body, "<f8", n, at + 8 * n).tolist(), single)


def _compact_head(body: bytes) -> tuple[int, int, bool, int, int, int, dict[str, Any], int]:
    if len(body) < _HEAD.size:
        raise Refusal(400, "malformed", "the compact body is shorter than its head")
    magic, kind, width, single, zero, n, arms, dim, length = _HEAD.unpack_from(body)
    if magic != _MAGIC or width not in (4, 8) or single > 1 or zero or length % 8:
        raise Refusal(400, "malformed", "the head of the compact body is not one that this version reads")
    at = _HEAD.size + length
    if len(body) < at:
        raise _wrong_size()
    names = _record(body[_HEAD.size : at], _SELECT_NAMES) if length else {}
    return kind, width, bool(single), n, arms, dim, names, at


def _unprocessable(detail: str) -> Refusal:
    return Refusal(422, "unprocessable", detail)


def _wrong_size() -> Refusal:
    return Refusal(400, "malformed", "the compact body has not the size that its head says")


class _saying_what_is_wrong:
    """Turn the policy's own refusals, whose words hold no contents, into answers."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, (ValueError, TypeError, OverflowError)):
            ours = _is_ours(error) and "array element" not in str(error)
            detail = str(error) if ours else "contexts must be nested lists of numbers, of equal lengths"
            raise _unprocessable(detail) from None


def _is_ours(error: BaseException) -> bool:
    """Whether this package wrote the words: those of NumPy might quote a value."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is not None and str(frame.tb_frame.f_globals.get("__name__", "")).startswith("fliphat.")


# Answers


def json_answer(decided: Decision | Sequence[Decisions | Decision]) -> bytes:
    """Return decisions as JSON; ids are text, because not every reader of JSON keeps 64 bits."""
    if isinstance(decided, Decision):
        identity, arm, valid, episode, chance = decided
        return b'{"id":"%d","arm":%s,"valid":%s,"episode":%d,"probability":%s}' % (
            identity,
            b"%d" % arm if isinstance(arm, int) else json.dumps(arm).encode(),
            b"true" if valid else b"false",
            episode,
            _number(chance),
        )
    columns: dict[str, list[Any]] = {
        name: [] for name in ("ids", "arms", "valid", "episodes", "probabilities")
    }
    for part in decided:
        if isinstance(part, Decision):
            every: list[list[Any]] = [[one] for one in part]
        else:
            episodes = [part.episode] * len(part)
            arrays = part.ids, part.arms, part.valid, part.probabilities
            every = [array.tolist() for array in arrays]
            every.insert(3, episodes)
        ids, arms, were_valid, in_episodes, chances = every
        columns["ids"] += map(str, ids)
        columns["arms"] += arms
        columns["valid"] += were_valid
        columns["episodes"] += in_episodes
        columns["probabilities"] += [None if math.isnan(one) else one for one in chances]
    return json.dumps(columns, separators=(",", ":")).encode()


def compact_answer(
    decided: Decision | Sequence[Decisions | Decision], numbers: Mapping[Any, int] | None = None
) -> bytes:
    """Return decisions as records of :data:`ANSWER`; `numbers` stand for ids of arms, if arms have ids."""
    if isinstance(decided, Decision):
        identity, arm, valid, episode, chance = decided
        return _ONE_ANSWER.pack(identity, numbers[arm] if numbers else arm, episode, valid, chance)
    sizes = [len(one) if isinstance(one, Decisions) else 1 for one in decided]
    records, at = np.zeros(sum(sizes), ANSWER), 0
    for one, size in zip(decided, sizes, strict=True):
        part = records[at : at + size]
        if isinstance(one, Decisions):
            part["id"], part["valid"] = one.ids, one.valid
            part["arm"] = [numbers[arm] for arm in one.arms.tolist()] if numbers else one.arms
            part["episode"], part["probability"] = one.episode, one.probabilities
        else:
            arm = numbers[one.arm] if numbers else one.arm
            part[0] = (one.id, arm, one.episode, one.valid, one.probability)
        at += size
    return records.tobytes()


def _number(value: float) -> bytes:
    return b"null" if math.isnan(value) else repr(value).encode()


# What a client sends


def compact_rounds(
    contexts: Any, *, arms: int | None = None, users: Any = None, keys: Any = None, single: bool | None = None
) -> bytes:
    """Return contexts as a compact body.

    Parameters
    ----------
    contexts : ndarray, shape (K, dim) or (n, K, dim), or SciPy CSR, shape (n * K, dim)
        Or (dim,) and (n, dim), where one row is for all arms.
    arms : int, optional
        K, of a batch of CSR contexts; without it they are one round.
    users, keys : optional
        One value for a single round, a sequence for a batch.
    single : bool, optional
        Whether it is one round. By default an array of two dimensions is.

    Examples
    --------
    >>> body = compact_rounds(np.ones((3, 4), np.float32), keys="a")
    >>> read_rounds(body, True, dim=4).contexts.shape
    (3, 4)
    >>> body = compact_rounds(np.ones((3, 4), np.float32), single=False)
    >>> read_rounds(body, True, dim=4, depth=1).contexts.shape
    (3, 4)
    """
    sparse = hasattr(contexts, "indptr")
    values = np.asarray(contexts.data if sparse else contexts)
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    if sparse:
        single = arms is None if single is None else single
        rows, dim = contexts.shape
        per_round = arms if arms is not None else rows if single else 0
        n = rows // (per_round or 1)
        parts = [contexts.indptr.astype("<i8"), contexts.indices.astype("<i4"), values]
    else:
        single = values.ndim <= 2 if single is None else single
        own = values.ndim - (not single)
        if own not in (1, 2):
            raise ValueError(f"contexts must have 1 or 2 dimensions for each round, got {own}")
        n = 1 if single else len(values)
        per_round = values.shape[-2] if own == 2 else 0
        dim, parts = values.shape[-1], [values]
    named = {"user": users, "key": keys} if single else {"users": users, "keys": keys}
    given = {name: _listed(value) for name, value in named.items() if value is not None}
    names = json.dumps(given).encode() if given else b""
    names += b" " * (-len(names) % 8)
    width = values.dtype.itemsize
    head = _HEAD.pack(_MAGIC, _CSR if sparse else _DENSE, width, single, 0, n, per_round, dim, len(names))
    little = [np.ascontiguousarray(part, part.dtype.newbyteorder("<")).tobytes() for part in parts]
    return b"".join((head, names, *little))


def _listed(value: Any) -> Any:
    return value if isinstance(value, (str, int)) else list(value)


def compact_rewards(ids: Any, rewards: Any) -> bytes:
    """Return rewards of several decisions as a compact body.

    Examples
    --------
    >>> read_rewards(compact_rewards([1, 2], [0.5, 1.0]), True).rewards
    [0.5, 1.0]
    """
    numbers = np.asarray(ids, "<i8"), np.asarray(rewards, "<f8")
    head = _HEAD.pack(_MAGIC, _REWARDS, 8, 0, 0, len(numbers[0]), 0, 0, 0)
    return head + numbers[0].tobytes() + numbers[1].tobytes()
