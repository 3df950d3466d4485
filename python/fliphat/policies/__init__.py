"""Policies: what to play, and how it is learned privately."""

from fliphat.policies.fliphat import FLIPHAT
from fliphat.policies.health import Health, HealthWarning
from fliphat.policies.linear import PrivateLinear
from fliphat.policies.scoreboard import Scoreboard
from fliphat.policies.store.options import Store
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
    "EpisodeFacts",
    "Health",
    "HealthWarning",
    "Policy",
    "PrivateLinear",
    "Scoreboard",
    "SnapshotError",
    "SparseEstimate",
    "SpillError",
    "Store",
    "StoreError",
]
