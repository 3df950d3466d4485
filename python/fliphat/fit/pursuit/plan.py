"""What one episode of pursuit will do, and the noise that it is charged for."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.board import BOARD_SQUARED
from fliphat.fit.pursuit.known import Episode, Told
from fliphat.privacy.priced import Claim, Part, PickNoise, PricedRelease, VectorNoise, price
from fliphat.privacy.scales import ROW_SENSITIVITY

__all__ = ["LIMIT", "RADIUS", "PursuitPlan", "priced_noise"]

#: Largest size of one row's integer.
LIMIT: Final = 2**15

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
    steps : Episode
        Rows, picks, clips and coordinates.
    release : PricedRelease
        In the first episode, or where those are asked for again, three numbers of whole rows; then picks;
        then one vector: gradients, second moments above the diagonal, the residuals' size and, in a bandit,
        what the episode earned.
    signed : bool
        Whether a sign is picked with a column.
    octaves : float
        Range of a row's size in the first episode.
    told : Told
    units : ndarray, shape (dim,), or None
        Public sizes of columns.
    """

    episode: int
    dim: int
    steps: Episode
    release: PricedRelease
    signed: bool
    octaves: float
    told: Told
    units: npt.NDArray[np.float64] | None

    @functools.cached_property
    def rows(self) -> int:
        """Rows of the fit, with or without a reward."""
        return self.steps.rows

    @functools.cached_property
    def picks(self) -> PickNoise | None:
        """Noise of the picks; None where every column is public already."""
        for noise in self.release.noise:
            if isinstance(noise, PickNoise):
                return noise
        return None

    @functools.cached_property
    def row_parts(self) -> tuple[Part, ...]:
        """The three numbers of whole rows, which come first; none where they are not asked for."""
        first = self.release.noise[0]
        return first.parts if "rows" in self.steps.shares and isinstance(first, VectorNoise) else ()

    @functools.cached_property
    def parts(self) -> tuple[Part, ...]:
        """Parts of the vector, in order."""
        noise = self.release.noise[-1]
        assert isinstance(noise, VectorNoise)
        return noise.parts


@functools.lru_cache(maxsize=4096)
def priced_noise(claim: Claim, m: int, picks: int, shares: tuple[tuple[str, float], ...]) -> PricedRelease:
    """Return the noise of an episode of m columns: that of all with the same shares of the budget."""
    share = dict(shares)
    squares = (m * ROW_SENSITIVITY**2, RADIUS**4, LIMIT**2)
    names = ("gradient", "moments", "size")
    template: list[tuple[int, int, int] | list[tuple[int, int]]] = []
    if "rows" in share:
        widths = ((2 * LIMIT) ** 2, (2 * LIMIT) ** 2, LIMIT**2)
        template.append([(square, _scale(square, share["rows"] / 3)) for square in widths])
    if picks:
        template.append((ROW_SENSITIVITY, _scale(picks * ROW_SENSITIVITY**2, share["picks"]), picks))
    last = [(square, _scale(square, share[name])) for square, name in zip(squares, names, strict=True)]
    if "board" in share:
        last.append((BOARD_SQUARED, _scale(BOARD_SQUARED, share["board"])))
    template.append(last)
    # Those of other columns with the same shares are as large: the search starts there. The price of what is
    # found from there is computed from its integers.
    key = (claim, picks, share["picks"], share.get("rows", 0.0), share.get("board", 0.0))
    found = price(template, claim, factor=_FACTORS.get(key))
    if len(_FACTORS) >= _MOST_FACTORS:
        _FACTORS.clear()
    _FACTORS[key] = found.factor or 1.0
    return found


_FACTORS: Final[dict[tuple[Claim, int, float, float, float], float]] = {}
_MOST_FACTORS: Final = 1024


def _scale(sensitivity_squared: int, share: float) -> int:
    return math.ceil(_DIGITS * math.sqrt(sensitivity_squared / share))
