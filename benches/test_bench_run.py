"""One whole run of the policy beside plain, batched NumPy: `pytest benches --benchmark-enable`."""

import numpy as np
import pytest

from fliphat import FLIPHAT, Iht, reference
from fliphat.environments import SparseLinear
from fliphat.simulation import play

ROUNDS, DIM, ARMS, PHI = 20_000, 400, 3, 0.1
BATCH = 2048


def policy(seed):
    return FLIPHAT(
        dim=DIM,
        sparsity=10,
        epsilon=1.0,
        delta=0.01,
        reward_scale=1.5,
        seed=seed,
        fit=Iht(episodes="doubling"),
    )


def draw_contexts(rng, n):
    """AR(1) rows, batched, float32: moving averages by doubling, as far as float32 can tell."""
    x = rng.standard_normal((n, ARMS, DIM), dtype=np.float32)
    x[..., 1:] *= np.float32(np.sqrt(1 - PHI**2))
    for shift in (1, 2, 4):
        x[..., shift:] += np.float32(PHI**shift) * x[..., :-shift].copy()
    return x


def numpy_run(seed):
    """The same algorithm and schedule, drawn and fitted as a good NumPy programmer would."""
    rng, fit = np.random.default_rng(seed), policy(seed)._fit
    settings, known = fit.settings, fit.begin()
    beta = SparseLinear(DIM, ARMS, seed=seed).coefficients.astype(np.float32)
    theta, total, played, episode = np.zeros(DIM), 0.0, 0, 0
    while played < ROUNDS:
        plan = fit.plan(episode, known)
        length = min(plan.rows, ROUNDS - played)
        rows, rewards = np.empty((length, DIM), np.float32), np.empty(length)
        for start in range(0, length, BATCH):
            n = min(BATCH, length - start)
            x = draw_contexts(rng, n)
            means, each = x @ beta, np.arange(n)
            arms = (x @ theta.astype(np.float32)).argmax(1) if theta.any() else rng.integers(0, ARMS, n)
            rows[start : start + n] = x[each, arms]
            rewards[start : start + n] = means[each, arms] + 0.1 * rng.standard_normal(n)
            total += float((means.max(1) - means[each, arms]).sum())
        played += length
        if played < ROUNDS:
            theta = reference.niht(
                rows,
                rewards,
                sparsity=settings.sparsity,
                iterations=plan.iterations,
                step_size=plan.step_size,
                l1_radius=settings.l1_radius,
                clip=settings.gradient_clip,
                pick_scale=plan.noise.pick_scale,
                value_scale=plan.noise.value_scale,
                start=theta if plan.warm else None,
                rng=rng,
            )
        episode += 1
    return total


def lazy_run(seed):
    return play(policy(seed), SparseLinear(DIM, ARMS, seed=seed), ROUNDS, to_the_end=True).regret.sum()


def plain_run(seed):
    return play(policy(seed), SparseLinear(DIM, ARMS, seed=seed), ROUNDS, lazy=False).regret.sum()


def test_the_twin_has_the_same_regret():
    twin, ours = (np.array([run(seed) for seed in range(12)]) for run in (numpy_run, lazy_run))
    difference = twin - ours  # paired: a seed has the same coefficients in both
    assert abs(difference.mean()) < 5 * difference.std(ddof=1) / np.sqrt(12)
    assert abs(difference.mean()) < 0.3 * ours.mean()


@pytest.mark.parametrize("who", ["lazy", "plain", "plain NumPy"])
def test_bench_run(timed, who):
    run = {"lazy": lazy_run, "plain": plain_run, "plain NumPy": numpy_run}[who]
    timed(lambda: run(1), f"a run, T={ROUNDS} d={DIM} K={ARMS} epsilon=1")
