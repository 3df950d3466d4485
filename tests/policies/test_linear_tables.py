"""PrivateLinear on whole tables: a census-like one with known truth, real ones, and columns off their range."""

from pathlib import Path

import numpy as np
import pytest

from fliphat import PrivateLinear
from fliphat.fit.dense import Dense

BENCHES = Path(__file__).parents[2] / "benches"


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHES))
    import dense_tables

    return dense_tables


def last_rewards(spread, offset):
    """Mean reward of the last of 2 000 rounds with two arms, columns in a small part of their range."""
    rng = np.random.default_rng(3)
    contexts = offset + spread * rng.uniform(-1, 1, (2000, 12))
    labels = (contexts[:, :4].sum(axis=1) > 4 * offset).astype(int)
    found = []
    for seed in range(3):
        policy, at = PrivateLinear(2, 12, 2.0, 1e-4, context_norm=2.0, seed=seed), 0
        while at < 2000:
            part = slice(at, min(2000, at + policy.remaining))
            decisions = policy.select_batch(contexts[part])
            won = (decisions.arms == labels[part]).astype(float)
            policy.update_batch(decisions, won)
            at = part.stop
        found.append(won.mean())
    return np.mean(found)


def test_columns_in_a_small_part_of_their_range_are_learned_from(monkeypatch):
    learned = last_rewards(0.3, 0.6)
    assert learned > 0.75
    # The control: with a map that is never learned they are not.
    shares = Dense._shares
    monkeypatch.setattr(
        Dense, "_shares", lambda *given: {k: v for k, v in shares(*given).items() if k in ("arms", "board")}
    )
    assert last_rewards(0.3, 0.6) < learned - 0.08


@pytest.mark.slow
def test_a_census_like_table(tables):
    for seed in (30, 31):
        one, ten = (tables.census(epsilon, seed) for epsilon in (1.0, 10.0))
        assert one["PrivateLinear"] > one["constant"]
        assert ten["PrivateLinear"] - ten["random"] > 0.7 * (ten["LinUCB"] - ten["random"])


#: Mean reward over one pass that is asked for at epsilon 1 and 10.
FLOORS = {
    "breast cancer": (0.72, 0.83),
    "digits": (0.13, 0.23),
    "image segments": (0.25, 0.39),
    "phishing": (0.77, 0.85),
    "shuttle": (0.97, 0.98),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOORS)
def test_real_tables(tables, name):
    pytest.importorskip("sklearn" if name in ("breast cancer", "digits") else "river")
    values, labels = tables.real_tables.real(name)
    for epsilon, floor in zip((1.0, 10.0), FLOORS[name], strict=True):
        found = [tables.mean_reward(values, labels, epsilon, seed)[0] for seed in range(840, 850)]
        assert np.mean(found) > floor, (name, epsilon, np.mean(found))
