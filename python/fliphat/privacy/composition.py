"""The exact price of releases: delta against the best adaptive adversary, rounded up.

zCDP bounds a sequence of releases by one number and then bounds that. Here the sequence itself is priced:
the largest advantage of any adversary who chooses every mechanism of the stated kinds knowing all that was
released before. It is the value of a game whose state is one number, the privacy loss so far, and is computed
by folding the events from the last one (``rust/core/src/public/price``; the theorem: ``docs/privacy.md``).

Two kinds of events:

- ``Pick(eta)``: log-probability ratios of neighbours span at most eta (bounded range): one draw of the
  exponential mechanism with ``eta = 2 * sensitivity / scale``. *Not* permute-and-flip or report-noisy-max.
- ``Gaussian(mu)``: a vector plus Gaussian noise, ``mu`` the largest Euclidean norm of (shift / standard
  deviation). Rounding the noise to integers is post-processing; the *discrete* Gaussian is another law.

The order is the order of release, and it matters: an adversary who has seen a Gaussian chooses better picks.

Every number returned is on the safe side, for any number of `cells`: the value is kept as a function that
is convex in exp(-loss), chords lie above it, maxima are exact, and float errors are bounded and added. More
cells only bring the bound closer, from above.

References
----------
J. Dong, D. Durfee, R. Rogers (2020). Optimal Differential Privacy Composition for Exponential Mechanisms.
ICML, PMLR 119, arXiv:1909.13830 (bounded range; non-adaptive and pure-DP cases).
J. Dong, A. Roth, W. Su (2022). Gaussian Differential Privacy. JRSS B 84 (1), arXiv:1905.02383.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, NamedTuple

from fliphat import arguments, kernels
from fliphat.privacy.conversion import rho_from_epsilon

__all__ = [
    "SMALLEST_DELTA",
    "Event",
    "Gaussian",
    "Grid",
    "Pick",
    "delta",
    "epsilon",
    "grid",
    "largest_factor",
    "zcdp",
]

LARGEST: Final = 300.0
"""Largest eta and mu that are priced."""

SMALLEST_DELTA: Final = 1e-28
"""Prices from here on are within some hundredths of the exact ones, and searches look for no smaller one.

