"""What pursuit knows, and how it learns from what is released. Public arithmetic: no row ever comes here.

An episode is planned from what is known (`open_episode`), and what its fit releases is learned (`learn`).
Both are functions of public numbers, so lengths, picks, clips and scales may follow what earlier episodes
found.

| letter | meaning |
|---|---|
| A, k | the columns of the estimate and how many they are; position 0 is the intercept, a column of ones |
| p, m | columns that an episode picks; m = 1 + k + p |
| theta, P | coefficients on the intercept and A, and the covariance of what is not known of them |
| G, W | second moments of the intercept and A, and the precision of each entry |
| H | G, drawn to what a typical column has by what is noise in it; positive definite |
| x, r | size of a context coordinate that has not been picked; size (root mean square) of a residual |
| e, c | mean of a typical column; mean product of two of them |

Three things make it work where contexts are correlated or have means. Candidates are taken relative to what
the public columns say of a typical column (`Episode.shift`): common factors and means cancel before the clip.
The gradient on A is taken in coordinates in which the columns are, as far as known, uncorrelated and of size
one (`Episode.whiten`): the noise then falls on every direction alike. And the intercept is always there.

The constants are in :mod:`fliphat.fit.tuning`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc

from fliphat import kernels
from fliphat.fit.known import SparseEstimate
from fliphat.fit.tuning import Tuning, tuning

__all__ = ["Episode", "KnownSparse", "Released", "Told", "begin", "centred", "learn", "open_episode"]

_Vector = npt.NDArray[np.float64]
_Columns = npt.NDArray[np.int64]

#: Mean of the absolute value of a standard normal, inverted.
_ROOT_HALF_PI: Final = 1.2533

#: Precision, in 1/x^4, that every second moment has at least.
_FAINT: Final = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class Told:
    """What the caller said, and the budget.

    Attributes
    ----------
    dim, sparsity : int
    mu : float
        The budget: that of one Gaussian release.
    context_scale, reward_scale : float
        Guesses of x and r, from which both are corrected.
    intercept : bool
        Whether rewards may have a mean.
    reward_range : (float, float) or None
        Rewards are within it.
    loss : {"squared", "logistic"}
    first_rows : int, optional
        Length of the first fit's episode, instead of the rule's.
    pilot : bool
        Whether an episode before the first fit measures where rewards are.
    constants : Tuning, optional
        Instead of those that a bandit has at this budget.
    """

    dim: int
    sparsity: int
    mu: float
    context_scale: float
    reward_scale: float
    intercept: bool = True
    reward_range: tuple[float, float] | None = None
    loss: str = "squared"
    first_rows: int | None = None
    pilot: bool = False
    constants: Tuning | None = None

    @property
    def tuning(self) -> Tuning:
        """The constants of the rule."""
        return tuning(self.mu) if self.constants is None else self.constants


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownSparse:
    """Everything released so far, as far as it matters for what comes. Public.

    Attributes
    ----------
    dim, episodes, fits : int
        d, how many episodes have been released, and how many of them were fits: a pilot is not.
    rows, picks : float
        Length and picks of the next episode, before rounding.
    shortest : float
        No episode is shorter.
    columns : ndarray of int64, shape (k,)
        A, in the order found.
    units : ndarray, shape (k,)
        Public sizes that these columns are divided by.
    theta : ndarray, shape (1 + k,)
        Intercept, then coefficients.
    covariance, moments, precision : ndarray, shape (1 + k, 1 + k)
        P, G and W.
    residual_size, context_size : float
        r and x.
    start_size, size_weight : float
        x as told or measured from whole rows; precision, relative to x, of what picked columns said of x^2.
    typical_mean, typical_mean_weight, typical_product, typical_product_weight : float
        e and c as measured from whole rows and from columns when they were new, with their precisions. Later
        the arms are chosen by these columns, which moves their means and products.
    told_size, octaves, octaves_weight : float
        x as told; log2 of x over it as measured from whole rows, and the precision of that.
    doubted : bool
        Whether whole rows have just said that x may be far from what was told: the next episode asks again.
    quiet : int
        Episodes in a row whose picks did not stand out.
    found : tuple of int
        Picks that stood out, of each episode.
    """

    dim: int
    episodes: int
    fits: int
    rows: float
    shortest: float
    picks: float
    columns: _Columns
    units: _Vector
    theta: _Vector
    covariance: _Vector
    moments: _Vector
    precision: _Vector
    residual_size: float
    context_size: float
    start_size: float
    size_weight: float = 0.0
    typical_mean: float = 0.0
    typical_mean_weight: float = 0.0
    typical_product: float = 0.0
    typical_product_weight: float = 0.0
    told_size: float = 0.0
    octaves: float = 0.0
    octaves_weight: float = 0.0
    doubted: bool = False
    quiet: int = 0
    found: tuple[int, ...] = field(default=())

    @property
    def estimate(self) -> SparseEstimate:
        """The coefficients, for scoring arms: the intercept is the same for all of them."""
        order = np.argsort(self.columns)
        values = self.theta[1:] / self.units
        return SparseEstimate(self.columns[order], values[order], self.dim)

    @property
    def intercept(self) -> float:
        """What a reward is where all columns are zero."""
        return float(self.theta[0])

    def to_record(self) -> dict[str, Any]:
        """Return a record for JSON, which keeps every bit of a float64."""
        record: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            record[name] = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
        record["found"] = list(self.found)
        return record

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> KnownSparse:
        """Return what :meth:`to_record` wrote."""
        filled = dict(record)
        filled["columns"] = np.array(record["columns"], np.int64)
        for name in ("units", "theta", "covariance", "moments", "precision"):
            filled[name] = np.array(record[name], np.float64)
        filled["found"] = tuple(record["found"])
        filled["told_size"] = record.get("told_size") or record["start_size"]
        filled.pop("size_sum", None)  # was kept in units in which it could not be forgotten
        # As they were called when only whole rows said what is typical.
        for name in ("mean", "mean_weight", "product", "product_weight"):
            if f"row_{name}" in filled:
                filled[f"typical_{name}"] = filled.pop(f"row_{name}")
        return cls(**filled)


@dataclass(frozen=True, eq=False, kw_only=True)
class Episode:
    """What an episode's fit does, fixed when the episode opens. Noise aside, which is calibrated to it.

    Attributes
    ----------
    rows, picks : int
        n and p.
    one : float
        Value of the intercept's column in this episode: x.
    shift : ndarray, shape (1 + k,), or None
        A row's ``shift @ (one, row[A])`` is taken off each of its coordinates before candidates are scored.
    pick_clip, value_clip : float
    whiten : ndarray, shape (m, m)
        A row's ``whiten @ (one, row[A], row[new])`` is what its gradient on A is taken of.
    foreseen : ndarray, shape (m, m)
        H before this episode's second moments.
    ball : float
        Rows are cut to this l2 norm before their second moments are taken.
    size_cap : float
    shares : dict
        Share of mu^2 of "picks", "gradient", "moments", "size" and, if they are released, "rows".
    typical : ndarray, shape (m, m)
        Second moments that the released ones are drawn to.
    """

    rows: int
    picks: int
    one: float
    shift: _Vector | None
    pick_clip: float
    value_clip: float
    whiten: _Vector
    foreseen: _Vector
    ball: float
    size_cap: float
    shares: dict[str, float]
    typical: _Vector


@dataclass(frozen=True, eq=False, kw_only=True)
class Released:
    """What one fit released: means over the episode's rows, with the standard deviations of their noise.

    ``rows`` has the mean of three numbers of each row (log2 of its size over x, its mean over its size, and
    that squared) and their noise; None where they are not released.
    """

    columns: _Columns
    units: _Vector
    signs: _Columns
    gradient: _Vector
    gradient_noise: float
    moments: _Vector
    moment_noise: float
    size: float
    size_noise: float
    rows: tuple[float, float, float] | None
    rows_noise: tuple[float, float, float] | None


def begin(told: Told) -> KnownSparse:
    """Return what is known before anything is released."""
    t = told.tuning
    wide = told.sparsity / 10
    picks = max(1.0, t.picks_for_budget * told.mu) * math.sqrt(wide)
    picks = max(min(picks, 0.4 * told.sparsity), _fewest_picks(told))
    log_dim = math.log(max(told.dim, 2))
    noise = 2 * math.sqrt(int(picks) / t.pick_share) / told.mu
    # A coefficient of typical size moves a mean gradient by about 0.235 clips.
    rows = math.hypot(t.rows_for_noise * noise * log_dim / 0.235, t.rows_for_sampling * log_dim)
    rows = max(rows * max(wide, 0.3) ** 0.24, 4.0) if told.first_rows is None else float(told.first_rows)
    known = KnownSparse(
        dim=told.dim,
        episodes=0,
        fits=0,
        rows=rows,
        shortest=rows / 2,
        picks=picks,
        columns=np.zeros(0, np.int64),
        units=np.zeros(0),
        theta=np.zeros(1),
        covariance=np.zeros((1, 1)),
        moments=np.ones((1, 1)),
        precision=np.zeros((1, 1)),
        residual_size=told.reward_scale,
        context_size=told.context_scale,
        start_size=told.context_scale,
        told_size=told.context_scale,
    )
    if not told.intercept:
        return known
    centre = sum(told.reward_range) / 2 if told.reward_range and told.loss == "squared" else 0.0
    return centred(known, told, centre, told.reward_scale)


def centred(known: KnownSparse, told: Told, centre: float, size: float) -> KnownSparse:
    """Return what is known when rewards are about `centre`, give or take `size`."""
    deviation = told.tuning.intercept_prior * size / _slope(known, told)
    return replace(known, theta=np.array([centre]), covariance=np.array([[deviation**2]]), residual_size=size)


def open_episode(known: KnownSparse, told: Told) -> Episode:
    """Return the next episode, from what is known."""
    t, x, r, k = told.tuning, known.context_size, known.residual_size, len(known.columns)
    picks = int(min(known.picks + 1e-9, max(1.0, t.most_picks * told.sparsity), told.dim - k))
    rare = _rare(known, told)
    mean, product = _typical(known, t)
    prior = _of_typical(k + 1, x, *_typical_of_support(known, t))
    on_support = _drawn(_in_units(known.moments, x), known.precision, x, prior, t, sampling=0.0)
    on_support = _positive(on_support, t.smallest_eigenvalue * x * x)
    across = np.concatenate([[mean * x], np.full(k, product)])
    shift = np.linalg.solve(on_support, across)
    own = math.sqrt(max(x * x - float(across @ shift), 0.1 * x * x))
    m = 1 + k + picks
    typical = _of_typical(m, x, mean, product)
    foreseen = typical.copy()
    foreseen[: k + 1, : k + 1] = on_support
    typical[: k + 1, : k + 1] = prior
    eigenvalues, vectors = _raised_eigenvalues(foreseen, t.smallest_eigenvalue * x * x)
    foreseen = (vectors * eigenvalues) @ vectors.T
    value_clip = max(t.value_clip * r, rare)
    if told.loss == "logistic":
        # Cut residuals say which class is more likely and not how likely: coefficients would run away until a
        # class is certain. So they are left whole, and a column that is rarely there is not blown up.
        eigenvalues = np.maximum(eigenvalues, t.whitened_from * _there(known) ** 2)
        value_clip = max(value_clip, t.whole_residuals * _largest_residual(known))
    shares = {
        "picks": 0.0 if picks == 0 else t.pick_share if known.fits < t.early else t.late_pick_share,
        "moments": t.moment_share,
        "size": t.size_share,
    }
    if known.fits == 0 or known.doubted:
        shares["rows"] = t.row_share
    shares["gradient"] = 1 - sum(shares.values())
    return Episode(
        rows=math.ceil(known.rows),
        picks=picks,
        one=x,
        shift=shift if np.any(across) else None,
        pick_clip=own * max(t.pick_clip * r, rare),
        value_clip=value_clip,
        whiten=(vectors / np.sqrt(eigenvalues)) @ vectors.T,
        foreseen=foreseen,
        ball=math.sqrt(t.ball * float(np.trace(foreseen))),
        size_cap=t.size_cap * r,
        shares=shares,
        typical=typical,
    )


def learn(known: KnownSparse, told: Told, episode: Episode, released: Released) -> KnownSparse:
    """Return what is known after an episode: a Kalman step, pruning, and the scales of the next."""
    t, x, r, n = told.tuning, episode.one, known.residual_size, episode.rows
    new, slope, p = released.columns, _slope(known, told), len(released.columns)
    # Rows cut to the ball are shorter.
    cut = _share_in_ball(len(released.gradient), t.ball)
    fresh, weight = released.moments / cut, (cut / released.moment_noise) ** 2
    coefficient = r / x / slope * _within_odds(known, told)
    rule = kernels.KalmanRule(
        one=x,
        weight=weight,
        spread=t.moment_prior * x**4,
        sampling=2 / n * x**4,
        faint=_FAINT / x**4,
        smallest=t.smallest_eigenvalue * x * x,
        gain=t.gain * slope,
        noise=released.gradient_noise**2 + t.sampling * episode.value_clip**2 / n,
        doubt=(t.doubt * coefficient) ** 2,
        drift_of_one=told.intercept * t.drift * coefficient**2,
        drift=t.drift * coefficient**2,
        prune=t.prune,
        stand_out=t.stand_out,
    )
    step = kernels.kalman_step(
        known.theta,
        known.covariance,
        known.moments,
        known.precision,
        released.gradient,
        fresh,
        released.signs * (t.guess * coefficient),
        whiten=episode.whiten,
        typical=episode.typical,
        rule=rule,
        most=told.sparsity,
    )
    found = step.found
    picks, rows, quiet = known.picks, known.rows, 0 if 2 * found >= p > 0 else known.quiet + 1
    if p and found == p:
        picks = max(picks, p) * t.more_picks * max(told.sparsity / 10, 1.0) ** t.wide_picks
    elif 2 * found <= p:
        picks = max(_fewest_picks(told), picks / t.fewer_picks)
    picks = min(picks, 2.0 * told.sparsity)
    rows *= t.growth if quiet == 0 else t.slow_growth if quiet < t.patience else t.fast_growth
    rows = max(rows, known.shortest)
    # Scales.
    explained, unknown = slope**2 * step.explained, slope**2 * step.unknown
    residual = _residual_size(known, episode, released, explained, unknown, t)
    if told.intercept and _at_cap(released, episode):
        # Gradients were cut, too: how far off the mean reward is, they did not say.
        doubt = (t.intercept_prior * residual / slope) ** 2
        step.covariance[0, 0] = max(step.covariance[0, 0], doubt)
    of_new = _of_new(fresh, len(known.columns))
    context = _context_size(known, released, of_new, weight, t)
    typical = _typical_measured(known, released, of_new, weight, context["context_size"])
    kept = step.keep[1:]
    learned = replace(
        known,
        episodes=known.episodes + 1,
        fits=known.fits + 1,
        rows=rows,
        picks=picks,
        columns=np.concatenate([known.columns, new])[kept],
        units=np.concatenate([known.units, released.units])[kept],
        theta=step.theta,
        covariance=step.covariance,
        moments=step.moments,
        precision=step.precision,
        residual_size=residual,
        quiet=quiet,
        found=(*known.found, found),
        **context,
        **typical,
    )
    if known.doubted and known.start_size != known.told_size == learned.start_size:
        return _forgotten(learned, told)
    return learned


def _forgotten(known: KnownSparse, told: Told) -> KnownSparse:
    """Return what is known without its columns: they were fitted as if contexts had another size."""
    nothing = replace(
        known,
        columns=np.zeros(0, np.int64),
        units=np.zeros(0),
        theta=known.theta[:1],
        moments=np.ones((1, 1)),
        precision=np.zeros((1, 1)),
    )
    return (
        centred(nothing, told, known.intercept, known.residual_size)
        if told.intercept
        else replace(nothing, theta=np.zeros(1), covariance=np.zeros((1, 1)))
    )


def _slope(known: KnownSparse, told: Told) -> float:
    """Return the mean slope of the rewards' mean in the scores: 1, or that of the sigmoid."""
    if told.loss == "squared":
        return 1.0
    score, spread = _score(known)
    likely = 1 / (1 + math.exp(-min(abs(score), 30.0)))
    return max(likely * (1 - likely) / spread, 0.02)


