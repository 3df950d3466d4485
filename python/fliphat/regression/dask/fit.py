"""Fits over a dask array: sums come from the workers, an iteration's or a part's; noise is drawn here."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.fit.iht import run
from fliphat.fit.iht.fit import IhtPlan
from fliphat.fit.pursuit.known import KnownSparse
from fliphat.fit.pursuit.plan import PursuitPlan
from fliphat.privacy.priced import PricedRelease
from fliphat.regression.dask import blocks as on_worker
from fliphat.regression.dask import cluster
from fliphat.regression.dask.arrays import DaskRows, DaskTarget
from fliphat.regression.parts import PartsFit

__all__ = ["from_blocks", "parts_from_blocks"]

#: Bytes of sums that one task adds, and how many sums that may be: a tree of few levels has few delays.
_ADDED_BYTES, _MOST_ADDED = 1 << 26, 64


def from_blocks(
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

    def sums_at(columns: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> bytes:
        nonlocal handed_over
        sums = _total(blocks, on_worker.Question(columns, values, plan.dim, **rule))
        handed_over += 1
        return sums

    with _noted(lambda: f"{handed_over} of {plan.iterations} iterations" if handed_over else None):
        return run.from_sums(plan, sums_at, start=start)


@contextmanager
def _noted(drawn: Callable[[], str | None]) -> Iterator[None]:
    """Note on an exception what noise was drawn for, if any was."""
    try:
        yield
    except BaseException as failure:
        if of := drawn():
            failure.add_note(
                f"Noise was drawn for {of} of this fit. No estimate was returned or kept, and the estimator "
                f"is as it was. Workers were sent some: if anyone who may not see X and y sees their tasks "
                f"or logs, count this fit as a release."
            )
        raise


def _prepared(
    rows: DaskRows, target: DaskTarget, constant: float | None, *, finite: bool = False
) -> list[Any]:
    """Start checking every block where it is, and keep it there; a refusal shows in the first sums."""
    prepare = cluster.task(on_worker.prepare, "fliphat-block")
    return cluster.persist(
        [
            prepare(
                x, y, on_worker.Declared(length, rows.columns, rows.dtype, constant, target.classes, finite)
            )
            for x, y, length in zip(rows.blocks, target.blocks, rows.lengths, strict=True)
        ]
    )


def _total(blocks: Sequence[Any], question: on_worker.Question) -> bytes:
    """Return the sums of all blocks."""
    sums = cluster.task(on_worker.sums, "fliphat-sums", question=question)
    return _added([sums(block) for block in blocks], question.dim)


def _added(sums: Sequence[Any], width: int) -> bytes:
    """Return the total of delayed sums, added up on the workers: neighbours first, a few at a time."""
    add = cluster.task(on_worker.add, "fliphat-add")
    level = list(sums)
    fan_in = min(max(_ADDED_BYTES // (8 * width), 2), _MOST_ADDED)
    while True:
        level = [add(level[i : i + fan_in]) for i in range(0, len(level), fan_in)]
        if len(level) == 1:
            break
    found = cluster.compute(level[0])
    if isinstance(found, on_worker.Refusal):
        raise found.error()
    return bytes(found)


class _BlockSums:
    """The sums of one part's rows, wherever they are."""

    def __init__(
        self, blocks: Sequence[Any], begins: Sequence[int], question: on_worker.PartQuestion
    ) -> None:
        self._blocks, self._begins, self._question = blocks, begins, question
        self.handed_over = False

    def numbers(self) -> bytes:
        """Return the sums of the three numbers of whole rows."""
        return self._ask("numbers")

    def candidates(self) -> bytes:
        """Return the sums that columns are picked by."""
        return self._ask("candidates")

    def further(self, columns: list[int], signs: list[int]) -> bytes:
        """Return the sums that the next column is picked by, after these."""
        return self._ask("further", columns, signs)

    def vector(self, columns: list[int], signs: list[int]) -> bytes:
        """Return what is released of the public and the picked columns."""
        return self._ask("vector", columns, signs)

    def _ask(self, step: str, columns: Sequence[int] = (), signs: Sequence[int] = ()) -> bytes:
        question = self._question
        sums = cluster.task(
            on_worker.part_sums, "fliphat-sums", question=question, step=step, columns=columns, signs=signs
        )
        found = _added(
            [sums(block, begin) for block, begin in zip(self._blocks, self._begins, strict=True)],
            question.width(step),
        )
        self.handed_over = True
        return found


def parts_from_blocks(
    fit: PartsFit, rows: DaskRows, target: DaskTarget
) -> tuple[KnownSparse, tuple[PricedRelease, ...]]:
    """Fit where the rows are; bit for bit what :func:`fliphat.regression.parts.parts_from_rows` does."""
    blocks = _prepared(rows, target, None, finite=True)
    begins = [0, *itertools.accumulate(rows.lengths)][:-1]
    asked: list[_BlockSums] = []

    def sums_of(part: int, plan: PursuitPlan, known: KnownSparse) -> _BlockSums:
        asked.append(_BlockSums(blocks, begins, on_worker.PartQuestion(part, fit.parts, plan, known)))
        return asked[-1]

    def drawn() -> str | None:
        parts = sum(sums.handed_over for sums in asked)
        return f"{parts} of {fit.parts.count} parts" if parts else None

    with _noted(drawn):
        return fit.run(sums_of)
