"""Clicks: what is gained over random play, of what could be, by fits of the logistic loss in many worlds.

    python benches/clicks.py --seeds 200-205 --epsilon 1 10 "one-hot" "normal, rare"
    python benches/clicks.py --seeds 200-205 --fit iht --scale .35 "one-hot"

A share of 0 is random play and 1 is the truth. Prints the mean of each cell with its standard error. One
process.
"""

import argparse
import json
import math
import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np

from fliphat import FLIPHAT
from fliphat.environments import Equicorrelated, Outcome, SparseClicks, SparseLinear
from fliphat.fit.options import named
from fliphat.simulation import play


class DenseClicks:
    """Clicks with dense contexts: those of SparseLinear, whose means are log odds, less an intercept."""

    def __init__(self, dim, arms, *, seed, log_odds=0.0, **linear):
        self._rounds = SparseLinear(dim, arms, noise_scale=0.0, seed=seed, **linear)
        self.dim, self.arms, self.layout, self.log_odds = dim, arms, "dense", log_odds
        self.reset()

    def reset(self):
        """Go back to the first round."""
        self._rounds.reset()
        self._coins = np.random.default_rng([self._rounds.seed, 99])

    @property
    def truth(self):
        """Columns and log odds."""
        return self._rounds.truth

    def play(self, rounds, estimate=None, *, rows=True, out=None):
        """Play greedily on an estimate."""
        drawn = self._rounds.play(rounds, estimate, rows=rows, out=out)
        chance, best = (
            1 / (1 + np.exp(-self.log_odds - odds)) for odds in (drawn.rewards, drawn.rewards + drawn.regret)
        )
        clicks = (self._coins.random(rounds) < chance).astype(float)
        return Outcome(drawn.arms, clicks, best - chance, drawn.rows)


@dataclass(frozen=True)
class World:
    """How to make an environment, how long to play it, and what is told."""

    make: object
    rounds: int = 20_000
    sparsity: int = 30
    scale: float = 0.35  # a right one, for hard thresholding


def one_hot(dim, arms=5, nonzeros=50, shift=0.0, **more):
    """Return a maker of one-hot and hashed contexts whose log odds are `shift` off even ones."""

    def make(seed):
        world = SparseClicks(dim, arms, nonzeros=nonzeros, seed=seed, **more)
        if shift:
            world = SparseClicks(
                dim, arms, nonzeros=nonzeros, seed=seed, intercept=world.intercept + shift, **more
            )
        return world

    return make


def dense(dim, arms=3, **more):
    """Return a maker of dense contexts."""
    return lambda seed: DenseClicks(dim, arms, seed=seed, **more)


def weak(seed):
    """Return normal contexts with half as large coefficients."""
    columns, values = SparseLinear(200, 3, seed=seed).truth
    return DenseClicks(200, 3, seed=seed, coefficients=(columns, values / 2))


WORLDS = {
    "one-hot": World(one_hot(400)),
    "one-hot, 2 000": World(one_hot(2000), rounds=50_000),
    "one-hot, 20 000": World(one_hot(20_000), rounds=100_000),
    "one-hot, 100 columns, 2 arms": World(one_hot(100, 2, 10, sparsity=8), sparsity=12),
    "one-hot, 24 arms": World(one_hot(400, 24)),
    "one-hot, 2 arms": World(one_hot(400, 2)),
    "one-hot, short rows": World(one_hot(1000, 5, 8, sparsity=10), sparsity=15),
    "one-hot, rare": World(one_hot(400, shift=-3.5), rounds=50_000),
    "one-hot, 2 000, rare": World(one_hot(2000, shift=-3.0), rounds=100_000),
    "one-hot, rarest": World(one_hot(400, shift=-4.5), rounds=100_000),
    "one-hot, 1 %": World(one_hot(400, shift=-6.0), rounds=100_000),
    "one-hot, frequent": World(one_hot(400, shift=2.5)),
    "normal": World(dense(200), sparsity=10, scale=1.0),
    "normal, 1 000": World(dense(1000), sparsity=10, scale=1.0),
    "normal, 24 arms": World(dense(200, 24), sparsity=10, scale=1.0),
    "normal, 2 arms": World(dense(100, 2), sparsity=10, scale=1.0),
    "normal, correlated": World(dense(200, contexts=Equicorrelated(0.5)), sparsity=10, scale=1.0),
    "normal, rare": World(dense(200, log_odds=-3.5), sparsity=10, scale=1.0),
    "normal, rarest": World(dense(200, log_odds=-4.5), rounds=50_000, sparsity=10, scale=1.0),
    "normal, 1 %": World(dense(200, log_odds=-6.0), rounds=100_000, sparsity=10, scale=1.0),
    "normal, frequent": World(dense(200, log_odds=2.5), sparsity=10, scale=1.0),
    "normal, weak": World(weak, sparsity=10, scale=1.0),
    "normal, s 30": World(dense(200), sparsity=30, scale=1.0),
    "normal, size 3": World(dense(200, context_scale=3.0), sparsity=10, scale=3.0),
    "normal, size .3": World(dense(200, context_scale=0.3), sparsity=10, scale=0.3),
    "normal, means": World(dense(200, context_mean=1.0), sparsity=10, scale=1.0),
    "normal, 20 matter": World(dense(400, sparsity=20), sparsity=40, scale=1.0),
}


def run(name, epsilon, seed, fit="pursuit", scale=1.0, delta=1e-6, rounds=None, **told):
    """Return the share gained, and the policy."""
    row = WORLDS[name]
    world, rounds = row.make(seed), rounds or row.rounds
    policy = FLIPHAT(
        world.dim,
        row.sparsity,
        epsilon,
        delta,
        loss="logistic",
        fit=named(fit),
        context_scale=scale,
        seed=seed,
        **told,
    )
    regret = play(policy, world, rounds).regret.mean()
    world.reset()
    nothing = world.play(min(rounds, 20_000), rows=False).regret.mean()
    return 1 - regret / nothing, policy


def main():
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rows", nargs="*", help="names of worlds; all by default")
    parser.add_argument("--seeds", default="200-205", help="first and last")
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 10.0])
    parser.add_argument("--fit", choices=("pursuit", "iht"), default="pursuit")
    parser.add_argument("--scale", default="1", help="context scale told, or 'right'")
    parser.add_argument("--out", help="a file to which runs are appended, a JSON line each")
    given = parser.parse_args()
    unknown = set(given.rows) - WORLDS.keys()
    if unknown:
        parser.error(f"rows must be of {sorted(WORLDS)}, got {sorted(unknown)}")
    warnings.simplefilter("ignore")
    first, last = (int(end) for end in given.seeds.split("-"))
    for name in given.rows or WORLDS:
        for epsilon in given.epsilon:
            began, shares = time.perf_counter(), []
            for seed in range(first, last + 1):
                scale = WORLDS[name].scale if given.scale == "right" else float(given.scale)
                shares.append(run(name, epsilon, seed, given.fit, scale)[0])
                if given.out:
                    record = {"world": name, "epsilon": epsilon, "seed": seed, "fit": given.fit}
                    with open(given.out, "a") as file:
                        print(json.dumps(record | {"scale": given.scale, "share": shares[-1]}), file=file)
            error = np.std(shares, ddof=1) / math.sqrt(len(shares)) if len(shares) > 1 else math.nan
            seconds = (time.perf_counter() - began) / len(shares)
            print(
                f"{name}, eps {epsilon:g}, {given.fit}, told {given.scale}: {np.mean(shares):.3f} "
                f"+- {error:.3f} (lowest {min(shares):.3f}; {seconds:.1f} s a run)",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
