"""Rows relative to what public columns say of them: twins, same bits everywhere, and what one row can move."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fliphat import _native
from fliphat.kernels import _fits as fit_kernels
from fliphat.reference import _fits as fit_twins
from matrices import csr, problem

LIMIT = 2**15
EXTREMES = [0.0, 1.0, -3e-300, 1e300, -1e308, np.inf, -np.inf, np.nan]


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 50),
    d=st.integers(2, 30),
    dtype=st.sampled_from([np.float32, np.float64]),
    density=st.sampled_from([0.1, 0.5, 1.0]),
    clip=st.sampled_from([1e-6, 0.3, 1e3]),
    size=st.sampled_from([1e-30, 1.0, 1e30]),
    shifted=st.booleans(),
    units=st.booleans(),
    missing=st.booleans(),
    extreme=st.booleans(),
)
def test_bit_for_bit_equal_to_the_twins(
    seed, n, d, dtype, density, clip, size, shifted, units, missing, extreme
):
    X, residuals, _ = problem(seed, n, d, dtype, density)
    X *= dtype(size)
    rng = np.random.default_rng(seed)
    shifts = rng.standard_normal(n) * size if shifted else None
    if extreme:
        residuals[rng.integers(n)] = rng.choice(EXTREMES)
        X[rng.integers(n), rng.integers(d)] = np.finfo(dtype).max
        if shifted:
            shifts[rng.integers(n)] = rng.choice(EXTREMES)
    sizes = 10.0 ** rng.integers(-40 if extreme else -3, 40 if extreme else 4, d) if units else None
    present = rng.random(n) < 0.7 if missing else None
    columns = rng.permutation(d)[: rng.integers(1, d)]
    chosen = None if sizes is None else sizes[columns]
    gradient = fit_twins.shifted_gradient(X, residuals, clip, shifts=shifts, units=sizes, present=present)
    numbers = fit_twins.row_numbers(X, size, 3.5, units=sizes, present=present)
    support = np.full((n, len(columns) + 2), 7.0)
    fit_twins.gather_columns(X, columns, support, first=1, units=chosen)
    for rows in (X, csr(X), csr(X, np.int64)):
        found = fit_kernels.shifted_gradient(
            rows, residuals, clip, shifts=shifts, units=sizes, present=present
        )
        np.testing.assert_array_equal(found[0], gradient[0])
        assert found[1] == gradient[1]
        assert fit_kernels.row_numbers(rows, size, 3.5, units=sizes, present=present) == numbers
    np.testing.assert_array_equal(
        fit_twins.shifted_gradient(csr(X), residuals, clip, shifts=shifts, units=sizes, present=present)[0],
        gradient[0],
    )
    m = support.shape[1]
    k = len(columns)
    for loss, shift in (("squared", None), ("logistic", rng.standard_normal(1 + k))):
        public = {"one": size, "shift": shift, "units": sizes, "loss": loss, "present": present}
        public["reward_range"] = (-1.0, 1.0) if loss == "logistic" else None
        arguments = residuals, columns, rng.standard_normal(1 + k), clip
        twins = np.full_like(support, 7.0)
        expected = fit_twins.relative_gradient(X, *arguments, twins, **public)
        for rows in (X, csr(X)):
            out = np.full_like(support, 7.0)
            found = fit_kernels.relative_gradient(rows, *arguments, out, **public)
            np.testing.assert_array_equal(out, twins)
            for one, two in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, two)
    whiten = rng.standard_normal((m, m)) / size
    known = np.ascontiguousarray(support[:, : m - k])
    measure = {"whiten": whiten, "clip": clip, "radius": 4095, "scale": 700 / size, "cap": clip}
    measure |= {"units": chosen, "present": present}
    expected = fit_twins.settled_sums(X, columns, known, residuals, **measure)
    for rows in (X, csr(X)):
        found = fit_kernels.settled_sums(rows, columns, known, residuals, **measure)
        for one, two in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_choice_of_how_changes_a_bit(dtype):
    X, residuals, _ = problem(1, 1501, 37, dtype, 0.4)
    shifts, units = residuals[::-1].copy(), np.linspace(0.5, 2.0, 37)
    sparse = csr(X)
    arrays = sparse.indptr, sparse.indices, sparse.data, 37
    support, whiten = X[:, :9].astype(np.float64), np.eye(9) + 0.1
    gradient = _native.shifted_gradient(X, residuals, 0.4, shifts, units, threads=1)
    numbers = _native.row_numbers(X, 1.0, 3.5, units, threads=1)
    public = (
        np.array([8, 3]),
        np.array([0.1, 1.0, -1.0]),
        np.array([0.2, 0.3, 0.1]),
        1.0,
        units,
        "squared",
        None,
    )

    def relative(rows, **how):
        out, left = np.zeros((1501, 4)), np.zeros(1501)
        sums = _native.relative_gradient(rows, residuals, *public, 0.4, out, left, **how)
        return np.concatenate([sums, out.ravel(), left])

    def settled(rows, **how):
        sums = _native.settled_sums(
            rows, np.array([9, 20]), support[:, :7].copy(), residuals, whiten, 0.4, 4095, 1500.0, 0.7, **how
        )
        return np.concatenate([np.ravel(part) for part in sums])

    everything, together = relative(X, threads=1), settled(X, threads=1)
    for level in _native.simd_levels():
        for threads in (1, 2, 5):
            for block in (None, 1, 7, 130):
                how = {"threads": threads, "block_rows": block}
                for rows in (X, arrays):
                    found = _native.shifted_gradient(rows, residuals, 0.4, shifts, units, simd=level, **how)
                    np.testing.assert_array_equal(found, gradient)
                    assert _native.row_numbers(rows, 1.0, 3.5, units, **how) == numbers
                    out = np.zeros((1501, 2))
                    _native.gather_columns(rows, np.array([8, 3]), None, out, 0, **how)
                    np.testing.assert_array_equal(out, X[:, [8, 3]])
                for rows in (X, arrays):
                    np.testing.assert_array_equal(relative(rows, simd=level, **how), everything)
                    np.testing.assert_array_equal(settled(rows, simd=level, **how), together)
    order = np.random.default_rng(0).permutation(1501)
    found = _native.shifted_gradient(X[order], residuals[order], 0.4, shifts[order], units)
    np.testing.assert_array_equal(found, gradient)


def test_a_float_sum_would_fail_that_test():
    # The control: plain products do depend on the order of rows.
    X, residuals, _ = problem(1, 1501, 37, np.float64)
    order = np.random.default_rng(0).permutation(1501)
    plain = np.cumsum(X * residuals[:, None], axis=0)[-1]
    other = np.cumsum(X[order] * residuals[order, None], axis=0)[-1]
    assert (plain != other).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_row_gives_more_than_the_limit_and_some_give_it(dtype):
    largest = float(np.finfo(dtype).max)
    reached = 0
    for residual in EXTREMES:
        for shift in EXTREMES:
            for x in (0.0, 1.0, largest, -largest, 1e-45):
                for unit in (1.0, 1e-300, 1e300):
                    row = np.array([[x, 0.0]], dtype)
                    options = {"shifts": [shift], "units": [unit, 1.0]}
                    sums = fit_kernels.shifted_gradient(row, [residual], 0.5, **options)[0]
                    assert np.abs(sums).max() <= LIMIT
                    np.testing.assert_array_equal(
                        sums, fit_kernels.shifted_gradient(csr(row), [residual], 0.5, **options)[0]
                    )
                    reached = max(reached, np.abs(sums).max())
                    logs, ratios, squares = fit_kernels.row_numbers(row, 1.0, 3.5, units=[unit, 1.0])
                    assert max(abs(logs), abs(ratios)) <= LIMIT
                    assert 0 <= squares <= LIMIT
            measure = {"whiten": np.eye(2) + 1, "clip": 0.5, "radius": 100, "scale": 1.0, "cap": 0.5}
            values = np.array([[shift, residual]])
            sums, _, size = fit_kernels.settled_sums(values, [], values, [residual], **measure)
            assert np.abs(sums).max() <= LIMIT and 0 <= size <= LIMIT
    assert reached == LIMIT


def test_more_rows_than_narrow_sums_can_hold():
    n = 70_000
    X = np.full((n, 2), 1e30, np.float32)
    for rows in (X, csr(X)):
        assert fit_kernels.shifted_gradient(rows, np.ones(n), 1.0)[0].tolist() == [n * LIMIT] * 2
        far = fit_kernels.shifted_gradient(rows, np.ones(n), 1.0, shifts=np.full(n, 5e30))[0]
        # A shift is cut at 1e30.
        assert far.tolist() == [0, 0]
    zeros = csr(np.where(np.arange(2) == 0, X, 0).astype(np.float32))
    found = fit_kernels.shifted_gradient(zeros, np.ones(n), 1.0, shifts=np.full(n, 1.0))[0]
    assert found.tolist() == [n * LIMIT, -n * LIMIT]


def test_a_row_without_a_reward_is_not_read():
    X = np.array([[1.0, 2.0], [np.nan, np.inf]])
    present = np.array([True, False])
    assert fit_kernels.shifted_gradient(X, [1.0, 1.0], 4.0, present=present)[0].tolist() == [8192, 16384]
    assert fit_kernels.row_numbers(X, 1.0, 3.5, present=present) == fit_kernels.row_numbers(X[:1], 1.0, 3.5)
    assert fit_kernels.row_numbers(X[1:], 1.0, 3.5) == (0, 0, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, r: fit_kernels.shifted_gradient(X * np.inf, r, 1.0), "X must be finite"),
        (lambda X, r: fit_kernels.shifted_gradient(X, r[:1], 1.0), "residuals must have shape"),
        (lambda X, r: fit_kernels.shifted_gradient(X, r, 0.0), "clip must be"),
        (
            lambda X, r: fit_kernels.shifted_gradient(X, r, 1.0, units=[1.0, 0.0]),
            "units must be finite and above 0",
        ),
        (lambda X, r: fit_kernels.shifted_gradient(X, r, 1.0, shifts=[1.0]), "shifts must have shape"),
        (
            lambda X, r: fit_kernels.settled_sums(
                X, [], X, r, whiten=np.eye(3), clip=1.0, radius=9, scale=1.0, cap=1.0
            ),
            "whiten must have shape",
        ),
        (lambda X, r: fit_kernels.row_numbers(X, 0.0, 1.0), "size must be"),
        (
            lambda X, r: fit_kernels.relative_gradient(X, r, [2], r, 1.0, np.zeros((2, 2))),
            "columns must be different",
        ),
        (
            lambda X, r: fit_kernels.relative_gradient(X, r, [0], r, 1.0, np.zeros((3, 2))),
            "out must have 2 rows",
        ),
        (
            lambda X, r: fit_kernels.relative_gradient(X, r, [0], [1.0], 1.0, np.zeros((2, 2))),
            "weights must have",
        ),
        (
            lambda X, r: fit_kernels.relative_gradient(X, r, [0], r, 1.0, np.zeros((2, 1))),
            "out must have one row",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=message):
        call(np.array([[1.0, 2.0], [3.0, 4.0]]), [1.0, 1.0])
