"""LinUCB on shuffled random bits: every person sends one noisy bit for each entry of x x' and of x y.

| Garcelon et al., SBLB | here |
|---|---|
| entries scaled to [0, 1], rounded at random to bits | `_bits`, one bit an entry (m = 1 is ours) |
| a bit is a fair coin with probability p = 2 / (exp(eps_0 / D) + 1) for D = d (d + 3) / 2 | `coin_share` |
| eps_0 = 6 d^2 epsilon^(2/3) T^(1/6) local privacy | `published_local_epsilon` |
| batches of sqrt(T (1 - p)) / epsilon people, whose sums are seen | `_batch`, epsilon at most 1 there |
| sums debiased by 1 / (1 - p), V = sums + 2 lambda I | `_read` |

Their corollary 9 needs epsilon below 1 / (27 T^(1/4)), .0031 at T = 20 000: at epsilon = 1 its p is 0 but for
rounding, the bits are sent as they are, and nothing is private. With ``calibration="proven"`` p is the
smallest share of coins at which the sums are shown to keep the claim. The switch reads released sums alone,
by Rayleigh quotients: a determinant of noisy matrices bounds no direction.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp
from scipy.stats import binom

from fliphat import arguments
from fliphat.lab.peers.peer import CALIBRATIONS, FAILURE, PrivatePeer, default_norm
from fliphat.lab.peers.rare_switching import largest_quotient

_Floats = npt.NDArray[np.float64]

#: Entries of the largest matrix that is simulated bit by bit.
_MOST_ENTRIES = 20_000


def published_local_epsilon(dim: int, epsilon: float, horizon: int) -> float:
    """Return eps_0, the local privacy that the paper's regret bound goes with."""
    return float(6 * dim**2 * epsilon ** (2 / 3) * horizon ** (1 / 6))


def coin_share(bit_epsilon: float) -> float:
    """Return p, the chance that a bit is a fair coin, where a bit alone has `bit_epsilon` local privacy."""
    return 2 / (math.exp(min(bit_epsilon, 700.0)) + 1)


def bought(entries: int, batch: int, coins: float, delta: float) -> float:
    """Return the epsilon of a batch's sums at `delta`, whatever the others' bits are; it may be infinite.

    Coins are told apart from true bits, which are revealed: then an entry shows the person's own bit plus
    Binomial(F, 1/2), with F coins among the others. F is at least f in all entries but for half of delta, and
    the entries' Renyi divergences at f add up.
    """
    few = int(binom.ppf(delta / (2 * entries), batch - 1, coins)) - 1
    if few < 1:
        return math.inf
    k = np.arange(few + 2)
    heads = gammaln(few + 1) - gammaln(k + 1) - gammaln(np.maximum(few - k, 0) + 1) - few * math.log(2)
    fair = np.where(k <= few, heads, -np.inf)
    shifted = np.concatenate([[-np.inf], fair[:-1]])
    true, other = math.log(1 - coins / 2), math.log(coins / 2)
    one, zero = np.logaddexp(true + shifted, other + fair), np.logaddexp(other + shifted, true + fair)
    best = math.inf
    for order in 1 + np.geomspace(0.01, 200, 120):
        divergence = float(logsumexp(order * one + (1 - order) * zero)) / (order - 1)
        spent = math.log(2 / delta) + (order - 1) * math.log(1 - 1 / order) - math.log(order)
        best = min(best, entries * divergence + spent / (order - 1))
    return best


