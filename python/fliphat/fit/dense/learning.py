"""How a dense policy learns from a release: one posterior from totals. Public: nothing here sees rows.

The model: a reward, moved to -1/2..1/2, is ``theta_k' v + c_k`` and noise for the arm k that was played, with
v the very row that was cut and that is scored in play. Of each arm the sums of ``v r``, r, ``v`` and 1 are
known, with noise, all with the same weights of rows. So ``g_k = sum v r - mean_k(v) sum r`` is ``H_k
theta_k`` and noise, where H_k is n_k times the covariance of the arm's rows. That one is foreseen as ``D_k C
D_k``: C is the covariance of rows within arms, from the second moments of everybody, and D_k follows from the
squares of the arm's own rows, as far as they stand out of their noise.

With ``g = H theta + N(0, a I + b H)`` and the prior ``N(0, t I)`` the posterior mean solves
``(H H + (b/t) H + (a/t) I) theta = H g``, and draws of it the same with noise added: one Cholesky an arm.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.board import Interval
from fliphat.fit.dense import columns, growing
from fliphat.fit.dense.blocks import product, solve, square
from fliphat.fit.dense.chain import Step
from fliphat.fit.dense.constants import DenseTuning
from fliphat.fit.dense.known import (
    DRAWS,
    ArmScores,
    KnownGrown,
    KnownLinear,
    Weighted,
    afresh,
    begin,
    with_groups,
)
from fliphat.fit.dense.parts import RADIUS, SQUARE_UNIT, STEPS, Released

__all__ = ["arm_values", "best_constant", "learn", "possible_values"]

_Floats = npt.NDArray[np.float64]

#: Standard errors, and standard deviations of rewards, by which less than was foreseen is a change; episodes
#: after one until another is looked for.
_CHANGED: Final = 5.0
_DROP: Final = 0.1
_AGAIN: Final = 5

#: Standard errors by which the best arm is compared with others, about.
_ERRORS: Final = 2.6


def learn(
    known: KnownLinear,
    released: dict[str, Released],
    steps: dict[str, Step],
    rows: int,
    groups: int,
    mu: float,
    width: float,
    *,
    resized: bool,
) -> KnownLinear:
    """Return what is known after an episode.

    Parameters
    ----------
    released, steps : dict
        What the episode released, by its parts, and how.
    rows, groups : int
        Its length, and arms there are.
    width : float
        Standard deviations of the posterior that draws are apart.
    resized : bool
        Whether columns clearly have another size than the map says.
    """
    known = with_groups(known, groups)
    before, d = known, known.dim
    unit = known.ball / RADIUS
    arms = released["arms"].values.reshape(groups, 2 * d + 2) * _arm_units(d, unit)
    noise = released["arms"].noise[: 2 * d + 2] * _arm_units(d, unit)
    known = _with_scores(known, arms, noise, steps["arms"])
    known = replace(known, episodes=known.episodes + 1, rows=known.rows + rows)
    if "columns" in released:
        known, mean, error = columns.learned(known, released["columns"], rows, mu)
        if before.fresh:
            # The first rounds were played uniformly: arms' means are those of everybody, known better.
            counts = np.maximum(arms[:, -1:], 0.0)
            arms[:, d + 1 : -1], noise[d + 1 : -1] = counts * mean, rows / groups * error
    known = replace(known, arms=_added_arms(before, arms, noise, rows, steps["arms"], known.arms))
    if "moments" in released:
        known = _with_moments(known, released, steps, rows, groups, unit)
    known = replace(known, chains={name: step.after for name, step in steps.items() if step.kept})
    if before.settled:
        count = max(float(arms[:, -1].sum()), math.sqrt(groups) * noise[-1], 1.0)
        mean = arms[:, d + 1 : -1].sum(axis=0) / count
        if resized:
            blank = begin(d, groups, known.constants, known.reward_range)
            known = replace(known, center=blank.center, size=blank.size, ball=blank.ball)
        if resized or columns.stale(known, mean, math.sqrt(groups) * float(noise[d + 1]) / count):
            known = _unsettled(known)
    if _changed(before, arms, noise, width):
        return replace(afresh(known), changed=known.episodes)
    return _with_draws(known, width)


def _arm_units(d: int, unit: float) -> _Floats:
    """Units of the sums of ``v r``, r, ``v`` and 1."""
    reward = 1 / (2 * STEPS)
    return np.concatenate([np.full(d, unit * reward), [reward], np.full(d, unit), [1.0]])


def _with_scores(known: KnownLinear, arms: _Floats, noise: _Floats, step: Step) -> KnownLinear:
    """Return what is known with the episode's own counts and rewards: a total less what was in it before."""
    d = known.dim
    now = np.stack([arms[:, -1], arms[:, d]])
    errors = np.array([noise[-1], noise[d]])
    discount = step.before.weight / step.weight if step.before.releases else 0.0
    own = now - discount * known.totals
    own_errors = np.hypot(errors, discount * known.total_noise)
    score = ArmScores(own[0], own[1], float(own_errors[0]), float(own_errors[1]))
    return replace(known, scores=(*known.scores, score), totals=now, total_noise=errors)


