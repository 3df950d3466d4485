"""Public facts: what each episode's fit was run with, and what it released."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from fliphat.fit.known import SparseEstimate

__all__ = ["EpisodeFacts", "SparseEstimate"]


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
    sparsity : int
        Coordinates that the fit picked.
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
    sparsity: int
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
