"""What dense environments refuse, in words that name the argument, its range and the value given."""

import numpy as np
import pytest

from fliphat.environments import (
    AR1,
    Blocks,
    Equicorrelated,
    OneHot,
    SparseLinear,
    TruncatedNormal,
    sparse_truth,
)

DIM = 12


def world(contexts, seed):
    return SparseLinear(DIM, 3, sparsity=3, contexts=contexts, seed=seed)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "dim must be an integer from 1 to 2147483647, got 0"),
        ({"arms": 0}, "arms must be an integer from 1 to 1048576, got 0"),
        ({"seed": -1}, "seed must be an integer from 0 to 18446744073709551615, got -1"),
        ({"dim": 3, "sparsity": 4}, "sparsity must be an integer from 0 to 3, got 4"),
        ({"noise": "cauchy"}, "noise must be one of 'gaussian', 'uniform', 'rademacher', got 'cauchy'"),
        ({"reward": "counts"}, "reward must be one of 'linear', 'binary', got 'counts'"),
        ({"noise_scale": -0.1}, r"noise_scale must be a number from 0 to 1e\+300, got -0.1"),
        ({"context_scale": 0.0}, "context_scale must be a finite number above 0, got 0.0"),
        ({"dim": 3, "coefficients": [1.0, 2.0]}, r"coefficients must have shape \(3,\), got \(2,\)"),
        ({"dim": 3, "coefficients": [1.0, np.nan, 0.0]}, "coefficients must be finite"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        SparseLinear(**options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AR1(1.0), "phi must be above -1 and below 1, got 1.0"),
        (lambda: Blocks(1.0), "rho must be at least 0 and below 1, got 1.0"),
        (lambda: Blocks(0.5, width=0), "width must be an integer from 1"),
        (lambda: OneHot(dim=10, groups=11), "groups must be an integer from 1 to 10, got 11"),
        (lambda: SparseLinear(column_scales=[1.0]), r"column_scales must have shape \(400,\), got \(1,\)"),
        (lambda: SparseLinear(3, column_scales=[1.0, 0.0, 1.0]), "column_scales must be finite and above 0"),
        (
            lambda: SparseLinear(reward="binary", reward_offset=2.0),
            "context_mean and reward_offset must be 0 for binary rewards, got 0.0 and 2.0",
        ),
        (lambda: Equicorrelated(-0.1), "rho must be at least 0 and below 1, got -0.1"),
        (lambda: TruncatedNormal(0.01), r"bound must be a number from 0.1 to 1e\+06, got 0.01"),
        (
            lambda: sparse_truth(5, 2, positions="last"),
            "positions must be one of 'first', 'random', got 'last'",
        ),
        (lambda: sparse_truth(5, 2, low=2.0), "low must be at most high, got 2.0 and 1.0"),
        (lambda: world(AR1(), 0).play(-1), "rounds must be an integer from 0 to"),
        (
            lambda: world(AR1(), 0).play(1, ([3, 2], [1.0, 1.0])),
            "estimate's columns must be strictly ascending from 0 to 11",
        ),
        (
            lambda: world(AR1(), 0).play(1, ([12], [1.0])),
            "estimate's columns must be strictly ascending from 0 to 11",
        ),
        (
            lambda: world(AR1(), 0).play(1, ([1, 2], [1.0])),
            r"estimate must have one value for each column, got shapes \(2,\)",
        ),
        (lambda: world(AR1(), 0).play(1, ([1], [np.inf])), "estimate must be finite"),
        (
            lambda: world(AR1(), 0).play(3, out=np.empty((2, DIM), np.float32)),
            r"out must have shape \(at least 3, 12\), got \(2, 12\)",
        ),
        (
            lambda: world(AR1(), 0).play(3, out=np.empty((DIM, 3), np.float32).T),
            "out must be writeable, aligned and in C order",
        ),
        (lambda: world(AR1(), 0).draw(2).settle([0]), "arms must hold one integer for each of 2 rounds"),
        (
            lambda: world(AR1(), 0).draw(2).settle([0.0, 1.0]),
            "arms must hold one integer for each of 2 rounds, got dtype float64",
        ),
        (lambda: world(AR1(), 0).draw(2).settle([0, 3]), "arms must be from 0 to 2, got values from 0 to 3"),
        (lambda: world(AR1(), 0).reset(-1), "round must be an integer from 0"),
    ],
)
def test_bad_calls_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SparseLinear(contexts="ar1"), "contexts must be one of AR1, Blocks, .* got str"),
        (
            lambda: world(AR1(), 0).play(1, ([1.0], [1.0])),
            "estimate's columns must be integers, got dtype float64",
        ),
        (
            lambda: world(AR1(), 0).play(1, out=np.empty((1, DIM))),
            "out must be an array of float32, got float64",
        ),
        (lambda: world(AR1(), 0).play(1, out=[[0.0]]), "out must be an array of float32, got list"),
    ],
)
def test_wrong_types_are_named(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_a_refused_call_plays_no_round():
    env = world(AR1(), 0)
    with pytest.raises(ValueError):
        env.play(3, np.zeros(DIM + 1))
    with pytest.raises(ValueError):
        env.play(3, out=np.empty((1, DIM), np.float32))
    assert env.round == 0