def _added_arms(
    before: KnownLinear, arms: _Floats, noise: _Floats, rows: int, step: Step, sums: Weighted
) -> Weighted:
    """Return the sums of arms with another release, in base units."""
    d = before.dim
    base, variance = arms.copy(), noise**2
    for first in (0, d + 1):
        part = slice(first, first + d)
        base[:, part] = arms[:, part] * before.size + arms[:, [first + d]] * before.center
        variance[part] = variance[part] * before.size**2
    # Between the weights that noise asks for and those that rows do: maps cut rows differently.
    typical = math.sqrt(float(variance[:d].mean()) * step.noise_squared / (step.weight**2 * step.variance))
    return sums.add(base, variance, rows, step.weight, step.before.releases == 0, typical)


def _changed(known: KnownLinear, arms: _Floats, noise: _Floats, width: float) -> bool:
    """Return whether a total says that its rows earned clearly less than was foreseen of them.

    A total is mostly of the last episodes. Where it was foreseen too well, rewards have changed. Arms are
    looked at together: of one, coefficients may say too much. They do so, too, where few episodes are known.
    """
    d = known.dim
    young = known.episodes < known.changed + _AGAIN and known.changed
    if not known.settled or known.fresh or "arms" not in known.chains or young:
        return False
    counts = np.maximum(arms[:, -1], max(2 * noise[-1], 1.0))
    level, own = np.clip(arms[:, d] / counts, -0.5, 0.5), arms[:, d + 1 : -1] / counts[:, None]
    foreseen, variance = _foreseen(known, width, own)
    spread = np.clip(0.25 - level**2, known.constants.least_spread, known.constants.spread)
    seen = noise[d] ** 2 + (level * noise[-1]) ** 2
    seen += float(np.mean(noise[d + 1 : -1] ** 2)) * (known.coefficients[:, :d] ** 2).sum(axis=1)
    share = counts / counts.sum()
    error = math.sqrt(float(share**2 @ (variance + seen / counts**2 + spread / counts)))
    return float(share @ (foreseen - level)) > max(_CHANGED * error, _DROP * math.sqrt(float(share @ spread)))


def _with_moments(
    known: KnownLinear,
    released: dict[str, Released],
    steps: dict[str, Step],
    rows: int,
    groups: int,
    unit: float,
) -> KnownLinear:
    """Return what is known with second moments and squares of each arm."""
    d = known.dim
    whole = np.zeros((d, d))
    upper = np.triu_indices(d)
    whole[upper] = released["moments"].values * unit**2
    whole = whole + np.triu(whole, 1).T
    # Off the diagonal; entries on it have sqrt(2) times as much.
    noise = float(released["moments"].noise.min()) * unit**2
    step = steps["moments"]
    fresh = step.before.releases == 0
    moments = known.moments.add(whole, np.array(noise**2), rows, step.weight, fresh, noise**2)
    square_unit = unit**2 * SQUARE_UNIT
    squares = released["squares"].values.reshape(groups, d) * square_unit
    noise = float(released["squares"].noise[0]) * square_unit
    step = steps["squares"]
    fresh = step.before.releases == 0
    kept = 0.0 if fresh else step.before.weight / step.weight
    counts = kept * known.square_counts + known.scores[-1].counts
    own = known.squares.add(
        np.column_stack([squares, counts]), np.array(noise**2), rows, step.weight, fresh, noise**2
    )
    return replace(known, moments=moments, squares=own, square_counts=counts)


