"""Rounds taken back, users erased, rows that grow old: zeros in the fit and on disk, and boundaries that stay."""

from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from dense_twin import POLICIES
from fliphat import FLIPHAT, Iht, Store
from fliphat.policies import StoreError
from fliphat.policies.engine import faults
from policy_model import DIM, Fits, without_syncs

GIVEN = {
    "dim": DIM, "sparsity": 1, "epsilon": 1.0, "delta": 0.01, "first_episode": 6, "fit": Iht(growth=1.0),
    "rounds_per_user": 3,
}  # fmt: skip
MARK = np.float32(321.123)
WRAPS = {"dense": np.asarray, "csr": sp.csr_array}


@pytest.fixture(autouse=True, params=POLICIES)
def policy_class(request, monkeypatch):
    """Every test is of both policies."""
    monkeypatch.setitem(globals(), "FLIPHAT", POLICIES[request.param])


@pytest.fixture
def fits(monkeypatch):
    without_syncs(monkeypatch)
    return Fits(monkeypatch)


def contexts(number, wrap=np.asarray):
    return wrap(np.full((2, DIM), number, np.float32))


def play(policy, users, wrap=np.asarray, values=None):
    """Play a round of each user; the row and the reward are their place, or the value given."""
    made = []
    for place, user in enumerate(users, 1):
        value = place if values is None else values[place - 1]
        made.append(policy.select(contexts(value, wrap), user=user))
        assert policy.update(made[-1], float(value))
    return made


def fitted(policy, fits, wrap=np.asarray):
    """Fill the episode with another user's rounds; what its fit saw."""
    while not fits.calls:
        policy.select(contexts(9.0, wrap), user="filler")
    return fits.calls[0][1]


@pytest.fixture(params=["memory", "spilled", "stored", "reopened", "saved"])
def place(request, tmp_path):
    """How a policy is made, and what is done to it before its fit."""
    given = dict(GIVEN)
    if request.param in ("stored", "reopened"):
        given["store"] = tmp_path / "store"
    if request.param == "spilled":
        given["store"] = Store(memory_limit=0)

    def again(policy):
        if request.param == "reopened":
            policy.close()
            return FLIPHAT(**given)
        if request.param == "saved":
            policy.save(tmp_path / "file")
            return FLIPHAT.load(tmp_path / "file")
        return policy

    return (lambda **more: FLIPHAT(**given, **more)), again


@pytest.mark.parametrize("layout", WRAPS)
def test_a_forgotten_user_is_rows_of_zeros(place, fits, layout):
    make, again = place
    policy = again(make())
    play(policy, ["a", "b", "a", "c"], WRAPS[layout])
    policy = again(policy) if layout == "dense" else policy
    assert policy.forget(user="a") == 2
    policy = again(policy) if policy._engine.store is None or layout == "csr" else policy
    X, y, present = fitted(policy, fits, WRAPS[layout])
    assert X[:, 0].tolist()[:4] == [0, 2, 0, 4]
    assert present.tolist() == [False, True, False, True, False, False]
    assert y[:4].tolist() == [0, 2, 0, 4]


@pytest.mark.parametrize("layout", WRAPS)
def test_a_cancelled_round_is_a_row_of_zeros_context_included(place, fits, layout):
    make, again = place
    policy = make()
    decisions = play(policy, ["a", "b"], WRAPS[layout])
    waiting = policy.select(contexts(3.0, WRAPS[layout]), user="c")
    assert policy.cancel(decisions[1]) and policy.cancel(waiting.id) and policy.cancel(waiting)
    assert policy.pending == []
    with pytest.raises(ValueError, match="was cancelled"):
        policy.update(waiting, 1.0)
    assert policy.update_batch([waiting], [1.0]) == 0
    policy = again(policy)
    X, _, present = fitted(policy, fits, WRAPS[layout])
    assert X[:, 0].tolist()[:3] == [1, 0, 0] and present.tolist()[:3] == [True, False, False]
    assert not policy.cancel(decisions[0]) and policy.late == 0  # too late, and no reward
    with pytest.raises(ValueError, match="decision must be one"):
        policy.cancel(10**6)


