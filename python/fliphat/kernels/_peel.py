"""Peeling: which coordinates are large, and how large, privately."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _units


def peel(
    v: npt.ArrayLike,
    s: int,
    *,
    pick_scale: float | None = None,
    value_scale: float | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    sensitivity: float | None = None,
    mechanism: str = "exponential",
    value_noise: str | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Pick `s` large coordinates of a vector and release noisy values of them.

    Say how far a coordinate may move when one person's data change (`sensitivity`) and what may be spent
    (`epsilon`, `delta`), in the units of `v`: the whole call is then (epsilon, delta)-DP. Or give the
    scales of the noise yourself.

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

    Floats are rounded to a lattice first, halves up: with `sensitivity` one of 2^20 to 2^21 units to it, with
    scales one of that many to the smaller scale. Rounding adds less than a unit to L. With `epsilon` half is
    spent on picks and half on values; with delta above 0 it is added up in zCDP.

    Parameters
    ----------
    v : array_like of float or int, shape (d,)
        Finite. Integers, strictly between ``-2**62`` and ``2**62``, are taken as they are.
    s : int
        How many coordinates to pick, from 0 to d.
    pick_scale, value_scale : float
        In the units of `v`; for integers an integer from 1 to ``2**40 - 1``.
    epsilon, delta : float
        Instead of scales.
    sensitivity : float
        How far one coordinate of `v` may move; with `epsilon` only.
    mechanism : {"exponential", "laplace"}
        How coordinates are picked.
    value_noise : {"rounded_gaussian", "gaussian", "laplace"}, optional
        What is added to the values of picked coordinates: by default "rounded_gaussian", and "laplace" where
        ``delta = 0`` is asked for.

    Returns
    -------
    support : ndarray of int64, shape (s,)
        The coordinates, in the order picked.
    values : ndarray, shape (s,)
        Their noisy values: float64 for floats, int64 (clamped to ``2**62 - 1``) for integers.

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
    >>> clicks = np.array([12.0, 480.0, 7.0, 350.0, 20.0])  # one person adds at most 1 to each
    >>> support, values = kernels.peel(clicks, 2, epsilon=1.0, delta=1e-6, sensitivity=1.0)
    >>> sorted(support.tolist())
    [1, 3]
    >>> bool(np.abs(values - clicks[support]).max() < 100)
    True

    Integers with scales of their own:

    >>> support, values = kernels.peel(np.array([3, -1_000_000, 7]), 1, pick_scale=100, value_scale=100)
    >>> support
    array([1])

    References
    ----------
    F. McSherry, K. Talwar, "Mechanism design via differential privacy", FOCS 2007.

    C. Dwork, W. Su, L. Zhang, "Differentially private false discovery rate control", Journal of Privacy and
    Confidentiality 11(2), 2021 (Peeling).

    C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
    """
    array = _units.numbers("v", v)
    count = arguments.integer("s", s, 0, len(array))
    integers, unit, scales = _units.resolved(
        array, count, pick_scale=pick_scale, value_scale=value_scale, epsilon=epsilon, delta=delta,
        sensitivity=sensitivity, mechanism=mechanism, value_noise=value_noise,
    )  # fmt: skip
    support, values = _native.peel(integers, count, scales.pick, scales.value, mechanism, scales.value_noise)
    return support, values if unit is None else values * unit
