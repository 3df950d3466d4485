"""The step a fit learns by: equal to its twin up to rounding, with the same decisions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fliphat.kernels import _fits as fit_kernels
from fliphat.reference import _fits as fit_twins

#: Both add the same few numbers in another order, and solve the same equations by other means. With condition
#: numbers up to about 1e5 here, a bit of rounding (1e-16) grows to about 1e-11 of the largest number.
TOLERANCE = 1e-9


def problem(seed, k, p, noise=0.05, moment_noise=0.05, one=1.0, correlated=0.3):
    """Return arguments of a step: k columns known, p new ones."""
    rng = np.random.default_rng(seed)
    known, m = 1 + k, 1 + k + p
    true = np.full((m, m), correlated)
    np.fill_diagonal(true, 1.0)
    true[0, 1:] = true[1:, 0] = 0.1

    def noisy(size, deviation):
        errors = rng.standard_normal((size, size)) * deviation
        return true[:size, :size] + errors + errors.T

    root = rng.standard_normal((known, known)) * 0.05
    unit = np.ones(m)
    unit[0] = one
    fresh = noisy(m, moment_noise) * np.outer(unit, unit)
    rule = fit_kernels.KalmanRule(
        one=one,
        weight=(2 * moment_noise) ** -2,
        spread=0.05 * one**4,
        sampling=0.001 * one**4,
        faint=1e-12,
        smallest=0.15,
        gain=0.65,
        noise=noise**2,
        doubt=0.16,
        drift_of_one=0.003,
        drift=0.002,
        prune=0.8,
        stand_out=2.0,
    )
    before = rng.normal(size=known), root @ root.T + 0.01 * np.eye(known), noisy(known, 0.03)
    precision = rng.uniform(0, 500, (known, known))
    released = rng.normal(size=m), fresh, 0.4 * rng.choice([-1.0, 1.0], p)
    whiten = np.linalg.inv(np.linalg.cholesky(true))
    public = {"whiten": whiten, "typical": true * np.outer(unit, unit), "rule": rule, "most": max(1, k)}
    return (*before, (precision + precision.T) / 2, *released), public


@given(
    seed=st.integers(0, 2**32),
    k=st.integers(0, 12),
    p=st.integers(0, 6),
    noise=st.sampled_from([0.01, 0.3, 3.0]),
    moment_noise=st.sampled_from([0.01, 0.2, 1.0]),
    one=st.sampled_from([0.1, 1.0, 4.0]),
    correlated=st.sampled_from([0.0, 0.3, 0.8]),
)
def test_equal_to_the_twin_up_to_rounding(seed, k, p, noise, moment_noise, one, correlated):
    arguments, public = problem(seed, k, p, noise, moment_noise, one, correlated)
    found, twin = fit_kernels.kalman_step(*arguments, **public), fit_twins.kalman_step(*arguments, **public)
    # Decisions are made on numbers that differ by rounding only: a tie would need two of them to be equal.
    np.testing.assert_array_equal(found.keep, twin.keep)
    assert found.found == twin.found
    for name in ("theta", "covariance", "moments", "precision", "explained", "unknown"):
        one_side, other = np.asarray(getattr(found, name)), np.asarray(getattr(twin, name))
        assert one_side.shape == other.shape
        size = max(1.0, float(np.abs(other).max(initial=0.0)))
        np.testing.assert_allclose(one_side, other, rtol=0, atol=TOLERANCE * size, err_msg=name)
    assert np.array_equal(found.covariance, found.covariance.T)


def believed(public):
    """Return the same with moments that are believed as they are: noise in them makes negative eigenvalues."""
    return {**public, "rule": public["rule"]._replace(weight=1e6, spread=1e6)}


@pytest.mark.parametrize(("k", "p"), [(1, 1), (3, 2), (40, 20)])
def test_moments_with_negative_eigenvalues(k, p):
    arguments, public = problem(3, k, p, noise=0.1, moment_noise=2.0)
    assert np.linalg.eigvalsh(arguments[5])[0] < 0
    public = believed(public)
    found, twin = fit_kernels.kalman_step(*arguments, **public), fit_twins.kalman_step(*arguments, **public)
    np.testing.assert_array_equal(found.keep, twin.keep)
    np.testing.assert_allclose(found.theta, twin.theta, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(found.covariance, twin.covariance, rtol=0, atol=TOLERANCE)


def test_a_step_without_raised_eigenvalues_would_fail_these_tests():
    # The control: the same problem with eigenvalues raised less is another one.
    arguments, public = problem(3, 8, 4, moment_noise=1.0)
    public = believed(public)
    other = {**public, "rule": public["rule"]._replace(smallest=0.1)}
    raised, plain = (
        fit_kernels.kalman_step(*arguments, **public),
        fit_kernels.kalman_step(*arguments, **other),
    )
    assert abs(raised.explained - plain.explained) > 1e3 * TOLERANCE


def test_the_largest_always_stays_and_never_more_than_asked_for():
    arguments, public = problem(5, 6, 4, noise=1e3)
    for most in (1, 2, 5):
        step = fit_kernels.kalman_step(*arguments, **{**public, "most": most})
        assert step.keep[0]
        assert 1 <= step.keep[1:].sum() <= most


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: np.zeros(2)}, "must be square"),
        ({1: np.zeros(2)}, "covariance must have 2 dimension"),
        ({4: np.zeros(3)}, "must be square"),
        ({5: np.full((6, 6), np.nan)}, "finite"),
        ({6: [0.0]}, "must be square"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    arguments, public = problem(1, 3, 2)
    given = [change.get(place, argument) for place, argument in enumerate(arguments)]
    with pytest.raises(ValueError, match=message):
        fit_kernels.kalman_step(*given, **public)
