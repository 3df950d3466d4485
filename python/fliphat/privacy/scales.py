"""Integer noise scales of one fit, tied to the claim they support.

Symbols: sensitivity ``L`` (Lambda), ``rows`` n, ``sparsity`` s, ``iterations`` M, ``clip`` c,
``rounds_per_user`` k, ``pick_scale`` beta (t for report-noisy-max), ``value_scale`` sigma (t for Laplace
values).

One iteration of N-IHT makes s picks and releases s values, so a fit costs ``M s (pick + value)``. Every row
adds an integer of at most 2^15 in size to each sum, so replacing one row moves a sum by at most 2^16, and
replacing k rows by at most ``L = k 2^16``. A user's k rounds may fall into several fits:

- with zCDP or pure costs, a share ``f_e`` of them in fit e costs it at most ``f_e`` times its full cost,
  because every cost here is linear or quadratic in L, or the smaller of the two. The shares sum to at most 1:
  the claim for one fit is the claim for all;
- the exact price covers all ways to spread the rounds over the fits it was told of (``beside``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from fliphat import arguments
from fliphat.privacy import accounting
from fliphat.privacy.accounting import check_delta
from fliphat.privacy.priced import Noise, Part, PickNoise, PricedRelease, VectorNoise

__all__ = [
    "ACCOUNTINGS",
    "MECHANISMS",
    "ROW_SENSITIVITY",
    "VALUE_NOISES",
    "FitShape",
    "NoiseScales",
    "check_delta",
    "releases_of",
]

HALF_RANGE: Final = 2**15
"""Largest size of one row's integer in one coordinate."""

ROW_SENSITIVITY: Final = 2 * HALF_RANGE
"""How far replacing one row can move any integer sum: from -2^15 to +2^15."""

MAX_COUNT: Final = 2**47 - 1
"""Bound on every count: with more rows than this the sums could leave the lattice."""

MECHANISMS: Final = ("exponential", "laplace")
VALUE_NOISES: Final = ("rounded_gaussian", "gaussian", "laplace")
ACCOUNTINGS: Final = ("exact", "zcdp", "pure")


class FitShape(NamedTuple):
    """What a fit releases: ``iterations`` times ``sparsity`` picks and values, with these scales."""

    sparsity: int
    iterations: int
    pick_scale: int
    value_scale: int


def releases_of(shape: FitShape, *, mechanism: str, value_noise: str, rows: int = 1) -> tuple[Noise, ...]:
    """Return the releases of a fit in order, as large as ``rows`` replaced rows make them.

    An epsilon-DP release has log-probability ratios within plus and minus epsilon: a range of 2 epsilon. So
    report-noisy-max, (2 L/t)-DP, is a pick with twice the sensitivity, and a Laplace value, (L/t)-DP, one
    with L.

    Examples
    --------
    >>> [type(noise).__name__ for noise in releases_of(
    ...     FitShape(5, 2, 10**6, 10**6), mechanism="exponential", value_noise="rounded_gaussian")]
    ['PickNoise', 'VectorNoise', 'PickNoise', 'VectorNoise']
    """
    shift = ROW_SENSITIVITY * rows
    if value_noise == "gaussian":
        raise ValueError(
            "value_noise must be 'rounded_gaussian' or 'laplace': the discrete Gaussian is another law"
        )
    picks = PickNoise(shift if mechanism == "exponential" else 2 * shift, shape.pick_scale, shape.sparsity)
    values: Noise = (
        VectorNoise(Part(shape.sparsity * shift**2, shape.value_scale))
        if value_noise == "rounded_gaussian"
        else PickNoise(shift, shape.value_scale, shape.sparsity)
    )
    return (picks, values) * shape.iterations


