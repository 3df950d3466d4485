"""Dask arrays as the fit takes them: row blocks and targets cut alike. Only their structure is looked at."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.regression import data
from fliphat.regression.dask import blocks as on_worker
from fliphat.regression.dask import cluster
from fliphat.regression.sklearn_compat import DataConversionWarning

__all__ = ["DaskRows", "DaskTarget", "as_rows", "as_target", "is_dask", "labels_and_classes"]


@dataclass(frozen=True)
class DaskRows:
    """Row blocks and what is public about them. Blocks without rows are left out."""

    blocks: list[Any]
    lengths: tuple[int, ...]
    columns: int
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of all blocks together."""
        return sum(self.lengths), self.columns


@dataclass(frozen=True)
class DaskTarget:
    """Targets cut as the rows are: delayed blocks of y, or pieces of a local one that is already checked."""

    blocks: list[Any]
    classes: npt.NDArray[Any] | None = None


def is_dask(name: str, x: object) -> bool:
    """Whether `x` is a dask array, without importing Dask; other collections of Dask's are refused."""
    if "dask" not in sys.modules or not sys.modules["dask"].is_dask_collection(x):
        return False
    array = sys.modules.get("dask.array")
    if array is None or not isinstance(x, array.Array):
        raise TypeError(
            f"{name} must be a dask array, got a dask {type(x).__name__} ({name}.to_dask_array(lengths=True) "
            f"makes a data frame one)"
        )
    return True


def as_rows(X: Any) -> DaskRows:
    """Return the row blocks of a dask array; only its structure is looked at."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    if X.dtype.kind == "c":
        raise ValueError("X must hold real numbers: Complex data not supported")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers, got {X.dtype.type.__name__}")
    if len(X.chunks[1]) != 1:
        raise ValueError(
            f"X must have all its columns in one chunk, got {len(X.chunks[1])} chunks: X.rechunk({{1: -1}}) "
            f"makes it so, and moves values between workers"
        )
    columns = X.chunks[1][0]
    if math.isnan(columns):
        raise ValueError("X must have a known number of columns")
    blocks, lengths = _known_lengths("X", X)
    kept = [(block, length) for block, length in zip(blocks, lengths, strict=True) if length]
    rows = DaskRows([block for block, _ in kept], tuple(length for _, length in kept), int(columns), X.dtype)
    data.require_some(rows.shape)
    return rows


def as_target(y: Any, rows: DaskRows) -> DaskTarget:
    """Return the targets of `rows`: a dask array cut as they are, or local numbers, checked and cut."""
    if is_dask("y", y):
        return DaskTarget(_cut(y, rows, stacklevel=6))
    return DaskTarget(_split(data.as_target(y, rows.shape[0], stacklevel=7), rows))


def labels_and_classes(y: Any, rows: DaskRows, declared: Any) -> tuple[DaskTarget, npt.NDArray[Any]]:
    """Return the targets of two classes, and the classes: declared, or found in y and thereby public."""
    if not is_dask("y", y):
        labels = data.one_dimensional(y, rows.shape[0], stacklevel=6)
        classes = data.two_classes(labels, declared)
        return DaskTarget(_split(data.encode(labels, classes), rows)), classes
    blocks = _cut(y, rows, stacklevel=6)
    labels = np.empty(0)
    if declared is None:
        blocks = cluster.persist(blocks)
        labels = np.concatenate(_each(on_worker.labels, blocks))
    classes = data.two_classes(labels, declared)
    return DaskTarget(blocks, classes), classes


def _known_lengths(name: str, array: Any) -> tuple[list[Any], list[int]]:
    """Return the blocks along the rows and their lengths, which are counted if Dask does not know them."""
    blocks, lengths = list(array.to_delayed(optimize_graph=True).ravel()), list(array.chunks[0])
    if any(math.isnan(length) for length in lengths):
        blocks = cluster.persist(blocks)
        lengths = _each(on_worker.length, blocks, name=name)
    return blocks, [int(length) for length in lengths]


def _cut(y: Any, rows: DaskRows, *, stacklevel: int) -> list[Any]:
    """Return the blocks of a dask array of targets, cut as the rows are."""
    import dask.array as da

    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; y.ravel() makes it one",
            DataConversionWarning,
            stacklevel=stacklevel,
        )
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"y must have one dimension, one value for each row of X, got {y.ndim}")
    if y.dtype.kind == "c":
        raise ValueError("y must hold real numbers: Complex data not supported")
    blocks, lengths = _known_lengths("y", y)
    if sum(lengths) != rows.shape[0]:
        raise ValueError(
            f"y must have shape ({rows.shape[0]},), one value for each row of X, got shape ({sum(lengths)},)"
        )
    if tuple(lengths) == rows.lengths:
        return blocks
    parts = [
        da.from_delayed(block, (length,), dtype=y.dtype)
        for block, length in zip(blocks, lengths, strict=True)
    ]
    return list(da.concatenate(parts).rechunk((rows.lengths,)).to_delayed(optimize_graph=True))


def _split(target: npt.NDArray[np.float64], rows: DaskRows) -> list[Any]:
    return np.split(target, np.cumsum(rows.lengths)[:-1])


def _each(function: Callable[..., Any], blocks: Sequence[Any], **public: Any) -> list[Any]:
    """Return what `function` says of each block; a refusal is raised."""
    say, together = cluster.task(function, "fliphat-check", **public), cluster.task(list, "fliphat-checks")
    answers: list[Any] = cluster.compute(together([say(block) for block in blocks]))
    refusal = next((answer for answer in answers if isinstance(answer, on_worker.Refusal)), None)
    if refusal is not None:
        raise refusal.error()
    return answers
