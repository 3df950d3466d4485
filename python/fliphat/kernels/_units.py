"""Plain units: how floats, a sensitivity and a budget become integers and integer scales of noise.

Floats are expressed in a lattice's `unit`, a power of two, and rounded to the nearest integer, halves up. Two
numbers that are at most D apart become integers that are at most ``ceil(D / unit)`` apart, and that is what
noise is priced for: rounding costs at most one unit of sensitivity, a millionth of it or of the noise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.kernels import _rows

#: Scales and standard deviations are below this.
SCALE_LIMIT = 2**40

VALUE_NOISES = ("rounded_gaussian", "gaussian", "laplace")
MECHANISMS = ("exponential", "laplace")
_FINE_BITS = 20
_LARGEST = 2.0**52


class Scales(NamedTuple):
    """Integer scales of picks and of values, and what is added to values."""

    pick: int
    value: int
    value_noise: str


def unit_of(size: float) -> float:
    """Return the lattice for numbers whose sensitivity or noise has a size: 2^20 to 2^21 units of it."""
    # Exact, unlike a logarithm, which takes the number just below a power of two for the power itself.
    return math.ldexp(1.0, math.frexp(size)[1] - 1 - _FINE_BITS)


def on_lattice(v: npt.NDArray[np.float64], unit: float) -> npt.NDArray[np.int64]:
    """Round to multiples of `unit`, halves up; what is beyond 2^52 of them is clamped."""
    if not np.isfinite(v).all():
        raise ValueError("v must be finite numbers")
    clamped = np.clip(v / unit, -_LARGEST, _LARGEST)
    return np.asarray(np.floor(clamped + 0.5), np.int64)


def scales_for(
    picks: int,
    *,
    sensitivity: int,
    epsilon: float,
    delta: float,
    mechanism: str,
    value_noise: str | None,
) -> Scales:
    """Return scales at which `picks` picks and as many values are (epsilon, delta)-DP, half of it for each.

    With ``delta = 0`` a pick is ``2 L / scale``-DP and a value ``L / scale``-DP. With delta above 0 the costs
    are added in zCDP, ``L^2 / (2 scale^2)`` for a value and a pick (four times that for ``"laplace"`` picks),
    up to the rho with ``rho + 2 sqrt(rho ln(1/delta)) = epsilon``.
    """
    epsilon = arguments.positive("epsilon", epsilon)
    delta = arguments.within("delta", delta, 0.0, 0.999)
    if delta == 0:
        if value_noise not in (None, "laplace"):
            raise ValueError(f"value_noise must be 'laplace' with delta = 0, got {value_noise!r}")
        pick, value, noise = 4 * picks / epsilon, 2 * picks / epsilon, "laplace"
    else:
        logarithm = math.log(1 / delta)
        root = math.sqrt(logarithm + epsilon) - math.sqrt(logarithm)
        value, noise = math.sqrt(picks) / root, value_noise or "rounded_gaussian"
        pick = value * (2 if mechanism == "laplace" else 1)
    # A little more than the formula, for its rounding.
    more = sensitivity * (1 + 1e-12)
    return Scales(math.ceil(more * pick), math.ceil(more * value), noise)


def resolved(
    v: npt.NDArray[Any],
    picks: int,
    *,
    pick_scale: float | None,
    value_scale: float | None,
    epsilon: float | None,
    delta: float,
    sensitivity: float | None,
    mechanism: str,
    value_noise: str | None,
) -> tuple[npt.NDArray[np.int64], float | None, Scales]:
    """Return integers, their unit (None for those that were integers already) and scales of noise."""
    arguments.choice("mechanism", mechanism, MECHANISMS)
    if value_noise is not None:
        arguments.choice("value_noise", value_noise, VALUE_NOISES)
    whole = v.dtype.kind != "f"
    if epsilon is not None:
        if sensitivity is None or pick_scale is not None or value_scale is not None:
            raise ValueError("epsilon needs sensitivity, and neither pick_scale nor value_scale")
        moved = arguments.positive("sensitivity", sensitivity)
        unit = 1.0 if whole else unit_of(moved)
        claim: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "mechanism": mechanism}
        scales = scales_for(
            max(picks, 1), sensitivity=math.ceil(moved / unit), value_noise=value_noise, **claim
        )
    elif sensitivity is not None or pick_scale is None or value_scale is None:
        raise ValueError("give pick_scale and value_scale, or epsilon and sensitivity")
    elif whole:
        unit = 1.0
        sizes = (("pick_scale", pick_scale), ("value_scale", value_scale))
        given = [arguments.integer(name, size, 1, SCALE_LIMIT - 1) for name, size in sizes]
        scales = Scales(given[0], given[1], value_noise or "rounded_gaussian")
    else:
        pick_scale = arguments.positive("pick_scale", pick_scale)
        value_scale = arguments.positive("value_scale", value_scale)
        unit = unit_of(min(pick_scale, value_scale))
        scales = Scales(
            math.ceil(pick_scale / unit), math.ceil(value_scale / unit), value_noise or "rounded_gaussian"
        )
    for size in scales[:2]:
        arguments.integer("noise scale in lattice units", size, 1, SCALE_LIMIT - 1)
    return (v, None, scales) if whole else (on_lattice(v, unit), unit, scales)


def numbers(name: str, v: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return `v` as a vector of int64 or float64; messages never contain an element."""
    try:
        array: npt.NDArray[Any] = _rows.plain_array(name, v)
    except (ValueError, OverflowError):
        # NumPy's own message may quote an element.
        array = np.empty(0, object)
    if array.ndim == 1 and _rows.in_place(array, np.int64):
        return array
    floats = array.dtype.kind == "f" and array.dtype.itemsize <= 8
    if not (floats or (array.dtype.kind in "iu" and np.can_cast(array.dtype, np.int64))):
        raise TypeError(f"{name} must be an array of floats, or of integers that fit int64")
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    return np.require(array, np.float64 if floats else np.int64, ["C", "A"])
