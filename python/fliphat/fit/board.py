"""What episodes earned, as it is released: five numbers with noise each, and what they add up to. Public.

In Rust (``board.rs``) a row with a reward adds its reward, moved to -1..1 and cut there, in P steps; P; the
square of the reward; P/2 if the reward had to be cut; P/2 if its context was cut to less than a quarter of
its length. A row without a reward adds nothing. Replacing one row moves the sums by at most ``sqrt(9/2) P``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy.typing as npt

__all__ = [
    "BOARD_SHARE",
    "BOARD_SQUARED",
    "BOARD_STEPS",
    "BOARD_WIDTH",
    "CUT_CONTEXTS",
    "UNIFORM",
    "Board",
    "Earned",
    "Interval",
]

#: P, and the squared distance of two rows' integers at most.
BOARD_STEPS: Final = 2**10
BOARD_SQUARED: Final = 9 * BOARD_STEPS**2 // 2

#: Integers of a row.
BOARD_WIDTH: Final = 5

#: Share of an episode's budget that they take.
BOARD_SHARE: Final = 0.02

#: How far the share of rounds with a reward is from 1, before it is known.
_MISSING: Final = 0.3

#: Standard errors to either side of a mean that its interval reaches: 95 %.
_NINETY_FIVE: Final = 1.959964

#: Rounds count half when so much of all rounds came after them.
_HALF_LIFE: Final = 0.5

#: Standard errors from which on the guard takes a difference for real: it looks after every episode.
_GUARD: Final = 3.0

#: The same for what the guard plays instead.
_WRONG: Final = 2.0

#: What the guard plays goes on for at most so many times the rounds that it took to see a loss.
_LONGEST: Final = 4.0

#: Share of rewards outside a range that is not given beyond which it gets wider, and standard deviations of
#: rewards to either side of their mean that a narrower one has.
_CUT_REWARDS: Final = 0.1
_RANGE_SPREADS: Final = 4.0

#: Share of rewards outside a range that was given beyond which the guard looks for them elsewhere.
_MOSTLY: Final = 0.5

#: Share of contexts cut to less than a quarter of their length beyond which columns have another size.
CUT_CONTEXTS: Final = 0.3

#: As an arm of the guard: all of them, uniformly.
UNIFORM: Final = -1


class Interval(NamedTuple):
    """A mean, and its standard error: from noise, and from how rewards differ."""

    mean: float
    error: float

    def __str__(self) -> str:
        """Return the mean, and half of the 95 % interval, with as many digits as the error supports."""
        half = self.high - self.mean
        if not (math.isfinite(half) and half > 0):
            return f"{self.mean:.4g}"
        digits = 1 - math.floor(math.log10(half))  # two of the error
        mean, half = round(self.mean, digits) + 0.0, round(half, digits)
        return f"{mean:,.{max(digits, 0)}f} +- {half:,.{max(digits, 0)}f}"

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        return self.mean - _NINETY_FIVE * self.error

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        return self.mean + _NINETY_FIVE * self.error

    def down_to(self, least: float) -> Interval:
        """Return the interval that has the same upper end and reaches down to `least`, at least."""
        low = min(self.low, least)
        return Interval((low + self.high) / 2, (self.high - low) / (2 * _NINETY_FIVE))

    def less(self, other: Interval) -> Interval:
        """Return the difference of two means that have nothing in common."""
        return Interval(self.mean - other.mean, math.hypot(self.error, other.error))


@dataclass(frozen=True)
class Board:
    """What some episodes earned, as it was released.

    Attributes
    ----------
    rounds : float
        With or without rewards.
    rewards, squares : float
        Sum of rewards, and of their squares, from `center` on.
    counted, clipped, cut : float
        Rounds with a reward; rewards that were cut to the range; contexts cut to less than a quarter.
    center : float
        Middle of the range of rewards.
    reward_noise, count_noise : float
        Variances of the noise in `rewards` and in `counted`; in `clipped` and `cut` it is four times the
        latter.
    """

    rounds: float
    rewards: float
    squares: float
    counted: float
    clipped: float
    cut: float
    center: float
    reward_noise: float
    count_noise: float

    @classmethod
    def of(
        cls, rounds: int, reward_range: tuple[float, float], values: npt.NDArray[Any], sigma: float
    ) -> Board:
        """Return one episode's numbers, released with noise of standard deviation `sigma`."""
        low, high = reward_range
        reward, counted, square, clipped, cut = (values / BOARD_STEPS).tolist()
        half, noise = (high - low) / 2, (sigma / BOARD_STEPS) ** 2
        return cls(
            rounds=float(rounds),
            rewards=half * reward,
            squares=half**2 * square,
            counted=counted,
            clipped=2 * clipped,
            cut=2 * cut,
            center=(low + high) / 2,
            reward_noise=half**2 * noise,
            count_noise=noise,
        )

    @cached_property
    def present(self) -> float:
        """About how many rounds had a reward: as released, as far as that says more than their number."""
        guess = (_MISSING * self.rounds) ** 2
        found = (self.counted * guess + self.rounds * self.count_noise) / (guess + self.count_noise)
        return min(max(found, 0.02 * self.rounds, 1e-9), self.rounds)

    @cached_property
    def reward(self) -> Interval:
        """Mean reward of a round that had one."""
        n = self.present
        mean = self.rewards / n
        variance = max(self.squares / n - mean**2, 0.0)
        of_counts = min(self.count_noise, (_MISSING * self.rounds) ** 2)
        noise = self.reward_noise + mean**2 * of_counts
        return Interval(self.center + mean, math.sqrt(noise / n**2 + variance / n))

    def spread(self, clearly: float = _GUARD) -> float:
        """Return the standard deviation of rewards, at most, by so many standard errors of their variance."""
        n, mean = self.present, self.reward.mean - self.center
        # Noise in squares is that in rewards times half the range, which both noises tell.
        half = math.sqrt(self.reward_noise / max(self.count_noise, 1e-300))
        noise = math.sqrt(self.reward_noise) * math.hypot(half, 2 * mean)
        return math.sqrt(max(self.squares / n - mean**2, 0.0) + clearly * noise / n)

    def share(self, name: str) -> Interval:
        """Return the share of rounds that were "clipped" or "cut"."""
        value = float(getattr(self, name))
        return Interval(value / self.present, 2 * math.sqrt(self.count_noise) / self.present)

    @property
    def cut_too_much(self) -> bool:
        """Whether many contexts were clearly cut: columns have another size."""
        cut = self.share("cut")
        return cut.mean - _GUARD * cut.error > CUT_CONTEXTS

    def moved(self, center: float) -> Board:
        """Return the same with rewards counted from another number on."""
        shift = self.center - center
        if shift == 0:
            return self
        return replace(
            self,
            rewards=self.rewards + shift * self.counted,
            squares=self.squares + 2 * shift * self.rewards + shift**2 * self.counted,
            center=center,
            reward_noise=self.reward_noise + shift**2 * self.count_noise,
        )

    def plus(self, other: Board, keep: float = 1.0) -> Board:
        """Return both together, this one with the weight `keep`."""
        own = self if self.center == other.center else self.moved(other.center)
        return Board(
            rounds=keep * own.rounds + other.rounds,
            rewards=keep * own.rewards + other.rewards,
            squares=keep * own.squares + other.squares,
            counted=keep * own.counted + other.counted,
            clipped=keep * own.clipped + other.clipped,
            cut=keep * own.cut + other.cut,
            center=other.center,
            reward_noise=keep**2 * own.reward_noise + other.reward_noise,
            count_noise=keep**2 * own.count_noise + other.count_noise,
        )

    def to_record(self) -> list[float]:
        """Return a record for JSON."""
        return [getattr(self, field.name) for field in fields(self)]

    @classmethod
    def from_record(cls, record: list[float]) -> Board:
        """Return what :meth:`to_record` wrote."""
        return cls(*record)


