"""Pursuit over one data set: its rows in a few parts, each row in one of them.

A bandit's episodes follow each other in time; here all rows are there at once, and a public rule deals them
out: which part a row is in follows from its position and from how many rows there are, and from nothing the
row holds. Replacing a row changes what one part releases and, through released numbers alone, the plans of
the parts after it: every part may spend the whole (epsilon, delta). See steps F1 to F10 of
``docs/privacy.md``.

What else differs from a bandit: only the last estimate counts, so few long parts are better than many short
ones; the first parts pick, the last only measure; and where every column may be kept there is nothing to
pick, and all of them are measured from the first part on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.fit.pursuit.constants import (
    MORE_PARTS,
    ONE_MEASURES,
    PART_FIRST_PICKS,
    SHORTEST_PART,
    WHOLE_BUDGET,
    WHOLE_DOUBT,
    WHOLE_MOMENTS,
    WHOLE_MOST_PARTS,
    WHOLE_PRUNE,
    at_once,
    class_tuning,
)
from fliphat.fit.pursuit.fit import PursuitFit, RowSums, Sums
from fliphat.fit.pursuit.known import Given, KnownSparse
from fliphat.fit.pursuit.plan import PursuitPlan
from fliphat.fit.settings import Settings
from fliphat.privacy.guarantee import NO_PICKS, Guarantee
from fliphat.privacy.priced import PricedRelease

__all__ = ["Parts", "PartsFit", "parts_from_rows", "parts_guarantee"]

#: 2**64 over the golden ratio, made odd: its multiples are spread evenly, over any stretch of them.
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)

#: Positions looked at together when lengths are counted.
_COUNTED_TOGETHER: Final = 1 << 20

#: Slope of the sigmoid at zero.
_STEEPEST_SIGMOID: Final = 0.25

#: Sums of one part's rows, given its number, its plan and what the plan was made from.
_SumsOf: TypeAlias = Callable[[int, PursuitPlan, KnownSparse], RowSums | Sums]


@dataclasses.dataclass(frozen=True)
class Parts:
    """Which of `count` parts each of `rows` rows is in: public, and the same for any contents.

    Neighbouring rows are dealt to different parts, so that sorted rows do not make parts that differ.

    Examples
    --------
    >>> parts = Parts(rows=9, count=2)
    >>> parts.of(0, 9), parts.lengths
    (array([1, 0, 1, 0, 0, 1, 0, 1, 1]), (4, 5))
    """

    rows: int
    count: int

    def __post_init__(self) -> None:
        arguments.integer("rows", self.rows, 1, 2**62)
        arguments.integer("count", self.count, 1, 2**16)
        if min(self.lengths) == 0:
            raise ValueError(f"count must leave every part a row of {self.rows}, got {self.count}")

    def of(self, begin: int, end: int) -> npt.NDArray[np.int64]:
        """Return the parts that rows `begin` to ``end - 1`` are in."""
        positions = np.arange(begin + 1, end + 1, dtype=np.uint64)
        spread = (positions * _GOLDEN) >> np.uint64(32)
        return ((spread * np.uint64(self.count)) >> np.uint64(32)).astype(np.int64)

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many rows each part has."""
        total = np.zeros(self.count, np.int64)
        for begin in range(0, self.rows, _COUNTED_TOGETHER):
            end = min(begin + _COUNTED_TOGETHER, self.rows)
            total += np.bincount(self.of(begin, end), minlength=self.count)
        return tuple(total.tolist())


