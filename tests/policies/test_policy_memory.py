"""What an episode costs in memory, and that a fit makes no second copy of its rows."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from fliphat import FLIPHAT, Iht, PrivateLinear
from fliphat.kernels import _niht

N, DIM, PER_ROW = 4096, 400, 8


def sparse_contexts(rng, rows, dim):
    columns = np.sort(rng.integers(0, dim - PER_ROW, (rows, PER_ROW)), axis=1) + np.arange(PER_ROW)
    values = rng.standard_normal(columns.shape).astype(np.float32)
    return sp.csr_array(
        (values.ravel(), columns.ravel().astype(np.int32), np.arange(rows + 1, dtype=np.int32) * PER_ROW),
        shape=(rows, dim),
    )


def held_by(action):
    """Bytes that an action leaves allocated, and the most it had on the way."""
    tracemalloc.start()
    try:
        kept = action()
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return now, peak, kept


def fill(policy, contexts, **given):
    decisions = policy.select_batch(contexts, **given)
    policy.update_batch(decisions.ids[::2], np.ones(N // 2))
    return policy


def test_a_dense_episode_costs_its_rows_and_a_tenth_at_most():
    X = np.random.default_rng(0).standard_normal((N, 1, DIM), dtype=np.float32)
    policy = FLIPHAT(dim=DIM, sparsity=5, epsilon=1.0, delta=0.01, first_episode=N)
    held, _, _ = held_by(lambda: fill(policy, X))
    assert N * DIM * 4 <= held <= 1.1 * N * DIM * 4


@pytest.mark.parametrize("dim", [400, 509_256])
def test_a_sparse_episode_costs_nine_bytes_a_value(dim):
    X = sparse_contexts(np.random.default_rng(0), N, dim)
    policy = FLIPHAT(dim=dim, sparsity=5, epsilon=1.0, delta=0.01, first_episode=N)
    fill(policy, X, arms=1)
    episode = policy._engine.episode
    rows = episode.rows
    total = rows.values.nbytes + rows.columns.nbytes + rows.lengths.nbytes + episode.codes.nbytes
    assert rows.stored == N * PER_ROW and total <= 9 * N * PER_ROW
    # One round at a time it grows, with room to spare until the episode is full.
    policy = FLIPHAT(dim=dim, sparsity=5, epsilon=1.0, delta=0.01, first_episode=64)
    for i in range(64):
        policy.select(X[i : i + 1])
    assert len(policy._engine.episode.rows.values) == 64 * PER_ROW


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("stored", [False, True])
def test_a_fit_makes_no_second_copy(monkeypatch, sparse, stored, tmp_path):
    rng, shared = np.random.default_rng(0), []
    X = sparse_contexts(rng, N, DIM) if sparse else rng.standard_normal((N, 1, DIM), dtype=np.float32)
    policy = FLIPHAT(
        dim=DIM,
        sparsity=5,
        epsilon=1.0,
        delta=0.01,
        first_episode=N,
        fit=Iht(),
        store=tmp_path / "s" if stored else None,
    )
    fill(policy, X, **({"arms": 1} if sparse else {}))
    rows = policy._engine.episode.rows
    real = _niht._native.niht_fit

    def spy(native, *rest):
        given = native[2] if sparse else native
        shared.append(np.shares_memory(given, rows.values if sparse else rows.array))
        return real(native, *rest)

    monkeypatch.setattr(_niht._native, "niht_fit", spy)
    row = X[:1] if sparse else X[0]
    # The next episode's rows are allocated in the same call; they are not a copy.
    following = 0 if sparse else 2 * N * DIM * 4
    _, peak, _ = held_by(lambda: policy.select(row))
    assert shared == [True]
    # Rewards as the kernel takes them, and offsets.
    aside = 20 * N + 2**17
    assert peak - following < 0.5 * N * (PER_ROW if sparse else DIM) * 4 + aside


def test_sparse_contexts_of_named_arms_are_never_all_dense():
    arms, dim, rounds = 20, 400, 1500
    X = sparse_contexts(np.random.default_rng(0), arms * rounds, dim)
    dense = 4 * arms * rounds * dim
    policy = PrivateLinear(
        arms, dim, 1.0, 1e-3, context_norm=3.0, model="shared", first_episode=rounds, seed=0
    )
    _, peak, _ = held_by(lambda: policy.select_batch(X))
    # A row a round is kept, the chosen one; it is the test's control that all rows would be seen.
    assert peak < 0.2 * dense < held_by(X.toarray)[1]
