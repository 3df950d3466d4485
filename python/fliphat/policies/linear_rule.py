"""PrivateLinear's arm rule: draws of coefficients vote, and one of them decides a round.

A round is played by one of the draws, taken by its random word. So an arm's probability is the share of draws
that think it best for this context, exactly. The row that is kept is the context, cut to its norm, and behind
it the slot of the arm.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.contexts.crossed import Crossed
from fliphat.fit.board import UNIFORM
from fliphat.fit.dense import DRAWS, Dense, KnownLinear
from fliphat.fit.dense.arms import ArmTable
from fliphat.kernels import _rows
from fliphat.policies.engine import inputs
from fliphat.policies.engine.exploring import vote_code
from fliphat.policies.engine.rule import ArmsOfRounds

__all__ = ["LinearChooser", "LinearRule"]

#: Rounds that are scored at a time: their scores stay in the nearest caches.
_BLOCK: Final = 512

#: Draws, of 32, that still choose while the guard plays a constant arm: by them the policy goes on to learn.
_LEARNS: Final = 4

_Choice = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]


class LinearRule:
    """Checks contexts and plays them; `table` says which arms there are."""

    def __init__(self, fit: Dense) -> None:
        self._fit = fit

    @property
    def table(self) -> ArmTable:
        """The arms as they are now."""
        return self._fit.table

    def use(self, table: ArmTable) -> None:
        """Go on with another table."""
        self._fit.use_arms(table)

    def of(self, fit: Dense) -> LinearRule:
        """Return this rule for a copy of its fit."""
        return LinearRule(fit)

    def one_round(self, contexts: Any) -> tuple[inputs.Contexts, int]:
        """Return the rows of one round, and how many arms it has."""
        settings, arms = self._fit.settings, len(self.table.active)
        contexts = self._shared_of(contexts)
        if not settings.disjoint:
            rows, count = inputs.one_round(_made_dense(contexts), settings.dim)
            self._require_arms(count)
            return rows, arms
        contexts = _made_dense(contexts)
        if np.ndim(contexts) == 2 and np.shape(contexts)[0] == 1:
            contexts = np.asarray(contexts)[0]  # a CSR row, a frame of one row, or a batch of one
        if np.ndim(contexts) != 1 or np.shape(contexts)[0] != settings.dim:
            raise ValueError(
                f"contexts must have shape (dim,) with dim = {settings.dim}, one context for all arms, got "
                f"shape {np.shape(contexts)}"
            )
        rows, _ = inputs.one_round(_lists([contexts]), settings.dim)
        return rows, arms

    def many_rounds(self, contexts: Any, arms: int | None) -> tuple[inputs.Contexts, int, int]:
        """Return the rows of several rounds, how many rounds, and how many arms."""
        settings, count = self._fit.settings, len(self.table.active)
        if arms is not None:
            self._require_arms(arguments.integer("arms", arms, 1, 2**31))
        contexts = _made_dense(self._shared_of(contexts))
        if not settings.disjoint:
            if np.ndim(contexts) == 2 and np.shape(contexts)[0] % count == 0:
                contexts = np.reshape(
                    contexts, (-1, count, np.shape(contexts)[1])
                )  # CSR: rounds after rounds
            rows, n, given = inputs.many_rounds(contexts, settings.dim, None)
            self._require_arms(given)
            return rows, n, count
        if np.ndim(contexts) != 2 or np.shape(contexts)[1] != settings.dim:
            raise ValueError(
                f"contexts must have shape (n, dim) with dim = {settings.dim}, one context a round, got "
                f"shape {np.shape(contexts)}"
            )
        rows, n = inputs.one_round(contexts, settings.dim)
        return rows, n, count

    def _shared_of(self, contexts: Any) -> Any:
        """Return the person of contexts that cross one with one-hot arms: the arms are known here."""
        if not isinstance(contexts, Crossed):
            return contexts
        if not contexts.one_hot and contexts.arms > 1:
            raise ValueError("contexts must have one-hot arms, np.eye(K), where the policy has named arms")
        self._require_arms(contexts.arms)
        return contexts.shared

    def _require_arms(self, given: ArmsOfRounds) -> None:
        count = len(self.table.active)
        if np.any(given != count):
            raise ValueError(f"contexts must have a row for each of the {count} arms, got {given}")

    def chooser(self, known: KnownLinear) -> LinearChooser:
        """Return what plays while nothing more is known."""
        settings = self._fit.settings
        return LinearChooser(
            known, np.array(self.table.active), settings.disjoint, settings.context_norm, self._fit.scale
        )

    def record(self) -> Any:
        """Return the table, or None where an id can't be written down: such arms have no store."""
        try:
            return self.table.to_record()
        except TypeError:
            return None

    def recall(self, record: Any) -> None:
        """Go on with a table that was written down."""
        if record is not None:
            self.use(ArmTable.from_record(record))


