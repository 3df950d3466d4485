"""Policies: what to play, and how it is learned privately."""

from fliphat.policies.baselines import (
    DoublyRobustLasso,
    ExploreThenCommit,
    GreedyIHT,
    LassoBandit,
    LinUCB,
    ThresholdedLasso,
    UniformRandom,
)
from fliphat.policies.fliphat import FLIPHAT
from fliphat.policies.health import Health, HealthWarning
from fliphat.policies.linear import PrivateLinear
from fliphat.policies.types import (
    CopyError,
    Decision,
    Decisions,
    EpisodeFacts,
    Policy,
    SnapshotError,
    SparseEstimate,
    SpillError,
    StoreError,
)

__all__ = [
    "FLIPHAT",
    "CopyError",
    "Decision",
    "Decisions",
    "DoublyRobustLasso",
    "EpisodeFacts",
    "ExploreThenCommit",
    "GreedyIHT",
    "Health",
    "HealthWarning",
    "LassoBandit",
    "LinUCB",
    "Policy",
    "PrivateLinear",
    "SnapshotError",
    "SparseEstimate",
    "SpillError",
    "StoreError",
    "ThresholdedLasso",
    "UniformRandom",
]
