"""Play on a store for ever, and say on standard output what was acknowledged; the test kills it.

python kill_child.py DIRECTORY DURABILITY SEED POLICY
"""

import sys

import numpy as np

from dense_twin import POLICIES
from fliphat import Iht, Store

DIM = 6


def make(directory, durability, policy="FLIPHAT"):
    return POLICIES[policy](
        dim=DIM,
        sparsity=2,
        epsilon=1.0,
        delta=0.01,
        first_episode=5,
        fit=Iht(growth=2),
        store=Store(directory, durability=durability),
    )


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def show(policy, known):
    for facts in policy.history[known:]:
        say(
            "shown",
            facts.episode,
            facts.estimate.indices.tobytes().hex() + facts.estimate.values.tobytes().hex(),
        )
    return len(policy.history)


def acknowledge(policy, durability):
    """Do what must come before a call is told of: with "group" nothing is promised before `flush`."""
    if durability == "group":
        policy.flush()


if __name__ == "__main__":
    directory, durability, seed, name = sys.argv[1:]
    rng = np.random.default_rng(int(seed))
    policy = make(directory, durability, name)
    known = show(policy, 0)
    say("ready")
    while True:
        decision = policy.select(rng.standard_normal((3, DIM)))
        acknowledge(policy, durability)
        say("played", decision.id)
        known = show(policy, known)
        policy.update(decision, float(rng.standard_normal()))
        acknowledge(policy, durability)
        say("rewarded", decision.id)