def _unsettled(known: KnownLinear) -> KnownLinear:
    """Return what is known with a map to be learned again: totals begin anew, in its new units."""
    d = known.dim
    nothing = np.zeros(d)
    return replace(
        known,
        settled=0,
        chains={},
        means=nothing,
        mean_weights=nothing,
        spreads=nothing,
        spread_weights=nothing,
        moments=Weighted.none((d, d), ()),
        squares=Weighted.none((known.groups, d + 1), ()),
    )


def _in_map(known: KnownLinear) -> Weighted:
    """Return the sums of arms in units of the map."""
    d, arms = known.dim, known.arms
    sums, noise = arms.sums.copy(), arms.noise.copy()
    for first in (0, d + 1):
        part = slice(first, first + d)
        sums[:, part] = (sums[:, part] - sums[:, [first + d]] * known.center) / known.size
        noise[part] = noise[part] / known.size**2
    return replace(arms, sums=sums, noise=noise)


def _with_draws(known: KnownLinear, width: float) -> KnownLinear:
    """Return what is known with coefficients, and draws of them, for the next episode."""
    constants, d, groups = known.constants, known.dim, known.groups
    own = _in_map(known)
    total = own.total
    products, rewards = own.sums[:, :d], own.sums[:, d]
    product_noise = float(own.noise[:d].mean())
    count_noise = math.sqrt(own.noise[-1])
    counts = np.maximum(own.sums[:, -1], max(1e-3 * total / groups, 0.5 * count_noise))
    level = np.clip(rewards / counts, -0.5, 0.5)
    means, doubt = _arm_means(known, own, counts)
    covariance, error = _within_arms(known, means, counts)
    values, vectors = _directions(covariance, constants.floor)
    root = vectors * np.sqrt(values)
    covariance = product(root, root.T)
    sizes = _arm_sizes(known, means, doubt, np.diag(covariance), count_noise)
    # No reward from -1/2 to 1/2 varies more around its mean; what is not known of the mean is added.
    variance = own.noise[d] / counts**2 + (level * count_noise / counts) ** 2
    spread = own.spread * np.clip(0.25 - level**2 + variance, constants.least_spread, constants.spread)
    variance += spread / counts
    rng = np.random.default_rng([known.episodes, 16])
    coefficients, draws = np.zeros((groups, d + 1)), np.zeros((DRAWS, groups, d + 1))
    told = products - means * rewards[:, None]
    noise = product_noise + level**2 * doubt * counts**2
    prior = _likely_prior(
        constants,
        told @ vectors,
        (counts * (sizes**2).mean(axis=1))[:, None] * values,
        noise[:, None],
        spread[:, None],
        (counts * error)[:, None] ** 2,
    )
    explained = expected = 0.0
    for k in range(groups):
        alpha = noise[k] + (counts[k] * error) ** 2 * d * prior
        H = counts[k] * (covariance * sizes[k]) * sizes[k][:, None]
        mean, drawn = _posterior(
            H, told[k], alpha, spread[k], prior, math.sqrt(counts[k]) * sizes[k][:, None] * root, rng
        )
        coefficients[k, :d], draws[:, k, :d] = mean, mean + width * (drawn - mean)
        explained += float(told[k] @ told[k])
        expected += alpha * d + spread[k] * float(np.trace(H))
    level, left = _levels(level, variance, _uniform_play(known), constants.intercept_prior)
    coefficients[:, d] = level - (coefficients[:, :d] * means).sum(axis=1)
    # Where arms are alike, the draws decide between them: a tie would always go to the first.
    apart = constants.level_width * width * np.sqrt(left) + 1e-9
    drawn_levels = level + apart * rng.normal(size=(DRAWS, groups))
    draws[:, :, d] = drawn_levels - (draws[:, :, :d] * means).sum(axis=2)
    return replace(known, coefficients=coefficients, draws=draws, signal=explained / max(expected, 1e-300))


