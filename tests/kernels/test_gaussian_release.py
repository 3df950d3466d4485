"""A vector of integers released with rounded Gaussian noise."""

import numpy as np
import pytest

from exactness import ALPHA, RoundedGaussian, goodness
from fliphat import _native, kernels, reference


def test_every_coordinate_has_its_own_scale():
    sigmas = np.repeat([1, 50, 2**30], 20_000)
    values = np.repeat([10, -7, 2**40], 20_000)
    released = values.astype(np.int64)
    _native.gaussian_release(released, sigmas.astype(np.uint64), noise=_native.SeededNoise(3, 0))
    for start, sigma in ((0, 1), (20_000, 50), (40_000, 2**30)):
        part = slice(start, start + 20_000)
        assert goodness(released[part] - values[part], RoundedGaussian(sigma)) > ALPHA
        assert goodness(released[part] - values[part], RoundedGaussian(2 * sigma)) < ALPHA  # control


def test_the_kernel_and_its_twin_follow_the_same_law():
    values = np.zeros(50_000, np.int64)
    for draws in (
        kernels.gaussian_release(values, 40),
        reference.gaussian_release(values, 40, np.random.default_rng(1)),
    ):
        assert goodness(draws, RoundedGaussian(40)) > ALPHA


def test_noise_is_fresh_and_values_are_left_alone():
    values = np.arange(100)
    first, second = kernels.gaussian_release(values, 10**6), kernels.gaussian_release(values, 10**6)
    assert (first != second).any() and (values == np.arange(100)).all()
    assert kernels.gaussian_release(np.empty(0, int), np.empty(0, int)).shape == (0,)


def test_releases_are_clamped():
    values = np.full(1000, 2**62 - 1)
    released = kernels.gaussian_release(values, 2**40)
    assert released.max() == 2**62 - 1 and released.min() < 2**62 - 1


@pytest.mark.parametrize(
    ("values", "sigmas", "error", "message"),
    [
        ([1.5], 3, TypeError, "values must be a one-dimensional array of signed integers"),
        ([[1]], 3, TypeError, "values must be a one-dimensional"),
        ([1], 0, ValueError, "sigmas must be an integer from 1 to 1099511627776, got 0"),
        ([1], 1.5, TypeError, "sigmas must be integers, got float64"),
        ([1, 2], [1], ValueError, r"sigmas must have the shape of values, \(2,\), got \(1,\)"),
        (
            [1, 2],
            [1, 2**40 + 1],
            ValueError,
            "sigmas must be integers from 1 to 1099511627776, got 1 to 1099511627777",
        ),
        ([2**62], 1, ValueError, r"values must lie strictly between -2\*\*62 and 2\*\*62"),
    ],
)
def test_bad_input(values, sigmas, error, message):
    with pytest.raises(error, match=message):
        kernels.gaussian_release(values, sigmas)
