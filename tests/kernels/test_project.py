import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fliphat import _native, kernels, reference

VECTORS = hnp.arrays(
    np.float64, st.integers(1, 200), elements=st.floats(-1e6, 1e6, allow_nan=False, allow_subnormal=False)
)
RADII = st.floats(1e-3, 1e6)


def close(a, b, v, radius):
    """Two ways to add may differ by a few units in the last place of the largest number involved."""
    scale = max(np.abs(v).max(), radius)
    return np.allclose(a, b, rtol=0, atol=64 * np.finfo(float).eps * scale)


@given(VECTORS, RADII)
def test_equals_both_twins(v, radius):
    projected = kernels.project_l1(v, radius)
    assert close(projected, reference.project_l1(v, radius), v, radius)
    assert close(projected, reference.project_l1_michelot(v, radius), v, radius)


@given(VECTORS, RADII)
def test_is_inside_the_ball_and_idempotent(v, radius):
    projected = kernels.project_l1(v, radius)
    assert math.fsum(np.abs(projected)) <= radius * (1 + 64 * np.finfo(float).eps)
    np.testing.assert_array_equal(kernels.project_l1(projected, radius), projected)


@given(VECTORS, RADII)
def test_no_point_of_the_ball_is_closer(v, radius):
    # The projection p is the only point with (v - p) @ (w - p) <= 0 for every w in the ball; the ball's
    # corners suffice.
    projected = kernels.project_l1(v, radius)
    gap = v - projected
    tolerance = 1e-9 * max(np.abs(v).max(), radius) ** 2 + 1e-12
    assert radius * np.abs(gap).max() - gap @ projected <= tolerance


@pytest.mark.parametrize("d", [1, 7, 64, 65, 4000, 509_256])
@pytest.mark.parametrize("radius", [1e-6, 3.0, 100.0, 1e9])
def test_same_bits_at_every_simd_level(d, radius):
    v = np.random.default_rng(d).standard_normal(d)
    expected = kernels.project_l1(v, radius)
    assert close(expected, reference.project_l1(v, radius), v, radius)
    for level in _native.simd_levels():
        np.testing.assert_array_equal(_native.project_l1(v, radius, level), expected)


@pytest.mark.parametrize(
    "v",
    [
        np.full(1000, 1.0),
        np.r_[1e9, np.full(99, 1e-9)],
        np.arange(500.0),
        -np.arange(500.0),
        np.full(3, 1e308),
    ],
)
def test_awkward_vectors(v):
    projected = kernels.project_l1(v, 1.0)
    assert np.abs(projected).sum() == pytest.approx(1.0, rel=1e-7)
    assert (projected * v >= 0).all()


def test_the_input_is_left_alone_and_other_types_are_converted():
    v = np.array([3.0, -1.0])
    kernels.project_l1(v, 1.0)[0] = 99
    inside = kernels.project_l1(v, 10.0)
    inside[0] = 99
    np.testing.assert_array_equal(v, [3.0, -1.0])
    np.testing.assert_array_equal(kernels.project_l1([3, -1], 2), [2.0, 0.0])
    np.testing.assert_array_equal(kernels.project_l1(np.arange(6, dtype=np.float32)[::2], 1), [0, 0, 1])


@pytest.mark.parametrize(
    ("v", "radius", "error", "message"),
    [
        ([1.0], 0.0, ValueError, "radius must be a finite number above 0, got 0.0"),
        ([1.0], -2, ValueError, "radius must be a finite number above 0, got -2"),
        ([1.0], math.inf, ValueError, "radius must be a finite number above 0, got inf"),
        ([1.0], math.nan, ValueError, "radius must be a finite number above 0, got nan"),
        ([1.0], 10**400, ValueError, "radius must be a finite number"),
        ([1.0], "3", TypeError, "radius must be a real number, got str"),
        ([1.0], None, TypeError, "radius must be a real number, got NoneType"),
        ([math.nan], 1.0, ValueError, "v must be finite"),
        ([1.0, -math.inf], 1.0, ValueError, "v must be finite"),
        ([], 1.0, ValueError, r"v must have at least one row and one column, got shape \(0,\)"),
        ([[1.0]], 1.0, ValueError, r"v must have one dimension, got shape \(1, 1\)"),
        ([1j], 1.0, TypeError, "v must hold real numbers, got dtype complex128"),
        (["1"], 1.0, TypeError, "v must hold real numbers"),
        (np.ma.masked_array([1.0], [True]), 1.0, TypeError, "v must not be a masked array"),
    ],
)
def test_bad_input(v, radius, error, message):
    with pytest.raises(error, match=message):
        kernels.project_l1(v, radius)
