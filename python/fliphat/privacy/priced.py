"""One fit's releases with integer noise scales, priced exactly when they are written down.

A :class:`PricedRelease` is a list of what one fit releases, in order, and the claim it supports. Building
one recomputes the price from integers, so a mistake in whoever chose the scales can waste noise or raise, but
cannot overstate privacy. :func:`price` finds the scales.

Sensitivities are about *one* replaced row; a person's ``users`` rows move everything up to ``users`` times
as far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, NamedTuple

from fliphat import _native, arguments
from fliphat.privacy import composition
from fliphat.privacy.accounting import MAX_SCALE, check_delta
from fliphat.privacy.conversion import float_up, rho_from_epsilon

__all__ = [
    "ACCOUNTINGS",
    "Claim",
    "Part",
    "PickNoise",
    "PricedRelease",
    "VectorNoise",
    "fit_scales",
    "listed",
    "noise_of",
    "price",
    "scales_of",
]

ACCOUNTINGS: Final = ("exact", "zcdp")

#: Scales are found for this much of a delta: whoever prices them again may round events, and with them the
#: grid, a little differently, which moves a price by some millionths.
_WITHIN: Final = 1 - 1e-5


@dataclass(frozen=True)
class PickNoise:
    """``count`` picks of the exponential mechanism, one after the other.

    Each chooses j with probability proportional to ``exp(score_j / scale)``, where replacing one row moves
    every score by at most ``sensitivity``: log-probability ratios span at most ``2 * sensitivity / scale``.

    Examples
    --------
    >>> PickNoise(sensitivity=2**16, scale=2**18).eta
    Fraction(1, 2)
    """

    sensitivity: int
    scale: int
    count: int = 1

    def __post_init__(self) -> None:
        arguments.integer("sensitivity", self.sensitivity, 0, 2**62)
        arguments.integer("scale", self.scale, 1, MAX_SCALE)
        arguments.integer("count", self.count, 1, 2**31)

    @property
    def eta(self) -> Fraction:
        """Range of the log-probability ratios, for one row."""
        return Fraction(2 * self.sensitivity, self.scale)

    @property
    def rho(self) -> Fraction:
        """ZCDP cost of all of them, for one row."""
        return self.count * self.eta**2 / 8

    @property
    def named(self) -> tuple[int, int, int]:
        """As :func:`price` takes them."""
        return self.sensitivity, self.scale, self.count

    def events(self, users: int) -> tuple[composition.Event, ...]:
        """Return the picks, as large as `users` rows make them, rounded up."""
        return (composition.Pick(float_up(users * self.eta)),) * self.count


@dataclass(frozen=True)
class Part:
    """Integers of a vector that share a standard deviation.

    Attributes
    ----------
    sensitivity_squared : int or Fraction
        Largest squared Euclidean norm by which replacing one row moves this part, exact. For example
        ``m * 2**32`` for m coordinate sums of clipped gradients, each of which moves by at most 2^16;
        ``B**4`` for the second moments of rows in a ball of radius B, with `sigma` on the entries above the
        diagonal and at least ``sqrt(2) * sigma`` on it.
    sigma : int
        Standard deviation of the rounded Gaussian noise.
    """

    sensitivity_squared: int | Fraction
    sigma: int

    def __post_init__(self) -> None:
        if isinstance(self.sensitivity_squared, bool) or not isinstance(
            self.sensitivity_squared, int | Fraction
        ):
            raise TypeError(
                f"sensitivity_squared must be an int or a Fraction, which are exact, got "
                f"{type(self.sensitivity_squared).__name__}"
            )
        if self.sensitivity_squared < 0:
            raise ValueError(f"sensitivity_squared must be at least 0, got {self.sensitivity_squared}")
        arguments.integer("sigma", self.sigma, 1, MAX_SCALE)


@dataclass(frozen=True)
class VectorNoise:
    """One vector of integers plus independent rounded Gaussians: round(N(0, sigma^2)) for each part's sigma.

    Its ``mu^2`` is the sum of ``sensitivity_squared / sigma^2`` over the parts.

    Examples
    --------
    >>> VectorNoise(Part(4, 4), Part(9, 6)).mu_squared
    Fraction(1, 2)
    """

    parts: tuple[Part, ...]

    def __init__(self, *parts: Part) -> None:
        for part in parts:
            if not isinstance(part, Part):
                raise TypeError(f"parts must be Part, got {type(part).__name__}")
        object.__setattr__(self, "parts", parts)

    @property
    def mu_squared(self) -> Fraction:
        """Squared norm of shift over standard deviation, for one row."""
        return sum((Fraction(part.sensitivity_squared) / part.sigma**2 for part in self.parts), Fraction(0))

    @property
    def rho(self) -> Fraction:
        """ZCDP cost, for one row."""
        return self.mu_squared / 2

    @property
    def named(self) -> list[tuple[int, int]]:
        """As :func:`price` takes it; fractions are rounded up."""
        return [(math.ceil(part.sensitivity_squared), part.sigma) for part in self.parts]

    def events(self, users: int) -> tuple[composition.Event, ...]:
        """Return the vector, as large as `users` rows make it, rounded up."""
        return (composition.Gaussian(root_up(users**2 * self.mu_squared)),)


Noise = PickNoise | VectorNoise


class Proof(NamedTuple):
    """What the native search computed of the scales that it found: their price, and by how much they grew."""

    price: float
    factor: float


@dataclass(frozen=True, kw_only=True)
class PricedRelease:
    """What one fit releases, in order, and the (epsilon, delta) that it is checked against on construction.

    Attributes
    ----------
    noise : tuple of PickNoise and VectorNoise
        In the order of release, which the price depends on.
    epsilon, delta : float
        The claim.
    users : int
        Rows of one person that are protected together. They may enter one such fit or be spread over several.
    beside : tuple of tuples of PickNoise and VectorNoise
        With ``users > 1``: all other kinds of fits that a person's rows may enter. A fit whose noise is
        neither `noise` nor one of these is not covered.
    accounting : {"exact", "zcdp"}
        "exact" prices the sequence (:mod:`fliphat.privacy.composition`). "zcdp" adds up zCDP costs, which
        needs more noise but covers fits of every kind without `beside`, as long as each is within the same
        claim.

    Examples
    --------
    >>> release = PricedRelease(
    ...     noise=(PickNoise(2**16, 2**18, count=2), VectorNoise(Part(2 * 2**32, 2**18))),
    ...     epsilon=1.5, delta=0.01)
    >>> release.price <= 0.01
    True
    """

    noise: tuple[Noise, ...]
    epsilon: float
    delta: float
    users: int = 1
    beside: tuple[tuple[Noise, ...], ...] = ()
    accounting: str = "exact"
    #: Of scales that :func:`price` found, and of no others.
    proof: Proof | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", tuple(self.noise))
        object.__setattr__(self, "beside", tuple(tuple(fit) for fit in self.beside))
        arguments.choice("accounting", self.accounting, ACCOUNTINGS)
        arguments.integer("users", self.users, 1, 2**31)
        check_delta(self.delta)
        if self.accounting == "zcdp":
            allowed = Fraction(rho_from_epsilon(self.epsilon, self.delta)) if self.delta else Fraction(0)
            if self.rho > allowed:
                raise ValueError(
                    f"the noise costs rho = {float(self.rho):.6g}, but epsilon = {self.epsilon!r} with "
                    f"delta = {self.delta!r} allows rho = {float(allowed):.6g}"
                )
        elif (price := self.price) > self.delta:
            raise ValueError(
                f"the noise costs delta = {price:.6g} at epsilon = {self.epsilon!r}, but only delta = "
                f"{self.delta!r} is claimed"
            )

    @property
    def events(self) -> tuple[composition.Event, ...]:
        """The events of one fit that all the person's rows enter, in order."""
        return _events(self.noise, self.users)

    @property
    def kinds(self) -> tuple[tuple[composition.Event, ...], ...]:
        """The events of this fit and of those beside it, as large as all the person's rows make them."""
        return tuple(_events(fit, self.users) for fit in (self.noise, *self.beside))

    @property
    def price(self) -> float:
        """Smallest delta that is shown at this epsilon, for the accounting "exact"."""
        if self.proof is None or self.accounting == "zcdp":
            return self._priced_again()
        return self.proof.price

    def _priced_again(self) -> float:
        own, *others = self.kinds
        return composition.delta(self.epsilon, own, beside=others, users=self.users)

    @property
    def rho(self) -> Fraction:
        """Exact zCDP cost of one fit that all the person's rows enter."""
        return self.users**2 * sum((noise.rho for noise in self.noise), Fraction(0))

    def record(self) -> dict[str, object]:
        """Return what a reviewer needs to compute the price again; ``json`` can write it."""
        found: dict[str, object] = {
            "accounting": self.accounting,
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "users": self.users,
            "noise": [[scales_of(noise) for noise in fit] for fit in (self.noise, *self.beside)],
            "events": listed(self.events),
        }
        if self.accounting == "zcdp":
            return found | {"rho": str(self.rho)}
        menu = self.kinds
        found["beside"] = [listed(fit) for fit in menu[1:]]
        found["price"] = price = self._priced_again()
        if price:
            found["grid"] = composition.grid(self.epsilon, menu, users=self.users)._asdict()
        return found


