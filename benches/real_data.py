"""Private policies beside other bandit libraries on five tables that nobody here made.

    pip install 'fliphat[compare]'
    python benches/real_data.py                 # a Markdown table of rewards and one of rounds a second
    python benches/real_data.py --only FLIPHAT  # rows with this in their name; the others are as kept
    python benches/real_data.py --sets phishing --orders 2 --out few.csv
    python benches/update_readme.py             # the README's table, from what was kept

What is run replaces its rows in docs/figures/real-data.csv; the tables are those of the whole file.

Each row is met once, in random order; the right class earns 1. All libraries see the same features (numbers
scaled to -1..1 by the table's own ranges, which a study would take from public sources) and the same orders.
Settings are each library's defaults; one constant of FLIPHAT, a bound on residuals, was chosen on shuttle.
Only FLIPHAT and PrivateLinear are private; the others show what privacy costs. Libraries that are not
installed are left out.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from kept_rows import KeptRows

import real_sets
from fliphat.lab.baselines.baseline import RefitTimes
from fliphat.lab.display import TextTable
from fliphat.lab.tables.bandit import TableBandit, make_bandit
from fliphat.lab.tables.players import PRIVATE, public_numbers
from fliphat.lab.tables.read import read_frame
from fliphat.lab.tables.runs import play_order

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "figures" / "real-data.csv"
EPSILONS = (1.0, 10.0)
#: Libraries that take a millisecond a round or more play no more than this.
MOST_SINGLE_ROUNDS = 5000
#: What a library with refits may do: as often as our LinUCB does.
REFITS = RefitTimes(200)


def bandit_of(name: str) -> TableBandit:
    return make_bandit(
        read_frame(real_sets.load(name)),
        label="label",
        arm=None,
        reward=None,
        propensity=None,
        ranges={},
        reward_range=None,
        categorical=(),
        drop=(),
        missing="refuse",
    )


Player = Callable[[np.ndarray, np.ndarray, int, int], float]


def in_batches(
    choose: Callable[[np.ndarray], Any], learn: Callable[..., Any], X: np.ndarray, y: np.ndarray, first: Any
) -> float:
    """Play with refits after 1, 2, ... rounds, then a tenth more each time, at most 200."""
    at, won = 0, 0
    while at < len(y):
        end = min(REFITS.after(at), len(y))
        arms = np.asarray(first(end - at) if at == 0 else choose(X[at:end])).astype(int).reshape(-1)
        rewards = (arms == y[at:end]).astype(float)
        learn(X[at:end], arms, rewards)
        won += rewards.sum()
        at = end
    return float(won / len(y))


def mabwiser(X: np.ndarray, y: np.ndarray, arms: int, seed: int) -> float:
    from mabwiser.mab import MAB, LearningPolicy

    policy = MAB(list(range(arms)), LearningPolicy.LinUCB(alpha=0.1), seed=seed)
    # Its first fit needs a round; arms it has not seen keep their prior.
    return in_batches(
        policy.predict,
        lambda rows, chosen, rewards: policy.partial_fit(chosen, rewards, rows),
        X,
        y,
        lambda count: np.random.default_rng(seed).integers(0, arms, count),
    )


def contextualbandits(X: np.ndarray, y: np.ndarray, arms: int, seed: int) -> float:
    from contextualbandits.online import LinUCB

    policy = LinUCB(nchoices=arms, alpha=0.1, random_state=seed + 1)
    return in_batches(
        policy.predict,
        lambda rows, chosen, rewards: policy.partial_fit(rows, chosen, rewards),
        X,
        y,
        lambda count: np.random.default_rng(seed).integers(0, arms, count),
    )


def river(X: np.ndarray, y: np.ndarray, arms: int, seed: int) -> float:
    from river.bandit import LinUCBDisjoint

    policy = LinUCBDisjoint(alpha=0.1, seed=seed)
    won, ids = 0, list(range(arms))
    for row, right in zip(X.tolist(), y.tolist(), strict=True):
        context = dict(enumerate(row))
        arm = policy.pull(ids, context=context)
        won += arm == right
        policy.update(arm, context, float(arm == right))
    return won / len(y)


def vowpal_wabbit(X: np.ndarray, y: np.ndarray, arms: int, seed: int) -> float:
    import vowpalwabbit

    learner = vowpalwabbit.Workspace(f"--cb_explore {arms} --epsilon 0.05 --quiet --random_seed {seed}")
    rng, won = np.random.default_rng(seed), 0
    for row, right in zip(X[:, 1:].tolist(), y.tolist(), strict=True):
        features = "| " + " ".join(f"{i}:{value:.6g}" for i, value in enumerate(row))
        chances = np.asarray(learner.predict(features))
        arm = int(rng.choice(arms, p=chances / chances.sum()))
        won += arm == right
        learner.learn(f"{arm + 1}:{-float(arm == right)}:{chances[arm]} {features}")
    learner.finish()
    return won / len(y)


LIBRARIES: dict[str, tuple[Player, bool]] = {
    "river, LinUCBDisjoint": (river, True),
    "MABWiser, LinUCB": (mabwiser, True),
    "contextualbandits, LinUCB": (contextualbandits, False),
    "Vowpal Wabbit, epsilon-greedy": (vowpal_wabbit, True),
}


def own_rows(bandit: TableBandit) -> Iterator[tuple[str, Callable[[int], float]]]:
    public = public_numbers(bandit, None, None)
    for policy, epsilon in (
        ("random", None),
        ("constant", None),
        *((policy, epsilon) for policy in PRIVATE for epsilon in EPSILONS),
        ("LinUCB", None),
    ):
        name = {"constant": "best constant arm", "LinUCB": "LinUCB of this package"}.get(policy, policy)
        if epsilon is not None:
            name += f", epsilon = {epsilon:g} (private)"

        def play(order: int, policy: str = policy, epsilon: float | None = epsilon) -> float:
            return play_order(bandit, public, policy, epsilon, order, 0).mean

        yield name, play


def compare(names: list[str], orders: int, only: str, kept: KeptRows) -> None:
    for name in names:
        bandit = bandit_of(name)
        X, y = bandit.features.matrix.astype(np.float64), np.asarray(bandit.outcomes)
        print(f"# {name}: {X.shape}, {len(bandit.arms)} arms", file=sys.stderr)

        def note(row: str, means: list[float], began: float, rounds: int, name: str = name) -> None:
            speed = rounds * len(means) / (time.process_time() - began)
            told = {"mean": f"{np.mean(means):.4f}", "rounds_a_second": f"{speed:.0f}"}
            kept.put(policy=row, set=name, orders=str(len(means)), rounds=str(rounds), **told)
            print(f"{row}: {np.mean(means):.3f}, {speed:,.0f} rounds/s", file=sys.stderr, flush=True)

        for row, play in own_rows(bandit):
            if only in row:
                began = time.process_time()
                note(row, [play(order) for order in range(orders)], began, len(y))
        for row, (player, single) in LIBRARIES.items():
            if only not in row:
                continue
            count = min(len(y), MOST_SINGLE_ROUNDS) if single else len(y)
            means: list[float] = []
            try:
                player(X[:50], y[:50], len(bandit.arms), 0)  # imports are not counted
                began = time.process_time()
                for order in range(orders):
                    rows = np.random.default_rng([0, order]).permutation(len(y))[:count]
                    means.append(player(X[rows], y[rows], len(bandit.arms), order))
            except ImportError as error:
                print(f"{row}: not installed ({error})", file=sys.stderr)
                continue
            note(row, means, began, count)


def rewards(kept: KeptRows) -> str:
    """Return the mean rewards as Markdown; a star stands where a library played part of a table."""
    sets = [name for name in real_sets.NAMES if name in kept.names("set")]
    most = {name: max(int(row["rounds"]) for row in _rows(kept, name)) for name in sets}

    def cell(policy: str, name: str) -> str:
        row = kept.get(policy, name)
        return "" if row is None else f"{float(row['mean']):.3f}" + "*" * (int(row["rounds"]) < most[name])

    return _table(kept, sets, cell)


def speeds(kept: KeptRows) -> str:
    """Return rounds a second as Markdown."""
    sets = [name for name in real_sets.NAMES if name in kept.names("set")]

    def cell(policy: str, name: str) -> str:
        row = kept.get(policy, name)
        return "" if row is None else f"{int(row['rounds_a_second']):,}"

    return _table(kept, sets, cell)


def _rows(kept: KeptRows, name: str) -> list[dict[str, str]]:
    found = [kept.get(policy, name) for policy in kept.names("policy")]
    return [row for row in found if row is not None]


def _table(kept: KeptRows, sets: list[str], cell: Callable[[str, str], str]) -> str:
    rows = [[policy, *(cell(policy, name) for name in sets)] for policy in kept.names("policy")]
    return TextTable.fitting(["policy", *sets], rows, markdown=True).text(rows)


def open_kept(path: Path) -> KeptRows:
    """Return what was kept of earlier runs."""
    return KeptRows(path, ("policy", "set"), ("orders", "rounds", "mean", "rounds_a_second"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=real_sets.NAMES, default=list(real_sets.NAMES))
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--only", default="", help="run rows with this in their name")
    parser.add_argument("--out", type=Path, default=KEPT, help="the file that keeps results")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    kept = open_kept(chosen.out)
    compare(chosen.sets, chosen.orders, chosen.only, kept)
    print(f"\nMean reward a round\n\n{rewards(kept)}\n\n*: its first {MOST_SINGLE_ROUNDS:,} rounds only")
    print(f"\nRounds a CPU second, learning included\n\n{speeds(kept)}")


if __name__ == "__main__":
    main()
