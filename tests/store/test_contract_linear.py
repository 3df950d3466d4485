"""What every store promises of PrivateLinear: arms come and go, rows know their arms, on each store."""

from dataclasses import replace

import numpy as np
import pytest

from fliphat import FLIPHAT, PrivateLinear
from fliphat.fit.board import Earned
from fliphat.fit.dense import Dense
from fliphat.policies import SnapshotError, StoreError
from fliphat.policies.store.inspect import inspect_path
from small_linear import ARMS, DIM, FIRST, open_linear


@pytest.fixture
def seen(monkeypatch):
    """What each fit was given, and the arms it knew of: (rows, rewards, present, slots)."""
    calls, real = [], Dense.run_totals

    def run(self, plan, rows, rewards, present, known, secret):
        calls.append((np.array(rows), rewards.copy(), present.copy(), self.table.slots))
        return real(self, plan, rows, rewards, present, known, secret)

    monkeypatch.setattr(Dense, "run_totals", run)
    return calls


def test_rows_have_their_context_and_the_slot_of_their_arm(place, seen):
    rng, played = np.random.default_rng(0), []
    policy = open_linear(place)
    for number in range(FIRST):
        context = rng.normal(size=DIM).astype(np.float32) / 4
        decision = policy.select(context, key=number)
        assert decision.arm in ARMS and decision.probability == 1 / 3
        assert policy.update(decision, number / 10)
        played.append((context, ARMS.index(decision.arm), decision))
        policy.close()
        policy = open_linear(place)
        assert policy.select(np.zeros(DIM), key=number) == decision  # a retry, after the process ended
    policy.select(np.zeros(DIM))
    rows, rewards, present, slots = seen[0]
    np.testing.assert_array_equal(rows, [[*context, slot] for context, slot, _ in played])
    assert present.all() and slots == 3
    np.testing.assert_allclose(rewards, np.arange(FIRST) / 10, rtol=1e-6)
    assert len(policy.history) == 1 and policy.update(played[0][2], 1.0) is False
    policy.close()


def test_arms_that_come_and_go_are_kept(place, seen):
    with open_linear(place) as policy:
        batch = policy.select_batch(np.ones((3, DIM)) / 4)
        policy.update_batch(batch, [1.0, 0.0, 1.0])
        policy.add_arm("green")
        policy.remove_arm(7)
        with pytest.raises(ValueError, match="arm must be a new one: 'green' is there already"):
            policy.add_arm("green")
        with pytest.raises(ValueError, match=r"arm must be one of \('red', "):
            policy.remove_arm("violet")
    with pytest.raises(StoreError, match="give those, then add_arm or remove_arm"):
        open_linear(place)
    now = ("red", b"\x00blue", "green")
    with open_linear(place, now) as policy:
        assert policy.arms == now
        late = [policy.select(np.ones(DIM) / 4) for _ in range(FIRST - 3)]
        assert {one.arm for one in late} <= set(now)
        policy.select(np.ones(DIM))
        assert seen[0][3] == 4 and set(policy.coefficients) == set(now)
        kept = policy.coefficients
    with PrivateLinear.open(place) as again:
        assert again.arms == now
        for arm, coefficients in kept.items():
            np.testing.assert_array_equal(again.coefficients[arm], coefficients)
        again.add_arm(7)  # which comes back to its slot
        assert again.arms == ("red", 7, b"\x00blue", "green")


@pytest.mark.parametrize("model", ["disjoint", "shared"])
def test_a_store_plays_what_memory_does(place, model):
    rng = np.random.default_rng(3)
    stored, memory = open_linear(place, seed=4, model=model), open_linear(None, seed=4, model=model)
    shape = (DIM,) if model == "disjoint" else (3, DIM)
    for number in range(25):
        if number == 12:
            stored.remove_arm(7), memory.remove_arm(7)
            shape = (DIM,) if model == "disjoint" else (2, DIM)
        X = rng.normal(size=shape)
        if number == 5:
            X = X * np.nan
        a, b = stored.select(X), memory.select(X)
        assert a == b and a.valid == (number != 5)
        reward = float(rng.random())
        stored.update(a, reward), memory.update(b, reward)
    assert len(stored.history) == 2
    for arm in stored.arms:
        np.testing.assert_array_equal(stored.coefficients[arm], memory.coefficients[arm])
    stored.close()