def _levels(
    found: _Floats, variance: _Floats, uniform: tuple[float, float], least: float
) -> tuple[_Floats, _Floats]:
    """Return arms' mean rewards, drawn to that of all as far as they do not stand out, and their variances.

    The mean of all is that of arms, not of rounds: an arm that is hardly known is not taken for as good as
    the one that is played most. Uniform play has earned it; `uniform` is that and its variance.
    """
    prior, (played, doubt) = least, uniform
    for _ in range(5):
        known_well = 1 / (variance + prior)
        common = float(known_well @ found + played / doubt) / float(known_well.sum() + 1 / doubt)
        prior = max(float(np.average((found - common) ** 2 - variance, weights=known_well)), least)
    kept = prior / (prior + variance)
    return common + (found - common) * kept, variance * kept


def _uniform_play(known: KnownLinear) -> tuple[float, float]:
    """Return the mean reward of the first episode, which was played uniformly, and its variance."""
    first = known.scores[known.began]
    arms = len(first.counts)
    rounds = max(float(first.counts.sum()), math.sqrt(arms) * first.count_noise, 1.0)
    mean = min(max(float(first.rewards.sum()) / rounds, -0.5), 0.5)
    noise = arms * (first.reward_noise**2 + (mean * first.count_noise) ** 2)
    return mean, noise / rounds**2 + 0.25 / rounds


def _first_values(known: KnownLinear) -> tuple[_Floats, _Floats]:
    """Return arms' mean rewards in the first episode, which was played uniformly, and their variances."""
    first, constants = known.scores[known.began], known.constants
    counts = np.maximum(first.counts, max(first.count_noise, 1.0))
    level = np.clip(first.rewards / counts, -0.5, 0.5)
    variance = np.clip(0.25 - level**2, constants.least_spread, constants.spread) / counts
    variance += (first.reward_noise**2 + (level * first.count_noise) ** 2) / counts**2
    later = (0, known.groups - len(counts))  # arms that came since
    return np.pad(level, later), np.pad(variance, later, constant_values=np.inf)


def _foreseen(known: KnownLinear, width: float, at: _Floats | None = None) -> tuple[_Floats, _Floats]:
    """Return arms' mean rewards, -1/2 to 1/2, and their variances, for rows of these means: everybody's.

    An arm that is shown to few is known for those: how far coefficients are off, by their draws that are
    `width` standard deviations apart, is a part of the variance.
    """
    own = _in_map(known)
    count_noise = math.sqrt(own.noise[-1])
    total = max(own.total, 1e-9)
    counts = np.maximum(own.sums[:, -1], max(1e-3 * total / known.groups, 0.5 * count_noise))
    sums = own.sums[:, known.dim + 1 : -1]
    at = np.tile(sums.sum(axis=0) / counts.sum(), (known.groups, 1)) if at is None else at
    found = (known.coefficients[:, :-1] * at).sum(axis=1) + known.coefficients[:, -1]
    level = np.clip(own.sums[:, known.dim] / counts, -0.5, 0.5)
    variance = np.minimum(known.constants.spread, np.maximum(0.25 - level**2, 1e-4)) * own.spread / counts
    moved = np.einsum("nkd,kd->nk", known.draws[:, :, :-1], at - sums / counts[:, None])
    variance = variance + (moved.std(axis=0) / max(width, 1e-3)) ** 2
    return found, variance + own.noise[known.dim] / counts**2 + (level * count_noise / counts) ** 2


