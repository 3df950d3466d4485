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

from fliphat.fit.board import CUT_CONTEXTS, Earned, Interval
from fliphat.fit.dense import DenseSettings, KnownLinear
from fliphat.fit.known import Known, KnownEstimate, SparseEstimate
from fliphat.fit.pursuit.known import KnownSparse
from fliphat.policies.scoreboard import Scoreboard, scoreboard
from fliphat.policies.types import EpisodeFacts

__all__ = ["Health", "HealthWarning", "examine", "warned_of"]

#: Estimates that are looked at, the last ones.
_LOOKED_AT: Final = 6
#: Releases before anything is said of estimates: the first ones are mostly noise everywhere.
_LEAST: Final = 8
#: Cosine below which two estimates in a row point against each other.
_AGAINST: Final = -0.3
#: Pairs, among those looked at, that point against each other or have no column in common.
_PAIRS: Final = 3
#: Fits of pursuit after which something should have been found.
_FITS: Final = 12
#: Standard deviations of a coefficient that is not what a pick makes of noise.
_STANDS_OUT: Final = 4.0
#: Standard errors below zero from which on a lift is a loss, and smallest loss that is worth a word. Two
#: lifts are looked at: of policies that lose nothing, one in a hundred is warned of.
_CLEARLY: Final = 2.6
_SMALL_LOSS: Final = 0.05
#: Standard errors of a loss that is looked for after every release.
_EVERY_TIME: Final = 4.0
#: What is known of an arm for those to whom another was shown.
_LINEAR: Final = ", as far as rewards are linear"
#: Rounds after a change, over those before, until what is known of rewards is known well again.
_ANEW: Final = 0.7
#: Share of rewards outside their range that is too large.
_CLIPPED: Final = 0.05
#: Share of rounds with a reward below which too few can be learned from.
_REWARDED: Final = 0.5
#: Standard deviation of rewards, over their range, below which they are all alike.
_EQUAL: Final = 0.03
#: Share of rounds from which on a policy is locked on one arm.
_LOCKED: Final = 0.95
#: Arms from which on their means are not taken for known.
_MANY: Final = 100
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
    *,
    remaining: int = 0,
) -> Health:
    """Return what was released, and what the fit knows, say about a policy.

    Parameters
    ----------
    table : ArmTable, optional
        Of named arms.
    remaining : int
        Rounds until the next release; 0 where that number is not to be told.
    """
    board = scoreboard(settings, (), known, table)  # no word about single episodes is said here
    lock = _locked(known, board, table)
    unknown = _unknown(settings, history, board, known, remaining) or _arms_unknown(board, lock[1])
    return Health(_findings(settings, history, known, board, lock, _CLEARLY), unknown)


def warned_of(
    settings: Any, history: Sequence[EpisodeFacts], known: Known | None, table: Any = None
) -> tuple[str, ...]:
    """Return the findings that are clear enough for somebody who looks after every release."""
    board = scoreboard(settings, (), known, table)
    return _findings(settings, history, known, board, _locked(known, board, table), _EVERY_TIME)


def _findings(
    settings: Any,
    history: Sequence[EpisodeFacts],
    known: Known | None,
    board: Scoreboard,
    lock: tuple[Any, str],
    clearly: float,
) -> tuple[str, ...]:
    """Return what is wrong; `clearly` is how many standard errors make a loss one."""
    locked, advice = lock
    # One that is locked on the best constant arm it knows of has no better one to be told.
    found = [
        *_earnings(board, clearly, advice if locked != board.best_arm else ""),
        _changed(history, known),
        _contexts_cut(board, settings),
        *_signs(settings, history, known, board),
    ]
    return tuple([finding for finding in found if finding])


# What the scoreboard says


def _earnings(board: Scoreboard, clearly: float, locked: str) -> list[str]:
    """Return what the policy earns less than."""
    found = []
    for name, lift, other in (
        ("uniform play", board.lift, board.uniform),
        (f"always playing {board.best_arm!r} would earn{_LINEAR}", board.lift_over_arm, board.constant),
    ):
        if lift is None or other is None or board.recent is None:
            continue
        if lift.mean + clearly * lift.error < 0 and lift.mean < -_SMALL_LOSS * abs(other.mean):
            plays = "see policy.scoreboard" if board.fallback is None else "the guard plays that instead"
            found.append(
                f"the policy earns {board.recent} a round, which is {-lift.mean:.2g} (95 %: "
                f"{-lift.high:.2g} to {-lift.low:.2g}) less than {name}: contexts may say little about "
                f"rewards, or too few people were asked for this epsilon; {locked or plays}"
            )
    if board.fallback is not None and not found:
        found.append(
            f"the guard plays {board.fallback!r} instead of the policy's choice, which earned less: see "
            f"policy.scoreboard"
        )
    return found


