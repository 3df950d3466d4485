"""A fit over a dask array: rows stay with the workers, integer sums come back, noise is added here, once.

Each iteration sends the public estimate to the workers, which sum the clipped gradients of their blocks in
integers; a tree of additions, on the workers as well, leaves one vector of sums for the client.

**The noise is never a Dask task.** A scheduler runs tasks again when it likes: when a worker is lost, when
its result was dropped, when two workers race for it. Run again, a noise step would release the same rows
under fresh noise, at twice the cost. So tasks are pure functions up to the integer sums, and what draws noise
is a plain call in the client's process, made once for each iteration, on sums that are complete.

What fails before the first iteration's sums are complete has drawn no noise and spent nothing. What fails
later has drawn some: the estimates so far are dropped unseen, so nothing was released, but workers were sent
them. The exception then carries a note that says so.

Keys of tasks are random: Dask shows keys in logs and dashboards, and its own would be hashes of the targets.
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.fit import run as fit_run
from fliphat.fit.plan import IhtPlan
from fliphat.regression import _blocks, _cluster, _data, _labels
from fliphat.regression._estimator import DataConversionWarning

__all__ = ["DaskRows", "DaskTarget", "as_rows", "as_target", "is_dask", "labels_and_classes", "run"]

#: Bytes of sums that one task adds, and how many sums that may be: a tree of few levels has few delays.
_ADDED_BYTES, _MOST_ADDED = 1 << 26, 64


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
    _data.require_some(rows.shape)
    return rows


def as_target(y: Any, rows: DaskRows) -> DaskTarget:
    """Return the targets of `rows`: a dask array cut as they are, or local numbers, checked and cut."""
    if is_dask("y", y):
        return DaskTarget(_cut(y, rows, stacklevel=4))
    return DaskTarget(_split(_data.as_target(y, rows.shape[0], stacklevel=5), rows))


def labels_and_classes(y: Any, rows: DaskRows, declared: Any) -> tuple[DaskTarget, npt.NDArray[Any]]:
    """Return the targets of two classes, and the classes: declared, or found in y and thereby public."""
    if not is_dask("y", y):
        labels = _data.one_dimensional(y, rows.shape[0], stacklevel=4)
        classes = _labels.two_classes(labels, declared)
        return DaskTarget(_split(_labels.encode(labels, classes), rows)), classes
    blocks = _cut(y, rows, stacklevel=4)
    labels = np.empty(0)
    if declared is None:
        blocks = _cluster.persist(blocks)
        labels = np.concatenate(_each(_blocks.labels, blocks))
    classes = _labels.two_classes(labels, declared)
    return DaskTarget(blocks, classes), classes


def run(
    plan: IhtPlan,
    rows: DaskRows,
    target: DaskTarget,
    start: npt.NDArray[np.float64] | None,
    constant: float | None,
) -> npt.NDArray[np.float64]:
    """Fit where the rows are, and return the one estimate that is released."""
    blocks = _prepared(rows, target, constant)
    rule = {name: plan.kernel_arguments[name] for name in ("clip", "reward_clip", "loss")}
    handed_over = 0

    def sums_at(columns: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        nonlocal handed_over
        sums = _total(blocks, _blocks.Question(columns, values, plan.dim, **rule))
        handed_over += 1
        return sums

    try:
        return fit_run.from_sums(plan, sums_at, start=start)
    except BaseException as failure:
        if handed_over:
            failure.add_note(
                f"Noise was drawn for {handed_over} of {plan.iterations} iterations of this fit. No "
                f"estimate was returned or kept, and the estimator is as it was. Workers were sent some: "
                f"if anyone who may not see X and y sees their tasks or logs, count this fit as a release."
            )
        raise


def _prepared(rows: DaskRows, target: DaskTarget, constant: float | None) -> list[Any]:
    """Start checking every block where it is, and keep it there; a refusal shows in the first sums."""
    prepare = _task(_blocks.prepare, "fliphat-block")
    return _cluster.persist(
        [
            prepare(x, y, _blocks.Declared(length, rows.columns, rows.dtype, constant, target.classes))
            for x, y, length in zip(rows.blocks, target.blocks, rows.lengths, strict=True)
        ]
    )


def _total(blocks: Sequence[Any], question: _blocks.Question) -> npt.NDArray[np.int64]:
    """Return the sums of all blocks, added up on the workers: neighbours first, a few at a time."""
    sums, add = _task(_blocks.sums, "fliphat-sums", question=question), _task(_blocks.add, "fliphat-add")
    level = [sums(block) for block in blocks]
    fan_in = min(max(_ADDED_BYTES // (8 * question.dim), 2), _MOST_ADDED)
    while True:
        level = [add(level[i : i + fan_in]) for i in range(0, len(level), fan_in)]
        if len(level) == 1:
            break
    total = _cluster.compute(level[0])
    if isinstance(total, _blocks.Refusal):
        raise total.error()
    return _blocks.aligned(total)


def _known_lengths(name: str, array: Any) -> tuple[list[Any], list[int]]:
    """Return the blocks along the rows and their lengths, which are counted if Dask does not know them."""
    blocks, lengths = list(array.to_delayed(optimize_graph=True).ravel()), list(array.chunks[0])
    if any(math.isnan(length) for length in lengths):
        blocks = _cluster.persist(blocks)
        lengths = _each(_blocks.length, blocks, name=name)
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
    say, together = _task(function, "fliphat-check", **public), _task(list, "fliphat-checks")
    answers: list[Any] = _cluster.compute(together([say(block) for block in blocks]))
    refusal = next((answer for answer in answers if isinstance(answer, _blocks.Refusal)), None)
    if refusal is not None:
        raise refusal.error()
    return answers


def _task(function: Callable[..., Any], prefix: str, **public: Any) -> Callable[..., Any]:
    """Return `function` for delayed arguments; its tasks have keys of their own.

    Arguments that all its tasks share are bound to it, so that Dask does not search them for delayed values.
    """
    from dask import delayed

    name, numbers = f"{prefix}-{uuid.uuid4().hex}", itertools.count()
    bound = delayed(functools.partial(function, **public) if public else function, pure=False)
    return lambda *arguments: bound(*arguments, dask_key_name=f"{name}-{next(numbers)}")
