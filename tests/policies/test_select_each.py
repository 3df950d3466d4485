"""Rounds of several callers played together are what they are one by one, whatever is wrong with some."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fliphat import FLIPHAT, PrivateLinear, Store
from fliphat.policies.engine import each
from fliphat.policies.engine.each import Single
from fliphat.policies.store.inspect import verify_path
from policy_model import without_syncs

DIM = 4


def sparse_policy(**more):
    arguments = {"sparsity": 2, "epsilon": 1.0, "delta": 0.01, "first_episode": 7, "rounds_per_user": 2}
    return FLIPHAT(dim=DIM, **arguments, **more)


def exploring_policy(**more):
    return sparse_policy(exploration=0.5, **more)


def linear_policy(**more):
    arguments = {"epsilon": 1.0, "delta": 0.01, "context_norm": 2.0, "first_episode": 7, "rounds_per_user": 2}
    return PrivateLinear(["red", "blue", 3], DIM, **arguments, **more)


def shared_policy(**more):
    return linear_policy(model="shared", **more)


POLICIES = [sparse_policy, exploring_policy, linear_policy, shared_policy]


def contexts_of(make, kind, number):
    """Return contexts: of the right structure, other arms or dtype, useless contents, or wrong."""
    rng = np.random.default_rng(number)
    one_row = make is linear_policy
    shape = (DIM,) if one_row else (3, DIM)
    good = rng.standard_normal(shape).astype(np.float32)
    if kind == "double":
        return good.astype(np.float64)
    if kind == "nan":
        good[..., 1] = np.nan
    elif kind == "arms":
        return rng.standard_normal((2, DIM)).astype(np.float32)
    elif kind == "dim":
        return good[..., 1:]
    elif kind == "list":
        return good.tolist()
    elif kind == "csr":
        return sp.csr_array(np.atleast_2d(good))
    elif kind == "text":
        return "no contexts at all"
    return good


def one_by_one(policy, asked):
    """Return what each call does on its own."""
    results = []
    for one in asked:
        try:
            results.append(policy.select(*one))
        except (ValueError, TypeError) as error:
            results.append((type(error), str(error)))
    return results


def together(policy, groups):
    results = []
    for group in groups:
        found = [None] * len(group)
        policy._select_each(group, found)
        results += [(type(one), str(one)) if isinstance(one, Exception) else one for one in found]
    return results


def state(policy):
    return policy.rounds, policy.episode, policy.pending, policy.estimate.values.tolist()


_kinds = st.sampled_from(["good"] * 8 + ["double", "nan", "arms", "dim", "list", "csr", "text"])
_rounds = st.tuples(_kinds, st.sampled_from([None, "a", "b", 1, 1.5]), st.sampled_from([None, None, "k", 2]))


@pytest.mark.parametrize("make", POLICIES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("stored", [False, True])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    drawn=st.lists(st.lists(_rounds, min_size=1, max_size=12), min_size=1, max_size=4), users=st.booleans()
)
def test_together_is_one_by_one(make, stored, drawn, users, tmp_path_factory, monkeypatch):
    without_syncs(monkeypatch)
    groups, number = [], 0
    for group in drawn:
        groups.append([])
        for kind, user, key in group:
            number += 1
            name = user if users or number % 7 == 0 else None  # now and then against the rule
            groups[-1].append(Single(contexts_of(make, kind, number), name, key))
    directory = tmp_path_factory.mktemp("s") / "store"
    more = {"store": Store(directory, durability="group")} if stored else {}
    policy, twin = make(seed=3, **more), make(seed=3)
    assert together(policy, groups) == one_by_one(twin, [one for group in groups for one in group])
    assert state(policy) == state(twin)
    for identity in policy.pending[::2]:
        assert policy.update(identity, 0.5) == twin.update(identity, 0.5)
    before = state(policy)
    policy.close()
    if stored:  # what the journal kept is what was played, keys included
        assert verify_path(directory).ok
        with type(policy).open(directory) as again:
            assert state(again) == before
            for one in [one for group in groups for one in group if one.key is not None]:
                try:
                    known = twin.select(*one)
                except (ValueError, TypeError):
                    continue
                assert again.select(*one)[:4] == known[:4]


@pytest.mark.parametrize("make", POLICIES, ids=lambda make: make.__name__)
def test_a_group_over_several_episodes_is_one_by_one(make):
    asked = [Single(contexts_of(make, "good", i), i % 9, i) for i in range(60)]
    policy, twin = make(seed=1), make(seed=1)
    assert together(policy, [asked]) == one_by_one(twin, asked)
    assert policy.episode > 2 and state(policy) == state(twin)


def test_the_key_of_an_episodes_last_round_is_kept(tmp_path):
    asked = [Single(contexts_of(sparse_policy, "good", i), None, f"k{i}") for i in range(9)]
    policy = sparse_policy(seed=1, store=Store(tmp_path / "s", durability="group"))
    expected = together(policy, [asked[:6], asked[6:]])  # the seventh is alone in its frame
    policy.close()
    with FLIPHAT.open(tmp_path / "s") as again:
        assert one_by_one(again, asked) == expected


def test_rounds_are_really_played_together(monkeypatch):
    played, real = [], each._play_in_one_episode
    monkeypatch.setattr(
        each,
        "_play_in_one_episode",
        lambda engine, part, results: (played.append(len(part)), real(engine, part, results)),
    )
    policy = sparse_policy(seed=1)
    together(policy, [[Single(contexts_of(sparse_policy, "good", i)) for i in range(20)]])
    assert played[0] == 6  # after the first, which decides about users, all that the episode had room for
    assert sum(played) > 15


def test_control_a_key_that_is_missed_inside_a_group_would_be_noticed(monkeypatch):
    asked = [Single(contexts_of(sparse_policy, "good", i), None, "same") for i in range(3)]
    asked.insert(0, Single(contexts_of(sparse_policy, "good", 9)))
    expected = one_by_one(sparse_policy(seed=2), asked)
    assert together(sparse_policy(seed=2), [asked]) == expected

    class Blind(set):
        def __contains__(self, _):
            return False

    monkeypatch.setattr(each, "set", Blind, raising=False)
    assert together(sparse_policy(seed=2), [asked]) != expected


def test_what_was_played_before_an_error_of_the_fit_has_its_decision(monkeypatch):
    policy = sparse_policy(seed=1)
    asked = [Single(contexts_of(sparse_policy, "good", i)) for i in range(12)]
    monkeypatch.setattr(policy._engine.fit, "run", lambda *_: 1 / 0)
    results = [None] * 12
    with pytest.raises(ZeroDivisionError):
        policy._select_each(asked, results)
    assert [one is not None for one in results] == [True] * 7 + [False] * 5
    monkeypatch.undo()
    again = [None] * 5
    policy._select_each(asked[7:], again)
    twin = sparse_policy(seed=1)
    assert results[:7] + again == one_by_one(twin, asked)


def test_a_value_error_of_the_fit_plays_no_round_twice(monkeypatch):
    policy = sparse_policy(seed=1)
    contexts = [contexts_of(sparse_policy, "good", i) for i in range(13)]
    policy._select_each([Single(contexts[i], None, i) for i in range(4)], [None] * 4)
    run, failed = policy._engine.fit.run, []

    def fails_once(*given):
        if not failed:
            failed.append(1)
            raise np.linalg.LinAlgError("Singular matrix")
        return run(*given)

    monkeypatch.setattr(policy._engine.fit, "run", fails_once)
    # The episode ends within these, before the key of the last one is asked for again.
    asked = [Single(contexts[i], None, i) for i in range(4, 12)]
    asked += [asked[-1], Single(contexts[12], None, 12)]
    results = [None] * len(asked)
    with pytest.raises(np.linalg.LinAlgError):
        policy._select_each(asked, results)
    first = results.index(None)
    rest = [None] * (len(asked) - first)
    policy._select_each(asked[first:], rest)
    decisions = results[:first] + rest
    assert failed and decisions[-2] == decisions[-3]
    assert [int(one.id) for one in decisions] == [*range(5, 13), 12, 13]
    assert policy._look().rounds == 13