def _unknown(
    settings: Any, history: Sequence[EpisodeFacts], board: Scoreboard, known: Known | None, remaining: int
) -> str:
    """Return what nobody can know yet of the policy, and from when on it could be known."""
    if not history:
        return f"nothing was measured yet: the first release comes after {remaining} more rounds"
    if getattr(known, "earned", None) is None:
        if len(history) < _LEAST:
            return f"too early to say: {len(history)} of {_LEAST} releases were made that estimates need"
        only = "" if settings.episodes == "doubling" else ": its estimates alone were looked at"
        return f"what the policy earns is not measured with this fit{only}"
    after = f"the next release{f', after {remaining} more rounds,' if remaining else ''} may say more"
    if board.recent is None and (board.fallback is not None or getattr(known, "changed", False)):
        return f"what the policy's own choices earn is being measured anew: {after}"
    if board.recent is None and board.uniform is None:
        return f"nothing was measured yet of what the policy earns: {after}"
    if board.recent is None or board.uniform is None:
        name = "uniform play" if board.recent is None else "the policy"
        return (
            f"only {name} was measured yet, which earns {_interval(board.recent or board.uniform)}: {after}"
        )
    if len(board.arms) == 1:
        return f"there is one arm, so nothing to choose: it earns {board.recent} a round"
    uniform = _uniform(board, board.uniform)
    lift = board.recent.less(uniform)
    if lift.low > 0:  # what is below 0, but not clearly, is no finding
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


def _uniform(board: Scoreboard, first: Interval) -> Interval:
    """Return what uniform play earns: all arms' means say the same as `first`, often from more rounds.

    But not where arms are too many to be known: their means are then drawn together, or cut to the range.
    """
    arms, count = board.arms.values(), max(len(board.arms), 1)
    average = Interval(
        sum(one.mean for one in arms) / count, math.hypot(*(one.error for one in arms)) / count
    )
    known = 0 < len(board.arms) <= _MANY and average.error < first.error
    return average if known else first


def _arms_unknown(board: Scoreboard, locked: str) -> str:
    """Return what is not known of arms, where the policy earns more than uniform play."""
    lift, constant = board.lift_over_arm, board.constant
    if lift is None or constant is None or lift.low >= -_SMALL_LOSS * abs(constant.mean):
        return ""
    return (
        f"not known yet whether the policy earns more than always playing {board.best_arm!r}: its lift "
        f"is {_interval(lift)}{_LINEAR}{locked and '; '}{locked}"
    )


def _locked(known: Known | None, board: Scoreboard, table: Any) -> tuple[Any, str]:
    """Return which arm is played nearly always, while another may be better; nothing where none is."""
    if not isinstance(known, KnownLinear) or len(board.arms) < 2 or board.fallback is not None:
        return None, ""
    last = known.scores[-1]
    rounds = max(float(last.counts.sum()), 1.0)
    slot = int(last.counts.argmax())
    share = Interval(float(last.counts[slot]) / rounds, last.count_noise / rounds)
    arm = table.ids[slot]
    if arm not in board.arms or share.low < _LOCKED:
        return None, ""
    other = max((one for one in board.arms if one != arm), key=lambda one: board.arms[one].high)
    if board.arms[other].high < board.arms[arm].mean:
        return None, ""
    may = min(board.arms[other].high, known.reward_range[1])
    return arm, (
        f"it is locked on {arm!r}, {min(share.mean, 1.0):.0%} of its last rounds, though {other!r} may earn "
        f"up to {may:.2g}: a larger exploration shows others more often"
    )


def _interval(found: Interval | None) -> str:
    return "" if found is None else f"{found.mean:.2g} (95 %: {found.low:.2g} to {found.high:.2g})"


def _percent(found: Interval) -> str:
    """Return a share with its interval."""
    low, mean, high = (min(max(one, 0.0), 1.0) for one in (found.low, found.mean, found.high))
    return f"{mean:.0%} (95 %: {low:.0%} to {high:.0%})"


# What episodes released of rewards and contexts


