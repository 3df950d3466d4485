"""Keys of retries are kept as long as somebody may ask again, and no longer."""

import numpy as np
import pytest

from fliphat import FLIPHAT, Store
from fliphat.policies.store import sql
from fliphat.policies.store.inspect import inspect_path, verify_path

GOOD = np.ones((2, 4), np.float32)


@pytest.fixture(params=["directory", "database"])
def store(request, tmp_path):
    return tmp_path / "s" if request.param == "directory" else request.getfixturevalue("database").new()


@pytest.mark.parametrize("lasts", [0.0, 3600.0])
def test_keys_go_when_their_episode_is_over_for_long_enough(store, lasts, monkeypatch):
    monkeypatch.setattr(sql, "KEYS_LAST", lasts)
    made = {"dim": 4, "sparsity": 1, "epsilon": 1.0, "delta": 0.01, "first_episode": 6}
    with FLIPHAT(**made, store=Store(store)) as policy:
        first = policy.select(GOOD, key="first")
        assert policy.select(GOOD, key="first") == first
        for number in range(100):
            policy.select(GOOD, key=number)
        assert policy.episode > 3
        open_rounds = policy.rounds - sum(one.rounds for one in policy.history)
        last = policy.select(GOOD, key="last")
        assert policy.select(GOOD, key="last") == last  # those of the open episode are good
        longest = max(one.rounds for one in policy.history)
        kept = inspect_path(store, private=True)["private"]["keys"]
        if lasts:
            assert kept == 102 and policy.select(GOOD, key="first").id == first.id
        else:
            assert kept <= open_rounds + 1 + 2 * longest  # of the open episode, and at most two before it
            assert policy.select(GOOD, key="first").id != first.id  # a new round
    assert verify_path(store).ok
