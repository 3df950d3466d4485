"""Rounds of the policy: `pytest benches/test_bench_policy.py --benchmark-enable`.

Groups: one round at a time (rounds a second is 1000 over the mean), and a batch beside the two things it
must do, choosing arms and copying the chosen rows.
"""

import numpy as np
import pytest

from fliphat import FLIPHAT, Store, kernels

ARMS, DIM, BATCH, ROUNDS = 3, 400, 8192, 1000
PUBLIC = {"dim": DIM, "sparsity": 10, "epsilon": 1.0, "delta": 0.01}


@pytest.fixture(scope="module")
def contexts():
    return np.random.default_rng(0).standard_normal((BATCH, ARMS, DIM), dtype=np.float32)


def learned(contexts, **changes):
    """A policy past its first estimate, with room for many rounds."""
    policy = FLIPHAT(**PUBLIC, first_episode=BATCH, **changes)
    decisions = policy.select_batch(contexts)
    policy.update_batch(decisions, contexts[:, 0, 0])
    policy.select(contexts[0])
    return policy


@pytest.mark.parametrize("where", ["memory", "batch", "full"])
def test_one_round_at_a_time(timed, contexts, tmp_path, where):
    count = 50 if where == "full" else ROUNDS
    numbers = iter(range(10**6))

    def fresh():
        place = None if where == "memory" else Store(tmp_path / str(next(numbers)), durability=where)
        return (learned(contexts, store=place),), {}

    def play(policy):
        for i in range(count):
            policy.update(policy.select(contexts[i]), 0.5)

    timed(play, "select + update", f"{where}, {count} rounds", setup=fresh)


@pytest.mark.parametrize("who", ["select_batch", "select_arms + copy of the chosen rows"])
def test_a_batch(timed, contexts, who):
    policy = learned(contexts)
    theta, rng = policy.estimate.to_dense(), np.random.default_rng(0)
    kept, rounds, flat = np.zeros((2 * BATCH, DIM), np.float32), np.arange(BATCH), contexts.reshape(-1, DIM)

    def fresh():
        kept[:] = 0  # pages are there for both
        policy = learned(contexts)
        policy._engine.episode.rows.array[:] = 0
        return (policy,), {}

    def batch(policy):
        return policy.select_batch(contexts[:-1])

    def parts(policy):
        chosen = kernels.select_arms(contexts[:-1], theta, rng)
        np.take(flat, rounds[:-1] * ARMS + chosen, axis=0, out=kept[: BATCH - 1], mode="clip")

    run = batch if who == "select_batch" else parts
    timed(run, f"batch of {BATCH} rounds, {ARMS} arms, {DIM} columns", who, setup=fresh)
