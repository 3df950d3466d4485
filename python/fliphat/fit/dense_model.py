"""What a dense policy knows, and how it learns from what an episode released. Public: nothing here sees rows.

The model: a reward, moved to -1/2..1/2, is ``theta_k' (x, 1)`` and noise for the arm k that was played. An
episode releases sums b_k of ``u r`` over the arm's rows, so ``b_k = H_k theta_k`` and noise, where H_k sums
``u u'`` over the same rows. H_k is released for each arm where rows are enough. Before that it is foreseen:
the policy's choices are a public function of contexts, so contexts drawn with the released means and second
moments and played by that same public policy say what an arm's rows look like. A Gaussian posterior an arm
then follows in closed form, and arms are chosen by draws from it. With the logistic loss the mean reward is a
sigmoid of ``theta_k' (x, 1)``, and those same contexts say what the sums would be
(:mod:`fliphat.fit.dense_link`).

Statistics are kept in base units, ``w = (x * scale, 1)``; an episode's rows are moved and scaled by what is
known, ``u = T w``, because a ball is used best by columns of one size.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.dense_link import Link
from fliphat.fit.dense_sums import ReleasedSums, RowMap
from fliphat.fit.dense_tuning import DenseTuning
from fliphat.fit.known import SparseEstimate

__all__ = [
    "DRAWS",
    "KnownLinear",
    "begin",
    "best_places",
    "context_size",
    "first_rows",
    "learn",
    "row_map",
    "shares",
    "standing_out",
]

#: Draws of all coefficients from their posterior; each round is played by one of them.
DRAWS: Final = 32

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KnownLinear:
    """Everything released so far, as what follows from it. Public.

    Attributes
    ----------
    episodes : int
    rows : int
        Rounds of all episodes that were released.
    moments : ndarray, shape (p, p)
        Weighted sum of released second moments in base units, each over its largest entry, that of the
        constant; `weight` is the sum of the weights, one over the variance of an entry.
    weight : float
    centers, center_weights : ndarray, shape (d,)
        The same for released means of columns, each with weights of its own.
    variances, variance_weights : ndarray, shape (d,)
        The same for their variances, from how far values are from the center.
    precision : ndarray, shape (groups, p, p)
        What the released sums say about each arm's coefficients in base units, as an inverse covariance,
        without the prior.
    information : ndarray, shape (groups, p)
        That inverse covariance times what they say the coefficients are.
    coefficients : ndarray, shape (groups, p)
        Of ``(x, 1)``, for rewards from -1/2 to 1/2; log odds with the logistic loss.
    draws : ndarray, shape (DRAWS, groups, p)
        Coefficients drawn from the posterior: what arms are chosen by.
    constants : DenseTuning
        Of the policy, which keeps them with its settings.
    """

    episodes: int
    rows: int
    moments: _Floats
    weight: float
    centers: _Floats
    center_weights: _Floats
    variances: _Floats
    variance_weights: _Floats
    precision: _Floats
    information: _Floats
    coefficients: _Floats
    draws: _Floats
    constants: DenseTuning

    @property
    def dim(self) -> int:
        """Coordinates of a context."""
        return len(self.moments) - 1

    @property
    def groups(self) -> int:
        """Sets of coefficients."""
        return len(self.coefficients)

    @property
    def estimate(self) -> SparseEstimate:
        """All coefficients in a row, each arm's constant last."""
        values = self.coefficients.ravel()
        return SparseEstimate(np.arange(len(values)), values, len(values))

    def to_record(self) -> dict[str, Any]:
        """Return a record for JSON, which keeps every bit."""
        record: dict[str, Any] = {}
        for field in fields(self):
            if field.name == "constants":
                continue
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                text = base64.b64encode(np.ascontiguousarray(value, "<f8").tobytes()).decode()
                record[field.name] = [list(value.shape), text]
            else:
                record[field.name] = value
        return record

    @classmethod
    def from_record(cls, record: dict[str, Any], constants: DenseTuning) -> KnownLinear:
        """Return what :meth:`to_record` wrote."""
        filled: dict[str, Any] = {}
        for name, value in record.items():
            if isinstance(value, list):
                shape, text = value
                value = np.frombuffer(base64.b64decode(text), "<f8").reshape(shape).astype(np.float64)
            filled[name] = value
        return cls(**filled, constants=constants)


