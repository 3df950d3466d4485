"""What the peers have in common: a statistic, a rule of release, noise, and arms played on what was released.

Everything after the noise is public. Rows and rewards wait between two boundaries of the rule, become
integers and one sum (:mod:`fliphat.lab.peers.sums`), and are forgotten.

Peers are for simulation: to compare with, with noise that would protect. They keep no store, no user ids
and no late rewards; :class:`fliphat.FLIPHAT` does.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, solve_triangular

from fliphat import arguments, kernels
from fliphat.lab.baselines.baseline import Baseline
from fliphat.lab.peers.rules import ReleasedSums, Rule
from fliphat.lab.peers.sums import GramAndMoment, Noise, SecondMoments, Statistic, bought, price
from fliphat.policies.outcomes import Environment
from fliphat.privacy.priced import VectorNoise

CALIBRATIONS: Final = ("proven", "paper")

#: alpha of confidence widths.
FAILURE: Final = 0.01

_Floats = npt.NDArray[np.float64]


def default_norm(dim: int, context_norm: float | None) -> float:
    """Return L: by default that of contexts whose columns have size 1."""
    return math.sqrt(dim) if context_norm is None else arguments.positive("context_norm", context_norm)


@dataclass(frozen=True, kw_only=True)
class PeerPrivacy:
    """What a peer's noise gives, computed from the noise itself."""

    #: "joint", "local" or "rewards only".
    notion: str
    #: What of one person may change.
    protects: str
    #: What the noise really buys.
    epsilon: float
    delta: float
    #: What was asked for: with a paper's constants it may be far from `epsilon`, on either side.
    claimed_epsilon: float
    #: Whether `epsilon` is a theorem about this code: integers before the noise, exact samplers. False
    #: where the mechanism's own arithmetic is in floats.
    proven: bool = True

    @property
    def kept(self) -> bool:
        """Whether the noise buys what was claimed; `epsilon` is within a millionth of the smallest shown."""
        return bool(self.epsilon <= self.claimed_epsilon * (1 + 1e-5))

    def __str__(self) -> str:
        kept = "keeps" if self.kept else "does NOT keep"
        return (
            f"{self.notion} privacy of {self.protects}: epsilon = {self.epsilon:.3g} at "
            f"delta = {self.delta:g}; it {kept} the claimed {self.claimed_epsilon:g}"
            + ("" if self.proven else " (in real arithmetic: its noise is made of floats)")
        )