def _fewest_picks(told: Told) -> float:
    return max(1.0, told.tuning.fewest_picks * told.sparsity)


def _there(known: KnownSparse) -> float:
    """Return the size of a context's values that are not zero."""
    return float(known.told_size * 2.0**known.octaves)


def _within_odds(known: KnownSparse, told: Told) -> float:
    """Return the factor that keeps a coefficient of typical size, r/x, within log odds that are usual.

    A column that is zero in most rows is small, and a coefficient of r/x would let it explain all there is to
    explain. But log odds are not larger for being moved rarely.
    """
    if told.loss == "squared":
        return 1.0
    typical = known.residual_size / known.context_size / _slope(known, told)
    return min(1.0, told.tuning.log_odds / _there(known) / typical)


def _score(known: KnownSparse) -> tuple[float, float]:
    """Return the typical score, made smaller as its spread makes a mean of sigmoids, and by how much."""
    weights = known.theta[1:]
    variance = max(float(weights @ known.moments[1:, 1:] @ weights), 0.0)
    spread = math.sqrt(1 + math.pi * min(variance, 1e6) / 8)
    return known.intercept / spread, spread


def _largest_residual(known: KnownSparse) -> float:
    """Return how far a click can be from how likely it is on average."""
    return 1 / (1 + math.exp(-min(abs(float(_score(known)[0])), 30.0)))


