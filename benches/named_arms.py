"""Mean reward of a policy whose arms have names, in worlds whose truth is known.

    python benches/named_arms.py plain            # no contexts: one arm pays .28, the others share .36
    python benches/named_arms.py table            # 26 arms, 30 columns, most of them one-hot, 300 000 people
    python benches/named_arms.py wide --policy FLIPHAT   # 1 000 and 20 000 columns, of which five matter
    python benches/named_arms.py rare             # two arms, one label in 3, 6 and 30 % of rows
    python benches/named_arms.py plain --runs 8 --first 100 --epsilon 1 10

`POLICIES` says how each policy is made from public numbers alone. What is counted is the chance of a reward
of the arm that was played.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.sparse import csr_array

from fliphat import FLIPHAT, PrivateLinear


def private_linear(arms, dim, epsilon, delta, norm, seed):
    """Return a PrivateLinear."""
    return PrivateLinear(arms, dim, epsilon, delta, context_norm=norm, seed=seed)


def fliphat(arms, dim, epsilon, delta, norm, seed):
    """Return a FLIPHAT with named arms."""
    given = {"sparsity": dim, "epsilon": epsilon, "delta": delta, "reward_range": (0, 1)}
    return FLIPHAT(dim, arms=arms, context_scale=norm / dim**0.5, seed=seed, **given)


POLICIES = {"PrivateLinear": private_linear, "FLIPHAT": fliphat}


def played(policy, contexts, chances, rng):
    """Return the chance of a reward in every round; `chances` has a column for each arm."""
    n, at = contexts.shape[0], 0
    earned = np.zeros(n)
    while at < n:
        part = slice(at, at + min(policy.remaining, n - at))
        decisions = policy.select_batch(contexts[part])
        own = np.arange(part.start, part.stop) if len(chances) == n else 0
        earned[part] = chances[own, np.asarray(decisions.arms, int)]
        policy.update_batch(decisions, (rng.random(part.stop - at) < earned[part]).astype(float))
        at = part.stop
    return earned


def plain(make, asked):
    """Print mean rewards of arms without contexts."""
    for arms in asked.arms:
        chances = np.full((1, arms), 0.36 / (arms - 1))
        chances[0, arms // 2] = 0.28
        for epsilon in asked.epsilon:
            found = [
                played(
                    make(arms, 1, epsilon, 1e-6, 1.0, seed),
                    np.ones((40_000, 1), np.float32),
                    chances,
                    np.random.default_rng([seed, arms]),
                ).mean()
                for seed in asked.seeds
            ]
            tell(f"{arms} arms, eps {epsilon:g}", found, f"random {chances.mean():.3f}")


def people(seed, rows=300_000, arms=26):
    """Return contexts, chances of 26 arms of which one is right in each row, and the largest norm of a row.

    Two numbers and seven questions with one answer each, some seldom given: 30 columns. One arm is right for
    .28 of people, the others for .09 and less. What people are like, and what suits them, is always the same.
    """
    truth, rng = np.random.default_rng(26), np.random.default_rng([seed, 26])
    columns = [rng.normal(size=(rows, 2)).clip(-2, 2) / 2]
    for answers in (2, 2, 3, 4, 4, 5, 8):
        columns.append(np.eye(answers)[rng.choice(answers, rows, p=truth.dirichlet(np.full(answers, 0.5)))])
    values = np.concatenate(columns, axis=1).astype(np.float32)
    scores = values @ truth.normal(size=(values.shape[1], arms))
    wanted = np.append(
        0.28 / 0.72, np.exp(-0.12 * np.arange(arms - 1)) * (1 - np.exp(-0.12)) / (1 - np.exp(-3.0))
    )
    wanted /= wanted.sum()
    level = np.log(wanted) - scores.mean(axis=0)
    for _ in range(40):  # until arms are right as often as they should be
        level += 0.7 * np.log(wanted / _shares(scores[:20_000] + level).mean(axis=0))
    return values, _shares(scores + level), 3.0


def _shares(scores):
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def table(make, asked):
    """Print mean rewards on a table of 26 arms."""
    from dense_tables import linucb

    for epsilon in asked.epsilon:
        found, constant, beside = [], [], []
        for seed in asked.seeds:
            values, chances, norm = people(seed)
            policy = make(chances.shape[1], values.shape[1], epsilon, 1e-6, norm, seed)
            rng = np.random.default_rng([seed, 27])
            found.append(played(policy, values, chances, rng).mean())
            constant.append(chances.mean(axis=0).max())
            if asked.linucb:
                won = (rng.random(chances.shape) < chances).astype(float)
                chosen = linucb(np.column_stack([values, np.ones(len(values))]), won, batch=2000)
                beside.append(chances[np.arange(len(values)), chosen].mean())
        told = f"constant {np.mean(constant):.3f}"
        if beside:
            told += f", LinUCB {np.mean(beside):.3f}"
        tell(f"26 arms x 30, eps {epsilon:g}", found, told)


def wide_blocks(kind, dim, arms, rows, seed, block=2000):
    """Yield contexts and chances of rewards; five columns matter, to every arm.

    normal: independent columns; one-hot: questions with five even answers; hashed: 30 words a row, the first
    ones of which are common, in CSR, and words that matter are among the 60 most common ones.
    """
    rng = np.random.default_rng([seed, 7])
    matter = rng.choice(60 if kind == "hashed" else dim, 5, replace=False)
    size = {"normal": 1.0, "one-hot": 3.0, "hashed": 2.5}[kind]
    truth = size * rng.choice([-1, 1], (arms, 5)) * rng.uniform(0.5, 1, (arms, 5))
    level = 0.2 * rng.normal(size=arms) - 0.5
    common = 1 / (np.arange(dim) + 10.0)
    for start in range(0, rows, block):
        n = min(block, rows - start)
        if kind == "normal":
            values = rng.standard_normal((n, dim), dtype=np.float32)
        else:
            if kind == "one-hot":
                words = rng.integers(0, 5, (n, dim // 5)) + 5 * np.arange(dim // 5)
            else:
                words = rng.choice(dim, (n, 30), p=common / common.sum())
            at = np.repeat(np.arange(n), words.shape[1])
            values = csr_array((np.ones(words.size, np.float32), (at, words.ravel())), shape=(n, dim))
            values.sum_duplicates()
            if dim <= 2000:
                values = values.toarray()
        told = values[:, matter]
        scores = (told if isinstance(told, np.ndarray) else told.toarray()) @ truth.T + level
        yield values, 1 / (1 + np.exp(-scores))


def wide_run(kind, dim, arms, rows, epsilon, seed):
    """Return mean rewards of a FLIPHAT told of ten columns: all rounds, the second half; what others earn."""
    given = {"epsilon": epsilon, "delta": 1e-6, "reward_range": (0, 1), "seed": seed}
    policy, rng, earned, all_chances = (
        FLIPHAT(dim, 10, arms=arms, **given),
        np.random.default_rng(seed),
        [],
        [],
    )
    for values, chances in wide_blocks(kind, dim, arms, rows, seed):
        earned.append(played(policy, values, chances, rng))
        all_chances.append(chances)
    earned, chances = np.concatenate(earned), np.concatenate(all_chances)
    beside = chances.mean(), chances.mean(axis=0).max(), chances.max(axis=1).mean()
    return earned.mean(), earned[rows // 2 :].mean(), *beside


def wide(make, asked):
    """Print what is earned where few of many columns matter, beside random play, constant arm and truth."""
    for kind, dim in (("normal", 1000), ("one-hot", 1000), ("one-hot", 20_000), ("hashed", 20_000)):
        for rows in asked.rows:
            for arms in asked.arms:
                for epsilon in asked.epsilon:
                    found = [wide_run(kind, dim, arms, rows, epsilon, seed) for seed in asked.seeds]
                    whole, half, random, constant, best = np.mean(found, axis=0)
                    told = (
                        f"random {random:.3f}, constant {constant:.3f}, truth {best:.3f}, 2nd half {half:.3f}"
                    )
                    over = [one[0] - one[3] for one in found]
                    tell(
                        f"{kind} {dim}, {arms} arms, {rows}, eps {epsilon:g}",
                        over,
                        f"over it; {whole:.3f}; {told}",
                    )


def rare_run(make, share, rows, epsilon, seed):
    """Return the mean reward of the second half of a run with two arms, over the constant arm's."""
    rng = np.random.default_rng([seed, rows])
    numbers = rng.normal(size=(rows, 4)).clip(-2, 2) / 2
    answers = np.eye(6)[rng.choice(6, rows, p=rng.dirichlet(np.full(6, 2.0)))]
    values = np.concatenate([numbers, answers], axis=1).astype(np.float32)
    scores = 0.7 * values @ rng.normal(size=10)
    odds = np.log(share / (1 - share)) + scores - scores.mean()
    labels = rng.random(rows) < 1 / (1 + np.exp(-odds))
    chances = np.column_stack([~labels, labels]).astype(float)
    earned = played(make(2, 10, epsilon, 1e-6, 2.0, seed), values, chances, rng)
    half = slice(rows // 2, None)
    return earned[half].mean() / chances[half, 0].mean()


def rare(make, asked):
    """Print mean rewards of runs with two arms of which one is seldom right."""
    for share in (0.03, 0.06, 0.3):
        for rows in (5_000, 20_000):
            for epsilon in asked.epsilon:
                found = [rare_run(make, share, rows, epsilon, seed) for seed in asked.seeds]
                tell(f"{share:.0%} of {rows}, eps {epsilon:g}", found, "of the constant arm's")


def tell(what, found, beside):
    """Print a line."""
    error = np.std(found, ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
    print(
        f"{what:28s} {np.mean(found):.4f} +- {error:.4f}, lowest {np.min(found):.4f} ({beside})", flush=True
    )


def main():
    """Print a line for each world and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("world", choices=["plain", "table", "rare", "wide"])
    parser.add_argument("--policy", choices=list(POLICIES), default="PrivateLinear")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--arms", type=int, nargs="*")
    parser.add_argument("--rows", type=int, nargs="*", default=[20_000, 100_000], help="rounds (wide)")
    parser.add_argument("--epsilon", type=float, nargs="*")
    parser.add_argument("--linucb", action="store_true", help="play LinUCB beside it (table)")
    asked = parser.parse_args()
    usual = {"plain": (8, [1.0, 10.0, 100.0]), "table": (8, [1.0, 10.0]), "rare": (20, [1.0, 10.0])}
    usual["wide"] = (4, [1.0, 10.0])
    asked.arms = asked.arms or ([5] if asked.world == "wide" else [5, 10, 26, 50])
    asked.runs = asked.runs or usual[asked.world][0]
    asked.epsilon = asked.epsilon or usual[asked.world][1]
    asked.seeds = range(asked.first, asked.first + asked.runs)
    warnings.simplefilter("ignore")
    began = time.process_time()
    {"plain": plain, "table": table, "rare": rare, "wide": wide}[asked.world](POLICIES[asked.policy], asked)
    print(f"{time.process_time() - began:.0f} s of processor time")


if __name__ == "__main__":
    main()
