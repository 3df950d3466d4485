"""The private classifier and regressor beside diffprivlib and OpenDP, on held-out halves of public tables.

    python benches/real_models.py               # Markdown, and docs/figures/real-models.csv
    python benches/real_models.py --only fliphat
    python benches/update_models.py             # the table in docs/reproduction.md, from what was kept

diffprivlib 0.6.6 needs scikit-learn before 1.6; fliphat runs beside either. OpenDP 0.16 has one linear
regression, Theil and Sen's for one column, and no classifier, so it is in the rows with one column alone.

Everybody is told the same public bounds, columns in -1..1 and targets in their listed range, and keeps its
own defaults otherwise. Neighbours differ in one row replaced. fliphat has delta = 0.1/n, the others are pure.
R2 below -1 counts as -1. Which columns make the one-column rows was fixed before any was fitted.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import real_tables
from kept_rows import KeptRows

from fliphat import Iht, PrivateSparseClassifier, PrivateSparseRegressor, Pursuit
from fliphat.lab.display import TextTable

KEPT = Path(__file__).resolve().parents[1] / "docs" / "figures" / "real-models.csv"
EPSILONS = (1.0, 10.0)
#: Bounds that everybody is told for targets that were moved and scaled by public guesses.
TARGETS = (-2.0, 2.5)


@dataclass(frozen=True)
class Data:
    """Rows with columns in -1..1, and classes or numbers to learn from them."""

    name: str
    X: np.ndarray
    y: np.ndarray
    classes: bool


def data() -> Iterator[Data]:
    from sklearn.datasets import load_diabetes

    for name in ("breast cancer", "phishing", "shuttle"):
        X, y = real_tables.real(name)
        yield Data(f"{name}, classes", np.clip(X, -1, 1), y, True)
    X, y = load_diabetes(return_X_y=True)
    X, y = np.clip(X / 0.1, -1, 1), (y - 150) / 80
    yield Data("diabetes, R2", X, y, False)
    yield Data("diabetes by body mass, R2", X[:, [2]], y, False)
    yield Data("diabetes by triglycerides, R2", X[:, [8]], y, False)
    X, _ = real_tables.real("breast cancer")
    yield Data(
        "concave points by radius, R2", np.clip(X[:, [0]], -1, 1), np.clip(2 * X[:, 7], *TARGETS), False
    )
    X, _ = real_tables.real("shuttle")
    yield Data(
        "shuttle's last column by its seventh, R2",
        np.clip(X[:, [6]], -1, 1),
        np.clip(2 * X[:, 8], *TARGETS),
        False,
    )


def ours(solver: Any, one: Data, epsilon: float, n: int, seed: int) -> Any:
    make = PrivateSparseClassifier if one.classes else PrivateSparseRegressor
    return make(
        epsilon=epsilon,
        delta=0.1 / n,
        fit_intercept=True,
        feature_scale=0.5,  # of columns in -1..1
        random_state=seed,
        solver=solver,
    )


def diffprivlib(one: Data, epsilon: float, n: int, seed: int) -> Any:
    from diffprivlib import models

    if one.classes:
        norm = float(np.sqrt(one.X.shape[1] / 3))  # it cuts longer rows
        return models.LogisticRegression(epsilon=epsilon, data_norm=norm, random_state=seed)
    return models.LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=TARGETS, random_state=seed)


def opendp(one: Data, epsilon: float, n: int, seed: int) -> Any:
    """Its noise can't be seeded, and its pairs are shuffled by NumPy's global generator."""
    import opendp.prelude as dp

    if one.classes or one.X.shape[1] > 1:
        return None
    dp.enable_features("contrib", "honest-but-curious", "idealized-numerics")
    np.random.seed(seed)  # noqa: NPY002 (what it uses)
    make = partial(
        dp.sklearn.linear_model.LinearRegression,
        dp.max_divergence(),
        x_bounds=[(-1.0, 1.0)],
        y_bounds=TARGETS,
    )
    # A replaced row is one removed and one added.
    scale = dp.binary_search_param(
        lambda scale: make(scale=scale).measurement, 2, epsilon, bounds=(0.01, 1e4)
    )
    return make(scale=scale)


def without_privacy(one: Data, epsilon: float, n: int, seed: int) -> Any:
    from sklearn.linear_model import LinearRegression, LogisticRegression

    return LogisticRegression(max_iter=10_000) if one.classes else LinearRegression()


SOLVERS = {"auto": None, "pursuit": Pursuit(), "iht": Iht()}
MODELS: dict[str, Callable[[Data, float, int, int], Any]] = {
    **{f"fliphat, {name}": partial(ours, solver) for name, solver in SOLVERS.items()},
    "diffprivlib": diffprivlib,
    "OpenDP": opendp,
    "no privacy": without_privacy,
}


def compare(splits: int, only: str, part: str, kept: KeptRows) -> None:
    for one in data():
        if part not in one.name:
            continue
        for epsilon in EPSILONS:
            for name, make in MODELS.items():
                if only not in name:
                    continue
                scores = []
                for split in range(splits):
                    order = np.random.default_rng(split).permutation(len(one.y))
                    a, b = order[: len(order) // 2], order[len(order) // 2 :]
                    try:
                        model = make(one, epsilon, len(a), split)
                    except ImportError as error:
                        print(f"{name}: not installed ({error})", file=sys.stderr)
                        break
                    if model is None:
                        break
                    model = model.fit(one.X[a], one.y[a])
                    # One bad fit must not be the mean: below -1 an R2 says no more than that.
                    scores.append(max(model.score(one.X[b], one.y[b]), -1.0))
                if scores:
                    error = np.std(scores, ddof=1) / len(scores) ** 0.5 if len(scores) > 1 else np.nan
                    told = {"mean": f"{np.mean(scores):.4f}", "error": f"{error:.4f}", "splits": str(splits)}
                    kept.put(data=one.name, epsilon=f"{epsilon:g}", model=name, **told)
                    print(f"{one.name}, eps {epsilon:g}, {name}: {told}", file=sys.stderr, flush=True)


def table(kept: KeptRows) -> str:
    """Return the means as Markdown."""
    names = kept.names("model")
    names = [name for name in MODELS if name in names]

    def cell(*keys: str) -> str:
        row = kept.get(*keys)
        if row is None:
            return "none" if keys[2] == "OpenDP" else ""
        return f"{float(row['mean']):.3f}"

    rows = [
        [data, epsilon, *(cell(data, epsilon, name) for name in names)]
        for data in kept.names("data")
        for epsilon in kept.names("epsilon")
    ]
    return TextTable.fitting(["data", "eps", *names], rows, markdown=True).text(rows)


def open_kept(path: Path) -> KeptRows:
    """Return what was kept of earlier runs."""
    return KeptRows(path, ("data", "epsilon", "model"), ("mean", "error", "splits"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--only", default="", help="run models with this in their name")
    parser.add_argument("--data", default="", help="of data with this in their name")
    parser.add_argument("--out", type=Path, default=KEPT, help="the file that keeps results")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    kept = open_kept(chosen.out)
    compare(chosen.splits, chosen.only, chosen.data, kept)
    print(table(kept))


if __name__ == "__main__":
    main()
