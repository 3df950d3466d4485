"""What callers hand in, checked for structure: contexts, decisions, rewards, user ids, keys.

A wrong structure raises and nothing happens. What contexts and rewards hold is contents: a value that can't
be used is one round or one reward that is not learned from, never an error of a batch. Messages name
arguments, shapes and dtypes, never a value. User ids and keys are kept as keyed digests: counting and retries
need equality, not names.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.kernels import _rows
from fliphat.policies.types import Decision, Decisions

__all__ = [
    "DIGEST_BYTES",
    "SECRET_BYTES",
    "Contexts",
    "checked_reward",
    "digest",
    "identities",
    "identity",
    "kind_of",
    "many_rounds",
    "one_round",
    "usable_rewards",
]

DIGEST_BYTES = 16
SECRET_BYTES = 32

#: Rows of all arms of all rounds: a dense matrix, or the arrays of a sparse one.
Contexts: TypeAlias = npt.NDArray[Any] | _rows.Sparse

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def one_round(contexts: Any, dim: int) -> tuple[Contexts, int]:
    """Return the contexts of one round, shape (K, dim), and K."""
    if type(contexts) is np.ndarray:
        shape = contexts.shape
        if (
            len(shape) == 2
            and shape[1] == dim
            and shape[0]
            and contexts.dtype in _FLOATS
            and contexts.flags.carray
        ):
            return contexts, shape[0]  # the common case, without another look
    if _rows.is_sparse(contexts):
        sparse = _sparse(contexts, dim)
        return sparse, sparse.shape[0]
    dense = _rows.dense_rows("contexts", _context_numbers(contexts), 2, copy=True)
    _check_shape(dense.shape, dim, "(K, dim)")
    return dense, dense.shape[0]


def many_rounds(contexts: Any, dim: int, arms: int | None) -> tuple[Contexts, int, int]:
    """Return the contexts of n rounds as rows, n, and K."""
    if _rows.is_sparse(contexts):
        if arms is None:
            raise ValueError("arms must be given for CSR contexts: rounds are groups of that many rows")
        sparse = _sparse(contexts, dim)
        count = arguments.integer("arms", arms, 1, sparse.shape[0])
        if sparse.shape[0] % count:
            raise ValueError(f"contexts must have a multiple of arms = {count} rows, got {sparse.shape[0]}")
        return sparse, sparse.shape[0] // count, count
    if arms is not None:
        raise ValueError("arms is only for CSR contexts: a dense array's shape says how many arms it has")
    dense = _rows.dense_rows("contexts", _context_numbers(contexts), 3, copy=True)
    _check_shape(dense.shape, dim, "(n, K, dim)")
    return dense.reshape(-1, dim), dense.shape[0], dense.shape[1]


def _context_numbers(contexts: Any) -> Any:
    """Return nested lists as an array of floats; an element that is no number becomes NaN, as contents do.

    Arrays are left as they are: their dtype is structure.
    """
    if not isinstance(contexts, (list, tuple)):
        return contexts
    array = np.asarray(contexts)
    if array.dtype in _FLOATS:
        return array
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    # Python's own numbers one by one: a single None, text or huge integer changes the dtype of all.
    array = np.asarray(contexts, object)
    if any(isinstance(one, (list, tuple)) for one in array.flat):
        raise ValueError("contexts must be an array or nested lists of equal lengths")
    return np.array([_context_number(one) for one in array.flat], np.float64).reshape(array.shape)


def _context_number(value: Any) -> float:
    if not hasattr(value, "__float__") or isinstance(value, (str, bytes)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _sparse(contexts: Any, dim: int) -> _rows.Sparse:
    sparse = _rows.sparse_rows("contexts", contexts)
    _check_shape(sparse.shape, dim, "(rows, dim)")
    indptr = sparse.indptr
    # A matrix whose own offsets are broken has no rounds that could be told apart.
    if indptr[0] != 0 or indptr[-1] > len(sparse.data) or bool((indptr[1:] < indptr[:-1]).any()):
        raise ValueError("contexts.indptr must start at 0, never decrease and end within contexts.data")
    if len(sparse.indices) != len(sparse.data):
        raise ValueError("contexts.indices and contexts.data must have the same length")
    return sparse


def _check_shape(shape: tuple[int, ...], dim: int, wanted: str) -> None:
    if shape[-1] != dim or 0 in shape:
        raise ValueError(
            f"contexts must have shape {wanted} with dim = {dim} and at least one arm, got shape {shape}"
        )


def checked_reward(reward: Any, loss: str) -> float:
    """Return a finite number, 0 or 1 for the logistic loss."""
    number = reward if type(reward) is float else _reward_number(reward, loss)
    if not math.isfinite(number):
        raise ValueError("reward must be a finite number")
    if loss == "logistic" and number not in (0.0, 1.0):
        raise ValueError("reward must be 0 or 1 for loss='logistic'")
    return number


def usable_rewards(
    rewards: Any, count: int, loss: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return `count` numbers and which are such rewards; the others are contents, and do not raise.

    The numbers are a copy: another thread may write to the caller's array after they were looked at.
    """
    if isinstance(rewards, np.ndarray) and rewards.dtype != object:
        given = _rows.plain_array("rewards", rewards)
        if given.dtype == np.bool_ and loss != "logistic":
            raise TypeError("rewards must hold real numbers, got dtype bool")
        numbers = _rows.vector("rewards", given, count, ", one reward for each decision").copy()
    else:
        numbers = _reward_numbers(rewards, count, loss)
    return numbers, np.isin(numbers, (0.0, 1.0)) if loss == "logistic" else np.isfinite(numbers)


