"""What has been released so far. Public: everyone may see it, and the next plan may depend on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["KnownEstimate", "SparseEstimate"]


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

    def __post_init__(self) -> None:
        for name in ("indices", "values"):
            view = getattr(self, name).view()
            view.flags.writeable = False  # the policy plays by these very arrays
            object.__setattr__(self, name, view)

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


@dataclass(frozen=True)
class KnownEstimate:
    """What hard thresholding carries from episode to episode: its last estimate.

    Attributes
    ----------
    estimate : SparseEstimate
    episodes : int
        How many episodes have been released: the number of the next one to be fitted.

    Examples
    --------
    >>> known = KnownEstimate(SparseEstimate.from_dense([0.0, 0.1]), episodes=3)
    >>> known.to_record()
    {'episodes': 3, 'dim': 2, 'indices': [1], 'values': [0.1]}
    """

    estimate: SparseEstimate
    episodes: int

    def to_record(self) -> dict[str, Any]:
        """Return a record for JSON, which keeps every bit of a float64."""
        estimate = self.estimate
        return {
            "episodes": self.episodes,
            "dim": estimate.dim,
            "indices": estimate.indices.tolist(),
            "values": estimate.values.tolist(),
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> KnownEstimate:
        """Return what :meth:`to_record` wrote."""
        indices, values = np.array(record["indices"], np.int64), np.array(record["values"], np.float64)
        return cls(SparseEstimate(indices, values, int(record["dim"])), int(record["episodes"]))
