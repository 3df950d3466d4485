"""What a worker does with its block of rows: check it once, then sum its clipped gradients at each estimate.

Pure functions: a scheduler may run them again, anywhere, and gets the same integers. None draws noise.

They return a :class:`Refusal` where others would raise. Dask writes what a task raises into the worker's log,
and some of its versions the task's arguments too, which here are private rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fliphat import __version__
from fliphat._native import add_sums, partial_gradient, partial_sums
from fliphat.fit.pursuit.fit import native_rows
from fliphat.fit.pursuit.fit import question as asked
from fliphat.fit.pursuit.known import KnownSparse
from fliphat.fit.pursuit.plan import PursuitPlan
from fliphat.kernels._rows import is_sparse
from fliphat.regression import data
from fliphat.regression.parts import Parts

__all__ = [
    "Block",
    "Declared",
    "PartQuestion",
    "Question",
    "Refusal",
    "add",
    "aligned",
    "labels",
    "length",
    "part_sums",
    "prepare",
    "sums",
]

_KINDS: dict[str, type[Exception]] = {
    "RuntimeError": RuntimeError,
    "TypeError": TypeError,
    "ValueError": ValueError,
}


@dataclass(frozen=True)
class Refusal:
    """An error on its way to the client: an argument and its rule, never a value."""

    kind: Literal["RuntimeError", "TypeError", "ValueError"]
    message: str

    def error(self) -> Exception:
        """Return the exception to raise on the client."""
        return _KINDS[self.kind](self.message)


@dataclass(frozen=True)
class Declared:
    """What is publicly known of a block before it is read."""

    rows: int
    columns: int
    dtype: np.dtype[Any]
    #: Value of one more column, for the intercept.
    constant: float | None
    #: The two labels; None if y holds numbers.
    classes: npt.NDArray[Any] | None
    #: Whether values must be looked at before the first sums: a kernel that refuses them need not be told.
    finite: bool = False
    version: str = __version__


@dataclass(frozen=True)
class Block:
    """Checked rows and their targets. Private; stays where it was made."""

    rows: Any
    target: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """A public estimate, and how gradients at it are clipped: all that workers are sent in an iteration."""

    columns: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    dim: int
    clip: float
    reward_clip: float | None
    loss: Literal["squared", "logistic"]


@dataclass(frozen=True)
class PartQuestion:
    """One part's plan and what it was made from: all public, and all that workers are sent about a part."""

    part: int
    parts: Parts
    plan: PursuitPlan
    known: KnownSparse

    def width(self, step: str) -> int:
        """Return how many sums a step has."""
        m = len(self.plan.steps.whiten)
        return {"numbers": 3, "vector": m * (m + 3) // 2 + 1}.get(step, self.plan.given.dim)


def prepare(x: Any, y: Any, declared: Declared) -> Block | Refusal:
    """Check a block against what was declared of it, and bring it into the form the kernel reads."""
    if declared.version != __version__:
        return Refusal("RuntimeError", "workers must have the same version of fliphat as the client")
    try:
        _require_declared(x, y, declared)
        # Where it is not asked for here, the kernel sees it in the first iteration, before any noise.
        rows = _aligned(data.as_rows(x, finite=declared.finite))
        if declared.constant is not None:
            rows = data.with_constant(rows, declared.constant)
        if declared.classes is None:
            target = data.as_target(y, declared.rows)
        else:
            target = data.encode(np.asarray(y), declared.classes)
    except (TypeError, ValueError) as refused:
        return _refusal(refused)
    return Block(rows, target)


def sums(block: Block | Refusal, question: Question) -> bytes | Refusal:
    """Return the exact sums of a block's clipped gradients at a public estimate: opaque bytes."""
    if isinstance(block, Refusal):
        return block
    theta = np.zeros(question.dim)
    theta[question.columns] = question.values
    try:
        # One thread: Dask already runs a task on each core it was given.
        return partial_gradient(
            native_rows(_aligned(block.rows)),
            aligned(block.target),
            theta,
            question.clip,
            np.inf if question.reward_clip is None else question.reward_clip,
            question.loss,
            threads=1,
        )
    except (TypeError, ValueError) as refused:
        return _refusal(refused)


def part_sums(
    block: Block | Refusal,
    begin: int,
    question: PartQuestion,
    step: str,
    columns: Sequence[int],
    signs: Sequence[int],
) -> bytes | Refusal:
    """Return the exact sums of a block's rows that are in a part, for a step of its release: opaque bytes.

    `begin` is the position of the block's first row among all rows.
    """
    if isinstance(block, Refusal):
        return block
    at = np.flatnonzero(question.parts.of(begin, begin + block.rows.shape[0]) == question.part)
    if not len(at):
        return bytes(8 * question.width(step))
    try:
        # One thread: Dask already runs a task on each core it was given.
        return partial_sums(
            asked(question.plan, question.known),
            step,
            native_rows(_aligned(block.rows)[at]),
            aligned(block.target[at]),
            columns=list(columns),
            signs=list(signs),
            threads=1,
        )
    except (TypeError, ValueError) as refused:
        return _refusal(refused)


def add(parts: Sequence[bytes | Refusal]) -> bytes | Refusal:
    """Add sums: in integers, so that the shape of the tree changes nothing. The first refusal wins."""
    for part in parts:
        if isinstance(part, Refusal):
            return part
    if not parts:
        raise RuntimeError("there must be sums to add")
    return add_sums([bytes(part) for part in parts if not isinstance(part, Refusal)])


def length(x: Any, name: str) -> int | Refusal:
    """Return how many rows a block has, which is public."""
    shape = getattr(x, "shape", None)
    if not shape:
        return Refusal("TypeError", f"{name} must have blocks that are arrays, got {type(x).__name__}")
    return int(shape[0])


def labels(y: Any) -> npt.NDArray[Any] | Refusal:
    """Return the labels found in a block, three at most: two are expected, and a third is refused."""
    try:
        return data.found_labels(_plain("y", y))[:3]
    except (TypeError, ValueError) as refused:
        return _refusal(refused)


def _require_declared(x: Any, y: Any, declared: Declared) -> None:
    if not (isinstance(x, np.ndarray) or is_sparse(x)):
        raise TypeError(
            f"X must have blocks that are NumPy arrays or SciPy sparse matrices, got {type(x).__name__}"
        )
    wanted = (declared.rows, declared.columns)
    if x.shape != wanted:
        raise ValueError(f"X must have the chunks it declares: a block of {wanted} has shape {x.shape}")
    if x.dtype != declared.dtype:
        # Converting it would give bits that depend on how rows are cut into blocks.
        raise TypeError(
            f"X must have the dtype it declares, {declared.dtype}, in every block, got {x.dtype.name}"
        )
    if is_sparse(x):
        _require_columns(x.tocsr())
    targets = _plain("y", y)
    if targets.shape != (declared.rows,):
        raise ValueError(
            f"y must have one value for each row of X: a block of {declared.rows} rows has targets of shape "
            f"{targets.shape}"
        )


def _require_columns(x: Any) -> None:
    """Check the arrays of a CSR block before SciPy, which trusts them, walks along them."""
    pointers, indices = x.indptr, x.indices
    if (
        len(pointers) != x.shape[0] + 1
        or pointers[0] != 0
        or (np.diff(pointers) < 0).any()
        or pointers[-1] > min(len(indices), len(x.data))
    ):
        raise ValueError("X must have CSR blocks whose indptr grows from 0 to the number of stored values")
    stored = indices[: pointers[-1]]
    if len(stored) and not (stored.min() >= 0 and stored.max() < x.shape[1]):
        raise ValueError(f"X must have column numbers from 0 to {x.shape[1] - 1} in every CSR block")


def _aligned(rows: Any) -> Any:
    """Return rows the kernel can read in place: what came over a network may start at any byte."""
    if not is_sparse(rows):
        return aligned(rows)
    parts = (rows.data, rows.indices, rows.indptr)
    if all(part.flags.aligned for part in parts):
        return rows
    return type(rows)(tuple(aligned(part) for part in parts), shape=rows.shape)


def aligned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `array`, or a copy if it does not start where its dtype may."""
    return np.require(array, requirements=["C", "A"])


def _plain(name: str, values: Any) -> npt.NDArray[Any]:
    if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} must have blocks that are NumPy arrays, got {type(values).__name__}")
    return values


def _refusal(refused: Exception) -> Refusal:
    return Refusal("TypeError" if isinstance(refused, TypeError) else "ValueError", str(refused))
