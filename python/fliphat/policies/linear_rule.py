"""PrivateLinear's arm rule: draws of coefficients vote, and one of them decides a round.

A round is played by one of the draws, taken by its random word. So an arm's probability is the share of draws
that think it best for this context, exactly. The row that is kept is the context, cut to its norm, and behind
it the slot of the arm.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.contexts.crossed import Crossed
from fliphat.fit.board import UNIFORM
from fliphat.fit.dense import Dense, KnownGrown, KnownLinear
from fliphat.fit.dense.arms import ArmTable
from fliphat.kernels import _rows
from fliphat.policies.engine import inputs
from fliphat.policies.engine.rule import ArmsOfRounds, Chooser
from fliphat.policies.grown import GrownChooser

__all__ = ["LinearChooser", "LinearRule"]

#: Draws, of 32, that still choose while the guard plays a constant arm: by them the policy goes on to learn.
_LEARNS: Final = 4


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
            rows, count = inputs.one_round(contexts, settings.dim)
            self._require_arms(count)
            return rows, arms
        sparse = _rows.is_sparse(contexts)
        if not sparse and np.ndim(contexts) == 2 and np.shape(contexts)[0] == 1:
            contexts = np.asarray(contexts)[0]  # a frame of one row, or a batch of one
        shape = contexts.shape if sparse else np.shape(contexts)
        if shape not in ([(1, settings.dim)] if sparse else [(settings.dim,)]):
            raise ValueError(
                f"contexts must have shape (dim,) with dim = {settings.dim}, one context for all arms, got "
                f"shape {shape}"
            )
        rows, _ = inputs.one_round(contexts if sparse else _lists([contexts]), settings.dim)
        return rows, arms

    def many_rounds(self, contexts: Any, arms: int | None) -> tuple[inputs.Contexts, int, int]:
        """Return the rows of several rounds, how many rounds, and how many arms."""
        settings, count = self._fit.settings, len(self.table.active)
        if arms is not None:
            self._require_arms(arguments.integer("arms", arms, 1, 2**31))
        contexts = self._shared_of(contexts)
        sparse = _rows.is_sparse(contexts)
        shape = contexts.shape if sparse else np.shape(contexts)
        if not settings.disjoint:
            if not sparse and len(shape) == 2 and shape[0] % count == 0:
                contexts = np.reshape(contexts, (-1, count, shape[1]))  # rounds after rounds
            rows, n, given = inputs.many_rounds(contexts, settings.dim, count if sparse else None)
            self._require_arms(given)
            return rows, n, count
        if len(shape) != 2 or shape[1] != settings.dim:
            raise ValueError(
                f"contexts must have shape (n, dim) with dim = {settings.dim}, one context a round, got "
                f"shape {shape}"
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

    def chooser(self, known: KnownLinear) -> Chooser:
        """Return what plays while nothing more is known."""
        settings, active = self._fit.settings, np.array(self.table.active, np.int64)
        mapped, draws = known.row_map(self._fit.scale), known.draws
        missing = (int(active.max()) + 1 if settings.disjoint else 1) - draws.shape[1]
        if missing > 0:
            # Nothing is known of an arm that was just added: at times it is as good as any other.
            draws = _with_new_arms(draws, missing)
        fallback = known.earned.fallback
        constant = np.flatnonzero(active == fallback)
        public = (
            active,
            mapped.inverse.astype(np.float32),
            (mapped.center * mapped.inverse).astype(np.float32),
            mapped.ball,
            settings.context_norm,
            settings.disjoint,
            known.fresh or fallback == UNIFORM,
            (_LEARNS, int(constant[0])) if len(constant) else None,
        )
        draws = np.ascontiguousarray(draws[:, active if settings.disjoint else [0]])
        if isinstance(known, KnownGrown):
            return GrownChooser(settings.dim, known.columns, draws, *public)
        return LinearChooser(draws, *public)

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


class LinearChooser(_native.Votes):
    """Plays rounds by public draws of coefficients."""

    def choose_dense_to_csr(self, *_: Any) -> NoReturn:
        """Not called: rows of a dense policy are kept dense."""
        raise AssertionError("rows of a dense policy are dense")

    choose_csr_to_csr = choose_dense_to_csr


def _with_new_arms(draws: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Return draws with arms of which nothing is known: each is another arm's draw, by turns."""
    n, groups, _ = draws.shape
    turns = (np.arange(n)[:, None] + np.arange(count)) % groups
    shifted = np.take_along_axis(draws, turns[:, :, None], axis=1).copy()
    # A shade above the arm it takes after, so that it is chosen where that one would be.
    shifted[:, :, -1] += 1e-6 + 1e-3 * np.abs(shifted[:, :, -1])
    return np.concatenate([draws, shifted], axis=1)


def _lists(contexts: list[Any]) -> Any:
    one = contexts[0]
    return one.reshape(1, -1) if isinstance(one, np.ndarray) else contexts