def _rare(known: KnownSparse, told: Told) -> float:
    """Return a bound below which residuals must not be cut: rare large ones carry what there is to learn.

    Of rewards in a range, the largest residual less a typical one: nothing for even odds, nearly all of the
    range for rare clicks.
    """
    if told.reward_range is None:
        return 0.0
    low, high = told.reward_range
    middle = known.intercept
    if told.loss == "logistic":
        middle = 1 / (1 + math.exp(-min(max(_score(known)[0], -30.0), 30.0)))
    middle = min(max(middle, low), high)
    return max(max(high - middle, middle - low) - known.residual_size / _ROOT_HALF_PI, 0.0)


class _OfNew(NamedTuple):
    """How many columns are new, and sums of their released second moments."""

    columns: int
    with_one: float
    with_others: float
    squares: float


def _of_new(fresh: _Vector, k: int) -> _OfNew:
    """Return the sums of the columns behind the first k; each pair of columns counts once."""
    new = list(enumerate(fresh[k + 1 :].tolist(), k + 1))
    return _OfNew(
        len(new),
        sum(row[0] for _, row in new),
        sum(sum(row[1:i]) for i, row in new),
        sum(row[i] for i, row in new),
    )


def _typical_measured(
    known: KnownSparse, released: Released, new: _OfNew, weight: float, x: float
) -> dict[str, Any]:
    """Return e and c with their precisions, from whole rows and from the columns that were new."""
    mean, sure_mean = known.typical_mean, known.typical_mean_weight
    product, sure_product = known.typical_product, known.typical_product_weight
    if released.rows is not None and released.rows_noise is not None:
        mean, sure_mean = released.rows[1] * x, (released.rows_noise[1] * x) ** -2
        product, sure_product = released.rows[2] * x**2, (released.rows_noise[2] * x**2) ** -2
    one, p = known.context_size, new.columns
    pairs = p * len(known.columns) + p * (p - 1) // 2
    mean, sure_mean = _averaged(mean, sure_mean, weight * one * new.with_one, weight * one * one * p)
    product, sure_product = _averaged(product, sure_product, weight * new.with_others, weight * pairs)
    return {
        "typical_mean": mean,
        "typical_mean_weight": sure_mean,
        "typical_product": product,
        "typical_product_weight": sure_product,
    }