def fit_scales(
    template: Sequence[Noise], *, epsilon: float, delta: float, users: int = 1, accounting: str = "exact"
) -> PricedRelease:
    """Return the releases of `template` with all scales times one factor, the smallest that the claim allows.

    As :func:`price`, whose template is integers. Fits beside it are not looked for: construction of a
    :class:`PricedRelease` checks them together.
    """
    users = arguments.integer("users", users, 1, 2**31)
    arguments.choice("accounting", accounting, ACCOUNTINGS)
    return price([noise.named for noise in template], Claim(epsilon, delta, users, accounting))


class Claim(NamedTuple):
    """What noise must support: epsilon, delta, rows of a person, and how it is priced."""

    epsilon: float
    delta: float
    users: int = 1
    accounting: str = "exact"


#: Picks as ``(sensitivity, scale, count)``, a vector as ``[(squared sensitivity, sigma), ...]``.
Template = Sequence[tuple[int, int, int] | list[tuple[int, int]]]


def price(template: Template, claim: Claim, *, factor: float | None = None) -> PricedRelease:
    """Return the releases of a template at the smallest scales that a claim allows, in one native call.

    Parameters
    ----------
    template : list of tuples and lists
        In release order, picks as ``(sensitivity, scale, count)`` and vectors as lists of
        ``(squared sensitivity, sigma)``. Only the ratios of scales matter: give them with enough digits.
    claim : Claim
    factor : float, optional
        What an earlier search with the same shares found: where this one starts and no more.

    Examples
    --------
    >>> release = price([(2**16, 10**6, 3), [(3 * 2**32, 2 * 10**6)]], Claim(1.0, 0.01))
    >>> [type(noise).__name__ for noise in release.noise], release.price > 0.0099
    (['PickNoise', 'VectorNoise'], True)
    """
    epsilon, delta, users, accounting = claim
    rho = rho_from_epsilon(epsilon, delta) if accounting == "zcdp" else None
    scales, cost, found = _native.price_scales(list(template), epsilon, _WITHIN * delta, users, rho, factor)
    # The native code has checked the template, and proved the price of the scales that it found: what is made
    # of them here is neither checked nor priced again.
    noise: list[Noise] = []
    for release, own in zip(template, scales, strict=True):
        made: Any
        if isinstance(release, tuple):
            made = object.__new__(PickNoise)
            made.__dict__.update(sensitivity=release[0], scale=own[0], count=release[2])
        else:
            parts = []
            for (squared, _), sigma in zip(release, own, strict=True):
                part = object.__new__(Part)
                part.__dict__.update(sensitivity_squared=squared, sigma=sigma)
                parts.append(part)
            made = object.__new__(VectorNoise)
            made.__dict__["parts"] = tuple(parts)
        noise.append(made)
    proven = object.__new__(PricedRelease)
    proven.__dict__.update(
        noise=tuple(noise),
        epsilon=epsilon,
        delta=delta,
        users=users,
        beside=(),
        accounting=accounting,
        proof=Proof(cost, found),
    )
    return proven