def begin(dim: int, groups: int, constants: DenseTuning) -> KnownLinear:
    """Return what is known before anything was released."""
    p = dim + 1
    return KnownLinear(
        episodes=0,
        rows=0,
        moments=np.zeros((p, p)),
        weight=0.0,
        centers=np.zeros(dim),
        center_weights=np.zeros(dim),
        variances=np.zeros(dim),
        variance_weights=np.zeros(dim),
        precision=np.zeros((groups, p, p)),
        information=np.zeros((groups, p)),
        coefficients=np.zeros((groups, p)),
        draws=np.zeros((DRAWS, groups, p)),
        constants=constants,
    )


def first_rows(arms: int, mu: float, constants: DenseTuning) -> int:
    """Return the length of the first episode."""
    return math.ceil(max(constants.first, constants.rounds_an_arm * arms / mu))


def row_map(known: KnownLinear, scale: float) -> RowMap:
    """Return how the next episode's rows become vectors: columns moved and scaled to one size."""
    center, _, size, _ = _columns(known)
    return RowMap(center / scale, scale / size, known.constants.ball * math.sqrt(known.dim + 1))


def shares(known: KnownLinear, rows: int, mapped: RowMap, mu: float) -> dict[str, float]:
    """Return the shares of the budget of an episode; second moments get one where they can be seen.

    With rows enough they are released for each arm, and what all rows have in common is their sum.
    """
    found: dict[str, float] = {}
    if known.groups > 1:
        alone = mapped.ball**2 / (mu * math.sqrt(known.constants.each_share) * rows / known.groups)
        if alone <= known.constants.each_noise:
            found = {"each": known.constants.each_share}
    if not found:
        noise = mapped.ball**2 / (mu * math.sqrt(known.constants.moment_share) * (known.rows + rows))
        if noise <= known.constants.moment_noise:
            found = {"moments": known.constants.moment_share}
    noise = 2 * mapped.ball / (mu * math.sqrt(known.constants.column_share) * max(known.rows, 1))
    if noise > known.constants.column_noise and "each" not in found:
        found["columns"] = known.constants.column_share
    # Rounded down: shares must not add up to more than 1.
    return {"gradient": math.nextafter(1 - sum(found.values()), 0), **found}


def learn(
    known: KnownLinear,
    released: ReleasedSums,
    mapped: RowMap,
    rows: int,
    scale: float,
    active: list[int],
    width: float,
    link: Link,
) -> KnownLinear:
    """Return what is known after an episode.

    Parameters
    ----------
    mapped : RowMap
        As the episode's rows were mapped.
    rows : int
        Its length.
    active : list of int
        Arms that it could play.
    width : float
        Standard deviations of the posterior that draws are apart.
    link : Link
        How rewards follow from scores.
    """
    groups, p = released.gradient.shape
    known = _with_groups(known, groups)
    to_units = _transform(mapped, scale)
    back = np.linalg.inv(to_units)
    moments, weight = known.moments, known.weight
    together, noise_together = released.moments, released.moment_noise
    if released.each is not None:
        together, noise_together = released.each.sum(axis=0), math.sqrt(groups) * released.each_noise
    if together is not None:
        share = max(together[-1, -1], 0.3 * rows)
        own = (share / noise_together) ** 2 / float(np.mean(np.diag(back)[:-1] ** 4))
        moments, weight = moments + own * (back @ (together / share) @ back.T), weight + own
    # Played by what was known when the episode opened, with the second moments that are known now.
    seen = replace(known, episodes=known.episodes + 1, rows=known.rows + rows, moments=moments, weight=weight)
    seen = _with_columns(seen, released, mapped, rows, scale)
    doubt = np.append(_columns(seen)[1] * np.diag(to_units)[:-1] ** 2, 0.0)
    whole, u, like = _arms_rows(known, seen, mapped, to_units, scale, active, groups)
    precision, information = known.precision.copy(), known.information.copy()
    mean, covariance = _posterior(seen, to_units, link)
    for k in range(groups):
        share, typical, weights = like[k]
        count = _combined(
            share * rows, 0.3 * share * rows + 1, released.counts[k], released.count_noise, rows
        )
        H = count * typical
        wrong = 0.0 if known.episodes == 0 else known.constants.apart
        if released.each is not None:
            H, wrong = _seen_moments(
                H, released.each[k], released.each_noise, count, known.constants.foreseen_apart
            )
        told = released.gradient[k]
        spread, size = known.constants.spread * H, mean[k] ** 2 + np.diag(covariance[k])
        if not link.linear:
            H, told, slope = _linearised(
                H, told, mean[k], (whole, u), weights, link, released.each is not None
            )
            size = slope**2 * size
        noise = (
            released.gradient_noise**2 * np.eye(p)
            + spread
            + (wrong * count) ** 2 * float(np.sum(np.diag(typical) * size)) * np.diag(np.diag(typical))
            # A mean that is not known is taken for coefficients where rewards have a mean of their own.
            + released.gradient[k, -1] ** 2 * np.diag(doubt)
        )
        gain = np.linalg.solve(noise, H)
        precision[k] += back @ (H @ gain) @ back.T
        information[k] += back @ (gain.T @ told)
    after = replace(seen, precision=precision, information=information)
    return _with_draws(after, scale, width, link)


