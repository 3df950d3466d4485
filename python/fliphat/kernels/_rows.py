"""Matrices of private rows, checked for structure once: dense in C order, or SciPy CSR.

Messages here name an argument, a rule, a shape or a dtype. They never contain a value of a row.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

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


def nonempty(name: str, shape: tuple[int, ...]) -> None:
    """Refuse a matrix without rows, arms or columns."""
    if 0 in shape:
        raise ValueError(f"{name} must have at least one row and one column, got shape {shape}")


def _require_float(name: str, array: npt.NDArray[Any]) -> None:
    if array.dtype.char not in "fd" or not array.dtype.isnative:
        raise TypeError(f"{name} must be float32 or float64 in native byte order, got {array.dtype}")