def _averaged(mean: float, weight: float, more: float, sure: float) -> tuple[float, float]:
    """Return a mean with more values in it, and its precision.

    Of those values, `more` is their sum, each times its precision, and `sure` the sum of these.
    """
    total = weight + sure
    return (weight * mean + more) / total if total > 0 else 0.0, total


def _typical(known: KnownSparse, t: Tuning) -> tuple[float, float]:
    """Return e and c of columns that are not public: what was measured, as far as it is not noise."""
    x, product = known.context_size, (known.typical_product, known.typical_product_weight)
    found = _certain(known.typical_mean, known.typical_mean_weight, x * x, t)
    return found, _possible(_certain(*product, x**4, t), x)


def _typical_of_support(known: KnownSparse, t: Tuning) -> tuple[float, float]:
    """Return the same of public columns: arms are chosen by them, which moves their means and products."""
    x, above = known.context_size, np.triu_indices(len(known.columns), 1)
    # Precisions are of moments with a constant column of x, and not of 1.
    means, sure_means = known.moments[0, 1:], known.precision[0, 1:] * x * x
    products, sure_products = known.moments[1:, 1:][above], known.precision[1:, 1:][above]
    mean = _averaged(
        known.typical_mean, known.typical_mean_weight, float(sure_means @ means), float(sure_means.sum())
    )
    product = _averaged(
        known.typical_product,
        known.typical_product_weight,
        float(sure_products @ products),
        float(sure_products.sum()),
    )
    return _certain(*mean, x * x, t), _possible(_certain(*product, x**4, t), x)