class PrivatePeer(Baseline):
    """A policy with a claim, whose estimate changes at rounds that are known before."""

    #: What a guarantee says; see :class:`PeerPrivacy`.
    notion = "joint"
    protects = "a round's contexts and reward"
    proven = True

    def __init__(self, dim: int, epsilon: float, delta: float, seed: int | None) -> None:
        super().__init__(dim, seed)
        self.epsilon, self.delta = arguments.positive("epsilon", epsilon), delta

    @abstractmethod
    def _bought(self) -> float:
        """Return the epsilon that the noise really buys."""

    @property
    def privacy(self) -> PeerPrivacy:
        """What the noise buys."""
        return PeerPrivacy(
            notion=self.notion,
            protects=self.protects,
            epsilon=self._bought(),
            delta=self.delta,
            claimed_epsilon=self.epsilon,
            proven=self.proven,
        )

    def _arms(self, contexts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        return np.asarray(kernels.select_arms(contexts, self._estimate, self._rng), np.int64)


class Peer(PrivatePeer):
    """A policy that learns from noisy sums of its rows."""

    def __init__(
        self,
        dim: int,
        epsilon: float,
        delta: float,
        *,
        statistic: Statistic,
        rule: Rule,
        noise: VectorNoise,
        seed: int | None,
    ) -> None:
        super().__init__(dim, epsilon, delta, seed)
        self.statistic, self.rule, self.noise = statistic, rule, noise
        rng = None if seed is None else np.random.default_rng([seed, self.dim, 15])
        self._running = rule.running(Noise(statistic, noise, rng))
        self._next = rule.after(0)
        self._new: list[tuple[npt.NDArray[Any], _Floats]] = []

    @staticmethod
    def _proven(statistic: Statistic, rule: Rule, epsilon: float, delta: float) -> VectorNoise:
        """Return the smallest noise that the claim allows."""
        (noise,) = price(statistic, rule.nodes, epsilon=epsilon, delta=delta).noise
        assert isinstance(noise, VectorNoise)
        return noise

    def _bought(self) -> float:
        return bought(self.noise, self.delta)

    @abstractmethod
    def _read(self, released: ReleasedSums) -> None:
        """Learn from what was released: public."""

    def _learn(self, rows: npt.NDArray[Any], rewards: _Floats) -> None:
        self._new.append((rows, rewards))
        if self.rounds >= self._next:
            sums = np.zeros(self.statistic.size, np.int64)
            for some_rows, some_rewards in self._new:
                sums += self.statistic.of(some_rows, some_rewards)
            rows_of_block = [some_rows for some_rows, _ in self._new]
            self._new = []
            released = self._release(sums, rows_of_block)
            if released is not None:
                self._read(released)
            self._next = self.rule.after(self.rounds)

    def _release(self, sums: npt.NDArray[np.int64], rows: list[npt.NDArray[Any]]) -> ReleasedSums | None:
        """Release the sums between two boundaries; None where public rules say to wait."""
        return self._running.add(sums, sum(map(len, rows)))

    def _play_some(self, environment: Environment, most: int) -> Any:
        """Play greedily: the environment draws only what is looked at."""
        outcome = environment.play(min(most, 4096), self._estimate)
        self._take_in(outcome.rows, outcome.rewards)
        return outcome


class OptimisticPeer(Peer):
    """A peer that solves normal equations, and may add a bonus for what is uncertain.

    `optimistic`: whether arms get the width times ``|x|_{V^-1}``; greedy otherwise.
    """

    def __init__(self, dim: int, epsilon: float, delta: float, *, optimistic: bool, **options: Any) -> None:
        super().__init__(dim, epsilon, delta, **options)
        self.optimistic = optimistic
        # The Cholesky factor of V, in single precision: it is only asked for lengths of contexts.
        self._root: npt.NDArray[np.float32] | None = None
        self._bonus = 0.0

    def _width(self, released: ReleasedSums) -> float:
        """Return how many units of ``|x|_{V^-1}`` an arm's bonus has; only asked of the optimistic."""
        return 0.0

    def _use(self, matrix: _Floats, moment: _Floats, released: ReleasedSums) -> None:
        if not self.optimistic:
            self._estimate = np.asarray(np.linalg.solve(matrix, moment), np.float64)
            return
        root = _positive_root(matrix)
        self._estimate = np.asarray(cho_solve((root, True), moment), np.float64)
        self._root = np.asfortranarray(root, dtype=np.float32)
        self._bonus = self._width(released)

    def _arms(self, contexts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        if self._root is None:
            return super()._arms(contexts)
        count, arms, dim = contexts.shape
        # |C^-1 x| with C C' = V is the length of x under the inverse of V.
        columns = contexts.reshape(-1, dim).T.astype(np.float32, copy=False)
        whitened = solve_triangular(self._root, columns, lower=True, check_finite=False)
        errors = np.linalg.norm(whitened, axis=0).reshape(count, arms)
        return np.asarray((contexts @ self._estimate + self._bonus * errors).argmax(axis=1), np.int64)

    def _play_some(self, environment: Environment, most: int) -> Any:
        if self._root is None:
            return super()._play_some(environment, most)
        drawn = environment.draw(min(most, 1024))
        outcome = drawn.settle(self._arms(drawn.contexts))
        self._take_in(outcome.rows, outcome.rewards)
        return outcome


class RidgePeer(OptimisticPeer):
    """A peer whose X'X is noisy, too.

    `rule`: when sums are released.
    `context_norm`, `reward_clip`, `reward_share`: L (by default sqrt(d)), R and kappa; see
    :class:`fliphat.lab.peers.sums.SecondMoments`.
    `calibration`: the smallest noise for the claim, or the published one.
    `optimistic`: whether arms have a bonus; greedy otherwise.
    `horizon`: T, of widths.
    `truth_norm`, `reward_noise`: S and sigma of the width.
    `seed`: simulated noise; without one, noise as people would get.
    """

    statistic: SecondMoments | GramAndMoment

    def __init__(
        self,
        dim: int,
        epsilon: float,
        delta: float,
        *,
        rule: Rule,
        context_norm: float | None = None,
        reward_clip: float = 4.0,
        reward_share: float = 0.5,
        calibration: str = "proven",
        optimistic: bool = True,
        horizon: int = 2**20,
        truth_norm: float = 2.0,
        reward_noise: float = 0.1,
        seed: int | None = None,
    ) -> None:
        arguments.choice("calibration", calibration, CALIBRATIONS)
        norm = default_norm(dim, context_norm)
        if calibration == "paper":
            statistic, noise = self._published(dim, rule, norm, reward_clip, epsilon, delta)
        else:
            statistic = SecondMoments(
                dim, context_norm=norm, reward_clip=reward_clip, reward_share=reward_share
            )
            noise = self._proven(statistic, rule, epsilon, delta)
        rule = self._weighted(rule, statistic.noise_rows(noise))
        made: dict[str, Any] = {"statistic": statistic, "rule": rule, "noise": noise}
        super().__init__(dim, epsilon, delta, optimistic=optimistic, seed=seed, **made)
        self.calibration, self.horizon = calibration, horizon
        self._norm, self._truth_norm, self._reward_noise = norm, truth_norm, reward_noise

    def _published(
        self, dim: int, rule: Any, norm: float, reward_clip: float, epsilon: float, delta: float
    ) -> tuple[SecondMoments | GramAndMoment, VectorNoise]:
        """Return the paper's statistic and its noise."""
        raise ValueError(f"calibration must be 'proven' for {type(self).__name__}, got 'paper'")

    def _weighted(self, rule: Rule, noise_rows: float) -> Rule:
        """Return the rule, with weights that know the noise where it has any."""
        return rule

    def _upsilon(self, released: ReleasedSums) -> float:
        """Return a bound on the norm of the noise in X'X."""
        return self._noise_norm(released, self.horizon)

    def _shift(self, released: ReleasedSums) -> float:
        """Return what is added to the diagonal of the noisy X'X."""
        return (2.0 if self.optimistic else 1.0) * self._upsilon(released)

    def _nodes(self, released: ReleasedSums) -> float:
        """Return how many noises the width counts."""
        return released.nodes

    def _sampling(self, released: ReleasedSums, least: float) -> float:
        spread = self.dim * math.log(3 + released.rows * self._norm**2 / (self.dim * least))
        return self._reward_noise * math.sqrt(2 * math.log(2 / FAILURE) + spread)

    def _width(self, released: ReleasedSums) -> float:
        least = self._upsilon(released)
        deviation = self.statistic.gram_deviation(self.noise) * math.sqrt(self._nodes(released) / least)
        gamma = deviation * (math.sqrt(self.dim) + math.sqrt(2 * math.log(2 * self.horizon / FAILURE)))
        return self._sampling(released, least) + self._truth_norm * math.sqrt(3 * least) + gamma

    def _noise_norm(self, released: ReleasedSums, horizon: float) -> float:
        """Return a bound on the operator norm of the noise in X'X that holds in all rounds with 1 - alpha.

        ``sd * (2 sqrt(d) + sqrt(2 ln(2 T / alpha)))`` for a symmetric Gaussian matrix whose entries have the
        deviation sd above the diagonal and sqrt(2) sd on it.
        """
        deviation = self.statistic.gram_deviation(self.noise) * math.sqrt(released.nodes)
        return deviation * (2 * math.sqrt(self.dim) + math.sqrt(2 * math.log(2 * horizon / FAILURE)))

    def _read(self, released: ReleasedSums) -> None:
        gram, moment = self.statistic.read(released.values)
        gram[np.diag_indices(self.dim)] += self._shift(released)
        self._use(gram, moment, released)


class SteppingPeer(PrivatePeer):
    """A peer whose estimate changes with every round, greedily played."""

    #: Rounds that are drawn at once, to be played one by one.
    _together = 256

    @abstractmethod
    def _step_on(self, row: npt.NDArray[Any], reward: float) -> None:
        """Learn from one round; `rounds` has counted it already."""

    def _learn(self, rows: npt.NDArray[Any], rewards: _Floats) -> None:
        # Rewards that came together are learned from one by one, each as the round that it is.
        self.rounds -= len(rewards)
        for row, reward in zip(rows, rewards, strict=True):
            self.rounds += 1
            self._step_on(row, float(reward))

    def _play_some(self, environment: Environment, most: int) -> Any:
        """Play rounds that are drawn together one by one."""
        drawn = environment.draw(most)
        count, arms = drawn.means.shape
        rewards = [drawn.settle(np.full(count, arm), rows=False).rewards for arm in range(arms)]
        chosen = np.zeros(count, np.int64)
        for i, contexts in enumerate(drawn.contexts):
            known = self._estimate.any()
            arm = int((contexts @ self._estimate).argmax() if known else self._rng.integers(arms))
            chosen[i] = arm
            self.rounds += 1
            self._step_on(contexts[arm], float(rewards[arm][i]))
        return drawn.settle(chosen, rows=False)


def _positive_root(matrix: _Floats) -> _Floats:
    """Return a Cholesky factor, of eigenvalues raised to a small positive share of the largest if need be.

    A width's shift makes the matrix positive with probability 1 - alpha; this is for the rest.
    """
    try:
        return np.asarray(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrix)
        raised = np.maximum(values, 1e-3 * np.abs(values).max() + 1e-300)
        return np.asarray(np.linalg.cholesky((vectors * raised) @ vectors.T))
