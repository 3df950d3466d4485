"""Mean reward of `PrivateLinear` over one pass through labelled tables.

One arm a class, reward 1 for the right one.

    python benches/dense_tables.py                # the five real tables, 20 orders
    python benches/dense_tables.py --made         # tables to choose rules on, another one in every run
    python benches/dense_tables.py --labels       # three made tables like a census, one pass each
    python benches/dense_tables.py --labels --sorted   # whose people arrive sorted by one column
    python benches/dense_tables.py --census       # 150 000 rows of one-hot answers, 12 arms, known truth
    python benches/dense_tables.py --speed        # rounds a second, 10 arms x 64 columns
    python benches/dense_tables.py --orders 4 digits

One rule for all tables; delta is the smaller of 1/1000 and half of one over the rows. Each person comes once.
"""

import argparse
import time

import numpy as np
import real_tables

from fliphat import PrivateLinear


def policy_for(dim, arms, rows, epsilon, seed, **settings):
    """Return the policy, with one rule for all tables."""
    norm = {"context_norm": (dim / 3) ** 0.5} | settings
    return PrivateLinear(arms, dim, epsilon, min(1e-3, 0.5 / rows), seed=seed, **norm)


def played(policy, values, reward):
    """Return the reward of each round; `reward` is told rounds and their arms."""
    won, at = np.zeros(len(values)), 0
    while at < len(values):
        part = slice(at, at + min(policy.remaining, len(values) - at))
        decisions = policy.select_batch(values[part])
        won[part] = reward(part, decisions.arms)
        policy.update_batch(decisions, won[part])
        at = part.stop
    return won


