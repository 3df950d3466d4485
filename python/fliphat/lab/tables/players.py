"""The policies that a table is played with, through the same three calls, and about how long each takes.

A player says how long its choice stays the same (`remaining`), which arms it would show (`choose`), and
learns from rounds that happened (`learn`). Choosing has no consequences, so that a log can be replayed:
rounds whose logged arm is another one are never learned from.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.pursuit.known import KnownSparse
from fliphat.lab.baselines.baseline import RefitTimes
from fliphat.lab.tables.bandit import TableBandit
from fliphat.policies import FLIPHAT, PrivateLinear

#: Floating-point operations a second of one core, in matrix products and factorisations.
_SPEED: Final = 1e10
#: Values of contexts that a fit, and a round's bookkeeping, go through in a second.
_VALUES: Final = 1.5e8


def seconds(policy: str, rows: int, arms: int, columns: int) -> float:
    """Return about how long one run of a policy takes, within a factor of five on one core of today."""
    scanned = rows * arms * columns / _VALUES
    if policy == "LinUCB":
        times, at, fits = RefitTimes(200), 0, 0
        while at < min(rows, 4000):
            at, fits = times.after(at), fits + 1
        fits += max(0, rows - 4000) // 200
        used = min(rows, columns)
        work = (
            3 * fits * used**3 + 3 * rows * used**2 + (4 * columns * rows**2 / arms if columns > rows else 0)
        )
        return scanned + arms * work / _SPEED + 2e-4 * fits
    if policy == "PrivateLinear":
        # A factorisation an arm and episode, and random draws of its coefficients.
        episodes = max(1.0, math.log(max(rows, 60) / 30) / math.log(1.25))
        return 3 * scanned + episodes * (0.01 + arms * columns**3 / _SPEED)
    return (4 * scanned + 0.004 * max(1.0, math.log2(rows))) if policy == "FLIPHAT" else 0.01 * scanned + 1e-3


#: In the order of tables; the private ones are played once for each epsilon.
PRIVATE: Final = ("FLIPHAT", "PrivateLinear")
POLICIES: Final = ("random", "constant", "LinUCB", *PRIVATE)

_FOREVER = 2**31 - 1


@dataclass(frozen=True)
class StudyNumbers:
    """Public numbers of a study, from which the private policies' arguments follow."""

    #: K, and p with the constant one.
    arms: int
    columns: int
    #: Typical l2 norm of a row without its constant one.
    context_norm: float
    delta: float
    #: Of FLIPHAT.
    sparsity: int
    reward_range: tuple[float, float]

    def arguments(self, policy: str, epsilon: float) -> dict[str, Any]:
        """Return the arguments of a private policy, seed aside."""
        common: dict[str, Any] = {"epsilon": epsilon, "delta": self.delta, "reward_range": self.reward_range}
        if policy == "PrivateLinear":
            # It has a constant of its own.
            return {"arms": self.arms, "dim": self.columns - 1, **common, "context_norm": self.context_norm}
        # The plain call, as people type it: with context_scale = 0.5 / sqrt(arms) means over the tables of
        # benches/table_settings.py are .495 and .610 at epsilon 1 and 10, without it .516 and .595.
        return {"dim": self.arms * self.columns, "sparsity": self.sparsity, **common}


def public_numbers(bandit: TableBandit, delta: float | None, sparsity: int | None) -> StudyNumbers:
    """Return a study's public numbers; delta by default below 1/(2 n), with one digit."""
    arms, columns = len(bandit.arms), bandit.features.matrix.shape[1]
    if delta is None:
        delta = min(1e-3, float(f"{0.4 / len(bandit):.0e}"))
    if sparsity is None:
        sparsity = min(arms * columns, max(8, 3 * arms))
    assert bandit.features.encoder is not None
    return StudyNumbers(arms, columns, bandit.features.encoder.norm, delta, sparsity, bandit.reward_range)


