"""Simulated rounds beside plain, batched NumPy: `pytest benches --benchmark-enable`."""

import numpy as np
import pytest

from fliphat.environments import SparseClicks, SparseLinear

ROUNDS, DIM, ARMS, PHI = 20_000, 400, 3, 0.1
BATCH = 2048


def numpy_run(env, estimate, rows, seed=0):
    """The same rounds as a good NumPy programmer would draw them: batched, float32, in-place recursion."""
    rng = np.random.default_rng(seed)
    beta, theta = env.coefficients.astype(np.float32), estimate.astype(np.float32)
    total = 0.0
    for start in range(0, ROUNDS, BATCH):
        n = min(BATCH, ROUNDS - start)
        x = rng.standard_normal((n, ARMS, DIM), dtype=np.float32)
        x[..., 1:] *= np.float32(np.sqrt(1 - PHI**2))
        for lag in range(
            7
        ):  # x_j = sum of phi^k z_(j-k), to float32 rounding, by doubling as far as it matters
            shift = 1 << lag
            if PHI**shift < 1e-8:
                break
            x[..., shift:] += np.float32(PHI**shift) * x[..., :-shift].copy()
        means = x @ beta
        arms = (x @ theta).argmax(1)
        each = np.arange(n)
        rows[start : start + n] = x[each, arms]
        total += float((means.max(1) - means[each, arms]).sum())
        means[each, arms] + 0.1 * rng.standard_normal(n)
    return total


@pytest.fixture(scope="module")
def setting():
    env = SparseLinear(DIM, ARMS, sparsity=5, seed=1)
    estimate = env.coefficients
    estimate[np.random.default_rng(0).choice(np.arange(5, DIM), 5, replace=False)] = 0.05
    return env, estimate, np.zeros((ROUNDS, DIM), np.float32)


def test_the_twin_simulates_the_same_world(setting):
    env, estimate, rows = setting
    env.reset()
    lazy = env.play(ROUNDS, estimate, rows=False).regret
    twin = numpy_run(env, estimate, rows)
    assert abs(lazy.sum() - twin) < 6 * lazy.std() * np.sqrt(ROUNDS)
    assert abs((rows[:, 50:-1] * rows[:, 51:]).mean() - PHI) < 0.01


@pytest.mark.parametrize("who", ["lazy", "lazy, no rows", "plain", "plain NumPy"])
def test_bench_linear(timed, setting, who):
    env, estimate, rows = setting

    def plain():
        for start in range(0, ROUNDS, BATCH):
            drawn = env.draw(min(BATCH, ROUNDS - start))
            drawn.settle((drawn.contexts @ estimate.astype(np.float32)).argmax(1))

    run = {
        "lazy": lambda: env.play(ROUNDS, estimate, out=rows),
        "lazy, no rows": lambda: env.play(ROUNDS, estimate, rows=False),
        "plain": plain,
        "plain NumPy": lambda: numpy_run(env, estimate, rows),
    }[who]
    timed(run, f"linear, T={ROUNDS} d={DIM} K={ARMS}")


def test_bench_clicks(timed):
    env = SparseClicks(seed=1)
    timed(lambda: env.play(20_000, env.truth), "clicks, 20 000 rounds, d=509 256, 50 non-zeros, K=5")
