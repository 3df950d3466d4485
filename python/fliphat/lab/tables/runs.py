"""One policy through one order of a table's rows."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fliphat.lab.tables.bandit import Logged, TableBandit
from fliphat.lab.tables.players import POLICIES, PlayedRounds, Player, StudyNumbers, make_player
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
