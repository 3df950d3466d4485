"""Rounds in, arms out: what each call does, what it refuses, and what a fit is given."""

import contextlib

import numpy as np
import pytest
import scipy.sparse as sp

from flat_options import nested
from fliphat import FLIPHAT
from fliphat.policies import Decision, Policy
from policy_model import DIM, Fits, Model, same


def make(**changes):
    arguments = {"dim": DIM, "sparsity": 1, "epsilon": 1.0, "delta": 0.01, "first_episode": 4}
    arguments = arguments | {"growth": 2} | changes
    return FLIPHAT(**nested(arguments))


def contexts(rng, arms=3, dtype=np.float32):
    return rng.standard_normal((arms, DIM)).astype(dtype)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def fits(monkeypatch):
    return Fits(monkeypatch)


def play(policy, model, rng, rounds, **given):
    decisions = []
    for _ in range(rounds):
        X = contexts(rng)
        decision = policy.select(X, **given)
        model.select(decision.id, X[decision.arm], decision.valid)
        decisions.append(decision)
    return decisions


def test_it_is_a_policy():
    assert isinstance(make(), Policy)


def test_a_fit_sees_the_rows_that_were_played(rng, fits):
    policy, model = make(), Model(4)
    for _ in range(60):
        (decision,) = play(policy, model, rng, 1)
        assert policy.remaining == model.remaining and policy.rounds == model.played
        reward = float(rng.standard_normal())
        assert policy.update(decision, reward) and model.update(decision.id, reward)
    assert [call[0] for call in fits.calls] == [0, 1, 2] == [facts.episode for facts in policy.history]
    assert all(same(call[1], expected) for call, expected in zip(fits.calls, model.released, strict=True))


def test_the_comparison_with_the_model_can_fail(rng, fits):
    policy, model = make(), Model(4)
    for _ in range(4):
        (decision,) = play(policy, model, rng, 1)
        policy.update(decision, 1.0), model.update(decision.id, 1.0)
    play(policy, model, rng, 1)
    seen, (X, y, present) = fits.calls[0][1], model.released[0]
    assert same(seen, (X, y, present))
    assert not same(seen, (X, y, ~present))
    assert not same(seen, (X, y + 1, present))
    assert not same(seen, (X[::-1], y, present))


def test_a_reused_buffer_does_not_alias(rng, fits):
    policy, buffer, rows = make(), np.empty((2, DIM), np.float32), []
    for _ in range(4):
        buffer[:] = rng.standard_normal((2, DIM))
        decision = policy.select(buffer)
        rows.append(buffer[decision.arm].copy())
        policy.update(decision, 1.0)
        buffer[:] = np.nan
    policy.select(np.ones((2, DIM)))
    np.testing.assert_array_equal(fits.calls[0][1][0], rows)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("given", [np.float32, np.float64, "csr32", "csr64", "mixed"])
def test_dense_and_sparse_rows_give_the_same_arms_and_estimates(rng, given, dtype):
    data = np.random.default_rng(5)
    plain, other = (make(seed=3, dtype=dtype) for _ in range(2))
    for i in range(40):
        X = data.standard_normal((3, DIM)).astype(np.float32)
        X[data.random(X.shape) < 0.4] = 0
        kind = ["csr64", np.float64, "csr32"][i % 3] if given == "mixed" else given
        if isinstance(kind, str):
            Y = sp.csr_array(X.astype(np.float64) if kind == "csr64" else X)
            if kind == "csr64":
                Y.indices, Y.indptr = Y.indices.astype(np.int64), Y.indptr.astype(np.int64)
        else:
            Y = X.astype(kind)
        a, b = plain.select(X), other.select(Y)
        assert a == b
        plain.update(a, float(X[a.arm, 0])), other.update(b, float(X[a.arm, 0]))
    assert len(plain.history) == 3
    for ours, theirs in zip(plain.history, other.history, strict=True):
        np.testing.assert_array_equal(ours.estimate.to_dense(), theirs.estimate.to_dense())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("users", [False, True])
