"""Kernels for people: floats with a sensitivity and an epsilon, and one signature for a kernel and its twin."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fliphat import kernels, reference
from fliphat.kernels import _units
from fliphat.privacy.accounting import epsilon_from_rho


def signature(function):
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters if p.name not in ("rng", "threads")]


@pytest.mark.parametrize("name", kernels.__all__)
def test_a_kernel_and_its_twin_have_one_signature(name):
    assert signature(getattr(kernels, name)) == signature(getattr(reference, name))


def test_control_another_default_or_name_would_be_noticed():
    assert signature(lambda v, s=1: None) != signature(lambda v, s=2: None)
    assert signature(lambda v, s: None) != signature(lambda v, t: None)
    assert signature(lambda v, *, rng: None) == signature(lambda v, threads=1: None)


def test_there_are_at_most_fifteen_and_each_has_an_example():
    assert len(kernels.__all__) <= 15
    # The kernels of fits are nobody else's: without an underscore there is only what is public.
    assert {name for name in vars(kernels) if not name.startswith("_")} == set(kernels.__all__)
    for name in kernels.__all__:
        assert ">>>" in inspect.getdoc(getattr(kernels, name)), name


numbers = st.floats(-1e6, 1e6, allow_nan=False)


@settings(max_examples=300)
@example(a=0.0, moved=0.0, size=math.nextafter(1.0, 0.0))
@given(a=numbers, moved=st.floats(-1.0, 1.0), size=st.floats(1e-6, 1e6))
def test_rounding_to_the_lattice_never_moves_two_numbers_by_more_than_is_charged(a, moved, size):
    """The sensitivity in units is ceil(D / unit), for any two numbers at most D apart."""
    b = a + moved * size
    unit = _units.unit_of(size)
    first, second = _units.on_lattice(np.array([a, b]), unit)
    assert abs(int(first) - int(second)) <= math.ceil(abs(Fraction(a) - Fraction(b)) / Fraction(unit))
    assert 2**20 <= size / unit < 2**21


def test_control_rounding_halves_to_even_would_move_two_numbers_too_far():
    """Half a unit and one and a half are one unit apart; halves to even makes them 0 and 2."""
    pair = np.array([0.5, 1.5])
    assert np.ptp(np.rint(pair)) == 2 > math.ceil(np.ptp(pair)) == np.ptp(_units.on_lattice(pair, 1.0))


@pytest.mark.parametrize("mechanism", ["exponential", "laplace"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.01])
def test_scales_cost_what_was_asked_for(mechanism, epsilon, delta):
    """The formulas of the docstrings, typed again, and not much noise to spare."""
    picks, moved = 10, 2**16
    scales = _units.scales_for(
        picks, sensitivity=moved, epsilon=epsilon, delta=delta, mechanism=mechanism, value_noise=None
    )
    pick, value = moved / scales.pick, moved / scales.value
    if delta == 0:
        assert scales.value_noise == "laplace"
        assert 0.99 * epsilon < picks * (2 * pick + value) <= epsilon
        return
    rho = picks * (pick**2 * (2 if mechanism == "laplace" else 0.5) + value**2 / 2)
    assert epsilon_from_rho(rho, delta) <= epsilon
    assert rho + 2 * math.sqrt(rho * math.log(1 / delta)) > 0.99 * epsilon


def test_peel_in_plain_units_is_peel_in_integers():
    v = np.array([0.3, -50.0, 2.0, 40.0, 0.0])
    support, values = kernels.peel(v, 2, epsilon=50.0, delta=1e-3, sensitivity=0.5)
    assert sorted(support) == [1, 3] and values.dtype == np.float64
    np.testing.assert_allclose(values, v[support], atol=20)
    unit = _units.unit_of(0.5)
    np.testing.assert_array_equal(values / unit, np.round(values / unit))  # on the lattice, whatever v was
    whole, given = kernels.peel((v * 10).astype(int), 2, epsilon=50.0, delta=1e-3, sensitivity=5)
    assert sorted(whole) == [1, 3] and given.dtype == np.int64
    same, _ = kernels.peel(v.astype(np.float32), 2, pick_scale=0.1, value_scale=0.1)
    assert sorted(same) == [1, 3]


@pytest.mark.parametrize("mechanism", ["exponential", "laplace"])
def test_kernel_and_twin_have_the_same_distribution_in_plain_units(mechanism):
    v, rng = np.array([1.0, 0.7, 0.2, -0.9]), np.random.default_rng(0)
    how = {"epsilon": 2.0, "delta": 0.01, "sensitivity": 0.3, "mechanism": mechanism}
    ours = np.array([kernels.peel(v, 1, **how)[0][0] for _ in range(4000)])
    twins = np.array([reference.peel(v, 1, **how, rng=rng)[0][0] for _ in range(4000)])
    difference = np.bincount(ours, minlength=4) - np.bincount(twins, minlength=4)
    assert np.abs(difference).max() < 5 * math.sqrt(2 * 4000 / 4)


def test_the_laplace_mechanism_pays_for_its_lattice():
    for count, epsilon, moved in [(1, 1.0, 3.0), (1000, 0.01, 1e-3), (5, 50.0, 1e9)]:
        scale = kernels._laplace.mechanism_scale(count, None, epsilon, moved)
        lattice = _units.unit_of(scale)
        assert (moved + count * lattice) / scale <= epsilon < 1.2 * (moved + count * lattice) / scale
    noise = kernels.laplace_mechanism(np.zeros(20_000), epsilon=1.0, sensitivity=2.0)
    assert np.abs(noise).mean() == pytest.approx(2.0, rel=0.08)


def test_second_moments_in_plain_units():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    wide = kernels.second_moments(X, norm=100.0)
    np.testing.assert_allclose(wide, X.T @ X, rtol=0.02, atol=0.5)
    cut = kernels.second_moments(X, norm=1.0)
    np.testing.assert_array_equal(cut, reference.second_moments(X, norm=1.0))
    u = X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    np.testing.assert_allclose(cut, u.T @ u, atol=0.05)
    for row in (np.full((1, 5), 1e9), np.zeros((1, 5))):
        moved = kernels.second_moments(np.vstack([X[:-1], row]), norm=1.0) - cut
        assert np.linalg.norm(moved) <= math.sqrt(2)
    with_one = kernels.second_moments(X, norm=100.0, one=1.0)
    assert with_one[-1, -1] == pytest.approx(200, rel=0.02)


def test_niht_takes_a_budget():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 20))
    y = X[:, 3] - X[:, 7]
    public = {"sparsity": 2, "iterations": 2, "step_size": 1.0, "l1_radius": 3.0, "clip": 2.0}
    theta = kernels.niht(X, y, **public, epsilon=3.0, delta=1e-5)
    twin = reference.niht(X, y, **public, epsilon=3.0, delta=1e-5, rng=rng)
    assert set(np.flatnonzero(theta)) == set(np.flatnonzero(twin)) == {3, 7}
    assert np.count_nonzero(kernels.niht(X, y, **public, epsilon=5.0)) == 2  # pure


V = np.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kernels.peel(V, 1), "give pick_scale and value_scale, or epsilon and sensitivity"),
        (lambda: kernels.peel(V, 1, epsilon=1.0), "epsilon needs sensitivity"),
        (lambda: kernels.peel(V, 1, epsilon=1.0, sensitivity=1.0, pick_scale=1), "epsilon needs sensitivity"),
        (lambda: kernels.peel(V, 1, epsilon=1.0, sensitivity=-1.0), "sensitivity must be a finite number"),
        (lambda: kernels.peel(V, 1, epsilon=1.0, sensitivity=1.0, delta=2.0), "delta must be"),
        (
            lambda: kernels.peel(V, 1, epsilon=1.0, sensitivity=1.0, value_noise="gaussian"),
            "value_noise must be 'laplace' with delta = 0",
        ),
        (lambda: kernels.peel(V, 1, epsilon=1e-9, sensitivity=1.0), "noise scale in lattice units must be"),
        (lambda: kernels.peel([1, 2], 1, pick_scale=0.5, value_scale=1), "pick_scale must be an integer"),
        (lambda: kernels.laplace_mechanism(V), "give scale, or epsilon and sensitivity"),
        (lambda: kernels.laplace_mechanism(V, 1.0, epsilon=1.0), "give scale, or epsilon and sensitivity"),
        (lambda: kernels.laplace_mechanism(V, epsilon=1e-6, sensitivity=1.0), "epsilon must be above 2"),
        (lambda: kernels.second_moments(V[None]), "give norm, or radius and scale"),
        (lambda: kernels.second_moments(V[None], norm=1.0, radius=2), "give norm, or radius and scale"),
        (
            lambda: kernels.niht(
                V[None], [1.0], sparsity=1, iterations=1, step_size=1.0, l1_radius=1.0, clip=1.0
            ),
            "give epsilon and delta, or pick_scale and value_scale",
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
