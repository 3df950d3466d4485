"""Matrices of private rows, checked for structure once: dense in C order, or SciPy CSR.

Messages here name an argument, a rule, a shape or a dtype. They never contain a value of a row.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat import arguments

_MOST_THREADS = 256

Floats: TypeAlias = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sparse:
    """The arrays of a CSR matrix. Columns are checked by the kernel, in its one pass."""

    indptr: Indices
    indices: Indices
    data: Floats
    shape: tuple[int, int]


def native(rows: Floats | Sparse) -> Any:
    """Return rows as the native functions take them."""
    if isinstance(rows, Sparse):
        return rows.indptr, rows.indices, rows.data, rows.shape[1]
    return rows


def is_sparse(x: object) -> bool:
    """Whether ``x`` is a SciPy sparse matrix or array, without importing SciPy's sparse module."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(x))


def sparse_rows(name: str, x: Any) -> Sparse:
    """Return the arrays of a CSR matrix, uncopied."""
    if x.format != "csr":
        raise TypeError(f"{name} must be a CSR matrix, got format {x.format!r} ({name}.tocsr() converts it)")
    if x.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got shape {x.shape}")
    _require_float(f"{name}.data", x.data)
    for part in ("indptr", "indices"):
        if getattr(x, part).dtype not in (np.int32, np.int64):
            raise TypeError(f"{name}.{part} must be int32 or int64, got {getattr(x, part).dtype}")
    indptr, indices = x.indptr, x.indices
    if indptr.dtype != indices.dtype:
        indptr = indptr.astype(indices.dtype)
    rows, columns = x.shape
    parts = (indptr, indices, x.data)
    if any(part.ndim != 1 for part in parts) or len(indptr) != rows + 1:
        raise ValueError(f"{name}.indptr must have one entry more than {name} has rows")
    indptr, indices, data = (np.ascontiguousarray(part) for part in parts)
    return Sparse(indptr, indices, data, (int(rows), int(columns)))


def dense_rows(name: str, x: object, *dimensions: int, copy: bool) -> Floats:
    """Return a dense float array in C order; ``copy`` says whether another layout is copied or refused."""
    array = plain_array(name, x)
    _require_float(name, array)
    if array.ndim not in dimensions:
        wanted = " or ".join(str(dimension) for dimension in dimensions)
        raise ValueError(f"{name} must have {wanted} dimensions, got shape {array.shape}")
    if not (array.flags.c_contiguous and array.flags.aligned):
        if not copy:
            raise ValueError(
                f"{name} must be aligned and in C order, because it is never copied "
                f"(np.ascontiguousarray({name}) makes it so)"
            )
        array = np.array(array, order="C")
    return array


def plain_array(name: str, x: object) -> npt.NDArray[Any]:
    """Return ``x`` as an ndarray; a mask would be silently lost, so masked arrays are refused."""
    if type(x) is np.ndarray:
        return x
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array: its mask would be ignored")
    return np.asarray(x)


def in_place(array: npt.NDArray[Any], dtype: type[np.generic]) -> bool:
    """Whether kernels can read an array as it is: the common case, which NumPy takes long to find out."""
    return bool(array.dtype == dtype and array.flags.carray)


def vector(name: str, x: object, length: int | None, of: str = "") -> npt.NDArray[np.float64]:
    """Return ``x`` as a float64 vector, of ``length`` if given."""
    array = plain_array(name, x)
    shaped = array.ndim == 1 and (length is None or len(array) == length)
    if shaped and in_place(array, np.float64):
        return array
    # Checked before the conversion, whose own message would quote the value it can't convert.
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if not shaped:
        wanted = "one dimension" if length is None else f"shape ({length},){of}"
        raise ValueError(f"{name} must have {wanted}, got shape {array.shape}")
    with np.errstate(over="ignore"):  # a long double beyond float64: refused as not finite by the kernel
        return np.require(array, np.float64, ["C", "A"])


def integers(name: str, x: object) -> npt.NDArray[np.int64]:
    """Return ``x``, which must hold integers, as an int64 vector; messages never contain an element."""
    try:
        array = plain_array(name, x)
    except (ValueError, OverflowError):
        # NumPy's own message may quote an element.
        array = np.empty(1, object)
    if array.ndim == 1 and in_place(array, np.int64):
        return array
    if array.size and not (array.dtype.kind in "iu" and np.can_cast(array.dtype, np.int64)):
        raise TypeError(f"{name} must be an array of integers that fit int64, got dtype {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    return np.require(array, np.int64, ["C", "A"])


def matrix(name: str, x: Any) -> Floats | Sparse:
    """Return rows that are not empty, dense or CSR, uncopied."""
    rows = sparse_rows(name, x) if is_sparse(x) else dense_rows(name, x, 2, copy=False)
    nonempty(name, rows.shape)
    return rows


def flags(present: object, n: int) -> npt.NDArray[np.uint8] | None:
    """Return the flags of rows with a reward as bytes, one for each of `n` rows; None means all of them."""
    if present is None:
        return None
    given = plain_array("present", present)
    if given.dtype != np.bool_:
        raise TypeError(f"present must be an array of bool, got dtype {given.dtype}")
    if given.shape != (n,):
        raise ValueError(f"present must have shape ({n},), one flag for each row, got shape {given.shape}")
    return np.ascontiguousarray(given).view(np.uint8)


def thread_count(threads: int | None) -> int | None:
    """Return how many threads work; None leaves it to the kernel."""
    return None if threads is None else arguments.integer("threads", threads, 1, _MOST_THREADS)


def nonempty(name: str, shape: tuple[int, ...]) -> None:
    """Refuse a matrix without rows, arms or columns."""
    if 0 in shape:
        raise ValueError(f"{name} must have at least one row and one column, got shape {shape}")


def _require_float(name: str, array: npt.NDArray[Any]) -> None:
    if array.dtype.char not in "fd" or not array.dtype.isnative:
        raise TypeError(f"{name} must be float32 or float64 in native byte order, got {array.dtype}")