class Player(ABC):
    """A policy that plays rows of a table, one context vector a round."""

    remaining: int = _FOREVER

    @abstractmethod
    def choose(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        """Return the arms for at most `remaining` rounds."""

    @abstractmethod
    def learn(self, rounds: PlayedRounds) -> None:
        """Take in rounds that happened."""


@dataclass(frozen=True, eq=False)
class PlayedRounds:
    """Rounds that happened."""

    #: Which rows of the last `choose` they are, ascending.
    picked: npt.NDArray[np.int64]
    #: Of those.
    rows: npt.NDArray[np.float32]
    arms: npt.NDArray[np.int64]
    rewards: npt.NDArray[np.float64]


def make_player(
    policy: str, epsilon: float | None, public: StudyNumbers, bandit: TableBandit, rng: np.random.Generator
) -> Player:
    """Return a new player."""
    if policy == "random":
        return _Random(public.arms, rng)
    if policy == "LinUCB":
        return _LinUCB(public, bandit.features.matrix)
    assert epsilon is not None
    return (_Fliphat if policy == "FLIPHAT" else _PrivateLinear)(public, epsilon, rng)


class _Random(Player):
    def __init__(self, arms: int, rng: np.random.Generator) -> None:
        self._arms, self._rng = arms, rng

    def choose(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        return self._rng.integers(0, self._arms, len(rows))

    def learn(self, *_: Any) -> None:
        """Learn nothing."""


class _LinUCB(Player):
    """Ridge LinUCB with coefficients of its own for each arm, without privacy.

    Rewards are taken less their mean so far and in units of their spread so far: an arm that was never tried
    is taken for an average one, whatever the rewards are measured in. Of a table with more columns than rows
    it plays the rows' coordinates in the space that they span, which changes no score.
    """

    optimism: Final = 0.5

    def __init__(self, public: StudyNumbers, table: npt.NDArray[np.float32]) -> None:
        self._times, self._rounds = RefitTimes(200), 0
        self._next = self._times.after(0)
        rows, columns = table.shape
        self._span = np.linalg.qr(table.T)[0] if columns > rows else None
        columns = min(rows, columns)
        self._gram = np.stack([np.eye(columns)] * public.arms)
        # Of each arm: rows times rewards, and rows.
        self._sums = np.zeros((2, public.arms, columns))
        self._rewards = np.zeros(2)  # rewards and their squares
        self._solve()

    @property
    def remaining(self) -> int:  # type: ignore[override]
        return self._next - self._rounds

    def choose(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        rows = rows if self._span is None else rows @ self._span
        errors = np.stack([np.linalg.norm(rows @ one.T, axis=1) for one in self._whitening], axis=1)
        return np.asarray((rows @ self._estimate.T + self.optimism * errors).argmax(axis=1), np.int64)

    def learn(self, rounds: PlayedRounds) -> None:
        rewards, arms = rounds.rewards, rounds.arms
        rows = rounds.rows if self._span is None else rounds.rows @ self._span
        for arm in np.unique(arms):
            own = rows[arms == arm].astype(np.float64)
            self._gram[arm] += own.T @ own
            self._sums[:, arm] += own.T @ rewards[arms == arm], own.sum(axis=0)
        self._rewards += rewards.sum(), np.square(rewards).sum()
        self._rounds += len(arms)
        if self._rounds >= self._next:
            self._solve()
            self._next = self._times.after(self._rounds)

    def _solve(self) -> None:
        mean, square = self._rewards / max(self._rounds, 1)
        spread = np.sqrt(max(square - mean**2, 0.0))
        self._whitening = np.linalg.inv(np.linalg.cholesky(self._gram))
        solved = self._whitening @ (self._sums[0] - mean * self._sums[1])[:, :, None]
        estimate = (self._whitening.transpose(0, 2, 1) @ solved)[:, :, 0]
        self._whitening = self._whitening.astype(np.float32)
        self._estimate = (estimate / (spread or 1.0)).astype(np.float32)


class _Fliphat(Player):
    """FLIPHAT on the person crossed with the arms: an arm sees the person in columns of its own.

    ``FLIPHAT(arms=...)`` plays as PrivateLinear does, which is played as well.
    """

    def __init__(self, public: StudyNumbers, epsilon: float, rng: np.random.Generator) -> None:
        self._public, self._rng = public, rng
        seed = int(rng.integers(2**62))
        self._policy = FLIPHAT(**public.arguments("FLIPHAT", epsilon), seed=seed)
        self._episode, self._estimate = 0, np.zeros((public.arms, public.columns), np.float32)

    @property
    def remaining(self) -> int:  # type: ignore[override]
        self._refresh()
        return self._policy.remaining

    def choose(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        self._refresh()
        scores = rows @ self._estimate.T
        best = scores == scores.max(axis=1, keepdims=True)
        # Equal scores, as before the first release, are broken uniformly.
        return np.asarray((best * self._rng.random(best.shape)).argmax(axis=1), np.int64)

    def learn(self, rounds: PlayedRounds) -> None:
        count = len(rounds.rows)
        blocks = np.zeros((count, self._public.arms, self._public.columns), np.float32)
        blocks[np.arange(count), rounds.arms] = rounds.rows
        # Rounds that offer the chosen arm alone: the policy keeps just that row, as it would have anyway.
        decisions = self._policy.select_batch(blocks.reshape(count, 1, -1))
        self._policy.update_batch(decisions, rounds.rewards)

    def _refresh(self) -> None:
        """Fit a full episode now: arms are chosen by the estimate that is next, or at random by the guard."""
        with self._policy._playing() as engine:
            engine._ready()
            assert isinstance(engine.known, KnownSparse)
            guarded = engine.known.earned.fallback is not None
        if self._policy.episode != self._episode:
            self._episode = self._policy.episode
            dense = self._policy.estimate.to_dense().reshape(self._public.arms, self._public.columns)
            self._estimate = dense.astype(np.float32) * (not guarded)


class _PrivateLinear(Player):
    """PrivateLinear, one context a round."""

    def __init__(self, public: StudyNumbers, epsilon: float, rng: np.random.Generator) -> None:
        self._public, self._rng = public, rng
        seed = int(rng.integers(2**62))
        self._policy = PrivateLinear(**public.arguments("PrivateLinear", epsilon), seed=seed)

    @property
    def remaining(self) -> int:  # type: ignore[override]
        with self._policy._playing() as engine:
            engine._ready()
        return self._policy.remaining

    def choose(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        rows = np.ascontiguousarray(rows[:, 1:])
        self._words = self._rng.integers(0, 2**64, len(rows), np.uint64)
        scratch = np.empty((len(rows), rows.shape[1] + 1), np.float32)
        with self._policy._playing() as engine:
            engine._ready()  # a full episode is fitted now
            arms, _ = engine.chooser.choose_dense(rows, self._public.arms, self._words, None, scratch, 0)
        return np.asarray(arms, np.int64)

    def learn(self, rounds: PlayedRounds) -> None:
        with self._policy._playing() as engine:
            chooser = engine.chooser
            # The same random words once more: the rounds that happened play the arms that were chosen.
            engine.chooser = _Again(chooser, self._words[rounds.picked])  # type: ignore[assignment]
            try:
                decisions = engine.select_batch(rounds.rows[:, 1:], None, None)
            finally:
                engine.chooser = chooser
            engine.update_batch(decisions, rounds.rewards)
        assert np.array_equal(decisions.arms, rounds.arms)


class _Again:
    """Chooses arms by random words that were drawn before."""

    def __init__(self, chooser: Any, words: npt.NDArray[np.uint64]) -> None:
        self._chooser, self._words = chooser, words

    def choose_dense(self, contexts: Any, arms: int, words: Any, *rest: Any) -> Any:
        return self._chooser.choose_dense(contexts, arms, self._words, *rest)
