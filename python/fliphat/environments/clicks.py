"""Sparse contexts at the scale of search advertising, with binary rewards."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.environments.environment import NativeEnvironment, Outcome, Pairs, Rounds, sparse_pairs

# Keeps these draws apart from any other use of the same seed.
_STREAM = 0x636C69636B


class SparseClicks(NativeEnvironment):
    """Clicks on one of K ads: CSR contexts with one-hot and hashed features of power-law frequency.

    A row has `nonzeros` features. Most are categorical fields, each with a block of columns of which exactly
    one is 1; the rest are tokens of an open vocabulary hashed to the last columns (where two meet, the value
    is 2). The reward is 1 with probability ``1/(1 + exp(-(intercept + x'beta)))``.

    Parameters
    ----------
    dim : int, default 509_256
    arms : int, default 5
    nonzeros : int, default 50
        Features a row, 2 to 1000.
    hashed : int, optional
        How many of them are hashed tokens; by default a fifth. They own the last fifth of the columns.
    sparsity : int, default 20
        s*: true coefficients, on the most frequent columns of as many fields as there are, then on their
        second most frequent ones, and so on. Nobody could learn a coefficient
        of a column that never occurs.
    power : float, default 1.1
        Column r of a field (from 0) has a frequency of about ``1/(r+1)^power``.
    intercept : float, optional
        Log-odds of a click without features. By default what makes the average log-odds 0 (hashed columns not
        counted), so that about half of random choices are clicked and a model without intercept is not
        misled by the base rate.
    coefficients : array_like, shape (dim,), or pair (columns, values), optional
        The truth, instead of drawing one.
    seed : int, default 0

    Notes
    -----
    Nothing of length `dim` is touched in a round. Fields have sizes that grow geometrically from small ones
    (device, hour) to large ones (advertiser, query).

    Examples
    --------
    >>> env = SparseClicks(dim=10_000, arms=5, nonzeros=20, seed=1)
    >>> outcome = env.play(100)
    >>> outcome.rows.shape, outcome.rows.format, sorted(set(outcome.rewards.tolist()))
    ((100, 10000), 'csr', [0.0, 1.0])
    """

    layout = "csr"

    def __init__(
        self,
        dim: int = 509_256,
        arms: int = 5,
        *,
        nonzeros: int = 50,
        hashed: int | None = None,
        sparsity: int = 20,
        power: float = 1.1,
        intercept: float | None = None,
        coefficients: Any = None,
        seed: int = 0,
    ) -> None:
        super().__init__(dim, arms, seed)
        self.nonzeros = arguments.integer("nonzeros", nonzeros, 2, 1000)
        if hashed is None:
            hashed = self.nonzeros // 5
        self.hashed = arguments.integer("hashed", hashed, 0, self.nonzeros - 1)
        self.power = arguments.within("power", power, 0.0, 10.0)
        fields = self.nonzeros - self.hashed
        columns = self.dim - self.dim // 5 if self.hashed else self.dim
        if columns < 2 * fields:
            raise ValueError(f"dim must give each of {fields} fields at least 2 columns, got {self.dim}")
        self.cardinalities = _field_sizes(columns, fields)
        if coefficients is None:
            self._truth = self._draw_truth(arguments.integer("sparsity", sparsity, 0, columns))
        else:
            self._truth = sparse_pairs("coefficients", coefficients, self.dim)
        if intercept is None:
            intercept = -float(self._frequencies(self._truth[0]) @ self._truth[1])
        self.intercept = arguments.within("intercept", intercept, -1e6, 1e6)
        self._simulator = self._make_simulator()

    def _frequencies(self, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Probabilities that a row's fields fall on these columns; 0 for hashed ones."""
        ends = np.cumsum(self.cardinalities)
        field = np.minimum(np.searchsorted(ends, columns, side="right"), len(ends) - 1)
        size = self.cardinalities[field]
        rank = columns - (ends - self.cardinalities)[field]

        def below(place: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
            logs = np.log(place + 1.0)
            return logs if self.power == 1 else np.expm1((1 - self.power) * logs)

        return np.where(rank < size, (below(rank + 1) - below(rank)) / below(size), 0.0)

    def _draw_truth(self, sparsity: int) -> Pairs:
        rng = np.random.default_rng([_STREAM, self.seed])
        starts = np.concatenate([[0], np.cumsum(self.cardinalities)[:-1]])
        found: list[int] = []
        rank = 0
        while len(found) < sparsity:
            found.extend((starts + rank)[self.cardinalities > rank].tolist())
            rank += 1
        columns = np.sort(np.array(found[:sparsity], dtype=np.int64))
        return columns, rng.uniform(0.5, 1.0, sparsity) * rng.choice([-1.0, 1.0], sparsity)

    _simulator: _native.ClickWorld

    def _make_simulator(self) -> _native.ClickWorld:
        return _native.ClickWorld(
            dim=self.dim,
            arms=self.arms,
            truth=self._truth,
            intercept=self.intercept,
            cardinalities=self.cardinalities.tolist(),
            tokens=self.hashed,
            # An open vocabulary: more words than buckets, so that some words share a bucket.
            vocabulary=10 * self.dim if self.hashed else 0,
            power=self.power,
            seed=self.seed,
        )

    @property
    def truth(self) -> Pairs:
        """Columns (ascending) and values of the true coefficients."""
        return self._truth

    def _csr(self, arrays: tuple[Any, Any, Any], rows: int) -> Any:
        from scipy.sparse import csr_array

        indptr, indices, data = arrays
        return csr_array((data, indices, indptr), shape=(rows, self.dim), copy=False)

    def _play(self, first: int, rounds: int, estimate: Pairs, rows: bool, out: Any) -> Outcome:
        if out is not None:
            raise TypeError("out is for dense rows; this environment's are sparse")
        played, arrays = self._simulator.play(first, rounds, estimate)
        return Outcome(*played, self._csr(arrays, rounds) if rows else None)

    def _draw(self, first: int, rounds: int) -> Rounds:
        (means, noise), arrays = self._simulator.draw(first, rounds)
        contexts = self._csr(arrays, rounds * self.arms)
        return Rounds(contexts, means.reshape(rounds, self.arms), noise, True)


def _field_sizes(columns: int, fields: int) -> npt.NDArray[np.int64]:
    """Return sizes of at least 2 that grow geometrically and add up to ``columns``."""
    growth = np.geomspace(1.0, max(1.0, columns / 20.0), fields)
    sizes = 2 + np.floor((columns - 2 * fields) * growth / growth.sum()).astype(np.int64)
    sizes[-1] += columns - int(sizes.sum())
    return np.asarray(sizes, np.int64)
