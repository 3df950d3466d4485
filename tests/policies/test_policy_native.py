"""The native estimate: parity with the kernels, and no input that panics or aborts."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from fliphat import _native, kernels


def estimate(theta):
    indices = np.flatnonzero(theta)
    return _native.Estimate(indices, np.asarray(theta, float)[indices], len(theta))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 3000])
def test_it_chooses_as_select_arms_does(dtype, n):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 3, 40)).astype(dtype)
    X[rng.random(X.shape) < 0.5] = 0
    theta = np.zeros(40)
    theta[[3, 17, 18]] = 1.0, -2.0, 0.5
    words = np.random.default_rng(0).integers(0, 2**64, n, np.uint64)
    expected = kernels.select_arms(X, theta, np.random.default_rng(0))
    flat, sparse = X.reshape(-1, 40), sp.csr_array(X.reshape(-1, 40))
    parts = (sparse.indptr, sparse.indices, sparse.data)
    for stored in (np.float32, np.float64):
        out, again = np.full((n + 2, 40), 9, stored), np.full((n + 2, 40), 9, stored)
        chosen, _ = estimate(theta).choose_dense(flat, 3, words, None, out, 1)
        np.testing.assert_array_equal(chosen, expected)
        np.testing.assert_array_equal(out[1:-1], X[np.arange(n), chosen].astype(stored))
        assert (out[[0, -1]] == 9).all()
        np.testing.assert_array_equal(
            estimate(theta).choose_csr(*parts, 3, words, None, again, 1)[0], expected
        )
        np.testing.assert_array_equal(out, again)
        for one, _, lengths, columns, values in (
            estimate(theta).choose_dense_to_csr(flat, 3, words, None, stored is np.float64),
            estimate(theta).choose_csr_to_csr(*parts, 3, words, None, stored is np.float64),
        ):
            np.testing.assert_array_equal(one, expected)
            back = sp.csr_array((values, columns, np.append(0, np.cumsum(lengths))), shape=(n, 40))
            np.testing.assert_array_equal(back.toarray(), out[1:-1])
            assert values.dtype == stored


def test_one_round_is_a_batch_of_one():
    X, theta, out = (
        np.random.default_rng(0).standard_normal((4, 6)),
        np.eye(6)[2],
        np.zeros((1, 6), np.float32),
    )
    arm, tied = estimate(theta).choose_one(X, 5, True, out, 0)
    assert tied == 1 and arm == np.argmax(X[:, 2]) and (out[0] == X[arm].astype(np.float32)).all()
    assert estimate(theta).choose_one(X, 5, False, out, 0) == (arm, 1) and not out.any()


def test_many_threads_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3 * 5000, 64), dtype=np.float32)  # enough values for several threads
    X[rng.integers(0, len(X), 50), rng.integers(0, 64, 50)] = np.nan
    theta, words = np.eye(64)[5], rng.integers(0, 2**64, 5000, np.uint64)
    out = np.empty((5000, 64), np.float32)
    chosen, _ = estimate(theta).choose_dense(X, 3, words, None, out, 0)
    assert (chosen < 0).any()
    for i in [*rng.integers(0, 5000, 200).tolist(), 0, 2499, 2500, 4999]:
        one = np.empty((1, 64), np.float32)
        assert estimate(theta).choose_one(X[3 * i : 3 * i + 3], int(words[i]), True, one, 0)[0] == chosen[i]
        np.testing.assert_array_equal(one[0], out[i])


def test_bad_estimates_are_refused():
    for indices, values, dim in (
        ([1, 1], [1.0, 2.0], 4),
        ([4], [1.0], 4),
        ([-1], [1.0], 4),
        ([0], [np.nan], 4),
    ):
        with pytest.raises(ValueError, match="theta"):
            _native.Estimate(np.array(indices), np.array(values), dim)
    with pytest.raises(ValueError, match="one value for each index"):
        _native.Estimate(np.array([0, 1]), np.array([1.0]), 4)


GOOD = [
    np.ones((4, 3)), np.ones((4, 3), np.float32), np.ones((2, 3), np.float32), np.full((2, 3), np.nan),
    np.zeros(2, np.uint64), np.ones(2, np.uint8), np.array([0, 1, 2, 2, 3]), np.array([0, 2, 1]), np.array([0, 5, -1]),
    np.ones(3), np.ones(3, np.float32), np.array([0, 1], np.int32), np.ones((0, 3)), None, True,
]  # fmt: skip
METHODS = ["choose_one", "choose_dense", "choose_csr", "choose_dense_to_csr", "choose_csr_to_csr"]


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
def test_no_arguments_panic(method, data):
    argument = st.sampled_from(GOOD) | st.integers(0, 5) | st.integers() | st.text(max_size=2)
    arguments = data.draw(st.lists(argument, min_size=4, max_size=8))
    arguments = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    try:
        getattr(estimate([0.0, 1.0, 0.0]), method)(*arguments)
    except (ValueError, TypeError, OverflowError) as error:
        assert str(error)


@pytest.mark.parametrize("at", [1, 2**63, 2**64 - 1])
def test_rows_outside_the_target_are_refused(at):
    X, words, out = np.ones((4, 3)), np.zeros(2, np.uint64), np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match="out must have one row for each round"):
        estimate([0.0, 1.0, 0.0]).choose_dense(X, 2, words, None, out, at)
