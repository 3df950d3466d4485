"""What pursuit was told, what it knows, what an episode will do, and the means that it released. Public."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fliphat.fit.board import Board, Earned
from fliphat.fit.known import SparseEstimate
from fliphat.fit.pursuit.constants import Tuning, tuning

__all__ = ["EpisodeSteps", "KnownSparse", "ReleasedMeans", "Told"]

_Vector = npt.NDArray[np.float64]
_Columns = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Told:
    """What the caller said, and the budget.

    Attributes
    ----------
    dim, sparsity : int
    mu : float
        The budget: that of one Gaussian release.
    context_scale, reward_scale : float
        Guesses of x and r, from which both are corrected.
    intercept : bool
        Whether rewards may have a mean.
    reward_range : (float, float) or None
        Rewards are within it.
    loss : {"squared", "logistic"}
    first_rows : int, optional
        Length of the first fit's episode, instead of the rule's.
    pilot : bool
        Whether an episode before the first fit measures where rewards are.
    constants : Tuning, optional
        Instead of those that a bandit has at this budget.
    board, guard : bool
        Whether episodes release what they earned, and whether the guard is on.
    """

    dim: int
    sparsity: int
    mu: float
    context_scale: float
    reward_scale: float
    intercept: bool = True
    reward_range: tuple[float, float] | None = None
    loss: str = "squared"
    first_rows: int | None = None
    pilot: bool = False
    constants: Tuning | None = None
    board: bool = False
    guard: bool = False

    @cached_property
    def tuning(self) -> Tuning:
        """The constants of the rule."""
        return tuning(self.mu) if self.constants is None else self.constants


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownSparse:
    """Everything released so far, as far as it matters for what comes. Public.

    Attributes
    ----------
    dim, episodes, fits : int
        d, how many episodes have been released, and how many of them were fits: a pilot is not.
    rows, picks : float
        Length and picks of the next episode, before rounding.
    shortest : float
        No episode is shorter.
    columns : ndarray of int64, shape (k,)
        A, in the order found.
    units : ndarray, shape (k,)
        Public sizes that these columns are divided by.
    theta : ndarray, shape (1 + k,)
        Intercept, then coefficients.
    covariance, moments, precision : ndarray, shape (1 + k, 1 + k)
        P, G and W.
    residual_size, context_size : float
        r and x.
    start_size, size_weight : float
        x as told or measured from whole rows; precision, relative to x, of what picked columns said of x^2.
    typical_mean, typical_mean_weight, typical_product, typical_product_weight : float
        e and c as measured from whole rows and from columns when they were new, with their precisions. Later
        the arms are chosen by these columns, which moves their means and products.
    told_size, octaves, octaves_weight : float
        x as told; log2 of x over it as measured from whole rows, and the precision of that.
    doubted : bool
        Whether whole rows have just said that x may be far from what was told: the next episode asks again.
    shrink : float
        Standard deviations that coefficients are drawn to zero by where arms are scored.
    quiet : int
        Episodes in a row whose picks did not stand out.
    found : tuple of int
        Picks that stood out, of each episode.
    earned : Earned
        What episodes earned, and what the guard makes of it.
    """

    dim: int
    episodes: int
    fits: int
    rows: float
    shortest: float
    picks: float
    columns: _Columns
    units: _Vector
    theta: _Vector
    covariance: _Vector
    moments: _Vector
    precision: _Vector
    residual_size: float
    context_size: float
    start_size: float
    size_weight: float = 0.0
    typical_mean: float = 0.0
    typical_mean_weight: float = 0.0
    typical_product: float = 0.0
    typical_product_weight: float = 0.0
    told_size: float = 0.0
    octaves: float = 0.0
    octaves_weight: float = 0.0
    doubted: bool = False
    shrink: float = 0.0
    quiet: int = 0
    found: tuple[int, ...] = field(default=())
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
    """What an episode's fit does, fixed when the episode opens. Noise aside, which is calibrated to it.

    Attributes
    ----------
    rows, picks : int
        n and p.
    one : float
        Value of the intercept's column in this episode: x.
    shift : ndarray, shape (1 + k,), or None
        A row's ``shift @ (one, row[A])`` is taken off each of its coordinates before candidates are scored.
    pick_clip, value_clip : float
    assumed : float
        What a pick is assumed to explain of a reward, where a row's value is `one`, while the episode's later
        ones are picked; 0 if all are picked by the same sums.
    whiten : ndarray, shape (m, m)
        A row's ``whiten @ (one, row[A], row[new])`` is what its gradient on A is taken of.
    foreseen : ndarray, shape (m, m)
        H before this episode's second moments.
    ball : float
        Rows are cut to this l2 norm before their second moments are taken.
    size_cap : float
    shares : dict
        Share of mu^2 of "picks", "gradient", "moments", "size" and, if they are released, "rows" and "board".
    typical : ndarray, shape (m, m)
        Second moments that the released ones are drawn to.
    slope : float
        Mean slope of the rewards' mean in the scores.
    coefficient : float
        Typical size of one.
    reward_range : (float, float), optional
        Where rewards are expected, if what the episode earns is released.
    """

    rows: int
    picks: int
    one: float
    shift: _Vector | None
    pick_clip: float
    value_clip: float
    whiten: _Vector
    foreseen: _Vector
    ball: float
    size_cap: float
    shares: dict[str, float]
    typical: _Vector
    slope: float
    coefficient: float
    assumed: float = 0.0
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
