"""One policy through one order of a table's rows, and what all runs say: means, intervals, learning."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from fliphat.lab.tables.bandit import Logged, TableBandit
from fliphat.lab.tables.players import POLICIES, PRIVATE, PlayedRounds, Player, StudyNumbers, make_player
from fliphat.policies.health import HealthWarning
from fliphat.privacy.guarantee import PrivacyWarning

_Codes = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]

#: Parts of a run, of equal length, whose rewards are kept.
WINDOWS = 20
_BLOCK = 4096
#: Cells of a block: FLIPHAT sees a row once for each arm.
_CELLS = 2**24


@dataclass(frozen=True)
class TableRun:
    """What a policy earned in one order."""

    policy: str
    epsilon: float | None
    order: int
    #: PlayedRounds whose reward is known: all rows, or those of a log that matched.
    rounds: int
    #: Of the rewards.
    mean: float
    spread: float
    #: Spread of what it earned above the constant arm in the same rows; NaN for a log, which does not
    #: know.
    beside: float
    #: PlayedRounds whose reward is not the most frequent one: how much there is to see.
    unusual: int
    #: Mean rewards of twenty equal parts of the run.
    windows: tuple[float, ...]


def play_order(
    bandit: TableBandit, public: StudyNumbers, policy: str, epsilon: float | None, order: int, seed: int
) -> TableRun:
    """Play a policy through the rows in one random order, each row once.

    All policies of one order meet the same people in the same order.
    """
    known = bandit.outcomes
    people = np.random.default_rng([seed, order])
    rows = people.permutation(len(bandit))
    if policy == "constant" and isinstance(known, Logged):
        return _from_other_half(known, len(bandit.arms), rows, order)
    if isinstance(known, Logged):
        rows = rows[_evenly_shown(known, rows, people)]
    if policy == "constant":
        assert not isinstance(known, Logged)
        rewards = known.of(rows, best_arm(bandit))
    else:
        words = [seed, order, 1, POLICIES.index(policy), 0 if epsilon is None else int(epsilon * 1e6)]
        player = make_player(policy, epsilon, public, bandit, np.random.default_rng(words))
        with warnings.catch_warnings():
            # A seed means that nothing is private, and whether there is something to learn is the question.
            warnings.simplefilter("ignore", HealthWarning)
            warnings.simplefilter("ignore", PrivacyWarning)
            rewards = _play(player, bandit, rows)
    if len(rewards) < WINDOWS:
        raise ValueError(
            f"the table must have at least {WINDOWS} rounds whose reward is known, and has {len(rewards)}: a "
            f"log knows the reward of one arm a row"
        )
    beside = math.nan
    if not isinstance(known, Logged):
        beside = float((rewards - known.of(rows, best_arm(bandit))).std())
    windows = tuple(float(part.mean()) for part in np.array_split(rewards, WINDOWS))
    mean, spread = float(rewards.mean()), float(rewards.std())
    return TableRun(policy, epsilon, order, len(rewards), mean, spread, beside, _unusual(rewards), windows)


def best_arm(bandit: TableBandit) -> int:
    """Return the arm that earns most when always shown: in hindsight, so no policy can be sure to find it."""
    known = bandit.outcomes
    if isinstance(known, Logged):
        return int(_arm_means(known, len(bandit.arms), np.arange(len(bandit))).argmax())
    everybody = np.arange(len(bandit))
    return int(np.argmax([known.of(everybody, arm).mean() for arm in range(len(bandit.arms))]))


def _arm_means(log: Logged, arms: int, rows: _Codes) -> _Floats:
    """Return each arm's mean reward where it was shown, weighted to everybody."""
    weights, shown = 1 / log.propensities[rows], log.arms[rows]
    total = np.bincount(shown, weights, arms)
    earned = np.bincount(shown, weights * log.rewards[rows], arms)
    return np.where(total > 0, earned / np.maximum(total, 1e-300), -np.inf)


def _from_other_half(log: Logged, arms: int, rows: _Codes, order: int) -> TableRun:
    """Return what the arm that is best in one half of a log earns in the other, both ways round.

    The best of many arms in the same rounds would be a maximum over noise.
    """
    half = len(rows) // 2
    halves = rows[:half], rows[half:]
    values, spreads, rounds, unusual = [], [], 0, 0
    for chosen_in, earned_in in (halves, halves[::-1]):
        arm = int(_arm_means(log, arms, chosen_in).argmax())
        own = earned_in[log.arms[earned_in] == arm]
        if len(own) == 0:
            raise ValueError("a log must show its best arm in both halves: it has too few rounds")
        weights = 1 / log.propensities[own]
        mean = float(np.average(log.rewards[own], weights=weights))
        values.append(mean)
        spreads.append(math.sqrt(float(np.average((log.rewards[own] - mean) ** 2, weights=weights))))
        rounds += round(float(weights.sum() ** 2 / (weights**2).sum()))
        unusual += _unusual(log.rewards[own])
    mean = float(np.mean(values))
    return TableRun(
        "constant", None, order, rounds, mean, float(np.mean(spreads)), math.nan, unusual, (mean,) * WINDOWS
    )


