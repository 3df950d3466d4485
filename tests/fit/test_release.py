"""An episode of pursuit is its twin with another noise; how its noise is distributed, and what it refuses."""

import numpy as np
import pytest
from scipy import sparse, stats

from fliphat import _native
from fliphat.reference import _fits as fit_twins
from pursuit_question import native, question

N, D, M = 300, 12, 5


def world(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.7)
    y = X @ np.where(np.arange(D) < 4, 1.0, 0.0) + 0.3 * rng.standard_normal(N)
    return X, y


def asked(**changes):
    """Return two public columns, two picks that are all but certain, and as little noise as there is."""
    usual = {
        "columns": [0, 9],
        "theta": [0.1, 0.9, 0.0],
        "pick_clip": 3.0,
        "picks": 2,
        "whiten": np.eye(M) + 0.1,
        "value_clip": 2.0,
        "radius": 4095,
        "scale": 900.0,
        "cap": 3.0,
        "one": 1.2,
        "shift": np.array([0.1, 0.0, 0.05]),
        "octaves": 8.0,
        "pick_scale": 1000,
        "signed": True,
        "sigmas": (1, 1, 1),
    }
    return usual | changes


PRESENT = np.arange(N) % 7 != 3


def released(X, y, given, noise, present=PRESENT, threads=None):
    flags = None if present is None else present.view(np.uint8)
    return _native.release_rows(question(**given), native(X), y, flags, noise, threads)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"units": np.linspace(0.5, 2.0, D)},
        {"loss": "logistic", "reward_range": (0.0, 1.0)},
        {"signed": False, "shift": None},
        {"octaves": None},
        {"assumed": 1.0},
        {"assumed": 1.0, "last_signed": False, "units": np.linspace(0.5, 2.0, D)},
        {"picks": 0, "whiten": np.eye(3)},
    ],
    ids=["plain", "units", "clicks", "no signs", "no whole rows", "following", "no last sign", "no picks"],
)
def test_what_comes_out_is_the_twin_with_another_noise(changes):
    X, y = world()
    given = asked(**changes)
    expected = fit_twins.episode(X, y, rng=np.random.default_rng(1), present=PRESENT, **given)
    for rows in (X, sparse.csr_array(X)):
        for threads, noise in ((1, _native.SecureNoise()), (2, _native.SeededNoise(1, 2))):
            found = released(rows, y, given, noise, threads=threads)
            np.testing.assert_array_equal(found[1], expected[1])
            np.testing.assert_array_equal(found[2], expected[2])
            for integers, twin in ((found[0], expected[0]), (found[3], expected[3])):
                assert integers.dtype == np.int64 and integers.shape == twin.shape
                # Two draws of standard deviation 1 (on the diagonal sqrt 2, rounded up) are not 24 apart.
                assert np.abs(integers - twin).max(initial=0) <= 24
            assert not set(found[1]) & {0, 9}


def standardised(given, claimed):
    """Return the vector's noise over what it is claimed to be, of many seeds."""
    X, y = world()
    quiet = [released(X, y, asked(), _native.SeededNoise(seed, 0)) for seed in range(9)]
    exact = np.median([np.concatenate([numbers, vector]) for numbers, _, _, vector in quiet], axis=0)
    noisy = [released(X, y, given, _native.SeededNoise(seed, 0)) for seed in range(400)]
    return np.array([(np.concatenate([n, v]) - exact) / claimed for n, _, _, v in noisy])


def sigmas_of(gradient, moments, size, rows):
    above, right = np.triu_indices(M)
    diagonal = np.where(above == right, np.sqrt(2) * moments, moments)
    return np.concatenate([rows, np.full(M, gradient), diagonal, [size]])


NOISY = {"sigmas": (5000, 30_000, 900), "row_sigmas": (400, 90_000, 7000)}


def test_every_number_has_the_noise_that_was_asked_for():
    noise = standardised(asked(**NOISY), sigmas_of(*NOISY["sigmas"], NOISY["row_sigmas"]))
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-4
    # Of each number by itself, and with every other: 400 draws move a deviation by 4 % and a correlation by 5 %.
    np.testing.assert_allclose(noise.std(axis=0), 1, atol=0.16)
    assert np.abs(np.corrcoef(noise.T) - np.eye(noise.shape[1])).max() < 0.25


def test_control_less_noise_than_claimed_is_noticed():
    noise = standardised(asked(**NOISY), sigmas_of(5000, 30_000, 1350, NOISY["row_sigmas"]))
    assert np.abs(noise.std(axis=0) - 1).max() > 0.16


