"""Policies without privacy, to be compared with, and what they share in `baseline`."""

from fliphat.lab.baselines.dr_lasso import DoublyRobustLasso
from fliphat.lab.baselines.greedy_iht import GreedyIHT
from fliphat.lab.baselines.lasso import ExploreThenCommit, LassoBandit, ThresholdedLasso
from fliphat.lab.baselines.linucb import LinUCB
from fliphat.lab.baselines.uniform import UniformRandom

__all__ = [
    "DoublyRobustLasso",
    "ExploreThenCommit",
    "GreedyIHT",
    "LassoBandit",
    "LinUCB",
    "ThresholdedLasso",
    "UniformRandom",
]