def best_places(draws: npt.NDArray[Any], contexts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return which arm each draw of coefficients thinks best for each context, shape (n, DRAWS).

    Parameters
    ----------
    draws : ndarray, shape (DRAWS, K, dim + 1)
    contexts : ndarray, shape (n, dim)
    """
    weights = draws[:, :, :-1].reshape(-1, draws.shape[2] - 1)
    scores = contexts @ weights.T + draws[:, :, -1].ravel()
    best: npt.NDArray[np.int64] = scores.reshape(len(contexts), *draws.shape[:2]).argmax(axis=2)
    return best


def standing_out(known: KnownLinear) -> float:
    """Return squares of coefficients without the constants over those that noise alone would have."""
    # Arms of which nothing is known yet have no precision; what is added is far below any that has some.
    some = [k for k in range(known.groups) if known.precision[k].any()]
    if not some:
        return math.inf
    precision = known.precision[some]
    ridge = 1e-9 * np.trace(precision, axis1=1, axis2=2)[:, None, None] * np.eye(known.dim + 1)
    covariance = np.linalg.inv(precision + ridge)
    mean = (covariance @ known.information[some][:, :, None])[:, :-1]
    within = np.linalg.solve(covariance[:, :-1, :-1], mean)
    return float((mean * within).sum()) / (len(some) * known.dim)


def context_size(known: KnownLinear) -> tuple[float, float]:
    """Return the mean square of contexts, where 1 is that of the largest norm, and the noise in it."""
    weights = known.variance_weights + known.weight / 2
    if not weights.all():
        return 1.0, math.inf
    found = known.moments / max(known.weight, 1e-300)
    centers = np.where(known.center_weights > 0, known.centers / np.maximum(known.center_weights, 1e-300), 0)
    about = known.variances + known.variance_weights * centers**2
    squares = (about + known.weight / 2 * np.diag(found)[:-1]) / weights
    return float(squares.mean()), math.sqrt(float((1 / weights).mean()) / known.dim)


def _with_columns(
    known: KnownLinear, released: ReleasedSums, mapped: RowMap, rows: int, scale: float
) -> KnownLinear:
    """Return what is known with the means and sizes of columns that an episode released, if it did."""
    if released.columns is None:
        return known
    count = min(max(float(released.counts.sum()), 0.3 * rows), rows)
    above, below = released.columns / count
    noise = math.sqrt(2) * released.column_noise / count
    center, unit = mapped.center * scale, scale / mapped.inverse
    mean, size = above - below, above + below
    # Of a Gaussian column, whose mean absolute value is sqrt(2 / pi) standard deviations.
    variance = np.pi / 2 * (size**2 - noise**2) - (mean**2 - noise**2)
    weights = 1 / (unit * noise) ** 2
    variance_weights = 1 / (unit**2 * (3 * noise + 2 * noise**2)) ** 2
    return replace(
        known,
        centers=known.centers + weights * (center + unit * mean),
        center_weights=known.center_weights + weights,
        variances=known.variances + variance_weights * unit**2 * variance,
        variance_weights=known.variance_weights + variance_weights,
    )


def _columns(known: KnownLinear) -> tuple[_Floats, _Floats, _Floats, _Floats]:
    """Return means of columns in base units, their variances, sizes, and second moments about the means.

    Noise is taken out by what it adds to the spread of the numbers: what does not stand out of it is drawn to
    what the columns have in common.
    """
    d = known.dim
    weights = known.center_weights + known.weight
    if not weights.all():
        return np.zeros(d), np.full(d, known.constants.mean_prior), np.ones(d), np.eye(d)
    found = known.moments / max(known.weight, 1e-300)
    mean, doubt = _shrunk((known.centers + known.moments[:-1, -1]) / weights, 1 / weights)
    second = found[:-1, :-1]
    weights = known.variance_weights + known.weight / 2
    raw = (known.variances + known.weight / 2 * (np.diag(second) - mean**2)) / weights
    common = max(float(np.average(raw, weights=weights)), known.constants.smallest_variance)
    variance = np.maximum(_shrunk(raw, 1 / weights, common)[0], known.constants.smallest_variance * common)
    size = np.sqrt(variance)
    correlation = np.eye(d)
    if d > 1 and known.weight > 0:
        noise = 1 / math.sqrt(known.weight)
        apart = (second - np.outer(mean, mean)) / np.outer(size, size)
        off = ~np.eye(d, dtype=bool)
        correlation[off], _ = _shrunk(apart[off], np.full(d * d - d, (noise / common) ** 2), 0.0)
        values, vectors = np.linalg.eigh(correlation)
        correlation = (vectors * np.maximum(values, known.constants.floor)) @ vectors.T
    return mean, doubt, size, correlation * np.outer(size, size)


def _shrunk(found: _Floats, noise_squared: _Floats, towards: float | None = None) -> tuple[_Floats, _Floats]:
    """Return numbers without the part of their spread that noise explains, and what doubt is left."""
    if towards is None:
        towards = float(np.average(found, weights=1 / noise_squared))
    spread = max(float(np.mean((found - towards) ** 2 - noise_squared)), 0.0)
    kept = spread / (spread + noise_squared)
    return towards + (found - towards) * kept, kept * noise_squared


def _transform(mapped: RowMap, scale: float) -> _Floats:
    """Return T with ``u = T w`` for ``w = (x * scale, 1)``."""
    inverse = mapped.inverse / scale
    found = np.diag([*inverse, 1.0])
    found[:-1, -1] = -mapped.center * mapped.inverse
    return found


def _linearised(
    H: _Floats,
    told: _Floats,
    mean: _Floats,
    played: tuple[_Floats, _Floats],
    weights: _Floats,
    link: Link,
    seen: bool,
) -> tuple[_Floats, _Floats, float]:
    """Return the second moments and sums of a linear model that this arm's are like near its mean.

    Where second moments were seen, mean rewards are taken for a line in the scores, through their mean and
    with their mean slope: for Gaussian contexts that is right for sums, whatever the curve (Stein's lemma),
    and for others nothing hangs on the shape of those played in public but a level and a slope.

    Parameters
    ----------
    H, told : ndarray
        Second moments of the arm's rows, and what was released of its sums.
    played : pair of ndarray
        Contexts that were played in public, as they are and cut to the ball: rewards follow from the former,
        and sums are made of the latter.
    weights : ndarray
        How much of each is this arm's.
    seen : bool
        Whether H was released. If not, it is that of `played`, and the curve itself is followed.

    Returns
    -------
    second moments, sums, mean slope
    """
    whole, u = played
    scores = whole @ mean
    rewards, slopes = link.foreseen(scores)
    slope = float(weights @ slopes)
    # A row that is cut is shorter than the one that its reward follows from, by this in the mean.
    longer = float(weights @ (u * whole).sum(axis=1)) / float(weights @ (u * u).sum(axis=1))
    if seen:
        level = float(weights @ rewards) - slope * float(weights @ scores)
        constant = float(weights @ u[:, -1]) / float(weights @ u[:, -1] ** 2)
        return slope * longer * H, told - level * constant * H[:, -1], slope * longer
    count = H[-1, -1] / float(weights @ u[:, -1] ** 2)
    # A row that is cut is a multiple of the whole one, so this is symmetric.
    steep = count * (u * (weights * slopes)[:, None]).T @ whole
    steep = (steep + steep.T) / 2
    return steep, told - count * (u.T @ (weights * rewards)) + steep @ mean, slope * longer


def _arms_rows(
    known: KnownLinear,
    seen: KnownLinear,
    mapped: RowMap,
    to_units: _Floats,
    scale: float,
    active: list[int],
    groups: int,
) -> tuple[_Floats, _Floats, list[tuple[float, _Floats, _Floats]]]:
    """Return contexts before and after they are cut; each arm's share of rounds, mean ``u u'`` and weights.

    That is the public policy, played in public. Weights are those of the contexts, and add up to 1.
    """
    mean, _, _, spread = _columns(seen)
    rng = np.random.default_rng([known.episodes, 15])
    n = known.constants.simulated
    contexts = mean + rng.normal(size=(n, known.dim)) @ np.linalg.cholesky(spread).T
    whole = np.hstack([contexts, np.ones((n, 1))]) @ to_units.T
    u = whole * np.minimum(1, mapped.ball / np.linalg.norm(whole, axis=1))[:, None]
    everyone, alike = u.T @ u / n, np.full(n, 1 / n)
    if groups == 1:
        return whole, u, [(1.0, everyone, alike)]
    slots = np.array(active)
    if known.episodes == 0:
        return whole, u, [(1 / len(slots) if k in active else 0.0, everyone, alike) for k in range(groups)]
    chosen = slots[best_places(known.draws[:, slots], contexts / scale)]
    found = []
    for k in range(groups):
        weights = (chosen == k).mean(axis=1)
        total = float(weights.sum())
        few = 0.01 * n
        own = ((u * weights[:, None]).T @ u + few * everyone) / (total + few)
        found.append((total / n, own, (weights + few * alike) / (total + few)))
    return whole, u, found


def _seen_moments(
    foreseen: _Floats, found: _Floats, noise: float, count: float, apart: float
) -> tuple[_Floats, float]:
    """Return an arm's second moments from those foreseen and those released, and how wrong they may be."""
    doubt = apart * max(count, 1.0)
    weight = doubt**2 / (doubt**2 + noise**2)
    values, vectors = np.linalg.eigh(foreseen + weight * (found - foreseen))
    positive = (vectors * np.maximum(values, 1e-3 * max(count, 1.0))) @ vectors.T
    return positive, math.sqrt(1 - weight) * apart


def _combined(foreseen: float, doubt: float, found: float, noise: float, most: float) -> float:
    """Return a count from what was foreseen and what was released."""
    weight = doubt**2 / (doubt**2 + noise**2)
    return min(max(foreseen + weight * (found - foreseen), 0.0), most)


def _posterior(known: KnownLinear, to_units: _Floats, link: Link) -> tuple[_Floats, _Floats]:
    """Return each arm's mean and covariance, for coefficients of ``u``."""
    p = len(to_units)
    prior = np.full(p, p * (link.unit / known.constants.prior) ** 2)
    prior[-1] = (link.unit / known.constants.intercept_prior) ** 2
    precision = to_units @ known.precision @ to_units.T + np.diag(prior)
    covariance = np.linalg.inv(precision)
    covariance = (covariance + covariance.transpose(0, 2, 1)) / 2
    mean = (covariance @ (known.information @ to_units.T)[:, :, None])[:, :, 0]
    return mean, covariance


def _with_groups(known: KnownLinear, groups: int) -> KnownLinear:
    """Return what is known with nothing about arms that came later."""
    more = groups - known.groups
    if more == 0:
        return known
    p = known.dim + 1
    return replace(
        known,
        precision=np.concatenate([known.precision, np.zeros((more, p, p))]),
        information=np.concatenate([known.information, np.zeros((more, p))]),
        coefficients=np.concatenate([known.coefficients, np.zeros((more, p))]),
        draws=np.concatenate([known.draws, np.zeros((DRAWS, more, p))], axis=1),
    )


def _with_draws(known: KnownLinear, scale: float, width: float, link: Link) -> KnownLinear:
    """Return what is known with coefficients, and draws of them, for the next episode."""
    mapped = row_map(known, scale)
    to_units = _transform(mapped, scale)
    mean, covariance = _posterior(known, to_units, link)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    rng = np.random.default_rng([known.episodes, 16])
    noise = rng.normal(size=(DRAWS, *mean.shape))
    drawn = mean + width * np.einsum("kij,skj->ski", root, noise)
    # Where arms are alike, the draws decide between them: a tie would always go to the first.
    drawn[:, :, -1] += 1e-9 * rng.normal(size=drawn.shape[:2])
    to_contexts = to_units * np.array([scale] * known.dim + [1.0])
    return replace(known, coefficients=mean @ to_contexts, draws=drawn @ to_contexts)
