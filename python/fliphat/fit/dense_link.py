"""How a mean reward follows from a score: the two losses of a dense policy. Public: nothing here sees rows.

Scores are ``z = theta' u``, and rewards lie in -1/2..1/2. What an episode releases is the same for both
losses, sums of ``u`` times reward, and so is its price; a loss is a way to read them. With the squared loss
the sums' mean is ``H theta``. With the logistic one it is that of ``u (sigmoid(z) - 1/2)``, so coefficients
are log odds, and an episode says by how much the sums differ from what the coefficients so far foresee.

Residuals ``y - sigmoid(z)`` of the rows themselves would be the usual way. They lie in -1..1 instead of
-1/2..1/2: either the noise is twice as large, or they are weighed down to 1/2. Weighed, they earned less on
tables of every kind (docs/reproduction.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["LINKS", "Link"]

_Floats = npt.NDArray[np.float64]

#: Smallest slope of the sigmoid that steps are made with. Where it is flatter, sums say little of log odds: a
#: step by the slope there would go too far, and the next episode would have to take it back.
_SMALLEST_SLOPE: Final = 0.2


@dataclass(frozen=True)
class Link:
    """A mean reward as a function of the score.

    Attributes
    ----------
    linear : bool
        Whether the reward is the score.
    unit : float
        Slope at a score of zero: coefficients, and what is foreseen of them, are those of the squared loss
        over this.
    foreseen : callable
        From scores to mean rewards, in -1/2..1/2, and the slopes that steps are made with.
    """

    linear: bool
    unit: float
    foreseen: Callable[[_Floats], tuple[_Floats, _Floats]]


def _score_itself(scores: _Floats) -> tuple[_Floats, _Floats]:
    return scores, np.ones_like(scores)


def _sigmoid(scores: _Floats) -> tuple[_Floats, _Floats]:
    rewards = np.tanh(scores / 2) / 2
    return rewards, np.maximum(0.25 - rewards**2, _SMALLEST_SLOPE)


#: By the loss.
LINKS: Final = {
    "squared": Link(True, 1.0, _score_itself),
    "logistic": Link(False, 0.25, _sigmoid),
}
