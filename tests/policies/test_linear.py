"""PrivateLinear on the engine: arms with ids, bad input, stores, hand-over, users, retries."""

import copy
import json
import math

import numpy as np
import pytest
from scipy import sparse

from fliphat import FLIPHAT, PrivateLinear, Store
from fliphat.policies import CopyError, Decision, Policy, SnapshotError, StoreError
from fliphat.policies.store.inspect import inspect_path, verify_path


def make(arms=("red", "blue", "green"), dim=3, **given):
    settings = {"epsilon": 5.0, "delta": 1e-3, "context_norm": 2.0, "first_episode": 20} | given
    return PrivateLinear(arms, dim, **settings)


def play(policy, rounds, seed=0, good=None):
    """Play rounds whose reward is 1 where `good`, an arm, is played; return the decisions."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(rounds):
        found.append(policy.select(rng.normal(size=policy._settings.dim)))
        policy.update(found[-1], float(found[-1].arm == good))
    return found


def test_a_first_episode_is_uniform_and_the_next_ones_play_what_was_learned():
    policy = make(epsilon=50.0, first_episode=300, seed=3)
    assert isinstance(policy, Policy)
    first = play(policy, 300, good="blue")
    assert {one.arm for one in first} == {"red", "blue", "green"}
    assert {one.probability for one in first} == {1 / 3}
    later = play(policy, 300, good="blue")
    assert sum(one.arm == "blue" for one in later) > 280
    assert policy.coefficients["blue"][-1] > 0.7 > 0.4 > policy.coefficients["red"][-1]
    assert policy.history[0].estimate.values.shape == (3 * 4,)


def test_batches_play_what_single_rounds_do():
    one, many = make(seed=7), make(seed=7)
    rng = np.random.default_rng(1)
    for _ in range(4):
        contexts = rng.normal(size=(many.remaining, 3))
        decisions = many.select_batch(contexts)
        singles = [one.select(context) for context in contexts]
        assert [tuple(a) for a in decisions] == [tuple(b) for b in singles]
        rewards = rng.random(len(contexts))
        many.update_batch(decisions, rewards)
        for decision, reward in zip(singles, rewards, strict=True):
            one.update(decision, reward)


def test_probabilities_are_the_chances_that_arms_have():
    policy = make(epsilon=3.0, seed=2, exploration=3.0)
    play(policy, 20, good="red")
    context = np.array([0.5, -1.0, 0.2])
    policy.select(context)  # releases
    engine = policy._engine
    words = np.random.default_rng(0).integers(0, 2**64, 40_000, dtype=np.uint64)
    out = np.zeros((len(words), 4), np.float32)
    arms, tied = engine.chooser.choose_dense(np.tile(context, (len(words), 1)), 3, words, None, out, 0)
    from fliphat.policies.engine.exploring import probabilities

    chances = probabilities(tied, 3, 0.0)
    for arm in range(3):
        own = chances[arms == arm]
        if len(own):
            assert len(set(own)) == 1
            assert abs((arms == arm).mean() - own[0]) < 5 * math.sqrt(0.25 / len(words))


def test_arms_come_and_go_between_rounds_and_late_rewards_of_a_removed_one_count():
    policy = make(epsilon=50.0, first_episode=60, seed=1)
    before = policy.select(np.ones(3))
    policy.remove_arm(before.arm)
    assert before.arm not in policy.arms
    assert policy.update(before, 1.0)  # its round was played, and its reward counts
    assert all(one.arm != before.arm for one in play(policy, 30))
    policy.add_arm("new")
    seen = {one.arm for one in play(policy, 60, good="new")}
    assert "new" in seen
    assert "new" in policy.coefficients
    later = play(policy, 60, good="new")
    assert sum(one.arm == "new" for one in later) > 40
    policy.add_arm(before.arm)  # back in its old place
    assert policy.arms[-1] == "new"
    assert len(policy.arms) == 4


@pytest.mark.parametrize("ids", [("a", "b"), (1, 2), (b"x", b"y"), ((1, 2), None), (1.5, frozenset())])
def test_ids_of_any_hashable_kind(ids):
    policy = make(ids)
    assert policy.select(np.zeros(3)).arm in ids
    assert set(policy.select_batch(np.zeros((9, 3))).arms.tolist()) <= set(ids)


def test_bad_arms():
    for arms, error, message in (
        ([], ValueError, "at least one id"),
        (["a", "a"], ValueError, "'a' is there twice"),
        ([1, True], ValueError, "True is there twice"),
        ([[1]], TypeError, "must be hashable ids, got list"),
        ("abc", TypeError, "must be a sequence of ids or a number of arms, got str"),
        (0, ValueError, "arms must be an integer from 1"),
    ):
        with pytest.raises(error, match=message):
            make(arms)
    policy = make(["a", "b"])
    with pytest.raises(ValueError, match=r"arm must be one of \('a', 'b'\), got 'c'"):
        policy.remove_arm("c")
    with pytest.raises(ValueError, match="arm must be a new one: 'a' is there already"):
        policy.add_arm("a")
    with pytest.raises(TypeError, match="arm must be a hashable id, got list"):
        policy.add_arm([])
    policy.remove_arm("a")
    with pytest.raises(ValueError, match="arm must not be the last one"):
        policy.remove_arm("b")


def test_bad_settings_name_the_argument_and_the_reason():
    for given, message in (
        ({"delta": 0}, "delta must be above 0, got 0: .* Gaussian noise, which is never pure DP"),
        ({"context_norm": 0.0}, "context_norm must be"),
        ({"context_norm": math.inf}, "context_norm must be"),
        ({"reward_range": (1, 0)}, r"reward_range must be finite with low < high, got \(1, 0\)"),
        ({"model": "both"}, "model must be one of"),
        ({"exploration": -1}, "exploration must be"),
        ({"dim": 0}, "dim must be an integer from 1"),
    ):
        with pytest.raises(ValueError, match=message):
            make(**given)
    with pytest.raises(ValueError, match=r"dim must be at most \d+ with 10 sets .*24,900 GB\. Use FLIPHAT"):
        make(10, dim=509_256)


@pytest.mark.parametrize("shared", [False, True])
def test_contents_never_raise_and_never_move_anything_public(shared):
    policy = make(["a", "b"], model="shared" if shared else "disjoint", seed=4)
    for context in (
        [np.nan, 0, 0],
        [np.inf, 1, 1],
        [1e39, 0, 0],
        [0, 0, 0],
        [1e30, -1e30, 1e30],
        [3e38, 3e38, 0],
    ):
        given = np.array([context, [1.0, 2, 3]]) if shared else np.array(context, float)
        decision = policy.select(given)
        usable = max(abs(value) for value in context) <= 3.5e38
        assert decision.valid == usable
        assert decision.arm in ("a", "b")
        if not decision.valid:
            assert policy.update(decision, 1.0)
            assert decision.probability == 0.5
    rows = policy._engine.episode.rows.first(6)
    assert np.isfinite(rows).all()
    assert (np.linalg.norm(rows[:, :-1].astype(float), axis=1) < 4.0).all()  # cut, or [1, 2, 3]
    assert not rows[:3].any()


def test_contexts_longer_than_their_norm_are_cut_to_it():
    policy = make()
    policy.select(np.array([30.0, 40.0, 0.0]))
    assert np.allclose(policy._engine.episode.rows.first(1)[0, :3], [1.2, 1.6, 0.0])


def test_structure_raises_and_no_round_happens():
    policy = make()
    for contexts, message in (
        (np.zeros(4), r"shape \(dim,\) with dim = 3, one context for all arms, got shape \(4,\)"),
        (np.zeros((2, 3)), r"shape \(dim,\) with dim = 3, one context for all arms"),
        (np.zeros((3, 3), np.int64), "contexts must"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            policy.select(contexts)
    for contexts in (np.zeros((2, 3, 3)), np.zeros((2, 4)), np.zeros(3)):
        with pytest.raises(ValueError, match=r"shape \(n, dim\)"):
            policy.select_batch(contexts)
    with pytest.raises(ValueError, match="a row for each of the 3 arms, got 2"):
        make(model="shared").select(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"at most policy\.remaining = 20"):
        policy.select_batch(np.zeros((21, 3)))
    assert policy.rounds == 0


def test_lists_and_sparse_contexts_are_taken_as_dense_ones():
    plain, other = make(seed=1), make(seed=1)
    context = np.array([0.0, 0.5, 0.0])
    assert plain.select(context) == other.select([0.0, 0.5, 0.0])
    assert plain.select(context) == other.select(sparse.csr_array(context[None]))
    decisions = other.select_batch(sparse.csr_array(np.tile(context, (4, 1))))
    assert decisions.arms.tolist() == plain.select_batch(np.tile(context, (4, 1))).arms.tolist()
    assert other.select([None, 1, 2]).valid is False


def test_one_arm_one_column_and_zero_contexts():
    policy = make(["only"], dim=1, first_episode=5)
    for _ in range(30):
        decision = policy.select(np.zeros(1))
        assert decision.arm == "only"
        assert decision.probability == 1.0
        policy.update(decision, 0.3)
    assert policy.episode > 1


def test_the_shared_model_learns_one_set_of_coefficients():
    rng = np.random.default_rng(0)
    policy = make(4, dim=5, epsilon=50.0, model="shared", seed=1, first_episode=400)
    truth, won = np.array([0.3, -0.3, 0.2, 0.0, 0.0]), []
    for _ in range(4):
        contexts = rng.normal(size=(policy.remaining, 4, 5)) * 0.5
        decisions = policy.select_batch(contexts)
        means = contexts @ truth + 0.5
        policy.update_batch(decisions, means[np.arange(len(means)), decisions.arms])
        won.append((means.argmax(axis=1) == decisions.arms).mean())
    assert won[0] < 0.35 < 0.85 < won[-1]
    assert len({tuple(one) for one in policy.coefficients.values()}) == 1


def test_users_keys_and_second_rewards_are_the_engines():
    policy = make(rounds_per_user=2)
    first = policy.select(np.ones(3), user="u", key="k")
    assert policy.select(np.zeros(3), user="u", key="k") == first
    for _ in range(3):
        policy.select(np.ones(3), user="u")
    rows = policy._engine.episode.rows.first(4)
    assert rows[:2, :3].all()
    assert not rows[2:].any()
    policy.update(first, 1.0)
    with pytest.raises(ValueError, match="already has a reward"):
        policy.update(first, 1.0)
    assert policy.guarantee.user_ids == "checked"


def test_late_rewards_are_counted_and_forgotten_rows_are_zeros():
    policy = make(first_episode=5)
    late, *_ = (policy.select(np.ones(3)) for _ in range(5))
    policy.select(np.ones(3))
    assert policy.update(late, 1.0) is False
    assert policy.late == 1
    policy.forget()
    assert not policy._engine.episode.rows.first(1).any()


@pytest.mark.parametrize("ids", [("a", "b", "c"), (3, -1, 7), (b"\x00", b"\xff", b"q")])
def test_a_store_keeps_rounds_arms_and_what_was_learned(tmp_path, ids):
    path, settings = tmp_path / "store", {"arms": ids, "store": Store(tmp_path / "store", durability="batch")}
    with make(**settings) as policy:
        play(policy, 25, good=ids[1])
        waiting = policy.select(np.ones(3), key="k")
        policy.remove_arm(ids[0])
        policy.add_arm(ids[0] * 2)
        arms, coefficients, rounds = policy.arms, policy.coefficients, policy.rounds
    with pytest.raises(StoreError, match="give those, then add_arm or remove_arm"):
        make(**settings)
    with make(**(settings | {"arms": arms})) as again:
        assert again.arms == arms
        assert again.rounds == rounds
        for arm, found in coefficients.items():
            assert np.array_equal(again.coefficients[arm], found)
        assert again.select(np.zeros(3), key="k") == waiting
        assert again.update(waiting, 1.0)
        rest = play(again, 60, good=ids[2])
        assert {one.arm for one in rest} <= set(arms)
        assert again.episode >= 2
    found = inspect_path(path)
    assert found["rounds"] == again.rounds
    assert found["remaining"] == again.remaining
    assert verify_path(path).ok
    with PrivateLinear.open(path) as opened:
        assert opened.arms == arms
    with pytest.raises(SnapshotError, match="not a FLIPHAT"):
        FLIPHAT.open(path)
    assert (path / "policy.sqlite3").exists()


def test_a_store_refuses_ids_that_it_cannot_hold_and_other_policies(tmp_path):
    with pytest.raises(
        TypeError, match="arms must be str, int or bytes to be kept in a store or a file, got tuple"
    ):
        make([(1, 2), (3, 4)], store=tmp_path / "a")
    assert not (tmp_path / "a").exists()
    make(store=tmp_path / "b").close()
    with pytest.raises(StoreError, match="holds a PrivateLinear, not a FLIPHAT"):
        FLIPHAT(3, 1, 1.0, 1e-2, store=tmp_path / "b")
    with make(store=tmp_path / "b") as policy, pytest.raises(TypeError, match="got tuple"):
        policy.add_arm((1, 2))


def test_save_and_load_hand_a_policy_over(tmp_path):
    policy = make(seed=5)
    play(policy, 33, good="red")
    policy.remove_arm("green")
    expected = copy.deepcopy(policy._engine.rng)
    policy.save(tmp_path / "file")
    with pytest.raises(CopyError):
        policy.select(np.zeros(3))
    with pytest.raises(SnapshotError, match="not a FLIPHAT"):
        FLIPHAT.load(tmp_path / "file")
    again = PrivateLinear.load(tmp_path / "file")
    assert again.arms == ("red", "blue")
    assert again.rounds == 33
    assert again._engine.rng.bit_generator.state == expected.bit_generator.state
    play(again, 40, good="red")
    with pytest.raises(TypeError, match="got frozenset"):
        make([frozenset(), "b"]).save(tmp_path / "other")
    FLIPHAT(3, 1, 1.0, 1e-2).save(tmp_path / "sparse")
    with pytest.raises(SnapshotError, match="not a PrivateLinear"):
        PrivateLinear.load(tmp_path / "sparse")


@pytest.mark.parametrize("stored", [False, True])
def test_a_policy_that_released_nothing_goes_on_with_its_arms(tmp_path, stored):
    given = {"dim": 2, "epsilon": 1.0, "delta": 1e-3, "context_norm": 1.0}
    policy = PrivateLinear(list("abcdef"), **given, store=tmp_path / "s" if stored else None)
    first = policy.select_batch(np.zeros((3, 2)))
    length = policy.remaining
    if stored:
        policy.close()
        policy = PrivateLinear.open(tmp_path / "s")
    else:
        policy.save(tmp_path / "f")
        policy = PrivateLinear.load(tmp_path / "f")
    assert policy.remaining == length and policy.update(int(first.ids[0]), 1.0)
    assert set(policy.select_batch(np.zeros((60, 2))).arms) == set("abcdef")
    policy.close()


def test_a_copy_shows_what_is_public_and_cannot_play():
    policy = make(seed=5)
    play(policy, 25, good="red")
    other = copy.deepcopy(policy)
    assert other.arms == policy.arms
    assert np.array_equal(other.coefficients["red"], policy.coefficients["red"])
    with pytest.raises(CopyError):
        other.select(np.zeros(3))
    policy.add_arm("later")
    assert other.arms != policy.arms


def test_the_guarantee_says_what_was_done():
    claim = make().guarantee
    assert claim.proven
    assert claim.accounting == "exact"
    assert "Method: rounded Gaussian noise on integer values, priced exactly" in str(claim)
    assert json.loads(json.dumps(claim.to_dict()))["mechanism"] == "none"
    assert not make(seed=1).guarantee.proven
    assert isinstance(make().select(np.zeros(3)), Decision)