@dataclass(frozen=True)
class Earned:
    """What uniform play and the policy's own earned so far, and what the next episode plays. Public.

    The **guard**: where the policy's own play earns less than uniform play, or than the best constant arm, by
    three standard errors, in recent episodes and in the last one alone, the better of the two is played for
    as many rounds as it took to see that, twice and then four times as many when it is seen again. If that
    earns clearly less than what it replaced, it was wrong: the estimate plays again, and the next time twice
    the difference is asked for. Rewards that are mostly outside the range that was given are looked for where
    they are. Nothing is asked of rows for all this, so the price is the same.

    Attributes
    ----------
    last, uniform, recent : Board, optional
        The last episode; rounds that were played uniformly; those that the estimate played, of which older
        ones count less and less.
    rounds : float
        That the estimate played.
    fallback : int, optional
        The arm that the next episode plays instead of the estimate's choice, or `UNIFORM`.
    waits : float
        Rounds that it goes on for.
    times, wrong : int
        How often it was needed, and how often it was wrong.
    replaced, tried : Board, optional
        What the estimate had earned when it was replaced, and what was earned since.
    """

    last: Board | None = None
    uniform: Board | None = None
    recent: Board | None = None
    rounds: float = 0.0
    fallback: int | None = None
    waits: float = 0.0
    times: int = 0
    wrong: int = 0
    replaced: Board | None = None
    tried: Board | None = None

    @cached_property
    def whole(self) -> Board | None:
        """What uniform play and the policy's own earned together; None before the first release."""
        if self.uniform is None or self.recent is None:
            return self.uniform or self.recent
        return self.uniform.plus(self.recent)

    def after(
        self, board: Board, *, uniform: bool, constant: tuple[int, Interval] | None = None, guard: bool = True
    ) -> Earned:
        """Return what is known after an episode.

        Parameters
        ----------
        uniform : bool
            Whether it was played before anything was known.
        constant : (int, Interval), optional
            The best constant arm and its mean reward, as far as it is known.
        guard : bool
            Whether the guard is on.
        """
        if uniform or self.fallback == UNIFORM:
            pooled_with = board if self.uniform is None else self.uniform.plus(board)
            found = replace(self, last=board, uniform=pooled_with)
        elif self.fallback is not None:
            found = replace(self, last=board)
        else:
            rounds = self.rounds + board.rounds
            keep = 0.5 ** (board.rounds / max(_HALF_LIFE * rounds, board.rounds))
            recent = board if self.recent is None else self.recent.plus(board, keep)
            found = replace(self, last=board, recent=recent, rounds=rounds)
        if found.fallback is not None:
            return found._tried(board)
        return found._guarded(constant) if guard else found

    def _tried(self, board: Board) -> Earned:
        """Return what follows from another episode of the guard's own play."""
        tried = board if self.tried is None else self.tried.plus(board)
        waits = self.waits - board.rounds
        if self.replaced is not None:
            lift = tried.reward.less(self.replaced.reward)
            if lift.mean + _WRONG * lift.error < 0:
                return replace(
                    self, fallback=None, waits=0.0, recent=self.replaced, tried=None, wrong=self.wrong + 1
                )
        if waits > 0:
            return replace(self, waits=waits, tried=tried)
        return replace(self, fallback=None, waits=0.0, tried=None)

    def _guarded(self, constant: tuple[int, Interval] | None) -> Earned:
        others = [] if constant is None else [constant]
        if self.uniform is not None:
            others.append((UNIFORM, self.uniform.reward))
        if self.recent is None or self.last is None or not others:
            return self
        # In the last episode, too: a policy that still learns was worse before.
        clearly, earns_less = _GUARD * 2**self.wrong, False
        for _, interval in others:
            lift, last = self.recent.reward.less(interval), self.last.reward.less(interval)
            earns_less |= max(lift.mean + clearly * lift.error, last.mean + clearly * last.error) < 0
        if not earns_less:
            return self
        arm = max(others, key=lambda other: other[1].low)[0]
        waits = self.recent.rounds * min(2.0**self.times, _LONGEST)
        return replace(
            self,
            recent=None,
            replaced=self.recent,
            tried=None,
            fallback=arm,
            waits=waits,
            times=self.times + 1,
        )

    @property
    def mostly_outside(self) -> bool:
        """Whether clearly more than half of rewards were outside their range: arms can't be told apart."""
        share = None if self.whole is None else self.whole.share("clipped")
        return share is not None and share.mean - _GUARD * share.error > _MOSTLY

    def better_range(self, given: tuple[float, float]) -> tuple[float, float] | None:
        """Return where rewards should be expected instead, None where `given` is about right.

        A range that clearly cuts rewards gets four times as wide, to the side where they are; one in which
        they clearly take less than half is drawn together around them.
        """
        (low, high), board = given, self.whole
        if board is None:
            return None
        width, mean, clipped = high - low, board.reward, board.share("clipped")
        if clipped.mean - _GUARD * clipped.error > _CUT_REWARDS:
            away = (mean.mean - (low + high) / 2) / width  # -1/2 to 1/2
            below, above = 0.75 - 1.5 * away, 0.75 + 1.5 * away
            return low - 2 * max(below, 0.0) * width, high + 2 * max(above, 0.0) * width
        if clipped.mean + _GUARD * clipped.error > _CUT_REWARDS:
            return None
        # One error is enough: four deviations leave room, and what is cut after all is seen.
        half = _RANGE_SPREADS * board.spread(1.0) + _GUARD * mean.error
        return (max(mean.mean - half, low), min(mean.mean + half, high)) if 4 * half < width else None

    def to_record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        record = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.to_record() if isinstance(value, Board) else value for name, value in record.items()
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Earned:
        """Return what :meth:`to_record` wrote."""
        boards = {
            name: None if record[name] is None else Board.from_record(record[name])
            for name in ("last", "uniform", "recent", "replaced", "tried")
        }
        return cls(**{**record, **boards})