class LinearChooser:
    """Plays rounds by public draws of coefficients."""

    def __init__(
        self,
        known: KnownLinear,
        active: npt.NDArray[np.int64],
        disjoint: bool,
        norm: float,
        scale: float,
    ) -> None:
        self._active, self._disjoint, self._norm = active, disjoint, norm
        mapped = known.row_map(scale)
        self._inverse = mapped.inverse.astype(np.float32)
        self._shift = (mapped.center * mapped.inverse).astype(np.float32)
        self._ball = np.float32(mapped.ball)
        draws = known.draws
        missing = (int(active.max()) + 1 if disjoint else 1) - draws.shape[1]
        if missing > 0:
            # Nothing is known of an arm that was just added: at times it is as good as any other.
            draws = _with_new_arms(draws, missing)
        self._uniform = known.fresh or known.earned.fallback == UNIFORM
        constant = np.flatnonzero(active == known.earned.fallback)
        #: Place of the arm that the guard plays, but for some draws that go on to learn.
        self._constant = int(constant[0]) if len(constant) else None
        used = draws[:, active if disjoint else [0]].astype(np.float32)
        # One column for each arm's draws, arm after arm.
        self._weights = np.ascontiguousarray(
            used[:, :, :-1].transpose(2, 1, 0).reshape(used.shape[2] - 1, -1)
        )
        self._levels = np.ascontiguousarray(used[:, :, -1].T)

    def choose_one(
        self,
        contexts: npt.NDArray[Any],
        word: int,
        keep: bool,
        out: npt.NDArray[Any],
        at: int,
        explored: bool = False,
    ) -> tuple[int, int]:
        """Play one round and write its row to ``out[at]``."""
        flags = np.array([keep], np.uint8)
        uniform = np.array([explored], np.uint8)
        arms, tied = self.choose_dense(
            contexts, len(self._active), np.array([word], np.uint64), flags, out[at : at + 1], 0, uniform
        )
        return int(arms[0]), int(tied[0])

    def choose_dense(
        self,
        contexts: npt.NDArray[Any],
        arms: int,
        words: npt.NDArray[np.uint64],
        keep: npt.NDArray[np.uint8] | None,
        out: npt.NDArray[Any],
        at: int,
        explored: npt.NDArray[np.uint8] | None = None,
    ) -> _Choice:
        """Play rounds and write their rows to `out` from `at` on."""
        n = len(words)
        rows, finite = _cut(contexts, self._norm, out.dtype)
        valid = finite if self._disjoint else finite.reshape(n, arms).all(axis=1)
        uniform = ~valid if explored is None else ~valid | (explored != 0)
        place = ((words >> np.uint64(32)) * np.uint64(arms) >> np.uint64(32)).astype(np.int64)
        if self._uniform:
            tied = np.full(n, arms, np.uint32)
        else:
            voted = self._votes(rows, n, arms)
            if self._constant is not None:
                voted[:, _LEARNS:] = self._constant
            own = voted[np.arange(n), (words & np.uint64(DRAWS - 1)).astype(np.int64)]
            place = np.where(uniform, place, own)
            tied = vote_code((voted == place[:, None]).sum(axis=1), DRAWS)
            tied[~valid] = arms
        slots = self._active[place]
        kept = valid if keep is None else valid & (keep != 0)
        chosen = rows if self._disjoint else rows.reshape(n, arms, -1)[np.arange(n), place]
        target = out[at : at + n]
        target[:, :-1] = chosen
        target[:, -1] = slots
        target[~kept] = 0
        return np.where(valid, slots, -1 - slots), tied

    def _votes(self, rows: npt.NDArray[Any], n: int, arms: int) -> npt.NDArray[np.int64]:
        """Return the place among the arms that each draw thinks best, shape (n, DRAWS).

        What is scored is the row that is learned from: moved, scaled and cut to the ball.
        """
        place = np.empty((n, DRAWS), np.int64)
        each = len(rows) // max(n, 1)  # one row a round, or one for each arm
        for start in range(0, n, _BLOCK):
            part = slice(start, min(start + _BLOCK, n))
            moved = rows[part.start * each : part.stop * each] * self._inverse - self._shift
            lengths = np.sqrt(np.einsum("ij,ij->i", moved, moved))
            moved *= np.minimum(1, self._ball / np.maximum(lengths, self._ball))[:, None]
            scores = (moved @ self._weights).reshape(-1, arms, DRAWS)
            if self._disjoint:
                scores += self._levels
            best = scores.max(axis=1)
            for arm in range(arms - 1, -1, -1):  # of several that are best, the first
                np.copyto(place[part], arm, where=scores[:, arm] == best)
        return place

    def choose_csr(self, *_: Any) -> NoReturn:
        """Not called: contexts are made dense."""
        raise AssertionError("contexts of a dense policy are dense")

    choose_dense_to_csr = choose_csr
    choose_csr_to_csr = choose_csr


