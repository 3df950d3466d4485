"""One policy through one order of a table's rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.lab.tables.bandit import Logged, TableBandit
from fliphat.lab.tables.players import POLICIES, Player, Public, Rounds, make_player
from fliphat.policies.health import HealthWarning
from fliphat.privacy.guarantee import PrivacyWarning

__all__ = ["WINDOWS", "TableRun", "play_order"]

#: Parts of a run, of equal length, whose rewards are kept.
WINDOWS = 20
_BLOCK = 4096


@dataclass(frozen=True)
class TableRun:
    """What a policy earned in one order.

    Attributes
    ----------
    policy : str
    epsilon : float or None
    order : int
    rounds : int
        Rounds whose reward is known: all rows, or those of a log that matched.
    mean, spread : float
        Of the rewards.
    windows : tuple of float
        Mean rewards of twenty equal parts of the run.
    """

    policy: str
    epsilon: float | None
    order: int
    rounds: int
    mean: float
    spread: float
    windows: tuple[float, ...]


def play_order(
    bandit: TableBandit, public: Public, policy: str, epsilon: float | None, order: int, seed: int
) -> TableRun:
    """Play a policy through the rows in one random order, each row once.

    All policies of one order meet the same people in the same order.
    """
    people = np.random.default_rng([seed, order])
    rows = people.permutation(len(bandit))
    if isinstance(bandit.outcomes, Logged):
        rows = rows[_evenly_shown(bandit.outcomes, rows, people)]
    words = [seed, order, 1, POLICIES.index(policy), 0 if epsilon is None else int(epsilon * 1e6)]
    player = make_player(policy, epsilon, public, bandit, np.random.default_rng(words))
    with warnings.catch_warnings():
        # A seed means that nothing is private, and whether there is something to learn is the question here.
        warnings.simplefilter("ignore", HealthWarning)
        warnings.simplefilter("ignore", PrivacyWarning)
        rewards = _play(player, bandit, rows)
    if len(rewards) < WINDOWS:
        raise ValueError(
            f"the table must have at least {WINDOWS} rounds whose reward is known, and has {len(rewards)}: a "
            f"log knows the reward of one arm a row"
        )
    windows = tuple(float(part.mean()) for part in np.array_split(rewards, WINDOWS))
    return TableRun(
        policy, epsilon, order, len(rewards), float(rewards.mean()), float(rewards.std()), windows
    )


def _evenly_shown(log: Logged, rows: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return which rounds to keep so that, among them, every arm was shown equally often to everybody.

    A round whose arm had the chance q is kept with probability smallest q / q: then each arm's chance of
    being shown and kept is the same, and replay is unbiased for logs that were not uniform.
    """
    chances = log.propensities[rows]
    return np.flatnonzero(rng.random(len(rows)) < log.propensities.min() / chances)


def _play(player: Player, bandit: TableBandit, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    features, known = bandit.features.matrix, bandit.outcomes
    parts: list[npt.NDArray[np.float64]] = []
    at = 0
    while at < len(rows):
        if isinstance(known, Logged):
            here = rows[at : at + _BLOCK]
            arms = player.choose(features[here])
            same = np.flatnonzero(arms == known.arms[here])[: player.remaining]
            # When the choice changes after the last match, what follows it is chosen again.
            at += int(same[-1]) + 1 if len(same) == player.remaining else len(here)
            here, arms = here[same], arms[same]
            rewards = known.rewards[here]
        else:
            here = rows[at : at + min(player.remaining, _BLOCK)]
            arms = player.choose(features[here])
            rewards = (arms == known[here]).astype(np.float64)
            same = np.arange(len(here))
            at += len(here)
        if len(here):
            player.learn(Rounds(same, features[here], arms, rewards))
        parts.append(rewards)
    return np.concatenate(parts) if parts else np.empty(0)
