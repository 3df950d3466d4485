"""Peeling: the whole distribution over ordered picks, its corners, and what the checks reject."""

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from exactness import (
    ALPHA,
    Gaussian,
    Laplace,
    exponential_chances,
    goodness,
    noisy_max_chances,
    ordered_picks,
    picks_goodness,
)
from fliphat import _native, kernels, reference

CHANCES = {"exponential": exponential_chances, "laplace": noisy_max_chances}

#: Vector, picks, scale: ties, signs, zeros, one that dominates, scores far apart, scales from 1 to the limit.
CASES = [
    ([5], 1, 3),
    ([0, 0, 0], 2, 1),
    ([1, 2], 2, 1),
    ([3, -3, 3, 0], 3, 2),
    ([10, 8, -9, 4, 0], 3, 5),
    ([100, 90, 90, -80, 7, 0], 3, 10),
    ([7, -7, 7, 7, 7, 7], 2, 40),
    ([1000, 3, 2, 1], 3, 1),
    ([2000, -2000, 1, 0, 3], 3, 2),
    ([40, 0, 0, 0, 0, 0], 2, 10),
    ([300, 200, 100, 0, -50, -150], 3, 97),
]


def peel_many(v, s, scale, mechanism, count=10**5, *, value_scale=1, value_noise="gaussian", seed=1):
    supports, values = np.empty((2, count, s), np.int64)
    _native.seeded_peel(np.array(v), scale, value_scale, mechanism, value_noise, seed, supports, values)
    return supports, values


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("mechanism", CHANCES)
def test_ordered_picks_have_exactly_the_enumerated_probabilities(mechanism, case):
    v, s, scale = case
    supports, _ = peel_many(v, s, scale, mechanism)
    assert picks_goodness(supports, ordered_picks(v, s, CHANCES[mechanism](scale))) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("mechanism", CHANCES)
def test_three_million_ordered_picks(mechanism, case):
    v, s, scale = case
    supports, _ = peel_many(v, s, scale, mechanism, 3 * 10**6, seed=2)
    assert picks_goodness(supports, ordered_picks(v, s, CHANCES[mechanism](scale))) > ALPHA


def test_scores_spread_over_a_trillion_scales():
    # Two that compete at the top, then stairs: the competition must not be drowned by the spread.
    v = [10**12, 10**12 - 1, 10**9, 10**6, 10**6 - 2, 0]
    supports, _ = peel_many(v, 3, 1, "exponential")
    chances = ordered_picks(v, 3, exponential_chances(1))
    assert picks_goodness(supports, chances) > ALPHA
    supports, _ = peel_many([x * 2**20 for x in v], 3, 2**20, "exponential")
    assert picks_goodness(supports, chances) > ALPHA


def test_the_largest_scales_and_magnitudes():
    scale = 2**40 - 1
    v = [2**41, -(2**40), 0, 2**39]
    supports, _ = peel_many(v, 2, scale, "exponential")
    assert picks_goodness(supports, ordered_picks(v, 2, exponential_chances(scale))) > ALPHA
    edge = 2**62 - 1
    supports, _ = peel_many([edge, -edge, edge - 1], 2, 1, "exponential")
    assert picks_goodness(supports, ordered_picks([2, 2, 1], 2, exponential_chances(1))) > ALPHA


@pytest.mark.parametrize("mechanism", CHANCES)
@pytest.mark.parametrize(("value_noise", "law"), [("gaussian", Gaussian), ("laplace", Laplace)])
def test_values_are_those_picked_plus_fresh_noise(mechanism, value_noise, law):
    v = np.array([40, -35, 30, 10**6])
    supports, values = peel_many(v, 3, 10, mechanism, 10**5, value_scale=50, value_noise=value_noise, seed=3)
    noise = values - v[supports]
    for place in range(3):
        assert goodness(noise[:, place], law(50)) > ALPHA
        for coordinate in range(4):
            chosen = noise[supports[:, place] == coordinate, place]
            assert len(chosen) < 100 or goodness(chosen, law(50)) > ALPHA
    correlations = np.corrcoef(noise.T)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 5 / math.sqrt(10**5)
    # Control: the noise of another scale.
    assert goodness(noise[:, 0], law(52)) < ALPHA


