"""What parts of pursuit are worth: the same worlds and seeds with one part taken away.

    python benches/ablations.py --seeds 31000-31019 --rounds 4000 --epsilon 1 2
    python benches/ablations.py --seeds 31000-31019 "24 arms" "all columns correlated .8"

Prints for each cell the mean regret as it is, and for each part the mean difference on the same seeds with
its standard error. Worlds and runs are those of ``benches/worlds.py``. One process.
"""

import argparse
import dataclasses
import sys
import warnings
from unittest import mock

import numpy as np
from worlds import ROWS, regret

from fliphat.fit.pursuit.constants import tuning

#: What is changed: constants, by the budget mu, or arguments of the policy.
PARTS = {
    "picks without signs": lambda mu: {"signed": False, "guess": 0.0},
    "picks of an episode that do not follow one another": lambda mu: {"pursued": 0.0},
    "second moments not used": lambda mu: {"moment_prior": 1e-12},
    "clips of the nearer of two budgets": lambda mu: {
        name: getattr(tuning(0.1 if mu < 1.3 else 10.0), name) for name in ("pick_clip", "value_clip", "gain")
    },
    "nothing is dropped but beyond s": lambda mu: {"prune": 0.0},
    "as many picks throughout": lambda mu: {"more_picks": 1.0, "fewer_picks": 1.0},
    "lengths that do not follow what is found": lambda mu: {
        "growth": 1.05,
        "slow_growth": 1.05,
        "fast_growth": 1.05,
    },
    "no drift": lambda mu: {"drift": 0.0},
    "no intercept": {"told": {"intercept": False}},
}


def runs(name, epsilon, seeds, rounds, part=None):
    """Return the regret of each seed, with a part taken away."""
    told = part.get("told", {}) if isinstance(part, dict) else {}

    def constants(mu):
        changes = part(mu) if callable(part) else {}
        return dataclasses.replace(tuning(mu), **changes)

    with mock.patch("fliphat.fit.pursuit.fit.tuning", constants):
        return np.array([regret(name, epsilon, seed, rounds=rounds, **told) for seed in seeds])


def main():
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rows", nargs="*", default=["as published"], help="names of rows")
    parser.add_argument("--seeds", default="31000-31019", help="first and last")
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 2.0])
    parser.add_argument("--rounds", type=int, default=4000)
    given = parser.parse_args()
    unknown = set(given.rows) - ROWS.keys()
    if unknown:
        parser.error(f"rows must be of {sorted(ROWS)}, got {sorted(unknown)}")
    warnings.simplefilter("ignore")
    first, last = (int(end) for end in given.seeds.split("-"))
    seeds = range(first, last + 1)
    for name in given.rows:
        for epsilon in given.epsilon:
            usual = runs(name, epsilon, seeds, given.rounds)
            print(f"{name}, eps {epsilon:g}: {usual.mean():,.0f} as it is", flush=True)
            for part, changes in PARTS.items():
                more = runs(name, epsilon, seeds, given.rounds, changes) - usual
                error = more.std(ddof=1) / np.sqrt(len(more)) if len(more) > 1 else np.nan
                print(f"  {part}: {more.mean():+,.0f} +- {error:.0f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
