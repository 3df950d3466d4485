"""Totals of everybody so far, released again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fliphat import _native

__all__ = ["TotalPart", "release_totals"]


class TotalPart(NamedTuple):
    """One part of a release; everything but `added` is public."""

    name: int  # which part it is, for ever
    added: npt.NDArray[np.int64]  # this episode's integers, private
    weight: int  # what they are multiplied with; above the weight before, below 2^48
    before: tuple[int, int]  # how often, and with which weight last, it was released; (0, 0): it is new
    sigmas: npt.NDArray[np.uint64]  # deviations of the noise on the total, in steps of 2^shift
    shift: int
    kept: bool  # whether the total is kept for the next release


def release_totals(
    secret: bytes | None, parts: Sequence[TotalPart], *, seeded: tuple[int, int] | None = None
) -> tuple[npt.NDArray[np.int64], bytes]:
    """Release sums of everybody so far with fresh Gaussian noise, exactly, and keep the sums as secret bytes.

    A part's total is ``S = S + weight * added``, in integers that nothing rounds. What is released is
    ``round((S + N(0, (sigma * 2**shift)**2)) / 2**shift)``: post-processing of the Gaussian mechanism on S.
    A row that entered with the weight W moves every later total by W times its own integers. The secret is
    what the last release returned: private, and good for one release. A part may be longer than it was (what
    is new was zero), and parts left out are dropped. With a seed and a stream nothing is private.
    """
    return _native.release_totals(secret, list(parts), seeded=seeded)