def _changed(history: Sequence[EpisodeFacts], known: Known | None) -> str:
    """Return that arms earn something else than before, until that is known about as well as it was."""
    if not isinstance(known, KnownLinear) or not 0 < known.changed == known.began:
        return ""
    rounds = [facts.rounds for facts in history]
    before, since = sum(rounds[: known.changed]), sum(rounds[known.changed :])
    if since > _ANEW * before:
        return ""
    return (
        f"rewards changed by round {before:,}: rounds earned clearly less than rounds before had said, "
        f"which are not used any more. If nobody changed what is shown, who comes or what is rewarded, "
        f"contexts do not tell what matters; this word goes by round {math.ceil((1 + _ANEW) * before):,}"
    )


def _rewards_cut(board: Scoreboard, settings: Any, known: Any) -> str:
    given, mean = settings.reward_range, board.recent or board.uniform
    learns = given is None or getattr(settings, "learns_range", False)
    if not learns and getattr(known, "reward_range", given) != given:
        low, high = known.reward_range
        return (
            f"most rewards are outside reward_range = ({given[0]:g}, {given[1]:g}), so the guard expects "
            f"them in ({low:.3g}, {high:.3g}) now: give that range, and no round is lost to looking for it"
        )
    if board.clipped is None or board.clipped.mean - _EVERY_TIME * board.clipped.error < _CLIPPED:
        return ""
    about = mean and f"; the mean of what was kept is {_interval(mean)}"
    if learns:
        return (
            f"{_percent(board.clipped)} of rewards are far from where they were expected{about or ''}: give "
            f"reward_range=(low, high)"
        )
    low, high = known.earned.better_range(given) or (2 * given[0] - given[1], 2 * given[1] - given[0])
    leave = ", or leave it out to have it found" if getattr(settings, "sparsity", None) else ""
    return (
        f"{_percent(board.clipped)} of rewards are outside reward_range = ({given[0]:g}, {given[1]:g}) and "
        f"were moved to its ends{about or ''}: give the range that rewards really have, ({low:.3g}, "
        f"{high:.3g}) or wider{leave}"
    )


def _contexts_cut(board: Scoreboard, settings: Any) -> str:
    if board.cut is None or board.cut.mean - _EVERY_TIME * board.cut.error < CUT_CONTEXTS:
        return ""
    advice = "give a larger context_scale, or bring columns to one size"
    if isinstance(settings, DenseSettings):
        advice = "columns are measured again; if this stays, bring them to one size and cut what is far out"
    return f"{_percent(board.cut)} of contexts were cut to less than a quarter of their length: {advice}"


def _missing(earned: Earned) -> str:
    last = earned.whole or earned.last
    if last is None:
        return ""
    share = Interval(last.counted / last.rounds, math.sqrt(last.count_noise) / last.rounds)
    if share.mean + _EVERY_TIME * share.error > _REWARDED:
        return ""
    return (
        f"only {_percent(share)} of rounds could be learned from: rewards did not come before their episode "
        f"ended, or contexts were not finite numbers"
    )


def _equal(earned: Earned, expected: tuple[float, float] | None) -> str:
    board = earned.whole
    if board is None or expected is None:
        return ""
    low, high = expected
    if board.spread() > _EQUAL * (high - low) or board.share("clipped").low > 0:
        return ""
    return (
        f"rewards hardly differ: all are about {_interval(board.reward)}, with a standard deviation of at "
        f"most {board.spread():.2g}: there is nothing to learn, or reward_range = ({low:g}, {high:g}) is far "
        f"too wide"
    )


# What a fit says


def _signs(settings: Any, history: Sequence[EpisodeFacts], known: Any, board: Scoreboard) -> list[str]:
    """Return signs that a fit does not learn; those that the scoreboard contradicts are none."""
    found = []
    if getattr(known, "earned", None) is not None:
        found.append(_rewards_cut(board, settings, known))
    if board.clipped is not None:
        expected = getattr(known, "reward_range", settings.reward_range)
        found += [_missing(known.earned), _equal(known.earned, expected)]
    if len(history) < _LEAST:
        return found
    estimates = [facts.estimate for facts in history[-_LOOKED_AT:]]
    if isinstance(known, KnownLinear):
        found.append(_short(known, settings))
    elif isinstance(known, KnownSparse):
        found += [
            *_sizes(known, settings),
            "" if _missing(known.earned) else _full(known, estimates, settings),
        ]
        if board.lift is None or board.lift.low <= 0:
            found += [_alternating(estimates, "give a larger context_scale"), _quiet(known)]
    elif isinstance(known, KnownEstimate) and settings.episodes != "doubling":
        # Doubling episodes are short, and mostly noise, until the last few.
        advice = "use fit=Pursuit(), a larger context_scale or a smaller step_size"
        found += [_alternating(estimates, advice), _unrelated(estimates)]
        if all(np.abs(one.values).sum() >= 0.98 * settings.l1_radius for one in estimates[-_PAIRS:]):
            found.append(
                f"estimates are as large as l1_radius = {settings.l1_radius:g} allows: rewards are larger, "
                f"or contexts smaller, than their scales say. Give a larger reward_scale or a smaller "
                f"context_scale"
            )
    return found


