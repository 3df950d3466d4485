"""Priced releases: the price comes from integers, rounded up, and an unsupported claim can't be written down."""

import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from fliphat import reference
from fliphat.privacy import composition
from fliphat.privacy.priced import Part, PickNoise, PricedRelease, VectorNoise, fit_scales, root_up

TEMPLATE = (
    PickNoise(2**16, 10**6, count=5),
    VectorNoise(Part(5 * 2**32, 2 * 10**6), Part(Fraction(2**62, 3), 4 * 10**9)),
)


@pytest.mark.parametrize("users", [1, 3])
@pytest.mark.parametrize("accounting", ["exact", "zcdp"])
def test_scales_are_the_smallest_that_support_the_claim(users, accounting):
    release = fit_scales(TEMPLATE, epsilon=1.0, delta=0.01, users=users, accounting=accounting)
    picks, vector = release.noise
    ratio = picks.scale / 10**6
    assert vector.parts[0].sigma == pytest.approx(2 * 10**6 * ratio, rel=1e-5)
    smaller = (
        dataclasses.replace(picks, scale=math.ceil(0.999 * picks.scale)),
        VectorNoise(*(Part(p.sensitivity_squared, math.ceil(0.999 * p.sigma)) for p in vector.parts)),
    )
    with pytest.raises(ValueError, match="the noise costs"):
        PricedRelease(noise=smaller, epsilon=1.0, delta=0.01, users=users, accounting=accounting)


def test_the_exact_price_needs_less_noise_than_zcdp():
    exact = fit_scales(TEMPLATE, epsilon=1.0, delta=0.01)
    zcdp = fit_scales(TEMPLATE, epsilon=1.0, delta=0.01, accounting="zcdp")
    assert zcdp.noise[0].scale > 1.14 * exact.noise[0].scale
    assert exact.rho > zcdp.rho


def test_control_a_claim_that_is_not_supported_cannot_be_built():
    release = fit_scales(TEMPLATE, epsilon=1.0, delta=0.01)
    for change in (
        {"epsilon": 0.99},
        {"delta": 0.0095},
        {"users": 2},
        {"noise": (*release.noise, PickNoise(2**16, 10**7))},
    ):
        given = {"noise": release.noise, "epsilon": 1.0, "delta": 0.01, "users": 1} | change
        with pytest.raises(ValueError, match=r"the noise costs delta = .* is claimed"):
            PricedRelease(**given)


def test_the_order_is_part_of_the_price():
    release = fit_scales(TEMPLATE, epsilon=1.0, delta=0.01)
    with pytest.raises(ValueError, match="the noise costs delta"):
        PricedRelease(noise=release.noise[::-1], epsilon=1.0, delta=0.01)


def test_fits_beside_it_are_priced_together():
    release = fit_scales(TEMPLATE, epsilon=1.0, delta=0.01, users=2)
    PricedRelease(noise=release.noise, epsilon=1.0, delta=0.01, users=2, beside=(release.noise,))
    loud = (PickNoise(2**16, 10**4),)
    with pytest.raises(ValueError, match="the noise costs delta"):
        PricedRelease(noise=release.noise, epsilon=1.0, delta=0.01, users=2, beside=(loud,))


def test_pure_picks_have_a_claim_without_delta():
    picks = PickNoise(2**16, 2**18, count=2)
    assert PricedRelease(noise=(picks,), epsilon=1.0, delta=0.0).price == 0
    with pytest.raises(ValueError, match="the noise costs delta"):
        PricedRelease(noise=(picks, VectorNoise(Part(1, 10))), epsilon=1.0, delta=0.0)


def test_sizes_are_rounded_up():
    for sensitivity, scale in ((1, 3), (2**16, 1_234_567), (7, 10**9 + 7)):
        (event,) = PickNoise(sensitivity, scale).events(1)
        assert Fraction(event.eta) >= Fraction(2 * sensitivity, scale)
        vector = VectorNoise(Part(sensitivity, scale), Part(5, 11))
        (event,) = vector.events(3)
        assert Fraction(event.mu) ** 2 >= 9 * vector.mu_squared
        assert event.mu <= 3 * math.sqrt(vector.mu_squared) * (1 + 1e-15)
    assert root_up(Fraction(0)) == 0


def test_a_record_is_enough_to_compute_the_price_again():
    release = fit_scales(TEMPLATE, epsilon=1.0, delta=0.01)
    record = json.loads(json.dumps(release.record()))
    events = [(kind, size) for kind, size, count in record["events"] for _ in range(count)]
    again = reference.price(record["epsilon"], [events], users=record["users"], **record["grid"])
    assert again == pytest.approx(record["price"], rel=1e-8)
    assert again <= record["delta"]
    zcdp = fit_scales(TEMPLATE, epsilon=1.0, delta=0.01, accounting="zcdp").record()
    assert Fraction(zcdp["rho"]) > 0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: PickNoise(-1, 5), ValueError, "sensitivity must be an integer from 0"),
        (lambda: PickNoise(1, 0), ValueError, "scale must be an integer from 1"),
        (lambda: PickNoise(1, 1, count=0), ValueError, "count must be an integer from 1"),
        (lambda: Part(0.5, 3), TypeError, "sensitivity_squared must be an int or a Fraction"),
        (lambda: Part(-1, 3), ValueError, "sensitivity_squared must be at least 0"),
        (lambda: Part(1, 2**40), ValueError, "sigma must be an integer from 1"),
        (lambda: VectorNoise(3), TypeError, "parts must be Part, got int"),
        (lambda: PricedRelease(noise=(), epsilon=1.0, delta=1.0), ValueError, "delta must be at least 0"),
        (
            lambda: PricedRelease(noise=(), epsilon=1.0, delta=0.1, accounting="x"),
            ValueError,
            "accounting must be",
        ),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_events_keep_the_order_of_release():
    release = PricedRelease(noise=TEMPLATE[::-1], epsilon=30.0, delta=0.5)
    assert [type(event) for event in release.events] == [composition.Gaussian] + [composition.Pick] * 5


def test_scales_that_are_found_are_never_refused():
    # Rounded scales are checked on a grid of their own: unequal picks at epsilon = 0.5 were once refused by 4e-6.
    rng = np.random.default_rng(5)
    for epsilon in (0.1, 0.5, 1.0, 3.0, 10.0):
        for _ in range(12):
            counts = rng.integers(1, 6, size=2)
            picks = [PickNoise(2**16, int(rng.integers(10**5, 10**7)), count=int(c)) for c in counts]
            vector = VectorNoise(Part(int(rng.integers(1, 40)) * 2**32, int(rng.integers(10**5, 10**7))))
            release = fit_scales([*picks, vector], epsilon=epsilon, delta=float(rng.choice([1e-6, 0.01])))
            assert 0.99 * release.delta < release.price <= release.delta
