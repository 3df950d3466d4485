"""A fit in parts over a dask array: the sums of each part come from the workers, its noise is drawn here."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from fliphat.fit.parts import PartsFit
from fliphat.fit.pursuit.known import KnownSparse
from fliphat.fit.pursuit.plan import PursuitPlan
from fliphat.privacy.priced import PricedRelease
from fliphat.regression.dask import blocks as on_worker
from fliphat.regression.dask import cluster
from fliphat.regression.dask.arrays import DaskRows, DaskTarget
from fliphat.regression.dask.fit import added, prepared

__all__ = ["parts_from_blocks"]


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
        found = added(
            [sums(block, begin) for block, begin in zip(self._blocks, self._begins, strict=True)],
            question.width(step),
        )
        self.handed_over = True
        return found


def parts_from_blocks(
    fit: PartsFit, rows: DaskRows, target: DaskTarget
) -> tuple[KnownSparse, tuple[PricedRelease, ...]]:
    """Fit where the rows are; bit for bit what :func:`fliphat.regression.solvers.parts_from_rows` does."""
    blocks = prepared(rows, target, None, finite=True)
    begins = [0, *itertools.accumulate(rows.lengths)][:-1]
    asked: list[_BlockSums] = []

    def sums_of(part: int, plan: PursuitPlan, known: KnownSparse) -> _BlockSums:
        asked.append(_BlockSums(blocks, begins, on_worker.PartQuestion(part, fit.parts, plan, known)))
        return asked[-1]

    try:
        return fit.run(sums_of)
    except BaseException as failure:
        drawn = sum(one.handed_over for one in asked)
        if drawn:
            failure.add_note(
                f"Noise was drawn for {drawn} of {fit.parts.count} parts of this fit. No estimate was "
                f"returned or kept, and the estimator is as it was. Workers were sent some: if anyone who "
                f"may not see X and y sees their tasks or logs, count this fit as a release."
            )
        raise