Further down what is added for the far ends of a Gaussian and for float errors is larger than the price: still
an upper bound, but one that grows with events where the price does not. zCDP has no such end.
"""

_CELLS: Final = (32, 24, 16, 12, 8, 6, 4)
_ROUGH: Final = 8
_EASY: Final = 1e7
_MOST: Final = 4e8
_MOST_EVENTS: Final = 20_000
# In standard deviations of the loss; what lies beyond is bounded, not left out.
_REACH: Final = 5.0
# Chances below exp(-800): the smallest float is exp(-745).
_FAR: Final = 40.0


@dataclass(frozen=True)
class Pick:
    """A release whose log-probability ratios span at most ``eta``."""

    kind: ClassVar = "pick"
    eta: float

    def __post_init__(self) -> None:
        _size("eta", self.eta)

    @property
    def size(self) -> float:
        """Of either kind, by one name: eta."""
        return self.eta

    @property
    def variance(self) -> float:
        """Largest variance of its privacy loss, ``eta^2/4``: twice its zCDP cost."""
        return self.eta * self.eta / 4

    def scaled(self, factor: float) -> Pick:
        """Return the pick with ``factor`` times the range."""
        return Pick(self.eta * factor)


@dataclass(frozen=True)
class Gaussian:
    """A Gaussian vector whose mean moves by at most ``mu`` standard deviations."""

    kind: ClassVar = "gaussian"
    mu: float

    def __post_init__(self) -> None:
        _size("mu", self.mu)

    @property
    def size(self) -> float:
        """Of either kind, by one name: mu."""
        return self.mu

    @property
    def variance(self) -> float:
        """Variance of its privacy loss, ``mu^2``: twice its zCDP cost."""
        return self.mu * self.mu

    def scaled(self, factor: float) -> Gaussian:
        """Return the vector with ``factor`` times the shift."""
        return Gaussian(self.mu * factor)


Event = Pick | Gaussian
Fit = Sequence[Event]


class Grid(NamedTuple):
    """Losses that a price is computed on: multiples of ``step`` from ``-below`` to ``above`` of them."""

    step: float
    below: int
    above: int


def delta(
    epsilon: float,
    events: Fit,
    *,
    beside: Sequence[Fit] = (),
    users: int = 1,
    cells: int | None = None,
) -> float:
    """Return an upper bound on delta at `epsilon` of `events`, in the order they are released.

    Parameters
    ----------
    epsilon : float
        At least 0.
    events : sequence of Pick and Gaussian
        In release order, as large as when all `users` rows of a person are replaced.
    beside : sequence of sequences of events
        With ``users > 1``: other fits that some of the rows may enter instead.
    users : int
        Rows of one person. They may be spread over several fits, each `events` or one of `beside`; i rows
        make its events ``i/users`` as large. All ways to spread them are covered, chosen as the fits go.
    cells : int, optional
        Fineness: steps of the loss in the range of a typical pick. By default 32, or fewer (at least 4) where
        that would take long.

    Examples
    --------
    >>> round(delta(1.0, [Pick(0.47), Pick(0.47), Gaussian(0.37)]), 5)
    0.00648
    >>> round(delta(1.0, [Gaussian(0.37), Pick(0.47), Pick(0.47)]), 5)  # the same in another order
    0.00808
    """
    return _delta(arguments.not_negative("epsilon", epsilon), *_checked(events, beside, users, cells))


def _checked(
    events: Fit, beside: Sequence[Fit], users: int, cells: int | None
) -> tuple[tuple[tuple[Event, ...], ...], int, int | None]:
    """Return all fits, `events` first, with users and cells, once they are known to be usable."""
    menu = (tuple(events), *map(tuple, beside))
    users = arguments.integer("users", users, 1, 2**31)
    if cells is not None:
        cells = arguments.integer("cells", cells, 1, 1024)
    for fit in menu:
        if len(fit) > _MOST_EVENTS:
            raise ValueError(f"events must be at most {_MOST_EVENTS}, got {len(fit)}")
        for event in fit:
            if not isinstance(event, (Pick, Gaussian)):
                raise TypeError(f"events must be Pick or Gaussian, got {type(event).__name__}")
    return menu, users, cells


@functools.lru_cache(maxsize=4096)
def _delta(epsilon: float, menu: tuple[tuple[Event, ...], ...], users: int, cells: int | None) -> float:
    # Pure differential privacy: no loss reaches epsilon.
    if all(_most(fit) <= Fraction(epsilon) for fit in menu):
        return 0.0
    chosen = grid(epsilon, menu, users=users, cells=cells)
    # Beyond this no float tells the chance from 0, and less epsilon makes delta larger.
    variance = max(_variance(fit) for fit in menu)
    epsilon = min(epsilon, _far(variance))
    named = [[(event.kind, event.size) for event in fit] for fit in menu]
    return kernels.price(epsilon, named, users=users, **chosen._asdict())


def grid(epsilon: float, menu: Sequence[Fit], *, users: int = 1, cells: int | None = None) -> Grid:
    """Return the grid of losses on which :func:`delta` prices, so that others can compute the same number.

    The step is such that chords add at most ``2/(3 cells^2)`` to the variance of the loss. A single size of
    picks gets a step that divides it, which halves the work.
    """
    if cells is not None:
        return _grid(epsilon, menu, cells)[0]
    for count in _CELLS:
        found, work = _grid(epsilon, menu, count)
        work *= users * (users + 1) / 2
        if work <= _EASY or (count == _CELLS[-1] and work <= _MOST):
            return found
    raise ValueError(
        f"events must be fewer to be priced: {max(map(len, menu))} of them with users = {users} would take "
        f"about {work / _MOST:.0f} times the work that is allowed"
    )


def _grid(epsilon: float, menu: Sequence[Fit], cells: int) -> tuple[Grid, float]:
    """Return the grid with about `cells` cells in a pick, and the work of pricing on it."""
    variance = max(_variance(fit) for fit in menu)
    folded = max(max(len(fit) for fit in menu) - 1, 1)
    step = min(2 / cells * math.sqrt(variance / folded), 0.49)
    etas = {event.eta for fit in menu for event in fit if isinstance(event, Pick) and event.eta > 0}
    if len(etas) == 1 and (eta := etas.pop()) > step:
        # A little above the quotient, so that so many steps are never less than eta.
        step = eta / math.ceil(eta / step) * (1 + 2**-49)
    reach = _REACH * math.sqrt(variance)
    below = math.ceil(reach / step) + 2
    above = math.ceil((min(epsilon, _far(variance)) + reach) / step) + 2
    work = 0.0
    for fit in menu:
        for event in fit[:-1]:
            work += event.eta / step + 2 if isinstance(event, Pick) else 4 * event.mu / step + 2
    return Grid(step, below, above), (below + above) * work


def epsilon(
    delta: float,
    events: Fit,
    *,
    beside: Sequence[Fit] = (),
    users: int = 1,
    cells: int | None = None,
) -> float:
    """Return an epsilon at which `events` are (epsilon, delta)-DP, within a millionth of the smallest shown.

    `delta` is from 1e-28 to below 1; the others are as in :func:`delta`.

    Examples
    --------
    >>> round(epsilon(0.01, [Pick(0.47), Pick(0.47), Gaussian(0.37)]), 3)
    0.912
    """
    target = _target(delta)
    menu, users, cells = _checked(events, beside, users, cells)

    def excess(at: float) -> float:
        return _log_ratio(_delta(at, menu, users, cells), target)

    if excess(0.0) <= 0:
        return 0.0
    variance = max(map(_variance, menu))
    guess = variance / 2 + math.sqrt(2 * variance * math.log(1 / target))
    # In -epsilon the price rises, as the search expects.
    return max(0.0, -_largest(lambda at: excess(max(-at, 0.0)), -guess, 0.1 * guess))


def largest_factor(
    epsilon: float,
    delta: float,
    events: Fit,
    *,
    beside: Sequence[Fit] = (),
    users: int = 1,
    cells: int | None = None,
) -> float:
    """Return the largest factor (within a millionth) by which all events can grow within (epsilon, delta).

    So the plan's noise may be divided by it. `delta` is from 1e-28 to below 1; the others are as in
    :func:`delta`.

    Examples
    --------
    >>> shares = [Pick(2 * 0.3), Pick(2 * 0.3), Gaussian(0.6)]
    >>> factor = largest_factor(1.0, 0.01, shares)
    >>> delta(1.0, [event.scaled(factor) for event in shares]) <= 0.01
    True
    """
    epsilon, target = arguments.not_negative("epsilon", epsilon), _target(delta)
    menu, users, cells = _checked(events, beside, users, cells)
    variance = max(map(_variance, menu))
    if variance == 0:
        raise ValueError("events must hold at least one that is larger than 0")
    largest = max(event.size for fit in menu for event in fit)

    def excess(log_factor: float, fineness: int | None) -> float:
        factor = math.exp(log_factor)
        if factor * largest > LARGEST:
            return math.inf
        grown = tuple([tuple([event.scaled(factor) for event in fit]) for fit in menu])
        return _log_ratio(_delta(epsilon, grown, users, fineness), target)

    # zCDP is a bound as well, a tenth to a fifth too dear.
    zcdp_factor = math.sqrt(2 * max(rho_from_epsilon(epsilon, target), 1e-300) / variance)
    start = math.log(min(1.1 * zcdp_factor, LARGEST / largest))
    if cells is None:
        # Found roughly first; what coarse cells cost is known well enough to start the finer search there.
        start = _largest(lambda at: excess(at, _ROUGH), start, 0.05, within=1e-3)
        start += 1 / (3 * _ROUGH**2)
    return math.exp(_largest(lambda at: excess(at, cells), start, 5e-4))


def zcdp(events: Fit) -> Fraction:
    """Return the zCDP cost of events, exactly: half the sum of their largest variances."""
    parts = ((Fraction(event.size) ** 2, 8 if isinstance(event, Pick) else 2) for event in events)
    return sum((square / part for square, part in parts), Fraction(0))


def _largest(excess: Callable[[float], float], start: float, stride: float, within: float = 1e-6) -> float:
    """Return a place where an increasing function is at most 0 and which is about `within` below its root.

    Secants that aim half of `within` below the root, kept inside what is known of it.
    """
    below, above = -math.inf, math.inf
    (at, found), (before, earlier) = (start, excess(start)), (math.nan, math.nan)
    for _ in range(200):
        slope = (found - earlier) / (at - before) if at != before else math.nan
        if found <= 0:
            below = max(below, at)
            if 0 < slope < math.inf and found >= -slope * within:
                return at
        else:
            above = min(above, at)
        if above - below <= within:
            return below
        before, earlier = at, found
        at = at - found / slope - within / 2 if 0 < slope < math.inf else math.nan
        if not below < at < above:
            # No use yet: go on from the known side, or halve.
            stride *= 2
            if math.isinf(above):
                at = below + stride
            elif math.isinf(below):
                at = above - stride
            else:
                at = (below + above) / 2
        found = excess(at)
    raise ArithmeticError("the price did not settle; this is a defect of the search")


def _log_ratio(value: float, target: float) -> float:
    return -math.inf if value == 0 else math.log(value / target)


def _most(fit: Fit) -> Fraction | float:
    """Return the largest loss there is: infinite with a Gaussian."""
    if any(isinstance(event, Gaussian) and event.mu > 0 for event in fit):
        return math.inf
    return sum((Fraction(event.size) for event in fit), Fraction(0))


def _variance(fit: Fit) -> float:
    return math.fsum(event.variance for event in fit)


def _far(variance: float) -> float:
    return variance / 2 + _FAR * math.sqrt(variance)


def _size(name: str, value: float) -> float:
    number = arguments.real(name, value)
    if not 0 <= number <= LARGEST:
        raise ValueError(f"{name} must be a number from 0 to {LARGEST:g}, got {value!r}")
    return number


def _target(value: float) -> float:
    number = arguments.real("delta", value)
    if not SMALLEST_DELTA <= number < 1:
        raise ValueError(
            f"delta must be at least {SMALLEST_DELTA:g} and below 1 to have an exact price, got {value!r}"
        )
    return number
