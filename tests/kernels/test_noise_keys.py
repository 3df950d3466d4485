"""How many keys there are: too few would repeat, and who guesses a key takes the noise off."""

import numpy as np

from fliphat import _native


def repeats(streams):
    return len(streams) - len(set(streams))


def test_no_two_of_many_calls_draw_from_the_same_key():
    # With keys of 32 random bits about ten of 300 000 calls would repeat another; none at all has a chance of
    # 0.00003.
    out = np.empty(3)
    streams = []
    for _ in range(300_000):
        _native.laplace_fill(out, 1.0)
        streams.append(out.tobytes())
    assert repeats(streams) == 0


def test_control_keys_of_32_bits_repeat():
    keys = np.random.default_rng(1).integers(0, 2**32, 300_000)
    assert repeats(keys.tolist()) > 0
