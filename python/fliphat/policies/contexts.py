"""Contexts of rounds, checked for structure: shape, dtype, format. What they hold is the kernel's business.

A wrong structure raises and no round happens. Messages name shapes and dtypes, never a value.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat import _check
from fliphat.kernels import _rows

__all__ = ["Contexts", "many_rounds", "one_round"]

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
    dense = _rows.dense_rows("contexts", _numbers(contexts), 2, copy=True)
    _check_shape(dense.shape, dim, "(K, dim)")
    return dense, dense.shape[0]


def many_rounds(contexts: Any, dim: int, arms: int | None) -> tuple[Contexts, int, int]:
    """Return the contexts of n rounds as rows, n, and K."""
    if _rows.is_sparse(contexts):
        if arms is None:
            raise ValueError("arms must be given for CSR contexts: rounds are groups of that many rows")
        sparse = _sparse(contexts, dim)
        count = _check.integer("arms", arms, 1, sparse.shape[0])
        if sparse.shape[0] % count:
            raise ValueError(f"contexts must have a multiple of arms = {count} rows, got {sparse.shape[0]}")
        return sparse, sparse.shape[0] // count, count
    if arms is not None:
        raise ValueError("arms is only for CSR contexts: a dense array's shape says how many arms it has")
    dense = _rows.dense_rows("contexts", _numbers(contexts), 3, copy=True)
    _check_shape(dense.shape, dim, "(n, K, dim)")
    return dense.reshape(-1, dim), dense.shape[0], dense.shape[1]


def _numbers(contexts: Any) -> Any:
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
    return np.array([_number(one) for one in array.flat], np.float64).reshape(array.shape)


def _number(value: Any) -> float:
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
