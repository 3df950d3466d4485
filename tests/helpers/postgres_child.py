"""Play a policy in a database for ever, and say on standard output what was acknowledged; the test kills it.

python postgres_child.py URL SEED
"""

import sys
import time

import numpy as np

from fliphat import FLIPHAT, Iht
from fliphat.policies import StoreError
from kill_child import say, show

DIM = 6


def make(url):
    """Open the policy; a server that is restarting can't be told from one that is not there."""
    for _ in range(100):
        try:
            return opened(url)
        except StoreError:
            time.sleep(0.2)
    return opened(url)


def opened(url):
    return FLIPHAT(
        dim=DIM, sparsity=2, epsilon=1.0, delta=0.01, fit=Iht(growth=1), first_episode=20, store=url
    )


if __name__ == "__main__":
    url, seed = sys.argv[1:]
    rng = np.random.default_rng(int(seed))
    policy = make(url)
    known = show(policy, 0)
    say("ready")
    while True:
        decision = policy.select(rng.standard_normal((3, DIM)))
        say("played", decision.id, decision.episode)
        known = show(policy, known)
        reward = float(np.float32(rng.standard_normal()))
        say("rewarded" if policy.update(decision, reward) else "late", decision.id, reward)
