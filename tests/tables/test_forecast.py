"""A forecast from half a table is what the policy then earns on the other half, on five public tables."""

import numpy as np
import pytest

import fliphat
import real_sets
from fliphat.tables.players import PRIVATE

ORDERS = 20


def half(columns, rows):
    return {name: np.asarray(values)[rows] for name, values in columns.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", real_sets.NAMES)
def test_the_forecast_from_one_half_holds_on_the_other(name):
    if name not in ("breast cancer", "digits"):
        pytest.importorskip("river")
    columns = real_sets.load(name)
    differences = {(policy, epsilon): [] for policy in PRIVATE for epsilon in (1.0, 10.0)}
    for order in range(ORDERS):
        rows = np.random.default_rng([7, order]).permutation(len(columns["label"]))
        first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        told = {"label": "label", "policies": PRIVATE, "epsilons": [1.0, 10.0], "orders": 1}
        forecast = fliphat.simulate(half(columns, first), **told, seed=2 * order)
        # The study takes over what the pilot chose: ranges and delta.
        known = {"ranges": forecast.ranges, "delta": forecast.delta}
        earned = fliphat.simulate(half(columns, second), **told, **known, seed=2 * order + 1)
        for (policy, epsilon), found in differences.items():
            found.append(forecast.result(policy, epsilon).mean - earned.result(policy, epsilon).mean)
    means = {cell: float(np.mean(found)) for cell, found in differences.items()}
    print(name, {f"{policy} {epsilon:g}": round(mean, 4) for (policy, epsilon), mean in means.items()})
    assert all(abs(mean) < 0.05 for mean in means.values()), means
