"""Exploration, and the probability of the arm that was shown."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chisquare

from fliphat import FLIPHAT
from fliphat.environments import SparseLinear
from fliphat.evaluation import Log, replay
from fliphat.simulation import play

ARGUMENTS = {"dim": 4, "sparsity": 2, "epsilon": 5.0, "delta": 1e-2, "first_episode": 200}
#: Scores under any estimate of the first column's sign: two arms tie for the first place, or for the last.
CONTEXTS = np.array([[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [-1, 0, 0, 0]], np.float32)


def learned(**more):
    """Return a policy whose estimate is about (1, 0, 0, 0)."""
    policy = FLIPHAT(**(ARGUMENTS | {"seed": 7} | more))
    X = np.random.default_rng(0).standard_normal((200, 2, 4)).astype(np.float32)
    decisions = policy.select_batch(X)
    policy.update_batch(decisions, X[np.arange(200), decisions.arms, 0])
    policy.select(np.zeros((1, 4), np.float32))
    assert policy.estimate.to_dense()[0] > 0.3
    return policy


def batch(policy, rounds):
    return policy.select_batch(np.repeat(CONTEXTS[None], min(rounds, policy.remaining), axis=0))


def shares(share, tied=2, arms=4):
    return (1 - share) / tied + share / arms, share / arms


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_shares_are_as_stated_with_ties(share):
    decisions = batch(learned(exploration=share), 10**6)
    best, other = shares(share)
    expected = np.array([best, best, other, other])
    np.testing.assert_allclose(decisions.probabilities, expected[decisions.arms], rtol=1e-12)
    assert [one.probability for one in decisions][:3] == decisions.probabilities[:3].tolist()


def frequencies(share, told):
    """Return the p-value of the arms' frequencies, played with `share`, against probabilities of `told`."""
    policy, counts = learned(exploration=share), np.zeros(4)
    for _ in range(6):
        decisions = batch(policy, 10**6)
        counts += np.bincount(decisions.arms, minlength=4)
        policy.update_batch(decisions, CONTEXTS[decisions.arms, 0].astype(float))
        policy.select(np.zeros((1, 4), np.float32))
        if not policy.estimate.to_dense()[0] > 0:
            raise AssertionError("the estimate lost its sign")
    best, other = shares(told)
    return chisquare(counts, counts.sum() * np.array([best, best, other, other])).pvalue


def test_frequencies_agree_with_the_probabilities():
    assert frequencies(0.3, 0.3) > 1e-3


def test_frequencies_of_another_share_are_noticed():
    assert frequencies(0.3, 0.5) < 1e-6


def test_uniform_and_invalid_rounds_have_one_chance_in_k():
    policy = FLIPHAT(**ARGUMENTS, seed=1, exploration=0.3)
    assert policy.select(CONTEXTS).probability == 1 / 4
    assert policy.select(CONTEXTS[:3]).probability == 1 / 3
    policy = learned(exploration=0.3)
    bad = policy.select(np.where(CONTEXTS == -1, np.nan, CONTEXTS))
    assert not bad.valid and bad.probability == 1 / 4


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_batches_and_single_rounds_draw_the_same(layout):
    X = np.random.default_rng(3).integers(-1, 2, (60, 4, 4)).astype(np.float32)
    one, many = learned(exploration=0.5, sparsity=1), learned(exploration=0.5, sparsity=1)
    as_given = (lambda x: x) if layout == "dense" else sp.csr_array
    singles = [one.select(as_given(x)) for x in X[: one.remaining]]
    flat = X[: len(singles)]
    batch = (
        many.select_batch(flat)
        if layout == "dense"
        else many.select_batch(sp.csr_array(flat.reshape(-1, 4)), arms=4)
    )
    assert list(batch) == singles
    assert len(set(batch.probabilities.tolist())) > 2


def test_no_exploration_draws_what_it_always_drew():
    with_zero, without = learned(exploration=0.0), learned()
    words = with_zero._engine.rng.bit_generator.state, without._engine.rng.bit_generator.state
    assert words[0] == words[1]
    some = learned(exploration=[0.0, 0.5])  # the first episode draws one word a round, the next two
    assert some._engine.rng.bit_generator.state["state"] != words[0]["state"]


@pytest.mark.parametrize("kind", ["number", "function"])
def test_a_retry_returns_the_same_probability_after_reopening(tmp_path, kind):
    given = 0.25 if kind == "number" else (lambda episode: 0.5 / (1 + episode))
    arguments = ARGUMENTS | {"first_episode": 12, "exploration": given, "store": tmp_path / "store"}
    X = np.random.default_rng(0).standard_normal((60, 3, 4)).astype(np.float32)
    with FLIPHAT(**arguments) as policy:
        made = [policy.select(x, user=f"u{i}", key=i) for i, x in enumerate(X)]
        assert len(policy.history) >= 1
        assert len({decision.probability for decision in made}) > 2
    with FLIPHAT(**arguments) as policy:
        assert [policy.select(x, user=f"u{i}", key=i) for i, x in enumerate(X)] == made
        policy.save(tmp_path / "file")
    functions = {"exploration": given} if kind == "function" else {}
    with FLIPHAT.load(tmp_path / "file", **functions) as policy:
        assert [policy.select(x, user=f"u{i}", key=i) for i, x in enumerate(X)] == made


@pytest.mark.parametrize("share", [-0.1, 1.5, math.nan, [], [0.5, 2.0], "some", None])
def test_shares_outside_0_and_1_are_refused(share):
    with pytest.raises((ValueError, TypeError), match="exploration"):
        FLIPHAT(**ARGUMENTS, exploration=share)


def test_a_schedule_is_checked_before_the_rows_are_claimed():
    policy = learned(exploration=lambda episode: 0.1 if episode < 2 else 7.0)
    decisions = policy.select_batch(np.zeros((policy.remaining, 2, 4), np.float32))
    with pytest.raises(ValueError, match="exploration must be"):
        policy.select(CONTEXTS)
    assert policy.update_batch(decisions, np.ones(len(decisions))) == len(decisions)


def test_simulations_explore_too():
    policy = FLIPHAT(dim=20, sparsity=3, epsilon=5.0, delta=1e-2, seed=1, exploration=1.0)
    greedy = FLIPHAT(dim=20, sparsity=3, epsilon=5.0, delta=1e-2, seed=1)
    regret = [play(one, SparseLinear(dim=20, seed=1), 4000).regret[-1000:].mean() for one in (policy, greedy)]
    assert regret[0] > 3 * regret[1]
    play(policy, SparseLinear(dim=20, seed=2), 100, to_the_end=True)
    with pytest.raises(RuntimeError, match="played to the end"):
        policy.select(np.zeros((2, 20), np.float32))


def test_a_replay_explores_too():
    rng = np.random.default_rng(0)
    contexts = rng.standard_normal((8000, 2, 10)).astype(np.float32)
    shown = rng.integers(0, 2, 8000)
    log = Log(shown, 0.5, contexts[np.arange(8000), shown, 0], 2, contexts)
    means = [
        replay(FLIPHAT(dim=10, sparsity=2, epsilon=5.0, delta=1e-3, seed=1, exploration=share), log).rewards[
            -1000:
        ]
        for share in (0.0, 1.0)
    ]
    assert means[0].mean() > 0.4 > 0.15 > abs(means[1].mean())
