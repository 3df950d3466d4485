"""Noise beside its twins and beside OpenDP: `pytest benches/test_bench_noise.py --benchmark-enable`.

OpenDP's races run where it is installed (`pip install opendp`).
"""

from functools import partial

import numpy as np
import pytest

from fliphat import kernels, reference

RNG = np.random.default_rng(0)


def race(benchmark, group, contestant, rounds=10):
    benchmark.group = group
    benchmark.pedantic(contestant, rounds=rounds, warmup_rounds=1)


@pytest.mark.parametrize("who", ["kernel", "NumPy"])
def test_laplace(benchmark, who):
    contestants = {
        "kernel": partial(kernels.laplace, 1.0, 10**6),
        "NumPy": partial(reference.laplace, 1.0, 10**6, RNG),
    }
    race(benchmark, "laplace, 1,000,000 samples", contestants[who])


@pytest.mark.parametrize("who", ["kernel", "OpenDP"])
def test_laplace_beside_opendp(benchmark, who):
    opendp_laplace = _opendp_laplace(1.0)
    values = [0.0] * 10**4
    contestants = {
        "kernel": partial(kernels.laplace_mechanism, values, 1.0),
        "OpenDP": partial(opendp_laplace, values),
    }
    race(benchmark, "laplace_mechanism, list of 10,000 values", contestants[who], rounds=3)


def _flat(d):
    return np.full(d, 7)


def _dominated(d):
    v = _flat(d)
    v[d // 3] = 10**6 * 1000
    return v


def _random(d):
    return RNG.integers(-5000, 5000, d)


@pytest.mark.parametrize("who", ["kernel", "NumPy laplace", "NumPy Gumbel"])
@pytest.mark.parametrize(
    ("make", "d", "s"),
    [(_flat, 509_256, 50), (_dominated, 509_256, 50), (_random, 400, 10)],
    ids=["all equal", "one dominates", "small"],
)
def test_peel_exponential(benchmark, make, d, s, who):
    v = make(d)
    twin = partial(reference.peel, v, s, pick_scale=1000, value_scale=1000, rng=RNG)
    contestants = {
        "kernel": partial(kernels.peel, v, s, pick_scale=1000, value_scale=1000),
        "NumPy laplace": partial(twin, mechanism="laplace"),
        "NumPy Gumbel": partial(twin, mechanism="exponential"),
    }
    race(
        benchmark,
        f"peel exponential, {make.__name__[1:]}, d = {d:,}, s = {s}",
        contestants[who],
        5 if d > 10**5 else 200,
    )


@pytest.mark.parametrize("who", ["kernel", "NumPy"])
def test_peel_laplace(benchmark, who):
    v = _random(4000)
    contestants = {
        "kernel": partial(kernels.peel, v, 20, pick_scale=1000, value_scale=1000, mechanism="laplace"),
        "NumPy": partial(reference.peel, v, 20, pick_scale=1000, value_scale=1000, rng=RNG),
    }
    race(benchmark, "peel laplace, d = 4,000, s = 20", contestants[who], 50)


@pytest.mark.parametrize("who", ["kernel", "OpenDP"])
def test_peel_beside_opendp(benchmark, who):
    top_k = _opendp_top_k(10, 0.1)
    scores = RNG.integers(0, 1000, 4000)
    listed = scores.astype(float).tolist()
    contestants = {
        "kernel": partial(kernels.peel, scores, 10, pick_scale=1000, value_scale=1000),
        "OpenDP": partial(top_k, listed),
    }
    race(benchmark, "noisy top-k, d = 4,000, k = 10", contestants[who], 5)


def _opendp_laplace(scale):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    return dp.m.make_laplace(*space, scale=scale)


def _opendp_top_k(k, scale):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    return dp.m.make_noisy_top_k(*space, dp.zero_concentrated_divergence(), k=k, scale=scale)
