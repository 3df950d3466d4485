"""Random kills, a hundred of each kind, of a real process: no acknowledged call is lost, each episode is released exactly once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dense_twin import POLICIES
from kill_child import make

CHILD = Path(__file__).parents[1] / "helpers" / "kill_child.py"


def run_and_kill(directory, durability, seed, lines, delay, policy="FLIPHAT"):
    """Start the child, kill it `delay` seconds after it said so many lines, and return what it said.

    By time alone, a busy machine would have most children killed before they did anything.
    """
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(directory), durability, str(seed), policy], stdout=subprocess.PIPE
    )
    said = [child.stdout.readline()]
    while said[-1].strip() != b"ready":
        said.append(child.stdout.readline())
        assert said[-1], "the child stopped by itself"
    said += [child.stdout.readline() for _ in range(lines)]
    time.sleep(delay)
    os.kill(child.pid, signal.SIGKILL)
    rest, _ = child.communicate()
    # The last line may be cut off: what it says was not heard, and so not acknowledged.
    lines = b"".join(said).decode().splitlines() + rest.decode().splitlines()[: rest.count(b"\n")]
    return [line.split() for line in lines]


def check(directory, durability, said, shown, policy="FLIPHAT"):
    """Compare a reopened store with what the killed process acknowledged."""
    for word, *rest in said:
        if word == "shown":
            episode, estimate = int(rest[0]), rest[1]
            assert shown.setdefault(episode, estimate) == estimate, "an episode was released twice"
    played = [int(rest[0]) for word, *rest in said if word == "played"]
    rewarded = [int(rest[0]) for word, *rest in said if word == "rewarded"]
    with make(directory, durability, policy) as policy:
        assert all(identity not in policy.pending for identity in rewarded)
        for facts in policy.history:
            now = facts.estimate.indices.tobytes().hex() + facts.estimate.values.tobytes().hex()
            assert shown.setdefault(facts.episode, now) == now
        return policy.rounds, len(played)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("durability", ["full", "batch", "group"])
def test_a_hundred_kills(tmp_path, durability, policy):
    rng, shown, rounds, total, restarts_with_work = np.random.default_rng(0), {}, 0, 0, 0
    for seed in range(100):
        directory = (
            tmp_path / f"store {seed // 20}"
        )  # new ones too: kills hit early episodes, long ones and opening
        if seed % 20 == 0:
            shown, rounds = {}, 0
        said = run_and_kill(
            directory, durability, seed, int(rng.integers(0, 60)), float(rng.exponential(0.003)), policy
        )
        now, played = check(directory, durability, said, shown, policy)
        # All acknowledged rounds are there, and at most the one that was under way besides.
        assert rounds + played <= now <= rounds + played + 1
        total, rounds, restarts_with_work = total + played, now, restarts_with_work + (played > 0)
    assert restarts_with_work > 50 and total > 500


def test_the_check_catches_a_lost_reward_and_a_second_release(tmp_path):
    with make(tmp_path, "full") as policy:
        decision = policy.select(np.ones((2, 6)))
    with pytest.raises(AssertionError):
        check(tmp_path, "full", [["rewarded", str(decision.id)]], {})
    with pytest.raises(AssertionError, match="released twice"):
        check(tmp_path, "full", [["shown", "0", "aa"], ["shown", "0", "bb"]], {})
    assert check(tmp_path, "full", [["played", str(decision.id)]], {}) == (1, 1)