@dataclass(frozen=True, kw_only=True)
class NoiseScales:
    """Integer noise scales of one fit, with a claim they are checked against on construction.

    Attributes
    ----------
    epsilon, delta : float
        The claim. ``delta = 0`` is pure differential privacy.
    pick_scale, value_scale : int
        Noise of a pick and of a released value, in lattice units.
    mechanism : {"exponential", "laplace"}
        How coordinates are picked: exponential mechanism, or report-noisy-max with discrete Laplace noise.
    value_noise : {"rounded_gaussian", "gaussian", "laplace"}
        Law added to the values of picked coordinates: a rounded Gaussian, or a discrete law.
    accounting : {"exact", "zcdp", "pure"}
        How the claim is checked: by the exact price of the releases in their order
        (:mod:`fliphat.privacy.composition`), or by their zCDP costs. Always "pure" when ``delta = 0``.
    beside : tuple of FitShape, or None
        With ``rounds_per_user > 1`` and the exact price: all other kinds of fits that rows of one user may
        enter, none if every fit is like this one. None: all rows of a user enter this one fit.
    rows, sparsity, iterations, clip, rounds_per_user
        The public numbers the scales were computed for.

    Raises
    ------
    ValueError
        If the scales cost more than the claim allows.

    Examples
    --------
    >>> scales = NoiseScales(epsilon=1.0, delta=0.01, pick_scale=650_000, value_scale=650_000,
    ...     mechanism="exponential", value_noise="gaussian",
    ...     rows=1000, sparsity=10, iterations=1, clip=2.0, rounds_per_user=1)
    >>> scales.rho == 10 * Fraction(65536, 650_000) ** 2
    True
    """

    epsilon: float
    delta: float
    pick_scale: int
    value_scale: int
    mechanism: str
    value_noise: str
    rows: int
    sparsity: int
    iterations: int
    clip: float
    rounds_per_user: int
    accounting: str = "zcdp"
    beside: tuple[FitShape, ...] | None = None

    def __post_init__(self) -> None:
        # Zero is a claim too: with a large delta and a small rho the stated epsilon can be 0.
        if self.epsilon != 0:
            arguments.positive("epsilon", self.epsilon)
        check_delta(self.delta)
        arguments.choice("mechanism", self.mechanism, MECHANISMS)
        arguments.choice("value_noise", self.value_noise, VALUE_NOISES)
        for name in ("pick_scale", "value_scale"):
            arguments.integer(name, getattr(self, name), 1, accounting.MAX_SCALE)
        for name in ("rows", "sparsity", "iterations", "rounds_per_user"):
            arguments.integer(name, getattr(self, name), 1, MAX_COUNT)
        arguments.positive("clip", self.clip)
        arguments.choice("accounting", self.accounting, ACCOUNTINGS)
        if self.delta == 0:
            object.__setattr__(self, "accounting", "pure")
        elif self.accounting == "pure":
            raise ValueError(
                f"accounting must be 'exact' or 'zcdp' when delta is above 0, got {self.delta!r}"
            )
        if self.accounting == "exact":
            try:
                self._priced()
            except ValueError as refusal:
                raise ValueError(
                    f"pick_scale = {self.pick_scale} and value_scale = {self.value_scale} do not support the "
                    f"claim: {refusal}"
                ) from None
            return
        if self.delta == 0:
            spent, allowed, unit = self.pure_epsilon, Fraction(self.epsilon), "epsilon"
        else:
            spent, unit = self.rho, "rho"
            allowed = Fraction(accounting.rho_from_epsilon(self.epsilon, self.delta))
        if spent is None or spent > allowed:
            cost = "no pure guarantee" if spent is None else f"{unit} = {float(spent):.6g}"
            raise ValueError(
                f"pick_scale = {self.pick_scale} and value_scale = {self.value_scale} give {cost}, but "
                f"epsilon = {self.epsilon!r} with delta = {self.delta!r} allows {unit} = {float(allowed):.6g}"
            )

    @property
    def release(self) -> PricedRelease | None:
        """The releases with their price, computed again; None unless the accounting is "exact"."""
        return self._priced() if self.accounting == "exact" else None

    def _priced(self) -> PricedRelease:
        together = self.beside is None
        rows = self.rounds_per_user if together else 1
        shape = FitShape(self.sparsity, self.iterations, self.pick_scale, self.value_scale)
        fits = [
            releases_of(fit, mechanism=self.mechanism, value_noise=self.value_noise, rows=rows)
            for fit in (shape, *(self.beside or ()))
        ]
        return PricedRelease(
            noise=fits[0],
            epsilon=self.epsilon,
            delta=self.delta,
            users=1 if together else self.rounds_per_user,
            beside=tuple(fits[1:]),
        )

    @property
    def sensitivity(self) -> int:
        """How far replacing all rows of one user can move any integer sum."""
        return ROW_SENSITIVITY * self.rounds_per_user

    @property
    def rho(self) -> Fraction:
        """Exact zCDP cost of one fit."""
        exponential, laplace = self.mechanism == "exponential", self.value_noise == "laplace"
        pick = accounting.exponential_pick_zcdp if exponential else accounting.noisy_max_pick_zcdp
        # Rounding is post-processing: it costs what the Gaussian costs, as the discrete one does.
        value = accounting.laplace_value_zcdp if laplace else accounting.gaussian_value_zcdp
        return self._cost(pick, value)

    @property
    def pure_epsilon(self) -> Fraction | None:
        """Exact pure-DP cost of one fit; None with Gaussian values, which have none."""
        if self.value_noise != "laplace":
            return None
        exponential = self.mechanism == "exponential"
        pick = accounting.exponential_pick_epsilon if exponential else accounting.noisy_max_pick_epsilon
        return self._cost(pick, accounting.laplace_value_epsilon)

    def _cost(self, pick: Callable[[int, int], Fraction], value: Callable[[int, int], Fraction]) -> Fraction:
        moved = self.sensitivity
        return self.releases * (pick(moved, self.pick_scale) + value(moved, self.value_scale))

    @property
    def releases(self) -> int:
        """Picks made, and values released, in one fit."""
        return self.iterations * self.sparsity

    @property
    def pick_gradient_noise(self) -> float:
        """Scale of a pick's noise in units of the mean clipped gradient.

        With an equal split it is the planner's ``nu = 2 c sqrt(M s/rho) / n``, and a coordinate tends to be
        found when its gradient beats ``nu * log(dim)``.
        """
        return self.pick_scale * self.clip / (HALF_RANGE * self.rows)

    @property
    def value_gradient_noise(self) -> float:
        """Scale of a value's noise in units of the mean clipped gradient."""
        return self.value_scale * self.clip / (HALF_RANGE * self.rows)
