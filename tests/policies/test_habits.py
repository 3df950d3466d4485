"""What users of other libraries bring as habits: ids of arms, crossed features, ragged batches, tables, keys."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from fliphat import FLIPHAT, Iht, Store
from fliphat.contexts import Crossed
from fliphat.policies import StoreError
from fliphat.policies.engine import faults

GIVEN = {"sparsity": 3, "epsilon": 5.0, "delta": 0.01, "first_episode": 30, "seed": 4, "exploration": 0.1}
PEOPLE, ARMS = 4, 5
DIM = PEOPLE * ARMS


def by_hand(person, actions):
    """One row an arm: each feature of the arm times what is known about the person, in a block of columns."""
    rows = np.zeros((len(actions), actions.shape[1] * len(person)), np.result_type(person, actions))
    for arm, features in enumerate(actions):
        for j, feature in enumerate(features):
            rows[arm, j * len(person) : (j + 1) * len(person)] = feature * person
    return rows


def rounds(rng, count, dtype):
    """People and arms of some rounds; one in twenty can't be used."""
    for number in range(count):
        person = rng.standard_normal(PEOPLE).astype(dtype)
        actions = rng.standard_normal((3, ARMS)).astype(dtype)
        if number % 20 == 7:
            person[1] = (np.nan, np.inf, 1e38)[number // 20 % 3]
            actions[1, 2] = 1e10  # with a large person, the product is more than a row can hold
        yield person, actions


def played(policy, contexts, effect):
    """Play rounds and hand in rewards; all that anybody could tell two policies apart by."""
    seen = []
    for one, rows in contexts:
        decision = policy.select(one)
        seen.append((decision.arm, decision.valid, decision.probability))
        policy.update(
            decision, float(np.nan_to_num(rows[decision.arm], posinf=0, neginf=0).clip(-9, 9) @ effect)
        )
    kept = policy._engine.episode.rows.first(policy._engine.episode.filled)
    return seen, kept.tobytes(), [facts.estimate.to_dense().tobytes() for facts in policy.history]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stored", [False, True])
def test_crossed_features_are_the_rows_built_by_hand_bit_for_bit(tmp_path, dtype, stored):
    effect, results = np.zeros(DIM), []
    effect[[2, 9]] = 1.0, -1.0
    for crossed in (False, True):
        rng = np.random.default_rng(0)
        store = tmp_path / str(crossed) if stored else None
        policy = FLIPHAT(dim=DIM, **GIVEN, store=Store(store, durability="batch"))
        with np.errstate(over="ignore", invalid="ignore"):
            hand = [(one, actions, by_hand(one, actions)) for one, actions in rounds(rng, 100, dtype)]
            contexts = [(Crossed(one, actions) if crossed else rows, rows) for one, actions, rows in hand]
            results.append(played(policy, contexts, effect))
        policy.close() if stored else None
    assert results[0] == results[1]
    valid = [one[1] for one in results[0][0]]
    assert sum(valid) == 95 and len(set(results[0][2])) == len(results[0][2]) >= 2


@pytest.mark.filterwarnings("ignore:every arm of these contexts")
def test_crossed_batches_are_crossed_rounds_one_by_one():
    people = np.random.default_rng(1).standard_normal((25, PEOPLE))
    one, many, own = (FLIPHAT(dim=DIM, **GIVEN) for _ in range(3))
    single = [one.select(Crossed(person, np.eye(ARMS))) for person in people]
    assert list(many.select_batch(Crossed(people, np.eye(ARMS)))) == single
    assert list(own.select_batch(Crossed(people, np.tile(np.eye(ARMS), (25, 1, 1))))) == single
    assert np.array_equal(one._engine.episode.rows.matrix(), many._engine.episode.rows.matrix())


def test_crossed_features_in_an_episode_of_sparse_rows():
    policy, plain = (FLIPHAT(dim=DIM, **GIVEN) for _ in range(2))
    for one in (policy, plain):
        one.select(sp.csr_array(np.eye(3, DIM)))
    person, actions = np.array([1.0, 0.0, 2.0, 3.0]), np.eye(ARMS)[:3]
    a, b = policy.select(Crossed(person, actions)), plain.select(by_hand(person, actions))
    assert a == b
    left, right = (one._engine.episode.rows.matrix() for one in (policy, plain))
    assert np.array_equal(left.toarray(), right.toarray()) and left.nnz == right.nnz


def test_crossed_features_do_not_take_the_room_of_their_rows():
    # 2 000 arms of 500 features and 400 of a person: 1.6 GB by hand, in single precision.
    import tracemalloc

    rng = np.random.default_rng(0)
    policy = FLIPHAT(dim=200_000, sparsity=3, epsilon=1.0, delta=1e-3, first_episode=3, seed=1)
    person, actions = rng.standard_normal(400).astype(np.float32), rng.random((2_000, 500), np.float32)
    policy.select(Crossed(person, actions))
    tracemalloc.start()
    try:
        policy.select(Crossed(person, actions))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6


@pytest.mark.filterwarnings("ignore:every arm of these contexts")
@pytest.mark.parametrize(
    ("shared", "actions", "told"),
    [
        (np.ones(3), np.eye(4), "got 3 shared features times 4"),
        (np.ones((2, 5)), np.eye(4), "must have one dimension for one round"),
    ],
)
def test_crossed_features_of_another_size_are_refused(shared, actions, told):
    policy = FLIPHAT(dim=DIM, **GIVEN)
    with pytest.raises(ValueError, match=told):
        policy.select(Crossed(shared, actions))
    assert policy.rounds == 0
    with pytest.raises(TypeError, match="shared must hold real numbers"):
        Crossed(["a"], actions)
    with pytest.raises(ValueError, match="shared must have one row for each of the 2 rounds"):
        Crossed(np.ones(3), np.ones((2, 3, 4)))


# Ids of arms


def test_decisions_hold_ids_and_retries_keep_them(tmp_path):
    store = tmp_path / "s"
    given = GIVEN | {"seed": None}
    policy = FLIPHAT(dim=3, **given, store=store)
    first = policy.select(np.eye(3), key="k", arms=["walk", "breathe", "sleep"])
    assert first.arm in ("walk", "breathe", "sleep")
    batch = policy.select_batch(np.ones((8, 2, 3)), arms=["new", "walk"])
    assert set(batch.arms.tolist()) <= {"new", "walk"} and [one.arm for one in batch] == batch.arms.tolist()
    assert policy.select(np.eye(3), key="k", arms=["x", "y", "z"]) == first
    policy.update(key="k", reward=1.0)
    policy.close()
    policy = FLIPHAT(dim=3, **given, store=store)
    assert policy.select(np.eye(2, 3), key="k", arms=["x", "y"]) == first  # from the journal
    while policy.episode == 0:
        policy.select(np.eye(3), arms=["a", "b", "c"])
    policy.close()
    policy = FLIPHAT(dim=3, **given, store=store)
    assert policy.select(np.eye(2, 3), key="k", arms=["x", "y"]) == first  # from the store
    policy.save(tmp_path / "f")
    policy = FLIPHAT.load(tmp_path / "f")
    assert policy.select(np.eye(2, 3), key="k", arms=["x", "y"]) == first  # from a file
    invalid = policy.select(np.full((2, 3), np.nan), arms=[7, "x"])
    assert invalid.arm in (7, "x") and not invalid.valid


def test_ids_change_no_arm():
    plain, named = (FLIPHAT(dim=3, **GIVEN) for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(80):
        X = rng.standard_normal((4, 3))
        ids = rng.permutation(100)[:4]
        a, b = plain.select(X), named.select(X, arms=ids)
        assert b.arm == ids[a.arm] and type(b.arm) is int and a._replace(arm=b.arm) == b
        plain.update(a, X[a.arm, 0]), named.update(b, X[a.arm, 0])


def test_ids_are_given_always_or_never_and_are_different():
    policy = FLIPHAT(dim=3, **GIVEN)
    for bad, error in (
        (["a", "a"], ValueError), (["a"], ValueError), ([1.5, 2], TypeError), ("ab", TypeError), ([True, 2], TypeError)
    ):  # fmt: skip
        with pytest.raises(error, match="arms must"):
            policy.select(np.ones((2, 3)), arms=bad)
    assert policy.rounds == 0
    policy.select(np.ones((2, 3)))
    with pytest.raises(ValueError, match="arms must be left out in every round"):
        policy.select(np.ones((2, 3)), arms=["a", "b"])
    policy = FLIPHAT(dim=3, **GIVEN)
    policy.select(np.ones((2, 3)), arms=["a", "b"])
    with pytest.raises(ValueError, match="arms must be given in every round"):
        policy.select(np.ones((2, 3)))
    with pytest.raises(ValueError, match="arms must be given in every round"):
        policy.select_batch(np.ones((1, 2, 3)))


# Ragged batches


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("stored", [False, True])
def test_ragged_batches_are_their_rounds_one_by_one(tmp_path, sparse, stored):
    rng, wrap = np.random.default_rng(3), sp.csr_array if sparse else np.asarray
    sizes = rng.integers(1, 5, 28)
    X = [rng.standard_normal((size, 6)) for size in sizes]
    X[4][0, 2] = np.nan
    users = [f"u{number % 20}" for number in range(28)]
    one, many = (
        FLIPHAT(dim=6, **GIVEN, store=Store(tmp_path / name if stored else None, durability="batch"))
        for name in "ab"
    )
    single = [one.select(wrap(x), user=user) for x, user in zip(X, users, strict=True)]
    batch = many.select_batch([wrap(x) for x in X], users)
    assert list(batch) == single and not single[4].valid
    left, right = (policy._engine.episode.rows.first(28) for policy in (one, many))
    if sparse:
        assert all(
            np.array_equal(getattr(left, part), getattr(right, part))
            for part in ("lengths", "columns", "values")
        )
    else:
        assert np.array_equal(left, right)
    if stored:
        many.close()
        again = FLIPHAT(dim=6, **GIVEN, store=tmp_path / "b")
        assert again.rounds == 28


def test_ragged_batches_with_ids():
    policy = FLIPHAT(dim=3, **GIVEN)
    batch = policy.select_batch([np.ones((1, 3)), np.ones((2, 3))], arms=[["a"], ["b", "c"]])
    assert batch.arms[0] == "a" and batch.arms[1] in "bc" and batch.probabilities.tolist() == [1.0, 0.5]
    with pytest.raises(ValueError, match="one list of ids for each of the 2 rounds"):
        policy.select_batch([np.ones((1, 3)), np.ones((2, 3))], arms=[["a"]])
    with pytest.raises(ValueError, match=r"shape \(K, dim\)"):
        policy.select_batch([np.ones((1, 3)), np.ones((2, 4))], arms=[["a"], ["b", "c"]])
    with pytest.raises(TypeError, match="all dense or all CSR"):
        policy.select_batch([np.ones((1, 3)), sp.csr_array(np.ones((2, 3)))], arms=[["a"], ["b", "c"]])
    assert policy.rounds == 2


# Tables and integers


def test_tables_and_integers_are_the_numbers_they_hold():
    rng = np.random.default_rng(5)
    numbers = rng.integers(-3, 4, (12, 2, 3))
    frames = [pd.DataFrame(one, columns=["a", "b", "c"]) for one in numbers]
    policies = [FLIPHAT(dim=3, **GIVEN) for _ in range(5)]
    plain = [policies[0].select(one.astype(float)) for one in numbers]
    assert [policies[1].select(one) for one in numbers] == plain
    assert [policies[2].select(one) for one in frames] == plain
    assert list(policies[3].select_batch(pd.concat(frames), arms=2)) == plain
    assert list(policies[4].select_batch(numbers)) == plain
    missing = pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": [1.0, 2.0], "c": [True, False]})
    assert not policies[2].select(missing).valid
    with pytest.raises(ValueError, match="columns of the first DataFrame, in the same order"):
        policies[2].select(frames[0][["b", "a", "c"]])
    with pytest.raises(ValueError, match="columns of the first DataFrame, in the same order"):
        policies[2].select_batch([frames[0], frames[1][["b", "a", "c"]]])
    with pytest.raises(TypeError, match="numeric columns, got column 'b' of dtype"):
        FLIPHAT(dim=3, **GIVEN).select(pd.DataFrame({"a": [1.0], "b": ["secret"], "c": [1.0]}))
    with pytest.raises(ValueError, match="arms must be given for a DataFrame"):
        policies[3].select_batch(pd.concat(frames))


# Rewards by key


def test_a_reward_finds_its_round_by_the_key():
    policy = FLIPHAT(dim=3, **GIVEN)
    decision = policy.select(np.ones((2, 3)), user="u", key=7)
    with pytest.raises(ValueError, match="key must be one that a round was played with"):
        policy.update(key=7, user="someone else", reward=1.0)
    with pytest.raises(ValueError, match="update must be given a decision, or the key"):
        policy.update(decision, 1.0, key=7)
    with pytest.raises(ValueError, match="update must be given a decision, or the key"):
        policy.update(reward=1.0)
    assert policy.pending == [decision.id]
    assert policy.update(key=7, user="u", reward=1.0) and policy.pending == []


def test_a_store_that_can_not_keep_an_id_says_so(tmp_path, monkeypatch):
    policy = FLIPHAT(dim=3, **GIVEN, store=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(faults, "reached", lambda _: (_ for _ in ()).throw(OSError("no space")))
        with pytest.raises(OSError, match="no space"):
            policy.select(np.ones((2, 3)), arms=["a", "b"])
    with pytest.raises(StoreError):
        policy.select(np.ones((2, 3)), arms=["a", "b"])
    policy.close()
    assert FLIPHAT(dim=3, **GIVEN, store=tmp_path).rounds == 0


# A public start


def test_a_public_start_is_played_from_the_first_round_and_kept(tmp_path):
    start = np.array([0.0, 2.0, 0.0])
    X = np.eye(3)
    given = GIVEN | {"exploration": 0.0}
    policy = FLIPHAT(dim=3, **given, fit=Iht(start=start), store=tmp_path / "s")
    assert policy.select(X).arm == 1 and policy.estimate.to_dense().tolist() == [0, 2, 0]
    assert policy._engine.episode.plan.warm and policy.guarantee.epsilon == GIVEN["epsilon"]
    policy.close()
    with pytest.raises(StoreError, match="start_indices was"):
        FLIPHAT(dim=3, **given, store=tmp_path / "s")
    policy = FLIPHAT.open(tmp_path / "s")
    assert policy.select(X).arm == 1
    policy.save(tmp_path / "f")
    assert FLIPHAT.load(tmp_path / "f").select(X).arm == 1
    again = FLIPHAT(dim=3, **given, fit=Iht(start=policy.estimate))
    assert again.select(X).arm == 1


def test_a_start_changes_no_noise_and_no_length():
    plain, started = FLIPHAT(dim=9, **GIVEN, fit=Iht()), FLIPHAT(dim=9, **GIVEN, fit=Iht(start=np.eye(9)[2]))
    scales = [
        (plan.rows, plan.noise.rho <= plain._engine.episode.plan.noise.rho * 2, plan.noise.epsilon)
        for plan in (one._engine.episode.plan for one in (plain, started))
    ]
    assert scales[0][0] == scales[1][0] and scales[0][2] == scales[1][2]
    assert plain.guarantee.to_dict()["epsilon"] == started.guarantee.to_dict()["epsilon"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"start": np.ones(4)}, "start must"),
        ({"start": [1.0, np.nan, 0.0]}, "finite coefficients"),
        ({"start": np.zeros(3)}, "not all of them 0"),
        ({"start": np.ones(3), "warm_start": False}, "start needs"),
    ],
)
def test_a_start_that_can_not_be_used_is_refused(more, told):
    with pytest.raises(ValueError, match=told):
        FLIPHAT(dim=3, **GIVEN, fit=Iht(**more))
