"""Exploration: which rounds play a uniform arm, and how likely the arm that was shown was.

A round explores with the episode's public share e, decided by a random word of its own; otherwise it plays a
best arm. So an arm that is one of t best among K has probability (1 - e)/t + e/K, any other e/K, and each arm
of a round without an estimate, or with contexts that can't be used, 1/K. All of this is a function of the
round's own contexts and public numbers: it belongs to whoever may see the decision.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_TIED", "explores", "probabilities", "probability", "vote_code"]

#: Counts of tied arms end here, in the native code too: a store keeps them in three bytes.
MOST_TIED: Final = 2**24 - 1

#: Where an arm is chosen by votes, their share in steps of one over `_ALL_VOTES` is kept, on top of this.
_VOTES: Final = 2**23
_ALL_VOTES: Final = 2**16


def vote_code(votes: npt.NDArray[np.int64], of: int) -> npt.NDArray[np.uint32]:
    """Return what stands for "so many of `of` draws chose this arm", a power of two, where ties are counted.

    A count of tied arms is never larger than that of all arms; this is.
    """
    return (_VOTES + votes * (_ALL_VOTES // of)).astype(np.uint32)


def explores(word: Any, share: float) -> Any:
    """Return whether a random word, or each of an array of them, says that its round explores."""
    return word >> 11 < share * 2.0**53


def probability(tied: int, arms: int, share: float) -> float:
    """Return the chance of an arm among `arms`, if `tied` best ones share the first place with it (0: none).

    Or, above `arms`, what :func:`vote_code` says.

    Examples
    --------
    >>> probability(1, 4, 0.2), probability(0, 4, 0.2), probability(4, 4, 0.2)
    (0.8500000000000001, 0.05, 0.25)
    >>> probability(int(vote_code(np.array([3]), 32)[0]), 4, 0.0)
    0.09375
    """
    if arms == 0:
        return math.nan  # a round of an earlier version, which did not say
    if tied > arms:
        return share / arms + (1 - share) * (tied - _VOTES) / _ALL_VOTES
    if tied >= min(arms, MOST_TIED):
        return 1 / arms
    return share / arms + ((1 - share) / tied if tied else 0.0)


def probabilities(
    tied: npt.NDArray[np.uint32], arms: int | npt.NDArray[np.int64], share: float
) -> npt.NDArray[np.float64]:
    """Return :func:`probability` of each round of a batch, in which rounds may have different arms."""
    if isinstance(arms, int) and len(tied) and (tied == tied[0]).all():  # the common case
        return np.full(len(tied), probability(int(tied[0]), arms, share))
    # Both numbers in one: rows of two are slow to sort.
    codes = tied.astype(np.int64) << 32 | arms
    found, place = np.unique(codes, return_inverse=True)
    return np.array([probability(one >> 32, one & 0xFFFFFFFF, share) for one in found.tolist()])[place]
