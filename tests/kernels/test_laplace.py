"""The secure Laplace: its distribution, its lattice, and the attack it withstands."""

import contextlib
import math
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from exactness import ALPHA, Laplace, goodness, largest_is_plausible, residues_goodness
from fliphat import _native, kernels, reference


def lattice_of(scale):
    """The documented lattice and noise scale in its units."""
    lattice = 2.0 ** (math.floor(math.log2(scale)) - 20)
    return lattice, math.ceil(scale / lattice)


SCALES = [1.0, 0.1, 1.5, math.pi, 2.0**-900, 2.0**900, 1e-200, 7e150]


@pytest.mark.parametrize("scale", SCALES)
def test_noise_is_a_discrete_laplace_on_the_documented_lattice(scale):
    lattice, noise_scale = lattice_of(scale)
    assert scale * 2.0**-21 < lattice <= scale * 2.0**-20
    noise = np.empty(10**5)
    assert _native.laplace_fill(noise, scale, seed=7) == lattice
    multiples = noise / lattice
    assert (multiples == np.rint(multiples)).all()
    multiples = multiples.astype(np.int64)
    assert goodness(multiples, Laplace(noise_scale)) > ALPHA
    assert largest_is_plausible(multiples, Laplace(noise_scale))
    assert residues_goodness(multiples) > ALPHA


def test_a_scale_off_by_three_percent_is_noticed():
    noise = np.empty(10**5)
    _native.laplace_fill(noise, 1.03, seed=7)
    assert goodness((noise / lattice_of(1.0)[0]).astype(np.int64), Laplace(lattice_of(1.0)[1])) < ALPHA


def test_the_twin_has_the_same_distribution():
    rng = np.random.default_rng(1)
    ours = np.empty(10**5)
    _native.laplace_fill(ours, 2.5, seed=8)
    assert stats.ks_2samp(ours, reference.laplace(2.5, 10**5, rng)).pvalue > ALPHA
    assert stats.ks_2samp(ours, reference.laplace(2.5 * 1.1, 10**5, rng)).pvalue < ALPHA
    assert (
        stats.ks_2samp(ours + 5, reference.laplace_mechanism(np.full(10**5, 5.0), 2.5, rng=rng)).pvalue
        > ALPHA
    )


@pytest.mark.parametrize("size", [0, 1, 5, (2, 3), (), (4, 0)])
def test_shapes(size):
    noise = kernels.laplace(1.0, size)
    assert noise.shape == (size if isinstance(size, tuple) else (size,))
    assert noise.dtype == np.float64


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3)])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i4", "i8", "u8", "?"])
def test_values_keep_their_shape_and_stay_untouched(shape, dtype):
    values = np.ones(shape, dtype)
    released = kernels.laplace_mechanism(values, 1e-9)
    assert released.shape == shape
    assert released.dtype == np.float64
    np.testing.assert_allclose(released, 1, atol=1e-6)
    assert (values == 1).all()
    strided = np.ones((4, 4))[::2, ::2]
    assert kernels.laplace_mechanism(strided, 1e-9).shape == (2, 2)


def release(value, scale, count, seed=1):
    values = np.full(count, float(value))
    _native.laplace_release(values, scale, seed=seed)
    return values


def test_the_release_is_the_rounded_value_plus_noise_in_integers():
    lattice, _ = lattice_of(1.0)
    noise = np.empty(1000)
    _native.laplace_fill(noise, 1.0, seed=3)
    for value in (0.0, 1.0, 0.1, -math.pi, 1e6 + 1 / 3, lattice / 2, -lattice / 2):
        nearest = math.floor(value / lattice + 0.5) * lattice
        np.testing.assert_array_equal(release(value, 1.0, 1000, seed=3), nearest + noise)


def test_huge_values_are_clamped_and_int64_loses_nothing_to_conversion():
    lattice, _ = lattice_of(1.0)
    for value in (1e300, 1.7e308):
        assert abs(release(value, 1.0, 1)[0] - 2**52 * lattice) < 100
        assert abs(release(-value, 1.0, 1)[0] + 2**52 * lattice) < 100
    # float(2**53 + 1) would move two neighbouring integers two apart; clamping moves them zero apart.
    pair = np.array([2**53, 2**53 + 1, 2**62])
    assert len(set(np.clip(pair, None, 2**53).tolist())) == 1
    released = kernels.laplace_mechanism(pair, 1e-3 * 2**40)
    assert np.ptp(released) < 100 * 1e-3 * 2**40


# Mironov's attack, in its simplest form: for the values 0 and 1 and outputs strictly between them.
# 1 + n for a float n in (-1, 0) is a multiple of 2^-53 (its terms are, or it rounds to one), so an output with
# finer bits can't have come from the value 1.


