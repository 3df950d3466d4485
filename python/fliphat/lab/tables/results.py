"""What the runs on a table say: means with intervals, when learning starts, and which policy is better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from fliphat.lab.tables.players import PRIVATE
from fliphat.lab.tables.runs import WINDOWS, TableRun

# Curves are means of so many neighbouring windows, and the end of a run is its last quarter.
_SMOOTH, _END = 3, 5


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

    Gain and fall count if they are four times the standard error of so few rounds.
    """
    error = one.spread * math.sqrt(2 * WINDOWS / (_SMOOTH * one.rounds))
    fallen = []
    for curve in one.curves:
        smooth = _smooth(curve)
        gained = np.maximum.accumulate(smooth) - random
        lost = np.maximum.accumulate(smooth) - smooth
        at = np.flatnonzero((gained > 4 * error) & (lost > np.maximum(4 * error, gained / 2)))
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
