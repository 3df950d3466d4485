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
from fliphat.contexts import Crossed
from fliphat.kernels import _rows
from fliphat.policies.engine.composed import CrossedByEstimate, Ragged, stacked
from fliphat.policies.types import Decision, Decisions

__all__ = [
    "DIGEST_BYTES",
    "SECRET_BYTES",
    "Contexts",
    "arm_ids",
    "arms_of_batch",
    "checked_reward",
    "digest",
    "identities",
    "identity",
    "is_frame",
    "is_nested",
    "kind_of",
    "many_rounds",
    "one_round",
    "usable_rewards",
]

DIGEST_BYTES = 16
SECRET_BYTES = 32

#: Rows of all arms of all rounds: a dense matrix, the arrays of a sparse one, or what is played in parts.
Contexts: TypeAlias = npt.NDArray[Any] | _rows.Sparse | Crossed | CrossedByEstimate | Ragged

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def one_round(contexts: Any, dim: int) -> tuple[Contexts, int]:
    """Return the contexts of one round, shape (K, dim), and K."""
    if isinstance(contexts, Crossed):
        if contexts.is_batch:
            raise ValueError(
                "contexts.shared must have one dimension for one round: select_batch plays several"
            )
        return _crossed(contexts, dim), contexts.arms
    if _rows.is_sparse(contexts):
        sparse = _sparse(contexts, dim)
        return sparse, sparse.shape[0]
    dense = _rows.dense_rows("contexts", _context_numbers(contexts), 2, copy=True)
    _check_shape(dense.shape, dim, "(K, dim)")
    return dense, dense.shape[0]


def many_rounds(
    contexts: Any, dim: int, arms: int | None
) -> tuple[Contexts, int, int | npt.NDArray[np.int64]]:
    """Return the contexts of n rounds as rows, n, and K (of each round, if they differ)."""
    if isinstance(contexts, Crossed):
        return _crossed(contexts, dim), contexts.rounds, contexts.arms
    if isinstance(contexts, (list, tuple)) and _is_ragged(contexts):
        return _ragged(contexts, dim)
    if is_frame(contexts):
        rows = _frame_numbers(contexts)
        _check_shape(rows.shape, dim, "(n * K, dim)")
        count = _rounds_of(len(rows), arms, "a DataFrame")
        return np.ascontiguousarray(rows), len(rows) // count, count
    if _rows.is_sparse(contexts):
        sparse = _sparse(contexts, dim)
        count = _rounds_of(sparse.shape[0], arms, "CSR contexts")
        return sparse, sparse.shape[0] // count, count
    if arms is not None:
        raise ValueError("arms is only for CSR contexts: a dense array's shape says how many arms it has")
    dense = _rows.dense_rows("contexts", _context_numbers(contexts), 3, copy=True)
    _check_shape(dense.shape, dim, "(n, K, dim)")
    return dense.reshape(-1, dim), dense.shape[0], dense.shape[1]


def _rounds_of(rows: int, arms: int | None, what: str) -> int:
    """Return arms a round, of rows that are groups of so many."""
    if arms is None:
        raise ValueError(f"arms must be given for {what}: rounds are groups of that many rows")
    count = arguments.integer("arms", arms, 1, rows)
    if rows % count:
        raise ValueError(f"contexts must have a multiple of arms = {count} rows, got {rows}")
    return count


def _crossed(contexts: Crossed, dim: int) -> Crossed:
    if contexts.dim != dim:
        raise ValueError(
            f"contexts must have dim = {dim} columns, got {contexts.shared.shape[-1]} shared features times "
            f"{contexts.actions.shape[-1]} of an arm"
        )
    return contexts


def _is_ragged(contexts: Sequence[Any]) -> bool:
    """Whether a list holds a matrix for each round, perhaps with different numbers of arms."""
    if any(_rows.is_sparse(one) or is_frame(one) for one in contexts):
        return True
    lengths = {len(one) for one in contexts if isinstance(one, (list, tuple, np.ndarray))}
    return len(lengths) > 1


def _ragged(contexts: Sequence[Any], dim: int) -> tuple[Contexts, int, int | npt.NDArray[np.int64]]:
    checked = [one_round(one, dim) for one in contexts]
    rounds = [one for one, _ in checked]
    if len({isinstance(one, _rows.Sparse) for one in rounds}) > 1:
        raise TypeError("contexts must be all dense or all CSR, got some of each")
    arms = np.array([count for _, count in checked], np.int64)
    if len(set(arms.tolist())) == 1:
        return stacked(rounds), len(rounds), int(arms[0])
    return Ragged(rounds, arms), len(rounds), arms  # type: ignore[arg-type]


def arm_ids(given: Any, arms: int) -> list[Any]:
    """Return the ids of a round's arms: str or int, one for each, all different."""
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)):
        raise TypeError(f"arms must be a sequence of ids, one for each arm, got {type(given).__name__}")
    ids = [one.item() if isinstance(one, np.generic) else one for one in given]
    for one in ids:
        if isinstance(one, bool) or not isinstance(one, (str, int)):
            raise TypeError(f"arms must hold ids that are str or int, got {type(one).__name__}")
    if len(ids) != arms or len(set(ids)) != arms:
        raise ValueError(f"arms must hold {arms} different ids, one for each row of contexts, got {len(ids)}")
    return ids


def is_nested(given: Any) -> bool:
    """Whether ids are given for each round, as sequences of their own."""
    return any(isinstance(one, (list, tuple, np.ndarray)) for one in given)


def arms_of_batch(given: Any, contexts: Any) -> tuple[int | None, Any]:
    """Return arms a round, where contexts do not say it, and ids of arms, where some were given."""
    if given is None or (not isinstance(given, bool) and hasattr(given, "__index__")):
        return given, None
    if not isinstance(given, (Sequence, np.ndarray)) or isinstance(given, (str, bytes)) or not len(given):
        raise TypeError(f"arms must be a number or a sequence of ids, got {type(given).__name__}")
    says = not (_rows.is_sparse(contexts) or is_frame(contexts))
    return None if says else len(given[0] if is_nested(given) else given), given


def is_frame(contexts: Any) -> bool:
    """Whether these are a pandas DataFrame, without importing pandas."""
    return type(contexts).__module__.partition(".")[0] == "pandas" and hasattr(contexts, "columns")


def _frame_numbers(frame: Any) -> npt.NDArray[Any]:
    """Return the numbers of a DataFrame; what is missing becomes NaN, as contents do."""
    for name, kind in zip(frame.columns, frame.dtypes, strict=True):
        if getattr(kind, "kind", "O") not in "fiub":
            raise TypeError(f"contexts must have numeric columns, got column {name!r} of dtype {kind}")
    single = all(kind == np.float32 for kind in frame.dtypes)
    found: npt.NDArray[Any] = frame.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    return found


def _context_numbers(contexts: Any) -> Any:
    """Return nested lists as an array of floats; an element that is no number becomes NaN, as contents do.

    Arrays are left as they are, but for integers: their dtype is structure.
    """
    if is_frame(contexts):
        return _frame_numbers(contexts)
    if isinstance(contexts, np.ndarray) and contexts.dtype.kind in "iub":
        return contexts.astype(np.float64)
    if not isinstance(contexts, (list, tuple)):
        return contexts
    array = np.asarray(contexts)
    if array.dtype in (_FLOAT32, _FLOAT64):
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
