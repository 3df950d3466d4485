"""The compact form of contexts, little endian: for large ones, and for CSR, which JSON has no form for.

| bytes | what |
|---|---|
| 4 | ``FHB1`` |
| 1 | kind: 1 dense, 2 CSR |
| 1 | bytes of a value: 4 or 8 |
| 1 | 1 for a single round, 0 for a batch |
| 1 | zero |
| 4, 4, 4 | n rounds, arms K (0: one row for all arms), dim |
| 4 | length of the names, a multiple of 8 |
| names | JSON, padded with spaces: ``{"user", "key"}`` of a single round, ``{"users", "keys"}`` of a batch |
| arrays | dense: n * K * dim values; CSR: n * K + 1 offsets (int64), columns (int32), values |

Answers, and rewards, are JSON: a compact form of those saves less than a fifth of a request.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.serve.bodies import Rounds, names_of, read_record
from fliphat.serve.refusal import malformed, too_many, unprocessable

__all__ = ["COMPACT", "read_rounds", "write_rounds"]

#: The media type of the compact form.
COMPACT: Final = "application/vnd.fliphat"

_MAGIC: Final = b"FHB1"
_HEAD = struct.Struct("<4sBBBBIIII")
_DENSE, _CSR = 1, 2
_NAMES: Final = frozenset(("user", "key", "users", "keys"))


def read_rounds(body: bytes, dim: int, depth: int = 2, most: int = 2**31) -> Rounds:
    """Return the rounds of a compact body; see :func:`fliphat.serve.bodies.read_rounds`."""
    kind, width, single, n, arms, columns, names, at = _head(body, most)
    if kind not in (_DENSE, _CSR):
        raise unprocessable("the compact body of /select must hold contexts")
    if columns != dim:
        raise unprocessable(f"contexts must have dim = {dim} columns, got {columns}")
    if depth == 1:
        if arms > 1:
            raise unprocessable(f"contexts must have one row for all arms, got {arms} rows a round")
        arms = 1
    if n < 1 or arms < 1 or (single and n != 1):
        raise unprocessable("contexts must have at least one round and one arm, and a single round is one")
    users, keys = names_of(names, n, single) if names else (None, None)
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
        raise unprocessable(f"columns must be from 0 to dim - 1 = {shape[1] - 1}")
    return csr_array((values, columns, indptr), shape=shape)


def _head(body: bytes, most: int) -> tuple[int, int, bool, int, int, int, dict[str, Any], int]:
    if len(body) < _HEAD.size:
        raise malformed("the compact body is shorter than its head")
    magic, kind, width, single, zero, n, arms, dim, length = _HEAD.unpack_from(body)
    if magic != _MAGIC or width not in (4, 8) or single > 1 or zero or length % 8:
        raise malformed("the head of the compact body is not one that this version reads")
    at = _HEAD.size + length
    if len(body) < at:
        raise _wrong_size()
    if n > most:
        raise too_many(most)
    names = read_record(body[_HEAD.size : at], _NAMES, most) if length else {}
    return kind, width, bool(single), n, arms, dim, names, at


def _wrong_size() -> Exception:
    return malformed("the compact body has not the size that its head says")


# What a client sends


def write_rounds(
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
    >>> body = write_rounds(np.ones((3, 4), np.float32), keys="a")
    >>> read_rounds(body, dim=4).contexts.shape
    (3, 4)
    >>> body = write_rounds(np.ones((3, 4), np.float32), single=False)
    >>> read_rounds(body, dim=4, depth=1).contexts.shape
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