def arm_values(known: KnownLinear, width: float) -> list[Interval]:
    """Return what each arm would earn if everybody was shown it, as far as rewards are linear.

    Later releases have noise, but no rounds, of an arm that is no longer shown: the first, uniform episode
    alone may know it better, as long as rewards have not changed. No value is outside of `possible_values`.
    """
    low, high = known.reward_range
    if isinstance(known, KnownGrown):
        found, variance = growing.arm_values(known)
    else:
        found, variance = _foreseen(known, width)
        at_first, doubt = _first_values(known)
        found, variance = np.where(doubt < variance, at_first, found), np.minimum(doubt, variance)
    values = np.clip((low + high) / 2 + (high - low) * found, *possible_values(known))
    return [
        Interval(float(value), (high - low) * math.sqrt(one))
        for value, one in zip(values, variance, strict=True)
    ]


def possible_values(known: KnownLinear) -> tuple[_Floats, _Floats]:
    """Return what each arm would earn at least and at most if everybody was shown it, whatever rewards are.

    Whoever was shown an arm would earn the same again, and all others something in the range. Both bounds are
    two standard errors wide of what was released.
    """
    low, high = known.reward_range
    earned, missed, variance, rounds = np.zeros(known.groups), np.zeros(known.groups), 0.0, 1.0
    for one in known.scores[known.began :]:
        there = slice(len(one.counts))  # arms that came later have no numbers yet
        earned[there] += one.counts / 2 + one.rewards
        missed[there] += one.counts / 2 - one.rewards
        variance += one.reward_noise**2 + one.count_noise**2 / 4
        rounds += max(float(one.counts.sum()), 0.0)
    wide = 2 * math.sqrt(variance + rounds / 4)
    least, most = (
        low + (high - low) * (earned - wide) / rounds,
        high - (high - low) * (missed - wide) / rounds,
    )
    return np.clip(least, low, high), np.clip(most, low, high)


def best_constant(values: list[Interval], active: list[int]) -> tuple[int, Interval]:
    """Return the best arm for everybody, and what it earns: the best of several looks better than it is."""
    chances = 2 * math.log(max(len(active), 1))
    best = max(active, key=lambda slot: values[slot].mean - math.sqrt(chances) * values[slot].error)
    # One of K numbers is sqrt(z^2 + 2 log K) errors off about as often as a single one is z errors off.
    luck = math.sqrt(_ERRORS**2 + chances) - _ERRORS
    return best, Interval(values[best].mean - luck * values[best].error, values[best].error)


def _arm_means(known: KnownLinear, own: Weighted, counts: _Floats) -> tuple[_Floats, _Floats]:
    """Return means of arms' rows, drawn to that of all, and the variance of the noise left in an entry.

    An arm's constant is its mean reward less what coefficients make of its mean row. With few rows noise in
    that row is most of what is lost, so the mean of all is also taken from what columns released.
    """
    d = known.dim
    found, noise = own.sums[:, d + 1 : -1] / counts[:, None], float(own.noise[d + 1 : -1].mean())
    doubt = noise / counts**2
    shares = counts / counts.sum()
    common, common_doubt = shares @ found, len(counts) * noise / float(counts.sum()) ** 2
    if known.mean_weights.all():
        told = (known.means / known.mean_weights - known.center) / known.size
        told_doubt = float((1 / (known.mean_weights * known.size**2)).mean())
        common = (common * told_doubt + told * common_doubt) / (told_doubt + common_doubt)
        common_doubt *= told_doubt / (told_doubt + common_doubt)
    apart = found - common
    spread = max(float(shares @ (apart**2 - doubt[:, None]).mean(axis=1)), 1e-6)
    kept = spread / (spread + doubt)
    return common + apart * kept[:, None], kept * doubt + (1 - kept) ** 2 * common_doubt


