"""What every store promises, run on each of them."""

import numpy as np
import pytest

from fliphat.policies import StoreError
from fliphat.policies.store.inspect import verify_path
from policy_model import DIM, GROWTH, Model, same
from small_store import FIRST, kill, open_store, twins


@pytest.mark.parametrize(
    ("durability", "dtype", "sparse"),
    [
        ("full", "float32", False),
        ("full", "float64", True),
        ("batch", "float32", True),
        ("batch", "float64", False),
    ],
)
def test_reopening_after_every_call_changes_nothing(place, fits, durability, dtype, sparse):
    rng, model = np.random.default_rng(0), Model(FIRST, rounds_per_user=2, growth=GROWTH)
    given = {"durability": durability, "dtype": dtype, "rounds_per_user": 2}
    policy, ids = open_store(place, **given), []
    for i in range(25):
        X, row = twins(rng, sparse)
        if i == 5:
            X = X * np.float32(np.nan)
        decision = policy.select(X, user=i % 9, key=i)
        model.select(decision.id, row, decision.valid, i % 9)
        ids.append(decision)
        kill(policy)
        policy = open_store(place, **given)
        assert policy.select(X, user=i % 9, key=i) == decision  # a retry over a restart
        assert policy.guarantee.user_ids_checked
        for late in (ids[-1], ids[i // 2]):
            if model.awaits(late.id) or late.episode < policy.episode:
                reward = float(np.float32(rng.standard_normal()))
                assert policy.update(late, reward) == model.update(late.id, reward)
                kill(policy)
                policy = open_store(place, **given)
        assert policy.pending == model.pending() and policy.late == model.late
        assert policy.rounds == model.played and policy.remaining == model.remaining
    for i, decision in enumerate(ids):  # retries, long after
        assert policy.select(X, user=i % 9, key=i) == decision
    assert len(fits.calls) == 3 == len(policy.history)
    for (episode, seen, estimate), expected, facts in zip(
        fits.calls, model.released, policy.history, strict=True
    ):
        assert same(seen, expected) and facts.episode == episode
        np.testing.assert_array_equal(facts.estimate.to_dense(), estimate.to_dense())
    assert model.late > 0


def test_batches_are_as_durable_as_rounds(place, fits):
    rng, model = np.random.default_rng(0), Model(FIRST, growth=GROWTH)
    policy = open_store(place)
    for size in (3, 2, 4, 11, 1):
        X = rng.standard_normal((size, 2, DIM)).astype(np.float32)
        decisions = policy.select_batch(X, users=range(policy.rounds, policy.rounds + size))
        for i, decision in enumerate(decisions):
            model.select(decision.id, X[i, decision.arm], True, int(decision.id))
        rewards = rng.standard_normal(size).astype(np.float32)
        policy.update_batch(decisions, rewards)
        for decision, reward in zip(decisions, rewards, strict=True):
            model.update(decision.id, float(reward))
        kill(policy)
        policy = open_store(place)
        assert policy.pending == model.pending() and policy.rounds == model.played
    assert [same(call[1], expected) for call, expected in zip(fits.calls, model.released, strict=True)] == [
        True
    ] * 3


def test_real_fits_go_through_the_store_as_through_memory(place):
    rng = np.random.default_rng(0)
    stored, memory = open_store(place, seed=4), open_store(None, seed=4)
    X = rng.standard_normal((21, 3, DIM)).astype(np.float32)
    for x in X:
        a, b = stored.select(x), memory.select(x)
        assert a == b
        stored.update(a, float(x[0, 0])), memory.update(b, float(x[0, 0]))
    stored.select(x), memory.select(x)
    assert len(stored.history) == 3
    for ours, theirs in zip(stored.history, memory.history, strict=True):
        assert ours == theirs and ours.estimate.to_dense().tolist() == theirs.estimate.to_dense().tolist()


def test_other_arguments_are_refused_by_name(place):
    open_store(place).close()
    with pytest.raises(StoreError, match=r"made with other arguments: epsilon was 1\.0, got 2\.0"):
        open_store(place, epsilon=2.0)
    with pytest.raises(StoreError, match="dtype was 'float32', got 'float64'"):
        open_store(place, dtype="float64")
    assert open_store(place).rounds == 0


def test_a_cancelled_round_and_a_forgotten_user_are_rows_of_zeros(place, fits):
    with open_store(place, rounds_per_user=2) as policy:
        a, b, c = (policy.select(twins(np.random.default_rng(i))[0], user=u) for i, u in enumerate("aba"))
        assert policy.update(a, 1.0) and policy.update(b, 2.0) and policy.update(c, 3.0)
        assert policy.cancel(b) and policy.cancel(b)
        with pytest.raises(ValueError, match="a second one is refused"):
            policy.update(b, 1.0)
        with pytest.raises(ValueError, match="decision must be one that this policy made"):
            policy.cancel(b.id + 100)
        assert policy.forget(user="a") == 2 and policy.forget(user="nobody") == 0
        policy.select(twins(np.random.default_rng(3))[0], user="a")
        assert policy.cancel(a) is False and policy.late == 0  # what was learned can't be taken back
        rows, _, present = fits.calls[0][1]
        assert not rows.any() and not present.any()


def test_ids_of_arms_and_rewards_by_key(place):
    with open_store(place) as policy:
        X = np.ones((2, DIM), np.float32)
        decision = policy.select(X, key="k", arms=["red", 7])
        assert decision.arm in ("red", 7)
    with open_store(place) as policy:
        assert policy.select(X, key="k", arms=["blue", "green"]) == decision
        ragged = policy.select_batch([X, X[:1]], arms=[["red", 7], ["red"]])
        assert ragged.arms.tolist()[1] == "red" and len(policy.pending) == 3


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("reward", [-0.0, 0.0, 5e-324, -5e-324, 1e308, -1e308, 2.0**53, -1.0])
def test_a_store_opens_again_whatever_a_reward_was(place, fits, reward, batch):
    """A reward is what a person brought: none may keep everybody else's store from opening."""
    with open_store(place) as policy:
        decision = policy.select(np.ones((2, DIM)))
        assert policy.update_batch([decision.id], [reward]) if batch else policy.update(decision, reward)
        for _ in range(FIRST - 1):
            policy.select(np.ones((2, DIM)))
    assert verify_path(place).ok
    with open_store(place) as policy:
        assert decision.id not in policy.pending
        policy.select(np.ones((2, DIM)))  # releases
    _, rewards, present = fits.calls[0][1]
    largest = float(np.finfo(np.float32).max)
    expected = np.float32(min(max(reward, -largest), largest))
    assert present.tolist() == [True] + [False] * (FIRST - 1) and rewards[0] == expected