class TestControls:
    """What the enumeration must reject: 100 000 draws each, from plain NumPy imitations."""

    V, SCALE = (10, 8, -9, 4, 0), 5
    TIED = (3, -3, 3, 0)

    def rejects(self, picks, v, scale):
        return picks_goodness(picks.reshape(-1, 1), ordered_picks(v, 1, exponential_chances(scale))) < ALPHA

    def test_permute_and_flip(self):
        rng = np.random.default_rng(1)
        magnitudes = np.abs(self.V)
        heads = np.exp((magnitudes - magnitudes.max()) / self.SCALE)
        # The first head in a random order: each coordinate's own flips, the maximum always lands heads.
        order = np.argsort(rng.random((10**5, len(heads))), axis=1)
        flips = rng.random((10**5, len(heads))) < heads[order]
        picks = order[np.arange(10**5), flips.argmax(1)]
        assert self.rejects(picks, self.V, self.SCALE)

    def test_ties_to_the_lowest_index(self):
        supports, _ = peel_many(self.TIED, 1, 2, "exponential")
        lowest = np.array([0, 0, 0, 3])[supports[:, 0]]
        assert not self.rejects(supports[:, 0], self.TIED, 2)
        assert self.rejects(lowest, self.TIED, 2)

    @pytest.mark.parametrize("mechanism", CHANCES)
    def test_a_scale_off_by_three_percent(self, mechanism):
        v = [x * 100 for x in (10, 8, -9, 4, 0)]
        chances = ordered_picks(v, 3, CHANCES[mechanism](500))
        assert picks_goodness(peel_many(v, 3, 500, mechanism, 10**6)[0], chances) > ALPHA
        assert picks_goodness(peel_many(v, 3, 515, mechanism, 10**6)[0], chances) < ALPHA

    def test_a_repeated_stream(self):
        supports, _ = peel_many(self.V, 3, self.SCALE, "exponential", 10**4)
        chances = ordered_picks(self.V, 3, exponential_chances(self.SCALE))
        assert picks_goodness(supports, chances) > ALPHA
        assert picks_goodness(np.tile(supports, (10, 1)), chances) < ALPHA

    def test_report_noisy_max_is_not_the_exponential_mechanism(self):
        supports, _ = peel_many(self.V, 1, self.SCALE, "laplace")
        assert self.rejects(supports[:, 0], self.V, self.SCALE)

    def test_ties_the_other_way_in_report_noisy_max(self):
        v = [3, -3, 3, 0]
        supports, _ = peel_many(v, 1, 1, "laplace")
        mirrored = 3 - peel_many(v[::-1], 1, 1, "laplace")[0]
        chances = ordered_picks(v, 1, noisy_max_chances(1))
        assert picks_goodness(supports, chances) > ALPHA
        assert picks_goodness(mirrored, chances) < ALPHA


@pytest.mark.parametrize("mechanism", CHANCES)
def test_the_twin_has_the_same_distribution(mechanism):
    rng = np.random.default_rng(1)
    v = np.array([1000, 800, -900, 400, 0])
    chances = ordered_picks(v.tolist(), 2, CHANCES[mechanism](500))
    twin = [
        reference.peel(v, 2, pick_scale=500, value_scale=1, rng=rng, mechanism=mechanism)[0]
        for _ in range(20_000)
    ]
    assert picks_goodness(np.array(twin), chances) > ALPHA


