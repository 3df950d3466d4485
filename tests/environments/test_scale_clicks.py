"""Half a million features: what a round touches, and that the policy learns."""

import tracemalloc

import numpy as np
import pytest

from fliphat import FLIPHAT, Iht
from fliphat.environments import SparseClicks
from fliphat.fit.iht.fit import IhtFit
from fliphat.policies import SparseEstimate
from fliphat.simulation import play

DIM, ARMS = 509_256, 5
PUBLIC = {
    "dim": DIM,
    "sparsity": 30,
    "epsilon": 1.0,
    "delta": 1e-6,
    "loss": "logistic",
    "context_scale": 0.35,
    "fit": Iht(gradient_clip=0.5),
}


def peak(action):
    """The most bytes that an action had allocated at once, beyond what was there before."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_no_round_makes_a_vector_of_length_d():
    world, policy = SparseClicks(seed=1), FLIPHAT(**PUBLIC, first_episode=64)
    rounds = world.draw(200).contexts
    each = [rounds[i * ARMS : (i + 1) * ARMS] for i in range(200)]
    for contexts in each[:65]:  # past a release: the estimate is not zero
        policy.update(policy.select(contexts), 1.0)
    assert len(policy.history) == 1 and len(policy.estimate.indices)
    batch = rounds[100 * ARMS : 105 * ARMS]
    smallest = DIM // 8  # a bit a column would be seen
    assert peak(lambda: policy.update(policy.select(each[70]), 0.0)) < smallest
    assert peak(lambda: policy.select_batch(batch, arms=ARMS)) < smallest
    assert peak(lambda: world.play(5, (policy.estimate.indices, policy.estimate.values))) < smallest
    assert peak(lambda: policy.estimate.to_dense()) > smallest  # the control: such a vector is seen


def test_the_work_of_d_is_done_once_a_fit(monkeypatch):
    """However many rounds are played, dense vectors are made only where an episode ends."""
    made, real = [], IhtFit.run

    def counted(fit, plan, *given):
        made.append(plan.episode)
        return real(fit, plan, *given)

    monkeypatch.setattr(IhtFit, "run", counted)
    world, policy = SparseClicks(seed=1), FLIPHAT(**PUBLIC, first_episode=500, seed=1)
    dense, to_dense = [], SparseEstimate.to_dense
    monkeypatch.setattr(SparseEstimate, "to_dense", lambda self: dense.append(1) or to_dense(self))
    play(policy, world, 2500)
    assert made == [0, 1, 2] and len(dense) <= len(made)


def test_the_honest_way_and_the_fast_one_see_the_same_kind_of_rows():
    world = SparseClicks(seed=2)
    fast = FLIPHAT(**PUBLIC, first_episode=3000, seed=1)
    played = play(fast, world, 3000)
    world.reset()
    honest = FLIPHAT(**PUBLIC, first_episode=3000, seed=1)
    again = play(honest, world, 3000, lazy=False)
    rows = [policy._engine.episode.rows.matrix() for policy in (fast, honest)]
    assert [X.shape for X in rows] == [(3000, DIM)] * 2
    assert abs(played.rewards.mean() - again.rewards.mean()) < 5 * 0.5 * np.sqrt(2 / 3000)
    frequent = [np.bincount(X.indices, minlength=DIM)[:200] / 3000 for X in rows]
    assert np.abs(frequent[0] - frequent[1]).max() < 6 * 0.5 * np.sqrt(2 / 3000)
    assert not np.array_equal(rows[0].indices, rows[1].indices)  # two draws, not one compared with itself


@pytest.mark.slow
def test_clicks_are_learned_under_privacy():
    """Each of several worlds, at a fifth of the rounds of benches/scale_clicks.py."""
    gains, controls = [], []
    for seed in range(4):
        world = SparseClicks(seed=seed)
        learned = play(FLIPHAT(**PUBLIC, seed=seed), world, 200_000).rewards[-50_000:].mean()
        world.reset()
        random = world.play(50_000, rows=False).rewards.mean()
        # The control: a budget a thousand times smaller can't learn in this time.
        world.reset()
        hopeless = FLIPHAT(**PUBLIC | {"epsilon": 1e-3}, first_episode=2000, seed=seed)
        controls.append(play(hopeless, world, 20_000).rewards.mean() - random)
        gains.append(learned - random)
    half = 3.18 * np.std(gains, ddof=1) / np.sqrt(len(gains))
    assert np.mean(gains) - half > 0.05
    assert max(np.abs(controls)) < 0.05
