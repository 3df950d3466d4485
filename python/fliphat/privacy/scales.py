"""Integer noise scales of one fit, tied to the claim they support.

Symbols: sensitivity ``L`` (Lambda), ``rows`` n, ``sparsity`` s, ``iterations`` M, ``clip`` c,
``rounds_per_user`` k, ``pick_scale`` beta (t for report-noisy-max), ``value_scale`` sigma (t for Laplace
values).

One iteration of N-IHT makes s picks and releases s values, so a fit costs ``M s (pick + value)``. Every row
adds an integer of at most 2^15 in size to each sum, so replacing one row moves a sum by at most 2^16, and
replacing k rows by at most ``L = k 2^16``. A user whose k rounds fall into several fits, a share ``f_e`` of
them in fit e, costs each fit at most ``f_e`` times its full cost, because every cost here is linear or
quadratic in L, or the smaller of the two. The shares sum to at most 1: the claim for one fit is the claim
for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from fliphat import _check
from fliphat.privacy import accounting

__all__ = ["MECHANISMS", "ROW_SENSITIVITY", "VALUE_NOISES", "NoiseScales", "gradient_noise"]

HALF_RANGE: Final = 2**15
"""Largest size of one row's integer in one coordinate."""

ROW_SENSITIVITY: Final = 2 * HALF_RANGE
"""How far replacing one row can move any integer sum: from -2^15 to +2^15."""

MAX_COUNT: Final = 2**47 - 1
"""Bound on every count: with more rows than this the sums could leave the lattice."""

MECHANISMS: Final = ("exponential", "laplace")
VALUE_NOISES: Final = ("gaussian", "laplace")


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
    value_noise : {"gaussian", "laplace"}
        Discrete law added to the values of picked coordinates.
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

    def __post_init__(self) -> None:
        # Zero is a claim too: with a large delta and a small rho the stated epsilon can be 0.
        if self.epsilon != 0:
            _check.positive("epsilon", self.epsilon)
        check_delta(self.delta)
        _check.choice("mechanism", self.mechanism, MECHANISMS)
        _check.choice("value_noise", self.value_noise, VALUE_NOISES)
        for name in ("pick_scale", "value_scale"):
            _check.integer(name, getattr(self, name), 1, accounting.MAX_SCALE)
        for name in ("rows", "sparsity", "iterations", "rounds_per_user"):
            _check.integer(name, getattr(self, name), 1, MAX_COUNT)
        _check.positive("clip", self.clip)
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
    def calibration(self) -> str:
        """The name of this calibration: ``"proven"``."""
        return "proven"

    @property
    def sensitivity(self) -> int:
        """How far replacing all rows of one user can move any integer sum."""
        return ROW_SENSITIVITY * self.rounds_per_user

    @property
    def rho(self) -> Fraction:
        """Exact zCDP cost of one fit."""
        pick = {
            "exponential": accounting.exponential_pick_zcdp,
            "laplace": accounting.noisy_max_pick_zcdp,
        }[self.mechanism]
        value = {
            "gaussian": accounting.gaussian_value_zcdp,
            "laplace": accounting.laplace_value_zcdp,
        }[self.value_noise]
        return self.releases * (
            pick(self.sensitivity, self.pick_scale) + value(self.sensitivity, self.value_scale)
        )

    @property
    def pure_epsilon(self) -> Fraction | None:
        """Exact pure-DP cost of one fit; None with Gaussian values, which have none."""
        if self.value_noise == "gaussian":
            return None
        pick = {
            "exponential": accounting.exponential_pick_epsilon,
            "laplace": accounting.noisy_max_pick_epsilon,
        }[self.mechanism]
        value = accounting.laplace_value_epsilon(self.sensitivity, self.value_scale)
        return self.releases * (pick(self.sensitivity, self.pick_scale) + value)

    @property
    def releases(self) -> int:
        """Picks made, and values released, in one fit."""
        return self.iterations * self.sparsity

    @property
    def pick_gradient_noise(self) -> float:
        """Scale of a pick's noise in units of the mean clipped gradient."""
        return gradient_noise(self.pick_scale, clip=self.clip, rows=self.rows)

    @property
    def value_gradient_noise(self) -> float:
        """Scale of a value's noise in units of the mean clipped gradient."""
        return gradient_noise(self.value_scale, clip=self.clip, rows=self.rows)


def gradient_noise(scale: int, *, clip: float, rows: int) -> float:
    """Return a noise scale in units of the mean clipped gradient: ``scale * clip / (2^15 rows)``.

    With an equal split it is the planner's ``nu = 2 c sqrt(M s/rho) / n``, and a coordinate tends to be
    found when its gradient beats ``nu * log(dim)``.

    Examples
    --------
    >>> gradient_noise(2**15, clip=2.0, rows=100)
    0.02
    """
    scale = _check.integer("scale", scale, 1, accounting.MAX_SCALE)
    return scale * _check.positive("clip", clip) / (HALF_RANGE * _check.integer("rows", rows, 1, MAX_COUNT))


def check_delta(value: float) -> float:
    """Return ``value`` as a float in ``[0, 1)``."""
    number = _check.real("delta", value)
    if not 0 <= number < 1:
        raise ValueError(f"delta must be at least 0 and below 1, got {value!r}")
    return number