def _certain(value: float, weight: float, unit: float, t: Tuning) -> float:
    """Return a measured value drawn to zero by what may be noise in it."""
    drawn = value * weight / (weight + 1 / (t.typical_prior * unit))
    if drawn != 0:
        drawn *= max(0.0, 1 - t.typical_out**2 / (weight * drawn * drawn))
    return drawn


def _possible(product: float, x: float) -> float:
    """Return c where many columns of size x can have it among each other."""
    return min(max(product, -0.02 * x * x), 0.95 * x * x)


def _of_typical(m: int, x: float, mean: float, product: float) -> _Vector:
    """Return the second moments of the intercept's column and m - 1 typical ones."""
    moments = np.full((m, m), product)
    moments[0, :] = moments[:, 0] = mean * x
    np.fill_diagonal(moments, x * x)
    return moments


def _in_units(moments: _Vector, x: float) -> _Vector:
    """Return moments with the intercept's column at the value x instead of 1."""
    unit = np.ones(len(moments))
    unit[0] = x
    return moments * np.outer(unit, unit)


def _drawn(
    moments: _Vector, precision: _Vector, x: float, typical: _Vector, t: Tuning, sampling: float
) -> _Vector:
    """Return moments drawn to those of typical columns by what is noise in them."""
    spread = t.moment_prior * x**4
    trust = spread / (spread + 1 / np.maximum(precision, _FAINT / x**4) + sampling * x**4)
    trust[0, 0] = 1.0
    return trust * moments + (1 - trust) * typical


