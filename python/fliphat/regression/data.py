"""What estimators are given, turned into what kernels take: structure is checked, values are never shown.

Messages name an argument, a rule, a shape or a dtype, and no label of a row. Several are worded as
scikit-learn words them, because its users and its own checks look for these words.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.kernels._rows import is_sparse, plain_array
from fliphat.regression.sklearn_compat import DataConversionWarning

__all__ = [
    "as_rows",
    "as_target",
    "encode",
    "feature_names",
    "found_labels",
    "one_dimensional",
    "require_some",
    "two_classes",
    "with_constant",
]

#: Elements looked at together when values are checked: small enough for the cache.
_CHECKED_TOGETHER = 1 << 18


def as_rows(x: Any, *, finite: bool = True) -> Any:
    """Return `x` as a matrix that kernels accept; float32 and float64 in C order or CSR are not copied.

    With ``finite=False`` values are left for the kernel to refuse, which saves a pass over them.
    """
    if is_sparse(x):
        return _sparse(x, finite)
    array = plain_array("X", x)
    if not isinstance(x, np.ndarray) and array.dtype.kind == "f":
        # The type of a list is inferred from its values: one row must not decide how the others are rounded.
        array = array.astype(np.float64)
    if array.dtype.kind == "c":
        raise ValueError("X must hold real numbers: Complex data not supported")
    if array.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, got shape {array.shape}. Reshape your data: X.reshape(1, -1) is "
            f"one row, X.reshape(-1, 1) one feature"
        )
    require_some(array.shape)
    rows = np.ascontiguousarray(_floats("X", array))
    if finite:
        require_finite("X", rows)
    return rows


def _sparse(x: Any, finite: bool) -> Any:
    if x.ndim != 2:
        raise ValueError(f"sparse X must have two dimensions, got shape {x.shape}")
    if x.dtype.kind == "c":
        raise ValueError("X must hold real numbers: Complex data not supported")
    require_some(x.shape)
    rows = x.tocsr()
    if rows.data.dtype not in (np.float32, np.float64) or not rows.data.dtype.isnative:
        if rows.data.dtype.kind not in "fiub":
            raise TypeError(f"X must hold real numbers, got dtype {rows.data.dtype}")
        rows = rows.astype(np.float64)
    if not rows.has_canonical_format:
        # Kernels refuse repeated columns, which would be counted twice; what the caller holds stays as it is.
        rows = rows.copy()
        rows.sum_duplicates()
    if finite:
        require_finite("X", rows.data[: rows.nnz])
    return rows


def as_target(y: Any, rows: int, *, stacklevel: int = 6) -> npt.NDArray[np.float64]:
    """Return `y` as a finite float64 vector with one value for each of `rows` rows."""
    array = one_dimensional(y, rows, stacklevel=stacklevel)
    if array.dtype.kind == "c":
        raise ValueError("y must hold real numbers: Complex data not supported")
    target = np.ascontiguousarray(_floats("y", array), dtype=np.float64)
    require_finite("y", target)
    return target


def one_dimensional(y: Any, rows: int, *, stacklevel: int) -> npt.NDArray[Any]:
    """Return `y` as a vector of any dtype with one value for each of `rows` rows."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    if is_sparse(y):
        raise TypeError("y must be dense, got a sparse matrix")
    array = plain_array("y", y)
    if array.ndim == 2 and array.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; y.ravel() makes it one",
            DataConversionWarning,
            stacklevel=stacklevel,
        )
        array = array.ravel()
    if array.shape != (rows,):
        raise ValueError(f"y must have shape ({rows},), one value for each row of X, got shape {array.shape}")
    return array


def require_finite(name: str, values: npt.NDArray[Any]) -> None:
    """Refuse values that are NaN or infinite, a block at a time: no temporary as large as the data."""
    flat = values.reshape(-1)
    for start in range(0, flat.size, _CHECKED_TOGETHER):
        if not np.isfinite(flat[start : start + _CHECKED_TOGETHER]).all():
            raise ValueError(f"{name} must be finite: it holds NaN or inf")


