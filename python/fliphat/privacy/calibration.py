"""From public numbers to integer noise scales whose cost is proven.

The scales are the smallest integers within the budget. :class:`fliphat.privacy.scales.NoiseScales` then
recomputes their price (or their zCDP cost in exact rationals) and cannot be built unless the stated epsilon
and delta cover it, so a mistake in this file can waste noise or raise, but cannot overstate privacy.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from fliphat import arguments
from fliphat.privacy import accounting, composition
from fliphat.privacy.accounting import MAX_SCALE
from fliphat.privacy.composition import Event, Gaussian, Pick
from fliphat.privacy.scales import (
    HALF_RANGE,
    MAX_COUNT,
    MECHANISMS,
    ROW_SENSITIVITY,
    VALUE_NOISES,
    FitShape,
    NoiseScales,
    check_delta,
)

__all__ = ["ROW_SENSITIVITY", "NoiseScales", "calibrate"]

_LATTICE_LIMIT: Final = 2**62
# Beyond this many rounds of a user, or kinds of fits, or releases of a fit, the exact price takes too long.
_MOST_ROUNDS: Final = 8
_MOST_KINDS: Final = 4
_MOST_RELEASES: Final = 4096
# Rounded scales have a grid of their own, on which the bound may be larger: all noise grows by so much, up to
# so often, until it is not.
_CORRECTION: Final = 1e-4
_CORRECTIONS: Final = 30


def calibrate(
    *,
    rows: int,
    dim: int,
    sparsity: int,
    iterations: int,
    step_size: float,
    l1_radius: float,
    clip: float,
    delta: float,
    epsilon: float | None = None,
    rho: float | Fraction | None = None,
    rounds_per_user: int = 1,
    mechanism: str = "exponential",
    value_noise: str | None = None,
    split: float | None = None,
    fits: Sequence[tuple[int, int]] | None = None,
    accounting: str | None = None,
) -> NoiseScales:
    """Return the smallest integer noise scales that keep one fit within the budget.

    Parameters
    ----------
    rows, dim, sparsity, iterations : int
        n, d, s and M; public. ``1 <= sparsity <= dim``.
    step_size, l1_radius, clip : float
        eta, C and c; public, finite and positive.
    delta : float
        In ``[0, 1)``; 0 asks for pure differential privacy.
    epsilon : float, optional
        Above 0. Give either epsilon or rho.
    rho : float or Fraction, optional
        Budget in zCDP, above 0. Needs ``delta > 0``, at which the epsilon it amounts to is stated.
    rounds_per_user : int
        k: rows of one user that are protected together.
    mechanism : {"exponential", "laplace"}
        "laplace" is the paper's own peeling (report-noisy-max), which needs 1.58 times the noise.
    value_noise : {"rounded_gaussian", "gaussian", "laplace"}, optional
        By default a rounded Gaussian, or Laplace when ``delta = 0``, where Gaussian noise has no guarantee.
        "gaussian" is the discrete Gaussian, which has a zCDP cost only.
    split : float, optional
        Fraction of the budget spent on picks, above 0 and below 1. By default the one that makes both scales
        equal: 1/2 with the exponential mechanism, 4/5 with report-noisy-max, 2/3 in pure DP.
    fits : sequence of (sparsity, iterations), optional
        With ``rounds_per_user > 1``: the kinds of fits, calibrated like this one, that rows of one user may
        enter. Empty: this fit alone. None: any fits within the same claim, which only zCDP covers.
    accounting : {"exact", "zcdp"}, optional
        By default the exact price of the releases in their order whenever ``delta > 0``, and zCDP where
        there is none here: discrete Gaussian values, a budget given as rho, unknown or many kinds of fits for
        a user's rows, more than 8 rounds of a user that may be spread, thousands of releases, delta below
        1e-28; and where it would ask for more noise. If rows may be spread over `fits`, all of them are
        calibrated in the same way: each is priced beside the scales that the others will have. The result's
        ``accounting`` says which. With "zcdp" values are discrete Gaussian by default.

    Returns
    -------
    NoiseScales

    Raises
    ------
    ValueError
        If a parameter breaks its rule, the lattice could overflow, or a scale would pass the samplers' limit.

    Examples
    --------
    >>> scales = calibrate(epsilon=1.0, delta=0.01, rows=2048, dim=400, sparsity=10, iterations=3,
    ...                    step_size=1.0, l1_radius=4.0, clip=2.0)
    >>> scales.accounting, scales.value_noise
    ('exact', 'rounded_gaussian')
    >>> round(scales.pick_gradient_noise, 3)
    0.028
    """
    rows = arguments.integer("rows", rows, 1, MAX_COUNT)
    dim = arguments.integer("dim", dim, 1, MAX_COUNT)
    sparsity = arguments.integer("sparsity", sparsity, 1, dim)
    arguments.integer("iterations", iterations, 1, MAX_COUNT)
    rounds_per_user = arguments.integer("rounds_per_user", rounds_per_user, 1, MAX_COUNT)
    _check_lattice(rows, step_size, l1_radius, clip)
    arguments.choice("mechanism", mechanism, MECHANISMS)
    delta = check_delta(delta)
    if accounting is not None:
        arguments.choice("accounting", accounting, ("exact", "zcdp"))
    if value_noise is None:
        gaussian = "gaussian" if accounting == "zcdp" else "rounded_gaussian"
        value_noise = gaussian if delta else "laplace"
    arguments.choice("value_noise", value_noise, VALUE_NOISES)
    if delta == 0 and value_noise != "laplace":
        raise ValueError("value_noise must be 'laplace' when delta is 0: Gaussian noise is never pure DP")
    stated, exact = epsilon, None
    epsilon, budget = _budget(epsilon, delta, rho)
    made = functools.partial(
        NoiseScales,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        value_noise=value_noise,
        rows=rows,
        clip=float(clip),
        rounds_per_user=rounds_per_user,
    )
    for_picks, for_values = _parts(budget, split, mechanism, pure=delta == 0)
    kinds = _kinds(fits, sparsity, int(iterations))
    spread = bool(fits) and rounds_per_user > 1
    # Rows that may be spread enter fits of all kinds, so all of them are priced in the same way.
    together = kinds if spread else kinds[:1]
    if delta and accounting != "zcdp":
        why_not = _no_exact_price(stated, delta, value_noise, rounds_per_user, fits, together)
        if why_not is None and _is_small(max(map(math.prod, together)), rounds_per_user, budget):
            exact = _exact(made, together, float(for_picks / budget), spread)
        elif accounting == "exact" and why_not is not None:
            raise ValueError(f"accounting must be 'zcdp' or None here: {why_not}")

    shares, laws = (for_picks, for_values), (mechanism, value_noise)
    by_cost = [
        _cost_scales(count * steps, rounds_per_user, shares, laws, pure=delta == 0)
        for count, steps in together
    ]
    if exact is not None:
        priced = [exact.pick_scale, *(shape.pick_scale for shape in exact.beside or ())]
        less = all(scale <= picks for scale, (picks, _) in zip(priced, by_cost, strict=True))
        if less or accounting == "exact":
            return exact
    pick_scale, value_scale = by_cost[0]
    _require_small(epsilon, delta, pick_scale, value_scale)
    return made(sparsity=sparsity, iterations=int(iterations), pick_scale=pick_scale, value_scale=value_scale)


def _cost_scales(
    releases: int,
    rounds_per_user: int,
    shares: tuple[Fraction, Fraction],
    laws: tuple[str, str],
    *,
    pure: bool,
) -> tuple[int, int]:
    """Return the smallest scales of picks and values whose costs, zCDP or pure, are within their shares."""
    (for_picks, for_values), (mechanism, value_noise) = shares, laws
    shift = Fraction(ROW_SENSITIVITY * rounds_per_user)
    if pure:
        return math.ceil(2 * releases * shift / for_picks), math.ceil(releases * shift / for_values)
    pick_scale = (
        _quadratic_scale(releases * shift**2 / 2, for_picks)
        if mechanism == "exponential"
        else _pure_scale(2 * shift, releases, for_picks)
    )
    value_scale = (
        _quadratic_scale(releases * shift**2 / 2, for_values)
        if value_noise != "laplace"
        else _pure_scale(shift, releases, for_values)
    )
    return pick_scale, value_scale


def _require_small(epsilon: float, delta: float, pick_scale: int, value_scale: int) -> None:
    for name, scale in (("pick_scale", pick_scale), ("value_scale", value_scale)):
        if scale > MAX_SCALE:
            raise ValueError(
                f"epsilon = {epsilon!r} with delta = {delta!r} needs {name} = {scale}, and the samplers stop "
                f"at {MAX_SCALE}: raise epsilon, or lower iterations, sparsity or rounds_per_user"
            )


def _is_small(releases: int, rounds_per_user: int, budget: Fraction) -> bool:
    """Whether the scales may be within the samplers' limit; zCDP asks for less than twice the noise."""
    return releases * Fraction(ROW_SENSITIVITY * rounds_per_user) ** 2 <= budget * (4 * MAX_SCALE) ** 2


