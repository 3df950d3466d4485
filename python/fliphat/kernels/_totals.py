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

    Returns
    -------
    released : ndarray of int64
        All parts, one after the other, in steps of their ``2**shift``.
    secret : bytes

    Raises
    ------
    ValueError
        If the secret does not hold the total that a part is to be added to: that of another release, or one
        that these rows are in already.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat.kernels import _fits
    >>> sigmas = np.array([1, 1], np.uint64)
    >>> first = _fits.TotalPart(0, np.array([100, -100]), 4, (0, 0), sigmas, 0, True)
    >>> released, secret = _fits.release_totals(None, [first])
    >>> released, secret = _fits.release_totals(secret, [first._replace(weight=5, before=(1, 4))])
    >>> bool(abs(released[0] - 900) < 20)
    True
    """
    return _native.release_totals(secret, list(parts), seeded=seeded)
