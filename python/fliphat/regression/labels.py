"""Labels of two classes, to 0 and 1. Messages never contain a label of a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.regression.data import require_finite

__all__ = ["encode", "found", "two_classes"]


def two_classes(labels: npt.NDArray[Any], declared: Any) -> npt.NDArray[Any]:
    """Return the two classes, sorted: the declared ones, or those found in `labels`."""
    if declared is not None:
        return _sorted_pair(declared)
    distinct = found(labels)
    if len(distinct) == 1:
        raise ValueError("y must hold labels of 2 classes, got 1 class; declare both as classes=(a, b)")
    if len(distinct) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y must hold "
            "labels of 2 classes"
        )
    return distinct


def found(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
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
