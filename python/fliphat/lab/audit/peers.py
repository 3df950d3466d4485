"""The peers' cases for the audit: one person's row swapped, with noisy sums looked at through the likelihood.

The code that sums rows, draws noise and puts releases together runs as it does in a policy, on many copies of
the sums at once: a rule does not know what its integers mean.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.lab.audit.bounds import Counts
from fliphat.lab.audit.cases import Case
from fliphat.lab.peers import HannaElimination, garcelon, hanna
from fliphat.lab.peers.rules import Blocks, Draw, ReleasedSums, Rule, Running, Tree
from fliphat.lab.peers.sums import Moments, Noise, SecondMoments, Statistic, price
from fliphat.privacy.priced import VectorNoise

_EPSILON, _DELTA = 1.0, 0.2
_DIM: Final = 2
_BINS: Final = 256
_LEAVES: Final = 32

_Side = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def peer_cases() -> list[Case]:
    """Return the rules of release on hurtful neighbours, and the controls."""
    second = SecondMoments(_DIM, context_norm=1.0, reward_clip=1.0)
    moments = Moments(_DIM, product_clip=1.0)
    # Along different axes: the move that reaches sqrt(2) B^2.
    axes = ((np.array([[1e9, 0.0]]), np.zeros(1)), (np.array([[0.0, 1e9]]), np.zeros(1)))
    opposite = ((np.ones((1, _DIM)), np.full(1, 1e9)), (np.ones((1, _DIM)), np.full(1, -1e9)))
    half = _calibrated(second, 1)
    short = second.noise(1, round(half.parts[0].sigma / 2**0.5))
    tree = Tree(leaf=1, horizon=_LEAVES)
    return [
        _released("peers, second moments of a block", second, Blocks(1), axes),
        _released("peers, moments of a block", moments, Blocks(1), opposite),
        _released("peers, every prefix of a tree", moments, tree, opposite),
        _released(
            "peers, sensitivity B^2 for sqrt(2) B^2",
            second,
            Blocks(1),
            axes,
            noise=short,
            broken="one row's size where two rows differ",
        ),
        _released(
            "peers, a node's noise drawn anew in every prefix",
            moments,
            _Redrawn(leaf=1, horizon=_LEAVES),
            opposite,
            broken="noise of one node in many releases averages out",
        ),
        boundary_case("peers, a block that ends when rewards are high"),
        _bits("peers, sums of shuffled bits", 60),
        _bits("peers, coins for sixty people, six there", 6, "coins of people who are not there"),
        _rewards("peers, reward sums of a phase"),
        _rewards("peers, reward sums with half the noise", "noise for a reward that is added, not replaced"),
    ]


class _Many(Statistic):
    """So many copies of a statistic, side by side."""

    def __init__(self, one: Statistic, copies: int) -> None:
        self._one, self._copies = one, copies
        self.dim, self.size = one.dim, one.size * copies

    def of(self, rows: npt.NDArray[Any], rewards: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        return np.tile(self._one.of(rows, rewards), self._copies)

    def noise(self, nodes: int, *sigmas: int) -> VectorNoise:
        return self._one.noise(nodes, *sigmas)

    def spread(self, noise: VectorNoise) -> npt.NDArray[np.int64]:
        return np.tile(self._one.spread(noise), self._copies)

    def noise_rows(self, noise: VectorNoise) -> float:
        return self._one.noise_rows(noise)


def _calibrated(statistic: Statistic, nodes: int) -> VectorNoise:
    (noise,) = price(statistic, nodes, epsilon=_EPSILON, delta=_DELTA).noise
    assert isinstance(noise, VectorNoise)
    return noise


def _released(
    name: str,
    statistic: Statistic,
    rule: Rule,
    sides: tuple[_Side, _Side],
    *,
    noise: VectorNoise | None = None,
    broken: str | None = None,
) -> Case:
    """Return a case with a person in the first row; all prefixes are weighed as the likelihood does."""
    drawn = noise or _calibrated(statistic, rule.nodes)
    sums = [statistic.of(*side) for side in sides]
    spread = statistic.spread(drawn).astype(np.float64)
    weights = (sums[0] - sums[1]) / spread**2
    middle = (sums[0] + sums[1]) / 2
    steps = _LEAVES if isinstance(rule, Tree) else 1

    def scores(side: _Side, runs: int, rng: np.random.Generator | None) -> npt.NDArray[np.float64]:
        many = _Many(statistic, runs)
        running = rule.running(Noise(many, drawn, rng))
        nothing = np.zeros(many.size, np.int64)
        total = np.zeros(runs)
        for step in range(steps):
            released = running.add(many.of(*side) if step == 0 else nothing, 1)
            # A prefix of k nodes tells a k-th; in a tree whose noise stays, only those of one node are new.
            if released.nodes == 1 or isinstance(rule, _Redrawn):
                values = released.values.reshape(runs, -1) - middle
                total += (values @ weights) / released.nodes
        return total

    reach = 8 * np.sqrt(steps) + 8.0 * steps

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        rng = None if seed is None else np.random.default_rng(seed)
        return [_histograms([scores(side, runs, rng) for side in sides], reach)]

    return Case(name, _EPSILON, _DELTA, count, broken, cost=1 if steps == 1 else 8)


def _histograms(scores: list[npt.NDArray[np.float64]], reach: float) -> Counts:
    edges = np.linspace(-reach, reach, _BINS + 1)
    first, second = (np.histogram(np.clip(one, -reach, reach), edges)[0].astype(np.uint64) for one in scores)
    return first, second


class _Redrawn(Tree):
    """Broken: a tree whose nodes get fresh noise in every prefix that they are part of."""

    def running(self, draw: Draw) -> Running:
        kept = Tree(self.leaf, self.horizon).running(lambda sums: sums.astype(np.float64))
        return _Fresh(kept, draw)


class _Fresh(Running):
    def __init__(self, kept: Running, draw: Draw) -> None:
        self._kept, self._draw = kept, draw

    def add(self, sums: npt.NDArray[np.int64], rows: int) -> ReleasedSums:
        exact = self._kept.add(sums, rows)
        noisy = self._draw(exact.values.astype(np.int64))
        for _ in range(int(exact.nodes) - 1):
            noisy += self._draw(np.zeros(len(sums), np.int64))
        return ReleasedSums(noisy, exact.rows, exact.nodes)


def _bits(name: str, there: int, broken: str | None = None) -> Case:
    """Return a case of Garcelon's sums: coins priced for a batch of 60, in a batch of another size."""
    entries = _DIM * (_DIM + 3) // 2
    shares = np.linspace(0.05, 0.999, 400)
    coins = next(share for share in shares if garcelon.bought(entries, 60, share, _DELTA) <= _EPSILON)

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        rng = np.random.default_rng(seed)
        sides = []
        for own in (True, False):
            bits = np.zeros((there, entries * runs), bool)
            bits[0], bits[1 : (there + 1) // 2] = own, True
            sums = garcelon.shuffled(bits, coins, rng).reshape(runs, entries).sum(axis=1)
            sides.append((sums - entries * there / 2) / np.sqrt(entries * there))
        return [_histograms(sides, 4.0)]

    return Case(name, _EPSILON, _DELTA, count, broken, cost=16)


def _rewards(name: str, broken: str | None = None) -> Case:
    """Return a case of Hanna's sums, or of one with half their noise."""
    policy = HannaElimination(_DIM, _EPSILON, _DELTA, horizon=1000, reward_clip=1.0)
    scale = policy.noise_scale if broken is None else policy.noise_scale // 2

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        rng = None if seed is None else np.random.default_rng(seed)
        sums = [np.full(runs, sign * hanna.STEPS, np.int64) for sign in (1, -1)]
        return [_histograms([hanna.noisy(side, scale, rng) / scale for side in sums], 16.0)]

    return Case(name, _EPSILON, _DELTA, count, broken)


def boundary_case(name: str) -> Case:
    """Return a broken case: rewards decide when a block is released, which everyone sees."""

    def ends(first_reward: float) -> int:
        return 1 if first_reward > 0 else 2

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        return [_histograms([np.full(runs, float(ends(reward))) for reward in (1.0, -1.0)], 4.0)]

    return Case(name, _EPSILON, _DELTA, count, "a boundary that reads rewards")
