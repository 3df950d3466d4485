"""What every store promises of rows and rewards that grow old, run on each of them."""

from datetime import timedelta

import numpy as np
import pytest

from fliphat.policies import StoreError
from fliphat.policies.engine import faults
from policy_model import DIM
from small_store import Crash, kill, open_store

HOUR = 3600.0
MARK = np.float32(321.123)


def contexts(number):
    return np.full((2, DIM), number, np.float32)


class Time:
    """Lets time pass: for a directory by its owner's clock, for a database by when its rounds were played."""

    def __init__(self, place, monkeypatch, request):
        self.place, self.passed = place, 0.0
        self.server = request.getfixturevalue("server") if isinstance(place, str) else None
        if self.server is None:
            monkeypatch.setattr("fliphat.policies.engine.age.time", self)

    def time(self):
        return 1000.0 + self.passed

    def passes(self, seconds):
        self.passed += seconds
        if self.server is not None:
            with self.server.connect(self.place) as admin:
                admin.execute("UPDATE fliphat_rounds SET played = played - %s", (seconds,))

    def holds(self, value):
        """Whether a file of the store has these bytes."""
        if self.server is None:
            files = self.place.iterdir()
        else:
            with self.server.connect() as admin:
                admin.execute("CHECKPOINT")
            files = (self.server.directory / "data" / "base").rglob("*")
        return any(value.tobytes() in file.read_bytes() for file in files if file.is_file())


@pytest.fixture
def time(place, monkeypatch, request):
    return Time(place, monkeypatch, request)


def test_a_reward_after_its_timeout_in_rounds_is_dropped_and_counted(place, fits):
    with open_store(place, first_episode=6, reward_timeout=2) as policy:
        decisions = [policy.select(contexts(1.0)) for _ in range(4)]
        assert policy.pending == [decision.id for decision in decisions[2:]]
        assert not policy.update(decisions[1], 1.0) and policy.update(decisions[2], 1.0)
        assert policy.update_batch([decisions[0], decisions[3]], [1.0, 1.0]) == 1
        assert policy.late == 2
        with pytest.raises(ValueError, match="decision must be one that this policy made"):
            policy.update(decisions[0].id + 1000, 1.0)
        with pytest.raises(ValueError, match="a second one is refused"):
            policy.update(decisions[3], 1.0)
        assert [policy.select(contexts(1.0)).episode for _ in range(3)] == [0, 0, 1]
    assert fits.calls[0][1][2].tolist() == [False, False, True, True, False, False]


def test_limits_by_the_clock(place, time, fits):
    given = {
        "first_episode": 6,
        "retention": timedelta(hours=8),
        "reward_timeout": timedelta(hours=2),
    }
    policy = open_store(place, **given)
    first = policy.select(contexts(MARK))
    policy.update(first, 1.0)
    second = policy.select(contexts(2.0))
    time.passes(HOUR)
    third = policy.select(contexts(3.0))
    time.passes(HOUR + 1)
    kill(policy)
    policy = open_store(place, **given)
    assert policy.pending == [third.id] and not policy.update(second, 1.0) and policy.update(third, 1.0)
    assert policy.late == 1 and time.holds(MARK)
    time.passes(6 * HOUR)
    policy.expire()  # eight hours after the first two, seven after the third
    assert not time.holds(MARK)
    kill(policy)
    policy = open_store(place, **given)
    for _ in range(4):
        policy.select(contexts(9.0))
    X, _, present = fits.calls[0][1]
    assert X[:, 0].tolist() == [0, 0, 0, 9, 9, 9] and not present.any()
    policy.close()


def test_opening_applies_retention(place, time, fits):
    with open_store(place, first_episode=6) as policy:
        policy.update(policy.select(contexts(MARK)), 1.0)
    time.passes(HOUR)
    with open_store(place, first_episode=6, retention=timedelta(hours=10)) as policy:
        policy.select(contexts(2.0))
    assert time.holds(MARK)  # the control: it was kept
    time.passes(11 * HOUR)
    open_store(place, first_episode=6, retention=timedelta(hours=10)).close()
    assert not time.holds(MARK)


def test_retention_in_rounds_empties_rows_and_moves_no_boundary(place, fits):
    with open_store(place, first_episode=40, retention=16) as policy:
        for number in range(1, 41):
            assert policy.update(policy.select(contexts(number)), float(number))
        policy.select(contexts(1.0))
        X, _, present = fits.calls[0][1]
        kept = np.flatnonzero(X[:, 0])
        assert kept[-1] == 39 and 14 <= len(kept) <= 16 and np.array_equal(np.flatnonzero(present), kept)
        assert policy.history[0].rounds == 40


def test_ages_are_kept_with_the_store_and_retention_is_never_weakened(place, fits):
    with open_store(place, first_episode=6, retention=40, reward_timeout=1) as policy:
        first = policy.select(contexts(1.0))
        policy.select(contexts(2.0))
    with open_store(place, first_episode=6) as policy:  # neither is given, both hold
        assert policy.update(first, 1.0) is False
        assert policy._engine.ages.retention == 40
    for weaker in (41, timedelta(days=1)):
        with pytest.raises(StoreError, match="retention is kept with the store and can only be made shorter"):
            open_store(place, first_episode=6, retention=weaker)
    with open_store(place, first_episode=6, retention=30, reward_timeout=50) as policy:
        assert policy.update(first, 1.0) is True
    with open_store(place, first_episode=6) as policy:
        assert policy._engine.ages.retention == 30


def test_users_may_be_required_from_the_start(place, fits):
    with open_store(place, users="required") as policy:
        assert policy.guarantee.user_ids_checked
        with pytest.raises(ValueError, match="user must be given in every round"):
            policy.select(contexts(1.0))
        policy.select(contexts(1.0), user="a")
    with open_store(place) as policy:
        with pytest.raises(ValueError, match="user must be given in every round"):
            policy.select(contexts(1.0))
        with pytest.raises(ValueError, match="one kind"):
            policy.select(contexts(1.0), user=1)


def test_users_are_decided_when_the_store_is_made(place):
    open_store(place).close()
    with pytest.raises(
        StoreError, match="users is decided when a store is made: it was None, got 'required'"
    ):
        open_store(place, users="required")


def test_a_worker_that_ends_before_files_are_written_again_leaves_it_to_the_next(place, time, monkeypatch):
    if time.server is None:
        pytest.skip("a directory's own test is in test_erasure.py")
    policy = open_store(place, first_episode=6)
    policy.select(contexts(MARK))

    def reached(point):
        if point == "empty durable":
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(faults, "reached", reached)
        with pytest.raises(Crash):
            policy.forget()
    kill(policy)
    assert time.holds(MARK)
    open_store(place, first_episode=6).close()
    assert not time.holds(MARK)
