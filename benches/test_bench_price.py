"""What a calibration by the exact price takes, cold: `pytest benches/test_bench_price.py --benchmark-enable`.

To reach: 50 ms for ten picks and a Gaussian, 1 s for the regressor's 120 picks between 12 Gaussians. The
NumPy twin prices the same plan once; a calibration prices it about seven times.
"""

import math

import numpy as np
import pytest

from fliphat import kernels, reference
from fliphat.privacy import composition
from fliphat.privacy.composition import Gaussian, Pick

PLANS = {"10 picks, 1 Gaussian": (10, 0.8, 1), "120 picks between 12 Gaussians": (10, 0.5, 12)}


def plan(picks, share, iterations):
    one = [Pick(2 * math.sqrt(share / picks / iterations))] * picks
    return [*one, Gaussian(math.sqrt((1 - share) / iterations))] * iterations


@pytest.mark.parametrize("name", PLANS)
def test_calibration(benchmark, name):
    events = plan(*PLANS[name])
    benchmark.group = f"calibration, {name}"
    benchmark.pedantic(
        lambda: composition.largest_factor(1.0, 0.01, events),
        setup=composition._delta.cache_clear,
        rounds=5,
    )


@pytest.mark.parametrize("who", ["kernel", "NumPy"])
def test_one_price(benchmark, who):
    events = [event.scaled(0.5) for event in plan(10, 0.8, 1)]
    grid = composition.grid(1.0, [events])._asdict()
    named = [("pick", e.eta) if isinstance(e, Pick) else ("gaussian", e.mu) for e in events]
    price = {"kernel": kernels.price, "NumPy": reference.price}[who]
    benchmark.group = "one price of 10 picks and a Gaussian"
    benchmark.pedantic(lambda: price(1.0, [named], **grid), rounds=3, warmup_rounds=1)


@pytest.mark.parametrize("who", ["kernel", "NumPy"])
def test_gaussian_release(benchmark, who):
    values, rng = np.zeros(10**6, np.int64), np.random.default_rng(0)
    contestants = {
        "kernel": lambda: kernels.gaussian_release(values, 1000),
        "NumPy": lambda: reference.gaussian_release(values, 1000, rng),
    }
    benchmark.group = "rounded Gaussian noise, 1,000,000 values"
    benchmark.pedantic(contestants[who], rounds=5, warmup_rounds=1)
