"""Rows beyond the memory limit: the same bits from a nameless file, and what happens when the disk fails."""

import errno
import gc
import os
import resource
import stat
import subprocess
import sys
import tempfile

import numpy as np
import pytest
import scipy.sparse as sp

from fliphat import FLIPHAT, Store
from fliphat.environments import SparseClicks, SparseLinear
from fliphat.policies import SpillError
from fliphat.policies.engine import files, rows
from fliphat.policies.engine.rows import spill
from fliphat.policies.engine.rows.limits import checked_memory_limit
from fliphat.simulation import play

DIM, ARMS, FIRST = 40, 3, 32
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")


def make(limit, store=None, **changes):
    arguments = {"dim": DIM, "sparsity": 4, "epsilon": 5.0, "delta": 0.01, "first_episode": FIRST, "seed": 3}
    return FLIPHAT(**arguments | changes, store=Store(store, memory_limit=limit))


def contexts(rng, sparse, rounds):
    X = rng.standard_normal((rounds, ARMS, DIM)).astype(np.float32)
    if not sparse:
        return X
    X[rng.random(X.shape) < 0.7] = 0
    return sp.csr_array(X.reshape(-1, DIM))


def step(policy, rng, sparse, rounds):
    X = contexts(rng, sparse, rounds)
    decisions = policy.select_batch(X, arms=ARMS if sparse else None)
    policy.update_batch(decisions.ids[1:], rng.integers(0, 2, rounds)[1:])
    return decisions.arms


def one(policy, rng, sparse):
    X = contexts(rng, sparse, 1)
    decision = policy.select(X if sparse else X[0])
    policy.update(decision, 1.0)
    return decision.arm


def drive(policy, sparse, rounds, seed=0):
    """Play singles and batches; return all arms."""
    rng, arms = np.random.default_rng(seed), []
    while len(arms) < rounds:
        count = min(int(rng.integers(1, 9)), policy.remaining, rounds - len(arms))
        arms += [one(policy, rng, sparse)] if count == 1 else step(policy, rng, sparse, count).tolist()
    return arms


def outcome(policy):
    """Everything public that a policy came to."""
    return [(f.estimate.indices.tolist(), f.estimate.values.tolist()) for f in policy.history]


def place(policy):
    """The kind of place that the open episode's rows are in."""
    kept = policy._engine.episode.rows
    return type(kept) is rows.SpilledRows or getattr(kept, "spilled", False)


# Where rows are changes no bit


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_same_bits_in_memory_and_in_a_file(sparse, dtype):
    never, always = make(None, dtype=dtype), make(0, dtype=dtype)
    assert drive(never, sparse, 300) == drive(always, sparse, 300)
    assert outcome(never) == outcome(always) and len(never.history) >= 4
    assert place(always) and not place(never)
    other = make(0, dtype=dtype, seed=4)  # the control: another seed's noise is seen by the comparison
    drive(other, sparse, 300)
    assert outcome(other) != outcome(always)


@pytest.mark.parametrize("sparse", [False, True])
def test_same_bits_when_rows_move_on_the_way(sparse):
    """A limit that the first episodes keep and later ones (sparse: a part of them) pass."""
    limit = 2 * FIRST * DIM * 4 if not sparse else 2 * FIRST * DIM * 2
    never, some = make(None), make(limit)
    places, rng = [], [np.random.default_rng(1), np.random.default_rng(1)]
    for _ in range(500):
        assert one(never, rng[0], sparse) == one(some, rng[1], sparse)
        places.append(place(some))
    assert outcome(never) == outcome(some)
    assert not all(places) and any(places)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sparse", [False, True])
def test_same_bits_in_simulations(sparse, dtype):
    def run(limit):
        world = SparseClicks(dim=500, nonzeros=10, seed=2) if sparse else SparseLinear(dim=500, seed=2)
        loss = "logistic" if sparse else "squared"
        policy = make(limit, dim=500, dtype=dtype, loss=loss, first_episode=200)
        played = play(policy, world, 3000)
        return played.arms.tolist(), outcome(policy), place(policy)

    kept, spilled = run(None), run(1000)
    assert kept[:2] == spilled[:2] and (kept[2], spilled[2]) == (False, True)


def test_dense_rows_go_to_a_file_by_public_numbers_alone():
    size = FIRST * DIM * 4
    for limit, expected in ((size, rows.DenseRows), (size - 1, rows.SpilledRows)):
        policy = make(limit)
        policy.select(np.zeros((ARMS, DIM), np.float32))
        assert type(policy._engine.episode.rows) is expected


def test_sparse_rows_move_when_they_would_pass_the_limit():
    policy, rng = make(8 * 300, first_episode=1000), np.random.default_rng(0)
    seen = []
    for _ in range(100):
        one(policy, rng, sparse=True)
        kept = policy._engine.episode.rows
        seen.append((kept.stored, kept.spilled))
        assert len(kept.values) <= 300
    assert all(moved == (stored > 300) for stored, moved in seen) and seen[-1][1]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("before", "after"), [(None, 0), (0, None), (0, 0)])
