"""One fit over a dask array: each iteration's sums come from the workers, its noise is drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.fit.iht import run
from fliphat.fit.iht.plan import IhtPlan
from fliphat.regression.dask import blocks as on_worker
from fliphat.regression.dask import cluster
from fliphat.regression.dask.arrays import DaskRows, DaskTarget

__all__ = ["added", "from_blocks", "prepared"]

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
    blocks = prepared(rows, target, constant)
    rule = {name: plan.kernel_arguments[name] for name in ("clip", "reward_clip", "loss")}
    handed_over = 0

    def sums_at(columns: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> bytes:
        nonlocal handed_over
        sums = _total(blocks, on_worker.Question(columns, values, plan.dim, **rule))
        handed_over += 1
        return sums

    try:
        return run.from_sums(plan, sums_at, start=start)
    except BaseException as failure:
        if handed_over:
            failure.add_note(
                f"Noise was drawn for {handed_over} of {plan.iterations} iterations of this fit. No "
                f"estimate was returned or kept, and the estimator is as it was. Workers were sent some: "
                f"if anyone who may not see X and y sees their tasks or logs, count this fit as a release."
            )
        raise


def prepared(
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
    return added([sums(block) for block in blocks], question.dim)


def added(sums: Sequence[Any], width: int) -> bytes:
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