def test_a_batch_is_its_rounds_one_after_the_other(rng, sparse, users):
    one, many = (make(seed=1, rounds_per_user=2) for _ in range(2))
    for size in (4, 3, 5, 16):
        X = rng.standard_normal((size, 3, DIM)).astype(np.float32)
        X[0, 1, 2] = np.nan
        ids = [f"user {i}" for i in rng.integers(0, 3, size)] if users else None
        singles = [one.select(x, user=ids[i] if users else None) for i, x in enumerate(X)]
        batch = many.select_batch(
            sp.csr_array(X.reshape(-1, DIM)) if sparse else X, ids, **({"arms": 3} if sparse else {})
        )
        assert list(batch) == singles and len(batch) == size
        rewards = rng.standard_normal(size)
        assert many.update_batch(batch, rewards) == size
        assert all(one.update(single, reward) for single, reward in zip(singles, rewards, strict=True))
    one.select(X[0], user="last" if users else None), many.select(X[0], user="last" if users else None)
    assert len(one.history) == 3
    for ours, theirs in zip(one.history, many.history, strict=True):
        np.testing.assert_array_equal(ours.estimate.to_dense(), theirs.estimate.to_dense())


def test_a_batch_must_stay_inside_the_episode(rng):
    policy = make()
    X = rng.standard_normal((5, 3, DIM))
    with pytest.raises(ValueError, match=r"at most policy.remaining = 4 rounds, got 5"):
        policy.select_batch(X)
    policy.select_batch(X[:4])
    assert policy.remaining == 8 and policy.episode == 0  # the next call opens an episode of 8
    policy.select_batch(np.concatenate([X, X])[:8])
    assert policy.episode == 1 and policy.remaining == 16


def test_the_number_of_arms_may_change(rng):
    policy = make()
    for arms in (1, 5, 2, 7, 3, 1, 4):
        assert policy.select(contexts(rng, arms)).arm < arms


# Invalid contents and wrong structure


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64, "csr"])
def test_invalid_contents_consume_the_round(rng, fits, bad, kind):
    policy, arms = make(), set()
    for i in range(4):
        X = contexts(rng, dtype=np.float32 if kind == "csr" else kind)
        if i == 1:
            X[(decision_arm := 2), 3] = bad
        decision = policy.select(sp.csr_array(X) if kind == "csr" else X)
        assert decision.valid == (i != 1)
        policy.update(decision, 1.0)
        arms.add(decision.arm)
    assert decision_arm == 2 and policy.rounds == 4  # the boundary did not move
    policy.select(contexts(rng))
    _, (rows, _, present), _ = fits.calls[0]
    assert present.tolist() == [True, False, True, True]
    assert not rows[1].any() and np.isfinite(rows).all()


def test_a_value_beyond_single_precision_is_invalid_for_both_stored_types():
    for dtype in ("float32", "float64"):
        policy = make(dtype=dtype)
        assert not policy.select(np.full((2, DIM), 1e39)).valid
        assert policy.select(np.full((2, DIM), 1e38)).valid


def test_invalid_rounds_play_uniformly():
    policy = make(first_episode=3000, seed=0)
    X = np.full((3000, 3, DIM), np.nan)
    counts = np.bincount(policy.select_batch(X).arms, minlength=3)
    assert (abs(counts - 1000) < 5 * np.sqrt(3000 * 2 / 9)).all()


@pytest.mark.parametrize("columns", [[1, 1], [2, 0], [0, DIM], [-1, 2]])
def test_bad_columns_of_sparse_contexts_are_invalid_contents(columns):
    X = sp.csr_array((1, DIM), dtype=np.float32)
    X.indptr, X.indices, X.data = (
        np.array([0, 2], np.int32),
        np.array(columns, np.int32),
        np.ones(2, np.float32),
    )
    assert not make().select(X).valid