@pytest.mark.parametrize("mechanism", CHANCES)
@pytest.mark.parametrize("value_noise", ["gaussian", "laplace"])
class TestCorners:
    def peel(self, v, s, mechanism, value_noise):
        support, values = kernels.peel(
            v, s, pick_scale=10, value_scale=10, mechanism=mechanism, value_noise=value_noise
        )
        assert support.dtype == values.dtype == np.int64
        assert support.shape == values.shape == (s,)
        return support, values

    def test_no_picks(self, mechanism, value_noise):
        self.peel(np.arange(3), 0, mechanism, value_noise)
        self.peel(np.empty(0, np.int64), 0, mechanism, value_noise)

    def test_one_coordinate(self, mechanism, value_noise):
        support, values = self.peel([10**15], 1, mechanism, value_noise)
        assert support.tolist() == [0]
        assert abs(values[0] - 10**15) < 10**4

    @pytest.mark.parametrize("d", [1, 2, 63, 64, 65, 1000])
    def test_all_of_them_is_a_permutation(self, mechanism, value_noise, d):
        for v in (np.zeros(d, np.int64), np.arange(d) * 10**9, -np.arange(d) % 3):
            assert sorted(self.peel(v, d, mechanism, value_noise)[0]) == list(range(d))

    def test_other_integer_types_and_layouts(self, mechanism, value_noise):
        for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", ">i4"):
            self.peel(np.arange(6, dtype=dtype), 2, mechanism, value_noise)
        self.peel(np.arange(12)[::2], 2, mechanism, value_noise)
        self.peel(np.arange(12).reshape(3, 4)[:, 1], 2, mechanism, value_noise)


class TestRefusals:
    def test_more_picks_than_coordinates(self):
        with pytest.raises(ValueError, match=r"^s must be an integer from 0 to 3, got 4$"):
            kernels.peel([1, 2, 3], 4, pick_scale=1, value_scale=1)

    @pytest.mark.parametrize("bad", [2**62, -(2**62), -(2**63), 2**63 - 1])
    def test_coordinates_out_of_range_are_not_quoted(self, bad):
        with pytest.raises(ValueError, match=r"^v must lie strictly between -2\*\*62 and 2\*\*62$"):
            kernels.peel([1, bad], 1, pick_scale=1, value_scale=1)

    @pytest.mark.parametrize(
        "bad",
        [[np.nan, 98765.5], ["98765"], [98765 * 2**70], [[98765], [1, 2]], np.array([98765], "u8"), 98765],
    )
    def test_what_is_not_a_vector_of_numbers_is_not_quoted(self, bad):
        with pytest.raises((TypeError, ValueError), match=r"^v must") as refusal:
            kernels.peel(bad, 1, pick_scale=1, value_scale=1)
        assert "98765" not in str(refusal.value)
        assert refusal.value.__context__ is None

    @pytest.mark.parametrize("name", ["pick_scale", "value_scale"])
    @pytest.mark.parametrize(
        ("bad", "error"), [(0, ValueError), (-1, ValueError), (2**40, ValueError), (1.5, TypeError)]
    )
    def test_scales(self, name, bad, error):
        with pytest.raises(error, match=f"^{name} must be an integer"):
            kernels.peel([1], 1, **{"pick_scale": 1, "value_scale": 1, name: bad})

    @pytest.mark.parametrize("name", ["mechanism", "value_noise"])
    def test_names(self, name):
        with pytest.raises(ValueError, match=f"^{name} must be one of '.*', '.*', got 'uniform'$"):
            kernels.peel([1], 1, pick_scale=1, value_scale=1, **{name: "uniform"})


@given(
    hnp.arrays(np.int64, st.integers(0, 40)),
    st.integers(-1, 45),
    st.integers(-1, 2**41),
    st.integers(-1, 2**41),
    st.sampled_from(["exponential", "laplace", "other"]),
    st.sampled_from(["gaussian", "laplace", "other"]),
)
def test_no_argument_can_crash_the_interpreter(v, s, pick_scale, value_scale, mechanism, value_noise):
    scales = {"pick_scale": pick_scale, "value_scale": value_scale}
    try:
        support, _ = kernels.peel(v, s, **scales, mechanism=mechanism, value_noise=value_noise)
    except (ValueError, TypeError):
        pass
    else:
        assert len(set(support.tolist())) == s
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        _native.peel(v, s, pick_scale, value_scale, mechanism, value_noise)