def _alternating(estimates: Sequence[SparseEstimate], advice: str) -> str:
    against = 0
    for one, other in pairwise(estimates):
        sizes = float(np.linalg.norm(one.values)) * float(np.linalg.norm(other.values))
        _, i, j = np.intersect1d(one.indices, other.indices, assume_unique=True, return_indices=True)
        against += float(one.values[i] @ other.values[j]) < _AGAINST * sizes
    if against < _PAIRS:
        return ""
    return (
        f"estimates alternate: one points against the one before it. Contexts may be correlated or larger "
        f"than context_scale says: {advice}"
    )


def _unrelated(estimates: Sequence[SparseEstimate]) -> str:
    pairs = pairwise(estimates)
    apart = sum(len(np.intersect1d(one.indices, other.indices)) == 0 for one, other in pairs)
    if apart < _PAIRS:
        return ""
    return (
        "picks do not stand out: estimates in a row have no column in common. Check reward_scale and "
        "context_scale, take the mean out of rewards (fit=Pursuit() does), or use more rounds or epsilon"
    )


def _deviations(known: KnownSparse) -> npt.NDArray[np.float64]:
    """Return how many of its standard deviations each coefficient is from 0."""
    variances = np.maximum(np.diag(known.covariance)[1:], np.finfo(np.float64).tiny)
    return np.abs(known.theta[1:]) / np.sqrt(variances)


def _quiet(known: KnownSparse) -> str:
    # A pick of noise may stand out by chance; what is there goes on to do so.
    if known.fits < _FITS or (_deviations(known) > _STANDS_OUT).any():
        return ""
    return (
        f"picks do not stand out: after {known.fits} fits no column is {_STANDS_OUT:g} standard deviations "
        f"from 0. Check reward_scale and context_scale, try reward_scale='estimate', or plan with more "
        f"rounds or epsilon"
    )


def _sizes(known: KnownSparse, settings: Any) -> list[str]:
    found, ratio = [], known.context_size / settings.context_scale
    if not settings.pilot and known.residual_size >= _SCALE * settings.reward_scale:
        found.append(
            f"what is left of rewards is {known.residual_size:.2g}, and reward_scale is "
            f"{settings.reward_scale:g}: use intercept=True, a larger reward_scale, or "
            f"reward_scale='estimate'"
        )
    if not 1 / _SCALE < ratio < _SCALE:
        found.append(
            f"columns are about {known.context_size:.2g} large, and context_scale is "
            f"{settings.context_scale:g}: give it as {known.context_size:.2g}, or column_scales if units "
            f"differ"
        )
    return found


def _full(known: KnownSparse, estimates: Sequence[SparseEstimate], settings: Any) -> str:
    if settings.sparsity >= settings.dim or any(len(one.indices) < settings.sparsity for one in estimates):
        return ""
    # Columns that hardly matter fill what is left of the support without harm.
    if np.quantile(_deviations(known), 0.2) < _STANDS_OUT:
        return ""
    return (
        f"the support is always full: more than sparsity = {settings.sparsity} columns may matter. Give a "
        f"larger sparsity"
    )


def _short(known: KnownLinear, settings: DenseSettings) -> str:
    moments = known.moments
    # A row that can't be learned from is zeros, which says nothing of contexts.
    if not len(moments.rows) or known.fresh or _missing(known.earned):
        return ""
    # Second moments are about the map's center, and rows that short are not cut.
    center = known.center
    mean = known.arms.sums[:, known.dim + 1 : -1].sum(axis=0) / known.arms.total
    squares = np.diag(moments.sums) / moments.total * known.size**2 + center * (2 * mean - center)
    noise = 2 * float(moments.noise) / moments.total**2 * float((known.size**4).mean())
    doubt = (noise / known.dim) ** 0.5
    size = max(float(squares.mean()), 0.0)
    if size + 2 * doubt > _SHORT:
        return ""
    length = settings.context_norm * size**0.5
    return (
        f"contexts are about {length:.2g} long, and context_norm is {settings.context_norm:g}: give it as a "
        f"length that few contexts pass, or noise hides them"
    )
