"""Public facts: released estimates, and what each episode's fit was run with."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["EpisodeFacts", "SparseEstimate"]


@dataclass(frozen=True, eq=False)
class SparseEstimate:
    """A released estimate: its non-zero coordinates, ascending. Public.

    Attributes
    ----------
    indices : ndarray of int64
    values : ndarray of float64
    dim : int

    Examples
    --------
    >>> SparseEstimate.from_dense([0.0, 2.5, 0.0]).to_dense()
    array([0. , 2.5, 0. ])
    """

    indices: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    dim: int

    @classmethod
    def zero(cls, dim: int) -> SparseEstimate:
        """Return the estimate before any release: every arm scores the same."""
        return cls(np.zeros(0, np.int64), np.zeros(0), dim)

    @classmethod
    def from_dense(cls, theta: npt.ArrayLike) -> SparseEstimate:
        """Return the non-zero coordinates of `theta`."""
        dense = np.asarray(theta, np.float64)
        indices = np.flatnonzero(dense).astype(np.int64)
        return cls(indices, dense[indices], len(dense))

    def to_dense(self) -> npt.NDArray[np.float64]:
        """Return all `dim` coordinates."""
        dense = np.zeros(self.dim)
        dense[self.indices] = self.values
        return dense


@dataclass(frozen=True, kw_only=True)
class EpisodeFacts:
    """What is public about one episode whose estimate was released.

    Attributes
    ----------
    episode : int
    first_round : int
        t of the episode's first round; the very first round is 1.
    rounds : int
        n: rounds played, with or without a reward.
    iterations : int
        M of the fit; 0 means that nothing was computed from the rows.
    step_size : float
        eta of the fit.
    warm : bool
        Whether the fit started from the estimate before.
    noise_scale : float
        Noise of a released value, in units of a coefficient.
    smallest_coefficient : float
        About the smallest coefficient the fit could tell from noise, given the stated scale of contexts.
    estimate : SparseEstimate
        What the fit released: the estimate the next episode played with.
    """

    episode: int
    first_round: int
    rounds: int
    iterations: int
    step_size: float
    warm: bool
    noise_scale: float
    smallest_coefficient: float
    estimate: SparseEstimate = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the estimate, for JSON; an infinite number becomes None."""
        record = asdict(self)
        del record["estimate"]
        return {
            name: None if isinstance(value, float) and math.isinf(value) else value
            for name, value in record.items()
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any], estimate: SparseEstimate) -> EpisodeFacts:
        """Return the facts that :meth:`to_dict` wrote."""
        filled: dict[str, Any] = {
            name: math.inf if value is None else value for name, value in record.items()
        }
        return cls(**filled, estimate=estimate)
