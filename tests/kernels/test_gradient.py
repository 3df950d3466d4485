import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from fliphat import _native, kernels, reference
from matrices import csr, problem

SENSITIVITY = 2**16


def sums(*args, **kwargs):
    return kernels.clipped_gradient(*args, **kwargs)[0]


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 60),
    d=st.integers(1, 70),
    dtype=st.sampled_from([np.float32, np.float64]),
    density=st.sampled_from([0.0, 0.1, 1.0]),
    support=st.integers(0, 70),
    loss=st.sampled_from(["squared", "logistic"]),
    clip=st.sampled_from([1e-30, 0.3, 2.0, 1e30]),
    reward_clip=st.sampled_from([None, 0.5]),
    missing=st.booleans(),
)
def test_bit_for_bit_equal_to_the_twins(
    seed, n, d, dtype, density, support, loss, clip, reward_clip, missing
):
    X, y, theta = problem(seed, n, d, dtype, density, support, labels=loss == "logistic")
    options = {"loss": loss, "reward_clip": reward_clip}
    if missing:
        options["present"] = np.random.default_rng(seed).random(n) < 0.7
    expected, step = reference.clipped_gradient(X, y, theta, clip, **options)
    result, kernel_step = kernels.clipped_gradient(X, y, theta, clip, **options)
    assert kernel_step == step
    np.testing.assert_array_equal(result, expected)
    for index in (np.int32, np.int64):
        np.testing.assert_array_equal(sums(csr(X, index), y, theta, clip, **options), expected)
    np.testing.assert_array_equal(reference.clipped_gradient(csr(X), y, theta, clip, **options)[0], expected)
    if not missing:
        blocked, _ = reference.clipped_gradient_blocked(X, y, theta, clip, **options)
        np.testing.assert_array_equal(blocked, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_choice_of_how_changes_a_bit(dtype, loss):
    X, y, theta = problem(1, 3001, 133, dtype, labels=loss == "logistic")
    expected = sums(X, y, theta, 2.0, loss=loss, threads=1)
    sparse = csr(X)
    arrays = sparse.indptr, sparse.indices, sparse.data, X.shape[1]
    for level in _native.simd_levels():
        for threads in (1, 2, 7):
            for block in (None, 1, 7, 8, 1000):
                tail = (y, theta, 2.0, np.inf, loss, None, threads, block, level)
                np.testing.assert_array_equal(_native.clipped_sums(X, *tail), expected)
                np.testing.assert_array_equal(_native.clipped_sums(arrays, *tail), expected)
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_array_equal(sums(X[order], y[order], theta, 2.0, loss=loss), expected)


def test_a_float_sum_would_fail_that_test():
    # The control: the same rows added in float32 do depend on their order.
    X, y, theta = problem(1, 3001, 133)
    gradients = X * (X @ theta.astype(np.float32) - y.astype(np.float32))[:, None]
    order = np.random.default_rng(0).permutation(len(y))
    assert (gradients.cumsum(axis=0)[-1] != gradients[order].cumsum(axis=0)[-1]).any()


def test_more_rows_than_a_narrow_sum_can_hold():
    # Each row contributes the full 2**15: a 32-bit sum overflows at 65 536 rows.
    n = 2**17 + 5
    for X in (np.ones((n, 3), np.float32), np.ones((n, 3))):
        for matrix in (X, csr(X)):
            result = sums(matrix, np.full(n, -9.0), np.zeros(3), 1.0, threads=1)
            np.testing.assert_array_equal(result, np.full(3, n * 2**15))


EXTREME = [0.0, -0.0, 1.0, -1.0, 1e-45, 1e38, -1e38, 3e38, -3e38]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@given(data=st.data())
def test_replacing_one_row_moves_no_sum_by_more_than_the_sensitivity(dtype, loss, data):
    # Rows whose products are infinite or NaN (0 * inf, inf - inf) included.
    extreme = EXTREME if dtype == np.float32 else [*EXTREME, 1e308, -1e308]
    d = data.draw(st.integers(1, 20))
    values = st.lists(st.sampled_from(extreme), min_size=d, max_size=d)
    rewards = st.sampled_from([0.0, 1.0] if loss == "logistic" else [0.0, 1e308, -1e308, 1.0])
    X = np.array([data.draw(values) for _ in range(9)], dtype)
    y = np.array([data.draw(rewards) for _ in range(9)])
    theta = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, -1e300, 1e308]), min_size=d, max_size=d)))
    clip = data.draw(st.sampled_from([1e-290, 1e-3, 2.0, 1e290]))
    before = sums(X, y, theta, clip, loss=loss)
    np.testing.assert_array_equal(before, reference.clipped_gradient(X, y, theta, clip, loss=loss)[0])
    np.testing.assert_array_equal(before, sums(csr(X), y, theta, clip, loss=loss))
    X[3], y[3] = data.draw(values), data.draw(rewards)
    after = sums(X, y, theta, clip, loss=loss)
    assert np.abs(after - before).max() <= SENSITIVITY


