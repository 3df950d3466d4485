"""The races of `fliphat bench` and of `benches/`: each kernel beside its NumPy twins, on the same data.

Ratios are what counts: all contestants of a race run in turn, several times over, in one process, and the
best time of each is taken, so that a busy machine slows all of them alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fliphat import _native, kernels, reference

#: Runs before the one that is timed: each meets its own data warm, not what the one before left in the cache.
_WARM_UPS = 4

Contestant = Callable[[], Any]


@dataclass(frozen=True)
class Race:
    """One row of the table: `kernel` against the plain twin and the best one."""

    name: str
    size: str
    kernel: Contestant
    plain: Contestant
    best: Contestant | None = None
    two_threads: Contestant | None = None
    read_bound: Contestant | None = None

    def contestants(self) -> dict[str, Contestant]:
        """Everyone who runs, by name."""
        everyone = {
            "kernel": self.kernel,
            "two threads": self.two_threads,
            "plain NumPy": self.plain,
            "best NumPy": self.best,
            "read bandwidth": self.read_bound,
        }
        return {name: run for name, run in everyone.items() if run is not None}


def races() -> Iterator[Callable[[], Race]]:
    """All races, each made when called: together their data would fill the memory."""
    for d in (400, 4_000, 509_256):
        yield partial(_projection, d)
    for dtype, n, d in (
        (np.float32, 8_192, 400),
        (np.float32, 8_192, 4_000),
        (np.float32, 128, 509_256),
        (np.float64, 8_192, 400),
    ):
        yield partial(_dense_gradient, dtype, n, d)
    yield _sparse_gradient
    yield _relative_gradient
    yield _shifted_gradient
    yield _whitened_gradient
    yield _settled_sums
    yield _kalman_step
    for dtype in (np.float32, np.float64):
        yield partial(_second_moments, dtype)
    for n, d in ((8_192, 400), (2_048, 4_000), (16, 509_256)):
        yield partial(_selection, n, d)
    yield _laplace
    for sigma in (1, 1_000, 2**40):
        yield partial(_rounded_gaussian, sigma)
    for d, s, shape in ((509_256, 50, "one dominates"), (509_256, 50, "all equal"), (400, 10, "random")):
        yield partial(_exponential_peel, d, s, shape)
    yield _noisy_max_peel


def best_times(race: Race, repeats: int) -> dict[str, float]:
    """Return the best time of each contestant in seconds, over `repeats` rounds in which all take turns."""
    everyone = race.contestants()
    best = dict.fromkeys(everyone, float("inf"))
    for _ in range(repeats):
        for name, run in everyone.items():
            for _ in range(_WARM_UPS):
                run()
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def _projection(d: int) -> Race:
    v = np.random.default_rng(d).standard_normal(d)
    return Race(
        "project_l1",
        f"d = {d:,}",
        kernel=lambda: kernels.project_l1(v, 3.0),
        plain=lambda: reference.project_l1(v, 3.0),
        best=lambda: reference.project_l1_michelot(v, 3.0),
    )


def _sparse_theta(rng: np.random.Generator, d: int, s: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    theta = np.zeros(d)
    theta[rng.permutation(d)[:s]] = rng.standard_normal(s)
    return theta


def _dense_gradient(dtype: type, n: int, d: int) -> Race:
    rng = np.random.default_rng(d)
    X: np.ndarray[Any, Any] = rng.standard_normal((n, d), np.float32).astype(dtype)
    y, theta = rng.standard_normal(n), _sparse_theta(rng, d, 10)
    words = X.reshape(-1).view(np.uint64)
    return Race(
        f"clipped_gradient {np.dtype(dtype).name}",
        f"{n:,} x {d:,}",
        kernel=lambda: kernels.clipped_gradient(X, y, theta, 2.0, threads=1),
        two_threads=lambda: kernels.clipped_gradient(X, y, theta, 2.0, threads=2),
        plain=lambda: reference.clipped_gradient(X, y, theta, 2.0),
        best=lambda: reference.clipped_gradient_blocked(X, y, theta, 2.0),
        read_bound=lambda: _native.read_all(words, 2),
    )


def _sparse_gradient() -> Race:
    import scipy.sparse as sp

    n, d, stored = 100_000, 509_256, 50
    rng = np.random.default_rng(0)
    # One column from each of 50 equal slices: uniform, increasing and never repeated.
    columns = (np.arange(stored) + rng.random((n, stored))) * (d / stored)
    X = sp.csr_array(
        (
            rng.standard_normal(n * stored, np.float32),
            columns.astype(np.int32).ravel(),
            np.arange(0, n * stored + 1, stored, dtype=np.int32),
        ),
        shape=(n, d),
    )
    y, theta = rng.standard_normal(n), _sparse_theta(rng, d, 50)
    return Race(
        "clipped_gradient CSR float32",
        f"{n:,} x {d:,}, {stored} a row",
        kernel=lambda: kernels.clipped_gradient(X, y, theta, 2.0, threads=1),
        two_threads=lambda: kernels.clipped_gradient(X, y, theta, 2.0, threads=2),
        plain=lambda: reference.clipped_gradient(X, y, theta, 2.0),
    )


#: Rows of the races of pursuit's sums: an episode of the published world, five columns of it public.
_ROWS, _DIM, _PUBLIC = 8_192, 400, 5


def _episode() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(14)
    X = rng.standard_normal((_ROWS, _DIM), np.float32)
    return X, rng.standard_normal(_ROWS), rng.permutation(_DIM)[:_PUBLIC]


def _relative_gradient() -> Race:
    X, y, columns = _episode()
    out, weights = np.zeros((_ROWS, 1 + _PUBLIC)), np.linspace(-1, 1, 1 + _PUBLIC)
    given = (X, y, columns, weights, 2.0, out)
    return Race(
        "relative_gradient float32",
        f"{_ROWS:,} x {_DIM}, {_PUBLIC} public",
        kernel=lambda: kernels.relative_gradient(*given, threads=1),
        two_threads=lambda: kernels.relative_gradient(*given, threads=2),
        plain=lambda: reference.relative_gradient(*given),
    )


def _shifted_gradient() -> Race:
    X, y, _ = _episode()
    return Race(
        "shifted_gradient float32",
        f"{_ROWS:,} x {_DIM}",
        kernel=lambda: kernels.shifted_gradient(X, y, 2.0, shifts=y, threads=1),
        two_threads=lambda: kernels.shifted_gradient(X, y, 2.0, shifts=y, threads=2),
        plain=lambda: reference.shifted_gradient(X, y, 2.0, shifts=y),
    )


def _whitened_gradient() -> Race:
    X, y, columns = _episode()
    support, whiten = X[:, columns].astype(np.float64), np.tri(_PUBLIC)

    def multiply_then_round() -> Any:
        # Rows of a product may be added in another order than the kernel's: same speed, not the same bits.
        steps = (support @ whiten.T) * (y * (2**15 / 2.0))[:, None]
        return np.rint(steps.clip(-(2**15), 2**15)).sum(axis=0)

    return Race(
        "whitened_gradient",
        f"{_ROWS:,} x {_PUBLIC}",
        kernel=lambda: kernels.whitened_gradient(support, y, whiten, 2.0, threads=1),
        two_threads=lambda: kernels.whitened_gradient(support, y, whiten, 2.0, threads=2),
        plain=lambda: reference.whitened_gradient(support, y, whiten, 2.0),
        best=multiply_then_round,
    )


def _settled_sums() -> Race:
    X, y, columns = _episode()
    support, whiten = X[:, columns].astype(np.float64), np.tri(_PUBLIC + 1)
    measure: dict[str, Any] = {"whiten": whiten, "clip": 2.0, "radius": 4_095, "scale": 900.0, "cap": 3.0}
    new = np.setdiff1d(np.arange(_DIM), columns)[:1]
    return Race(
        "settled_sums",
        f"{_ROWS:,} x {_PUBLIC + 1}",
        kernel=lambda: kernels.settled_sums(X, new, support, y, **measure, threads=1),
        two_threads=lambda: kernels.settled_sums(X, new, support, y, **measure, threads=2),
        plain=lambda: reference.settled_sums(X, new, support, y, **measure),
    )


def _kalman_step() -> Race:
    known, m = 1 + _PUBLIC, 2 + _PUBLIC
    rng = np.random.default_rng(2)
    moments = np.eye(m) + 0.05 * np.outer(rng.normal(size=m), np.ones(m))
    before = rng.normal(size=known), 0.01 * np.eye(known), np.eye(known), np.full((known, known), 100.0)
    rule = kernels.KalmanRule(1.0, 400.0, 0.05, 0.001, 1e-12, 0.15, 0.65, 0.01, 0.16, 0.003, 0.003, 0.8, 2.0)
    given = (*before, rng.normal(size=m), moments, np.array([0.4]))
    public: dict[str, Any] = {"whiten": np.eye(m), "typical": np.eye(m), "rule": rule, "most": _PUBLIC}
    return Race(
        "kalman_step",
        f"{known} known, 1 new",
        kernel=lambda: kernels.kalman_step(*given, **public),
        plain=lambda: reference.kalman_step(*given, **public),
    )


def _second_moments(dtype: type) -> Race:
    """Plain NumPy is the twin; the best is BLAS on float64 rows as they are, without integers or a ball."""
    n, d, radius = 8_192, 128, 2**15 - 1
    rows = np.random.default_rng(15).standard_normal((n, d))
    X: np.ndarray[Any, Any] = rows.astype(dtype)
    # Most rows are inside the ball, some are cut.
    scale = radius / (1.1 * np.sqrt(d))
    return Race(
        f"second_moments {np.dtype(dtype).name}",
        f"{n:,} x {d}",
        kernel=lambda: kernels.second_moments(X, radius=radius, scale=scale, threads=1),
        two_threads=lambda: kernels.second_moments(X, radius=radius, scale=scale, threads=2),
        plain=lambda: reference.second_moments(X, radius=radius, scale=scale),
        best=lambda: rows.T @ rows,
    )


def _selection(n: int, d: int) -> Race:
    rng = np.random.default_rng(d)
    contexts = rng.standard_normal((n, 3, d), np.float32)
    theta = _sparse_theta(rng, d, 10)
    narrow = theta.astype(np.float32)

    def gather_then_multiply() -> Any:
        support = np.flatnonzero(narrow)
        return (contexts[..., support] @ narrow[support]).argmax(-1)

    return Race(
        "select_arms float32",
        f"({n:,}, 3, {d:,})",
        kernel=lambda: kernels.select_arms(contexts, theta, rng),
        plain=lambda: (contexts @ narrow).argmax(-1),
        best=gather_then_multiply,
    )


def _laplace() -> Race:
    rng = np.random.default_rng(0)
    return Race(
        "laplace",
        "1,000,000 samples",
        kernel=lambda: kernels.laplace(1.0, 10**6),
        plain=lambda: reference.laplace(1.0, 10**6, rng),
    )


def _rounded_gaussian(sigma: int) -> Race:
    values, rng = np.zeros(10**6, np.int64), np.random.default_rng(0)
    return Race(
        "gaussian_release",
        f"1,000,000 values, sigma {sigma:,}",
        kernel=lambda: kernels.gaussian_release(values, sigma),
        plain=lambda: reference.gaussian_release(values, sigma, rng),
    )


def _exponential_peel(d: int, s: int, shape: str) -> Race:
    """Race against the paper's Peeling in NumPy, and against the same picks by the Gumbel trick."""
    rng = np.random.default_rng(d)
    v = rng.integers(-5_000, 5_000, d) if shape == "random" else np.full(d, 7)
    if shape == "one dominates":
        v[d // 3] = 10**6 * 1_000
    twin = partial(reference.peel, v, s, pick_scale=1_000, value_scale=1_000, rng=rng)
    return Race(
        f"peel exponential, {shape}",
        f"d = {d:,}, s = {s}",
        kernel=lambda: kernels.peel(v, s, pick_scale=1_000, value_scale=1_000),
        plain=partial(twin, mechanism="laplace"),
        best=partial(twin, mechanism="exponential"),
    )


def _noisy_max_peel() -> Race:
    rng = np.random.default_rng(0)
    v = rng.integers(-5_000, 5_000, 4_000)
    return Race(
        "peel laplace",
        "d = 4,000, s = 20",
        kernel=lambda: kernels.peel(v, 20, pick_scale=1_000, value_scale=1_000, mechanism="laplace"),
        plain=lambda: reference.peel(v, 20, pick_scale=1_000, value_scale=1_000, rng=rng),
    )
