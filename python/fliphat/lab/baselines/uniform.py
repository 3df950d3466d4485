"""Playing at random: what every policy must beat."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.lab.baselines.baseline import GreedyBaseline


class UniformRandom(GreedyBaseline):
    """Every arm with the same probability, whatever happened before.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.baselines import UniformRandom
    >>> played = UniformRandom(dim=400, seed=1).play(SparseLinear(dim=400, seed=1), 1000)
    >>> bool(played.regret.mean() > 0.8)
    True
    """

    _keeps_rows = False

    def __init__(self, dim: int, *, seed: int | None = None) -> None:
        super().__init__(dim, seed)

    @property
    def remaining(self) -> int:
        """As many as fit in an int: nothing ever changes."""
        return 2**31 - 1

    def _learn(self, rows: npt.NDArray[Any], rewards: npt.NDArray[np.float64]) -> None:
        """Learn nothing."""
