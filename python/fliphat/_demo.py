"""`fliphat demo`: what the package does today, in a few seconds."""

from __future__ import annotations

import numpy as np

from fliphat import kernels
from fliphat._speed import _dense_gradient, best_times


def run() -> int:
    """Show that one person can't move a sum far, and that exactness is fast."""
    rng = np.random.default_rng(0)
    n, d = 8192, 400
    X, y, theta = rng.standard_normal((n, d), np.float32), rng.standard_normal(n), np.zeros(d)
    theta[:5] = 1.0
    before, step = kernels.clipped_gradient(X, y, theta, clip=2.0)
    shuffled = rng.permutation(n)
    again, _ = kernels.clipped_gradient(X[shuffled], y[shuffled], theta, clip=2.0, threads=2)
    X[7], y[7] = 1e30, -1e30
    after, _ = kernels.clipped_gradient(X, y, theta, clip=2.0)
    times = best_times(_dense_gradient(np.float32, n, d), 5)
    print(f"{n:,} people, {d} numbers each, summed to one clipped gradient of {d} integers.\n")
    print(f"  shuffled and on two threads, the same bits:     {bool((before == again).all())}")
    print(f"  one person replaced by an absurd one moves it:  {np.abs(after - before).max():,} steps")
    print(f"  the bound that the noise is built on:           {2**16:,} steps (one step is {step:.1e})")
    print(f"  time against plain NumPy:                       1/{times['plain NumPy'] / times['kernel']:.0f}")
    print("\nNext: `fliphat bench` races every kernel against NumPy on this machine.")
    return 0