BROKEN = sp.csr_array(np.ones((2, DIM)))
BROKEN.indptr = np.array([0, 5, 4], np.int32)
STRUCTURE = [
    (np.ones((3, DIM + 1)), ValueError, r"contexts must have shape \(K, dim\) with dim = 4"),
    (np.ones(DIM), ValueError, "contexts must have 2 dimensions"),
    (np.ones((0, DIM)), ValueError, "at least one arm"),
    (np.ones((2, DIM), complex), TypeError, "contexts must be float32 or float64"),
    (sp.csc_array(np.ones((2, DIM))), TypeError, "contexts must be a CSR matrix"),
    (sp.csr_array(np.ones((2, DIM + 1))), ValueError, r"contexts must have shape \(rows, dim\)"),
    (BROKEN, ValueError, "contexts.indptr must start at 0"),
    (np.ma.array(np.ones((2, DIM))), TypeError, "contexts must not be a masked array"),
    ("text", TypeError, "contexts must be float32 or float64"),
]


@pytest.mark.parametrize(("bad", "error", "message"), STRUCTURE)
def test_wrong_structure_raises_and_no_round_happens(bad, error, message):
    policy = make()
    with pytest.raises(error, match=message):
        policy.select(bad)
    assert policy.rounds == 0 and policy.pending == []


def test_wrong_structure_at_a_boundary_releases_nothing(rng, fits):
    policy = make()
    for _ in range(4):
        policy.select(contexts(rng))
    with pytest.raises(ValueError, match="contexts"):
        policy.select(np.ones((2, 9)))
    assert fits.calls == [] and policy.history == ()