def test_the_sensitivity_is_reached():
    # The bound is tight: half of it would be wrong, and the test above would notice.
    X, y = np.ones((2, 1)), np.array([1e9, 1e9])
    low = sums(X, y, [0.0], 1.0)
    y[0] = -1e9
    assert (sums(X, y, [0.0], 1.0) - low == SENSITIVITY).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_products_count_as_zero_and_infinite_ones_are_clipped(dtype):
    # The residual overflows the rows' dtype or float64 itself: factor -inf, so 0 * -inf is NaN.
    X = np.array([[0.0, 1.0, -1.0]], dtype)
    for matrix in (X, csr(X), sp.csr_array((X[0], [0, 1, 2], [0, 3]), shape=(1, 3))):
        result = sums(matrix, [1e308], np.zeros(3), 1e-290)
        np.testing.assert_array_equal(result, [0, -(2**15), 2**15])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_nan_residual_makes_a_zero_row(dtype):
    # x @ theta is inf - inf.
    big = np.finfo(dtype).max
    X = np.array([[big, -big, 1.0]], dtype)
    theta = np.array([1e300, 1e300, 0.0]) if dtype == np.float64 else np.array([1e308, 1e308, 0.0])
    np.testing.assert_array_equal(sums(X, [0.0], theta, 1.0), [0, 0, 0])
    np.testing.assert_array_equal(sums(csr(X), [0.0], theta, 1.0), [0, 0, 0])


def test_missing_rows_are_zero_rows_and_are_not_read():
    X, y, theta = problem(3, 40, 12)
    present = np.arange(40) % 3 != 0
    zeroed = X * present[:, None]
    expected = sums(zeroed, y, theta, 2.0)
    X[~present], y[~present] = np.nan, np.nan
    np.testing.assert_array_equal(sums(X, y, theta, 2.0, present=present), expected)
    np.testing.assert_array_equal(sums(X, y, theta, 2.0, present=np.zeros(40, bool)), np.zeros(12))


@pytest.mark.parametrize("place", [(0, 0), (17, 5), (39, 11)])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_are_not_finite_are_found_wherever_they_are(place, bad, sparse, dtype):
    X, y, theta = problem(3, 40, 12, dtype)
    theta[place[1]] = 0
    X[place] = bad
    with pytest.raises(ValueError, match=r"^X must be finite$"):
        sums(csr(X) if sparse else X, y, theta, 2.0)


def test_rewards_that_are_not_finite_are_found():
    X, y, theta = problem(3, 40, 12)
    y[7] = np.nan
    with pytest.raises(ValueError, match=r"^y must be finite$"):
        sums(X, y, theta, 2.0)


X0, Y0, THETA0 = problem(0, 4, 3)
SECRET = 123456.5


