from collections.abc import Callable, Sequence
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

__all__ = [
    "VERSION",
    "ClickWorld",
    "Estimate",
    "FitSettings",
    "LinearWorld",
    "PursuitQuestion",
    "RecordingNoise",
    "SecureNoise",
    "SeededNoise",
    "Votes",
    "add_sums",
    "arm_sums",
    "audit_fits",
    "audit_niht",
    "audit_peel",
    "audit_permute_and_flip",
    "ball_gradient",
    "clipped_sums",
    "gather_columns",
    "gaussian_release",
    "kalman_step",
    "laplace_fill",
    "laplace_release",
    "lasso_fit",
    "niht_fit",
    "niht_fit_sums",
    "partial_gradient",
    "partial_sums",
    "peel",
    "pick_columns",
    "price",
    "price_scales",
    "project_l1",
    "read_all",
    "read_body",
    "relative_gradient",
    "release_dense",
    "release_pilot",
    "release_rows",
    "release_sums",
    "release_totals",
    "round_words",
    "row_numbers",
    "scores",
    "second_moments",
    "seeded_draw",
    "seeded_peel",
    "seeded_picks",
    "seeded_words",
    "select_arms",
    "settled_sums",
    "shifted_gradient",
    "simd_levels",
    "squared_loss_gradient",
    "sync_files",
    "taken_draws",
    "watch_draws",
]

VERSION: Final[str]

_Rows = NDArray[Any] | tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]
_View = tuple[NDArray[np.float64], NDArray[np.float64], float, float, int]
_Side = tuple[NDArray[np.float64], NDArray[np.float64]]
_Call = tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64], FitSettings, NDArray[np.uint8] | None]
_Counts = list[tuple[NDArray[np.uint64], NDArray[np.uint64]]]

def simd_levels() -> list[str]: ...
def watch_draws(on: bool) -> None: ...
def taken_draws() -> list[tuple[str, list[tuple[int, int]]]]: ...
def sync_files(descriptors: list[int]) -> None: ...
def read_body(body: bytes, dim: int, double: bool, most: int) -> dict[str, Any] | str: ...
def read_all(words: NDArray[np.uint64], threads: int) -> int: ...
def gaussian_release(
    values: NDArray[np.int64], sigmas: NDArray[np.uint64], *, noise: _Noise | None = None
) -> None: ...
def price(
    epsilon: float, menu: list[list[tuple[str, float]]], users: int, step: float, below: int, above: int
) -> float: ...
def price_scales(
    template: list[tuple[int, int, int] | list[tuple[int, int]]],
    epsilon: float,
    delta: float,
    users: int,
    rho: float | None = None,
    start: float | None = None,
) -> tuple[list[list[int]], float, float]: ...
def kalman_step(
    theta: NDArray[np.float64],
    covariance: NDArray[np.float64],
    moments: NDArray[np.float64],
    precision: NDArray[np.float64],
    gradient: NDArray[np.float64],
    fresh: NDArray[np.float64],
    start: NDArray[np.float64],
    whiten: NDArray[np.float64],
    typical: NDArray[np.float64],
    rule: Sequence[float],
    most: int,
) -> tuple[
    NDArray[np.bool_],
    int,
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    float,
    float,
]: ...
def project_l1(v: NDArray[np.float64], radius: float, simd: str | None = None) -> NDArray[np.float64]: ...
def lasso_fit(
    gram: NDArray[np.float64],
    correlations: NDArray[np.float64],
    penalty: float,
    start: NDArray[np.float64],
    tolerance: float,
    most_sweeps: int,
) -> tuple[NDArray[np.float64], int, float]: ...
def clipped_sums(
    rows: _Rows,
    y: NDArray[np.float64],
    theta: NDArray[np.float64],
    clip: float,
    reward_clip: float,
    loss: str,
    present: NDArray[np.uint8] | None = None,
    threads: int | None = None,
    block_rows: int | None = None,
    simd: str | None = None,
) -> NDArray[np.int64]: ...
def second_moments(
    rows: _Rows,
    columns: NDArray[np.int64],
    scales: NDArray[np.float64],
    one: float | None,
    radius: int,
    present: NDArray[np.uint8] | None = None,
    threads: int | None = None,
    block_rows: int | None = None,
    simd: str | None = None,
    centers: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]: ...
