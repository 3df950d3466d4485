"""Limits of users that outlive a process: what a reopened store learns from, and what it refuses."""

import numpy as np
import pytest

from flat_options import nested
from fliphat import FLIPHAT
from fliphat.policies import StoreError
from policy_model import Fits

GIVEN = {
    "dim": 3,
    "sparsity": 1,
    "epsilon": 1.0,
    "delta": 0.01,
    "first_episode": 3,
    "growth": 1.0,
}
VALID = np.ones((2, 3), np.float32)
INVALID = np.full((2, 3), np.nan, np.float32)


def play(policy, user, contexts=VALID, batch=False):
    """Play one round and hand in its reward; an invalid round's reward changes nothing."""
    if batch:
        policy.update_batch(policy.select_batch(contexts[None], [user]), [1.0])
    else:
        policy.update(policy.select(contexts, user=user), 1.0)


def learned(path, users):
    """Play the rest of an episode in a store opened again, and return which of its rows were learned from."""
    with FLIPHAT(**nested(GIVEN), store=path) as policy, pytest.MonkeyPatch.context() as patch:
        fits = Fits(patch)
        for user in users:
            play(policy, user)
        policy.select(VALID, user="opens the next episode")
    (call,) = fits.calls
    return np.asarray(call[1][2], int).tolist()


@pytest.mark.parametrize("batch", [False, True])
def test_an_invalid_round_counts_for_its_user_when_the_journal_is_read_again(tmp_path, batch):
    with FLIPHAT(**nested(GIVEN), store=tmp_path / "s") as policy:
        play(policy, "a", INVALID, batch)
    assert learned(tmp_path / "s", ["a", "b"]) == [0, 0, 1]


@pytest.mark.parametrize("batch", [False, True])
def test_an_invalid_round_counts_for_its_user_once_its_episode_is_committed(tmp_path, batch):
    with FLIPHAT(**nested(GIVEN), store=tmp_path / "s") as policy:
        for user, contexts in (("a", INVALID), ("b", VALID), ("c", VALID)):
            play(policy, user, contexts, batch)
        play(policy, "d", VALID, batch)  # its first line commits the episode
    assert learned(tmp_path / "s", ["a", "e"]) == [1, 0, 1]


def test_rounds_beyond_the_limit_stay_beyond_it_in_a_store_opened_again(tmp_path):
    with FLIPHAT(**nested(GIVEN), store=tmp_path / "s") as policy:
        play(policy, "a")
        play(policy, "b")
    assert learned(tmp_path / "s", ["a"]) == [1, 1, 0]
    with FLIPHAT(**nested(GIVEN), store=tmp_path / "s"):
        pass
    # "opens the next episode" has the first row there and had no reward.
    assert learned(tmp_path / "s", ["b", "c"]) == [0, 0, 1]


@pytest.mark.parametrize(
    "changed",
    [
        {"rounds_per_user": 2},
        {"epsilon": 2.0},
        {"delta": 0.02},
        {"delta": 0.0},
        {"sparsity": 2},
        {"dim": 4},
        {"first_episode": 4},
        {"growth": 2.0},
        {"episodes": "doubling"},
        {"warm_start": False},
        {"mechanism": "laplace"},
        {"loss": "logistic"},
        {"gradient_clip": 3.0},
        {"context_scale": 2.0},
        {"reward_scale": 2.0},
        {"reward_clip": 1.0},
        {"l1_radius": 9.0},
        {"iterations": 2},
        {"step_size": 0.5},
        {"dtype": "float64"},
        {"seed": 1},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_no_argument_of_the_guarantee_can_change_between_openings(tmp_path, changed):
    with FLIPHAT(**nested(GIVEN), store=tmp_path / "s") as policy:
        play(policy, "a")
    (name,) = changed
    given = GIVEN | changed
    if name == "episodes":
        given = {key: value for key, value in given.items() if key not in ("first_episode", "growth")}
    with pytest.raises(StoreError, match=rf"other arguments: .*\b{name} was "):
        FLIPHAT(**nested(given), store=tmp_path / "s")
    FLIPHAT(**nested(GIVEN), store=tmp_path / "s").close()  # as it was, it opens
