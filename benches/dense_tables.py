"""Mean reward of `PrivateLinear` over one pass through labelled tables.

One arm a class, reward 1 for the right one.

    python benches/dense_tables.py                # the five real tables, 20 orders
    python benches/dense_tables.py --made         # tables to choose rules on
    python benches/dense_tables.py --orders 4 digits

One rule for all tables; delta is the smaller of 1/1000 and half of one over the rows. Each person comes once.
"""

import argparse
import time

import numpy as np
import real_tables

from fliphat import PrivateLinear


def mean_reward(values, labels, epsilon, seed, **settings):
    """Return the mean reward over one pass in random order, and over its last tenth."""
    n, dim = values.shape
    order = np.random.default_rng(seed).permutation(n)
    values, labels = values[order], labels[order]
    policy = PrivateLinear(
        int(labels.max()) + 1,
        dim,
        epsilon,
        min(1e-3, 0.5 / n),
        context_norm=(dim / 3) ** 0.5,
        seed=seed,
        **settings,
    )
    won, at = np.zeros(n), 0
    while at < n:
        count = min(policy.remaining, n - at)
        decisions = policy.select_batch(values[at : at + count])
        won[at : at + count] = decisions.arms == labels[at : at + count]
        policy.update_batch(decisions, won[at : at + count])
        at += count
    return won.mean(), won[-n // 10 :].mean()


def main():
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--orders", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 10.0])
    asked = parser.parse_args()
    names = asked.tables or (real_tables.MADE if asked.made else list(real_tables.RANGES))
    for name in names:
        values, labels = real_tables.made(name) if name.startswith("made") else real_tables.real(name)
        told, began = [], time.process_time()
        for epsilon in asked.epsilon:
            seeds = range(asked.first, asked.first + asked.orders)
            found = np.array([mean_reward(values, labels, epsilon, seed) for seed in seeds])
            error = found[:, 0].std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
            told.append(
                f"eps {epsilon:g}: {found[:, 0].mean():.3f} +- {error:.3f} (end {found[:, 1].mean():.3f})"
            )
        print(f"{name:28s} {'  '.join(told)}  {time.process_time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
