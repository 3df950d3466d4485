"""The exact samplers against exact probabilities, and what these checks reject."""

import math

import numpy as np
import pytest

from exactness import (
    ALPHA,
    Gaussian,
    Laplace,
    RoundedGaussian,
    draw,
    goodness,
    largest_is_plausible,
    residues_goodness,
    sign_z_score,
    zero_z_score,
)
from fliphat import _native

LAWS = {"laplace": Laplace, "gaussian": Gaussian, "rounded_gaussian": RoundedGaussian}
SCALES = [1, 2, 3, 7, 97, 1024, 65_537, 2**20, 2_000_003, 2**39 - 7, 2**40 - 1]


def holds_up(draws, law):
    """Every check at once; each has a control below."""
    return (
        goodness(draws, law) > ALPHA
        and abs(sign_z_score(draws)) < 5
        and abs(zero_z_score(draws, law)) < 5
        and largest_is_plausible(draws, law)
        and (law.scale < 1000 or residues_goodness(draws) > ALPHA)
        and abs(np.abs(draws).mean() / law.mean_magnitude() - 1) < 5 * 1.5 / math.sqrt(len(draws))
    )


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sampler", LAWS)
def test_draws_follow_the_exact_probabilities(sampler, scale):
    assert holds_up(draw(sampler, scale, 10**5), LAWS[sampler](scale))


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sampler", LAWS)
def test_ten_million_draws_follow_the_exact_probabilities(sampler, scale):
    law = LAWS[sampler](scale)
    draws = draw(sampler, scale, 10**7, seed=2)
    assert holds_up(draws, law)
    assert goodness(draws, law, bins=200) > ALPHA
    # P(|Z| > 20 t) is 2e-9: one in ten million draws would already be a surprise, two a defect.
    assert (np.abs(draws) > 20 * scale).sum() <= 1


@pytest.mark.parametrize("scale", [1, 3, 300, 2**20])
@pytest.mark.parametrize("sampler", ["laplace", "gaussian"])
def test_the_textbook_samplers_pass_the_same_checks(sampler, scale):
    assert holds_up(draw(f"{sampler} textbook", scale, 3 * 10**4), LAWS[sampler](scale))


@pytest.mark.parametrize("scale", [1, 97, 2**20, 2**39 - 7])
@pytest.mark.parametrize("sampler", LAWS)
def test_integers_alone_give_the_same_draws_from_the_same_bits(sampler, scale):
    fast, exact = np.empty(10**4, np.int64), np.empty(10**4, np.int64)
    fast_words = _native.seeded_draw(fast, sampler, scale, 3)
    exact_words = _native.seeded_draw(exact, f"{sampler} exact", scale, 3)
    np.testing.assert_array_equal(fast, exact)
    assert fast_words == exact_words


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 1), (1, 3), (7, 2), (1, 2**40), (12, 1)])
@pytest.mark.parametrize("sampler", ["bernoulli", "bernoulli textbook"])
def test_coins_land_heads_as_often_as_they_should(sampler, numerator, denominator):
    flips = draw(sampler, numerator, 10**5, denominator=denominator)
    chance = math.exp(-numerator / denominator)
    assert abs(flips.sum() - 1e5 * chance) <= 5 * math.sqrt(1e5 * chance * (1 - chance)) + 1e-6


class TestControls:
    """Each check must reject what it is there for."""

    @pytest.mark.parametrize("sampler", LAWS)
    @pytest.mark.parametrize("scale", [1000, 2**20, 10**11])
    def test_a_scale_off_by_three_percent(self, sampler, scale):
        for factor in (0.97, 1.03):
            draws = draw(sampler, round(scale * factor), 10**5)
            assert goodness(draws, LAWS[sampler](scale)) < ALPHA

    @pytest.mark.parametrize("sampler", LAWS)
    def test_a_repeated_stream(self, sampler):
        repeated = np.tile(draw(sampler, 1000, 10**4), 10)
        assert goodness(repeated, LAWS[sampler](1000)) < ALPHA

    @pytest.mark.parametrize("sampler", LAWS)
    def test_a_truncated_tail(self, sampler):
        law = LAWS[sampler](1000)
        draws = draw(sampler, 1000, 10**5)
        limit = int(law.quantile(1 - 1e-4))
        assert not largest_is_plausible(np.clip(draws, -limit, limit), law)
        # Chi-square over intervals does not see it: that is why the largest draw is checked.
        assert goodness(np.clip(draws, -limit, limit), law) > ALPHA

    @pytest.mark.parametrize("sampler", LAWS)
    def test_zero_counted_twice(self, sampler):
        law = LAWS[sampler](5)
        draws = draw(sampler, 5, 10**5)
        doubled = np.concatenate([draws, np.zeros((draws == 0).sum(), np.int64)])
        assert abs(zero_z_score(doubled, law)) > 5

    @pytest.mark.parametrize("sampler", LAWS)
    def test_a_sign_that_leans(self, sampler):
        draws = draw(sampler, 1000, 10**5)
        assert abs(sign_z_score(np.where(np.arange(10**5) % 20 == 0, np.abs(draws), draws))) > 5

    @pytest.mark.parametrize("sampler", LAWS)
    def test_low_bits_that_are_missing(self, sampler):
        draws = draw(sampler, 2**20, 10**5)
        assert goodness(draws & ~1, LAWS[sampler](2**20)) > ALPHA
        assert residues_goodness(draws & ~1) < ALPHA

    @pytest.mark.parametrize("scale", [1, 2])
    def test_the_two_gaussians_are_told_apart(self, scale):
        # At small scales rounding adds a twelfth to the variance; the discrete law has none of it.
        assert goodness(draw("gaussian", scale, 10**6), RoundedGaussian(scale)) < ALPHA
        assert goodness(draw("rounded_gaussian", scale, 10**6), Gaussian(scale)) < ALPHA

    def test_rounding_towards_zero(self):
        truncated = np.trunc(np.random.default_rng(1).normal(0, 3, 10**5)).astype(np.int64)
        assert goodness(truncated, RoundedGaussian(3)) < ALPHA

    @pytest.mark.slow
    @pytest.mark.parametrize("sampler", LAWS)
    def test_ten_million_draws_of_a_scale_off_by_three_per_mille(self, sampler):
        assert goodness(draw(sampler, 100_300, 10**7), LAWS[sampler](100_000)) < ALPHA