class PartsFit:
    """Pursuit over the parts of one data set, planned from public numbers.

    The settings' ``rounds_per_user`` are rows of one person. With the accounting "zcdp" every part has the
    same cost, whatever it picks, so that it can be added to that of other fits before anything is released.

    Examples
    --------
    >>> from fliphat.fit.settings import Settings
    >>> settings = Settings.checked(dim=100, sparsity=10, epsilon=1.0, delta=1e-5)
    >>> fit = PartsFit(settings, rows=20_000)
    >>> fit.parts.count, fit.plan(0, fit.begin())[1].picks.count
    (8, 2)
    """

    def __init__(self, settings: Settings, rows: int, *, accounting: str | None = None) -> None:
        base = PursuitFit(settings, accounting=accounting)
        if settings.loss == "logistic" and settings.constants is None:
            base = PursuitFit(settings, constants=class_tuning(base.given.mu), accounting=accounting)
        given = base.given
        #: Whether all columns may be kept, so that none has to be picked.
        self.whole = given.dim <= given.sparsity
        #: Rows times mu for each column that may be kept: how much can be told of one.
        self.budget = rows * given.mu / given.sparsity
        self.parts = Parts(rows, _how_many(rows, self.budget, self.whole))
        self.lengths = self.parts.lengths
        constants = at_once(given.tuning, given.mu)
        if self.whole:
            constants = dataclasses.replace(constants, prune=WHOLE_PRUNE, moment_share=WHOLE_MOMENTS)
        settings = dataclasses.replace(settings, first_episode=self.lengths[0])
        self.pursuit = PursuitFit(settings, constants=constants, accounting=accounting)

    def begin(self) -> KnownSparse:
        """Return what is known before anything is released."""
        return self.pursuit.begin()

    def plan(self, part: int, known: KnownSparse) -> tuple[KnownSparse, PursuitPlan]:
        """Return the plan of a part, and what it was made from."""
        if self.whole and not len(known.columns):
            known = _with_all_columns(known, self.pursuit.given)
        picks, last = known.picks, part >= self.parts.count - (self.parts.count + 2) // ONE_MEASURES
        if len(known.columns) and (self.whole or last):
            picks = 0.0  # the last parts measure what the others found
        elif part == 0:
            picks = max(picks, PART_FIRST_PICKS * self.pursuit.given.sparsity)
        known = dataclasses.replace(known, rows=float(self.lengths[part]), picks=picks)
        plan = self.pursuit.plan(part, known)
        assert isinstance(plan, PursuitPlan)  # a pilot is a bandit's
        return known, plan

    def run(self, sums_of: _SumsOf) -> tuple[KnownSparse, tuple[PricedRelease, ...]]:
        """Fit all parts, one after the other, and return what is known then and what each has released.

        Twice on the same rows costs the privacy budget twice.
        """
        known, releases = self.begin(), []
        for part in range(self.parts.count):
            known, plan = self.plan(part, known)
            known = self.pursuit.run_sums(plan, sums_of(part, plan, known), known)
            releases.append(plan.release)
        return known, tuple(releases)


def _with_all_columns(known: KnownSparse, given: Given) -> KnownSparse:
    """Return what is known with every column in the estimate, at zero."""
    d, x = given.dim, known.context_size
    slope = _STEEPEST_SIGMOID if given.loss == "logistic" else 1.0
    covariance = np.diag(np.full(1 + d, (WHOLE_DOUBT * known.residual_size / x / slope) ** 2))
    covariance[0, 0] = known.covariance[0, 0]
    moments = np.diag(np.full(1 + d, x * x))
    moments[0, 0] = 1.0
    return dataclasses.replace(
        known,
        columns=np.arange(d, dtype=np.int64),
        units=np.ones(d),
        theta=np.concatenate([known.theta, np.zeros(d)]),
        covariance=covariance,
        moments=moments,
        precision=np.zeros((1 + d, 1 + d)),
    )


def _how_many(rows: int, budget: float, whole: bool) -> int:
    """Return the number of parts: the more a budget tells of a column, the more often it is asked."""
    if whole:
        count = round(min(max((budget + WHOLE_BUDGET / 2) / WHOLE_BUDGET, 1.0), WHOLE_MOST_PARTS))
    else:
        count = next(parts for most, parts in MORE_PARTS if budget <= most)
    return max(min(count, rows // SHORTEST_PART), 1)


def parts_guarantee(fit: PartsFit) -> Guarantee:
    """Return the claim of a fit in parts: a row is in one of them, and each is within the whole claim."""
    first = fit.plan(0, fit.begin())[1].release
    return dataclasses.replace(
        fit.pursuit.guarantee(first),
        setting="regression",
        mechanism=NO_PICKS if fit.whole else "exponential",
        seeded=fit.pursuit.settings.seed is not None,
    )


def parts_from_rows(
    fit: PartsFit, rows: Any, target: npt.NDArray[np.float64]
) -> tuple[KnownSparse, tuple[PricedRelease, ...]]:
    """Fit rows in this process."""
    part_of = fit.parts.of(0, rows.shape[0])

    def sums_of(part: int, plan: PursuitPlan, known: KnownSparse) -> RowSums:
        at = np.flatnonzero(part_of == part)
        return RowSums(rows[at], target[at], np.ones(len(at), np.bool_))

    return fit.run(sums_of)