def broken(**parts):
    """Return a CSR matrix with some of its arrays replaced, which SciPy's constructor would refuse."""
    matrix = csr(X0)
    for name, value in parts.items():
        setattr(matrix, name, np.asarray(value, getattr(matrix, name).dtype))
    return matrix


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": X0.astype(int)}, TypeError, "X must be float32 or float64 in native byte order, got int64"),
        ({"X": X0.astype(">f4")}, TypeError, "X must be float32 or float64 in native byte order, got >f4"),
        ({"X": X0.astype(np.float16)}, TypeError, "X must be float32 or float64"),
        ({"X": [["a"]]}, TypeError, "X must be float32 or float64"),
        ({"X": X0[0]}, ValueError, r"X must have 2 dimensions, got shape \(3,\)"),
        ({"X": np.asfortranarray(X0)}, ValueError, "X must be aligned and in C order"),
        ({"X": X0[:, ::2]}, ValueError, "X must be aligned and in C order"),
        ({"X": X0[::-1]}, ValueError, "X must be aligned and in C order"),
        ({"X": np.ma.masked_array(X0)}, TypeError, "X must not be a masked array"),
        (
            {"X": np.empty((0, 3)), "y": []},
            ValueError,
            r"at least one row and one column, got shape \(0, 3\)",
        ),
        ({"X": np.empty((4, 0)), "theta": []}, ValueError, r"at least one row and one column"),
        ({"X": sp.csc_array(X0)}, TypeError, "X must be a CSR matrix, got format 'csc'"),
        ({"X": sp.csr_array(X0.astype(int))}, TypeError, "X.data must be float32 or float64"),
        (
            {"X": broken(indices=[0, 1, 3] * 4)},
            ValueError,
            "X.indices must be in range and strictly increasing",
        ),
        ({"X": broken(indices=[0, 1, -1] * 4)}, ValueError, "X.indices must be in range and strictly"),
        ({"X": broken(indices=[-1, 1, 2] * 4)}, ValueError, "X.indices must be in range and strictly"),
        ({"X": broken(indices=[1, 0, 2] * 4)}, ValueError, "X.indices must be in range and strictly"),
        ({"X": broken(indices=[0, 1, 1] * 4)}, ValueError, "X.indices must be in range and strictly"),
        ({"X": broken(indptr=[0, 3, 2, 9, 12])}, ValueError, "X.indptr must start at 0, never decrease"),
        ({"X": broken(indptr=[1, 3, 6, 9, 12])}, ValueError, "X.indptr must start at 0"),
        ({"X": broken(indptr=[0, 3, 6, 9, 13])}, ValueError, "X.indptr must start at 0"),
        ({"X": broken(indptr=[0, 3, 6, 9])}, ValueError, "X.indptr must have one entry more than X has rows"),
        ({"X": broken(indices=[0, 1])}, ValueError, "X.indices and X.data must have the same length"),
        (
            {"y": Y0[:3]},
            ValueError,
            r"y must have shape \(4,\), one reward for each row of X, got shape \(3,\)",
        ),
        ({"y": ["1"] * 4}, TypeError, "y must hold real numbers"),
        ({"y": [SECRET, None, 1, 2]}, TypeError, "y must hold real numbers, got dtype object"),
        ({"theta": np.zeros(4)}, ValueError, r"theta must have shape \(3,\), one value for each column of X"),
        ({"theta": [np.nan, 0, 0]}, ValueError, "theta must be finite"),
        ({"clip": 0}, ValueError, "clip must be a number from 1e-290 to 1e[+]290, got 0"),
        ({"clip": -1.0}, ValueError, "clip must be a number from 1e-290 to 1e[+]290, got -1.0"),
        ({"clip": np.nan}, ValueError, "clip must be a number from 1e-290"),
        ({"clip": True}, TypeError, "clip must be a real number, got bool"),
        ({"reward_clip": 0.0}, ValueError, "reward_clip must be a finite number above 0, got 0.0"),
        ({"loss": "hinge"}, ValueError, "loss must be one of 'squared', 'logistic', got 'hinge'"),
        ({"loss": "logistic"}, ValueError, "y must be 0 or 1 for the logistic loss"),
        ({"present": np.ones(3, bool)}, ValueError, r"present must have shape \(4,\)"),
        ({"present": np.ones(4)}, TypeError, "present must be an array of bool, got dtype float64"),
        ({"threads": 0}, ValueError, "threads must be an integer from 1 to 256, got 0"),
        ({"threads": 1.5}, TypeError, "threads must be an integer, got float"),
    ],
)
def test_bad_input(change, error, message):
    arguments = {"X": X0, "y": Y0, "theta": THETA0, "clip": 1.0} | change
    with pytest.raises(error, match=message) as caught:
        kernels.clipped_gradient(**arguments)
    assert str(SECRET) not in str(caught.value)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20))
def test_sigmoid_twin_agrees_with_scipy(z):
    from scipy.special import expit

    np.testing.assert_allclose(reference.sigmoid(np.array(z)), expit(np.array(z)), rtol=1e-14, atol=1e-300)


def test_the_work_is_done_without_the_interpreter_lock():
    # If the lock were held, the other thread could not count while the kernel runs.
    import threading

    X, y, theta = problem(0, 20_000, 500)
    ticks, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            ticks[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = ticks[0]
    for _ in range(20):
        sums(X, y, theta, 2.0, threads=1)
    moved = ticks[0] - before
    stop.set()
    thread.join()
    assert moved > 1000