def test_batch_arguments_are_checked(rng):
    policy, X = make(), rng.standard_normal((2, 3, DIM))
    flat = sp.csr_array(X.reshape(6, DIM))
    for call, message in [
        (lambda: policy.select_batch(flat), "arms must be given for CSR contexts"),
        (lambda: policy.select_batch(flat, arms=4), "a multiple of arms = 4 rows, got 6"),
        (lambda: policy.select_batch(X, arms=3), "arms is only for CSR contexts"),
        (lambda: policy.select_batch(X[0]), "contexts must have 3 dimensions"),
        (lambda: policy.select_batch(X, users=["a"]), "users must have one id for each of the 2 rounds"),
        (lambda: policy.select_batch(X, users="ab"), "users must have one id for each of the 2 rounds"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    assert policy.rounds == 0


# Rewards


def test_rewards_may_come_late_or_never(rng, fits):
    policy, model = make(), Model(4)
    decisions = play(policy, model, rng, 4)
    for i in (2, 0):
        assert policy.update(decisions[i].id, float(i)) and model.update(decisions[i].id, float(i))
    assert policy.pending == [decisions[1].id, decisions[3].id] == model.pending()
    play(policy, model, rng, 1)
    assert same(fits.calls[0][1], model.released[0])
    assert policy.update(decisions[1], 9.0) is False and policy.update(decisions[1], 9.0) is False
    assert policy.late == 2 and len(policy.pending) == 1


SECRET = 123456.75
REFUSED = [
    (lambda d: d, np.nan, ValueError, "reward must be a finite number"),
    (lambda d: d, -np.inf, ValueError, "reward must be a finite number"),
    (lambda d: d, 10**400, ValueError, "reward must be a finite number"),
    (lambda d: d, True, TypeError, "reward must be a real number, got bool"),
    (lambda d: d, str(SECRET), TypeError, "reward must be a real number, got str"),
    (lambda d: d, None, TypeError, "reward must be a real number, got NoneType"),
    (lambda d: d.id + 1, SECRET, ValueError, "decision must be one that this policy made"),
    (lambda d: 0, SECRET, ValueError, "decision must be one that this policy made"),
    (lambda d: -5, SECRET, ValueError, "decision must be one that this policy made"),
    (lambda d: d.id + 2**40, SECRET, ValueError, "decision must be one that this policy made"),
    (lambda d: "one", SECRET, TypeError, "decision must be a Decision or its id, got str"),
    (lambda d: True, SECRET, TypeError, "decision must be a Decision or its id, got bool"),
]


@pytest.mark.parametrize(("which", "reward", "error", "message"), REFUSED)
def test_a_refused_reward_changes_nothing(rng, fits, which, reward, error, message):
    policy = make(first_episode=1)
    decision = policy.select(contexts(rng))
    with pytest.raises(error, match=message) as raised:
        policy.update(which(decision), reward)
    assert str(SECRET) not in str(raised.value)
    if reward is not SECRET:
        assert policy.update_batch([decision], [reward]) == 0  # contents: left out without an error
    else:
        with pytest.raises((TypeError, ValueError)) as raised:
            policy.update_batch([which(decision)], [reward])
        assert str(SECRET) not in str(raised.value)
    assert policy.pending == [decision.id] and policy.late == 0
    policy.update(decision, 2.0)
    policy.select(contexts(rng))
    assert fits.calls[0][1][1].tolist() == [2.0]


def test_a_second_reward_is_refused(rng, fits):
    policy = make()
    decisions = policy.select_batch(rng.standard_normal((4, 2, DIM)))
    policy.update_batch(decisions.ids[:2], [1.0, 2.0])
    with pytest.raises(ValueError, match="a second one is refused") as raised:
        policy.update(int(decisions.ids[0]), SECRET)
    assert str(SECRET) not in str(raised.value)
    assert policy.update_batch(decisions.ids[[0, 1, 1]], [SECRET] * 3) == 0
    assert policy.pending == decisions.ids[2:].tolist()
    policy.select(contexts(rng))
    assert fits.calls[0][1][1].tolist() == [1.0, 2.0, 0.0, 0.0]


def test_batch_rewards_must_fit(rng):
    policy = make()
    decisions = policy.select_batch(rng.standard_normal((2, 2, DIM)))
    with pytest.raises(ValueError, match=r"rewards must have shape \(2,\), one reward for each decision"):
        policy.update_batch(decisions, [1.0])
    with pytest.raises(TypeError, match="decisions must be Decisions or a sequence"):
        policy.update_batch(3, [1.0])
    assert policy.update_batch([], []) == 0 and len(policy.pending) == 2


def test_one_bad_value_does_not_block_a_batch(rng, fits):
    from decimal import Decimal

    for bad in (None, "x", "0.5", 10**400, object(), [1.0], 1j, True, Decimal("NaN")):
        policy = make(first_episode=3)
        decisions = policy.select_batch(rng.standard_normal((3, 2, DIM)))
        assert policy.update_batch(decisions, [0.5, bad, Decimal("0.25")]) == 2
        assert policy.pending == [int(decisions.ids[1])]
        policy.select(contexts(rng))
        seen = fits.calls[-1][1]
        assert seen[1].tolist() == [0.5, 0.0, 0.25] and seen[2].tolist() == [True, False, True]
        many = make(first_episode=3)
        decisions = many.select_batch(rng.standard_normal((3, 2, DIM)))
        rewards = np.empty(3, object)
        rewards[:] = [0.5, bad, 1]
        assert many.update_batch(decisions, rewards) == 2


def test_lists_of_integers_play_as_floats_do(rng):
    X = rng.integers(-3, 4, (3, DIM))
    whole, floats = make(seed=3), make(seed=3)
    assert whole.select(X.tolist()) == floats.select(X.astype(float))
    for ours, theirs in zip(
        whole.select_batch([X.tolist()] * 2), floats.select_batch(np.array([X, X], float)), strict=True
    ):
        assert ours == theirs
    np.testing.assert_array_equal(whole._engine.episode.rows.array, floats._engine.episode.rows.array)


@pytest.mark.parametrize("bad", [None, "x", 10**400, 1j, np.nan])
def test_one_bad_value_in_lists_of_contexts_is_one_invalid_round(bad):
    policy = make()
    X = [[[1] * DIM, [2] * DIM], [[1] * DIM, [bad] + [2] * (DIM - 1)], [[0.5] * DIM, [2] * DIM]]
    assert policy.select_batch(X).valid.tolist() == [True, False, True]
    assert not policy.select(X[1]).valid
    with pytest.raises(ValueError):
        policy.select([[1] * DIM, [bad]])
    assert policy.rounds == 4


HOSTILE = [np.nan, np.inf, -np.inf, 0.5, 1e300, 1.0, "again", "twice", "never"]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("batched", [False, True])
def test_one_persons_reward_changes_nobody_elses(rng, fits, loss, batched):
    # Whatever comes for one decision, every other row and reward that the fit sees is the same, bit for bit.
    X, others = rng.standard_normal((8, 2, DIM)), []
    for hostile in HOSTILE:
        policy = make(first_episode=8, loss=loss, seed=1)
        decisions = policy.select_batch(X)
        rewards = dict(zip(decisions.ids.tolist(), [1.0, 0.0] * 4, strict=True))
        person = int(decisions.ids[3])
        handed_in = list(rewards.items())
        if hostile == "again":
            policy.update(person, 1.0)
        elif hostile == "twice":
            handed_in.insert(2, (person, 0.0))
        elif hostile == "never":
            handed_in.remove((person, rewards[person]))
        else:
            handed_in = [(one, hostile if one == person else reward) for one, reward in handed_in]
        if batched:
            policy.update_batch([one for one, _ in handed_in], [reward for _, reward in handed_in])
        else:
            for one, reward in handed_in:
                with contextlib.suppress(ValueError):
                    policy.update(one, reward)
        policy.select(contexts(rng))
        seen, numbers, present = fits.calls[-1][1]
        keep = np.arange(8) != 3
        others.append((seen[keep].tolist(), numbers[keep].tolist(), present[keep].tolist()))
    assert len(others) == len(HOSTILE) and all(one == others[0] for one in others)
    assert all(others[0][2])


def test_a_key_is_its_users_own(rng):
    policy = make(rounds_per_user=2)
    first = policy.select(contexts(rng), user="a", key="k")
    assert policy.select(contexts(rng), user="a", key="k") == first
    assert policy.select(contexts(rng), user="b", key="k") != first


def test_logistic_rewards_are_zero_or_one(rng):
    policy = make(loss="logistic")
    decisions = [policy.select(contexts(rng)) for _ in range(4)]
    with pytest.raises(ValueError, match="reward must be 0 or 1 for loss='logistic'"):
        policy.update(decisions[0], 0.5)
    assert policy.update_batch(decisions[:1], [2.0]) == 0
    for decision, reward in zip(decisions, (True, np.bool_(False), 1, 0.0), strict=True):
        assert policy.update(decision, reward)


def test_a_huge_reward_is_kept_as_the_largest_the_rows_can_hold(rng, fits):
    policy = make()
    decisions = policy.select_batch(rng.standard_normal((4, 2, DIM)))
    policy.update(int(decisions.ids[0]), 1e300)
    policy.update_batch(decisions.ids[1:2], [-1e300])
    policy.select(contexts(rng))
    largest = float(np.finfo(np.float32).max)
    assert fits.calls[0][1][1].tolist() == [largest, -largest, 0.0, 0.0]
    assert fits.calls[0][1][2].tolist() == [True, True, False, False]


# Users


def test_rounds_beyond_the_limit_are_played_but_not_learned_from(rng, fits):
    policy, model = make(rounds_per_user=2), Model(4, rounds_per_user=2)
    for user in ["a", "b", "a", "a", "b", "b", "c", "a", "c", "c", "d", "d", "e"]:
        X = contexts(rng)
        decision = policy.select(X, user=user)
        model.select(decision.id, X[decision.arm], decision.valid, user)
        assert policy.update(decision, 1.0) and model.update(decision.id, 1.0)
    assert [call[1][2].tolist() for call in fits.calls] == [
        [True, True, True, False],
        [True, False, True, False, True, False, True, True],
    ]
    assert all(same(call[1], expected) for call, expected in zip(fits.calls, model.released, strict=True))


def test_an_invalid_round_counts_for_its_user(fits):
    # Counting only valid rounds would let contents decide which later round is learned from.
    policy = make(first_episode=2)
    policy.update(policy.select(np.full((2, DIM), np.nan), user=1), 1.0)
    policy.update(policy.select(np.ones((2, DIM)), user=1), 1.0)
    policy.select(np.ones((2, DIM)), user=2)
    assert fits.calls[0][1][2].tolist() == [False, False]


def test_users_are_given_always_or_never(rng):
    with_ids, without = make(), make()
    assert not with_ids.guarantee.user_ids_checked
    with_ids.select(contexts(rng), user=7), without.select(contexts(rng))
    assert with_ids.guarantee.user_ids_checked and not without.guarantee.user_ids_checked
    assert "User ids are checked" in str(with_ids.guarantee)
    with pytest.raises(ValueError, match="user must be given in every round, as in the first"):
        with_ids.select(contexts(rng))
    with pytest.raises(ValueError, match="users must be given in every round"):
        with_ids.select_batch(contexts(rng)[None])
    with pytest.raises(ValueError, match="user must be left out in every round"):
        without.select(contexts(rng), user=7)
    assert with_ids.rounds == without.rounds == 1


def test_a_refused_first_round_does_not_fix_the_use_of_users(rng):
    policy = make()
    with pytest.raises(ValueError, match="contexts"):
        policy.select(np.ones((1, 99)), user=1)
    policy.select(contexts(rng))


@pytest.mark.parametrize("users", [(1, np.int64(1), 2), ("1", "1", "\ud800"), (b"1", b"1", b"2")])
def test_user_ids_are_all_of_one_kind(rng, fits, users):
    # 1, "1" and b"1" may be one person under three names: three times what the guarantee says is checked.
    policy = make(first_episode=3)
    for number, user in enumerate(users):
        policy.update(policy.select(contexts(rng), user=user), 1.0)
        others = {int: ("1", b"1"), str: (1, b"1"), bytes: (1, "1")}[type(users[0])]
        for other in others:
            with pytest.raises(ValueError, match="user must all be of one kind, str, int or bytes"):
                policy.select(contexts(rng), user=other)
            with pytest.raises(ValueError, match="users must all be of one kind"):
                policy.select_batch(rng.standard_normal((1, 2, DIM)), users=[other])
        assert policy.rounds == number + 1
    policy.select(contexts(rng), user=users[0])
    assert fits.calls[0][1][2].tolist() == [True, False, True]


def test_user_ids_of_a_batch_are_of_one_kind_from_the_first_on(rng, tmp_path):
    X = rng.standard_normal((2, 2, DIM))
    policy = make(first_episode=5, store=tmp_path / "s")
    for mixed in ([1, "1"], ["1", b"1"]):
        with pytest.raises(ValueError, match="users must all be of one kind"):
            policy.select_batch(X, users=mixed)
    policy.select_batch(X, users=["1", "2"])
    policy.close()
    policy = make(first_episode=5, store=tmp_path / "s")  # known again from the journal
    with pytest.raises(ValueError, match=r"of one kind.*got \['int', 'str'\]"):
        policy.select(X[0], user=1)
    policy.select_batch(rng.standard_normal((3, 2, DIM)), users=["a", "b", "c"])
    policy.select(X[0], user="d")  # releases: known again from the ledger
    policy.save(tmp_path / "file")
    with pytest.raises(ValueError, match="of one kind"):
        FLIPHAT.load(tmp_path / "file").select(X[0], user=1)


def test_user_ids_are_str_int_or_bytes(rng):
    policy = make(first_episode=5)
    for bad in (1.5, True, ("a",), [1]):
        with pytest.raises(TypeError, match="user must be a str, an int or bytes"):
            policy.select(contexts(rng), user=bad)


# Keys


def test_the_same_key_returns_the_same_decision_for_ever(rng):
    policy = make(first_episode=1)
    first = policy.select(contexts(rng), key="a")
    for i in range(20):
        policy.select(contexts(rng), key=i)
    before = policy.rounds
    assert policy.select(contexts(rng), key="a") == first
    assert policy.select("not even contexts", key="a") == first
    assert policy.rounds == before
    with pytest.raises(TypeError, match="key must be a str, an int or bytes, got float"):
        policy.select(contexts(rng), key=1.5)


def test_a_retry_at_a_boundary_opens_no_episode(rng, fits):
    policy = make(first_episode=1)
    first = policy.select(contexts(rng), key="a")
    assert policy.select(contexts(rng), key="a") == first and fits.calls == []


# Forgetting


@pytest.mark.parametrize("sparse", [False, True])
def test_forget_drops_rows_and_rewards_and_the_episode_goes_on(rng, fits, sparse):
    policy, model = make(), Model(4)
    decisions = []
    for i in range(4):
        X = contexts(rng)
        decision = policy.select(sp.csr_array(X) if sparse else X)
        model.select(decision.id, X[decision.arm], True)
        decisions.append(decision)
        if i == 1:
            policy.update(decisions[0], 1.0), model.update(decisions[0].id, 1.0)
            policy.forget(), model.forget()
    assert policy.pending == model.pending() == [decision.id for decision in decisions[1:]]
    with pytest.raises(ValueError, match="already has a reward"):
        policy.update(decisions[0], 1.0)
    for decision in decisions[1:]:
        policy.update(decision, 2.0), model.update(decision.id, 2.0)
    policy.select(contexts(rng))
    assert same(fits.calls[0][1], model.seen_by_the_fit())
    assert fits.calls[0][1][2].tolist() == [False, False, True, True]
    assert not fits.calls[0][1][0][:2].any()


# Failures


def test_a_failed_fit_is_run_again_and_rewards_stay_out_once_it_was_claimed(rng, fits):
    policy = make(first_episode=2)
    decisions = policy.select_batch(rng.standard_normal((2, 2, DIM)))
    policy.update(int(decisions.ids[0]), 1.0)
    fits.fail = True
    with pytest.raises(OSError, match="no entropy"):
        policy.select(contexts(rng))
    assert policy.history == () and policy.rounds == 2 and policy.pending == []
    assert policy.update(int(decisions.ids[1]), 5.0) is False
    fits.fail = False
    assert policy.select(contexts(rng)).episode == 1
    assert fits.calls[0][1][2].tolist() == [True, False]


def test_errors_hold_no_contents():
    secret = 98765.4321
    policy = make()
    for call in (
        lambda: policy.select(np.full((2, DIM + 1), secret)),
        lambda: policy.select(np.full((2, DIM), secret, object)),
        lambda: policy.select([[secret] * DIM, [secret]]),
        lambda: policy.select_batch(np.full((2, DIM), secret)),
    ):
        with pytest.raises((ValueError, TypeError)) as raised:
            call()
        assert "98765" not in str(raised.value)


def test_decisions_read_like_decisions():
    assert (
        repr(Decision(3, 1, True, 0, 0.5)) == "Decision(id=3, arm=1, valid=True, episode=0, probability=0.5)"
    )
    assert repr(make()) == "FLIPHAT(dim=4, sparsity=1, epsilon=1.0, delta=0.01)"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_contents_can_stop_a_fit(dtype, sparse, loss):
    # A fit that raised would keep everyone else waiting because of what one person brought.
    policy = make(dtype=dtype, loss=loss, first_episode=6, warm_start=True, epsilon=100.0)
    largest = float(np.finfo(np.float32).max)
    for _ in range(3):
        X = np.random.default_rng(0).choice([largest, -largest, 0.0, 1e-40], (policy.remaining, 2, DIM))
        decisions = policy.select_batch(
            sp.csr_array(X.reshape(-1, DIM)) if sparse else X, arms=2 if sparse else None
        )
        assert decisions.valid.all()
        rewards = np.resize([1.7e308, -1.7e308, 0.0] if loss == "squared" else [0, 1], len(X))
        policy.update_batch(decisions, rewards)
    policy.select(np.ones((2, DIM)))
    assert len(policy.history) == 3 and np.isfinite(policy.estimate.to_dense()).all()


def test_an_estimate_cannot_be_changed(rng):
    policy = make(first_episode=1)
    policy.select(contexts(rng)), policy.select(contexts(rng))
    with pytest.raises(ValueError, match="read-only"):
        policy.estimate.values[:] = 7.0
