"""Simulated environments: seeded, exact, and fast enough for a whole sweep.

Each environment offers rounds in two ways that have the same distribution:

- ``env.play(rounds, estimate)`` plays greedily on a sparse estimate and draws only what is looked at: every
  arm's coordinates where the estimate or the truth is not zero, and one whole row, the chosen arm's;
- ``env.draw(rounds)`` draws every arm's row, for policies that choose in another way.

A round is a function of (seed, round number) alone. How rounds are cut into calls changes nothing, and two
policies that run on environments of one seed are offered the same contexts and the same reward noise.
"""

from fliphat.environments.classification import ClassificationBandit, from_classification
from fliphat.environments.clicks import SparseClicks
from fliphat.environments.contexts import (
    AR1,
    Blocks,
    Equicorrelated,
    HeavyTailed,
    Independent,
    TruncatedNormal,
    Uniform,
)
from fliphat.environments.environment import Environment, Outcome, Rounds
from fliphat.environments.hard import hard_instance, margin_family
from fliphat.environments.linear import SparseLinear, sparse_truth
from fliphat.environments.one_hot import OneHot

__all__ = [
    "AR1",
    "Blocks",
    "ClassificationBandit",
    "Environment",
    "Equicorrelated",
    "HeavyTailed",
    "Independent",
    "OneHot",
    "Outcome",
    "Rounds",
    "SparseClicks",
    "SparseLinear",
    "TruncatedNormal",
    "Uniform",
    "from_classification",
    "hard_instance",
    "margin_family",
    "sparse_truth",
]