def identity(decision: Any) -> int:
    """Return the id of a decision or of an id."""
    if isinstance(decision, Decision):
        return decision.id
    if isinstance(decision, bool) or not hasattr(decision, "__index__"):
        raise TypeError(f"decision must be a Decision or its id, got {type(decision).__name__}")
    return int(decision.__index__())


def identities(decisions: Any) -> list[int]:
    """Return the ids of several decisions."""
    if isinstance(decisions, Decisions):
        return [int(one) for one in decisions.ids.tolist()]
    if not isinstance(decisions, Iterable) or isinstance(decisions, (str, bytes, Decision)):
        raise TypeError(
            f"decisions must be Decisions or a sequence of Decision or ids, got {type(decisions).__name__}"
        )
    return [identity(one) for one in decisions]


def _reward_numbers(rewards: Any, count: int, loss: str) -> npt.NDArray[np.float64]:
    """Return each element as a number, NaN for one that is none: it must not decide about the others."""
    if not isinstance(rewards, Sequence) or isinstance(rewards, (str, bytes)):
        rewards = _rows.plain_array("rewards", rewards)
        if rewards.ndim != 1:
            raise ValueError(
                f"rewards must have shape ({count},), one reward for each decision, got shape {rewards.shape}"
            )
    if len(rewards) != count:
        raise ValueError(
            f"rewards must have shape ({count},), one reward for each decision, got {len(rewards)} of them"
        )
    numbers = np.full(count, np.nan)
    for i, reward in enumerate(rewards):
        if type(reward) is float:
            numbers[i] = reward
        else:
            with contextlib.suppress(TypeError, ValueError):
                numbers[i] = _reward_number(reward, loss)
    return numbers


def _reward_number(reward: Any, loss: str) -> float:
    is_bool = isinstance(reward, (bool, np.bool_))
    if (is_bool and loss != "logistic") or not hasattr(reward, "__float__"):
        raise TypeError(f"reward must be a real number, got {type(reward).__name__}")
    number = math.nan
    # Raised outside the handler: Python's own message quotes the value, and would hang on as context.
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        number = float(reward)
    if math.isnan(number):
        raise ValueError("reward must be a finite number")
    return number


def kind_of(value: Any) -> str:
    """Return "str", "bytes" or "int": ids of one policy are all of one kind."""
    return "str" if isinstance(value, str) else "bytes" if isinstance(value, bytes) else "int"


def digest(name: str, value: Any, secret: bytes) -> bytes:
    """Return 16 bytes that stand for a str, an int or bytes; the same value of another type is another id.

    Two ids with the same digest would be counted as one user, which learns less and protects more; at 128
    bits it does not happen.
    """
    if isinstance(value, str):
        token = b"s" + value.encode("utf-8", "surrogatepass")
    elif isinstance(value, bytes):
        token = b"b" + value
    elif not isinstance(value, bool) and hasattr(value, "__index__"):
        token = b"i%d" % operator.index(value)
    else:
        raise TypeError(f"{name} must be a str, an int or bytes, got {type(value).__name__}")
    return hashlib.blake2b(token, digest_size=DIGEST_BYTES, key=secret, person=name.encode()).digest()
