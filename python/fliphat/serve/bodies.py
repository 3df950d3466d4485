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
| 4, 4, 4 | n rounds or rewards, arms K, dim (zeros for rewards) |
| 4 | length of the names, a multiple of 8 |
| names | JSON, padded with spaces: ``{"user", "key"}`` of a single round, ``{"users", "keys"}`` of a batch |
| arrays of contexts | dense: n * K * dim values; CSR: n * K + 1 offsets (int64), columns (int32), values |
| arrays of rewards | ids (int64), rewards (float64) |

Its answer to contexts is one record a round, :data:`ANSWER`.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.policies.engine import inputs
from fliphat.policies.types import Decision, Decisions

try:  # a server reads JSON all day; a client alone does without
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment, unused-ignore]


__all__ = [
    "ANSWER",
    "COMPACT",
    "Refusal",
    "Rewards",
    "Rounds",
    "compact_answer",
    "compact_rewards",
    "compact_rounds",
    "json_answer",
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


@dataclass(frozen=True, slots=True)
class Rounds:
    """Rounds that a client wants to be played.

    Attributes
    ----------
    contexts : ndarray, shape (K, dim) or (n, K, dim), or CSR, shape (n * K, dim)
    arms : int or None
        K, of CSR contexts.
    single : bool
        Whether it is one round, and one decision is the answer.
    users, keys : list or None
        One for each round.
    """

    contexts: Any
    arms: int | None
    single: bool
    users: list[Any] | None
    keys: list[Any] | None
    count: int


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


def read_rounds(body: bytes, compact: bool, dim: int, dtype: str = "float32") -> Rounds:
    """Return the rounds of a body of ``/select``, with a structure that the policy will take.

    Numbers in JSON are read as the `dtype` that the policy keeps.
    """
    if compact:
        return _compact_rounds(body, dim)
    record = _record(body, _SELECT_NAMES)
    contexts = record.get("contexts")
    if not isinstance(contexts, list) or not contexts or not isinstance(contexts[0], list):
        raise _unprocessable("contexts must be a list of one list for each arm, or of rounds of such lists")
    single = not (contexts[0] and isinstance(contexts[0][0], list))
    users, keys = _names(record, 1 if single else len(contexts), single)
    with _saying_what_is_wrong():
        if single:
            return Rounds(_kept(inputs.one_round(contexts, dim)[0], dtype), None, True, users, keys, 1)
        rows, count, arms = inputs.many_rounds(contexts, dim, None)
    return Rounds(_kept(rows, dtype).reshape(count, arms, dim), None, False, users, keys, count)


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


def _identity(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63:
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _LONGEST_ID:
        return int(value)
    raise _unprocessable("id must be one that /select answered with, as text or an integer")


def _compact_rounds(body: bytes, dim: int) -> Rounds:
    kind, width, single, n, arms, columns, names, at = _compact_head(body)
    if kind not in (_DENSE, _CSR):
        raise _unprocessable("the compact body of /select must hold contexts")
    if columns != dim:
        raise _unprocessable(f"contexts must have dim = {dim} columns, got {columns}")
    if n < 1 or arms < 1 or (single and n != 1):
        raise _unprocessable("contexts must have at least one round and one arm, and a single round is one")
    users, keys = _names(names, n, single)
    values, left = np.dtype(f"<f{width}"), len(body) - at
    if kind == _DENSE:
        if left != n * arms * columns * width:
            raise _wrong_size()
        dense = np.frombuffer(body, values, n * arms * columns, at).copy()
        shape = (arms, columns) if single else (n, arms, columns)
        return Rounds(dense.reshape(shape), None, single, users, keys, n)
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
    return Rounds(matrix, arms, single, users, keys, n)


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
            detail = str(error) if _is_ours(error) else "contexts must be numbers of one shape"
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
        return b'{"id":"%d","arm":%d,"valid":%s,"episode":%d,"probability":%s}' % (
            decided.id,
            decided.arm,
            b"true" if decided.valid else b"false",
            decided.episode,
            _number(decided.probability),
        )
    records = _records(decided)
    columns = {
        "ids": [str(one) for one in records["id"].tolist()],
        "arms": records["arm"].tolist(),
        "valid": records["valid"].astype(bool).tolist(),
        "episodes": records["episode"].tolist(),
        "probabilities": [None if math.isnan(one) else one for one in records["probability"].tolist()],
    }
    return json.dumps(columns, separators=(",", ":")).encode()


def compact_answer(decided: Decision | Sequence[Decisions | Decision]) -> bytes:
    """Return decisions as records of :data:`ANSWER`."""
    if isinstance(decided, Decision):
        return _ONE_ANSWER.pack(decided.id, decided.arm, decided.episode, decided.valid, decided.probability)
    return _records(decided).tobytes()


def _records(decided: Sequence[Decisions | Decision]) -> npt.NDArray[Any]:
    sizes = [len(one) if isinstance(one, Decisions) else 1 for one in decided]
    records, at = np.zeros(sum(sizes), ANSWER), 0
    for one, size in zip(decided, sizes, strict=True):
        part = records[at : at + size]
        if isinstance(one, Decisions):
            part["id"], part["arm"], part["valid"] = one.ids, one.arms, one.valid
            part["episode"], part["probability"] = one.episode, one.probabilities
        else:
            part[0] = (one.id, one.arm, one.episode, one.valid, one.probability)
        at += size
    return records


def _number(value: float) -> bytes:
    return b"null" if math.isnan(value) else repr(value).encode()


# What a client sends


def compact_rounds(contexts: Any, *, arms: int | None = None, users: Any = None, keys: Any = None) -> bytes:
    """Return contexts as a compact body.

    Parameters
    ----------
    contexts : ndarray, shape (K, dim) or (n, K, dim), or SciPy CSR, shape (n * K, dim)
    arms : int, optional
        K, of a batch of CSR contexts; without it they are one round.
    users, keys : optional
        One value for a single round, a sequence for a batch.

    Examples
    --------
    >>> body = compact_rounds(np.ones((3, 4), np.float32), keys="a")
    >>> read_rounds(body, True, dim=4).contexts.shape
    (3, 4)
    """
    sparse = hasattr(contexts, "indptr")
    values = np.asarray(contexts.data if sparse else contexts)
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    if sparse:
        single = arms is None
        rows, dim = contexts.shape
        per_round = rows if arms is None else arms
        n = rows // per_round if per_round else 0
        parts = [contexts.indptr.astype("<i8"), contexts.indices.astype("<i4"), values]
    else:
        single = values.ndim == 2
        n, per_round, dim = (1, *values.shape) if single else values.shape
        parts = [values]
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
