"""A list of numbers that grows at its end: in memory, and from some point on in a file. Private."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.policies.engine.rows.spill import SpillFile

__all__ = ["Growing"]


class Growing:
    """Numbers of one dtype. What lies behind those that its owner counts means nothing."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.array: npt.NDArray[Any] = np.zeros(0, dtype)
        self.file: SpillFile | None = None

    def reserve(self, size: int) -> None:
        """Make memory for `size` numbers, no more and no fewer; a file needs none."""
        if self.file is None:
            # No view of the array leaves its owner while numbers still arrive, so none can dangle.
            self.array.resize(size, refcheck=False)

    def put(self, at: int, numbers: npt.NDArray[Any]) -> None:
        """Write numbers from `at` on, where there is room."""
        if self.file is None:
            self.array[at : at + len(numbers)] = numbers
        else:
            self.file.write(at, numbers)

    def spill(self, count: int) -> None:
        """Move the first `count` numbers to a file; on an error they stay where they are."""
        if self.file is not None:
            return
        file = SpillFile(self.array.dtype)
        try:
            file.write(0, self.array[:count])
        except BaseException:
            file.close()
            raise
        self.file = file
        self.array = np.zeros(0, self.array.dtype)

    def first(self, count: int) -> npt.NDArray[Any]:
        """Return the first `count` numbers, uncopied."""
        return self.array[:count] if self.file is None else self.file.mapped((count,))

    def clear(self) -> None:
        """Forget all numbers."""
        if self.file is not None:
            self.file.clear(0)
        self.array[:] = 0  # what realloc leaves behind should not be rows
        self.reserve(0)
