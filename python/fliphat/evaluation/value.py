"""An estimated mean reward with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from fliphat import arguments

__all__ = ["Value", "value_of_mean"]


@dataclass(frozen=True, kw_only=True)
class Value:
    """An estimate of a policy's mean reward a round.

    Attributes
    ----------
    method : str
        The function that made it.
    mean : float
    standard_error : float
    low, high : float
        Ends of the interval.
    confidence : float
        How often such an interval holds the truth, for many rounds.
    rounds : int
        Logged rounds.
    effective_rounds : float
        Rounds that the weights amount to: ``(sum w)^2 / sum w^2``. When it is a small part of `rounds`, the
        evaluated policy plays what the log rarely shows, and the interval is too short to be trusted.

    Examples
    --------
    >>> print(value_of_mean("mean", np.array([0.0, 1.0, 1.0, 0.0]), 4.0, 0.95))
    0.5000, 95 % interval -0.0658 to 1.0658 (mean of 4 rounds worth 4)
    """

    method: str
    mean: float
    standard_error: float
    low: float
    high: float
    confidence: float
    rounds: int
    effective_rounds: float

    def __str__(self) -> str:
        return (
            f"{self.mean:.4f}, {100 * self.confidence:g} % interval {self.low:.4f} to {self.high:.4f} "
            f"({self.method} of {self.rounds} rounds worth {self.effective_rounds:.0f})"
        )


def value_of_mean(
    method: str, contributions: npt.NDArray[np.float64], effective_rounds: float, confidence: float
) -> Value:
    """Return the mean of independent contributions, with the normal interval of a mean."""
    confidence = arguments.real("confidence", confidence)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, got {confidence!r}")
    rounds = len(contributions)
    mean = float(contributions.mean())
    # One round says nothing about its own spread.
    error = float(contributions.std(ddof=1)) / math.sqrt(rounds) if rounds > 1 else math.inf
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    return Value(
        method=method,
        mean=mean,
        standard_error=error,
        low=mean - reach,
        high=mean + reach,
        confidence=confidence,
        rounds=rounds,
        effective_rounds=effective_rounds,
    )
