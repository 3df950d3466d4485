"""Studies of a table that nobody played: rewards are given, so that what is said of them is known to be true."""

import numpy as np

from fliphat.contexts import Encoder
from fliphat.lab.tables.runs import WINDOWS, TableRun, result_of
from fliphat.lab.tables.study import TableStudy

RANDOM, CONSTANT = 0.33, 0.5


def run(policy, epsilon, order, level, *, rounds=10_000, unusual=3000, windows=None):
    windows = windows or (RANDOM,) * 4 + ((WINDOWS * level - 4 * RANDOM) / 16,) * 16
    mean = float(np.mean(windows))
    return TableRun(policy, epsilon, order, rounds, mean, 0.45, 0.5, unusual, windows)


def study(levels, *, logged=False, orders=4, skipped=(), complete=True, columns=3, **shape):
    """A study in which (policy, epsilon) earned a level: one for all orders, or one for each of them."""
    levels = {("random", None): RANDOM, ("constant", None): CONSTANT, **levels}
    runs, cells = [], {}
    for (policy, epsilon), level in levels.items():
        own = level if isinstance(level, (list, tuple)) else [level + 0.001 * (o % 2) for o in range(orders)]
        flat = policy in ("random", "constant")
        cells[policy, epsilon] = [
            run(policy, epsilon, order, one, windows=(one,) * WINDOWS if flat else None, **shape)
            for order, one in enumerate(own)
        ]
        runs += cells[policy, epsilon]
    results = tuple(result_of(own, runs) for own in cells.values())
    return invent(results, logged=logged, skipped=skipped, complete=complete, columns=columns)


def invent(results, *, logged=False, skipped=(), complete=True, columns=3):
    return TableStudy(
        source="nobody.csv",
        rows=10_000,
        columns=columns,
        arms=("a", "b"),
        shares=(0.5, 0.5),
        constant_arm="a",
        logged=logged,
        results=results,
        delta=1e-5,
        warnings=("not protected",),
        skipped=skipped,
        complete=complete,
        settings={one.name: {"epsilon": one.epsilon} for one in results if one.epsilon},
        encoder=Encoder({"x": (0, 1), "y": (0, 1)}),
    )