def arm_sums(
    rows: _Rows,
    rewards: NDArray[np.float64],
    arms: NDArray[np.int64],
    count: int,
    centers: NDArray[np.float64],
    scales: NDArray[np.float64],
    radius: int,
    halves: bool,
    squares: int | None,
    present: NDArray[np.uint8] | None = None,
    threads: int | None = None,
    block_rows: int | None = None,
    simd: str | None = None,
) -> NDArray[np.int64]: ...
def release_dense(
    rows: _Rows,
    rewards: NDArray[np.float64],
    groups: NDArray[np.int64],
    present: NDArray[np.uint8],
    public: tuple[int, tuple[float, float], int, int],
    map: tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]],
    parts: list[tuple[int, str, int, tuple[int, int], NDArray[np.uint64], int, bool]],
    secret: bytes | None,
    noise: SecureNoise | SeededNoise | RecordingNoise,
    picking: tuple[int, int, NDArray[np.float64], float, int] | None = None,
    threads: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], bytes]: ...
def release_totals(
    secret: bytes | None,
    parts: list[tuple[int, NDArray[np.int64], int, tuple[int, int], NDArray[np.uint64], int, bool]],
    *,
    seeded: tuple[int, int] | None = None,
) -> tuple[NDArray[np.int64], bytes]: ...
def ball_gradient(
    rows: _Rows,
    residuals: NDArray[np.float64],
    arms: NDArray[np.int64],
    count: int,
    columns: NDArray[np.int64],
    scales: NDArray[np.float64],
    one: float | None,
    radius: int,
    present: NDArray[np.uint8] | None = None,
    threads: int | None = None,
    block_rows: int | None = None,
    simd: str | None = None,
) -> NDArray[np.int64]: ...
def gather_columns(
    rows: _Rows,
    columns: NDArray[np.int64],
    units: NDArray[np.float64] | None,
    out: NDArray[np.float64],
    first: int,
    threads: int | None = None,
    block_rows: int | None = None,
) -> None: ...
def relative_gradient(
    rows: _Rows,
    y: NDArray[np.float64],
    columns: NDArray[np.int64],
    weights: NDArray[np.float64],
    shift: NDArray[np.float64] | None,
    one: float,
    units: NDArray[np.float64] | None,
    loss: str,
    range: tuple[float, float] | None,
    clip: float,
    out: NDArray[np.float64],
    residuals: NDArray[np.float64],
    present: NDArray[np.uint8] | None = None,
    threads: int | None = None,
    block_rows: int | None = None,
    simd: str | None = None,
) -> NDArray[np.int64]: ...
def shifted_gradient(
    rows: _Rows,
    residuals: NDArray[np.float64],
    clip: float,
    shifts: NDArray[np.float64] | None = None,
    units: NDArray[np.float64] | None = None,
    present: NDArray[np.uint8] | None = None,
    threads: int | None = None,
    block_rows: int | None = None,
    simd: str | None = None,
) -> NDArray[np.int64]: ...

@final
class SecureNoise:
    protects: bool
    def __new__(cls) -> Self: ...

@final
class SeededNoise:
    protects: bool
    def __new__(cls, seed: int, stream: int) -> Self: ...

@final
class RecordingNoise:
    protects: bool
    def __new__(cls, picks: Sequence[tuple[int, int]] = ...) -> Self: ...
    @property
    def calls(self) -> list[tuple[Any, ...]]: ...
    @property
    def fits(self) -> list[Any]: ...

_Noise = SecureNoise | SeededNoise | RecordingNoise
_Shown = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

@final
class PursuitQuestion:
    def __new__(
        cls,
        columns: NDArray[np.int64],
        theta: NDArray[np.float64],
        shift: NDArray[np.float64] | None,
        units: NDArray[np.float64] | None,
        public: tuple[float, str, tuple[float, float] | None, float],
        picking: tuple[int, int, bool, bool, float],
        whiten: NDArray[np.float64],
        bounds: tuple[float, int, float, float],
        sigmas: tuple[int, int, int],
        rows: tuple[float, Sequence[int]] | None,
        board: tuple[float, float, int] | None,
    ) -> Self: ...
    @property
    def length(self) -> int: ...

