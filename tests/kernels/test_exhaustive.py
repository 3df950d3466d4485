"""All inputs where all can be tried: float32 values, small lattices of peeling, small widths of the ball."""

import itertools

import numpy as np
import pytest
from scipy import stats

from exactness import ALPHA, exponential_chances, noisy_max_chances, ordered_picks, picks_goodness
from fliphat import _native, kernels
from fliphat.kernels import _fits as fit_kernels

MOST = 2**15 - 1

#: Rows that wide registers take together.
ROWS = 8


def quantised(values):
    """The integers of float32 values whose residual is 1 and whose clip is 2**15, by each instruction set.

    Each kernel call has eight rows, of which one has a residual: the sums are that row's integers.
    """
    X = values.reshape(ROWS, -1)
    found = np.empty(X.shape, np.int64)
    for level in _native.simd_levels():
        for row in range(ROWS):
            y = np.zeros(ROWS)
            y[row] = -1.0
            given = (X, y, np.zeros(X.shape[1]), 2.0**15, np.inf, "squared", None)
            found[row] = _native.clipped_sums(*given, threads=1, simd=level)
        yield level, found.reshape(-1)


def defined(values, rounded=np.rint):
    """The definition: cut at 2**15, then the nearest integer, halves to even."""
    return rounded(np.clip(values, -(2.0**15), 2.0**15)).astype(np.int64)


def blocks_of_floats(bits):
    """All finite float32 values, in blocks of ``2**bits`` neighbours of one sign and exponent."""
    for first in range(0, 2**32, 2**bits):
        values = (np.arange(2**bits, dtype=np.uint32) + np.uint32(first)).view(np.float32)
        if np.isfinite(values).all():
            yield values


@pytest.mark.slow
def test_every_finite_float32_becomes_the_integer_that_is_defined():
    tried = 0
    for values in blocks_of_floats(22):
        expected = defined(values)
        for level, found in quantised(values):
            assert np.array_equal(found, expected), (level, values[found != expected][:3])
        tried += len(values)
    assert tried == 2**32 - 2**24, "all but NaN and infinity of both signs"


@pytest.mark.parametrize("near", [0.5, 1.5, -2.5, 2.0**15 - 0.5, 2.0**15, -(2.0**15), 1e-45, 3e38])
def test_float32_values_around_edges(near):
    """What the slow test does for all, around those where a rounding changes its mind."""
    middle = np.float32(near).view(np.uint32).astype(np.int64)
    values = (middle + np.arange(-512, 512)).astype(np.uint32).view(np.float32)
    values = np.where(np.isfinite(values), values, np.float32(0))
    for _, found in quantised(values):
        assert np.array_equal(found, defined(values))


def test_control_other_roundings_are_not_the_definition():
    values = np.float32([0.5, 1.5, -2.5, 2.4999998, 40_000.0, -0.5, 3.0, 4.5])
    [(_, found), *_] = quantised(values)
    assert np.array_equal(found, defined(values))
    for other in (lambda x: np.floor(x + 0.5), np.trunc, lambda x: np.trunc(x + np.copysign(0.5, x))):
        assert not np.array_equal(found, defined(values, other))
    assert not np.array_equal(found, np.rint(values).astype(np.int64)), "the cut is seen, too"


#: Every vector of one to three magnitudes up to three.
LATTICE = [v for d in (1, 2, 3) for v in itertools.product(range(4), repeat=d)]
CHANCES = {"exponential": exponential_chances, "laplace": noisy_max_chances}
DRAWS = 1500


def all_lattices(mechanism, scale, *, drawn_at=None):
    """P-values of the ordered picks of every vector and every number of picks."""
    values = []
    for number, v in enumerate(LATTICE):
        # Signs are not looked at by picks: every other one is negative.
        signed = np.array(v) * np.resize([1, -1], len(v))
        for s in range(1, len(v) + 1):
            supports, released = np.empty((2, DRAWS, s), np.int64)
            _native.seeded_peel(
                signed, drawn_at or scale, 1, mechanism, "gaussian", 1000 * number + s, supports, released
            )
            if len(v) > 1:
                values.append(picks_goodness(supports, ordered_picks(v, s, CHANCES[mechanism](scale))))
    return np.array(values)


