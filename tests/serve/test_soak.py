"""Memory of a policy that is played for long, with a key and another user in every round."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

#: Bytes of memory that a user may take, and rounds that it is measured over.
A_USER, ROUNDS = 40, 1_000_000

SOAK = """
import json, sys, warnings
import numpy as np
from fliphat import FLIPHAT, Store
from fliphat.policies.engine.each import Single
from fliphat.policies.store import sql
warnings.simplefilter("ignore")
sql.KEYS_LAST = 0.0
policy = FLIPHAT(
    dim=4, sparsity=1, epsilon=1.0, delta=1e-6, store=Store(sys.argv[1], durability="group")
)
def memory():
    with open("/proc/self/status") as file:
        return 1024 * int(next(line for line in file if line.startswith("VmRSS")).split()[1])
contexts, seen, kept = np.ones((3, 4), np.float32), [], []
for begin in range(0, int(sys.argv[2]), 500):
    asked = [Single(contexts, f"user {begin + i}", f"key {begin + i}") for i in range(500)]
    results = [None] * 500
    policy._select_each(asked, results)
    policy.flush()
    if sys.argv[3] == "leak":
        kept.append([bytes(200) for _ in range(500)])
    if begin % 10_000 == 0:
        seen.append((begin, memory()))
print(json.dumps(seen))
"""


def measured(tmp_path, rounds, how):
    """Return bytes of memory a user, over the later two thirds of a run."""
    command = [sys.executable, "-c", SOAK, str(tmp_path / "s"), str(rounds), how]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=1800)
    seen = json.loads(told.stdout)
    (first, before), (last, after) = seen[len(seen) // 3], seen[-1]
    return (after - before) / (last - first)


def test_memory_does_not_grow_with_rounds_and_keys(tmp_path):
    found = measured(tmp_path, ROUNDS, "well")
    print(f"{found:.1f} bytes a user")
    assert found < A_USER


def test_control_a_leak_of_200_bytes_a_round_is_seen(tmp_path):
    assert measured(tmp_path, 60_000, "leak") > A_USER
