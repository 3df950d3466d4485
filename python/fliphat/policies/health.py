"""Whether a policy learns, told from public numbers alone: its scoreboard first, then what its fit knows.

A finding says what is seen, with its interval, and what to change. A policy that earns as much as the best
constant arm and as uniform play is healthy, whatever its coefficients look like.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.board import Interval
from fliphat.fit.dense import DenseSettings, KnownLinear
from fliphat.fit.known import Known, KnownEstimate, SparseEstimate
from fliphat.fit.pursuit.known import KnownSparse
from fliphat.fit.settings import Settings
from fliphat.policies.scoreboard import Scoreboard, scoreboard
from fliphat.policies.types import EpisodeFacts

__all__ = ["EVERY_TIME", "Health", "HealthWarning", "examine"]

#: Estimates that are looked at, the last ones.
_LOOKED_AT: Final = 6
#: Releases before anything is said: the first ones are mostly noise everywhere.
_LEAST: Final = 8
#: Cosine below which two estimates in a row point against each other.
_AGAINST: Final = -0.3
#: Pairs, among those looked at, that point against each other or have no column in common.
_PAIRS: Final = 3
#: Fits of pursuit after which something should have been found.
_FITS: Final = 12
#: Standard deviations of a coefficient that is not what a pick makes of noise.
_STANDS_OUT: Final = 4.0
#: Standard errors below zero from which on a lift is a loss, and smallest loss that is worth a word.
CLEARLY: Final = 1.645
_SMALL_LOSS: Final = 0.03
#: The same for what is looked at after every release.
EVERY_TIME: Final = 4.0
#: Shares of rewards outside their range, and of contexts cut to less than a quarter, that are too many.
_CLIPPED: Final = 0.05
_CUT: Final = 0.3
#: How far a scale may move from what was told.
_SCALE: Final = 5.0
#: Mean square of contexts, where 1 is that of `context_norm`, below which most of a ball is empty.
_SHORT: Final = 0.002


class HealthWarning(UserWarning):
    """What a policy released looks as if it does not learn."""


@dataclass(frozen=True)
class Health:
    """What public numbers say about a policy.

    Attributes
    ----------
    findings : tuple of str
        One sentence for each sign of trouble, with what to do; empty if there is none.
    unknown : str
        What was not measured yet, and from when on it could be known; empty if there is nothing to wait for.

    Examples
    --------
    >>> from fliphat import FLIPHAT
    >>> print(FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=1e-2).health)
    nothing was measured yet: the first release comes after 45 more rounds
    """

    findings: tuple[str, ...]
    unknown: str = field(default="", compare=False)

    @property
    def ok(self) -> bool:
        """Whether there is no finding."""
        return not self.findings

    def __str__(self) -> str:
        return "\n".join(self.findings) or self.unknown or "no sign of trouble"


def examine(
    settings: Any,
    history: Sequence[EpisodeFacts],
    known: Known | None,
    table: Any = None,
    clearly: float = CLEARLY,
    *,
    remaining: int = 0,
) -> Health:
    """Return what was released, and what the fit knows, say about a policy.

    Parameters
    ----------
    table : ArmTable, optional
        Of named arms.
    clearly : float
        Standard errors from which on a loss is one: more for whoever looks again and again.
    remaining : int
        Rounds until the next release.
    """
    board = scoreboard(settings, (), known, table)  # no word about single episodes is said here
    found = [*_earnings(board, clearly), _rewards_cut(board, settings), _contexts_cut(board)]
    if len(history) >= _LEAST:
        found += _signs(settings, history, known, board)
    return Health(
        tuple(finding for finding in found if finding is not None),
        _unknown(history, board, known is not None and hasattr(known, "earned"), remaining),
    )


def _unknown(history: Sequence[EpisodeFacts], board: Scoreboard, measures: bool, remaining: int) -> str:
    """Return what nobody can know yet, and from when on it could be known."""
    if not history:
        return f"nothing was measured yet: the first release comes after {remaining} more rounds"
    if not measures:
        if len(history) >= _LEAST:
            return ""
        return (
            f"too early to say: {len(history)} of {_LEAST} releases were made that estimates are compared in"
        )
    if board.recent is None:
        after = f"the next release, after {remaining} more rounds, may say more"
        if board.uniform is None:
            return f"nothing was measured yet of what the policy earns: {after}"
        return f"only uniform play was measured yet, which earns {_interval(board.uniform)}: {after}"
    # Without named arms the first episode is too short a baseline: signs of the estimates say more.
    if not board.arms or board.uniform is None:
        return ""
    # All arms' means say the same as uniform play, and from more rounds.
    arms, count = board.arms.values(), len(board.arms)
    average = Interval(
        sum(one.mean for one in arms) / count, math.hypot(*(one.error for one in arms)) / count
    )
    uniform = min(board.uniform, average, key=lambda one: one.error)
    lift = board.recent.less(uniform)
    if not lift.low <= 0 <= lift.high:
        return ""
    told = f"not known yet whether the policy earns more than uniform play: its lift is {_interval(lift)}"
    # More rounds of the policy's own leave the error of uniform play.
    smallest = uniform.high - uniform.mean
    if lift.mean <= smallest:
        return f"{told}; one above {smallest:.2g} could be seen with more rounds"
    needed = (lift.high - lift.mean) ** 2 - smallest**2
    times = max(needed / (lift.mean**2 - smallest**2), 1.0)
    rounds = times * sum(facts.rounds for facts in history)
    return f"{told}; if it stays that large it shows from about {float(f'{rounds:.1e}'):,.0f} rounds on"


def _interval(found: Interval) -> str:
    return f"{found.mean:.2g} (95 %: {found.low:.2g} to {found.high:.2g})"


def _signs(
    settings: Any, history: Sequence[EpisodeFacts], known: Known | None, board: Scoreboard
) -> list[str | None]:
    """Return signs that a fit does not learn; those that the scoreboard contradicts are none."""
    estimates = [facts.estimate for facts in history[-_LOOKED_AT:]]
    if isinstance(known, KnownLinear):
        return [_short(known, settings)]
    if isinstance(known, KnownSparse):
        # Hard thresholding fills its support by design; pursuit drops what does not stand out.
        found = [_rewards(known, settings), _contexts(known, settings), _full(known, estimates, settings)]
        if board.lift is None or board.lift.low <= 0:
            found += [_alternating(estimates, "give a larger context_scale"), _quiet(known)]
        return found
    if isinstance(known, KnownEstimate) and settings.episodes != "doubling":
        # Doubling episodes are short, and mostly noise, until the last few.
        advice = "use fit=Pursuit(), a larger context_scale or a smaller step_size"
        return [
            _alternating(estimates, advice),
            _unrelated(estimates),
            _at_the_bound(estimates, settings),
        ]
    return []


def _earnings(board: Scoreboard, clearly: float) -> list[str]:
    """Return what the policy earns less than."""
    found = []
    others = [("uniform play", board.lift, board.uniform)]
    if board.best_arm is not None:
        arm = f"always playing {board.best_arm!r}"
        others.append((arm, board.lift_over_arm, board.constant))
    for name, lift, other in others:
        if lift is None or other is None or board.recent is None:
            continue
        if lift.mean + clearly * lift.error < 0 and lift.mean < -_SMALL_LOSS * abs(other.mean):
            plays = "the guard plays that instead" if board.fallback is not None else "see policy.scoreboard"
            found.append(
                f"the policy earns {board.recent.mean:.3g} a round, which is {-lift.mean:.2g} (95 %: "
                f"{-lift.high:.2g} to {-lift.low:.2g}) less than {name}: contexts may say little about "
                f"rewards, or too few people were asked for this epsilon; {plays}"
            )
    if board.fallback is not None and not found:
        found.append(
            f"the guard plays {board.fallback!r} instead of the policy's choice, which earned less: see "
            f"policy.scoreboard"
        )
    return found


def _rewards_cut(board: Scoreboard, settings: Any) -> str | None:
    if board.clipped is None or board.clipped.mean - EVERY_TIME * board.clipped.error < _CLIPPED:
        return None
    share = min(board.clipped.mean, 1.0)
    given = None if getattr(settings, "learns_range", False) else settings.reward_range
    mean = board.recent or board.uniform
    about = "" if mean is None else f"; those that were kept have the mean {mean.mean:.3g}"
    if given is None:
        return (
            f"{share:.0%} of rewards are far from where they were expected{about}: give "
            f"reward_range=(low, high)"
        )
    low, high = given
    return (
        f"{share:.0%} of rewards are outside reward_range = ({low:g}, {high:g}) and were moved "
        f"to its ends{about}: give the range that rewards really have"
    )


def _contexts_cut(board: Scoreboard) -> str | None:
    if board.cut is None or board.cut.mean - EVERY_TIME * board.cut.error < _CUT:
        return None
    return (
        f"{min(board.cut.mean, 1.0):.0%} of contexts were cut to less than a quarter of their length: give a "
        f"larger context_norm or context_scale, or bring columns to one size"
    )


def _cosine(one: SparseEstimate, other: SparseEstimate) -> float | None:
    """Return the cosine of two estimates, None if one is zero."""
    sizes = float(np.linalg.norm(one.values)) * float(np.linalg.norm(other.values))
    _, i, j = np.intersect1d(one.indices, other.indices, assume_unique=True, return_indices=True)
    return float(one.values[i] @ other.values[j]) / sizes if sizes > 0 else None


def _alternating(estimates: Sequence[SparseEstimate], advice: str) -> str | None:
    pairs = [_cosine(*pair) for pair in pairwise(estimates)]
    if sum(cosine is not None and cosine < _AGAINST for cosine in pairs) < _PAIRS:
        return None
    return (
        f"estimates alternate: one points against the one before it. Contexts may be correlated or larger "
        f"than context_scale says: {advice}"
    )


def _unrelated(estimates: Sequence[SparseEstimate]) -> str | None:
    pairs = pairwise(estimates)
    apart = sum(len(np.intersect1d(one.indices, other.indices)) == 0 for one, other in pairs)
    if apart < _PAIRS:
        return None
    return (
        "picks do not stand out: estimates in a row have no column in common. Check reward_scale and "
        "context_scale, take the mean out of rewards (fit=Pursuit() does), or use more rounds or epsilon"
    )


def _at_the_bound(estimates: Sequence[SparseEstimate], settings: Settings) -> str | None:
    if not all(np.abs(one.values).sum() >= 0.98 * settings.l1_radius for one in estimates[-_PAIRS:]):
        return None
    return (
        f"estimates are as large as l1_radius = {settings.l1_radius:g} allows: rewards are larger, or "
        f"contexts smaller, than their scales say. Give a larger reward_scale or a smaller context_scale"
    )


def _deviations(known: KnownSparse) -> npt.NDArray[np.float64]:
    """Return how many of its standard deviations each coefficient is from 0."""
    variances = np.maximum(np.diag(known.covariance)[1:], np.finfo(np.float64).tiny)
    return np.abs(known.theta[1:]) / np.sqrt(variances)


def _quiet(known: KnownSparse) -> str | None:
    # A pick of noise may stand out by chance; what is there goes on to do so.
    if known.fits < _FITS or (_deviations(known) > _STANDS_OUT).any():
        return None
    return (
        f"picks do not stand out: after {known.fits} fits no column is {_STANDS_OUT:g} standard deviations "
        f"from 0. Check reward_scale and context_scale, try reward_scale='estimate', or plan with more "
        f"rounds or epsilon"
    )


def _rewards(known: KnownSparse, settings: Settings) -> str | None:
    if settings.pilot or known.residual_size < _SCALE * settings.reward_scale:
        return None
    return (
        f"what is left of rewards is {known.residual_size:.2g}, and reward_scale is "
        f"{settings.reward_scale:g}: use intercept=True, a larger reward_scale, or reward_scale='estimate'"
    )


def _contexts(known: KnownSparse, settings: Settings) -> str | None:
    ratio = known.context_size / settings.context_scale
    if 1 / _SCALE < ratio < _SCALE:
        return None
    return (
        f"columns are about {known.context_size:.2g} large, and context_scale is {settings.context_scale:g}: "
        f"give it as {known.context_size:.2g}, or column_scales if units differ"
    )


def _full(known: KnownSparse, estimates: Sequence[SparseEstimate], settings: Settings) -> str | None:
    if settings.sparsity >= settings.dim or any(len(one.indices) < settings.sparsity for one in estimates):
        return None
    # Columns that hardly matter fill what is left of the support without harm.
    if np.quantile(_deviations(known), 0.2) < _STANDS_OUT:
        return None
    return (
        f"the support is always full: more than sparsity = {settings.sparsity} columns may matter. Give a "
        f"larger sparsity"
    )


def _short(known: KnownLinear, settings: DenseSettings) -> str | None:
    moments = known.moments
    if not len(moments.rows) or known.fresh:
        return None
    # Second moments are about the map's center, and rows that short are not cut.
    center = known.center
    mean = known.arms.sums[:, known.dim + 1 : -1].sum(axis=0) / known.arms.total
    squares = np.diag(moments.sums) / moments.total * known.size**2 + center * (2 * mean - center)
    noise = 2 * float(moments.noise) / moments.total**2 * float((known.size**4).mean())
    doubt = (noise / known.dim) ** 0.5
    size = max(float(squares.mean()), 0.0)
    if size + 2 * doubt > _SHORT:
        return None
    length = settings.context_norm * size**0.5
    return (
        f"contexts are about {length:.2g} long, and context_norm is {settings.context_norm:g}: give it as a "
        f"length that few contexts pass, or noise hides them"
    )