def _within_arms(known: KnownLinear, means: _Floats, counts: _Floats) -> tuple[_Floats, float]:
    """Return the covariance of rows within arms, and the error of an entry."""
    constants, d = known.constants, known.dim
    if not len(known.moments.rows):
        return np.diag(known.variances), constants.apart
    total = known.moments.total
    found, noise = known.moments.sums / total, math.sqrt(float(known.moments.noise)) / total
    shares = counts / counts.sum()
    common = shares @ means
    variances, _ = columns.shrunk(np.diag(found) - common**2, np.full(d, 2 * noise**2))
    within = found - (means * shares[:, None]).T @ means
    off = float((within**2).sum() - (np.diag(within) ** 2).sum()) / max(d * (d - 1), 1)
    # What of the numbers is noise, by how much they vary, is taken off all of them.
    within *= max(off - noise**2, 0.0) / max(off, 1e-300)
    np.fill_diagonal(within, np.maximum(variances, 0.02))
    return within, noise


def _directions(covariance: _Floats, floor: float) -> tuple[_Floats, _Floats]:
    """Return eigenvalues of a covariance, at least `floor`, and eigenvectors."""
    if not np.any(covariance - np.diag(np.diag(covariance))):
        return np.maximum(np.diag(covariance), floor), np.eye(len(covariance))
    values, vectors = np.linalg.eigh(covariance)
    return np.maximum(values, floor), vectors


def _likely_prior(
    constants: DenseTuning, told: _Floats, H: _Floats, noise: _Floats, spread: _Floats, errors: _Floats
) -> float:
    """Return a variance of coefficients, by how likely each makes what was told of all arms together.

    Parameters
    ----------
    told, H : ndarray, shape (arms, d)
        In directions in which columns do not go together, and how much of a coefficient is told there.
    noise, spread, errors : ndarray, shape (arms, 1)
        Variances of the noise, of rewards, and of an entry of H.
    """
    d = told.shape[1]
    steps = np.linspace(-2.8, 0.0, 9)
    priors = (constants.prior * np.exp(steps)) ** 2 / d
    likely = -0.5 * (steps / constants.prior_spread) ** 2
    for place, prior in enumerate(priors):
        variance = H**2 * prior + spread * H + noise + errors * d * prior
        likely[place] -= 0.5 * float((told**2 / variance + np.log(variance)).sum())
    likely = np.exp(np.maximum(likely - likely.max(), -700.0))
    return min(constants.prior_more * float(likely @ priors / likely.sum()), float(priors[-1]))


def _arm_sizes(
    known: KnownLinear, means: _Floats, doubt: _Floats, variances: _Floats, count_noise: float
) -> _Floats:
    """Return sizes of columns in each arm's rows, over those in everybody's."""
    if not len(known.squares.rows):
        return np.ones_like(means)
    squares, prior = known.squares, known.constants.square_prior**2
    counts = np.maximum(squares.sums[:, -1:], 0.5 * count_noise * squares.total / known.arms.total)
    own = squares.sums[:, :-1] / counts - means**2
    noise = math.sqrt(float(squares.noise)) / counts / variances
    kept = prior / (prior + noise**2 + doubt[:, None])
    return np.sqrt(np.clip(1 + kept * (own / variances - 1), 0.05, 4.0))


def _posterior(
    H: _Floats,
    told: _Floats,
    alpha: float,
    beta: float,
    prior: float,
    root: _Floats,
    rng: np.random.Generator,
) -> tuple[_Floats, _Floats]:
    """Return the posterior's mean and draws of it, shape (DRAWS, d); ``root root' = H``."""
    z = rng.normal(size=(3, len(H), DRAWS))
    noise = math.sqrt(alpha) * z[0] + math.sqrt(beta) * product(root, z[1])
    before = z[2] / math.sqrt(prior)
    A = square(H) + (beta / prior) * H
    A[np.diag_indices_from(A)] += alpha / prior
    drawn = product(H, told[:, None] + noise + beta * before) + alpha * before
    solved = solve(A, np.column_stack([H @ told, drawn]))
    return solved[:, 0], solved[:, 1:].T
