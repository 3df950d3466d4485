"""What the native worlds refuse by themselves, and invariants over random settings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliphat import _native
from fliphat.environments import (
    AR1,
    Blocks,
    Equicorrelated,
    HeavyTailed,
    Independent,
    SparseLinear,
    TruncatedNormal,
    Uniform,
)

NOTHING = (np.empty(0, np.int64), np.empty(0))


def linear(**changes):
    options = {
        "dim": 4,
        "arms": 2,
        "truth": (np.array([1]), np.array([1.0])),
        "contexts": "independent",
        "shape": 0.0,
        "scale": 1.0,
        "reward": "gaussian",
        "noise_scale": 0.1,
        "seed": 1,
    }
    return _native.LinearWorld(**(options | changes))


def clicks(**changes):
    options = {
        "dim": 10,
        "arms": 2,
        "truth": NOTHING,
        "intercept": 0.0,
        "cardinalities": [3, 5],
        "tokens": 1,
        "vocabulary": 20,
        "power": 1.0,
        "seed": 1,
    }
    return _native.ClickWorld(**(options | changes))


def pairs(columns, values):
    return np.array(columns, np.int64), np.array(values, float)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: linear(truth=pairs([4], [1.0])), "columns must increase and stay below"),
        (lambda: linear(truth=pairs([-1], [1.0])), "columns must be one for each value, none below 0"),
        (lambda: linear(truth=pairs([1, 2], [1.0])), "columns must be one for each value"),
        (lambda: linear(contexts="other"), 'unknown contexts "other"'),
        (lambda: linear(reward="other"), 'unknown reward "other"'),
        (lambda: linear(contexts="ar1", shape=1.0), "correlation must be below 1"),
        (lambda: linear(contexts="equicorrelated", shape=float("nan")), "correlation must be below 1"),
        (lambda: linear(contexts="equicorrelated", width=0), "correlated columns must have at least one"),
        (
            lambda: linear(contexts="truncated", shape=0.0),
            "bound of truncated coordinates must be at least 0.1",
        ),
        (lambda: linear(arms=0), "at least one arm and one column"),
        (lambda: linear(scale=0.0), "scale must be a finite number above 0"),
        (lambda: linear(truth=NOTHING, margin=(1.0, None)), "a margin needs a truth that is not zero"),
        (
            lambda: linear().play(0, 2, NOTHING, np.zeros((3, 4), np.float32)),
            "rows must have one row for each round",
        ),
        (
            lambda: linear().play(0, 2, NOTHING, None, (np.zeros(3), np.zeros(4))),
            "offsets must have one value",
        ),
        (
            lambda: linear().draw(0, np.zeros((2, 2, 3), np.float32)),
            "contexts must have one row for each arm",
        ),
        (lambda: clicks(cardinalities=[3, 8]), "fields and buckets must add up"),
        (lambda: clicks(cardinalities=[3, 0]), "fields and buckets must add up"),
        (lambda: clicks(cardinalities=[5, 5]), "fields and buckets must add up"),
        (lambda: clicks(vocabulary=0), "at least one arm and one feature"),
        (lambda: clicks(power=float("inf")), "power and intercept must be finite"),
        (lambda: clicks().play(0, 2**31, NOTHING), "too many rounds for one call"),
    ],
)
def test_native_worlds_check_what_safety_rests_on(make, message):
    with pytest.raises(ValueError, match=message):
        make()


DESIGNS = st.one_of(
    st.floats(-0.99, 0.99).map(AR1),
    st.floats(0, 0.99).map(Equicorrelated),
    st.builds(Blocks, st.floats(0, 0.99), st.integers(1, 50)),
    st.just(Independent()),
    st.just(HeavyTailed()),
    st.just(Uniform()),
    st.floats(0.2, 5).map(TruncatedNormal),
)


@settings(max_examples=60)
@given(
    data=st.data(),
    contexts=DESIGNS,
    dim=st.integers(1, 40),
    arms=st.integers(1, 6),
    seed=st.integers(0, 2**64 - 1),
)
def test_any_setting_plays_consistently(data, contexts, dim, arms, seed):
    columns = st.lists(st.integers(0, dim - 1), unique=True).map(sorted)
    truth = data.draw(columns)
    known = data.draw(columns)
    env = SparseLinear(
        dim, arms, coefficients=pairs(truth, np.linspace(0.5, 1, len(truth))), contexts=contexts, seed=seed
    )
    estimate = pairs(known, np.linspace(-1, 1, len(known)) + 0.01)
    whole = env.play(9, estimate)
    assert np.isfinite(whole.rows).all() and np.isfinite(whole.rewards).all()
    assert (whole.regret >= 0).all() and ((whole.arms >= 0) & (whole.arms < arms)).all()
    cut = data.draw(st.integers(0, 9))
    env.reset()
    parts = [env.play(cut, estimate), env.play(9 - cut, estimate)]
    np.testing.assert_array_equal(whole.rows, np.concatenate([part.rows for part in parts]))
    env.reset()
    # The truth's coordinates, and so the means, do not depend on what the estimate looks at.
    np.testing.assert_array_equal(env.draw(9).settle(whole.arms).rewards, whole.rewards)
