"""What one episode of pursuit will do, and the noise that it is charged for."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fliphat.fit import model, sums
from fliphat.privacy import composition
from fliphat.privacy.priced import Part, PickNoise, PricedRelease, VectorNoise, fit_scales
from fliphat.privacy.scales import ROW_SENSITIVITY

__all__ = ["RADIUS", "Claim", "PursuitPlan", "priced_noise"]

#: Radius of the ball of the rows' integers whose second moments are added up. Rounding toward zero takes less
#: than a thousandth off a coordinate, and products of a hundred rows still fit 32 bits, which is fast.
RADIUS: Final = 2**12 - 1

#: Scales are first written down in so many parts of one: what matters is their ratio.
_DIGITS: Final = 2**8


@dataclass(frozen=True, eq=False, kw_only=True)
class PursuitPlan:
    """One episode's fit: everything it will do.

    Attributes
    ----------
    episode : int
    dim : int
    steps : model.Episode
        Rows, picks, clips and coordinates.
    release : PricedRelease
        Picks, then one vector: gradients, second moments above the diagonal, the residuals' size, and in the
        first episode, or where those are asked for again, three numbers of whole rows.
    signed : bool
        Whether a sign is picked with a column.
    octaves : float
        Range of a row's size in the first episode.
    told : model.Told
    units : ndarray, shape (dim,), or None
        Public sizes of columns.
    seed : int, optional
        For simulation only.
    """

    episode: int
    dim: int
    steps: model.Episode
    release: PricedRelease
    signed: bool
    octaves: float
    told: model.Told
    units: npt.NDArray[np.float64] | None
    seed: int | None

    @property
    def rows(self) -> int:
        """Rows of the fit, with or without a reward."""
        return self.steps.rows

    @property
    def picks(self) -> PickNoise | None:
        """Noise of the picks; None where every column is public already."""
        noise = self.release.noise[0]
        return noise if isinstance(noise, PickNoise) else None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Parts of the vector, in order."""
        noise = self.release.noise[-1]
        assert isinstance(noise, VectorNoise)
        return noise.parts


class Claim(NamedTuple):
    """What an episode's noise must support: epsilon, delta, rounds of a user, and how it is priced."""

    epsilon: float
    delta: float
    users: int
    accounting: str


@functools.lru_cache(maxsize=4096)
def priced_noise(claim: Claim, m: int, picks: int, shares: tuple[tuple[str, float], ...]) -> PricedRelease:
    """Return the noise of an episode of m columns: that of all with the same shares of the budget."""
    share = dict(shares)

    def scale(sensitivity_squared: int, share_of_it: float) -> int:
        return math.ceil(_DIGITS * math.sqrt(sensitivity_squared / share_of_it))

    def part(sensitivity_squared: int, share_of_it: float) -> Part:
        return Part(sensitivity_squared, scale(sensitivity_squared, share_of_it))

    parts = [
        part(m * ROW_SENSITIVITY**2, share["gradient"]),
        part(RADIUS**4, share["moments"]),
        part(sums.LIMIT**2, share["size"]),
    ]
    if "rows" in share:
        parts += [part((width * sums.LIMIT) ** 2, share["rows"] / 3) for width in (2, 2, 1)]
    noise: list[PickNoise | VectorNoise] = [VectorNoise(*parts)]
    if picks:
        pick_scale = scale(picks * ROW_SENSITIVITY**2, share["picks"])
        noise.insert(0, PickNoise(ROW_SENSITIVITY, pick_scale, picks))
    start = _factor(claim, picks, share["picks"]) if claim.accounting == "exact" else None
    return fit_scales(noise, **claim._asdict(), factor=start)


@functools.lru_cache(maxsize=1024)
def _factor(claim: Claim, picks: int, share: float) -> float:
    """Return where the search for scales starts: those of other columns with the same shares are as large.

    The price of what is found from there is computed from its integers.
    """
    vector = composition.Gaussian(math.sqrt(1 - share) / _DIGITS)
    picked = [composition.Pick(2 * math.sqrt(share / picks) / _DIGITS)] * picks if picks else []
    return composition.largest_factor(claim.epsilon, claim.delta, [*picked, vector], users=claim.users)
