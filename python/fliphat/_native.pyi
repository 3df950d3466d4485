from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = [
    "VERSION",
    "clipped_sums_csr",
    "clipped_sums_dense",
    "door_draw",
    "door_peel",
    "door_words",
    "laplace_fill",
    "laplace_release",
    "peel",
    "project_l1",
    "read_all",
    "scores_csr",
    "scores_dense",
    "select_arms_csr",
    "select_arms_dense",
    "simd_levels",
]

VERSION: Final[str]

def simd_levels() -> list[str]: ...
def read_all(words: npt.NDArray[np.uint64], threads: int) -> int: ...
def project_l1(
    v: npt.NDArray[np.float64], radius: float, simd: str | None = None
) -> npt.NDArray[np.float64]: ...
def clipped_sums_dense(
    x: npt.NDArray[Any],
    y: npt.NDArray[np.float64],
    theta: npt.NDArray[np.float64],
    clip: float,
    reward_clip: float,
    loss: str,
    present: npt.NDArray[np.uint8] | None = None,
    threads: int | None = None,
    block_rows: int | None = None,
    simd: str | None = None,
) -> npt.NDArray[np.int64]: ...
def clipped_sums_csr(
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    data: npt.NDArray[Any],
    columns: int,
    y: npt.NDArray[np.float64],
    theta: npt.NDArray[np.float64],
    clip: float,
    reward_clip: float,
    loss: str,
    present: npt.NDArray[np.uint8] | None = None,
    threads: int | None = None,
    block_rows: int | None = None,
    simd: str | None = None,
) -> npt.NDArray[np.int64]: ...
def scores_dense(contexts: npt.NDArray[Any], theta: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
def scores_csr(
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    data: npt.NDArray[Any],
    columns: int,
    theta: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]: ...
def select_arms_dense(
    contexts: npt.NDArray[Any],
    arms: int,
    theta: npt.NDArray[np.float64],
    words: npt.NDArray[np.uint64],
) -> npt.NDArray[np.int64]: ...
def select_arms_csr(
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    data: npt.NDArray[Any],
    columns: int,
    arms: int,
    theta: npt.NDArray[np.float64],
    words: npt.NDArray[np.uint64],
) -> npt.NDArray[np.int64]: ...
def laplace_fill(out: npt.NDArray[np.float64], scale: float, *, door_seed: int | None = None) -> float: ...
def laplace_release(
    values: npt.NDArray[np.float64], scale: float, *, door_seed: int | None = None
) -> float: ...
def peel(
    v: npt.NDArray[np.int64],
    s: int,
    pick_scale: int,
    value_scale: int,
    mechanism: str,
    value_noise: str,
    *,
    door_seed: int | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...

# The test door: predictable draws, no privacy.
def door_words(out: npt.NDArray[np.uint64], seed: int, stream: int) -> None: ...
def door_draw(
    out: npt.NDArray[np.int64], sampler: str, scale: int, seed: int, *, stream: int = 0, denominator: int = 1
) -> int: ...
def door_peel(
    v: npt.NDArray[np.int64],
    pick_scale: int,
    value_scale: int,
    mechanism: str,
    value_noise: str,
    seed: int,
    supports: npt.NDArray[np.int64],
    values: npt.NDArray[np.int64],
) -> None: ...
