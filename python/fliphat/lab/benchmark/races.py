"""The races of `fliphat bench` and of `benches/`: each kernel beside its NumPy twins, on the same data.

Ratios are what counts: all contestants of a race run in turn, several times over, in one process, and the
best time of each is taken, so that a busy machine slows all of them alike.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from fliphat import _native, kernels, reference
from fliphat.kernels import _fits as fit_kernels
from fliphat.lab.benchmark import twins
from fliphat.reference import _fits as fit_twins

#: Runs before the one that is timed: each meets its own data warm, not what the one before left in the cache.
_WARM_UPS = 4

Contestant = Callable[[], Any]


@dataclass(frozen=True)
class Race:
    """One row of the table: `kernel` against the plain twin and the best one.

    ``random`` says that contestants draw noise: their results differ.
    """

    name: str
    size: str
    kernel: Contestant
    plain: Contestant
    best: Contestant | None = None
    two_threads: Contestant | None = None
    read_bound: Contestant | None = None
    random: bool = False

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


def races(*, tiny: bool = False) -> Iterator[Callable[[], Race]]:
    """All races, each made when called: together their data would fill the memory.

    With `tiny`, each kind once, on data so small that a test can run them all.
    """
    for make, sizes, smallest in _ALL:
        for size in [smallest] if tiny else sizes:
            yield partial(make, *size)


@contextmanager
def one_thread_blas() -> Iterator[bool]:
    """Hold NumPy's BLAS to one thread, as the kernels it races are; false where it can't be told to."""
    # Symbols of the libraries that an extension loads are found in it, too.
    library = ctypes.CDLL(import_module("numpy._core._multiarray_umath").__file__)
    for name in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads"):
        get, put = (getattr(library, name.format(act), None) for act in ("get", "set"))
        if get is not None and put is not None:
            before = get()
            put(1)
            try:
                yield True
            finally:
                put(before)
            return
    yield False


def best_times(race: Race, repeats: int) -> dict[str, float]:
    """Return the best time of each contestant in seconds, over `repeats` rounds in which all take turns."""
    everyone = race.contestants()
    best = dict.fromkeys(everyone, float("inf"))
    for _ in range(repeats):
        for name, run in everyone.items():
            for _ in range(_WARM_UPS if repeats > 1 else 0):
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


def _sparse_gradient(n: int, d: int, stored: int) -> Race:
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    # One column from each of `stored` equal slices: uniform, increasing and never repeated.
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
        best=lambda: twins.sparse_gradient(X, y, theta, 2.0),
    )


#: Columns of an episode of the published world that are public.
_PUBLIC = 5


def _episode(n: int, d: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(14)
    X = rng.standard_normal((n, d), np.float32)
    return X, rng.standard_normal(n), rng.permutation(d)[:_PUBLIC]


def _relative_gradient(n: int, d: int) -> Race:
    X, y, columns = _episode(n, d)
    out, weights = np.zeros((n, 1 + _PUBLIC)), np.linspace(-1, 1, 1 + _PUBLIC)
    given = (X, y, columns, weights, 2.0, out)
    return Race(
        "relative_gradient float32",
        f"{n:,} x {d}, {_PUBLIC} public",
        kernel=lambda: fit_kernels.relative_gradient(*given, threads=1),
        two_threads=lambda: fit_kernels.relative_gradient(*given, threads=2),
        plain=lambda: fit_twins.relative_gradient(*given),
        best=lambda: twins.relative_gradient(*given),
    )


def _shifted_gradient(n: int, d: int) -> Race:
    X, y, _ = _episode(n, d)
    return Race(
        "shifted_gradient float32",
        f"{n:,} x {d}",
        kernel=lambda: fit_kernels.shifted_gradient(X, y, 2.0, shifts=y, threads=1),
        two_threads=lambda: fit_kernels.shifted_gradient(X, y, 2.0, shifts=y, threads=2),
        plain=lambda: fit_twins.shifted_gradient(X, y, 2.0, shifts=y),
        best=lambda: twins.shifted_gradient(X, y, 2.0, y),
    )


def _settled_sums(n: int, d: int) -> Race:
    X, y, columns = _episode(n, d)
    support, whiten = np.ascontiguousarray(X[:, columns], np.float64), np.tri(_PUBLIC + 1)
    measure: dict[str, Any] = {"whiten": whiten, "clip": 2.0, "radius": 4_095, "scale": 900.0, "cap": 3.0}
    new = np.setdiff1d(np.arange(d), columns)[:1]
    return Race(
        "settled_sums",
        f"{n:,} x {_PUBLIC + 1}",
        kernel=lambda: fit_kernels.settled_sums(X, new, support, y, **measure, threads=1),
        two_threads=lambda: fit_kernels.settled_sums(X, new, support, y, **measure, threads=2),
        plain=lambda: fit_twins.settled_sums(X, new, support, y, **measure),
        best=lambda: twins.settled_sums(X, new, support, y, **measure),
    )


def _kalman_step() -> Race:
    """Plain NumPy on matrices of seven rows is the best there is."""
    known, m = 1 + _PUBLIC, 2 + _PUBLIC
    rng = np.random.default_rng(2)
    moments = np.eye(m) + 0.05 * np.outer(rng.normal(size=m), np.ones(m))
    before = rng.normal(size=known), 0.01 * np.eye(known), np.eye(known), np.full((known, known), 100.0)
    rule = fit_kernels.KalmanRule(
        1.0, 400.0, 0.05, 0.001, 1e-12, 0.15, 0.65, 0.01, 0.16, 0.003, 0.003, 0.8, 2.0
    )
    given = (*before, rng.normal(size=m), moments, np.array([0.4]))
    public: dict[str, Any] = {"whiten": np.eye(m), "typical": np.eye(m), "rule": rule, "most": _PUBLIC}

    def twin() -> Any:
        return fit_twins.kalman_step(*given, **public)

    return Race(
        "kalman_step",
        f"{known} known, 1 new",
        kernel=lambda: fit_kernels.kalman_step(*given, **public),
        plain=twin,
        best=twin,
    )


def _second_moments(dtype: type, n: int, d: int) -> Race:
    """Plain NumPy is the twin; the best is BLAS on float64 rows as they are, without integers or a ball."""
    radius = 2**15 - 1
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
    return Race(
        "select_arms float32",
        f"({n:,}, 3, {d:,})",
        kernel=lambda: kernels.select_arms(contexts, theta, rng),
        plain=lambda: (contexts @ narrow).argmax(-1),
        best=lambda: twins.select_arms(contexts, narrow),
    )


def _laplace(count: int) -> Race:
    rng = np.random.default_rng(0)
    return Race(
        "laplace",
        f"{count:,} samples",
        kernel=lambda: kernels.laplace(1.0, count),
        plain=lambda: reference.laplace(1.0, count, rng),
        best=lambda: twins.laplace_noise(1.0, count, rng),
        random=True,
    )


def _rounded_gaussian(count: int, sigma: int) -> Race:
    values, rng = np.zeros(count, np.int64), np.random.default_rng(0)
    return Race(
        "gaussian_release",
        f"{count:,} values, sigma {sigma:,}",
        kernel=lambda: kernels.gaussian_release(values, sigma),
        plain=lambda: reference.gaussian_release(values, sigma, rng),
        best=lambda: twins.gaussian_noise(sigma, count, rng),
        random=True,
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
        random=True,
    )


def _noisy_max_peel(d: int, s: int) -> Race:
    rng = np.random.default_rng(0)
    v = rng.integers(-5_000, 5_000, d)
    return Race(
        "peel laplace",
        f"d = {d:,}, s = {s}",
        kernel=lambda: kernels.peel(v, s, pick_scale=1_000, value_scale=1_000, mechanism="laplace"),
        plain=lambda: reference.peel(v, s, pick_scale=1_000, value_scale=1_000, mechanism="laplace", rng=rng),
        best=lambda: twins.noisy_max_peel(v, s, 1_000, 1_000, rng),
        random=True,
    )


#: Each kind of race: who makes it, its sizes in the table, and one for tests.
_ALL: list[tuple[Callable[..., Race], list[tuple[Any, ...]], tuple[Any, ...]]] = [
    (_projection, [(400,), (4_000,), (509_256,)], (40,)),
    (
        _dense_gradient,
        [
            (np.float32, 8_192, 400),
            (np.float32, 8_192, 4_000),
            (np.float32, 128, 509_256),
            (np.float64, 8_192, 400),
        ],
        (np.float32, 64, 40),
    ),
    (_sparse_gradient, [(100_000, 509_256, 50)], (64, 400, 5)),
    (_relative_gradient, [(8_192, 400)], (64, 40)),
    (_shifted_gradient, [(8_192, 400)], (64, 40)),
    (_settled_sums, [(8_192, 400)], (64, 40)),
    (_kalman_step, [()], ()),
    (
        _second_moments,
        [(np.float32, 8_192, 128), (np.float64, 8_192, 128), (np.float64, 8_192, 24)],
        (np.float64, 64, 5),
    ),
    (_selection, [(8_192, 400), (2_048, 4_000), (16, 509_256)], (8, 40)),
    (_laplace, [(10**6,)], (100,)),
    (_rounded_gaussian, [(10**6, 1), (10**6, 1_000), (10**6, 2**40)], (100, 1_000)),
    (
        _exponential_peel,
        [(509_256, 50, "one dominates"), (509_256, 50, "all equal"), (400, 10, "random")],
        (40, 5, "random"),
    ),
    (_noisy_max_peel, [(4_000, 20)], (40, 5)),
]
