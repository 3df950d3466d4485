"""When sums are released, and how releases are put together.

A rule is public: its boundaries are functions of the number of rounds alone. It says in how many noisy sums a
row takes part at most (`nodes`), which is all that the price needs; what it does with released sums
afterwards is post-processing.

=========  ====================  ===================================  ============================
rule       noisy sums of a row   noises in the running sum            releases
=========  ====================  ===================================  ============================
`Blocks`   1                     one for each block, weighted         log(T)
`Batches`  1                     t / size                             T / size
`Tree`     levels m              ones in the binary number of leaves  T / leaf
`Local`    1                     t                                    every row, by its own person
=========  ====================  ===================================  ============================
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat import arguments

_Integers: TypeAlias = npt.NDArray[np.int64]
_Floats: TypeAlias = npt.NDArray[np.float64]

#: Adds fresh noise to a private sum, so many times.
Draw: TypeAlias = Callable[..., _Floats]


@dataclass(frozen=True, eq=False)
class ReleasedSums:
    """Public: a weighted sum of noisy sums."""

    values: _Floats
    #: Rows in it, weighted.
    rows: float
    #: Its noise's variance, in units of one noisy sum's.
    nodes: float


class Running:
    """The state of a rule: noisy sums, weighted and added up.

    With `each_row` every row has a noise of its own; where sums are forgotten only the last block counts.
    """

    def __init__(
        self, draw: Draw, noise_rows: float = 0.0, *, each_row: bool = False, forget: bool = False
    ) -> None:
        self._draw, self._noise_rows = draw, noise_rows
        self._each_row, self._forget = each_row, forget
        self._total: ReleasedSums | None = None

    def add(self, sums: _Integers, rows: int) -> ReleasedSums:
        """Take in the private sums of the rows between two boundaries."""
        before = None if self._forget else self._total
        before = before or ReleasedSums(np.zeros(len(sums)), 0.0, 0.0)
        noisy = self._draw(sums, times=rows) if self._each_row else self._draw(sums)
        weight = rows / (rows + self._noise_rows)
        noises = rows if self._each_row else weight**2
        self._total = ReleasedSums(
            before.values + weight * noisy, before.rows + weight * rows, before.nodes + noises
        )
        return self._total


class Rule(ABC):
    """When sums are released, and how they are put together."""

    #: In how many noisy sums one row takes part, at most.
    nodes: int = 1

    @abstractmethod
    def after(self, rounds: int) -> int:
        """Return the round at which the sum of the rows after `rounds` is released: public."""

    def running(self, draw: Draw) -> Running:
        """Return the state at the beginning."""
        return Running(draw)


@dataclass(frozen=True)
class Blocks(Rule):
    """Boundaries that grow by a factor; each row is in one block, and noisy sums of blocks are kept.

    Block k has n_k rows. Its mean has the variance ``a / n_k + b / n_k^2``, with a from sampling and b from
    the noise; sums are weighted by ``n_k / (n_k + b / a)``, which is best for the mean. Without noise all
    weights are 1.

    Examples
    --------
    >>> rule = Blocks(first=100)
    >>> rule.after(0), rule.after(100), rule.after(200), rule.nodes
    (100, 200, 400, 1)
    """

    #: Rounds before the first release.
    first: int
    #: From one boundary to the next.
    growth: float = 2.0
    #: b / a: so many rows have a sampling variance as large as one noise's. Public.
    noise_rows: float = 0.0

    def __post_init__(self) -> None:
        arguments.integer("first", self.first, 1, 2**40)
        arguments.within("growth", self.growth, 1.01, 1e6)
        arguments.within("noise_rows", self.noise_rows, 0.0, 1e300)

    def after(self, rounds: int) -> int:
        """Return the next boundary."""
        end = self.first
        while end <= rounds:
            end = max(end + 1, math.floor(end * self.growth))
        return end

    def running(self, draw: Draw) -> Running:
        """Return the state at the beginning."""
        return Running(draw, self.noise_rows)


@dataclass(frozen=True)
class Batches(Rule):
    """Batches of one size; each row is in one batch, and noisy sums of batches are added up."""

    #: Rounds of a batch.
    size: int

    def __post_init__(self) -> None:
        arguments.integer("size", self.size, 1, 2**40)

    def after(self, rounds: int) -> int:
        """Return the next boundary."""
        return (rounds // self.size + 1) * self.size


@dataclass(frozen=True)
class Tree(Rule):
    """The binary counter over leaves: a prefix is a sum of few nodes, each node's noise drawn once.

    Leaf j ends a node of ``2^i`` leaves, where i is the number of zeros at the end of j's binary number. The
    node is released then, once, and its prefix is the sum of the nodes of j's ones. A row is in at most one
    node a level, hence in at most `nodes` of them.
    """

    #: Rounds of a leaf.
    leaf: int
    #: Rounds that the noise suffices for; more are refused.
    horizon: int

    def __post_init__(self) -> None:
        arguments.integer("leaf", self.leaf, 1, 2**40)
        arguments.integer("horizon", self.horizon, self.leaf, 2**40)

    @property
    def nodes(self) -> int:  # type: ignore[override]
        """Levels: as many as the number of leaves has binary digits."""
        return (self.horizon // self.leaf).bit_length()

    def after(self, rounds: int) -> int:
        """Return the next boundary."""
        return (rounds // self.leaf + 1) * self.leaf

    def running(self, draw: Draw) -> Running:
        """Return the state at the beginning."""
        return _Counter(draw, self.nodes)


class _Counter(Running):
    """The state of a tree: private sums and released ones of the nodes of the current prefix, by level."""

    def __init__(self, draw: Draw, levels: int) -> None:
        super().__init__(draw)
        self._levels, self._leaves, self._rows = levels, 0, 0
        self._sums: dict[int, _Integers] = {}
        self._noisy: dict[int, _Floats] = {}

    def add(self, sums: _Integers, rows: int) -> ReleasedSums:
        self._leaves += 1
        self._rows += rows
        level = (self._leaves & -self._leaves).bit_length() - 1
        if level >= self._levels:
            raise ValueError(f"rounds must be within the horizon of a tree of {self._levels} levels")
        node = sums.copy()
        for below in range(level):
            node += self._sums.pop(below)
            del self._noisy[below]
        self._sums[level], self._noisy[level] = node, self._draw(node)
        prefix = np.sum(list(self._noisy.values()), axis=0)
        return ReleasedSums(prefix, float(self._rows), float(len(self._noisy)))


@dataclass(frozen=True)
class Local(Rule):
    """Every row is released by its own person, with noise of its own; the server adds up what it gets.

    The server looks at the sum after a tenth more rounds, at last every `longest`: that is post-processing,
    and only saves time.
    """

    #: Rounds between two looks, at most.
    longest: int = 200

    def __post_init__(self) -> None:
        arguments.integer("longest", self.longest, 1, 2**40)

    def after(self, rounds: int) -> int:
        """Return the next look."""
        return rounds + min(self.longest, max(1, rounds // 10))

    def running(self, draw: Draw) -> Running:
        """Return the state at the beginning."""
        return Running(draw, each_row=True)