def root_up(exact: Fraction) -> float:
    """Return a float at or above the square root of `exact`, within two of the smallest one.

    Examples
    --------
    >>> root_up(Fraction(1, 4)), Fraction(root_up(Fraction(1, 2))) ** 2 >= Fraction(1, 2)
    (0.5, True)
    """
    root = math.sqrt(float_up(exact))
    while Fraction(root) ** 2 < exact:
        root = math.nextafter(root, math.inf)
    return root


def _events(noise: Sequence[Noise], users: int) -> tuple[composition.Event, ...]:
    return tuple(event for release in noise for event in release.events(users))


def scales_of(noise: Noise) -> dict[str, Any]:
    """Return a release as integers, for JSON: how far one row moves it, and the noise."""
    if isinstance(noise, PickNoise):
        return {"picks": noise.count, "sensitivity": noise.sensitivity, "scale": noise.scale}
    return {"vector": [[str(part.sensitivity_squared), part.sigma] for part in noise.parts]}


def noise_of(record: dict[str, Any]) -> Noise:
    """Return what :func:`scales_of` wrote."""
    if "vector" in record:
        return VectorNoise(*(Part(Fraction(squared), sigma) for squared, sigma in record["vector"]))
    return PickNoise(record["sensitivity"], record["scale"], record["picks"])


def listed(events: Sequence[composition.Event]) -> list[list[object]]:
    """Events as ``[kind, size, how many in a row]``."""
    found: list[list[object]] = []
    for event in events:
        if found and found[-1][:2] == [event.kind, event.size]:
            found[-1][2] = int(str(found[-1][2])) + 1
        else:
            found.append([event.kind, event.size, 1])
    return found