def test_secure_noise_is_never_the_same_and_seeded_noise_always():
    X, y = world()
    given = asked(sigmas=(10**6, 10**6, 10**6))
    first, second = (released(X, y, given, _native.SecureNoise())[3] for _ in range(2))
    assert (first != second).all()
    first, second = (released(X, y, given, _native.SeededNoise(4, 5))[3] for _ in range(2))
    assert (first == second).all()
    assert (first != released(X, y, given, _native.SeededNoise(4, 6))[3]).all()


def test_only_secure_noise_protects():
    kinds = (_native.SecureNoise, _native.SeededNoise, _native.RecordingNoise)
    assert [kind.protects for kind in kinds] == [True, False, False]
    X, y = world()
    with pytest.raises(TypeError):
        released(X, y, asked(), np.random.default_rng(1))


class Parts:
    """Sums of rows that live elsewhere, in three parts, as bytes."""

    def __init__(self, given, X, y):
        self.given, self.asked = question(**given), []
        self.parts = [(X[at], y[at]) for at in np.split(np.arange(N), [10, 170])]

    def ask(self, step, *picked):
        self.asked.append(step)
        found = [_native.partial_sums(self.given, step, X, y, None, *picked) for X, y in self.parts]
        assert all(isinstance(one, bytes) for one in found)
        return _native.add_sums(found)

    def numbers(self):
        return self.ask("numbers")

    def candidates(self):
        return self.ask("candidates")

    def further(self, columns, signs):
        return self.ask("further", columns, signs)

    def vector(self, columns, signs):
        return self.ask("vector", columns, signs)


@pytest.mark.parametrize("assumed", [0.0, 0.5])
def test_rows_that_live_elsewhere_give_the_same_bits_and_each_sum_is_asked_for_once(assumed):
    X, y = world()
    given = asked(assumed=assumed, sigmas=(10**5, 10**5, 10**5))
    elsewhere = Parts(given, X, y)
    found = _native.release_sums(elsewhere.given, elsewhere, _native.SeededNoise(1, 0))
    expected = released(X, y, given, _native.SeededNoise(1, 0), present=None)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two)
    assert elsewhere.asked == ["numbers", "candidates", *["further"] * (assumed > 0), "vector"]


def test_what_elsewhere_raises_or_does_not_fit_is_an_error():
    X, y = world()
    elsewhere = Parts(asked(), X, y)

    def fails(error, message, **methods):
        for name, method in methods.items():
            setattr(elsewhere, name, method)
        with pytest.raises(error, match=message):
            _native.release_sums(elsewhere.given, elsewhere, _native.SecureNoise())

    fails(ValueError, "bytes of whole integers", numbers=lambda: b"12345")
    fails(TypeError, "bytes", numbers=lambda: np.zeros(3, np.int64))
    fails(ValueError, "one for each of values", numbers=lambda: bytes(16))
    fails(KeyError, "lost", numbers=lambda: {}["lost"])
    with pytest.raises(ValueError, match="same length"):
        _native.add_sums([bytes(8), bytes(16)])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sigmas": (0, 1, 1)}, "sigmas must be"),
        ({"picks": D, "whiten": np.eye(3 + D)}, "picks must be an integer from 0"),
        ({"pick_scale": 0}, "scale must be"),
        ({"pick_clip": 0.0}, "clip must be"),
        ({"value_clip": np.inf}, "clip must be"),
        ({"radius": 2**15}, "radius must be an integer from 1 to 32767"),
        ({"scale": -1.0}, "scale must be a finite number above 0"),
        ({"cap": np.nan}, "cap must be a finite number above 0"),
        ({"octaves": 0.0}, "octaves must be a finite number above 0"),
        ({"whiten": np.eye(3)}, "whiten must have a row and a column for"),
        ({"loss": "hinge"}, "loss must be"),
        ({"shift": [1.0]}, "weights must have one number"),
        ({"units": np.zeros(D)}, "units must be finite and above 0"),
        ({"columns": [0, D]}, "columns must be different"),
        ({"columns": [0, -1]}, "columns must be different"),
        ({"columns": [3, 3]}, "columns must be different"),
        ({"last_signed": False}, "picks must follow one another"),
    ],
)
def test_bad_input(changes, message):
    X, y = world()
    with pytest.raises(ValueError, match=message):
        released(X, y, asked(**changes), _native.SecureNoise())


def test_flags_that_do_not_fit_are_refused():
    X, y = world()
    with pytest.raises(ValueError, match="present must have one flag"):
        released(X, y, asked(), _native.SecureNoise(), present=np.ones(2, bool))