def mean_reward(values, labels, epsilon, seed, *, arrive_sorted=False, **settings):
    """Return the mean reward over one pass in random order, over its last half and its last tenth."""
    n, dim = values.shape
    order = np.random.default_rng(seed).permutation(n)
    if arrive_sorted:  # those with equal values still come in random order
        order = order[np.argsort(values[order, 0], kind="stable")]
    values, labels = values[order], labels[order]
    policy = policy_for(dim, int(labels.max()) + 1, n, epsilon, seed, **settings)
    won = played(policy, values, lambda part, arms: arms == labels[part])
    return won.mean(), won[n // 2 :].mean(), won[-n // 10 :].mean()


#: Tables whose labels follow a linear score: rows, arms, numbers, questions, most answers of one, size of
#: scores, and of their noise.
LABELS = {
    "60 000 x 100, 12 arms": (60_000, 12, 2, 10, 18, 0.9, 1.2),
    "40 000 x 30, 5 arms": (40_000, 5, 10, 4, 8, 0.5, 1.2),
    "100 000 x 60, 20 arms": (100_000, 20, 4, 12, 7, 0.9, 1.0),
}


def labelled(name):
    """Return one of them: numbers, one-hot answers with skewed shares, and labels."""
    rows, arms, numbers, questions, most, size, noise = LABELS[name]
    rng = np.random.default_rng(4)
    levels = rng.integers(3, most + 1, questions)
    parts = [rng.normal(size=(rows, numbers)).clip(-2, 2)]
    for answers in levels:
        shares = rng.dirichlet(np.full(answers, 0.6))
        parts.append(np.eye(answers)[rng.choice(answers, rows, p=shares)])
    values = np.hstack(parts)
    scores = values @ rng.normal(size=(values.shape[1], arms)) * size
    return values, (scores + noise * rng.gumbel(size=(rows, arms))).argmax(axis=1)


def linucb(values, won, width=0.5, batch=500):
    """Return the arms of disjoint LinUCB, without privacy; what it knows is refreshed after each batch."""
    n, dim = values.shape
    arms = won.shape[1]
    moments, sums = np.stack([np.eye(dim)] * arms), np.zeros((arms, dim))
    chosen = np.zeros(n, np.int64)
    for at in range(0, n, batch):
        x = values[at : at + batch].astype(float)
        inverse = np.linalg.inv(moments)
        mean = x @ np.einsum("kij,kj->ki", inverse, sums).T
        spread = np.stack([((x @ one) * x).sum(axis=1) for one in inverse], axis=1)
        chosen[at : at + batch] = best = (mean + width * np.sqrt(spread)).argmax(axis=1)
        for arm in range(arms):
            own = best == arm
            moments[arm] += x[own].T @ x[own]
            sums[arm] += x[own].T @ won[at : at + batch, arm][own]
    return chosen


def census(epsilon, seed, rows=150_000):
    """Return mean chances of random play, the best constant arm, LinUCB, PrivateLinear and the truth."""
    values, chances = real_tables.census(seed, rows)
    rng = np.random.default_rng([seed, 16])
    won = (rng.random(chances.shape) < chances).astype(float)
    every = np.arange(rows)
    chosen = np.zeros(rows, np.int64)

    def reward(part, arms):
        chosen[part] = arms
        return won[every[part], arms]

    # Twelve answers: every row has norm sqrt(12).
    policy = policy_for(values.shape[1], chances.shape[1], rows, epsilon, seed, context_norm=12**0.5)
    played(policy, values, reward)
    return {
        "random": chances.mean(),
        "constant": chances.mean(axis=0).max(),
        "LinUCB": chances[every, linucb(values, won)].mean(),
        "PrivateLinear": chances[every, chosen].mean(),
        "truth": chances.max(axis=1).mean(),
    }


def speed(rounds=400_000):
    """Return rounds a CPU second, with rewards and fits."""
    rng = np.random.default_rng(0)
    policy = policy_for(64, 10, rounds, 1.0, 0)
    values = rng.normal(size=(8192, 64)).astype(np.float32)
    began, done = time.process_time(), 0
    while done < rounds:
        count = min(policy.remaining, len(values))
        decisions = policy.select_batch(values[:count])
        policy.update_batch(decisions, np.zeros(count))
        done += count
    return done / (time.process_time() - began)


def main():
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--labels", action="store_true")
    parser.add_argument("--sorted", action="store_true", help="people arrive sorted by the first column")
    parser.add_argument("--census", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--orders", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 10.0])
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.orders)
    if asked.speed:
        print(f"{speed():,.0f} rounds a CPU second")
        return
    if asked.census:
        for epsilon in asked.epsilon:
            for seed in seeds:
                found = census(epsilon, seed)
                gain = (found["PrivateLinear"] - found["random"]) / (found["LinUCB"] - found["random"])
                told = "  ".join(f"{name} {value:.4f}" for name, value in found.items())
                print(
                    f"census, seed {seed}, eps {epsilon:g}: {told}  gain {gain:.3f} of LinUCB's", flush=True
                )
        return
    names = asked.tables or (
        real_tables.MADE if asked.made else LABELS if asked.labels else real_tables.RANGES
    )
    for name in names:
        report(name, seeds, asked.epsilon, arrive_sorted=asked.sorted)


def report(name, seeds, epsilons, *, arrive_sorted):
    """Print what a table's passes earn."""
    began, told, settings = time.process_time(), [], {"arrive_sorted": arrive_sorted}
    if name in LABELS:
        whole = labelled(name)
        # The largest norm that these columns can have: public.
        _, _, numbers, questions, *_ = LABELS[name]
        settings["context_norm"] = (4 * numbers + questions) ** 0.5
        values, labels = (one[np.random.default_rng(seeds[0]).permutation(len(one))] for one in whole)
        chosen = linucb(values, np.eye(labels.max() + 1)[labels])
        told.append(
            f"constant {np.bincount(labels).max() / len(labels):.3f} LinUCB {(chosen == labels).mean():.3f}"
        )
    elif name not in real_tables.MADE:
        whole = real_tables.real(name)
    for epsilon in epsilons:
        found = np.array(
            [
                mean_reward(
                    *(real_tables.made(name, seed) if name in real_tables.MADE else whole),
                    epsilon,
                    seed,
                    **settings,
                )
                for seed in seeds
            ]
        )
        error = found[:, 0].std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
        told.append(
            f"eps {epsilon:g}: {found[:, 0].mean():.3f} +- {error:.3f} (lowest {found[:, 0].min():.3f}, "
            f"lowest second half {found[:, 1].min():.3f}, end {found[:, 2].mean():.3f})"
        )
    print(f"{name:28s} {'  '.join(told)}  {time.process_time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