def _kinds(
    fits: Sequence[tuple[int, int]] | None, sparsity: int, iterations: int
) -> tuple[tuple[int, int], ...]:
    """Return this fit's (sparsity, iterations), then those of the other kinds."""
    others = {
        (arguments.integer("fits", s, 1, MAX_COUNT), arguments.integer("fits", m, 1, MAX_COUNT))
        for s, m in fits or ()
    } - {(sparsity, iterations)}
    return ((sparsity, iterations), *sorted(others))


def _no_exact_price(
    stated: float | None,
    delta: float,
    value_noise: str,
    rounds_per_user: int,
    fits: Sequence[tuple[int, int]] | None,
    kinds: tuple[tuple[int, int], ...],
) -> str | None:
    """Return why zCDP has to do, or None."""
    releases = max(map(math.prod, kinds))
    if delta < composition.SMALLEST_DELTA:
        return f"exact prices are sharp for delta from {composition.SMALLEST_DELTA:g} on"
    if value_noise == "gaussian":
        return "the discrete Gaussian has a zCDP cost only"
    if stated is None:
        return "the budget is given as rho"
    if 2 * releases > _MOST_RELEASES:
        return f"a fit of {2 * releases} releases takes too long to price, at most {_MOST_RELEASES} do not"
    if rounds_per_user > 1:
        if fits is None:
            return "fits must say which fits rows of one user may enter"
        if len(kinds) > _MOST_KINDS:
            return f"fits are of {len(kinds)} kinds, at most {_MOST_KINDS} are priced"
        if rounds_per_user > _MOST_ROUNDS and fits:
            return f"rounds_per_user = {rounds_per_user} may be spread, at most {_MOST_ROUNDS} are priced"
    return None


