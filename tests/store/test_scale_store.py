"""A store's row file that is cut off, removed or put back: a clear error, and nothing spent or lost by it."""

import numpy as np
import pytest
import scipy.sparse as sp

from fliphat import FLIPHAT
from fliphat.policies import StoreError
from fliphat.policies.store.directory import ledger as ledgers

DIM, FIRST = 6, 24


def open_store(path):
    return FLIPHAT(
        dim=DIM,
        sparsity=2,
        epsilon=5.0,
        delta=0.01,
        first_episode=FIRST,
        seed=1,
        store=path,
        durability="batch",
    )


def play(policy, rounds, sparse, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        X = rng.standard_normal((2, DIM)).astype(np.float32)
        policy.update(policy.select(sp.csr_array(X) if sparse else X), 1.0)


def state(policy, path):
    with ledgers.Ledger(path / "ledger.sqlite3").transaction() as connection:
        recorded = connection.execute("SELECT episode, state FROM episodes").fetchall()
    history = [(f.estimate.indices.tolist(), f.estimate.values.tolist()) for f in policy.history]
    return policy.rounds, policy.remaining, policy.episode, policy.pending, history, recorded


def row_files(path):
    return sorted(file for file in path.glob("episode-*") if file.suffix in (".rows", ".columns", ".values"))


def cut(file):
    file.write_bytes(file.read_bytes()[:-4])


def remove(file):
    file.unlink()


def lengthen(file):
    file.write_bytes(file.read_bytes() + b"1234")


def harmed(tmp_path, sparse, which, harm):
    """A policy with a full episode one of whose row files was harmed, the file, and its bytes before."""
    path = tmp_path / "s"
    policy = open_store(path)
    play(policy, FIRST, sparse)
    file = row_files(path)[which]
    good = file.read_bytes()
    harm(file)
    return policy, path, file, good


HARMS = [
    (False, 0, cut),
    (False, 0, remove),
    (False, 0, lengthen),
    (True, 0, cut),
    (True, 1, remove),
    (True, 1, cut),
]


@pytest.mark.parametrize(("sparse", "which", "harm"), HARMS)
def test_a_fit_refuses_and_a_second_try_works(tmp_path, sparse, which, harm):
    policy, path, file, good = harmed(tmp_path, sparse, which, harm)
    before = state(policy, path)
    for _ in range(2):
        with pytest.raises(StoreError, match=rf"{file.name}.*put it back as it was and try again"):
            play(policy, 1, sparse)
        assert state(policy, path) == before and before[-1] == [(0, "open")]
    file.write_bytes(good)
    play(policy, 1, sparse)
    twin = open_store(tmp_path / "twin")  # whose files nobody touched
    play(twin, FIRST, sparse)
    play(twin, 1, sparse)
    assert state(policy, path) == state(twin, tmp_path / "twin") and len(policy.history) == 1


@pytest.mark.parametrize(("sparse", "which", "harm"), HARMS)
def test_forgetting_goes_on_without_the_rows(tmp_path, sparse, which, harm):
    policy, path, _, _ = harmed(tmp_path, sparse, which, harm)
    policy.forget()
    play(policy, 40, sparse)
    assert policy.rounds == FIRST + 40 and policy.history
    policy.close()
    assert open_store(path).rounds == FIRST + 40


@pytest.mark.parametrize(("sparse", "which"), [(False, 0), (True, 0), (True, 1)])
def test_a_store_without_a_row_file_is_not_opened(tmp_path, sparse, which):
    """An empty file in its place would pass for a machine that stopped, and lose the episode silently."""
    policy, path, file, good = harmed(tmp_path, sparse, which, remove)
    policy.close()
    for _ in range(2):
        with pytest.raises(StoreError, match=rf"{file.name}.*is missing: put it back, or remove all of"):
            open_store(path)
        assert not file.exists()
    file.write_bytes(good)
    policy = open_store(path)
    assert policy.rounds == FIRST
    play(policy, 1, sparse)
    assert len(policy.history) == 1


@pytest.mark.parametrize("sparse", [False, True])
def test_the_way_out_that_the_message_names(tmp_path, sparse):
    policy, path, _, _ = harmed(tmp_path, sparse, 0, remove)
    policy.close()
    for rest in path.glob("episode-00000.0.*"):
        rest.unlink()
    policy = open_store(path)
    assert policy.rounds == 0 and policy.history == ()
    play(policy, FIRST + 1, sparse)
    assert len(policy.history) == 1


@pytest.mark.parametrize("sparse", [False, True])
def test_saving_refuses_a_harmed_file_too(tmp_path, sparse):
    policy, _, file, good = harmed(tmp_path, sparse, 0, cut)
    with pytest.raises(StoreError, match=r"has .* bytes instead of"):
        policy.save(tmp_path / "saved")
    assert not list(tmp_path.glob("saved*"))
    file.write_bytes(good)
    policy.save(tmp_path / "saved")
    assert FLIPHAT.load(tmp_path / "saved").rounds == FIRST
