"""Policies: what to play, and how it is learned privately."""

from fliphat.policies.base import Decision, Decisions, Policy
from fliphat.policies.errors import CopyError, SnapshotError, StoreError
from fliphat.policies.facts import EpisodeFacts, SparseEstimate
from fliphat.policies.fliphat import FLIPHAT

__all__ = [
    "FLIPHAT",
    "CopyError",
    "Decision",
    "Decisions",
    "EpisodeFacts",
    "Policy",
    "SnapshotError",
    "SparseEstimate",
    "StoreError",
]