def _cut(
    contexts: npt.NDArray[Any], norm: float, dtype: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return contexts cut to a norm, as they are stored, and which of them are finite; others are zeros."""
    wide = contexts.astype(np.float64)
    largest = np.abs(wide).max(axis=1)
    finite = np.isfinite(largest) & (largest <= np.finfo(np.float32).max)
    wide[~finite] = 0
    largest = np.where(finite & (largest > 0), largest, 1.0)
    # Over the largest value first: squares of what a float32 can hold fit a float64, but only just.
    length = largest * np.sqrt(((wide / largest[:, None]) ** 2).sum(axis=1))
    wide *= np.minimum(1.0, norm / np.where(length > 0, length, 1.0))[:, None]
    return wide.astype(dtype), finite


def _with_new_arms(draws: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Return draws with arms of which nothing is known: each is another arm's draw, by turns."""
    n, groups, _ = draws.shape
    turns = (np.arange(n)[:, None] + np.arange(count)) % groups
    shifted = np.take_along_axis(draws, turns[:, :, None], axis=1).copy()
    # A shade above the arm it takes after, so that it is chosen where that one would be.
    shifted[:, :, -1] += 1e-6 + 1e-3 * np.abs(shifted[:, :, -1])
    return np.concatenate([draws, shifted], axis=1)


def _made_dense(contexts: Any) -> Any:
    """Return sparse contexts as an array; a matrix that is not canonical is refused."""
    if not _rows.is_sparse(contexts):
        return contexts
    sparse = _rows.sparse_rows("contexts", contexts)
    if len(sparse.data) and (sparse.indices.min() < 0 or sparse.indices.max() >= sparse.shape[1]):
        raise ValueError("contexts must have column numbers below their number of columns")
    return np.asarray(contexts.toarray())


def _lists(contexts: list[Any]) -> Any:
    one = contexts[0]
    return one.reshape(1, -1) if isinstance(one, np.ndarray) else contexts
