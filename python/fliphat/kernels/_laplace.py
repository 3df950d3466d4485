"""The secure Laplace: noise on a lattice, drawn in integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _rows

SCALE_RANGE = (2.0**-900, 2.0**900)

#: Integers up to here are floats exactly.
EXACT_INTEGERS = 2**53


def laplace(scale: float, size: int | tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Draw Laplace noise that is safe to release.

    Each sample is ``lattice * Z``. `lattice` is the power of two with ``scale * 2**-21 < lattice <= scale *
    2**-20``, and Z is an integer with P(Z = z) proportional to ``exp(-|z| / t)``, exactly, where ``t =
    ceil(scale / lattice)``. So the scale is never below `scale`, and at most ``scale * (1 + 2**-20)``.
    The bits come from the operating system through ChaCha20, fresh for every call; there is no seed.

    To protect a value use `laplace_mechanism`. Adding this noise to a float yourself is not private: which
    sums can occur would depend on the value.

    Parameters
    ----------
    scale : float
        From ``2**-900`` to ``2**900``.
    size : int or tuple of int
        The shape of the result.

    Returns
    -------
    ndarray of float64, shape `size`

    Raises
    ------
    OSError
        If the operating system has no entropy to give. Nothing is drawn then.

    Examples
    --------
    >>> from fliphat import kernels
    >>> noise = kernels.laplace(1.0, (2, 3))
    >>> noise.shape
    (2, 3)
    >>> bool((noise * 2**20 == (noise * 2**20).round()).all())
    True

    References
    ----------
    C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
    """
    scale = _scale(scale)
    shape = size if isinstance(size, tuple) else (size,)
    shape = tuple(arguments.integer("size", length, 0, 2**62) for length in shape)
    noise = np.empty(shape)
    _native.laplace_fill(noise.reshape(-1), scale)
    return noise


def laplace_mechanism(
    values: npt.ArrayLike,
    scale: float | None = None,
    *,
    epsilon: float | None = None,
    sensitivity: float | None = None,
) -> npt.NDArray[np.float64]:
    """Release values with Laplace noise.

    Say how far all values together may move when one person's data change (`sensitivity`, the sum of the
    moves) and what may be spent (`epsilon`): the whole call is then epsilon-DP. Or give the noise's scale.

    Each value is rounded to the nearest multiple (halves up) of `lattice`, the power of two with ``scale *
    2**-21 < lattice <= scale * 2**-20``. Noise Z with P(Z = z) proportional to ``exp(-|z| / t)``, exactly,
    where ``t = ceil(scale / lattice)``, is added to the multiple in integers, and the sum times `lattice` is
    returned. The outputs that can occur are ``k * lattice`` for the integers k up to ``2**53`` in magnitude,
    whatever the value.

    If a value moves by at most D between neighbours, its release is ``ceil(D / lattice) / t``-DP, which is at
    most ``(D + lattice) / scale``: rounding adds at most `lattice`, a millionth of the scale, to the
    sensitivity of each value. With `epsilon`, ``scale = sensitivity / (epsilon - n 2**-20)`` for n values
    pays for that.

    Parameters
    ----------
    values : array_like
        Finite real numbers: floats of at most 64 bits, or integers. Values beyond ``2**52`` multiples of
        `lattice` (about ``2**32`` scales) are clamped to that, and 64-bit integers to ``2**53`` first;
        neither raises the sensitivity.
    scale : float
        From ``2**-900`` to ``2**900``, in the units of `values`.
    epsilon, sensitivity : float
        Instead of `scale`; epsilon above a millionth for each value.

    Returns
    -------
    ndarray of float64, of the shape of `values`

    Raises
    ------
    ValueError
        If a value is not finite. The message does not contain it, and nothing is released.
    OSError
        If the operating system has no entropy to give. Nothing is released then.

    Examples
    --------
    >>> from fliphat import kernels
    >>> ages = [31.0, 45.0, 27.0, 62.0]  # each from 0 to 100
    >>> mean = sum(ages) / len(ages)  # one person moves it by 25 at most
    >>> private = kernels.laplace_mechanism(mean, epsilon=1.0, sensitivity=25.0)
    >>> bool(abs(private - mean) < 1000)
    True
    >>> abs(float(kernels.laplace_mechanism(10.0, scale=1e-3)) - 10.0) < 1.0
    True

    References
    ----------
    I. Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.
    """
    released = _float_copy("values", values)
    scale = mechanism_scale(released.size, scale, epsilon, sensitivity)
    _native.laplace_release(released.reshape(-1), scale)
    return released


def mechanism_scale(
    count: int, scale: float | None, epsilon: float | None, sensitivity: float | None
) -> float:
    """Return the scale that was given, or the one at which `count` values are epsilon-DP."""
    if scale is not None:
        if epsilon is not None or sensitivity is not None:
            raise ValueError("give scale, or epsilon and sensitivity")
        return _scale(scale)
    if epsilon is None or sensitivity is None:
        raise ValueError("give scale, or epsilon and sensitivity")
    left = arguments.positive("epsilon", epsilon) - count * 2.0**-20
    if left <= 0:
        raise ValueError(f"epsilon must be above {count} * 2**-20 for {count} values, got {epsilon!r}")
    # A little more than the formula, for its rounding.
    return _scale(arguments.positive("sensitivity", sensitivity) / left * (1 + 1e-12))


def _scale(scale: float) -> float:
    number = arguments.positive("scale", scale)
    low, high = SCALE_RANGE
    if not low <= number <= high:
        raise ValueError(f"scale must be a number from 2**-900 to 2**900, got {number!r}")
    return number


def _float_copy(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return an own copy as float64, with conversions that never move two numbers further apart."""
    try:
        array: npt.NDArray[Any] = _rows.plain_array(name, values)
    except (ValueError, OverflowError):
        # NumPy's own message may quote an element; the one below is raised outside, with no trace of it.
        array = np.empty(0, object)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind in "iu" and size == 8:
        low = 0 if kind == "u" else -EXACT_INTEGERS
        array = np.clip(array, low, EXACT_INTEGERS)
    elif not (kind in "biu" or (kind == "f" and size <= 8)):
        raise TypeError(f"{name} must be an array of real numbers (floats of at most 64 bits, or integers)")
    return np.array(array, dtype=np.float64, order="C")