def impossible_from_one(outputs):
    inside = outputs[(outputs > 0) & (outputs < 1)]
    scaled = inside * 2.0**53
    return (scaled != np.rint(scaled)).sum() / len(inside)


def test_mironovs_attack_finds_nothing():
    from_zero, from_one = release(0.0, 1.0, 10**5, seed=4), release(1.0, 1.0, 10**5, seed=5)
    assert impossible_from_one(from_zero) == 0
    assert impossible_from_one(from_one) == 0
    lattice, _ = lattice_of(1.0)
    for value in (0.0, 1.0, 1 / 3, 1e-9, 12345.678):
        multiples = release(value, 1.0, 10**5, seed=6) / lattice
        assert (multiples == np.rint(multiples)).all()
        # No output is out of reach either: the low bits of the multiples are uniform for every value.
        assert residues_goodness(multiples.astype(np.int64), 64) > ALPHA


def test_mironovs_attack_finds_the_value_in_float_noise():
    rng = np.random.default_rng(1)
    from_zero = reference.laplace_mechanism(np.zeros(10**5), 1.0, rng=rng)
    from_one = reference.laplace_mechanism(np.ones(10**5), 1.0, rng=rng)
    assert impossible_from_one(from_one) == 0
    assert impossible_from_one(from_zero) > 0.1


@given(
    hnp.arrays(np.float64, st.integers(1, 5), elements=st.floats(-1e6, 1e6)),
    st.floats(1e-6, 1e6),
    st.integers(0, 1000),
)
def test_neighbours_round_at_most_a_step_further_apart_than_they_are(values, scale, steps):
    lattice, _ = lattice_of(scale)
    shift = steps * lattice
    first, second = values.copy(), values + shift
    exact = second - values  # what the floats really differ by
    _native.laplace_release(first, scale, seed=9)
    _native.laplace_release(second, scale, seed=9)
    # Both releases may be clamped, which only brings them closer.
    assert (np.abs(second - first) / lattice <= np.ceil(exact / lattice)).all()


class TestRefusals:
    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_values_that_are_not_finite(self, bad):
        with pytest.raises(ValueError, match=r"^values must be finite$"):
            kernels.laplace_mechanism([1.25, bad], 1.0)

    @pytest.mark.parametrize(
        "bad",
        [
            "98765",
            ["98765"],
            [98765j],
            [98765, None],
            [[98765], [1, 2]],
            [98765 * 2**70],
            np.longdouble("98765"),
        ],
    )
    def test_values_that_are_not_real_numbers_are_not_quoted(self, bad):
        with pytest.raises(TypeError, match="values must be an array of real numbers") as refusal:
            kernels.laplace_mechanism(bad, 1.0)
        assert "98765" not in str(refusal.value)
        assert refusal.value.__cause__ is None
        assert refusal.value.__context__ is None

    def test_masked_values(self):
        with pytest.raises(TypeError, match="masked"):
            kernels.laplace_mechanism(np.ma.masked_array([1.0, 2.0], [True, False]), 1.0)

    @pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 1e-300, 1e300, 10**400])
    def test_scales_out_of_range(self, scale):
        for kernel in (lambda: kernels.laplace(scale, 3), lambda: kernels.laplace_mechanism([1.0], scale)):
            with pytest.raises(ValueError, match=r"^scale must be"):
                kernel()

    @pytest.mark.parametrize(
        ("size", "error"),
        [(-1, ValueError), (1.5, TypeError), ("3", TypeError), ((2, -1), ValueError), (None, TypeError)],
    )
    def test_sizes(self, size, error):
        with pytest.raises(error, match=r"^size must be an integer"):
            kernels.laplace(1.0, size)

    def test_a_size_beyond_memory_is_an_ordinary_error(self):
        with pytest.raises((MemoryError, ValueError)):
            kernels.laplace(1.0, 2**60)


anything = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.floats(), max_size=3),
    hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(max_side=3)),
)


@given(anything, anything)
def test_no_argument_can_crash_the_interpreter(first, second):
    too_large = isinstance(second, int) and second > 1000
    size = 3 if too_large else second
    attempts = (
        lambda: kernels.laplace_mechanism(first, second),
        lambda: kernels.laplace(first, 3),
        lambda: kernels.laplace(1.0, size),
        lambda: _native.laplace_fill(first, second),
        lambda: _native.laplace_release(first, second),
    )
    for attempt in attempts:
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            attempt()


def test_other_threads_run_while_noise_is_drawn():
    counted, finished, during = [0], threading.Event(), []

    def work():
        before = counted[0]
        kernels.laplace(1.0, 5 * 10**6)
        during.append(counted[0] - before)
        finished.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not finished.is_set():
        counted[0] += 1
    thread.join()
    assert during[0] > 0
