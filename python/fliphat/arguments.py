"""Checks of public arguments, with messages that name the argument, its range and the value given.

Private arguments (rows, rewards, contexts) are never checked here: messages about them must not contain a
value, so each kernel words its own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection
from numbers import Real
from typing import SupportsIndex, cast


def positive(name: str, value: object) -> float:
    """Return ``value`` as a finite float above zero."""
    number = real(name, value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
    return number


def not_negative(name: str, value: object) -> float:
    """Return ``value`` as a finite float, zero allowed."""
    number = real(name, value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return number


def within(name: str, value: object, low: float, high: float) -> float:
    """Return ``value`` as a float in ``low..high``, both ends allowed."""
    number = real(name, value)
    if not low <= number <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return number


def real(name: str, value: object) -> float:
    """Return ``value`` as a float; booleans and strings are not numbers here."""
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a finite number, got one beyond the range of float64") from None


def integer(name: str, value: object, low: int, high: int) -> int:
    """Return ``value`` as an int in ``low..high``, both ends allowed."""
    if type(value) is int and low <= value <= high:  # the common case
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    number = operator.index(cast(SupportsIndex, value))
    if not low <= number <= high:
        raise ValueError(f"{name} must be an integer from {low} to {high}, got {number}")
    return number


def flag(name: str, value: object) -> bool:
    """Return True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def choice(name: str, value: object, allowed: Collection[str]) -> str:
    """Return ``value`` if it is one of ``allowed``."""
    if not isinstance(value, str) or value not in allowed:
        listed = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")
    return value
