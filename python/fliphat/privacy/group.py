"""What a claim about one person is worth for several together: m rounds, more than one person's k.

A group's m rounds may fall into one fit or into several, of any kinds that are made, chosen as the fits go;
i of them make a fit's events i/k as large. That is the game of :mod:`fliphat.privacy.composition` with m rows
instead of k (C16 of ``docs/privacy.md``): W_0 is the end, W_j the largest over fits and 1 <= i <= j. Fits
that cost one person the same do not cost a group the same, so all kinds that are possible take part.

Two numbers that hold as well: pure costs grow m/k times, and zCDP costs (m/k)^2 times at most, however the
rounds are spread. The smaller one is returned.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from fliphat.privacy import composition
from fliphat.privacy.conversion import epsilon_from_rho, float_up

__all__ = ["GROUPS", "Kinds", "epsilon_of", "events_of"]

#: Events of the kinds of fits that rounds may enter, as large as one person's rounds make them.
Kinds: TypeAlias = tuple[tuple[composition.Event, ...], ...]

#: Groups of so many times what one person has are shown.
GROUPS = (2, 3, 5, 10)

_ROUNDED_UP = 1 + 2**-50


def epsilon_of(
    times: Fraction, claim: tuple[float, float], rho: Fraction | None, kinds: Kinds | None, rounds: int
) -> float:
    """Return epsilon of a group that is `times` one person, at the delta of a person's `claim`.

    With `kinds` of fits the claim is their exact price, and `rounds` can be spread over them; else it follows
    from `rho`, or from pure costs where delta is 0.
    """
    epsilon, delta = claim
    if times <= 1:
        return epsilon
    if kinds is not None:
        return max(epsilon, _exact(delta, kinds, times, rounds))
    if delta == 0:
        return float_up(Fraction(epsilon) * times)
    assert rho is not None
    return max(epsilon, _zcdp(rho, delta, times))


def _zcdp(rho: Fraction, delta: float, times: Fraction) -> float:
    """Return epsilon of a group, from a zCDP cost that covers all of one person's rounds.

    Every cost here is a sum of min(a f^2, b f), f the share of the rounds that a fit has. That over f grows
    with f, so all rounds in one fit cost the most, and times^2 as much at most.
    """
    return epsilon_from_rho(rho * times**2, delta)


@functools.lru_cache(maxsize=256)
def _exact(delta: float, kinds: Kinds, times: Fraction, rounds: int) -> float:
    """Return epsilon of a group; `rounds` is 1 if all of them are in every fit."""
    largest = max(composition.zcdp(kind) for kind in kinds)
    by_zcdp = _zcdp(largest, delta, times)
    factor = float_up(times) * _ROUNDED_UP
    try:
        grown = [[event.scaled(factor) for event in kind] for kind in kinds]
        return min(by_zcdp, composition.epsilon(delta, grown[0], beside=grown[1:], users=rounds))
    except ValueError:
        return by_zcdp  # too large, or too many, to be priced


def events_of(listed: Sequence[Sequence[tuple[str, float, int]]]) -> Kinds:
    """Return kinds of fits from their records: ``[kind, size, how many in a row]`` of each release."""
    kinds: dict[str, type[composition.Event]] = {"pick": composition.Pick, "gaussian": composition.Gaussian}
    return tuple(tuple(kinds[name](size) for name, size, n in fit for _ in range(n)) for fit in listed)
