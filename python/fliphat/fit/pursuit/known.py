"""What pursuit was given, what it knows, what an episode will do, and the means that it released. Public."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fliphat.fit.board import Board, Earned
from fliphat.fit.known import SparseEstimate
from fliphat.fit.pursuit.constants import Tuning, tuning

__all__ = ["EpisodeSteps", "Given", "KnownSparse", "ReleasedMeans"]

_Vector = npt.NDArray[np.float64]
_Columns = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Given:
    """What the caller said, and the budget."""

    dim: int
    sparsity: int
    #: The budget: that of one Gaussian release.
    mu: float
    #: Guesses of x and r, from which both are corrected.
    context_scale: float
    reward_scale: float
    #: Whether rewards may have a mean.
    intercept: bool = True
    reward_range: tuple[float, float] | None = None
    loss: str = "squared"
    #: Length of the first fit's episode, instead of the rule's.
    first_rows: int | None = None
    #: Whether an episode before the first fit measures where rewards are.
    pilot: bool = False
    #: Instead of those that a bandit has at this budget.
    constants: Tuning | None = None
    #: Whether episodes release what they earned, and whether the guard is on.
    board: bool = False
    guard: bool = False

    @cached_property
    def tuning(self) -> Tuning:
        """The constants of the rule."""
        return tuning(self.mu) if self.constants is None else self.constants


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownSparse:
    """Everything released so far, as far as it matters for what comes. Public."""

    dim: int
    #: How many episodes have been released, and how many of them were fits: a pilot is not.
    episodes: int
    fits: int
    #: Length and picks of the next episode, before rounding; no episode is shorter than the shortest.
    rows: float
    shortest: float
    picks: float
    #: A, in the order found, and public sizes that these columns are divided by.
    columns: _Columns
    units: _Vector
    #: Intercept, then coefficients; P, G and W of them.
    theta: _Vector
    covariance: _Vector
    moments: _Vector
    precision: _Vector
    #: r and x.
    residual_size: float
    context_size: float
    #: x as told or measured from whole rows; precision, relative to x, of what picked columns said of x^2.
    start_size: float
    size_weight: float = 0.0
    #: e and c as measured from whole rows and from columns when they were new, with their precisions. Later
    #: the arms are chosen by these columns, which moves their means and products.
    typical_mean: float = 0.0
    typical_mean_weight: float = 0.0
    typical_product: float = 0.0
    typical_product_weight: float = 0.0
    #: x as told; log2 of x over it as measured from whole rows, and the precision of that.
    told_size: float = 0.0
    octaves: float = 0.0
    octaves_weight: float = 0.0
    #: Whether whole rows have just said that x may be far from what was told: the next episode asks again.
    doubted: bool = False
    #: Standard deviations that coefficients are drawn to zero by where arms are scored.
    shrink: float = 0.0
    #: Episodes in a row whose picks did not stand out; picks that did, of each episode.
    quiet: int = 0
    found: tuple[int, ...] = field(default=())
    #: What episodes earned, and what the guard makes of it.
    earned: Earned = field(default_factory=Earned)

    def but(self, **changes: Any) -> KnownSparse:
        """Return the same with some attributes changed: `dataclasses.replace`, in a fifth of its time."""
        changed = object.__new__(KnownSparse)
        changed.__dict__.update(self.__dict__, **changes)
        changed.__dict__.pop("estimate", None)
        return changed

    @cached_property
    def estimate(self) -> SparseEstimate:
        """The coefficients, for scoring arms: the intercept is the same for all of them.

        They are drawn to zero by what may be noise in them, if the constants say so; if all of them may be,
        they stay as they are, which is better than nothing.
        """
        order = np.argsort(self.columns)
        values = self.theta[1:] / self.units
        if self.shrink > 0:
            noise = self.shrink**2 * np.maximum(np.diag(self.covariance)[1:], 0.0)
            left = 1 - noise / np.maximum(self.theta[1:] ** 2, np.finfo(np.float64).tiny)
            if (left > 0).any():
                order = order[left[order] > 0]
                values = values * np.maximum(left, 0.0)
        return SparseEstimate(self.columns[order], values[order], self.dim)

    @property
    def intercept(self) -> float:
        """What a reward is where all columns are zero."""
        return float(self.theta[0])

    def to_record(self) -> dict[str, Any]:
        """Return a record for JSON, which keeps every bit of a float64."""
        record: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            record[name] = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
        record["found"] = list(self.found)
        record["earned"] = self.earned.to_record()
        return record

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> KnownSparse:
        """Return what :meth:`to_record` wrote."""
        filled = dict(record)
        filled["columns"] = np.array(record["columns"], np.int64)
        for name in ("units", "theta", "covariance", "moments", "precision"):
            filled[name] = np.array(record[name], np.float64)
        filled["found"] = tuple(record["found"])
        filled["earned"] = Earned.from_record(record["earned"])
        return cls(**filled)


@dataclass(frozen=True, eq=False, kw_only=True)
class EpisodeSteps:
    """What an episode's fit does, fixed when the episode opens. Noise aside, which is calibrated to it."""

    #: n and p.
    rows: int
    picks: int
    #: Value of the intercept's column in this episode: x.
    constant: float
    #: A row's ``shift @ (one, row[A])`` is taken off each of its coordinates before candidates are scored.
    shift: _Vector | None
    pick_clip: float
    value_clip: float
    #: A row's ``whiten @ (one, row[A], row[new])`` is what its gradient on A is taken of.
    whiten: _Vector
    #: H before this episode's second moments.
    foreseen: _Vector
    #: Rows are cut to this l2 norm before their second moments are taken.
    ball: float
    size_cap: float
    #: Share of mu^2 of "picks", "gradient", "moments", "size" and, if they are released, "rows" and "board".
    shares: dict[str, float]
    #: Second moments that the released ones are drawn to.
    typical: _Vector
    #: Mean slope of the rewards' mean in the scores.
    slope: float
    #: Typical size of one.
    coefficient: float
    #: What a pick is assumed to explain of a reward, where a row's value is `constant`, while the episode's
    #: later ones are picked; 0 if all are picked by the same sums.
    assumed: float = 0.0
    #: Where rewards are expected, if what the episode earns is released.
    reward_range: tuple[float, float] | None = None


class ReleasedMeans(NamedTuple):
    """What one fit released: means over the episode's rows, with the standard deviations of their noise.

    ``rows`` has the mean of three numbers of each row (log2 of its size over x, its mean over its size, and
    that squared) and their noise; None where they are not released.
    """

    columns: _Columns
    units: _Vector
    signs: _Columns
    gradient: _Vector
    gradient_noise: float
    moments: _Vector
    moment_noise: float
    size: float
    size_noise: float
    rows: tuple[float, float, float] | None
    rows_noise: tuple[float, float, float] | None
    board: Board | None = None
