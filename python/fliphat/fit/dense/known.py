"""What a dense policy knows: sums of what was released, and what follows from them. Public."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.board import Earned
from fliphat.fit.dense.chain import Chain
from fliphat.fit.dense.constants import DenseTuning
from fliphat.fit.dense.parts import RowMap
from fliphat.fit.known import SparseEstimate

__all__ = [
    "DRAWS",
    "ArmScores",
    "KnownGrown",
    "KnownLinear",
    "Weighted",
    "afresh",
    "begin",
    "expecting",
    "with_groups",
]

#: Draws of all coefficients from their posterior; each round is played by one of them.
DRAWS: Final = 32

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ArmScores:
    """What one episode released of each arm's rounds and rewards. Public.

    Attributes
    ----------
    counts, rewards : ndarray, shape (arms,)
        Rounds of each arm that came with a reward, and the sum of their rewards, moved to -1/2..1/2.
    count_noise, reward_noise : float
        Standard deviation of the noise in each of them.
    """

    counts: _Floats
    rewards: _Floats
    count_noise: float
    reward_noise: float


@dataclass(frozen=True, eq=False)
class Weighted:
    """Releases of one part, added with the weights that make the most of them.

    A release of discounted sums is ``D_t = N_t m`` and noise, for rows with the mean m: its weight is N_t
    over the variance of the noise. Rows of block s are then in `sums` with one weight, `weights[s]`, whatever
    is summed.

    Attributes
    ----------
    sums : ndarray
    noise : ndarray
        Variances of the noise in `sums`; broadcasts to it.
    weights, rows, entered : ndarray, shape (blocks,)
        Of each block of rows, its weight in `sums`, its length, and its weight in the total that lives, 0 if
        it is not in it.
    """

    sums: _Floats
    noise: _Floats
    weights: _Floats
    rows: _Floats
    entered: _Floats

    @classmethod
    def none(cls, sums: tuple[int, ...], noise: tuple[int, ...]) -> Weighted:
        """Return no releases."""
        return cls(np.zeros(sums), np.zeros(noise), np.zeros(0), np.zeros(0), np.zeros(0))

    def add(
        self, released: _Floats, variance: _Floats, rows: int, weight: int, fresh: bool, typical: float
    ) -> Weighted:
        """Return the sums with another release, whose noise has about the variance `typical`."""
        entered = np.append(np.zeros_like(self.entered) if fresh else self.entered, float(weight))
        blocks = np.append(self.rows, float(rows))
        share = entered / weight
        own = float(share @ blocks) / typical
        return Weighted(
            self.sums + own * released,
            self.noise + own**2 * variance,
            np.append(self.weights, 0.0) + own * share,
            blocks,
            entered,
        )

    @property
    def total(self) -> float:
        """Weighted number of rows."""
        return float(self.weights @ self.rows)

    @property
    def spread(self) -> float:
        """Variance of a weighted sum of rows over the weighted number of rows, for rows of variance 1."""
        return float(self.weights**2 @ self.rows) / self.total


@dataclass(frozen=True, eq=False)
class KnownLinear:
    """Everything released so far, as what follows from it. Public.

    Rows are ``w = x * scale``, in base units, until the map is settled, and ``v = (w - center) / size`` from
    then on; groups are arms, or one for all of them.

    Attributes
    ----------
    episodes, rows : int
        Releases, and rounds of all of them.
    settled : int
        Episodes when the map was settled; 0 while it is not.
    center, size : ndarray, shape (d,)
        Of columns, in base units.
    ball : float
        Largest norm of ``v``.
    variances : ndarray, shape (d,)
        Of columns of ``v``, when the map was settled.
    means, mean_weights, spreads, spread_weights : ndarray, shape (d,)
        Weighted sums of released means and variances of columns, in base units, and the weights.
    arms : Weighted, shape (groups, 2 (d + 1))
        Sums of ``w r``, r, ``w`` and 1 over each arm's rows.
    moments : Weighted, shape (d, d)
        Sums of ``v v'`` over all rows.
    squares : Weighted, shape (groups, d + 1)
        Sums of ``v * v`` over each arm's rows, and how many they are.
    square_counts : ndarray, shape (groups,)
        Discounted as the total of squares is.
    chains : dict of Chain
        Totals that live.
    scores : tuple of ArmScores
        One for each episode.
    totals : ndarray, shape (2, groups)
        Last release of discounted counts and sums of rewards, `total_noise` their noise.
    total_noise : ndarray, shape (2,)
    coefficients : ndarray, shape (groups, d + 1)
        Of ``(v, 1)``, for rewards from -1/2 to 1/2.
    draws : ndarray, shape (DRAWS, groups, d + 1)
        Coefficients drawn from the posterior: what arms are chosen by.
    signal : float
        Squares of coefficients over those that noise alone would have.
    constants : DenseTuning
        Of the policy, which keeps them with its settings.
    reward_range : (float, float)
        Where rewards are expected.
    began : int
        Episodes before rewards were first expected there, or before they changed: what those released is not
        used.
    changed : int
        Episodes when rewards had clearly changed, for the last time; 0 if they never did.
    earned : Earned
        What episodes earned, and what the guard makes of it.
    """

    episodes: int
    rows: int
    settled: int
    center: _Floats
    size: _Floats
    ball: float
    variances: _Floats
    means: _Floats
    mean_weights: _Floats
    spreads: _Floats
    spread_weights: _Floats
    arms: Weighted
    moments: Weighted
    squares: Weighted
    square_counts: _Floats
    chains: dict[str, Chain]
    scores: tuple[ArmScores, ...]
    totals: _Floats
    total_noise: _Floats
    coefficients: _Floats
    draws: _Floats
    signal: float
    constants: DenseTuning
    reward_range: tuple[float, float]
    began: int = 0
    changed: int = 0
    earned: Earned = field(default_factory=Earned)

    @property
    def dim(self) -> int:
        """Coordinates of a context."""
        return len(self.center)

    @property
    def fresh(self) -> bool:
        """Whether nothing is known of rewards: such an episode is played uniformly."""
        return self.episodes == self.began

    @property
    def groups(self) -> int:
        """Sets of coefficients."""
        return len(self.coefficients)

    @property
    def estimate(self) -> SparseEstimate:
        """All coefficients in a row, each arm's constant last."""
        values = self.coefficients.ravel()
        return SparseEstimate(np.arange(len(values)), values, len(values))

    def row_map(self, scale: float) -> RowMap:
        """Return how rows become vectors; `scale` is that of base units."""
        return RowMap(self.center / scale, scale / self.size, self.ball)

    def to_record(self) -> dict[str, Any]:
        """Return a record for JSON, which keeps every bit."""
        found = {field.name: _written(getattr(self, field.name)) for field in fields(self)}
        del found["constants"]
        return found | {"earned": self.earned.to_record()}

    @classmethod
    def from_record(
        cls, record: dict[str, Any], constants: DenseTuning, reward_range: tuple[float, float]
    ) -> KnownLinear:
        """Return what :meth:`to_record` wrote; an earlier version wrote no range, but had the one given."""
        filled = {name: _read(value) for name, value in record.items()}
        for name in ("arms", "moments", "squares"):
            filled[name] = Weighted(*filled[name])
        filled["chains"] = {name: Chain.from_record(value) for name, value in record["chains"].items()}
        filled["scores"] = tuple(ArmScores(*one) for one in filled["scores"])
        filled["earned"] = Earned.from_record(record["earned"])
        if "columns" in filled:
            filled["columns"] = filled["columns"].astype(np.int64)
        filled["reward_range"] = tuple(record.get("reward_range", reward_range))
        return cls(**filled, constants=constants)


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownGrown(KnownLinear):
    """The same where few of many columns are public: information that each episode adds to.

    Rows are ``w = x * scale`` of the public columns, cut to the ball; `dim` is how many there are.

    Attributes
    ----------
    columns : ndarray of int64, shape (dim,)
        Public columns of a context.
    centers : ndarray, shape (dim,)
        About the means of ``w``: what arms' rows have in the mean is told of ``w - centers``.
    precision : ndarray, shape (groups, dim + 1, dim + 1)
        Of each arm's coefficients of ``(w - centers, 1)``, from all releases.
    told : ndarray, shape (groups, dim + 1)
        What the releases say of them, weighted by that.
    products, product_weights : ndarray, shape (dim, dim)
        Weighted sums of released mean products of columns, and the weights.
    middles : ndarray, shape (dim,)
        Weighted sums of released means of ``w - centers``, with the weights of each column's square.
    product_noise : float
        Variance of the noise in a mean product, times its weight.
    """

    columns: npt.NDArray[np.int64]
    centers: _Floats
    precision: _Floats
    told: _Floats
    products: _Floats
    product_weights: _Floats
    middles: _Floats
    product_noise: float = 0.0

    @classmethod
    def none(cls, groups: int, constants: DenseTuning, reward_range: tuple[float, float]) -> KnownGrown:
        """Return what is known before anything was released: no column is public."""
        nothing = begin(0, groups, constants, reward_range)
        return cls(
            **{field.name: getattr(nothing, field.name) for field in fields(nothing)},
            columns=np.zeros(0, np.int64),
            centers=np.zeros(0),
            precision=np.zeros((groups, 1, 1)),
            told=np.zeros((groups, 1)),
            products=np.zeros((0, 0)),
            product_weights=np.zeros((0, 0)),
            middles=np.zeros(0),
        )


