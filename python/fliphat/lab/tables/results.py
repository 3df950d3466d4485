"""What the runs on a table say: means with intervals, when learning starts, and which policy to take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from fliphat.lab.experiments.run.summary import mean_interval
from fliphat.lab.tables.players import PRIVATE
from fliphat.lab.tables.runs import WINDOWS, TableRun

__all__ = ["Result", "best_private", "first_useful", "result_of"]

# Curves are means of so many neighbouring windows, and the end of a run is its last quarter.
_SMOOTH, _END = 3, 5


@dataclass(frozen=True)
class Result:
    """What one policy earned, over all orders.

    Attributes
    ----------
    policy : str
    epsilon : float or None
    orders : int
    rounds : int
        Of one order; of a log the mean number that matched.
    mean, low, high : float
        Reward a round and its 95 % interval: for the luck of orders and noise, and for the rows being a
        sample of people. NaN ends for a single order.
    above_constant : (mean, low, high) or None
        Reward above the best constant arm's in the same orders, with a 95 % interval.
    learns_from : int or None
        The round by which half of what it has gained over random play at the end is reached, in twentieths of
        the run; None if the end is not clearly better than random play.
    curve : tuple of float
        Mean reward in twenty equal parts of the run.
    """

    policy: str
    epsilon: float | None
    orders: int
    rounds: int
    mean: float
    low: float
    high: float
    above_constant: tuple[float, float, float] | None
    learns_from: int | None
    curve: tuple[float, ...]

    @property
    def name(self) -> str:
        """The policy and its epsilon, as shown."""
        return self.policy if self.epsilon is None else f"{self.policy}, epsilon = {self.epsilon:g}"


def result_of(runs: Sequence[TableRun], every: Sequence[TableRun]) -> Result:
    """Return the result of one policy's runs, beside those of all others."""
    first, orders = runs[0], len(runs)
    rounds = round(float(np.mean([run.rounds for run in runs])))
    means = [run.mean for run in runs]
    mean = float(np.mean(means))
    low = high = math.nan
    if orders > 1:
        spread = float(np.mean([run.spread for run in runs]))
        error = math.sqrt(float(np.var(means, ddof=1)) / orders + spread**2 / rounds)
        half = float(stdtrit(orders - 1, 0.975)) * error if first.epsilon is not None else 1.96 * error
        low, high = mean - half, mean + half
    constant = {run.order: run.mean for run in every if run.policy == "constant"}
    pairs = [run.mean - constant[run.order] for run in runs if run.order in constant]
    above = mean_interval(pairs) if pairs and first.policy != "constant" else None
    random = [run.mean for run in every if run.policy == "random"]
    curve = np.mean([run.windows for run in runs], axis=0)
    learns = _learning_start(runs, curve, float(np.mean(random)), rounds) if random else None
    if first.policy in ("random", "constant"):
        learns = None
    return Result(
        first.policy,
        first.epsilon,
        orders,
        rounds,
        mean,
        low,
        high,
        above,
        learns,
        tuple(float(part) for part in curve),
    )


def _learning_start(
    runs: Sequence[TableRun], curve: np.typing.NDArray[np.float64], random: float, rounds: int
) -> int | None:
    ends = [float(np.mean(run.windows[-_END:])) for run in runs]
    spread = float(np.mean([run.spread for run in runs]))
    error = spread / math.sqrt(len(runs) * rounds * _END / WINDOWS)
    if len(runs) > 1:
        error = max(error, float(np.std(ends, ddof=1)) / math.sqrt(len(runs)))
    gain = float(np.mean(ends)) - random
    if gain <= 3 * error:
        return None
    smooth = np.convolve(np.pad(curve, _SMOOTH // 2, mode="edge"), np.ones(_SMOOTH) / _SMOOTH, "valid")
    below = np.flatnonzero(smooth < random + gain / 2)
    # From the first part on after which it never falls back.
    part = 0 if len(below) == 0 else min(int(below[-1]) + 1, WINDOWS - 1)
    return rounds * (part + 1) // WINDOWS


def best_private(results: Sequence[Result], epsilon: float) -> Result | None:
    """Return the private policy that earns most at an epsilon."""
    there = [one for one in results if one.policy in PRIVATE and one.epsilon == epsilon]
    return max(there, key=lambda one: one.mean, default=None)


def first_useful(results: Sequence[Result]) -> Result | None:
    """Return the best private policy of the smallest epsilon that clearly beats the best constant arm."""
    for epsilon in sorted({one.epsilon for one in results if one.epsilon is not None}):
        best = best_private(results, epsilon)
        if best is not None and best.above_constant is not None and best.above_constant[1] > 0:
            return best
    return None
