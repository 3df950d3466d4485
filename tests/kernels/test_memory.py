"""A failed allocation is Python's MemoryError: the interpreter, and all that it holds, lives on."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from fliphat import _native

#: Arguments larger than any address space: each would once have ended the process.
ABSURD = {
    "words": lambda: _native.round_words(1, 0, 2**59),
    "audit bins": lambda: _native.audit_permute_and_flip(
        [[0, 1], [1, 0]], 1, 1, [(np.zeros((1, 1, 2)), np.zeros((1, 2)), 0.0, 1.0, 2**58)], 1, 1
    ),
}


@pytest.mark.parametrize("name", ABSURD)
def test_absurd_sizes_are_memory_errors(name):
    with pytest.raises(MemoryError, match="not enough memory"):
        ABSURD[name]()


def test_an_estimate_takes_memory_for_its_values_not_for_its_dimension():
    """As a dense vector it is an error: a test beside `Theta` in Rust."""
    _native.Estimate(np.array([1]), np.array([1.0]), 2**62)


PROGRAM = """
import resource
import numpy as np
from scipy import sparse
from fliphat import kernels

public = dict(sparsity=2, iterations=1, step_size=1.0, l1_radius=1.0, clip=1.0, pick_scale=9, value_scale=9)


def calls(d):
    v = np.arange(d) - d // 2
    floats = v.astype(float)
    rows = sparse.csr_matrix((np.ones(3, np.float32), [1, 5, d - 1], [0, 1, 2, 3]), shape=(3, d))
    contexts, y = np.ones((d, 1), np.float32), np.ones(3)
    return {
        "project_l1": lambda: kernels.project_l1(floats, 1.0),
        "project_l1 inside": lambda: kernels.project_l1(floats, 1e300),
        "clipped_gradient": lambda: kernels.clipped_gradient(rows, y, floats, 1.0),
        "score": lambda: kernels.score(contexts, np.ones(1)),
        "peel": lambda: kernels.peel(v, 2, pick_scale=9, value_scale=9),
        "peel laplace": lambda: kernels.peel(v, 2, pick_scale=9, value_scale=9, mechanism="laplace"),
        "niht": lambda: kernels.niht(rows, y, start=floats, **public),
        "laplace": lambda: kernels.laplace(1.0, d),
    }


for call in calls(100).values():  # whatever is made once is made before memory ends
    call()
large = calls(2**23)  # arrays of 32 MB and more are never taken from memory that was freed before
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, -1))
for name, call in large.items():
    try:
        call()
    except MemoryError:
        print("MemoryError", name)
    else:
        print("done", name)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
@pytest.mark.parametrize(("room", "expected"), [(2**22, "MemoryError"), (2**31, "done")])
def test_kernels_survive_the_end_of_memory(room, expected):
    # The second case is the control: with enough room no call fails.
    program = textwrap.dedent(PROGRAM).replace("ROOM", str(room))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
    lines = done.stdout.splitlines()
    assert len(lines) == 8
    assert {line.split()[0] for line in lines} == {expected}, lines
