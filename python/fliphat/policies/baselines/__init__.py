"""Policies without privacy, to be compared with: one file each, and what they share in `base`."""

from fliphat.policies.baselines.dr_lasso import DoublyRobustLasso
from fliphat.policies.baselines.estc import ExploreThenCommit
from fliphat.policies.baselines.greedy_iht import GreedyIHT
from fliphat.policies.baselines.lasso import LassoBandit
from fliphat.policies.baselines.linucb import LinUCB
from fliphat.policies.baselines.thresholded_lasso import ThresholdedLasso
from fliphat.policies.baselines.uniform import UniformRandom

__all__ = [
    "DoublyRobustLasso",
    "ExploreThenCommit",
    "GreedyIHT",
    "LassoBandit",
    "LinUCB",
    "ThresholdedLasso",
    "UniformRandom",
]
