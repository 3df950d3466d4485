"""Projection on the l1 ball."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _rows


def project_l1(v: npt.ArrayLike, radius: float) -> npt.NDArray[np.float64]:
    """Project a vector on the l1 ball.

    Expected linear time, no sort. The result is the closest point to `v` (in Euclidean distance) whose
    absolute values sum to at most `radius`; projecting it again returns the same bits.

    Parameters
    ----------
    v : array_like, shape (d,)
        Finite numbers; computed in float64.
    radius : float
        Above 0.

    Returns
    -------
    ndarray of float64, shape (d,)

    Examples
    --------
    >>> from fliphat import kernels
    >>> kernels.project_l1([3.0, -1.0], 2.0)
    array([2., 0.])

    References
    ----------
    L. Condat, "Fast projection onto the simplex and the l1 ball", Mathematical Programming 158, 2016.
    """
    radius = arguments.positive("radius", radius)
    array = _rows.vector("v", v, None)
    _rows.nonempty("v", array.shape)
    return _native.project_l1(array, radius)
