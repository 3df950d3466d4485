"""What later releases may do with rows of earlier ones: discounted totals, priced in exact integers. Public.

A part of a release is a total ``S_t = S_(t-1) + W_t x_t`` of everybody's integers, with fresh noise of
standard deviation ``s_t`` each time. Over W_t it is a discounted sum, ``D_t = a_t D_(t-1) + x_t`` with ``a_t
= W_(t-1) / W_t``. A row of block s moves every release from s on by ``W_s`` times at most its sensitivity c,
in units of ``s_t``. Where

    ``s_t^2 >= v_t / (1/W_t^2 - 1/W_(t+1)^2)``   and the variances v_t never fall,

its squared shifts add up to at most ``c^2 W_s^2 sum_(t >= s) (1/W_t^2 - 1/W_(t+1)^2) / v_t <= c^2 / v_s``:
the price of one Gaussian with the variance v_s, for as long as the total lives (docs/privacy.md, G8). W_(t+1)
is needed before it is used: a :class:`Step` promises it, and the next one can't be made with less.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Final

__all__ = ["FIRST_WEIGHT", "MOST_WEIGHT", "Chain", "Step", "next_step"]

#: Weight of a total's first rows: noise and discounts are integers over it, so both are fine.
FIRST_WEIGHT: Final = 2**12

#: Weights stay below this; a total that would pass it begins anew.
MOST_WEIGHT: Final = 2**48

#: Largest discount: noise grows as one over the square root of what it leaves.
_MOST_DISCOUNT: Final = Fraction(9, 10)


@dataclass(frozen=True)
class Chain:
    """A part's total as everybody may know it; the one that is empty has no releases.

    Attributes
    ----------
    releases : int
    weight : int
        Of the last rows.
    promised : int
        What the next weight is at least.
    variance : int
        v of the last release.
    """

    releases: int = 0
    weight: int = 0
    promised: int = 0
    variance: int = 0

    def to_record(self) -> list[Any]:
        """Return a record for JSON; a variance may have more bits than a float."""
        return [self.releases, self.weight, self.promised, str(self.variance)]

    @classmethod
    def from_record(cls, record: list[Any]) -> Chain:
        """Return what :meth:`to_record` wrote."""
        releases, weight, promised, variance = record
        return cls(releases, weight, promised, int(variance))


@dataclass(frozen=True)
class Step:
    """One release of a total: it can't be made unless the price of all rows in it stays what it was.

    Attributes
    ----------
    before : Chain
        The total that rows are added to.
    weight : int
        What they are multiplied with.
    promised : int
        What the next weight will be at least; 0 where nothing is kept.
    variance : int
        v: a row that enters now pays its squared sensitivity over this, for its whole life.
    """

    before: Chain
    weight: int
    promised: int
    variance: int

    def __post_init__(self) -> None:
        before = self.before
        if not 0 < self.weight < MOST_WEIGHT or (self.promised and self.promised <= self.weight):
            raise ValueError(
                f"weights must be below 2**48 and increase, got {self.weight} and then {self.promised}"
            )
        if self.variance < 1:
            raise ValueError(f"variance must be at least 1, got {self.variance}")
        if before.releases == 0:
            return
        if self.weight < before.promised:
            raise ValueError(
                f"weight must be at least {before.promised}, which the last release promised, got "
                f"{self.weight}: rows of before would cost more than they were charged"
            )
        if self.variance < before.variance:
            raise ValueError(
                f"variance must not fall while a total lives, got {self.variance} after {before.variance}: "
                f"begin anew"
            )

    @property
    def kept(self) -> bool:
        """Whether the total goes on."""
        return self.promised > 0

    @property
    def noise_squared(self) -> Fraction:
        """Smallest squared standard deviation of the noise on the total."""
        own = Fraction(1, self.weight**2)
        return self.variance / (own - Fraction(1, self.promised**2) if self.kept else own)

    @property
    def after(self) -> Chain:
        """The total when it has been released."""
        if not self.kept:
            return Chain()
        return Chain(self.before.releases + 1, self.weight, self.promised, self.variance)

    def anew(self) -> Step:
        """Return this release of an empty total: what is always allowed, whatever was in it."""
        return Step(Chain(), self.weight, self.promised, self.variance)


def next_step(chain: Chain, variance: int, discounts: tuple[float, ...], last: float) -> Step:
    """Return the next release of a total that goes on.

    Parameters
    ----------
    variance : int
    discounts : tuple of float
        Those of the first releases.
    last : float
        The discount of all others, and the largest.
    """

    def discount(release: int) -> Fraction:
        given = discounts[release] if release < len(discounts) else last
        return min(Fraction(given), Fraction(last), _MOST_DISCOUNT)

    if variance < chain.variance or chain.promised >= MOST_WEIGHT:
        chain = Chain()
    weight = chain.promised or FIRST_WEIGHT
    following = discount(chain.releases + 1)
    if following == 0:
        return Step(chain, weight, 0, variance)
    return Step(chain, weight, max(ceil(weight / following), weight + 1), variance)
