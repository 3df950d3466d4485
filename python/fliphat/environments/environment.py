"""What every environment offers: rounds to play, in two ways of the same distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat import arguments

MAX_SEED = 2**64 - 1
MAX_ROUNDS = 2**40
MOST_AT_ONCE = 2**31 - 1

Pairs: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a policy met in some rounds, one entry a round.

    Attributes
    ----------
    arms : ndarray of int64, shape (n,)
        The arms played.
    rewards : ndarray of float64, shape (n,)
    regret : ndarray of float64, shape (n,)
        The best arm's mean reward less the played arm's; never negative.
    rows : ndarray of float32, shape (n, dim), or SciPy CSR array, or None
        Contexts of the arms played; None where they were not asked for.
    """

    arms: npt.NDArray[np.int64]
    rewards: npt.NDArray[np.float64]
    regret: npt.NDArray[np.float64]
    rows: Any

    def __len__(self) -> int:
        return len(self.arms)


@dataclass(frozen=True, eq=False)
class Rounds:
    """Rounds drawn whole, waiting for arms.

    Attributes
    ----------
    contexts : ndarray of float32, shape (n, K, dim), or SciPy CSR array, shape (n * K, dim)
        Every arm's context.
    means : ndarray of float64, shape (n, K)
        Every arm's mean reward: what a policy must not see.
    """

    contexts: Any
    means: npt.NDArray[np.float64]
    _noise: npt.NDArray[np.float64]
    _binary: bool

    def __len__(self) -> int:
        return len(self.means)

    def settle(self, arms: npt.ArrayLike, *, rows: bool = True) -> Outcome:
        """Play one arm in each round.

        Parameters
        ----------
        arms : array_like of int, shape (n,)
        rows : bool, default True
            Whether the outcome holds (copies of) the contexts of the arms played.

        Returns
        -------
        Outcome
            Playing the same rounds again draws the same reward noise.

        Examples
        --------
        >>> from fliphat.environments import SparseLinear
        >>> rounds = SparseLinear(dim=20, sparsity=2, seed=1).draw(3)
        >>> rounds.settle(rounds.means.argmax(axis=1)).regret
        array([0., 0., 0.])
        """
        count, width = self.means.shape
        chosen = np.asarray(arms)
        if chosen.shape != (count,) or chosen.dtype.kind not in "iu":
            raise ValueError(
                f"arms must hold one integer for each of {count} rounds, "
                f"got dtype {chosen.dtype} and shape {chosen.shape}"
            )
        if count and not 0 <= chosen.min() <= chosen.max() < width:
            raise ValueError(
                f"arms must be from 0 to {width - 1}, got values from {chosen.min()} to {chosen.max()}"
            )
        chosen = chosen.astype(np.int64)
        each = np.arange(count)
        mean = self.means[each, chosen]
        reward = (self._noise < mean).astype(np.float64) if self._binary else mean + self._noise
        kept = None
        if rows:
            dense = isinstance(self.contexts, np.ndarray)
            kept = self.contexts[each, chosen] if dense else self.contexts[each * width + chosen]
        return Outcome(chosen, reward, self.means.max(axis=1) - mean, kept)