def test_boundaries_and_users_counts_do_not_follow_what_was_taken_back(fits):
    def lengths(erase):
        policy = FLIPHAT(**GIVEN)
        seen = []
        for number in range(30):
            decision = policy.select(contexts(1.0), user=number % 5)
            policy.update(decision, 1.0)
            if erase:
                policy.cancel(decision) if number % 2 else policy.forget(user=number % 5)
            seen.append((decision.id, decision.episode, policy.remaining))
        return seen, dict(policy._engine.users).values()

    (plain, counts), (erased, counts_erased) = lengths(False), lengths(True)
    assert plain == erased and sorted(counts) == sorted(counts_erased)


def test_a_forgotten_user_is_not_learned_from_beyond_the_limit(tmp_path, fits):
    # The count of rounds stays: else erasing again and again would let one user into the fit for ever.
    for store in (None, tmp_path / "s"):
        fits.calls.clear()
        policy = FLIPHAT(**GIVEN, store=store)
        for _ in range(2):
            play(policy, ["a", "a"])
            policy.forget(user="a")
        play(policy, ["a", "b", "b"])
        assert fits.calls[0][1][2].tolist() == [False] * 5 + [True]


def test_with_real_noise_the_fit_equals_one_of_zero_rows():
    def estimate(how):
        rng = np.random.default_rng(1)
        given = GIVEN | {"sparsity": 2, "epsilon": 5.0, "first_episode": 40, "seed": 3, "rounds_per_user": 40}
        policy = FLIPHAT(**given)
        for number in range(41):
            X, reward = rng.standard_normal((2, DIM)).astype(np.float32), float(rng.standard_normal())
            gone = number % 4 == 0 and number < 40
            X = X if not gone or how != "zeros" else np.zeros_like(X)
            decision = policy.select(X, user="gone" if gone else "stays")
            if number == 39 and how == "forget":
                policy.forget(user="gone")
            if number < 40 and not (gone and how == "zeros"):
                policy.update(decision, reward)
            if gone and how == "cancel":
                policy.cancel(decision)
        return policy.history[0].estimate.to_dense().tolist()

    assert estimate("zeros") == estimate("forget") == estimate("cancel") != estimate("keep")


@pytest.mark.parametrize("layout", WRAPS)
def test_a_forgotten_user_is_gone_from_the_disk_and_the_others_are_not(tmp_path, fits, layout):
    wrap, other = WRAPS[layout], np.float32(77.125)
    policy = FLIPHAT(**GIVEN, store=tmp_path / "s")
    play(policy, ["a", "b"], wrap, [MARK, other])

    def holds(value):
        return any(
            np.float32(value).tobytes() in file.read_bytes()
            or np.float64(value).tobytes() in file.read_bytes()
            for file in (tmp_path / "s").iterdir()
        )

    assert holds(MARK) and holds(other)
    policy.forget(user="a")
    assert not holds(MARK) and holds(other)


def test_old_files_are_overwritten_before_they_are_unlinked(tmp_path, fits):
    policy = FLIPHAT(**GIVEN, store=tmp_path / "s")
    play(policy, ["a", "b"], values=[MARK, 1.0])
    kept = [(path, open(path, "rb")) for path in (tmp_path / "s").glob("episode-*")]  # noqa: SIM115
    policy.forget(user="a")
    for path, file in kept:  # what the disk's blocks hold now, with no name
        assert not path.exists() and not any(file.read())
        file.close()


def cut_points(monkeypatch, call):
    points = []
    with monkeypatch.context() as patch:
        patch.setattr(faults, "reached", points.append)
        call()
    return points


class Crash(BaseException):
    pass


@pytest.mark.parametrize("layout", WRAPS)
def test_a_forgotten_user_cut_off_anywhere(tmp_path, monkeypatch, fits, layout):
    def prepared(path):
        policy = FLIPHAT(**GIVEN, store=path)
        play(policy, ["a", "b", "a"], WRAPS[layout], [MARK, 2.0, MARK])
        return policy

    dry = prepared(tmp_path / "dry")
    points = cut_points(monkeypatch, lambda: dry.forget(user="a"))
    assert points == ["empty written", "empty durable", "empty moved"]
    for number in range(len(points)):
        path = tmp_path / str(number)
        policy, count = prepared(path), iter(range(10**6))

        def reached(_, count=count, stop=number):
            if next(count) == stop:
                raise Crash

        with monkeypatch.context() as patch:
            patch.setattr(faults, "reached", reached)
            with pytest.raises(Crash):
                policy.forget(user="a")
        with pytest.raises(StoreError):
            policy.select(contexts(1.0), user="b")
        policy.close()
        policy = FLIPHAT(**GIVEN, store=path)
        done = points[number] != "empty written"
        held = any(MARK.tobytes() in file.read_bytes() for file in path.iterdir())
        assert held == (not done)
        fits.calls.clear()
        _, _, present = fitted(policy, fits, WRAPS[layout])
        assert present.tolist()[:3] == [not done, True, not done]
        policy.close()


