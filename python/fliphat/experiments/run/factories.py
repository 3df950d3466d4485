"""Policies made to measure for an environment; what recipes of policies call."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fliphat import FLIPHAT
from fliphat.environments import (
    ClassificationBandit,
    Environment,
    SparseClicks,
    SparseLinear,
    from_classification,
    hard_instance,
    margin_family,
)
from fliphat.experiments.run.recipe import stable_name
from fliphat.policies import GreedyIHT, LassoBandit, LinUCB, UniformRandom
from fliphat.privacy.guarantee import PrivacyWarning

__all__ = ["greedy_iht", "lasso", "linucb", "paper", "private", "random"]

# Environments are made directly, and may not import experiments: their names are given here.
for _make in (
    ClassificationBandit,
    SparseClicks,
    SparseLinear,
    from_classification,
    hard_instance,
    margin_family,
):
    stable_name(_make.__name__)(_make)


@stable_name("private")
def private(*, environment: Environment, seed: int, **options: Any) -> FLIPHAT:
    """Return FLIPHAT with proven noise."""
    return FLIPHAT(environment.dim, seed=seed, **options)


@stable_name("paper")
def paper(*, environment: Environment, seed: int, **options: Any) -> FLIPHAT:
    """Return FLIPHAT as the published simulations ran it: they knew the true coefficients' l1 norm."""
    if environment.truth is None:
        raise ValueError("environment must have linear truth for the paper's constants")
    with warnings.catch_warnings():
        # Every figure with this policy says that its noise is too small.
        warnings.simplefilter("ignore", PrivacyWarning)
        return FLIPHAT(
            environment.dim,
            calibration="paper",
            episodes="doubling",
            warm_start=False,
            l1_radius=float(np.abs(environment.truth[1]).sum()),
            seed=seed,
            **options,
        )


@stable_name("random")
def random(*, environment: Environment, seed: int) -> UniformRandom:
    """Return the policy that plays at random."""
    return UniformRandom(environment.dim, seed=seed)


@stable_name("lasso")
def lasso(*, environment: Environment, seed: int, **options: Any) -> LassoBandit:
    """Return the sparsity-agnostic Lasso bandit."""
    return LassoBandit(environment.dim, seed=seed, **options)


@stable_name("greedy_iht")
def greedy_iht(*, environment: Environment, seed: int, **options: Any) -> GreedyIHT:
    """Return greedy iterative hard thresholding without noise."""
    return GreedyIHT(environment.dim, seed=seed, **options)


@stable_name("linucb")
def linucb(*, environment: Environment, seed: int, **options: Any) -> LinUCB:
    """Return ridge LinUCB."""
    return LinUCB(environment.dim, seed=seed, **options)