def test_saving_and_loading_under_another_limit(tmp_path, sparse, before, after):
    whole, parted = make(None), make(before)
    drive(whole, sparse, 50), drive(parted, sparse, 50)
    parted.save(tmp_path / "p")
    parted = FLIPHAT.load(tmp_path / "p", memory_limit=after)
    assert place(parted) == (after == 0)
    assert drive(whole, sparse, 200, seed=9) == drive(parted, sparse, 200, seed=9)
    assert outcome(whole) == outcome(parted)


def test_a_store_may_be_opened_with_another_limit(tmp_path):
    memory = make(None)
    with make("1GB", store=tmp_path / "s") as policy:
        drive(policy, False, 40)
        assert not place(policy)
    with make(0, store=tmp_path / "s") as policy:
        assert policy.rounds == 40 and place(policy)  # the working copy is made anew, in a file now
        drive(policy, False, 40)
        rounds = policy.rounds
    drive(memory, False, rounds)


@pytest.mark.parametrize("sparse", [False, True])
def test_forgetting_gives_the_space_back_and_zeros_to_the_fit(sparse):
    memory, file = make(None), make(0)
    for policy in (memory, file):
        drive(policy, sparse, 20)
        policy.forget()
        drive(policy, sparse, 40, seed=5)
    assert outcome(memory) == outcome(file)


# The limit


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        (0, 0),
        ("3GB", 3 * 10**9),
        ("512MiB", 2**29),
        ("1.5 kb", 1500),
        ("7b", 7),
        ("2TiB", 2**41),
    ],
)
def test_limits_are_read(given, expected):
    assert checked_memory_limit(given) == expected


@pytest.mark.parametrize("given", ["", "GB", "3", "-1GB", "3 XB", "ib", "3Gi", -1, 2**63, "99999999TB"])
def test_other_limits_are_refused_by_name(given):
    with pytest.raises(ValueError, match="memory_limit must be"):
        make(given)


@pytest.mark.parametrize("given", [1.5, True, b"3GB"])
def test_limits_of_another_type_are_refused(given):
    with pytest.raises(TypeError, match="memory_limit must be an integer"):
        make(given)


# The file


@linux
@pytest.mark.parametrize("sparse", [False, True])
def test_the_file_is_private_has_no_name_and_vanishes(tmp_path, monkeypatch, sparse):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    policy = make(0)
    drive(policy, sparse, 10)
    assert list(tmp_path.iterdir()) == []
    live = [file for file in spill._LIVE if file._directory == str(tmp_path)]
    assert len(live) == (2 if sparse else 1)
    for file in live:
        status = os.fstat(file._file.fileno())
        assert stat.S_IMODE(status.st_mode) == 0o600 and status.st_nlink == 0 and status.st_size > 0
    del live, file, policy
    gc.collect()
    assert not [file for file in spill._LIVE if file._directory == str(tmp_path)]


ANONYMOUS = """
import sys
import numpy as np
from fliphat import FLIPHAT, Store
def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024
policy = FLIPHAT(dim=1000, sparsity=5, epsilon=1.0, delta=0.01, first_episode=40_000,
                 store=Store(memory_limit=None if sys.argv[1] == "none" else sys.argv[1]))
X = np.random.default_rng(0).standard_normal((1000, 1, 1000), dtype=np.float32)
policy.update_batch(policy.select_batch(X), np.ones(1000))
before = anonymous()
while policy.rounds < 40_000:
    policy.update_batch(policy.select_batch(X), np.ones(1000))
full = anonymous()
policy.select(X[0])
assert len(policy.history) == 1
print(full - before, anonymous() - before)
"""


