"""Policies made to measure for an environment; what recipes of policies call."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

import numpy as np

from fliphat import FLIPHAT, Iht, Pursuit, arguments, environments
from fliphat.environments import Environment, SparseLinear, sparse_truth
from fliphat.fit.options import named
from fliphat.lab import baselines, peers
from fliphat.lab.baselines.baseline import Baseline
from fliphat.lab.experiments.cells import stable_name
from fliphat.paper import Fliphat
from fliphat.privacy.guarantee import PrivacyWarning

# Environments are made directly, and may not import experiments: their names are given here.
for _name in ("ClassificationBandit", "OneHot", "SparseClicks", "SparseLinear", "from_classification",
              "hard_instance", "margin_family"):  # fmt: skip
    stable_name(_name)(getattr(environments, _name))

_IHT_OPTIONS: Final = {field.name for field in fields(Iht)}
_PURSUIT_OPTIONS: Final = {field.name for field in fields(Pursuit)}


@stable_name("private")
def private(*, environment: Environment, seed: int, fit: str | None = None, **options: Any) -> FLIPHAT:
    """Return FLIPHAT with proven noise; what only a fit has may stand beside the other options."""
    own = {name: options.pop(name) for name in (_IHT_OPTIONS | _PURSUIT_OPTIONS) & options.keys()}
    if fit is None:
        fit = "iht" if _IHT_OPTIONS & own.keys() else "pursuit"
    return FLIPHAT(environment.dim, seed=seed, fit=named(fit, **own), **options)


@stable_name("private_with_units")
def private_with_units(*, environment: SparseLinear, seed: int, **options: Any) -> FLIPHAT:
    """Return FLIPHAT with proven noise that is told the units of the environment's columns."""
    return private(environment=environment, seed=seed, column_scales=environment.column_scales, **options)


@stable_name("mixed_units")
def mixed_units(*, dim: int, seed: int, ratio: float = 1000.0, **options: Any) -> SparseLinear:
    """Return an environment whose columns have units that differ by up to `ratio`."""
    units = np.exp(np.random.default_rng([seed, dim]).uniform(-0.5, 0.5, dim) * np.log(ratio))
    return SparseLinear(dim, column_scales=units, seed=seed, **options)


@stable_name("drawn_truth")
def drawn_truth(
    *, dim: int, seed: int, sparsity: int, low: float, high: float, **options: Any
) -> SparseLinear:
    """Return an environment whose coefficients have sizes between `low` and `high`."""
    truth = sparse_truth(dim, sparsity, low=low, high=high, seed=seed)
    return SparseLinear(dim, coefficients=truth, seed=seed, **options)


@stable_name("published_truth")
def published_truth(*, dim: int, seed: int, **options: Any) -> SparseLinear:
    """Return an environment with the coefficients of the published figures, to four digits.

    They are the one draw of sizes in [0.5, 1] and signs that the authors' script makes with its first key.
    """
    truth = np.zeros(dim)
    truth[:5] = 0.7484, 0.6370, 0.6345, 0.6964, 0.7199
    return SparseLinear(dim, coefficients=truth, seed=seed, **options)


@stable_name("paper")
def paper(*, environment: Environment, seed: int, **options: Any) -> Fliphat:
    """Return the paper's algorithm as its simulations ran it: they knew the true coefficients' l1 norm."""
    if environment.truth is None:
        raise ValueError("environment must have linear truth for the paper's constants")
    with warnings.catch_warnings():
        # Every figure with this policy says that its noise is too small.
        warnings.simplefilter("ignore", PrivacyWarning)
        b_max = float(np.abs(environment.truth[1]).sum())
        rng = np.random.default_rng([seed, environment.dim, 24])
        return Fliphat(environment.dim, b_max=b_max, rng=rng, **options)


@stable_name("peer")
def peer(*, environment: Environment, seed: int, name: str, **options: Any) -> Baseline:
    """Return a private linear bandit of others, by its name in `fliphat.lab.peers`."""
    arguments.choice("name", name, tuple(peers.__all__))
    made: Baseline = getattr(peers, name)(environment.dim, seed=seed, **options)
    return made


def _of_dim(name: str, policy: Callable[..., Any]) -> Callable[..., Any]:
    """Return the maker of a policy that is told no more of an environment than its dim."""

    def make(*, environment: Environment, seed: int, **options: Any) -> Any:
        return policy(environment.dim, seed=seed, **options)

    # Other processes look a maker up by its name.
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Return :class:`fliphat.lab.baselines.{policy.__name__}` for an environment."
    return stable_name(name)(make)


random = _of_dim("random", baselines.UniformRandom)
lasso = _of_dim("lasso", baselines.LassoBandit)
greedy_iht = _of_dim("greedy_iht", baselines.GreedyIHT)
linucb = _of_dim("linucb", baselines.LinUCB)
thresholded_lasso = _of_dim("thresholded_lasso", baselines.ThresholdedLasso)
explore_then_commit = _of_dim("explore_then_commit", baselines.ExploreThenCommit)
doubly_robust_lasso = _of_dim("doubly_robust_lasso", baselines.DoublyRobustLasso)
