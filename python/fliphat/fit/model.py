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
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc

from fliphat.fit.known import SparseEstimate
from fliphat.fit.tuning import Tuning, tuning

__all__ = ["Episode", "KnownSparse", "Released", "Told", "begin", "centred", "learn", "open_episode"]

_Vector = npt.NDArray[np.float64]
_Columns = npt.NDArray[np.int64]

#: Mean of the absolute value of a standard normal, inverted.
_ROOT_HALF_PI: Final = 1.2533


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
    start_size, size_weight, size_sum : float
        x as told or measured from whole rows; precision and precision-weighted sum of x^2 of picked columns.
    row_mean, row_mean_weight, row_product, row_product_weight : float
        e and c as measured from whole rows, with their precisions.
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
    size_sum: float = 0.0
    row_mean: float = 0.0
    row_mean_weight: float = 0.0
    row_product: float = 0.0
    row_product_weight: float = 0.0
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
    mean, product : float
        e and c.
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
    mean: float
    product: float


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
    on_support = _drawn(_in_units(known.moments, x), known.precision, x, mean, product, t, sampling=0.0)
    on_support = _positive(on_support, t.smallest_eigenvalue * x * x)
    across = np.concatenate([[mean * x], np.full(k, product)])
    shift = np.linalg.solve(on_support, across)
    own = math.sqrt(max(x * x - float(across @ shift), 0.1 * x * x))
    m = 1 + k + picks
    foreseen = _of_typical(m, x, mean, product)
    foreseen[: k + 1, : k + 1] = on_support
    foreseen = _positive(foreseen, t.smallest_eigenvalue * x * x)
    eigenvalues, vectors = np.linalg.eigh(foreseen)
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
        mean=mean,
        product=product,
    )


def learn(known: KnownSparse, told: Told, episode: Episode, released: Released) -> KnownSparse:
    """Return what is known after an episode: a Kalman step, pruning, and the scales of the next."""
    t, x, r, k, n = told.tuning, episode.one, known.residual_size, len(known.columns), episode.rows
    new, slope, within = released.columns, _slope(known, told), _within_odds(known, told)
    columns = np.concatenate([known.columns, new])
    m, p = 1 + len(columns), len(new)
    # Second moments: what was known and what is new, by their precisions. Rows cut to the ball are shorter.
    cut = _share_in_ball(m, t.ball)
    fresh, weight = released.moments / cut, (cut / released.moment_noise) ** 2
    moments, precision = np.zeros((m, m)), np.zeros((m, m))
    moments[: k + 1, : k + 1], precision[: k + 1, : k + 1] = _in_units(known.moments, x), known.precision
    moments = (moments * precision + fresh * weight) / (precision + weight)
    precision = precision + weight
    moments[0, 0] = x * x
    H = _drawn(moments, precision, x, episode.mean, episode.product, t, sampling=2 / n)
    H = _positive(H, t.smallest_eigenvalue * x * x)
    # A Kalman step; in these units the intercept's column has the value x.
    unit = np.ones(m)
    unit[0] = x
    P = np.diag(np.full(m, (t.doubt * r / x / slope * within) ** 2))
    P[: k + 1, : k + 1] = known.covariance
    P = P / np.outer(unit, unit)
    now = np.concatenate([known.theta, np.zeros(p)]) / unit
    start = now.copy()
    start[k + 1 :] = released.signs * t.guess * r / x / slope * within
    F = t.gain * slope * episode.whiten @ H
    noise = released.gradient_noise**2 + t.sampling * episode.value_clip**2 / n
    gain = np.linalg.solve(F @ P @ F.T + noise * np.eye(m), F @ P).T
    theta = start + gain @ (released.gradient - F @ (start - now))
    P = P - gain @ F @ P
    drift = np.full(m, t.drift * (r / x / slope * within) ** 2)
    drift[0] *= told.intercept
    P = (P + P.T) / 2 + np.diag(drift)
    # Columns that do not stand out of their own uncertainty go, and all beyond s.
    deviation = np.sqrt(np.maximum(np.diag(P), 0))
    size = np.abs(theta)
    keep = size >= t.prune * deviation
    keep[0] = True
    if m > 1:
        keep[1 + np.argmax(size[1:])] = True
    keep[1:] &= np.argsort(np.argsort(-(size * keep)[1:], kind="stable"), kind="stable") < told.sparsity
    found = int((keep & (size >= t.stand_out * deviation))[m - p :].sum()) if p else 0
    picks, rows, quiet = known.picks, known.rows, 0 if 2 * found >= p > 0 else known.quiet + 1
    if p and found == p:
        picks = max(picks, p) * t.more_picks
    elif 2 * found <= p:
        picks = max(_fewest_picks(told), picks / t.fewer_picks)
    picks = min(picks, 2.0 * told.sparsity)
    rows *= t.growth if quiet == 0 else t.slow_growth if quiet < t.patience else t.fast_growth
    rows = max(rows, known.shortest)
    # Scales.
    moved = np.where(keep, theta, 0.0) - now
    explained, unknown = (float(slope**2 * term) for term in (moved @ H @ moved, np.sum(P * H)))
    residual = _residual_size(known, episode, released, explained, unknown, t)
    context = _context_size(known, released, fresh, weight, k, t)
    rows_known: dict[str, Any] = {}
    if released.rows is not None and released.rows_noise is not None:
        after = context["context_size"]
        rows_known = {
            "row_mean": released.rows[1] * after,
            "row_mean_weight": (released.rows_noise[1] * after) ** -2,
            "row_product": released.rows[2] * after**2,
            "row_product_weight": (released.rows_noise[2] * after**2) ** -2,
        }
    kept = np.flatnonzero(keep)
    square = np.ix_(kept, kept)
    learned = replace(
        known,
        episodes=known.episodes + 1,
        fits=known.fits + 1,
        rows=rows,
        picks=picks,
        columns=columns[keep[1:]],
        units=np.concatenate([known.units, released.units])[keep[1:]],
        theta=(theta * unit)[kept],
        covariance=(P * np.outer(unit, unit))[square],
        moments=(moments / np.outer(unit, unit))[square],
        precision=precision[square],
        residual_size=residual,
        quiet=quiet,
        found=(*known.found, found),
        **context,
        **rows_known,
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


def _typical(known: KnownSparse, t: Tuning) -> tuple[float, float]:
    """Return e and c: averages of what was released, drawn to zero by what may be noise in them."""
    x, k = known.context_size, len(known.columns)
    above = np.triu_indices(k, 1)
    sides = (
        (
            known.row_mean,
            known.row_mean_weight,
            # Precisions are of moments with a constant column of x, and not of 1.
            known.precision[0, 1:] * x * x,
            known.moments[0, 1:],
            x * x,
        ),
        (
            known.row_product,
            known.row_product_weight,
            known.precision[1:, 1:][above],
            known.moments[1:, 1:][above],
            x**4,
        ),
    )
    found = []
    for measured, measured_weight, weights, values, unit in sides:
        weight = measured_weight + float(weights.sum())
        total = measured_weight * measured + float((weights * values).sum())
        value = total / (weight + 1 / (t.typical_prior * unit)) if weight > 0 else 0.0
        if value != 0:
            value *= max(0.0, 1 - t.typical_out**2 / (weight * value * value))
        found.append(value)
    return found[0], min(max(found[1], -0.02 * x * x), 0.95 * x * x)


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
    moments: _Vector, precision: _Vector, x: float, mean: float, product: float, t: Tuning, sampling: float
) -> _Vector:
    """Return moments drawn to those of typical columns by what is noise in them."""
    spread = t.moment_prior * x**4
    trust = spread / (spread + 1 / np.maximum(precision, 1e-12 / x**4) + sampling * x**4)
    trust[0, 0] = 1.0
    return trust * moments + (1 - trust) * _of_typical(len(moments), x, mean, product)


