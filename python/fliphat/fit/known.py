"""Between a policy's engine and its fit: what is known, a plan, and a fit.

The engine plays rounds and keeps their rows; the fit decides how long an episode is and what is released when
it is over. Between them go three things, two of them public:

- *known*: what was released so far (`Fit.begin`, then what each `Fit.run` returns);
- a *plan* of an episode, a pure function of settings, the episode's number and what is known, made when the
  episode opens and fixed from then on (`Fit.plan`);
- the private rows of one whole episode, handed to `Fit.run` exactly once.

A fit may carry **secret totals** from episode to episode: exact sums over everybody so far, which only its
releases show, with noise. Such a fit has `FitWithTotals.run_totals` in place of `run`. The engine hands in
the bytes that the release before handed out, and keeps the new ones in the same commit as the release, or
neither; nothing shows them. It hands in None before the first release, and whenever it can't be sure that
the bytes are those of the last release that anybody saw (a disputed copy): the fit then begins anew with
empty totals, which is always sound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from fliphat.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from fliphat.fit.settings import EngineSettings

__all__ = ["EpisodePlan", "Fit", "FitWithTotals", "Known", "KnownEstimate", "SparseEstimate"]


@dataclass(frozen=True, eq=False)
class SparseEstimate:
    """A released estimate: its non-zero coordinates, ascending. Public.

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
    """What hard thresholding carries from episode to episode: its last estimate."""

    estimate: SparseEstimate
    #: How many episodes have been released: the number of the next one to be fitted.
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


class Known(Protocol):
    """Everything released so far that a later plan or fit may use. Frozen, and public."""

    @property
    def estimate(self) -> SparseEstimate:
        """What arms are scored by."""

    @property
    def episodes(self) -> int:
        """Episodes released: the number of the next one to be fitted."""

    def to_record(self) -> dict[str, Any]:
        """Return a record for JSON, without loss."""

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Return what `to_record` wrote."""


class EpisodePlan(Protocol):
    """Everything one episode's fit will do. Frozen, and public."""

    @property
    def episode(self) -> int:
        """The episode's number, from 0."""

    @property
    def rows(self) -> int:
        """The episode's length: rounds played, with or without a reward."""


_Known = TypeVar("_Known", bound=Known)
_Plan = TypeVar("_Plan", bound=EpisodePlan)


class Fit(Protocol[_Plan, _Known]):
    """How an episode's rows become public; one object without state serves a policy for its whole life."""

    @property
    def settings(self) -> EngineSettings:
        """The settings, with whatever the fit has filled in: what a store writes down."""

    def begin(self) -> _Known:
        """Return what is known before the first episode."""

    def recall(self, record: dict[str, Any]) -> _Known:
        """Return what `Known.to_record` wrote."""

    def recall_estimate(
        self, indices: npt.NDArray[np.int64], values: npt.NDArray[np.float64]
    ) -> SparseEstimate:
        """Return an estimate that was released, from its coordinates that are not zero."""

    def plan(self, episode: int, known: _Known) -> _Plan:
        """Return the plan of an episode, given what is known when it opens."""

    def least_rows(self, episode: int) -> int:
        """Return a length that an episode will have at least, whatever is released before it."""

    def run(
        self,
        plan: _Plan,
        rows: Any,
        rewards: npt.NDArray[np.float64],
        present: npt.NDArray[np.bool_],
        known: _Known,
    ) -> _Known:
        """Fit an episode's rows with fresh noise, and return what is known then.

        Once an episode: twice on the same rows would cost the privacy budget twice. Rows, an array or CSR,
        are all rounds of the episode, those without a reward included; `known` is as it was given to `plan`.
        """

    def facts(self, plan: _Plan, known: _Known) -> dict[str, Any]:
        """Return what may be told about a fit that was run, given what is known after it."""

    def guarantee(self) -> Guarantee:
        """Return the claim that every plan's noise supports."""


@runtime_checkable
class FitWithTotals(Protocol):
    """A fit that also keeps secret totals; see the module."""

    def run_totals(
        self,
        plan: Any,
        rows: Any,
        rewards: npt.NDArray[np.float64],
        present: npt.NDArray[np.bool_],
        known: Any,
        secret: bytes | None,
    ) -> tuple[Any, bytes | None]:
        """Do what `Fit.run` does, and return what is known then together with the new totals.

        `secret` is what the call for the episode before returned; None to begin with empty totals. Run again
        for the same episode (nobody saw the first), it is given the same bytes. The new totals have this
        episode's rows in them and are opaque to everybody else. They must name the episode that they end
        with: a fit that is handed others than those of ``plan.episode - 1`` begins anew.
        """
