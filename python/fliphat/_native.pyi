from typing import Final

import numpy as np
from numpy.typing import NDArray

VERSION: Final[str]

def laplace_fill(out: NDArray[np.float64], scale: float, *, door_seed: int | None = None) -> float: ...
def laplace_release(values: NDArray[np.float64], scale: float, *, door_seed: int | None = None) -> float: ...
def peel(
    v: NDArray[np.int64],
    s: int,
    pick_scale: int,
    value_scale: int,
    mechanism: str,
    value_noise: str,
    *,
    door_seed: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...

# The test door: predictable draws, no privacy.
def door_words(out: NDArray[np.uint64], seed: int, stream: int) -> None: ...
def door_draw(
    out: NDArray[np.int64], sampler: str, scale: int, seed: int, *, stream: int = 0, denominator: int = 1
) -> int: ...
def door_peel(
    v: NDArray[np.int64],
    pick_scale: int,
    value_scale: int,
    mechanism: str,
    value_noise: str,
    seed: int,
    supports: NDArray[np.int64],
    values: NDArray[np.int64],
) -> None: ...
