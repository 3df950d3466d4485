"""One vector of integers, released with Gaussian noise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _rows

__all__ = ["gaussian_release"]

_MAX_SCALE = 2**40


def gaussian_release(values: npt.ArrayLike, sigmas: npt.ArrayLike | int) -> npt.NDArray[np.int64]:
    """Release integers with independent rounded Gaussian noise: ``value + round(N(0, sigma**2))``, exactly.

    It is the Gaussian mechanism, rounded: if replacing a person moves the values by shifts ``d_j`` with
    ``sum((d_j / sigma_j)**2) <= mu**2``, the whole vector costs one ``composition.Gaussian(mu)``.

    Parameters
    ----------
    values : array_like of int64, one-dimensional
        Private. Strictly between ``-2**62`` and ``2**62``.
    sigmas : int, or array_like of integers as long as `values`
        Public. From 1 to ``2**40``.

    Returns
    -------
    ndarray of int64
        Clamped to ``2**62 - 1`` in magnitude.

    Raises
    ------
    ValueError
        If a value is too large. The message does not contain it, and nothing is released.
    OSError
        If the operating system has no entropy to give. Nothing is released then.

    Examples
    --------
    >>> from fliphat import kernels
    >>> released = kernels.gaussian_release([100, -5, 0], [10, 10, 1000])
    >>> released.shape, released.dtype.name
    ((3,), 'int64')

    References
    ----------
    C. Karney (2016). Sampling Exactly from the Normal Distribution. ACM TOMS 42 (1), arXiv:1303.6257.
    """
    array = _rows.plain_array("values", values)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise TypeError("values must be a one-dimensional array of signed integers of at most 64 bits")
    released = np.array(array, dtype=np.int64, order="C")
    one_for_all = np.ndim(sigmas) == 0  # spread by the native function: a million copies would be its half
    _native.gaussian_release(released, scales(sigmas, (1,) if one_for_all else released.shape))
    return released


def scales(sigmas: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
    """Return standard deviations of a shape as the native functions take them; one number is that of all."""
    given = np.asarray(sigmas)
    if given.dtype.kind not in "iu":
        raise TypeError(f"sigmas must be integers, got {given.dtype}")
    if given.ndim == 0:
        given = np.full(shape, arguments.integer("sigmas", int(given), 1, _MAX_SCALE))
    if given.shape != shape:
        raise ValueError(f"sigmas must have the shape of values, {shape}, got {given.shape}")
    # A negative number becomes one beyond 2^63, which is as much too large.
    unsigned = given.astype(np.uint64)
    if given.size and not (unsigned - 1).max() < _MAX_SCALE:
        raise ValueError(
            f"sigmas must be integers from 1 to {_MAX_SCALE}, got {int(given.min())} to {int(given.max())}"
        )
    return unsigned
