"""A forecast from half a table is what the policy then earns on the other half, on five public tables."""

import numpy as np
import pytest

import fliphat
import real_sets
from fliphat.lab.tables.players import PRIVATE
from fliphat.lab.tables.runs import best_private

ORDERS = 20
EPSILONS = (1.0, 10.0)


def half(columns, rows):
    return {name: np.asarray(values)[rows] for name, values in columns.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", real_sets.NAMES)
def test_the_forecast_from_one_half_holds_on_the_other(name):
    """Of the policy that the forecast says is best at an epsilon: that is the one a study would take.

    The others are printed. FLIPHAT on shuttle at epsilon 1 differs by more (.056): it earns either nearly all or
    little there, and what is earned then is one run of each half.
    """
    if name not in ("breast cancer", "digits"):
        pytest.importorskip("river")
    columns = real_sets.load(name)
    differences = {(policy, epsilon): [] for policy in (*PRIVATE, "best") for epsilon in EPSILONS}
    for order in range(ORDERS):
        rows = np.random.default_rng([7, order]).permutation(len(columns["label"]))
        first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        told = {"label": "label", "epsilons": EPSILONS, "policies": PRIVATE}
        forecast = fliphat.simulate(half(columns, first), **told, seed=2 * order)
        # The study takes over what the pilot chose: policy, ranges and delta.
        known = {"ranges": forecast.ranges, "delta": forecast.delta, "orders": 1}
        earned = fliphat.simulate(half(columns, second), **told, **known, seed=2 * order + 1)
        for policy, epsilon in differences:
            taken = best_private(forecast.results, epsilon).policy if policy == "best" else policy
            then = earned.result(taken, epsilon).mean
            differences[policy, epsilon].append(forecast.result(taken, epsilon).mean - then)
    means = {key: round(float(np.mean(found)), 4) for key, found in differences.items()}
    print(name, means)
    assert all(abs(means["best", epsilon]) < 0.05 for epsilon in EPSILONS), means