def begin(dim: int, groups: int, constants: DenseTuning, reward_range: tuple[float, float]) -> KnownLinear:
    """Return what is known before anything was released."""
    zeros = np.zeros(dim)
    return KnownLinear(
        episodes=0,
        rows=0,
        settled=0,
        center=zeros,
        size=np.ones(dim),
        # A row of one column is not cut: what is learned of it could be wrong by that much.
        ball=max(constants.first_ball * math.sqrt(dim), 1.0),
        variances=np.ones(dim),
        means=zeros,
        mean_weights=zeros,
        spreads=zeros,
        spread_weights=zeros,
        arms=Weighted.none((groups, 2 * dim + 2), (2 * dim + 2,)),
        moments=Weighted.none((dim, dim), ()),
        squares=Weighted.none((groups, dim + 1), ()),
        square_counts=np.zeros(groups),
        chains={},
        scores=(),
        totals=np.zeros((2, groups)),
        total_noise=np.zeros(2),
        coefficients=np.zeros((groups, dim + 1)),
        draws=np.zeros((DRAWS, groups, dim + 1)),
        signal=1e9,
        constants=constants,
        reward_range=reward_range,
    )


def _without(known: KnownLinear, *names: str) -> dict[str, Chain]:
    return {name: chain for name, chain in known.chains.items() if name not in names}


