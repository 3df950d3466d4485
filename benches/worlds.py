"""Regret in the worlds of ``fliphat reproduce beyond-the-paper``, any of them on any seeds.

    python benches/worlds.py --seeds 34000-34019 "24 arms" "all columns correlated .8"
    python benches/worlds.py --seeds 34000-34019 --fit first --epsilon .5 1 2 "as published"

Prints, as runs come, the mean of each cell with its standard error, what was asked for, and the largest runs:
a mean is lost by rare runs. Rows come in an order that shows trouble first. One process.
"""

import argparse
import dataclasses
import json
import sys
import time
import warnings
from unittest import mock

import numpy as np

from fliphat.fit import make_fit
from fliphat.lab.experiments.catalog.beyond_the_paper import FIRST_FIT, PURSUIT, ROWS, policies
from fliphat.simulation import play

ROUNDS = 20_000
TROUBLE_FIRST = (
    "24 arms",
    "all columns correlated .8",
    "all columns correlated .5",
    "context scale told / 10",
    "reward scale told x 10",
    "rewards + 10, estimated",
    "contexts of mean 1",
    "20 columns matter",
    "10 columns matter",
    "sparsity told 30, not 10",
    "context scale told / 3",
    "context scale told x 3",
    "reward scale told x 3",
    "reward scale told / 3",
    "context scale told x 10",
    "reward scale told / 10",
    "units differ by 1 000, told",
    "as published",
    "4 000 columns",
)


def as_first_released(settings):
    """Return the fit of the first release: hard thresholding whose noise follows from zCDP."""
    return make_fit(dataclasses.replace(settings, accounting="zcdp"))


def regret(name, epsilon, seed, fit="pursuit", rounds=ROUNDS, **told):
    """Return the regret of one run."""
    row = ROWS[name]
    recipe = policies(row, epsilon)[PURSUIT if fit == "pursuit" else FIRST_FIT]
    world = row.world(seed=seed)
    made = as_first_released if fit == "first" else make_fit
    with mock.patch("fliphat.policies.fliphat.make_fit", made):
        policy = recipe(environment=world, seed=seed, **told)
    return float(play(policy, world, rounds, to_the_end=True).regret.sum())


def main():
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rows", nargs="*", help="names of rows; all by default")
    parser.add_argument("--seeds", default="34000-34019", help="first and last")
    parser.add_argument("--epsilon", type=float, nargs="*", help="all of a row by default")
    parser.add_argument("--fit", choices=("pursuit", "iht", "first"), default="pursuit")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", help="a file to which runs are appended, a JSON line each")
    given = parser.parse_args()
    unknown = set(given.rows) - ROWS.keys()
    if unknown:
        parser.error(f"rows must be of {sorted(ROWS)}, got {sorted(unknown)}")
    warnings.simplefilter("ignore")
    first, last = (int(end) for end in given.seeds.split("-"))
    for name in given.rows or TROUBLE_FIRST:
        for epsilon in ROWS[name].floors:
            if given.epsilon and epsilon not in given.epsilon:
                continue
            start, runs = time.process_time(), {}
            for seed in range(first, last + 1):
                runs[seed] = regret(name, epsilon, seed, given.fit, given.rounds)
            if given.out:
                with open(given.out, "a") as file:
                    line = {"row": name, "epsilon": epsilon, "fit": given.fit, "runs": runs}
                    print(json.dumps(line), file=file)
            values = np.array(list(runs.values()))
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            worst = sorted(runs, key=lambda seed: -runs[seed])[:3]
            floor = ROWS[name].floors[epsilon]
            print(
                f"{name}, eps {epsilon:g}: {values.mean():,.0f} +- {error:.0f} of {floor:,.0f} "
                f"(aim {ROWS[name].aims[epsilon]:,.0f}){'' if values.mean() <= floor else '  MISSED'}"
                + "; largest "
                + ", ".join(f"{runs[seed]:,.0f} ({seed})" for seed in worst)
                + f"; {(time.process_time() - start) / len(values):.2f} s a run",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
