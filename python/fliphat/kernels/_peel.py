"""Peeling: which coordinates are large, and how large, privately."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _rows

#: Scales and standard deviations are below this.
SCALE_LIMIT = 2**40


def peel(
    v: npt.ArrayLike,
    s: int,
    *,
    pick_scale: int,
    value_scale: int,
    mechanism: str = "exponential",
    value_noise: str = "rounded_gaussian",
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pick `s` large coordinates of an integer vector and release noisy values of them.

    The picks follow one another, each among the coordinates that remain:

    - ``mechanism="exponential"``: j with probability exactly proportional to ``exp(|v[j]| / pick_scale)``.
    - ``mechanism="laplace"``: the largest ``|v[j]| + noise`` with fresh discrete Laplace noise of scale
      `pick_scale` on every coordinate; ties go to the lowest index.

    Then ``v[j]`` plus fresh noise is released for each pick: discrete Gaussian with sigma = `value_scale`, or
    discrete Laplace of that scale. All distributions are exact; the bits come from the operating system
    through ChaCha20, fresh for every call, and there is no seed.

    If every ``v[j]`` moves by at most L between neighbours, a pick costs ``(L / pick_scale)**2 / 2`` zCDP
    (exponential: it is ``2 L / pick_scale`` bounded-range) or is ``2 L / pick_scale``-DP (laplace), and a
    value costs ``(L / value_scale)**2 / 2`` zCDP (both Gaussians) or is ``L / value_scale``-DP (laplace).

    Parameters
    ----------
    v : array_like of int, shape (d,)
        Strictly between ``-2**62`` and ``2**62``; converted to int64.
    s : int
        How many coordinates to pick, from 0 to d.
    pick_scale, value_scale : int
        From 1 to ``2**40 - 1``, in the units of `v`.
    mechanism : {"exponential", "laplace"}
        How coordinates are picked.
    value_noise : {"rounded_gaussian", "gaussian", "laplace"}
        What is added to the values of picked coordinates.

    Returns
    -------
    support : ndarray of int64, shape (s,)
        The coordinates, in the order picked.
    values : ndarray of int64, shape (s,)
        Their noisy values, clamped to ``2**62 - 1`` in magnitude.

    Raises
    ------
    ValueError
        If an argument is outside its range. Messages never contain an element of `v`.
    OSError
        If the operating system has no entropy to give. Nothing is released then.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import kernels
    >>> v = np.array([3, -1_000_000, 7, 900_000])
    >>> support, values = kernels.peel(v, 2, pick_scale=100, value_scale=100)
    >>> sorted(support.tolist())
    [1, 3]

    References
    ----------
    F. McSherry, K. Talwar, "Mechanism design via differential privacy", FOCS 2007.

    C. Dwork, W. Su, L. Zhang, "Differentially private false discovery rate control", Journal of Privacy and
    Confidentiality 11(2), 2021 (Peeling).

    C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
    """
    array = integer_vector("v", v)
    return _native.peel(
        array,
        arguments.integer("s", s, 0, len(array)),
        arguments.integer("pick_scale", pick_scale, 1, SCALE_LIMIT - 1),
        arguments.integer("value_scale", value_scale, 1, SCALE_LIMIT - 1),
        arguments.choice("mechanism", mechanism, ("exponential", "laplace")),
        arguments.choice("value_noise", value_noise, ("rounded_gaussian", "gaussian", "laplace")),
    )


def integer_vector(name: str, v: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return `v` as an int64 vector; messages never contain an element."""
    try:
        array: npt.NDArray[Any] = _rows.plain_array(name, v)
    except (ValueError, OverflowError):
        # NumPy's own message may quote an element.
        array = np.empty(0, object)
    if array.ndim == 1 and _rows.in_place(array, np.int64):
        return array
    if not (array.dtype.kind in "iu" and np.can_cast(array.dtype, np.int64)):
        raise TypeError(f"{name} must be an array of integers that fit int64")
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    return np.require(array, np.int64, ["C", "A"])
