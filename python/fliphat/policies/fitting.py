"""The one place where an episode's private rows become a public estimate."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.kernels import _niht
from fliphat.policies.facts import SparseEstimate
from fliphat.policies.plan import FitPlan
from fliphat.policies.settings import Settings
from fliphat.privacy.paper import PaperNoise

__all__ = ["fit"]


def fit(
    settings: Settings,
    plan: FitPlan,
    rows: Any,
    rewards: npt.NDArray[np.float64],
    present: npt.NDArray[np.bool_],
    last: SparseEstimate,
) -> SparseEstimate:
    """Fit an episode's rows with fresh noise; twice on the same rows costs the privacy budget twice.

    Parameters
    ----------
    rows : ndarray or CSR, shape (n, dim)
        All rounds of the episode, those without a reward included.
    rewards, present : ndarray, shape (n,)
    last : SparseEstimate
        The estimate released before, from which a warm fit starts.
    """
    start = last.to_dense() if plan.warm else None
    if plan.noise is None:
        return last if plan.warm else SparseEstimate.zero(settings.dim)
    door = None if settings.seed is None else (settings.seed, plan.episode)
    if isinstance(plan.noise, PaperNoise):
        theta = _niht.fit_paper(
            rows,
            rewards,
            sparsity=settings.sparsity,
            iterations=plan.iterations,
            step_size=plan.step_size,
            l1_radius=settings.l1_radius,
            reward_clip=plan.noise.reward_clip,
            noise_scale=plan.noise.noise_scale,
            start=start,
            present=present,
            door=door,
        )
    else:
        theta = _niht.fit(
            rows,
            rewards,
            sparsity=settings.sparsity,
            iterations=plan.iterations,
            step_size=plan.step_size,
            l1_radius=settings.l1_radius,
            clip=settings.gradient_clip,
            pick_scale=plan.noise.pick_scale,
            value_scale=plan.noise.value_scale,
            start=start,
            mechanism=plan.noise.mechanism,
            value_noise=plan.noise.value_noise,
            loss=settings.loss,
            reward_clip=settings.reward_clip,
            present=present,
            door=door,
        )[-1]
    return SparseEstimate.from_dense(theta)
