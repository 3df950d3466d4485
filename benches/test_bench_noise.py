"""Noise beside OpenDP's, where that is installed: `pytest benches/test_bench_noise.py --benchmark-enable`.

The races against NumPy are with those of the other kernels, in `fliphat.lab.benchmark.races`.
"""

from functools import partial

import numpy as np
import pytest

from fliphat import kernels

dp = pytest.importorskip("opendp.prelude")
dp.enable_features("contrib")

FLOATS = dp.vector_domain(dp.atom_domain(T=float, nan=False))


@pytest.mark.parametrize("who", ["kernel", "kernel on a list", "OpenDP"])
def test_laplace(timed, who):
    """OpenDP takes a list; most of our time on one is NumPy reading it."""
    array = np.zeros(10**4)
    listed = array.tolist()
    contestants = {
        "kernel": partial(kernels.laplace_mechanism, array, 1.0),
        "kernel on a list": partial(kernels.laplace_mechanism, listed, 1.0),
        "OpenDP": partial(dp.m.make_laplace(FLOATS, dp.l1_distance(T=float), scale=1.0), listed),
    }
    timed(contestants[who], "laplace_mechanism, 10,000 values")


@pytest.mark.parametrize("who", ["kernel", "OpenDP"])
@pytest.mark.parametrize("largest", [1, 1_000])
def test_top_k(timed, who, largest):
    """The same scores in steps of 0.0001: scale 0.1 there is 1,000 steps here. We also release values."""
    scores = np.random.default_rng(0).integers(0, largest * 10_000, 4_000)
    opendp_top_k = dp.m.make_noisy_top_k(
        FLOATS, dp.linf_distance(T=float), dp.zero_concentrated_divergence(), k=10, scale=0.1
    )
    contestants = {
        "kernel": partial(kernels.peel, scores, 10, pick_scale=1_000, value_scale=1_000),
        "OpenDP": partial(opendp_top_k, (scores * 1e-4).tolist()),
    }
    timed(contestants[who], f"noisy top-k, d = 4,000, k = 10, scale 0.1, scores up to {largest:,}")
