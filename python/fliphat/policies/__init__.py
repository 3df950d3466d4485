"""Policies: what to play, and how it is learned privately."""

from fliphat.policies.base import Decision, Decisions, Policy
from fliphat.policies.errors import CopyError, SnapshotError, SpillError, StoreError
from fliphat.policies.facts import EpisodeFacts, SparseEstimate
from fliphat.policies.fliphat import FLIPHAT
from fliphat.policies.iht import GreedyIHT
from fliphat.policies.lasso import LassoBandit
from fliphat.policies.linucb import LinUCB
from fliphat.policies.uniform import UniformRandom

__all__ = [
    "FLIPHAT",
    "CopyError",
    "Decision",
    "Decisions",
    "EpisodeFacts",
    "GreedyIHT",
    "LassoBandit",
    "LinUCB",
    "Policy",
    "SnapshotError",
    "SparseEstimate",
    "SpillError",
    "StoreError",
    "UniformRandom",
]