def release_rows(
    question: PursuitQuestion,
    rows: _Rows,
    y: NDArray[np.float64],
    present: NDArray[np.uint8] | None,
    noise: _Noise,
    threads: int | None = None,
) -> _Shown: ...
def release_sums(question: PursuitQuestion, sums: object, noise: _Noise) -> _Shown: ...
def partial_sums(
    question: PursuitQuestion,
    step: str,
    rows: _Rows,
    y: NDArray[np.float64],
    present: NDArray[np.uint8] | None = None,
    columns: list[int] = ...,
    signs: list[int] = ...,
    threads: int | None = None,
) -> bytes: ...
def add_sums(parts: list[bytes]) -> bytes: ...
def partial_gradient(
    rows: _Rows,
    y: NDArray[np.float64],
    theta: NDArray[np.float64],
    clip: float,
    reward_clip: float,
    loss: str,
    threads: int | None = None,
) -> bytes: ...
def release_pilot(
    rewards: NDArray[np.float64],
    present: NDArray[np.uint8],
    distances: NDArray[np.float64],
    unlikely: NDArray[np.float64],
    near: tuple[float, float],
    scores: tuple[int, int],
    scales: tuple[int, int],
    noise: _Noise,
) -> tuple[int, int]: ...
def settled_sums(
    rows: _Rows,
    columns: NDArray[np.int64],
    support: NDArray[np.float64],
    residuals: NDArray[np.float64],
    whiten: NDArray[np.float64],
    clip: float,
    radius: int,
    scale: float,
    cap: float,
    units: NDArray[np.float64] | None = None,
    present: NDArray[np.uint8] | None = None,
    threads: int | None = None,
    block_rows: int | None = None,
    simd: str | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]: ...
def row_numbers(
    rows: _Rows,
    size: float,
    octaves: float,
    units: NDArray[np.float64] | None = None,
    present: NDArray[np.uint8] | None = None,
    threads: int | None = None,
    block_rows: int | None = None,
) -> list[int]: ...
def scores(contexts: _Rows, theta: NDArray[np.float64]) -> NDArray[np.float64]: ...
def select_arms(
    contexts: _Rows, arms: int, theta: NDArray[np.float64], words: NDArray[np.uint64]
) -> NDArray[np.int64]: ...
def laplace_fill(out: NDArray[np.float64], scale: float, *, seed: int | None = None) -> float: ...
def laplace_release(values: NDArray[np.float64], scale: float, *, seed: int | None = None) -> float: ...
def peel(
    v: NDArray[np.int64],
    s: int,
    pick_scale: int,
    value_scale: int,
    mechanism: str,
    value_noise: str,
    *,
    seed: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def pick_columns(
    scores: NDArray[np.int64], picks: int, scale: int, excluded: NDArray[np.int64], signed: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...

# Predictable draws for tests: no privacy.
def seeded_words(out: NDArray[np.uint64], seed: int, stream: int) -> None: ...
def seeded_draw(
    out: NDArray[np.int64], sampler: str, scale: int, seed: int, *, stream: int = 0, denominator: int = 1
) -> int: ...
def seeded_peel(
    v: NDArray[np.int64],
    pick_scale: int,
    value_scale: int,
    mechanism: str,
    value_noise: str,
    seed: int,
    supports: NDArray[np.int64],
    values: NDArray[np.int64],
) -> None: ...
def seeded_picks(
    scores: NDArray[np.int64],
    scale: int,
    excluded: NDArray[np.int64],
    signed: bool,
    seed: int,
    columns: NDArray[np.int64],
    signs: NDArray[np.int64],
) -> None: ...

@final
class FitSettings:
    def __new__(
        cls,
        *,
        sparsity: int,
        iterations: int,
        step_size: float,
        l1_radius: float,
        clip: float,
        reward_clip: float,
        loss: str,
        mechanism: str,
        pick_scale: int,
        value_noise: str,
        value_scale: int,
        noiseless: bool = False,
    ) -> FitSettings: ...

def niht_fit(
    rows: _Rows,
    y: NDArray[np.float64],
    start: NDArray[np.float64],
    settings: FitSettings,
    present: NDArray[np.uint8] | None = None,
    threads: int | None = None,
    noise: _Noise | None = None,
) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]: ...
def niht_fit_sums(
    sums_at: Callable[[NDArray[np.int64], NDArray[np.float64]], bytes],
    start: NDArray[np.float64],
    rows: int,
    settings: FitSettings,
    noise: _Noise | None = None,
) -> NDArray[np.float64]: ...
def squared_loss_gradient(
    rows: NDArray[np.float32] | NDArray[np.float64], y: NDArray[np.float64], theta: NDArray[np.float64]
) -> NDArray[np.float64]: ...

@final
class LinearWorld:
    def __new__(
        cls,
        *,
        dim: int,
        arms: int,
        truth: tuple[NDArray[np.int64], NDArray[np.float64]],
        contexts: str,
        shape: float,
        scale: float,
        reward: str,
        noise_scale: float,
        seed: int,
        margin: tuple[float, float | None] | None = None,
        width: int | None = None,
    ) -> LinearWorld: ...
    def play(
        self,
        first: int,
        rounds: int,
        estimate: tuple[NDArray[np.int64], NDArray[np.float64]],
        rows: NDArray[np.float32] | None = None,
        offsets: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]: ...
    def draw(
        self, first: int, contexts: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

@final
class ClickWorld:
    def __new__(
        cls,
        *,
        dim: int,
        arms: int,
        truth: tuple[NDArray[np.int64], NDArray[np.float64]],
        intercept: float,
        cardinalities: list[int],
        tokens: int,
        vocabulary: int,
        power: float,
        seed: int,
    ) -> ClickWorld: ...
    def play(
        self, first: int, rounds: int, estimate: tuple[NDArray[np.int64], NDArray[np.float64]]
    ) -> tuple[
        tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]],
        tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]],
    ]: ...
    def draw(
        self, first: int, rounds: int
    ) -> tuple[
        tuple[NDArray[np.float64], NDArray[np.float64]],
        tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]],
    ]: ...

