"""Totals of everybody so far, released again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fliphat import _native

__all__ = ["TotalPart", "release_totals"]


class TotalPart(NamedTuple):
    """One part of a release; everything but `added` is public.

    Attributes
    ----------
    name : int
        Which part it is, for ever.
    added : ndarray of int64
        This episode's integers, private.
    weight : int
        What they are multiplied with; above the weight before, below 2^48.
    before : (int, int)
        How often, and with which weight last, the total was released that they are added to; (0, 0) starts an
        empty one.
    sigmas : ndarray of uint64
        Standard deviations of the noise on the total, in steps of ``2**shift``.
    shift : int
    kept : bool
        Whether the total is kept for the next release.
    """

    name: int
    added: npt.NDArray[np.int64]
    weight: int
    before: tuple[int, int]
    sigmas: npt.NDArray[np.uint64]
    shift: int
    kept: bool


def release_totals(
    secret: bytes | None, parts: Sequence[TotalPart], *, seeded: tuple[int, int] | None = None
) -> tuple[npt.NDArray[np.int64], bytes]:
    """Release sums of everybody so far with fresh Gaussian noise, exactly, and keep the sums as secret bytes.

    A part's total is ``S = S + weight * added``, in integers that nothing rounds. What is released is
    ``round((S + N(0, (sigma * 2**shift)**2)) / 2**shift)``: post-processing of the Gaussian mechanism on S.
    A row that entered with the weight W moves every later total by W times its own integers.

    Parameters
    ----------
    secret : bytes, optional
        What the last release returned; private, and good for one release.
    parts : sequence of TotalPart
        A part may be longer than it was: what is new was zero. Parts left out are dropped.
    seeded : (int, int), optional
        Seed and stream, for simulation: nothing is private then.
    """
    return _native.release_totals(secret, list(parts), seeded=seeded)