@pytest.mark.parametrize("scale", [1, 2, 3])
@pytest.mark.parametrize("mechanism", CHANCES)
def test_every_small_lattice_is_peeled_with_its_probabilities(mechanism, scale):
    values = all_lattices(mechanism, scale)
    assert len(values) == 16 * 2 + 64 * 3
    assert values.min() > ALPHA
    # All together see what none of them would: p-values are uniform, so -2 log of each is chi-square.
    assert stats.chi2.sf(-2 * np.log(values).sum(), 2 * len(values)) > ALPHA


def test_control_noise_of_another_scale_is_seen():
    values = all_lattices("exponential", 2, drawn_at=3)
    assert values.min() < ALPHA
    assert stats.chi2.sf(-2 * np.log(np.maximum(values, 1e-300)).sum(), 2 * len(values)) < ALPHA


def cut(rows, radius):
    """The integers of each row, one group a row."""
    n = len(rows)
    given = (rows, np.ones(n), np.arange(n))
    return fit_kernels.ball_gradient(*given, count=n, radius=radius, scale=1.0)


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("radius", [1, 2, 3, 5])
def test_every_row_of_a_small_grid_stays_in_its_ball(width, radius):
    """All rows with halves up to two beyond the ball; what replacing one by another moves, for all pairs."""
    grid = np.arange(-2 * radius - 4, 2 * radius + 5) / 2
    rows = np.array(list(itertools.product(grid, repeat=width)))
    integers = cut(rows, radius)
    assert (np.square(integers).sum(1) <= radius**2).all()
    inside = np.square(rows).sum(1) <= radius**2
    assert np.array_equal(integers[inside], np.trunc(rows[inside]).astype(np.int64))
    different = np.unique(integers, axis=0)
    for q in different:
        found = kernels.second_moments(q[None].astype(float), radius=radius, scale=1.0)
        assert np.array_equal(found, np.outer(q, q))
    moved, products = most_moved(different)
    assert moved == (2 * radius) ** 2
    assert products == (2 * radius**4 if width > 1 else radius**4)


def most_moved(integers):
    """The largest squared distances between two rows, and between their products."""
    products = (integers[:, :, None] * integers[:, None, :]).reshape(len(integers), -1)
    return [
        (np.square(x).sum(1)[:, None] + np.square(x).sum(1)[None] - 2 * x @ x.T).max()
        for x in (integers, products)
    ]


def test_control_rows_that_are_rounded_and_not_cut_again_leave_the_ball():
    radius = 3
    grid = np.arange(-10, 11) / 2
    rows = np.array(list(itertools.product(grid, repeat=2)))
    lengths = np.maximum(np.sqrt(np.square(rows).sum(1)), 1e-300)
    nearest = np.rint(rows * np.minimum(radius / lengths, 1)[:, None]).astype(np.int64)
    assert (np.square(nearest).sum(1) > radius**2).any()
    assert most_moved(np.unique(nearest, axis=0))[1] > 2 * radius**4


@pytest.mark.parametrize("radius", [1, 2, 4095, 11_585, MOST])
def test_moments_of_full_rows_are_exact_for_every_small_width(radius):
    """600 equal rows at the surface of the ball are the largest sums there are."""
    n = 600
    for width in range(1, 41):
        rows = np.zeros((n, width))
        rows[:, width // 2] = radius
        spread = np.full((n, width), float(int(radius / np.sqrt(width))))
        for X in (rows, spread):
            q = X[0].astype(np.int64)
            for level in _native.simd_levels():
                found = _native.second_moments(
                    X, np.arange(width), np.ones(width), None, radius, threads=1, simd=level
                )
                assert np.array_equal(found.reshape(width, width), n * np.outer(q, q)), (width, level)


def test_control_sums_of_32_bits_would_not_be_exact():
    q = np.full(600, MOST, np.int32)
    with np.errstate(over="ignore"):
        assert int((q * q).sum(dtype=np.int32)) != 600 * MOST**2
