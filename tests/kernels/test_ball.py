"""Rows cut to an l2 ball: second moments, gradients of arms, sizes. Exact sums, tight sensitivity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fliphat import _native, kernels, reference
from fliphat.kernels import _fits as fit_kernels
from fliphat.reference import _fits as fit_twins
from matrices import csr, problem

MOST = 2**15 - 1


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 60),
    d=st.integers(1, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
    density=st.sampled_from([0.05, 0.3, 1.0]),
    radius=st.sampled_from([1, 100, MOST]),
    scale=st.sampled_from([1e-3, 30.0, 4000.0, 1e12]),
    one=st.sampled_from([None, 0.0, 200.0, -3e4]),
    missing=st.booleans(),
    subset=st.booleans(),
)
def test_bit_for_bit_equal_to_the_twins(seed, n, d, dtype, density, radius, scale, one, missing, subset):
    X, residuals, _ = problem(seed, n, d, dtype, density)
    rng = np.random.default_rng(seed)
    columns = rng.permutation(d)[: rng.integers(1, d + 1)] if subset else None
    scales = scale * rng.uniform(0.5, 2.0, d if columns is None else len(columns))
    present = rng.random(n) < 0.7 if missing else None
    arms = rng.integers(0, 3, n)
    options = {"columns": columns, "radius": radius, "scale": scales, "one": one, "present": present}
    moments = reference.second_moments(X, **options)
    gradient = fit_twins.ball_gradient(X, residuals, arms, count=3, **options)
    for rows in (X, csr(X), csr(X, np.int64)):
        np.testing.assert_array_equal(kernels.second_moments(rows, **options), moments)
        np.testing.assert_array_equal(
            fit_kernels.ball_gradient(rows, residuals, arms, count=3, **options), gradient
        )
    np.testing.assert_array_equal(reference.second_moments(csr(X), **options), moments)
    assert (moments == moments.T).all()
    assert np.trace(moments) <= n * radius**2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [0.05, 1.0])
def test_no_choice_of_how_changes_a_bit(dtype, density):
    X, residuals, _ = problem(1, 1501, 37, dtype, density)
    arms = np.arange(1501) % 4
    columns, scales = np.arange(37), np.full(37, 6000.0)
    ball = (columns, scales, 500.0, MOST)
    moments = _native.second_moments(X, *ball, threads=1)
    gradient = _native.ball_gradient(X, residuals, arms, 4, *ball, threads=1)
    sparse = csr(X)
    arrays = sparse.indptr, sparse.indices, sparse.data, 37
    for level in _native.simd_levels():
        for threads in (1, 2, 5):
            for block in (None, 1, 7, 130):
                how = {"threads": threads, "block_rows": block, "simd": level}
                for rows in (X, arrays):
                    np.testing.assert_array_equal(_native.second_moments(rows, *ball, **how), moments)
                    np.testing.assert_array_equal(
                        _native.ball_gradient(rows, residuals, arms, 4, *ball, **how), gradient
                    )
    order = np.random.default_rng(0).permutation(1501)
    np.testing.assert_array_equal(_native.second_moments(X[order], *ball), moments)
    np.testing.assert_array_equal(
        _native.ball_gradient(X[order], residuals[order], arms[order], 4, *ball), gradient
    )


def test_a_float_sum_would_fail_that_test():
    # The control: plain products do depend on the order of rows.
    X = problem(1, 1501, 37, np.float64)[0]
    order = np.random.default_rng(0).permutation(1501)
    plain, other = (np.cumsum(x[:, :, None] * x[:, None], axis=0)[-1] for x in (X, X[order]))
    assert (plain != other).any()


def test_more_rows_than_narrow_sums_can_hold():
    n = 70_000
    X = np.tile([1e9, 1e9, 1e9], (n, 1))  # each row reaches the surface
    q = reference.second_moments(X[:1], radius=MOST, scale=1.0)
    assert q[0, 0] > 0.33 * MOST**2
    np.testing.assert_array_equal(kernels.second_moments(X, radius=MOST, scale=1.0), n * q)
    alone = kernels.second_moments(X[:, :1].copy(), radius=MOST, scale=1.0)
    assert alone.tolist() == [[n * MOST**2]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [25, 127, 128, 129])
def test_many_columns_equal_the_twin_at_every_level(d, dtype):
    """Ragged panels, more rows than a batch, rows that fill it early, and rows that count as zeros."""
    X, _, _ = problem(d, 700, d, dtype)
    X[::5, 3] *= 1e6  # cut to one full integer: two of them fill 32 bits
    X[7], X[11, 0], X[13, 1] = 0.0, np.nan, np.inf
    X[20:24, 4:] = 0.0
    columns, scales = np.arange(d), np.full(d, MOST / np.sqrt(d))
    for radius in (MOST, 300):
        expected = reference.second_moments(X, radius=radius, scale=scales, one=77.0)
        for level in _native.simd_levels():
            for how in ({"threads": 1}, {"threads": 2, "block_rows": 90}, {}):
                found = _native.second_moments(X, columns, scales, 77.0, radius, simd=level, **how)
                np.testing.assert_array_equal(found.reshape(d + 1, d + 1), expected)


def extreme_rows(rng, d):
    """Rows that try to leave the ball: huge, tiny, equal, on an axis, at integers, not finite."""
    row = rng.standard_normal(d) * 10.0 ** rng.integers(-3, 100)
    kind = rng.integers(0, 6)
    if kind == 1:
        row = np.where(np.arange(d) == rng.integers(d), row, 0.0)
    elif kind == 2:
        row[:] = row[0]
    elif kind == 3:
        row = rng.integers(-2, 3, d) * float(rng.integers(1, 40_000))
    elif kind == 4:
        row[rng.integers(d)] = rng.choice([np.nan, np.inf, -np.inf, 1e308])
    elif kind == 5:
        row = row / np.linalg.norm(row) * rng.choice([99.0, 100.0, 101.0, 1e5])
    return row


def one_row_moves(statistic, d, pairs=3000):
    """The largest distance between the statistics of two single rows, searched over extreme ones."""
    rng = np.random.default_rng(2)
    values = np.array([statistic(extreme_rows(rng, d)[None]).ravel() for _ in range(400)], float)
    first, second = rng.integers(0, len(values), (2, pairs))
    return np.linalg.norm(values[first] - values[second], axis=1).max()


@pytest.mark.parametrize("d", [1, 2, 5])
def test_no_neighbours_move_a_statistic_beyond_its_sensitivity_and_some_reach_it(d):
    radius = 100
    moments = one_row_moves(lambda x: kernels.second_moments(x, radius=radius, scale=1.0), d)
    gradient = one_row_moves(
        lambda x: fit_kernels.ball_gradient(x, [1.0], [0], count=1, radius=radius, scale=1.0), d
    )
    assert moments <= np.sqrt(2) * radius**2
    assert gradient <= 2 * radius
    # Two rows reach each bound: orthogonal ones the moments', opposite ones the gradient's.
    e = np.eye(max(d, 2)) * 1e6
    a, b = (kernels.second_moments(x[None], radius=radius, scale=1.0) for x in e[:2])
    assert np.linalg.norm(a - b) == pytest.approx(np.sqrt(2) * radius**2, rel=1e-15)
    a, b = (
        fit_kernels.ball_gradient(e[:1], [r], [0], count=1, radius=radius, scale=1.0) for r in (1.0, -1.0)
    )
    assert np.linalg.norm(a - b) == 2 * radius


def test_without_the_cut_neighbours_are_found_that_move_more():
    # The control: plain truncation of each number, the ball forgotten.
    def uncut(x):
        q = np.trunc(np.clip(np.nan_to_num(x), -100, 100))
        return q.T @ q

    assert one_row_moves(uncut, 5) > np.sqrt(2) * 100**2


def test_integers_are_checked_after_rounding(monkeypatch):
    # Rows at 100 (3, 4)/5 and multiples: floats may round a coordinate up, never out of the ball.
    rng = np.random.default_rng(3)
    X = np.array([[3.0, 4.0], [4.0, 3.0], [-3.0, 4.0]])[rng.integers(0, 3, 2000)] * rng.uniform(
        20, 1e9, (2000, 1)
    )
    for row in X:
        moments = kernels.second_moments(row[None], radius=100, scale=1.0)
        assert np.trace(moments) <= 100**2
        assert np.trace(moments) >= 98**2


def test_bad_values_make_a_zero_row_and_touch_no_other():
    X = problem(5, 6, 3, np.float64)[0]
    for bad in (np.nan, np.inf, -np.inf, 1e200):
        spoiled = X.copy()
        spoiled[2, 1] = bad
        without = np.delete(X, 2, axis=0)
        for rows in (spoiled, csr(spoiled)):
            for one in (None, 7.0):
                result = kernels.second_moments(rows, radius=500, scale=100.0, one=one)
                expected = kernels.second_moments(without, radius=500, scale=100.0, one=one)
                np.testing.assert_array_equal(result, expected)
        # In a column that is not asked for it is not read.
        np.testing.assert_array_equal(
            kernels.second_moments(spoiled, [2, 0], radius=500, scale=100.0),
            kernels.second_moments(X, [2, 0], radius=500, scale=100.0),
        )
    residuals = np.array([1.0, np.nan, np.inf, -np.inf, 1e300, 2.0])
    sums = fit_kernels.ball_gradient(X, residuals, np.arange(6), count=6, radius=500, scale=1e10)
    assert (np.abs(sums).sum(axis=1) > 0).tolist() == [True, False, False, False, False, True]


X = np.ones((4, 3))
BALL = {"radius": 10, "scale": 1.0}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"radius": 0}, ValueError, "radius must be an integer from 1 to 32767, got 0"),
        ({"radius": 2**15}, ValueError, "radius must be an integer from 1 to 32767, got 32768"),
        ({"radius": 1.5}, TypeError, "radius must be an integer"),
        ({"scale": 0.0}, ValueError, "scale must be finite and above 0"),
        ({"scale": [1.0, np.nan, 1.0]}, ValueError, "scale must be finite and above 0"),
        ({"scale": [1.0, 1.0]}, ValueError, r"scale must have shape \(3,\)"),
        ({"columns": [0, 0]}, ValueError, "columns must be different from each other"),
        ({"columns": [0, 3]}, ValueError, "columns must be different from each other and columns of X"),
        ({"columns": [-1]}, ValueError, "columns must be different from each other and columns of X"),
        ({"columns": [0.5]}, TypeError, "columns must be an array of integers"),
        ({"columns": [[0]]}, ValueError, "columns must have one dimension"),
        ({"columns": []}, ValueError, "columns must not be empty"),
        ({"one": np.nan}, ValueError, "one must be"),
        ({"present": np.ones(3, bool)}, ValueError, r"present must have shape \(4,\)"),
        ({"threads": 0}, ValueError, "threads must be an integer from 1"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        kernels.second_moments(X, **BALL | arguments)
    with pytest.raises(error, match=message):
        fit_kernels.ball_gradient(X, np.ones(4), np.zeros(4, int), count=1, **BALL | arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"arms": [0, 1, 2, 1]}, ValueError, "arms must be from 0"),
        ({"arms": [0, -1, 0, 1]}, ValueError, "arms must be from 0"),
        ({"arms": [0, 1]}, ValueError, r"arms must have shape \(4,\)"),
        ({"arms": [0.0] * 4}, TypeError, "arms must be an array of integers"),
        ({"residuals": [1.0]}, ValueError, r"residuals must have shape \(4,\)"),
        ({"count": 0}, ValueError, "count must be an integer from 1"),
    ],
)
def test_bad_arms_and_residuals(arguments, error, message):
    given_ = {"residuals": np.ones(4), "arms": [0, 1, 0, 1], "count": 2} | BALL
    with pytest.raises(error, match=message):
        fit_kernels.ball_gradient(X, **given_ | arguments)


def test_rows_of_the_wrong_kind():
    with pytest.raises(TypeError, match="X must be float32 or float64"):
        kernels.second_moments(np.ones((2, 2), int), **BALL)
    with pytest.raises(ValueError, match="X must be aligned and in C order"):
        kernels.second_moments(np.ones((4, 3)).T, **BALL)
    repeated = csr(np.ones((2, 3)))
    repeated.indices[:] = 0
    with pytest.raises(ValueError, match="strictly increasing"):
        kernels.second_moments(repeated, **BALL)
    # Only a constant: the number of rows that are there.
    assert kernels.second_moments(X, [], radius=10, scale=np.empty(0), one=3.0).tolist() == [[36]]