def _positive(H: _Vector, smallest: float) -> _Vector:
    eigenvalues, vectors = np.linalg.eigh((H + H.T) / 2)
    raised: _Vector = (vectors * np.maximum(eigenvalues, smallest)) @ vectors.T
    return raised


def _share_in_ball(m: int, ball: float) -> float:
    """Return what cutting to a ball of squared radius ``ball * m`` leaves of m normal columns' moments."""
    inside = gammainc(m / 2 + 1, ball * m / 2)
    return float(inside + ball * (1 - gammainc(m / 2, ball * m / 2)))


def _residual_size(
    known: KnownSparse, episode: Episode, released: Released, explained: float, unknown: float, t: Tuning
) -> float:
    """Return r for the next episode: as measured, less what the step explains, plus what is not known."""
    r, cap = known.residual_size, episode.size_cap
    size = max(released.size, 0.02 * cap)
    capped = size > 0.75 * cap
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
    known: KnownSparse, released: Released, fresh: _Vector, weight: float, k: int, t: Tuning
) -> dict[str, Any]:
    """Return x for the next episode, from the columns that were new: those of A are chosen by the arms."""
    x, start = known.context_size, known.start_size
    total, count = known.size_sum, known.size_weight
    doubt: dict[str, Any] = {"doubted": False}
    if released.rows is not None and released.rows_noise is not None:
        # One measure in a hundred or two is noise that looks like another size, and some hide one: whenever
        # it is not clear, it is asked for a second time.
        told, weight_now = known.told_size or known.start_size, float(released.rows_noise[0]) ** -2
        sure = known.octaves_weight + weight_now
        octaves = float(released.rows[0]) + math.log2(x / told)
        octaves = (known.octaves * known.octaves_weight + octaves * weight_now) / sure
        far = abs(octaves) > max(1.0, 2.7 / math.sqrt(sure))
        unclear = abs(octaves) > max(1.0, 1.5 / math.sqrt(sure))
        doubt = {"octaves": octaves, "octaves_weight": sure, "doubted": bool(unclear) and not known.doubted}
        if far or start != told:
            # Columns measured in a ball of another size say nothing.
            size = told * 2.0**octaves if far else told
            again = {"context_size": size, "start_size": size, "size_sum": 0.0, "size_weight": 0.0}
            return {**again, **doubt}
    squares = np.diag(fresh)[k + 1 :]
    total += float(squares.sum()) * weight / 2
    count += len(squares) * weight / 2
    prior = 1 / (t.context_prior * start**4)
    square = (prior * start**2 + total) / (prior + count)
    size = math.sqrt(min(max(square, 0.25 * x * x), 4 * x * x))
    return {"context_size": size, "start_size": start, "size_sum": total, "size_weight": count, **doubt}