def _exact(
    made: functools.partial[NoiseScales], kinds: tuple[tuple[int, int], ...], share: float, spread: bool
) -> NoiseScales:
    """Return scales for the first of `kinds` whose exact price is within the claim, picks having `share`."""
    shared = made.keywords
    epsilon, delta, rounds_per_user = shared["epsilon"], shared["delta"], shared["rounds_per_user"]
    users = rounds_per_user if spread else 1
    # In an order of their own, so that every kind of fit finds the same scales for all of them.
    ordered = tuple(sorted(kinds))
    found = _factors(epsilon, delta, ordered, share, shared["value_noise"], users)
    factors = dict(zip(ordered, found, strict=True))
    refusal = None
    for correction in range(_CORRECTIONS):
        shapes = []
        for sparsity, iterations in kinds:
            factor = factors[sparsity, iterations] * (1 - _CORRECTION) ** correction
            unit = ROW_SENSITIVITY * rounds_per_user * math.sqrt(sparsity * iterations) / factor
            twice = 1 if shared["mechanism"] == "exponential" else 2
            pick_scale = math.ceil(twice * unit / math.sqrt(share))
            value_scale = math.ceil(unit / math.sqrt(1 - share))
            _require_small(epsilon, delta, pick_scale, value_scale)
            shapes.append(FitShape(sparsity, iterations, pick_scale, value_scale))
        beside = tuple(shapes[1:]) if spread else None
        try:
            return made(**shapes[0]._asdict(), accounting="exact", beside=beside)
        except ValueError as problem:
            refusal = problem
    raise ArithmeticError(f"no scales were found near those that should do: {refusal}")


@functools.lru_cache(maxsize=1024)
def _factors(
    epsilon: float,
    delta: float,
    kinds: tuple[tuple[int, int], ...],
    share: float,
    value_noise: str,
    users: int,
) -> tuple[float, ...]:
    """Return how far the events of each kind of fit, of unit variance together, may grow."""
    units = [_unit_events(sparsity, iterations, share, value_noise) for sparsity, iterations in kinds]
    # A little less than the largest: scales are rounded through floats before they are checked.
    alone = [composition.largest_factor(epsilon, delta, events) * (1 - 1e-9) for events in units]
    if users == 1:
        return tuple(alone)
    # Rows that are spread cost no more than all in one fit, in every case we know. Where the price says
    # otherwise all kinds of fits get more noise by the same factor.
    grown = [[event.scaled(factor) for event in events] for events, factor in zip(units, alone, strict=True)]
    if composition.delta(epsilon, grown[0], beside=grown[1:], users=users) <= delta:
        return tuple(alone)
    joint = composition.largest_factor(epsilon, delta, grown[0], beside=grown[1:], users=users)
    return tuple(factor * joint * (1 - 1e-9) for factor in alone)