class GarcelonShuffle(PrivatePeer):
    """LinUCB (or greedy ridge) on sums of batches of random bits. Joint for the sums, local for each person.

    Parameters
    ----------
    dim : int
        Defined for any; simulated up to 198, beyond which a person would send 20 000 bits.
    context_norm, reward_clip : float
        L (by default sqrt(d)) and R, to which rows are scaled.

    References
    ----------
    E. Garcelon, K. Chaudhuri, V. Perchet, M. Pirotta, "Privacy Amplification via Shuffling for Linear
    Contextual Bandits", ALT 2022.

    Examples
    --------
    >>> from fliphat.lab.peers import GarcelonShuffle
    >>> published = GarcelonShuffle(20, 1.0, 0.01, horizon=20_000, calibration="paper")
    >>> published.privacy.kept, published.batch
    (False, 142)
    >>> GarcelonShuffle(20, 1.0, 0.01, horizon=20_000).privacy.kept
    True
    """

    protects = "a round's chosen context and reward"
    proven = False  # bits and coins come from NumPy's floats

    def __init__(
        self,
        dim: int,
        epsilon: float,
        delta: float,
        *,
        horizon: int,
        context_norm: float | None = None,
        reward_clip: float = 4.0,
        calibration: str = "proven",
        optimistic: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__(dim, epsilon, delta, seed)
        arguments.choice("calibration", calibration, CALIBRATIONS)
        self._upper = np.triu_indices(self.dim)
        self.entries = len(self._upper[0]) + self.dim
        if self.entries > _MOST_ENTRIES:
            raise ValueError(
                f"dim must be at most 198: a person sends one bit for each of {self.entries} entries"
            )
        self.horizon, self.optimistic = horizon, optimistic
        self._norm, self._clip = (
            default_norm(dim, context_norm),
            arguments.positive("reward_clip", reward_clip),
        )
        if calibration == "paper":
            self.coins = coin_share(published_local_epsilon(dim, epsilon, horizon) / self.entries)
            self.batch = self._batch(self.coins)
        else:
            self.coins = self._fewest_coins()
            self.batch = self._batch(self.coins)
        self._next = self.batch
        self._sums, self._people = np.zeros(self.entries), 0
        self._new: list[tuple[npt.NDArray[Any], _Floats]] = []
        self._at: _Floats | None = None
        self._inverse: _Floats | None = None
        self._bonus = 0.0

    def _batch(self, coins: float) -> int:
        return max(2, math.ceil(math.sqrt(self.horizon * (1 - coins)) / min(self.epsilon, 1.0)))

    def _fewest_coins(self) -> float:
        low, high = 0.0, 1 - 1e-4
        for _ in range(40):
            middle = (low + high) / 2
            if bought(self.entries, self._batch(middle), middle, self.delta) <= self.epsilon:
                high = middle
            else:
                low = middle
        return high

    def _bought(self) -> float:
        """Return what the coins buy against everyone who sees the sums."""
        return bought(self.entries, self.batch, self.coins, self.delta)

    @property
    def local_epsilon(self) -> float:
        """What a person has against who sees all their bits."""
        return math.inf if self.coins == 0 else self.entries * math.log(2 / self.coins - 1)

    def _bits(self, rows: npt.NDArray[Any], rewards: _Floats) -> npt.NDArray[np.int64]:
        """Return sums over people of the bits that they send: rounded at random, then some made coins."""
        x = np.asarray(rows, np.float64)
        x = x * np.minimum(1, self._norm / np.maximum(np.linalg.norm(x, axis=1), 1e-300))[:, None]
        y = np.clip(rewards, -self._clip, self._clip)
        pairs = x[:, self._upper[0]] * x[:, self._upper[1]] / self._norm**2
        entries = np.concatenate([pairs, x * y[:, None] / (self._norm * self._clip)], axis=1)
        bits = self._rng.random(entries.shape) < (entries + 1) / 2
        return shuffled(bits, self.coins, self._rng)

    def _learn(self, rows: npt.NDArray[Any], rewards: _Floats) -> None:
        self._new.append((rows, rewards))
        if self.rounds < self._next:
            return
        for some_rows, some_rewards in self._new:
            self._sums += self._bits(some_rows, some_rewards)
            self._people += len(some_rewards)
        self._new, self._next = [], self.rounds + self.batch
        self._read()

    def _read(self) -> None:
        n, d, kept = self._people, self.dim, 1 - self.coins
        # A bit is 1 with probability (1 + kept z) / 2 for an entry z in [-1, 1].
        entries = (2 * self._sums - n) / max(kept, 1e-12)
        gram = np.zeros((d, d))
        gram[self._upper] = entries[:-d] * self._norm**2
        gram = gram + np.triu(gram, 1).T
        deviation = math.sqrt(n) / max(kept, 1e-12) * self._norm**2
        spread = 2 * math.sqrt(d) + math.sqrt(2 * math.log(2 * self.horizon / FAILURE))
        shift = deviation * spread
        matrix = gram + (2.0 if self.optimistic else 1.0) * shift * np.eye(d)
        if self._at is not None and largest_quotient(self._at, matrix) <= 1.5:
            return
        self._at = matrix
        solved = np.linalg.solve(matrix, entries[-d:] * self._norm * self._clip)
        self._estimate = np.asarray(solved, np.float64)
        if self.optimistic:
            values, vectors = np.linalg.eigh(matrix)
            self._inverse = vectors / np.sqrt(np.maximum(values, 1e-3 * np.abs(values).max()))
            noise = deviation * self._clip / self._norm * math.sqrt(d / shift)
            self._bonus = 2.0 * math.sqrt(3 * shift) + noise

    def _arms(self, contexts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        if not self._estimate.any():
            return self._rng.integers(contexts.shape[1], size=len(contexts))
        scores = contexts @ self._estimate
        if self._inverse is not None:
            scores = scores + self._bonus * np.linalg.norm(contexts @ self._inverse, axis=2)
        return np.asarray(scores.argmax(axis=1), np.int64)


def shuffled(bits: npt.NDArray[np.bool_], coins: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return each entry's sum over people of bits, of which a share `coins` is made fair coins."""
    ones = bits.sum(axis=0)
    zeros = len(bits) - ones
    return np.asarray(rng.binomial(ones, 1 - coins / 2) + rng.binomial(zeros, coins / 2), np.int64)
