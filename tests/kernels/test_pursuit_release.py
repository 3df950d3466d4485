"""An episode of pursuit in one call: the steps it consists of, and what it refuses."""

import numpy as np
import pytest
from scipy import sparse, stats

from fliphat import _native, kernels, reference

N, D, M = 300, 12, 5


def world(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.7)
    y = X @ np.where(np.arange(D) < 4, 1.0, 0.0) + 0.3 * rng.standard_normal(N)
    return X, y


def question(**changes):
    """Return two public columns, two picks that are all but certain, and as little noise as there is."""
    whiten = np.eye(M) + 0.1
    asked = {
        "pick_clip": 3.0,
        "picks": 2,
        "pick_scale": 1000,
        "signed": True,
        "whiten": whiten,
        "value_clip": 2.0,
        "radius": 4095,
        "scale": 900.0,
        "cap": 3.0,
        "sigmas": np.ones(M + M * (M + 1) // 2 + 4, np.int64),
        "one": 1.2,
        "shift": np.array([0.1, 0.0, 0.05]),
        "octaves": 8.0,
        "present": np.arange(N) % 7 != 3,
    }
    return asked | changes


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"units": np.linspace(0.5, 2.0, D)},
        {"loss": "logistic", "reward_range": (0.0, 1.0)},
        {"signed": False, "shift": None},
        {"octaves": None, "sigmas": np.ones(M + M * (M + 1) // 2 + 1, np.int64)},
    ],
    ids=["plain", "units", "clicks", "no signs", "no whole rows"],
)
def test_what_comes_out_is_the_twin_with_another_noise(changes):
    X, y = world()
    asked = question(**changes)
    expected = reference.pursuit_release(X, y, [0, 9], [0.1, 0.9, 0.0], rng=np.random.default_rng(1), **asked)
    for rows in (X, sparse.csr_array(X)):
        for threads in (1, 2):
            found = kernels.pursuit_release(rows, y, [0, 9], [0.1, 0.9, 0.0], **asked, threads=threads)
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])
            assert found[2].dtype == np.int64
            # Two draws of standard deviation 1 are not 12 apart.
            assert np.abs(found[2] - expected[2]).max() <= 12
            assert not set(found[0]) & {0, 9}


def released(sigmas, seeds):
    X, y = world()
    asked = question(sigmas=sigmas)
    sums = (asked["value_clip"], asked["radius"], asked["scale"], asked["cap"])
    public = (asked["one"], "squared", None, asked["pick_clip"])
    columns, weights = np.array([0, 9]), np.array([0.1, 0.9, 0.0])
    flags = asked["present"].view(np.uint8)
    for seed in seeds:
        yield _native.pursuit_release(
            X,
            y,
            columns,
            weights,
            asked["shift"],
            None,
            public,
            (2, 1000, True),
            asked["whiten"],
            sums,
            (asked["one"], 8.0),
            np.asarray(sigmas, np.uint64),
            flags,
            1,
            seeded=(seed, 0),
        )[2]


def standardised(sigmas, claimed):
    """Return the vector's noise over what it is claimed to be, of many seeds."""
    exact = np.median(list(released(np.ones(len(sigmas), np.int64), range(9))), axis=0)
    return np.array([(one - exact) / claimed for one in released(sigmas, range(400))])


def test_every_number_has_the_noise_that_was_asked_for():
    sigmas = np.linspace(200, 90_000, len(question()["sigmas"])).astype(np.int64)
    noise = standardised(sigmas, sigmas)
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-4
    # Of each number by itself, and with every other: 400 draws move a deviation by 4 % and a correlation by 5 %.
    np.testing.assert_allclose(noise.std(axis=0), 1, atol=0.16)
    assert np.abs(np.corrcoef(noise.T) - np.eye(len(sigmas))).max() < 0.25


def test_control_less_noise_than_claimed_is_noticed():
    sigmas = np.linspace(200, 90_000, len(question()["sigmas"])).astype(np.int64)
    short = sigmas.copy()
    short[7] = short[7] * 2 // 3
    assert np.abs(standardised(short, sigmas).std(axis=0) - 1).max() > 0.16


def test_two_calls_have_different_noise():
    X, y = world()
    asked = question(sigmas=np.full(M + M * (M + 1) // 2 + 4, 10**6))
    first, second = (kernels.pursuit_release(X, y, [0, 9], [0.1, 0.9, 0.0], **asked)[2] for _ in range(2))
    assert (first != second).all()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"sigmas": np.ones(5, int)},
            ValueError,
            r"sigmas must have the shape of values, \(24,\), got \(5,\)",
        ),
        ({"sigmas": np.zeros(24, int)}, ValueError, "sigmas must be integers from 1"),
        ({"sigmas": -np.ones(24, int)}, ValueError, "sigmas must be integers from 1"),
        ({"picks": D}, ValueError, f"picks must be an integer from 0 to {D - 2}, got {D}"),
        ({"pick_scale": 0}, ValueError, "pick_scale must be an integer from 1"),
        ({"pick_clip": 0.0}, ValueError, "pick_clip must be a number from"),
        ({"value_clip": np.inf}, ValueError, "value_clip must be a number from"),
        ({"radius": 2**15}, ValueError, "radius must be an integer from 1 to 32767"),
        ({"scale": -1.0}, ValueError, "scale must be a finite number above 0"),
        ({"cap": np.nan}, ValueError, "cap must be a finite number above 0"),
        ({"octaves": 0.0}, ValueError, "octaves must be a finite number above 0"),
        ({"whiten": np.eye(3)}, ValueError, r"whiten must have shape \(5, 5\)"),
        ({"signed": 1}, TypeError, "signed must be True or False"),
        ({"loss": "hinge"}, ValueError, "loss must be one of"),
        ({"shift": [1.0]}, ValueError, "shift must have shape"),
        ({"units": np.zeros(D)}, ValueError, "units must be finite and above 0"),
        ({"present": np.ones(2, bool)}, ValueError, "present must have shape"),
    ],
)
def test_bad_input(changes, error, message):
    X, y = world()
    with pytest.raises(error, match=message):
        kernels.pursuit_release(X, y, [0, 9], [0.1, 0.9, 0.0], **question(**changes))


def test_public_columns_that_are_none_are_refused():
    X, y = world()
    for columns in ([0, D], [0, -1], [3, 3]):
        with pytest.raises(ValueError, match="columns"):
            kernels.pursuit_release(X, y, columns, [0.1, 0.9, 0.0], **question())