def round_words(seed: int, first: int, rounds: int) -> NDArray[np.uint64]: ...
def audit_peel(
    inputs: tuple[NDArray[np.int64], NDArray[np.int64]],
    s: int,
    pick_scale: int,
    value_scale: int,
    mechanism: str,
    value_noise: str,
    views: list[_View],
    runs: int,
    threads: int,
    seed: int | None = None,
) -> _Counts: ...
def audit_niht(
    sides: tuple[_Side, _Side],
    settings: FitSettings,
    reuse_noise: bool,
    views: list[_View],
    runs: int,
    threads: int,
    seed: int | None = None,
) -> _Counts: ...
def audit_fits(
    sides: tuple[list[_Call], list[_Call]],
    views: list[_View],
    runs: int,
    threads: int,
    seed: int | None = None,
) -> _Counts: ...
def audit_permute_and_flip(
    scores: list[list[int]],
    scale: int,
    picks: int,
    views: list[_View],
    runs: int,
    threads: int,
    seed: int | None = None,
) -> _Counts: ...

@final
class Estimate:
    def __new__(cls, indices: NDArray[np.int64], values: NDArray[np.float64], dimension: int) -> Estimate: ...
    def choose_one(
        self,
        contexts: NDArray[Any],
        word: int,
        keep: bool,
        out: NDArray[Any],
        at: int,
        explored: bool = False,
    ) -> tuple[int, int]: ...
    def choose_dense(
        self,
        contexts: NDArray[Any],
        arms: int,
        words: NDArray[np.uint64],
        keep: NDArray[np.uint8] | None,
        out: NDArray[Any],
        at: int,
        explored: NDArray[np.uint8] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]: ...
    def choose_csr(
        self,
        indptr: NDArray[Any],
        indices: NDArray[Any],
        data: NDArray[Any],
        arms: int,
        words: NDArray[np.uint64],
        keep: NDArray[np.uint8] | None,
        out: NDArray[Any],
        at: int,
        explored: NDArray[np.uint8] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]: ...
    def choose_dense_to_csr(
        self,
        contexts: NDArray[Any],
        arms: int,
        words: NDArray[np.uint64],
        keep: NDArray[np.uint8] | None,
        double: bool,
        explored: NDArray[np.uint8] | None = None,
    ) -> tuple[
        NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int32], NDArray[Any]
    ]: ...
    def choose_csr_to_csr(
        self,
        indptr: NDArray[Any],
        indices: NDArray[Any],
        data: NDArray[Any],
        arms: int,
        words: NDArray[np.uint64],
        keep: NDArray[np.uint8] | None,
        double: bool,
        explored: NDArray[np.uint8] | None = None,
    ) -> tuple[
        NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int32], NDArray[Any]
    ]: ...

@disjoint_base
class Votes:
    def __new__(
        cls,
        draws: NDArray[np.float64],
        slots: NDArray[np.int64],
        inverse: NDArray[np.float32],
        shift: NDArray[np.float32],
        ball: float,
        norm: float,
        disjoint: bool,
        uniform: bool = False,
        fixed: tuple[int, int] | None = None,
    ) -> Self: ...
    def choose_one(
        self,
        contexts: NDArray[Any],
        word: int,
        keep: bool,
        out: NDArray[Any],
        at: int,
        explored: bool = False,
    ) -> tuple[int, int]: ...
    def choose_dense(
        self,
        contexts: NDArray[Any],
        arms: int,
        words: NDArray[np.uint64],
        keep: NDArray[np.uint8] | None,
        out: NDArray[Any],
        at: int,
        explored: NDArray[np.uint8] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]: ...
    def choose_csr(
        self,
        indptr: NDArray[Any],
        indices: NDArray[Any],
        data: NDArray[Any],
        arms: int,
        words: NDArray[np.uint64],
        keep: NDArray[np.uint8] | None,
        out: NDArray[Any],
        at: int,
        explored: NDArray[np.uint8] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]: ...