def _positive(H: _Vector, smallest: float) -> _Vector:
    eigenvalues, vectors = _raised_eigenvalues(H, smallest)
    raised: _Vector = (vectors * eigenvalues) @ vectors.T
    return raised


def _raised_eigenvalues(H: _Vector, smallest: float) -> tuple[_Vector, _Vector]:
    """Return eigenvalues, none below `smallest`, and eigenvectors of a matrix's symmetric part."""
    eigenvalues, vectors = np.linalg.eigh((H + H.T) / 2)
    return np.maximum(eigenvalues, smallest), vectors


@lru_cache(maxsize=256)
def _share_in_ball(m: int, ball: float) -> float:
    """Return what cutting to a ball of squared radius ``ball * m`` leaves of m normal columns' moments."""
    inside = gammainc(m / 2 + 1, ball * m / 2)
    return float(inside + ball * (1 - gammainc(m / 2, ball * m / 2)))


def _at_cap(released: Released, episode: Episode) -> bool:
    """Return whether residuals are too large to have been measured."""
    return released.size > 0.75 * episode.size_cap


def _residual_size(
    known: KnownSparse, episode: Episode, released: Released, explained: float, unknown: float, t: Tuning
) -> float:
    """Return r for the next episode: as measured, less what the step explains, plus what is not known."""
    r, cap = known.residual_size, episode.size_cap
    size = max(released.size, 0.02 * cap)
    capped = _at_cap(released, episode)
    if capped:
        size *= 3
    else:
        foreseen = r / _ROOT_HALF_PI
        prior = ((1.0 if known.fits == 0 else t.size_doubt) * foreseen) ** 2
        size = (size * prior + foreseen * released.size_noise**2) / (prior + released.size_noise**2)
    square = (_ROOT_HALF_PI * size) ** 2
    left = math.sqrt(max(square - explained, 0.0) + unknown + 0.001 * square)
    return min(left, (3.0 if capped else t.largest_growth) * r)


