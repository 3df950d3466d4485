"""What the policies without privacy have in common. They are here to be compared with.

A baseline says how it chooses (`_arms`), what it learns (`_learn`) and for how long its choice stays the same
(`remaining`). From that follow the calls of :class:`~fliphat.policies.types.Policy`, and `play`, which a
simulation uses: greedy baselines let the environment draw only what they look at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import arguments, kernels
from fliphat.contexts import Crossed
from fliphat.kernels import _rows
from fliphat.policies.engine.inputs import many_rounds, one_round
from fliphat.policies.outcomes import Environment, Played, PlayedParts, plain_block
from fliphat.policies.types import Decision, Decisions


class RefitTimes:
    """When to fit again: after every round at first, then after a tenth more, at last every `longest`."""

    def __init__(self, longest: int) -> None:
        self._longest = arguments.integer("refit_every", longest, 1, 2**31 - 1)

    def after(self, rounds: int) -> int:
        """Return the round of the first fit after `rounds` rounds."""
        return rounds + min(self._longest, max(1, rounds // 10))


class Baseline(ABC):
    """A policy without privacy that learns from every reward; rows are kept until their reward comes.

    `rounds`: rounds whose reward has come.
    """

    #: Rounds that a simulation may draw together although the choice changes in between.
    _together = 0

    def __init__(self, dim: int, seed: int | None) -> None:
        self.dim = arguments.integer("dim", dim, 1, 2**31 - 1)
        self.rounds = 0
        self._rng = np.random.default_rng(
            None if seed is None else arguments.integer("seed", seed, 0, 2**64 - 1)
        )
        self._next_id = 1
        self._waiting: dict[int, npt.NDArray[Any]] = {}
        #: The round after which the choice may change, and what arms are scored by until then.
        self._next = 1
        self._estimate: npt.NDArray[np.float64] = np.zeros(self.dim)

    @property
    def remaining(self) -> int:
        """Rounds until the choice may change, at least 1."""
        return max(1, self._next - self.rounds)

    @property
    def estimate(self) -> npt.NDArray[np.float64]:
        """What arms are scored by, shape (dim,), before any optimism."""
        return self._estimate

    @abstractmethod
    def _arms(self, contexts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Choose an arm for each of some rounds, shape (n, K, dim)."""

    @abstractmethod
    def _learn(self, rows: npt.NDArray[Any], rewards: npt.NDArray[np.float64]) -> None:
        """Learn from the chosen rows; `rounds` has counted them already."""

    # Rounds one by one or in batches, as for every policy

    def select(self, contexts: Any, user: Any = None, key: Any = None) -> Decision:
        """Play one round; `user` and `key` are accepted and not used."""
        checked, arms = one_round(contexts, self.dim)
        return next(iter(self._select(checked, 1, arms)))

    def select_batch(
        self, contexts: Any, users: Sequence[Any] | None = None, *, arms: int | None = None
    ) -> Decisions:
        """Play several rounds, at most `remaining`."""
        checked, count, each = many_rounds(contexts, self.dim, arms)
        if not isinstance(each, int):
            raise ValueError("contexts must have as many arms in every round of a batch for a baseline")
        if count > self.remaining:
            raise ValueError(
                f"contexts must have at most policy.remaining = {self.remaining} rounds, got {count}"
            )
        return self._select(checked, count, each)

    def _select(self, contexts: Any, count: int, arms: int) -> Decisions:
        if isinstance(contexts, _rows.Sparse):
            raise TypeError(f"contexts must be dense for {type(self).__name__}, got CSR")
        contexts = contexts.to_dense() if isinstance(contexts, Crossed) else contexts
        rounds = contexts.reshape(count, arms, self.dim)
        chosen = self._arms(rounds)
        ids = np.arange(self._next_id, self._next_id + count, dtype=np.int64)
        self._next_id += count
        self._waiting.update(zip(ids.tolist(), rounds[np.arange(count), chosen], strict=True))
        return Decisions(ids, chosen, np.ones(count, np.bool_), 0, np.full(count, np.nan))

    def update(self, decision: Decision | int, reward: float) -> bool:
        """Hand in one reward; always in time."""
        return bool(self.update_batch([decision], [reward]))

    def update_batch(self, decisions: Any, rewards: npt.ArrayLike) -> int:
        """Hand in several rewards; all of them are in time."""
        given: Iterable[Any] = decisions.ids.tolist() if isinstance(decisions, Decisions) else decisions
        ids = [one.id if isinstance(one, Decision) else int(one) for one in given]
        numbers = _rows.vector("rewards", rewards, len(ids), ", one reward for each decision")
        if not np.isfinite(numbers).all():
            raise ValueError("rewards must be finite numbers")
        if len(set(ids)) < len(ids) or not all(one in self._waiting for one in ids):
            raise ValueError("decisions must be ones that this policy made and that have no reward yet")
        if ids:
            self._take_in(np.stack([self._waiting.pop(one) for one in ids]), numbers)
        return len(ids)

    def _take_in(self, rows: npt.NDArray[Any], rewards: npt.NDArray[np.float64]) -> None:
        self.rounds += len(rewards)
        self._learn(rows, rewards)

    # Simulations

    def play(self, environment: Environment, rounds: int) -> Played:
        """Play simulated rounds; what `fliphat.simulation.play` calls."""
        if environment.dim != self.dim:
            raise ValueError(
                f"environment must have the policy's dim = {self.dim}, got dim = {environment.dim}"
            )
        parts = PlayedParts()
        while parts.rounds < rounds:
            most = max(self.remaining, self._together)
            parts.add(self._play_some(environment, min(rounds - parts.rounds, most)))
        return parts.joined()

    def _play_some(self, environment: Environment, most: int) -> Any:
        drawn = environment.draw(min(most, plain_block(environment)))
        outcome = drawn.settle(self._arms(drawn.contexts))
        self._take_in(outcome.rows, outcome.rewards)
        return outcome


class GreedyBaseline(Baseline):
    """A baseline that plays the arm that scores best under one estimate, ties broken uniformly."""

    _keeps_rows = True

    def _arms(self, contexts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        return np.asarray(kernels.select_arms(contexts, self.estimate, self._rng), np.int64)

    def _play_some(self, environment: Environment, most: int) -> Any:
        outcome = environment.play(most, self.estimate, rows=self._keeps_rows)
        self._take_in(outcome.rows, outcome.rewards)
        return outcome
