"""What a calibration by the exact price takes, cold: `pytest benches/test_bench_price.py --benchmark-enable`.

To reach: 50 ms for ten picks and a Gaussian, 1 s for the regressor's 120 picks between 12 Gaussians. The
NumPy twin prices the same plan once; a calibration prices it about seven times.
"""

import math

import pytest

from fliphat import kernels, reference
from fliphat.privacy import composition
from fliphat.privacy.composition import Gaussian, Pick

PLANS = {"10 picks, 1 Gaussian": (10, 0.8, 1), "120 picks between 12 Gaussians": (10, 0.5, 12)}


def plan(picks, share, iterations):
    one = [Pick(2 * math.sqrt(share / picks / iterations))] * picks
    return [*one, Gaussian(math.sqrt((1 - share) / iterations))] * iterations


@pytest.mark.parametrize("name", PLANS)
def test_calibration(timed, name):
    events = plan(*PLANS[name])
    timed(
        lambda: composition.largest_factor(1.0, 0.01, events),
        f"calibration, {name}",
        setup=composition._delta.cache_clear,
    )


@pytest.mark.parametrize("who", ["kernel", "NumPy"])
def test_one_price(timed, who):
    events = [event.scaled(0.5) for event in plan(10, 0.8, 1)]
    grid = composition.grid(1.0, [events])._asdict()
    named = [("pick", e.eta) if isinstance(e, Pick) else ("gaussian", e.mu) for e in events]
    price = {"kernel": kernels.price, "NumPy": reference.price}[who]
    timed(lambda: price(1.0, [named], **grid), "one price of 10 picks and a Gaussian")