def _context_size(
    known: KnownSparse, released: Released, new: _OfNew, weight: float, t: Tuning
) -> dict[str, Any]:
    """Return x for the next episode, from the columns that were new: those of A are chosen by the arms."""
    x, start = known.context_size, known.start_size
    doubt: dict[str, Any] = {"doubted": False}
    if released.rows is not None and released.rows_noise is not None:
        # One measure in a hundred or two is noise that looks like another size, and some hide one: whenever
        # it is not clear, it is asked for a second time.
        told, weight_now = known.told_size or known.start_size, float(released.rows_noise[0]) ** -2
        sure = known.octaves_weight + weight_now
        octaves = float(released.rows[0]) + math.log2(x / told)
        octaves = (known.octaves * known.octaves_weight + octaves * weight_now) / sure
        far = abs(octaves) > max(1.0, t.far_size / math.sqrt(sure))
        unclear = abs(octaves) > max(1.0, 1.5 / math.sqrt(sure))
        doubt = {"octaves": octaves, "octaves_weight": sure, "doubted": bool(unclear) and not known.doubted}
        if far or start != told:
            # Columns measured in a ball of another size say nothing.
            size = told * 2.0**octaves if far else told
            again = {"context_size": size, "start_size": size, "size_weight": 0.0}
            return {**again, **doubt}
    # Relative to x: in other units a size that is too small would have smaller noise, and the more say.
    each = weight * x**4 / 2
    sure = known.size_weight + new.columns * each
    moved = each * (new.squares / (x * x) - new.columns) / (1 / t.context_prior + sure)
    square = x * x * min(max(1 + moved, 0.25), 4.0)
    size = math.sqrt(min(max(square, start**2 / 16), 16 * start**2))
    return {"context_size": size, "start_size": start, "size_weight": sure, **doubt}
