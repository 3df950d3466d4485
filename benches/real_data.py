"""Private policies beside other bandit libraries on five tables that nobody here made.

    pip install 'fliphat[compare]'
    python benches/real_data.py                 # a Markdown table of rewards and one of rounds a second
    python benches/real_data.py --sets phishing --orders 2
    python benches/real_data.py --models        # classifiers and regressors beside diffprivlib

diffprivlib 0.6.6 needs scikit-learn before 1.6 or so; the wheel of fliphat runs beside either.

Each row is met once, in random order; the right class earns 1. All libraries see the same features (numbers
scaled to -1..1 by the table's own ranges, which a study would take from public sources) and the same orders.
Settings are each library's own defaults: nothing was tuned on these tables. Only FLIPHAT and PrivateLinear
are private; the others show what privacy costs. Libraries that are not installed are left out.
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
import real_sets
from fliphat.display import TextTable
from fliphat.policies.baselines.base import RefitTimes
from fliphat.tables.bandit import TableBandit, make_bandit
from fliphat.tables.players import PRIVATE, public_numbers
from fliphat.tables.read import read_frame
from fliphat.tables.runs import play_order

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
    "MABWiser LinUCB": (mabwiser, True),
    "contextualbandits LinUCB": (contextualbandits, False),
    "river LinUCBDisjoint": (river, True),
    "Vowpal Wabbit epsilon-greedy": (vowpal_wabbit, True),
}


def own_rows(bandit: TableBandit) -> Iterator[tuple[str, Callable[[int], float]]]:
    public = public_numbers(bandit, None, None)
    for policy, epsilon in (
        ("random", None),
        ("constant", None),
        *((policy, epsilon) for policy in PRIVATE for epsilon in EPSILONS),
        ("LinUCB", None),
    ):
        name = {"constant": "best constant arm", "LinUCB": "fliphat's LinUCB"}.get(policy, policy)
        if epsilon is not None:
            name += f", epsilon = {epsilon:g} (private)"

        def play(order: int, policy: str = policy, epsilon: float | None = epsilon) -> float:
            return play_order(bandit, public, policy, epsilon, order, 0).mean

        yield name, play


def compare(names: list[str], orders: int) -> None:
    rewards: dict[str, list[str]] = {}
    speeds: dict[str, list[str]] = {}

    def note(row: str, means: list[float], seconds: float, rounds: int, mark: str = "") -> None:
        rewards.setdefault(row, []).append(f"{np.mean(means):.3f}{mark}")
        speeds.setdefault(row, []).append(f"{rounds * len(means) / seconds:,.0f}")
        print(f"{row}: {np.mean(means):.3f}, {rounds * len(means) / seconds:,.0f} rounds/s", file=sys.stderr)

    for name in names:
        bandit = bandit_of(name)
        X, y = bandit.features.matrix.astype(np.float64), np.asarray(bandit.outcomes)
        print(f"# {name}: {X.shape}, {len(bandit.arms)} arms", file=sys.stderr)
        for row, play in own_rows(bandit):
            start = time.perf_counter()
            means = [play(order) for order in range(orders)]
            note(row, means, time.perf_counter() - start, len(y))
        for row, (player, single) in LIBRARIES.items():
            count = min(len(y), MOST_SINGLE_ROUNDS) if single else len(y)
            means: list[float] = []
            try:
                player(X[:50], y[:50], len(bandit.arms), 0)  # imports are not counted
                start = time.perf_counter()
                for order in range(orders):
                    rows = np.random.default_rng([0, order]).permutation(len(y))[:count]
                    means.append(player(X[rows], y[rows], len(bandit.arms), order))
            except ImportError as error:
                print(f"{row}: not installed ({error})", file=sys.stderr)
                continue
            note(row, means, time.perf_counter() - start, count, "*" if count < len(y) else "")
    print(f"\nMean reward a round, {orders} orders\n")
    show(names, rewards)
    print(f"\n*: its first {MOST_SINGLE_ROUNDS:,} rounds only\n\nRounds a second, learning included\n")
    show(names, speeds)


def show(names: list[str], cells: dict[str, list[str]]) -> None:
    rows = [[name, *found] for name, found in cells.items() if len(found) == len(names)]
    print(TextTable.fitting(["policy", *names], rows, markdown=True).text(rows))


def models(splits: int) -> None:
    """Classifiers and a regressor beside diffprivlib, on held-out halves."""
    import diffprivlib.models as others
    from sklearn.datasets import load_diabetes

    from fliphat import PrivateSparseClassifier, PrivateSparseRegressor
    from fliphat.regression.solvers import SOLVERS

    rows = []
    for name in ("breast cancer", "phishing", "shuttle"):
        bandit = bandit_of(name)
        X, y = np.ascontiguousarray(bandit.features.matrix[:, 1:], np.float64), np.asarray(bandit.outcomes)
        for epsilon in EPSILONS:
            found: dict[str, list[float]] = {}
            for split in range(splits):
                order = np.random.default_rng(split).permutation(len(y))
                a, b = order[: len(y) // 2], order[len(y) // 2 :]
                norm = float(np.sqrt(X.shape[1] / 3))  # it cuts longer rows, as PrivateLinear does
                fits = {
                    solver: PrivateSparseClassifier(
                        epsilon=epsilon,
                        delta=0.1 / len(a),
                        fit_intercept=True,
                        feature_scale=0.5,  # of columns in -1..1
                        random_state=split,
                        solver=solver,
                    )
                    for solver in SOLVERS
                }
                theirs = others.LogisticRegression(epsilon=epsilon, data_norm=norm, random_state=split)
                for row, model in (fits | {"diffprivlib": theirs}).items():
                    found.setdefault(row, []).append(model.fit(X[a], y[a]).score(X[b], y[b]))
            rows.append(
                [f"{name}, accuracy", f"{epsilon:g}", *(f"{np.mean(of):.3f}" for of in found.values())]
            )
    X, y = load_diabetes(return_X_y=True)
    X = np.clip(X / 0.1, -1, 1)
    y = (y - 150) / 80  # public guesses of level and spread
    for epsilon in EPSILONS:
        found = {}
        for split in range(splits):
            order = np.random.default_rng(split).permutation(len(y))
            a, b = order[: len(y) // 2], order[len(y) // 2 :]
            fits = {
                solver: PrivateSparseRegressor(
                    epsilon=epsilon,
                    delta=0.1 / len(a),
                    fit_intercept=True,
                    feature_scale=0.5,
                    random_state=split,
                    solver=solver,
                )
                for solver in SOLVERS
            }
            theirs = others.LinearRegression(
                epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-2, 2.5), random_state=split
            )
            for row, model in (fits | {"diffprivlib": theirs}).items():
                found.setdefault(row, []).append(model.fit(X[a], y[a]).score(X[b], y[b]))
        rows.append(["diabetes, R2", f"{epsilon:g}", *(f"{np.mean(of):.3g}" for of in found.values())])
    print(f"\nHeld-out halves, {splits} splits; fliphat with delta = 0.1/n, diffprivlib pure\n")
    head = ["data", "epsilon", *(f"fliphat, {solver}" for solver in SOLVERS), "diffprivlib"]
    print(TextTable.fitting(head, rows, markdown=True).text(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=real_sets.NAMES, default=list(real_sets.NAMES))
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--models", action="store_true", help="classifiers and regressors instead")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.models:
        models(chosen.orders)
    else:
        compare(chosen.sets, chosen.orders)


if __name__ == "__main__":
    main()
