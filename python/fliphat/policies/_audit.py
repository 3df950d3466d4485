"""The policy's cases for the audit: one person's contents swapped, everyone else looking on.

A run is the real thing from end to end: rounds are played and rewards handed in, the next call fits and
releases, and others play by what was released. What is looked at is what others see: the estimate and their
own arms.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.fit import make_fit
from fliphat.policies.fliphat import FLIPHAT
from fliphat.privacy.audit.bounds import Counts
from fliphat.privacy.audit.cases import DIM, ROWS, SPARSITY, Case, pushed_sides

__all__ = ["policy_cases"]

_EPSILON, _DELTA = 1.0, 0.01
_OTHERS = 4
_RESTORES = 30
_BINS = 41

#: Native cases make about this many runs in the time of one here.
_COST = 400


def policy_cases() -> list[Case]:
    """Return the policy's case, and the control: one that fits the same rows again after every restore."""

    def honest(runs: int, threads: int, seed: int | None) -> list[Counts]:
        return _count(runs, seed, restores=0)

    def refitting(runs: int, threads: int, seed: int | None) -> list[Counts]:
        return _count(runs, seed, restores=_RESTORES)

    return [
        Case("FLIPHAT, estimates and others' arms", _EPSILON, _DELTA, honest, cost=_COST),
        Case(
            "FLIPHAT, refitted after each restore",
            _EPSILON,
            _DELTA,
            refitting,
            "every restore releases the same rows again",
            cost=_COST,
        ),
    ]


def _count(runs: int, seed: int | None, restores: int) -> list[Counts]:
    seeds = np.random.SeedSequence(seed).generate_state(2 * runs, np.uint64) if seed is not None else None
    scores = np.zeros((2, runs, 2))
    for side, (rows, rewards) in enumerate(pushed_sides("squared")):
        contexts = rows.astype(np.float32)[:, None, :]  # one arm a round: the person's row is their context
        for run in range(runs):
            own = None if seeds is None else int(seeds[2 * run + side])
            scores[side, run] = _one_run(contexts, rewards, own, restores)
    # Estimates in units of their noise, and how many of the others were shown the first arm.
    edges = (np.linspace(-8.0, 8.0, _BINS + 1), np.arange(_OTHERS + 2) - 0.5)
    counts = []
    for view, cuts in enumerate(edges):
        sides = [np.histogram(np.clip(scores[s, :, view], cuts[0], cuts[-1]), cuts)[0] for s in (0, 1)]
        counts.append((sides[0].astype(np.uint64), sides[1].astype(np.uint64)))
    return counts


def _one_run(
    contexts: npt.NDArray[np.float32], rewards: npt.NDArray[np.float64], seed: int | None, restores: int
) -> tuple[float, float]:
    """Play an episode and the start of the next, and return what others see of it as two scores."""
    policy = FLIPHAT(
        dim=DIM,
        sparsity=SPARSITY,
        epsilon=_EPSILON,
        delta=_DELTA,
        first_episode=ROWS,
        warm_start=False,
        iterations=1,
        step_size=1.0,
        gradient_clip=1.0,
        l1_radius=1e6,
        seed=seed,
    )
    policy.update_batch(policy.select_batch(contexts), rewards)
    shown = [_fitted_again(policy, restore) for restore in range(restores)]
    # The others' first arm is good if the first coefficient is above the rest, their second if below.
    others = np.zeros((_OTHERS, 2, DIM), np.float32)
    others[:, 0, 0] = 1.0
    others[:, 1, 1:] = 1.0
    arms = policy.select_batch(others).arms
    noise = policy.history[-1].noise_scale
    shown.append(policy.estimate.to_dense())
    contrasts = [theta[0] - theta[1:].sum() for theta in shown]
    return float(np.mean(contrasts) * len(contrasts) ** 0.5 / noise), float((arms == 0).sum())


def _fitted_again(policy: FLIPHAT, restore: int) -> npt.NDArray[np.float64]:
    """Return what a broken policy would release if a restored copy fitted the rows once more."""
    engine: Any = policy._engine
    episode, settings = engine.episode, engine.settings
    numbers, present = episode.rewards()
    if settings.seed is not None:  # another seed, as fresh noise would be
        settings = dataclasses.replace(settings, seed=settings.seed ^ (restore + 1))
    fit = make_fit(settings)
    plan = fit.plan(episode.index, engine.known)
    known = fit.run(plan, episode.rows.matrix(), numbers, present, engine.known)
    theta: npt.NDArray[np.float64] = known.estimate.to_dense()
    return theta