def afresh(known: KnownLinear) -> KnownLinear:
    """Return what is known without rewards and without arms' rows: their totals begin anew."""
    nothing = begin(known.dim, known.groups, known.constants, known.reward_range)
    if isinstance(known, KnownGrown):
        known = replace(known, precision=0 * known.precision, told=0 * known.told)
    return replace(
        known,
        chains=_without(known, "arms", "squares"),
        arms=nothing.arms,
        squares=nothing.squares,
        square_counts=nothing.square_counts,
        coefficients=nothing.coefficients,
        draws=nothing.draws,
        began=known.episodes,
    )


def expecting(known: KnownLinear, reward_range: tuple[float, float]) -> KnownLinear:
    """Return what is known when rewards are expected elsewhere; totals of rewards begin anew.

    In a part of the old range nothing was cut, and what is known is told in other units. Beyond it nothing
    is known of rewards.
    """
    (low, high), (first, last) = known.reward_range, reward_range
    moved = replace(known, reward_range=reward_range)
    if first < low or high < last:
        return replace(afresh(moved), earned=Earned(last=known.earned.last))
    own, arms = known.dim + 1, known.arms  # sums of (v r, r), and then those of (v, 1)
    times, more = (high - low) / (last - first), (low + high - first - last) / (2 * (last - first))
    if isinstance(moved, KnownGrown):
        # Of rewards that are `times` as large: precision is over their square.
        told = (times * moved.told + more * moved.precision[:, :, -1]) / times**2
        moved = replace(moved, precision=moved.precision / times**2, told=told)
    else:
        sums, noise = arms.sums.copy(), arms.noise.copy()
        sums[:, :own] = times * sums[:, :own] + more * sums[:, own:]
        noise[:own] = times**2 * noise[:own] + more**2 * noise[own:]
        moved = replace(moved, arms=replace(arms, sums=sums, noise=noise))
    constant = np.eye(own)[-1] * more
    return replace(
        moved,
        chains=_without(known, "arms"),
        coefficients=times * known.coefficients + constant,
        draws=times * known.draws + constant,
        scores=tuple(
            ArmScores(
                one.counts,
                times * one.rewards + more * one.counts,
                one.count_noise,
                math.hypot(times * one.reward_noise, more * one.count_noise),
            )
            for one in known.scores
        ),
    )


def with_groups(known: KnownLinear, groups: int) -> KnownLinear:
    """Return what is known with nothing about arms that came later."""
    more = groups - known.groups
    if more == 0:
        return known

    def longer(part: Weighted) -> Weighted:
        return replace(part, sums=np.pad(part.sums, ((0, more), (0, 0))))

    if isinstance(known, KnownGrown):
        known = replace(
            known,
            precision=np.pad(known.precision, ((0, more), (0, 0), (0, 0))),
            told=np.pad(known.told, ((0, more), (0, 0))),
        )
    return replace(
        known,
        arms=longer(known.arms),
        squares=longer(known.squares),
        square_counts=np.pad(known.square_counts, (0, more)),
        totals=np.pad(known.totals, ((0, 0), (0, more))),
        coefficients=np.pad(known.coefficients, ((0, more), (0, 0))),
        draws=np.pad(known.draws, ((0, 0), (0, more), (0, 0))),
    )


def _written(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        text = base64.b64encode(np.ascontiguousarray(value, "<f8").tobytes()).decode()
        return {"shape": list(value.shape), "f8": text}
    if isinstance(value, (Weighted, ArmScores)):
        return [_written(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, dict):
        return {name: one.to_record() for name, one in value.items()}
    if isinstance(value, tuple):
        return [_written(one) for one in value]
    return value


def _read(value: Any) -> Any:
    if isinstance(value, dict) and "f8" in value:
        return np.frombuffer(base64.b64decode(value["f8"]), "<f8").reshape(value["shape"]).astype(np.float64)
    if isinstance(value, list):
        return [_read(one) for one in value]
    return value
