"""Tables of people who do not exist."""

import numpy as np


def labelled(rows=3000, seed=0):
    """A table whose right arm follows from two of its four columns."""
    rng = np.random.default_rng(seed)
    age, dose = rng.uniform(20, 80, rows), rng.uniform(0, 5, rows)
    ward = rng.choice(["north", "south"], rows)
    score = np.stack([0 * age, (age - 50) / 15, 3 * (ward == "south") - 1.5], axis=1)
    arm = np.array(["a", "b", "c"])[(score + 0.5 * rng.standard_normal((rows, 3))).argmax(axis=1)]
    return {"age": age, "dose": dose, "ward": ward, "arm": arm}


def logged(rows=8000, seed=0, skewed=True):
    """A log of arms shown by chances that depend on the person, and what the three arms would earn."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (rows, 2))
    means = np.stack([0.5 + 0.4 * x[:, 0], 0.5 - 0.4 * x[:, 0], np.full(rows, 0.55)], axis=1)
    chances = np.full((rows, 3), 1 / 3)
    if skewed:
        chances = np.stack([0.5 + 0.2 * x[:, 0], 0.3 - 0.2 * x[:, 0], np.full(rows, 0.2)], axis=1)
    shown = (rng.random((rows, 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    earned = (rng.random(rows) < means[np.arange(rows), shown]).astype(float)
    columns = {"u": x[:, 0], "v": x[:, 1], "shown": shown, "earned": earned}
    return {**columns, "chance": chances[np.arange(rows), shown]}, means