@pytest.mark.parametrize("user", [None, "c"])
def test_forgetting_a_user_needs_ids_of_the_same_kind(fits, user):
    policy = FLIPHAT(**GIVEN)
    policy.select(contexts(1.0), user=user)
    with pytest.raises(
        ValueError, match="no round of this policy had a user id" if user is None else "one kind"
    ):
        policy.forget(user=1)
    assert user is None or policy.forget(user="unknown") == 0


# Ages


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def test_a_reward_after_its_timeout_is_dropped_and_counted(fits):
    policy = FLIPHAT(**GIVEN, store=Store(reward_timeout=2))
    decisions = [policy.select(contexts(1.0)) for _ in range(4)]
    assert policy.pending == [decision.id for decision in decisions[2:]]
    assert not policy.update(decisions[1], 1.0) and policy.update(decisions[2], 1.0)
    assert policy.update_batch([decisions[0], decisions[3]], [1.0, 1.0]) == 1
    assert policy.late == 2
    assert [policy.select(contexts(1.0)).episode for _ in range(3)] == [0, 0, 1]
    assert fits.calls[0][1][2].tolist() == [False, False, True, True, False, False]


@pytest.mark.parametrize("stored", [False, True])
def test_limits_by_the_clock_survive(tmp_path, monkeypatch, fits, stored):
    clock = Clock()
    monkeypatch.setattr("fliphat.policies.engine.age.time", SimpleNamespace(time=clock))
    ages = {"retention": timedelta(hours=8), "reward_timeout": timedelta(hours=2)}
    given = dict(GIVEN, store=Store(tmp_path / "s" if stored else None, **ages))

    def opened(policy=None):
        if stored or policy is None:
            policy and policy.close()
            policy = FLIPHAT(**given) if policy is None else FLIPHAT.open(tmp_path / "s")
        else:
            policy.save(tmp_path / "f")
            policy = FLIPHAT.load(tmp_path / "f")
        return policy

    policy = opened()
    first = policy.select(contexts(MARK))
    policy.update(first, 1.0)
    second = policy.select(contexts(2.0))
    clock.now += 3600
    third = policy.select(contexts(3.0))
    clock.now += 3601
    policy = opened(policy)
    assert policy.pending == [third.id] and not policy.update(second, 1.0) and policy.update(third, 1.0)
    clock.now += 6 * 3600
    policy.expire()  # eight hours after the first two, seven after the third
    policy = opened(policy)
    if stored:
        assert not any(MARK.tobytes() in file.read_bytes() for file in (tmp_path / "s").iterdir())
    for _ in range(4):
        policy.select(contexts(9.0))
    X, _, present = fits.calls[0][1]
    assert X[:, 0].tolist() == [0, 0, 0, 9, 9, 9] and not present.any()


@pytest.mark.parametrize("layout", WRAPS)
def test_retention_in_rounds_empties_rows_and_moves_no_boundary(fits, layout):
    policy = FLIPHAT(**GIVEN | {"first_episode": 40}, store=Store(retention=16))
    for number in range(1, 41):
        assert policy.update(policy.select(contexts(number, WRAPS[layout])), float(number))
    policy.select(contexts(1.0, WRAPS[layout]))
    X, _, present = fits.calls[0][1]
    kept = np.flatnonzero(X[:, 0])
    assert kept[-1] == 39 and 14 <= len(kept) <= 16 and np.array_equal(np.flatnonzero(present), kept)
    assert policy.history[0].rounds == 40


def test_limits_are_checked():
    for bad in (0, -1, timedelta(0)):
        with pytest.raises(ValueError, match="retention must be"):
            Store(retention=bad)
    with pytest.raises(TypeError, match="reward_timeout must be"):
        Store(reward_timeout="2h")