def feature_names(x: Any) -> npt.NDArray[np.object_] | None:
    """Return the column names of a data frame, if all of them are strings."""
    columns = getattr(x, "columns", None)
    if columns is None or callable(columns):
        return None
    names = list(columns)
    if not names or not all(isinstance(name, str) for name in names):
        return None
    return np.array(names, dtype=object)


def with_constant(rows: Any, value: float) -> Any:
    """Return a copy of `rows` with one more column, the last, that holds `value` everywhere."""
    n, d = rows.shape
    if not is_sparse(rows):
        wider = np.empty((n, d + 1), rows.dtype)
        wider[:, :d] = rows
        wider[:, d] = value
        return wider
    # The constant is the last of its row, so every row keeps its order and grows by one entry.
    ends, entries = rows.indptr[1:], rows.nnz
    index = np.int64 if entries + n > np.iinfo(np.int32).max else rows.indices.dtype
    indices = np.insert(rows.indices[:entries].astype(index, copy=False), ends, d)
    data = np.insert(rows.data[:entries], ends, rows.data.dtype.type(value))
    indptr = rows.indptr.astype(index) + np.arange(n + 1, dtype=index)
    return type(rows)((data, indices, indptr), shape=(n, d + 1))


def require_some(shape: tuple[int, ...]) -> None:
    """Refuse a matrix without rows or without columns."""
    if shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    if shape[1] == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def _floats(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative:
        return array
    if array.dtype.kind not in "fiubO":
        # Only the kind: the dtype of strings has the length of the longest.
        raise ValueError(f"{name} must hold real numbers, got {array.dtype.type.__name__}")
    failure: Exception
    try:
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    except TypeError:
        failure = TypeError(f"{name} must hold real numbers: an argument must be a string or a number")
    except (ValueError, OverflowError):
        failure = ValueError(f"{name} must hold real numbers: one of its objects is not a number")
    # Raised outside of the handler, because NumPy's error, which it would carry along, quotes the value.
    raise failure


# Labels of two classes, to 0 and 1


def two_classes(labels: npt.NDArray[Any], declared: Any) -> npt.NDArray[Any]:
    """Return the two classes, sorted: the declared ones, or those found in `labels`."""
    if declared is not None:
        return _sorted_pair(declared)
    distinct = found_labels(labels)
    if len(distinct) == 1:
        raise ValueError("y must hold labels of 2 classes, got 1 class; declare both as classes=(a, b)")
    if len(distinct) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y must hold "
            "labels of 2 classes"
        )
    return distinct


def found_labels(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the distinct labels, sorted; numbers that are not whole are no labels."""
    _require_discrete(labels)
    return np.unique(labels)


def encode(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return 1.0 for labels of the second class and 0.0 for the first; any other label is refused."""
    second = np.asarray(labels == classes[1])
    known = second | (labels == classes[0])
    if known.shape != labels.shape or not known.all():
        raise ValueError("y must hold only the two labels in classes")
    return second.astype(np.float64)


def _sorted_pair(declared: Any) -> npt.NDArray[Any]:
    rule = "classes must be two different labels, both strings or both numbers"
    if isinstance(declared, str):
        raise ValueError(rule)
    try:
        pair = np.array(sorted(declared))
    except (TypeError, ValueError):
        raise ValueError(rule) from None
    if pair.shape != (2,) or pair[0] == pair[1] or pair.dtype.kind not in "biufUS":
        raise ValueError(rule)
    if pair.dtype.kind == "f" and not np.isfinite(pair).all():
        raise ValueError(rule)
    return pair


def _require_discrete(labels: npt.NDArray[Any]) -> None:
    kind = labels.dtype.kind
    if kind == "c":
        raise ValueError("y must hold labels: Complex data not supported")
    if kind == "f":
        require_finite("y", labels)
        if (labels != np.rint(labels)).any():
            raise ValueError("Unknown label type: y is continuous, and must hold labels of 2 classes")
    elif kind == "O":
        for allowed in (str, (bool, int, np.bool_, np.integer)):
            if all(isinstance(label, allowed) for label in labels):
                return
        raise ValueError("Unknown label type: y must hold strings, or integers, and not both")
    elif kind not in "biuUS":
        raise ValueError(f"Unknown label type: y must hold integers, booleans or strings, got {labels.dtype}")