def _unusual(rewards: _Floats) -> int:
    return len(rewards) - int(np.unique(rewards, return_counts=True)[1].max())


def _evenly_shown(log: Logged, rows: _Codes, rng: np.random.Generator) -> _Codes:
    """Return which rounds to keep so that, among them, every arm was shown equally often to everybody.

    A round whose arm had the chance q is kept with probability smallest q / q: then each arm's chance of
    being shown and kept is the same, and replay is unbiased for logs that were not uniform.
    """
    chances = log.propensities[rows]
    return np.flatnonzero(rng.random(len(rows)) < log.propensities.min() / chances)


def _play(player: Player, bandit: TableBandit, rows: _Codes) -> _Floats:
    features, known = bandit.features.matrix, bandit.outcomes
    longest = max(1, min(_BLOCK, _CELLS // (features.shape[1] * len(bandit.arms))))
    parts: list[_Floats] = []
    at = 0
    while at < len(rows):
        if isinstance(known, Logged):
            here = rows[at : at + longest]
            arms = player.choose(features[here])
            same = np.flatnonzero(arms == known.arms[here])[: player.remaining]
            # When the choice changes after the last match, what follows it is chosen again.
            at += int(same[-1]) + 1 if len(same) == player.remaining else len(here)
            here, arms = here[same], arms[same]
            rewards = known.rewards[here]
        else:
            here = rows[at : at + min(player.remaining, longest)]
            arms = player.choose(features[here])
            rewards = known.of(here, arms)
            same = np.arange(len(here))
            at += len(here)
        if len(here):
            player.learn(PlayedRounds(same, features[here], arms, rewards))
        parts.append(rewards)
    return np.concatenate(parts) if parts else np.empty(0)


# Curves are means of so many neighbouring windows, and the end of a run is its last quarter.
_SMOOTH, _END = 3, 5
# A fall counts from so many standard errors on: of a thousand steady runs fewer than one is said to fall.
_FALL = 5


@dataclass(frozen=True)
class Result:
    """What one policy earned, over all orders.

    Attributes
    ----------
    policy : str
    epsilon : float or None
    rounds : int
        Of one order; of a log the mean number that matched.
    unusual : int
        Of those, how many had another reward than the most frequent one.
    mean, low, high : float
        Reward a round and its 95 % interval: for chance in orders and noise, and for the rows being a
        sample of people. NaN ends for a single order.
    spread : float
        Standard deviation of single rewards.
    above_constant : (mean, low, high) or None
        Reward above the constant arm's in the same orders, with a 95 % interval for the same two reasons.
    learns_from : int or None
        The round by which half of what it has gained over random play at the end is reached, in twentieths of
        the run; None if the end is not clearly better than random play.
    means : tuple of float
        Reward a round in each order.
    curves : tuple of tuple of float
        Mean reward in twenty equal parts of the run, for each order.
    """

    policy: str
    epsilon: float | None
    rounds: int
    unusual: int
    mean: float
    low: float
    high: float
    spread: float
    above_constant: tuple[float, float, float] | None
    learns_from: int | None
    means: tuple[float, ...]
    curves: tuple[tuple[float, ...], ...]

    @property
    def orders(self) -> int:
        """How many orders were played."""
        return len(self.means)

    @property
    def curve(self) -> tuple[float, ...]:
        """Mean reward in twenty equal parts of the run."""
        return tuple(float(part) for part in np.mean(self.curves, axis=0))

    @property
    def name(self) -> str:
        """The policy and its epsilon, as shown."""
        return self.policy if self.epsilon is None else f"{self.policy}, epsilon = {self.epsilon:g}"


def result_of(runs: Sequence[TableRun], every: Sequence[TableRun]) -> Result:
    """Return the result of one policy's runs, beside those of all others."""
    first = runs[0]
    rounds = round(float(np.mean([run.rounds for run in runs])))
    means = [run.mean for run in runs]
    spread = float(np.mean([run.spread for run in runs]))
    mean, low, high = _interval(means, spread**2 / rounds)
    constant = {run.order: run for run in every if run.policy == "constant"}
    both = [run for run in runs if run.order in constant]
    above = None
    if both and first.policy != "constant":
        # Of a label both rewards are known in every row; a log's are of other rows.
        beside = float(np.mean([run.beside for run in both])) ** 2 / rounds
        if math.isnan(beside):
            other = constant[both[0].order]
            beside = spread**2 / rounds + other.spread**2 / other.rounds
        above = _interval([run.mean - constant[run.order].mean for run in both], beside)
    random = [run.mean for run in every if run.policy == "random"]
    learns = None
    if random and first.policy not in ("random", "constant"):
        learns = _learning_start(runs, float(np.mean(random)), rounds)
    return Result(
        policy=first.policy,
        epsilon=first.epsilon,
        rounds=rounds,
        unusual=round(float(np.mean([run.unusual for run in runs]))),
        mean=mean,
        low=low,
        high=high,
        spread=spread,
        above_constant=above,
        learns_from=learns,
        means=tuple(means),
        curves=tuple(run.windows for run in runs),
    )


def _interval(values: Sequence[float], of_rows: float) -> tuple[float, float, float]:
    """Return a mean over orders and its 95 % interval; `of_rows` is the variance of the rows themselves."""
    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return mean, math.nan, math.nan
    of_orders = float(np.var(values, ddof=1)) / count
    half = math.sqrt(float(stdtrit(count - 1, 0.975)) ** 2 * of_orders + 1.96**2 * of_rows)
    return mean, mean - half, mean + half


def clearly_better(one: Result, other: Result) -> bool:
    """Return whether a policy earned more than another, in the same orders, beyond chance."""
    pairs = [a - b for a, b in zip(one.means, other.means, strict=False)]
    _, low, _ = _interval(pairs, one.spread**2 / one.rounds + other.spread**2 / other.rounds)
    return bool(low > 0)


def _smooth(curve: Sequence[float]) -> npt.NDArray[np.float64]:
    return np.convolve(np.pad(curve, _SMOOTH // 2, mode="edge"), np.ones(_SMOOTH) / _SMOOTH, "valid")


def _learning_start(runs: Sequence[TableRun], random: float, rounds: int) -> int | None:
    ends = [float(np.mean(run.windows[-_END:])) for run in runs]
    spread = float(np.mean([run.spread for run in runs]))
    error = spread / math.sqrt(len(runs) * rounds * _END / WINDOWS)
    if len(runs) > 1:
        error = max(error, float(np.std(ends, ddof=1)) / math.sqrt(len(runs)))
    gain = float(np.mean(ends)) - random
    if gain <= 3 * error:
        return None
    below = np.flatnonzero(_smooth(np.mean([run.windows for run in runs], axis=0)) < random + gain / 2)
    # From the first part on after which it never falls back.
    part = 0 if len(below) == 0 else min(int(below[-1]) + 1, WINDOWS - 1)
    return rounds * (part + 1) // WINDOWS


def collapse(one: Result, random: float) -> tuple[int, int] | None:
    """Return in how many orders a policy lost half of what it had gained, and about when first; or None.

    Gain and fall count if they are five times the standard error of so few rounds.
    """
    error = one.spread * math.sqrt(2 * WINDOWS / (_SMOOTH * one.rounds))
    fallen = []
    for curve in one.curves:
        smooth = _smooth(curve)
        gained = np.maximum.accumulate(smooth) - random
        lost = np.maximum.accumulate(smooth) - smooth
        at = np.flatnonzero((gained > _FALL * error) & (lost > np.maximum(_FALL * error, gained / 2)))
        if len(at):
            fallen.append(int(at[0]))
    return (len(fallen), one.rounds * (min(fallen) + 1) // WINDOWS) if fallen else None


def best_private(results: Sequence[Result], epsilon: float) -> Result | None:
    """Return the private policy that earns most at an epsilon."""
    there = [one for one in results if one.policy in PRIVATE and one.epsilon == epsilon]
    return max(there, key=lambda one: one.mean, default=None)


def first_useful(results: Sequence[Result]) -> Result | None:
    """Return the best of the private policies that clearly beat the constant arm, at the smallest epsilon.

    One that earns more but differs too much from order to order to be clear does not hide it.
    """
    clear = [one for one in results if one.above_constant is not None and one.above_constant[1] > 0]
    epsilons = [one.epsilon for one in clear if one.epsilon is not None]
    return best_private(clear, min(epsilons)) if epsilons else None