def test_other_policies_and_ids_that_cannot_be_kept_are_refused(place):
    with pytest.raises(TypeError, match="arms must be str, int or bytes to be kept in a store"):
        open_linear(place, [(1, 2), (3, 4)])
    open_linear(place).close()
    with pytest.raises((StoreError, ValueError), match=r"other arguments|holds a PrivateLinear"):
        FLIPHAT(DIM, 1, 1.0, 1e-2, store=place)
    with pytest.raises(SnapshotError, match="not a FLIPHAT"):
        FLIPHAT.open(place)
    with open_linear(place) as policy, pytest.raises(TypeError, match="got tuple"):
        policy.add_arm((1, 2))
    with pytest.raises(StoreError, match="epsilon was 5"):
        open_linear(place, epsilon=4.0)


def test_users_are_counted_and_forgotten(place, seen):
    with open_linear(place) as policy:
        for user in "aabcd":
            policy.update(policy.select(np.ones(DIM) / 4, user=user), 1.0)
        assert policy.forget(user="b") == 1
        policy.select(np.ones(DIM) / 4, user="e"), policy.select(np.ones(DIM), user="f")
        rows, _, present, _ = seen[0]
        assert present.tolist() == [True, False, False, True, True, False]
        assert not rows[1:3].any() and rows[0].any()


def test_an_arm_too_many_leaves_the_store_as_it_was(place, monkeypatch):
    from fliphat.fit.dense import settings

    policy = open_linear(place)
    room = 8 * (DIM + 1) ** 2 * 12 + 16 * settings.DRAWS * len(ARMS) * (DIM + 1)
    monkeypatch.setattr(settings, "_MOST_BYTES", room)
    with pytest.raises(ValueError, match="dim must be at most"):
        policy.add_arm("one too many")
    assert policy.select(np.ones(DIM)).arm in ARMS
    policy.close()
    with open_linear(place) as again:
        assert set(again.arms) == set(ARMS)


def test_arms_that_came_after_the_last_release(place):
    """Nothing was released of any of them: the store can be read and opened nevertheless."""
    policy = open_linear(place)
    for _ in range(FIRST + 1):
        policy.update(policy.select(np.ones(DIM)), 0.5)
    assert policy.history and policy.scoreboard.best_arm in ARMS  # the control
    policy.add_arm("new")
    for arm in ARMS:
        policy.remove_arm(arm)
    assert policy.scoreboard.best_arm is None and policy.scoreboard.arms == {}
    policy.close()
    assert inspect_path(place)["arms"] == ["new"]


def test_an_arm_that_the_guard_plays_is_removed(place, monkeypatch):
    """Nobody says that it is played, and nobody is given it; the others are played as before."""
    real, arm = Earned.after, ARMS[1]

    def guarded(*given, **more):
        return replace(real(*given, **more), fallback=1, waits=1e9)

    monkeypatch.setattr(Earned, "after", guarded)
    policy = open_linear(place)
    for _ in range(FIRST + 1):
        policy.update(policy.select(np.ones(DIM)), 0.5)
    assert policy.history and policy.scoreboard.fallback == arm  # the control
    assert any("the guard plays" in line for line in policy.health.findings)
    policy.remove_arm(arm)
    left = (ARMS[0], ARMS[2])
    assert {policy.select(np.ones(DIM)).arm for _ in range(policy.remaining)} <= set(left)
    policy.close()
    with open_linear(place, left) as again:
        assert again.scoreboard.fallback is None
        assert not any("the guard plays" in line for line in again.health.findings)
    assert inspect_path(place)["scoreboard"]["fallback"] is None
