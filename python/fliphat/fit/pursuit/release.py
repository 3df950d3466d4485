"""The one release of a fit: public numbers and private rows go in, noisy numbers come out.

All steps are in Rust (``rust/core/src/private/episode.rs``): no sum without noise comes back to Python. Sums
of rows that live elsewhere cross as bytes, which nothing here looks into.

Every call is a release: twice on the same rows costs the privacy budget twice.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fliphat import _native
from fliphat.fit.board import BOARD_WIDTH, Board
from fliphat.fit.pursuit.known import KnownSparse, Released
from fliphat.fit.pursuit.plan import LIMIT, RADIUS, PursuitPlan
from fliphat.fit.release import Noise
from fliphat.kernels import _rows

__all__ = ["RowSums", "Sums", "native_rows", "question", "release"]


class Sums(Protocol):
    """Private integers of rows that live elsewhere, each eight bytes, the lowest first.

    Each method is called at most once, in this order; `further` after each pick but the last.
    """

    def numbers(self) -> bytes:
        """Return the sums of the three numbers of whole rows."""

    def candidates(self) -> bytes:
        """Return the sums that columns are picked by, one a column."""

    def further(self, columns: list[int], signs: list[int]) -> bytes:
        """Return the sums that the next column is picked by, after these."""

    def vector(self, columns: list[int], signs: list[int]) -> bytes:
        """Return what is released of the public and the picked columns.

        Gradients, second moments on and above the diagonal row after row, the residuals' size and, if it is
        asked for, what was earned.
        """


class RowSums(NamedTuple):
    """Rows of this process, rewards and which of them came. Private."""

    rows: Any
    rewards: npt.NDArray[np.float64]
    present: npt.NDArray[np.bool_]


def question(plan: PursuitPlan, known: KnownSparse) -> _native.PursuitQuestion:
    """Return all that the release of a plan asks of rows, with the noise that was priced for it. Public."""
    steps, picks, told = plan.steps, plan.picks, plan.told
    gradient, moments, size, *board = plan.parts
    return _native.PursuitQuestion(
        known.columns,
        known.theta,
        steps.shift,
        plan.units,
        (steps.one, told.loss, told.reward_range, steps.pick_clip),
        (
            0 if picks is None else picks.count,
            1 if picks is None else picks.scale,
            plan.signed,
            # The last one's sign is of use only as what its coefficient starts from.
            not steps.assumed or told.tuning.guess != 0,
            steps.assumed,
        ),
        steps.whiten,
        (steps.value_clip, RADIUS, RADIUS / steps.ball, steps.size_cap),
        (gradient.sigma, moments.sigma, size.sigma),
        (plan.octaves, [part.sigma for part in plan.row_parts]) if plan.row_parts else None,
        (*steps.reward_range, board[0].sigma) if steps.reward_range else None,
    )


def release(plan: PursuitPlan, private: RowSums | Sums, known: KnownSparse, noise: Noise) -> Released:
    """Release an episode of pursuit."""
    asked = question(plan, known)
    if isinstance(private, RowSums):
        rows, rewards, present = private
        numbers, columns, signs, vector = _native.release_rows(
            asked, native_rows(rows), np.ascontiguousarray(rewards, np.float64), present.view(np.uint8), noise
        )
    else:
        numbers, columns, signs, vector = _native.release_sums(asked, private, noise)
    steps, n, units = plan.steps, plan.rows, plan.units
    m, scale = len(steps.whiten), RADIUS / steps.ball
    gradient, moments, size, *board = plan.parts
    gradient_step, size_step = steps.value_clip / LIMIT, steps.size_cap / LIMIT
    row_numbers = row_noise = None
    if plan.row_parts:
        row_steps = np.array([plan.octaves, 1.0, 1.0]) / LIMIT / n
        row_numbers = tuple((numbers * row_steps).tolist())
        row_noise = tuple((np.array([part.sigma for part in plan.row_parts]) * row_steps).tolist())
    earned = None
    if steps.reward_range:
        vector, last = vector[:-BOARD_WIDTH], vector[-BOARD_WIDTH:]
        earned = Board.of(n, steps.reward_range, last, board[0].sigma)
    means = vector / n
    return Released(
        columns=columns,
        units=np.ones(len(columns)) if units is None else units[columns],
        signs=signs,
        gradient=means[:m] * gradient_step,
        gradient_noise=gradient.sigma * gradient_step / n,
        moments=means[_square(m)] / scale**2,
        moment_noise=moments.sigma / scale**2 / n,
        size=float(means[-1] * size_step),
        size_noise=size.sigma * size_step / n,
        rows=row_numbers,
        rows_noise=row_noise,
        board=earned,
    )


def native_rows(rows: Any) -> Any:
    """Return rows as native functions take them."""
    return rows if isinstance(rows, np.ndarray) else _rows.native(_rows.sparse_rows("rows", rows))


@functools.lru_cache(maxsize=256)
def _square(m: int) -> npt.NDArray[np.intp]:
    """Return the places in the vector of a square's second moments."""
    above, right = np.triu_indices(m)
    square = np.empty((m, m), np.intp)
    square[above, right] = square[right, above] = m + np.arange(len(above))
    return square