def _unit_events(sparsity: int, iterations: int, share: float, value_noise: str) -> list[Event]:
    """Return the events of a fit in order, with variances that sum to 1, of which picks have `share`."""
    releases = sparsity * iterations
    picks: list[Event] = [Pick(2 * math.sqrt(share / releases))] * sparsity
    values: list[Event] = (
        [Gaussian(math.sqrt((1 - share) / iterations))]
        if value_noise == "rounded_gaussian"
        else [Pick(2 * math.sqrt((1 - share) / releases))] * sparsity
    )
    return (picks + values) * iterations


def _budget(epsilon: float | None, delta: float, rho: float | Fraction | None) -> tuple[float, Fraction]:
    """Return the epsilon to state and the exact budget, in zCDP or (``delta = 0``) in epsilon itself."""
    if (epsilon is None) == (rho is None):
        raise ValueError("epsilon or rho must be given, and not both")
    if epsilon is not None:
        epsilon = arguments.positive("epsilon", epsilon)
        allowed = epsilon if delta == 0 else accounting.rho_from_epsilon(epsilon, delta)
        # Rounded down to nothing: no scale is large enough, and the samplers' limit is the error to raise.
        return epsilon, Fraction(allowed or sys.float_info.min)
    if delta == 0:
        raise ValueError("delta must be above 0 when rho is given: zCDP alone never gives delta = 0")
    rough = arguments.positive("rho", rho)
    exact = rho if isinstance(rho, Fraction) else Fraction(rough)
    stated = accounting.epsilon_from_rho(exact, delta)
    # Both conversions round safely, so going there and back may lose an ulp; the stated epsilon absorbs it.
    while accounting.rho_from_epsilon(stated, delta) < exact:
        stated = math.nextafter(stated * (1 + 2**-50), math.inf)
    return stated, exact


def _parts(budget: Fraction, split: float | None, mechanism: str, *, pure: bool) -> tuple[Fraction, Fraction]:
    if split is not None:
        number = arguments.real("split", split)
        if not 0 < number < 1:
            raise ValueError(f"split must be above 0 and below 1, got {split!r}")
        share = Fraction(number)
    elif pure:
        share = Fraction(2, 3)
    else:
        share = Fraction(1, 2) if mechanism == "exponential" else Fraction(4, 5)
    return budget * share, budget * (1 - share)


def _quadratic_scale(cost_at_one: Fraction, budget: Fraction) -> int:
    """Return the smallest integer whose square is at least ``cost_at_one / budget``."""
    return math.isqrt(math.ceil(cost_at_one / budget) - 1) + 1


def _pure_scale(shift: Fraction, releases: int, budget: Fraction) -> int:
    """Return the smallest scale t with ``releases * pure_dp_zcdp(shift/t)`` within the budget."""
    quadratic = _quadratic_scale(releases * shift**2 / 2, budget)
    return min(quadratic, math.ceil(releases * shift / budget))


def _check_lattice(rows: int, step_size: float, l1_radius: float, clip: float) -> None:
    """Refuse public numbers for which ``theta - step_size * gradient`` could leave 63-bit integers.

    Wrapping around would move a sum by far more than the sensitivity. The bound is exact, and one bit
    below what i64 holds, which covers the rounding of ``theta / unit``.
    """
    step_size = arguments.positive("step_size", step_size)
    l1_radius = arguments.positive("l1_radius", l1_radius)
    clip = arguments.positive("clip", clip)
    unit = Fraction(step_size) * Fraction(clip) / (HALF_RANGE * rows)
    # The upper end keeps every released point, below 2**62 units, a finite float64.
    if not sys.float_info.min <= unit <= Fraction(sys.float_info.max) / _LATTICE_LIMIT:
        raise ValueError(
            f"step_size * clip / (2**15 * rows) must be a normal float64 below 2**961, got "
            f"step_size = {step_size!r}, "
            f"clip = {clip!r}, rows = {rows}"
        )
    reach = Fraction(l1_radius) / unit + rows * HALF_RANGE
    if reach >= _LATTICE_LIMIT:
        raise ValueError(
            f"l1_radius / unit + rows * 2**15 must be below 2**62, with unit = step_size * clip / "
            f"(2**15 * rows); got about 2**{math.log2(reach):.1f} from l1_radius = {l1_radius!r}, "
            f"step_size = {step_size!r}, clip = {clip!r}, rows = {rows}"
        )