@linux
def test_spilled_rows_are_not_the_process_own_memory():
    """160 MB of rows; the control is the same policy without a limit."""

    def grown(limit):
        command = [sys.executable, "-W", "ignore", "-c", ANONYMOUS, limit]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return max(float(number) for number in done.stdout.split())

    assert grown("50MB") < 30
    assert grown("none") > 140


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_hold_the_file(tmp_path):
    code = """
import os, sys
import numpy as np
from fliphat import FLIPHAT, Store
from fliphat.policies.engine.rows import spill
policy = FLIPHAT(dim=4, sparsity=1, epsilon=1.0, delta=0.01, store=Store(memory_limit=0))
policy.select(np.ones((2, 4)))
child = os.fork()
if child == 0:
    os._exit(0 if all(file._file.closed for file in spill._LIVE) else 1)
assert len(spill._LIVE) == 1 and not next(iter(spill._LIVE))._file.closed
policy.select(np.ones((2, 4)))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code]).returncode == 0


# Faults


def public(policy):
    engine = policy._engine
    generator = engine.rng.bit_generator.state
    return policy.rounds, policy.remaining, policy.episode, policy.pending, outcome(policy), generator


@pytest.mark.parametrize(
    ("sparse", "single", "moving"),
    [
        (False, False, False),
        (False, True, False),
        (True, False, False),
        (True, True, False),
        (True, False, True),
    ],
)
def test_a_full_disk_changes_nothing_and_a_second_try_works(monkeypatch, sparse, single, moving):
    """With `moving`, what fails is the move of rows that were in memory until then."""
    twin, policy = make(None), make(8 * 150 if moving else 0)
    drive(twin, sparse, 9), drive(policy, sparse, 9)
    assert place(policy) != moving

    def act(target):
        rng = np.random.default_rng(7)
        return one(target, rng, sparse) if single else step(target, rng, sparse, 9).tolist()

    real, failures = files.write_all, []

    def full(descriptor, data):
        if len(failures) < 2:
            os.write(descriptor, bytes(data)[:7])  # a disk that fills up takes a part
            failures.append(1)
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor, data)

    before = public(policy)
    monkeypatch.setattr(files, "write_all", full)
    for _ in range(2):
        with pytest.raises(SpillError, match=r"No space left on device\. The call did not happen"):
            act(policy)
        assert public(policy) == before
    assert act(policy) == act(twin)
    assert drive(policy, sparse, 150, seed=2) == drive(twin, sparse, 150, seed=2)
    assert outcome(policy) == outcome(twin) and len(policy.history) > 2


@pytest.mark.parametrize("sparse", [False, True])
def test_no_temporary_file_after_a_release(monkeypatch, sparse):
    """The release stands and is on record; the round that opened the next episode did not happen."""
    twin, policy = make(None), make(0)
    drive(twin, sparse, FIRST), drive(policy, sparse, FIRST)
    real = tempfile.TemporaryFile

    def none(**options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", none)
    for _ in range(2):
        with pytest.raises(SpillError, match="temporary file could not be made"):
            one(policy, np.random.default_rng(1), sparse)
        assert policy.rounds == FIRST and len(policy.history) == 1 and policy.episode == 1
    monkeypatch.setattr(tempfile, "TemporaryFile", real)
    assert drive(policy, sparse, 150, seed=2) == drive(twin, sparse, 150, seed=2)
    assert outcome(policy) == outcome(twin)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("filled", [20, FIRST])
def test_a_file_cut_off_is_an_error_and_not_the_end_of_the_process(sparse, filled):
    policy = make(0)
    drive(policy, sparse, filled)
    kept = policy._engine.episode.rows
    file = kept._values.file if sparse else kept.file
    os.ftruncate(file._file.fileno(), 8)
    before = public(policy)
    for _ in range(2):
        with pytest.raises(SpillError, match=r"was cut off: they are lost\. forget\(\) goes on"):
            one(policy, np.random.default_rng(1), sparse)
        assert public(policy) == before and policy._engine.episode.life.phase in ("open", "full")
    policy.forget()
    drive(policy, sparse, 100)
    assert policy.rounds == filled + 100 and len(policy.history) >= 2


@pytest.mark.parametrize("sparse", [False, True])
def test_a_full_disk_while_loading_consumes_nothing(monkeypatch, tmp_path, sparse):
    twin, policy = make(None), make(None)
    drive(twin, sparse, 20), drive(policy, sparse, 20)
    policy.save(tmp_path / "p")

    def full(descriptor, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_all", full)
        with pytest.raises(SpillError, match="No space left on device"):
            FLIPHAT.load(tmp_path / "p", memory_limit=0)
    loaded = FLIPHAT.load(tmp_path / "p", memory_limit=0)
    assert drive(twin, sparse, 100, seed=2) == drive(loaded, sparse, 100, seed=2)
    assert outcome(twin) == outcome(loaded) and loaded.history


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="needs limits on file sizes")
def test_a_real_limit_of_the_system():
    """A child whose files may not grow past 64 KB meets the system's own refusal, and plays on after it."""
    code = """
import resource, signal
import numpy as np
from fliphat import FLIPHAT, Store
from fliphat.policies import SpillError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
policy = FLIPHAT(dim=256, sparsity=2, epsilon=5.0, delta=0.01, first_episode=100, store=Store(memory_limit=0))
X = np.random.default_rng(0).standard_normal((2, 256))
played = 0
try:
    while True:
        policy.update(policy.select(X), 1.0)
        played += 1
except SpillError as error:
    print(error)
assert played == policy.rounds == 64
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for _ in range(100):
    policy.update(policy.select(X), 1.0)
assert len(policy.history) == 1 and policy.rounds == 164
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "The call did not happen" in done.stdout