class Environment(ABC):
    """A bandit whose rounds are a function of (seed, round number).

    Attributes
    ----------
    dim, arms : int
        Columns of a context, and arms a round.
    seed : int
        Environments with one seed and the same settings draw the same rounds.
    round : int
        Number of the next round.
    layout : {"dense", "csr"}
        How contexts come.
    """

    layout = "dense"
    dim: int
    arms: int
    seed: int
    round: int

    def __init__(self, dim: int, arms: int, seed: int, *, most_columns: int = 2**31 - 1) -> None:
        self.dim = arguments.integer("dim", dim, 1, most_columns)
        self.arms = arguments.integer("arms", arms, 1, 2**20)
        self.seed = arguments.integer("seed", seed, 0, MAX_SEED)
        self.round = 0

    @abstractmethod
    def _play(self, first: int, rounds: int, estimate: Pairs, rows: bool, out: Any) -> Outcome: ...

    @abstractmethod
    def _draw(self, first: int, rounds: int) -> Rounds: ...

    @property
    @abstractmethod
    def truth(self) -> Pairs | None:
        """Columns (ascending) and values of the true coefficients; None if the truth is not linear."""

    @property
    def coefficients(self) -> npt.NDArray[np.float64] | None:
        """The true coefficients as a dense vector of length `dim`; None if the truth is not linear."""
        if self.truth is None:
            return None
        dense = np.zeros(self.dim)
        dense[self.truth[0]] = self.truth[1]
        return dense

    def play(self, rounds: int, estimate: Any = None, *, rows: bool = True, out: Any = None) -> Outcome:
        """Play the next rounds greedily on a sparse estimate; equal scores are broken uniformly.

        Parameters
        ----------
        rounds : int
        estimate : array_like, shape (dim,), or pair (columns, values), optional
            Columns strictly ascending. None, or all zeros, plays uniformly at random.
        rows : bool, default True
            Whether to complete the contexts of the arms played; without them a round costs next to nothing.
        out : ndarray of float32, shape (at least rounds, dim), C order, optional
            Where dense rows are written, to spare the memory of new ones.

        Returns
        -------
        Outcome
            Distributed as ``draw(rounds)`` and the greedy arms would be, up to float32 rounding.

        Examples
        --------
        >>> from fliphat.environments import SparseLinear
        >>> env = SparseLinear(dim=400, arms=3, sparsity=5, seed=7)
        >>> bool(env.play(1000, env.truth).regret.max() == 0)
        True
        >>> bool(env.play(1000).regret.mean() > 0.5), env.round
        (True, 2000)
        """
        rounds = arguments.integer("rounds", rounds, 0, MOST_AT_ONCE)
        pairs = sparse_pairs("estimate", estimate, self.dim)
        outcome = self._play(self.round, rounds, pairs, bool(rows), out)
        self.round += rounds
        return outcome

    def draw(self, rounds: int) -> Rounds:
        """Draw the next rounds whole, for a policy that chooses arms in its own way.

        Parameters
        ----------
        rounds : int
            Memory grows as rounds * arms * dim: draw long runs in parts, which changes nothing.

        Examples
        --------
        >>> from fliphat.environments import SparseLinear
        >>> rounds = SparseLinear(dim=20, arms=3, sparsity=2).draw(5)
        >>> rounds.contexts.shape, rounds.contexts.dtype.name, len(rounds.settle([0, 1, 2, 0, 1]))
        ((5, 3, 20), 'float32', 5)
        """
        rounds = arguments.integer("rounds", rounds, 0, MOST_AT_ONCE)
        drawn = self._draw(self.round, rounds)
        self.round += rounds
        return drawn

    def reset(self, round: int = 0) -> None:
        """Go (back) to a round: what follows is the same again.

        Examples
        --------
        >>> from fliphat.environments import SparseLinear
        >>> env = SparseLinear(dim=20, sparsity=2)
        >>> once = env.play(4).rewards
        >>> env.reset()
        >>> bool((env.play(4).rewards == once).all())
        True
        """
        self.round = arguments.integer("round", round, 0, MAX_ROUNDS)


def sparse_pairs(name: str, vector: Any, dim: int) -> Pairs:
    """Return columns and values of a vector given as None (zero), dense, or a pair (columns, values)."""
    if vector is None:
        return np.empty(0, np.int64), np.empty(0)
    if isinstance(vector, tuple) and len(vector) == 2:
        columns, values = (np.asarray(part) for part in vector)
        if columns.dtype.kind not in "iu" and columns.size:
            raise TypeError(f"{name}'s columns must be integers, got dtype {columns.dtype}")
        if columns.ndim != 1 or columns.shape != values.shape:
            raise ValueError(
                f"{name} must have one value for each column, got shapes {columns.shape} and {values.shape}"
            )
        columns = columns.astype(np.int64)
        if columns.size and (columns[0] < 0 or columns[-1] >= dim or np.any(np.diff(columns) <= 0)):
            raise ValueError(f"{name}'s columns must be strictly ascending from 0 to {dim - 1}")
    else:
        dense = np.asarray(vector)
        if dense.shape != (dim,):
            raise ValueError(f"{name} must have shape ({dim},), got {dense.shape}")
        columns = np.flatnonzero(dense).astype(np.int64)
        values = dense[columns]
    values = np.ascontiguousarray(values, dtype=np.float64)
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be finite")
    return np.ascontiguousarray(columns), values


def row_buffer(out: Any, rounds: int, dim: int) -> npt.NDArray[np.float32]:
    """Return the first rows of ``out``, or new memory."""
    if out is None:
        return np.empty((rounds, dim), np.float32)
    if not isinstance(out, np.ndarray) or out.dtype != np.float32:
        got = out.dtype if isinstance(out, np.ndarray) else type(out).__name__
        raise TypeError(f"out must be an array of float32, got {got}")
    if out.ndim != 2 or out.shape[1] != dim or len(out) < rounds:
        raise ValueError(f"out must have shape (at least {rounds}, {dim}), got {out.shape}")
    if not (out.flags.c_contiguous and out.flags.aligned and out.flags.writeable):
        raise ValueError("out must be writeable, aligned and in C order")
    return out[:rounds]


class NativeEnvironment(Environment):
    """An environment with a simulator in Rust, which is a function of the other attributes.

    Simulators can't be pickled. Worker processes make their own from the attributes they are sent.
    """

    _simulator: Any

    @abstractmethod
    def _make_simulator(self) -> Any:
        """Return the simulator of an environment whose other attributes are set."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_simulator"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._simulator = self._make_simulator()
