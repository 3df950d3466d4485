"""What only one fit has: checked where it is given."""

import numpy as np
import pytest

from fliphat.fit.options import Iht, Pursuit, named


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (Pursuit, {"intercept": 1.5}, "intercept must be True or False"),
        (Pursuit, {"column_scales": [0.0] * 4}, "1e-30"),
        (Pursuit, {"column_scales": [[1.0]]}, "one size for each column"),
        (Iht, {"episodes": "daily"}, "episodes must be one of 'planned', 'doubling', got 'daily'"),
        (Iht, {"mechanism": "gumbel"}, "mechanism must be one of"),
        (Iht, {"warm_start": 1}, "warm_start must be True or False"),
        (Iht, {"growth": 0.5}, "growth"),
        (Iht, {"growth": 2, "episodes": "doubling"}, "growth is only for episodes='planned'"),
        (Iht, {"gradient_clip": 0}, "gradient_clip"),
        (Iht, {"l1_radius": -1}, "l1_radius"),
        (Iht, {"iterations": [1, -1]}, "iterations"),
        (Iht, {"iterations": []}, "at least one number"),
        (Iht, {"step_size": 0.0}, "step_size"),
        (Iht, {"start": np.zeros(3)}, "not all of them 0"),
        (Iht, {"start": np.ones(3), "warm_start": False}, "start needs"),
    ],
)
def test_messages(make, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make(**given)


def test_files_and_command_lines_name_a_fit():
    assert named(None) == named("pursuit") == Pursuit()
    assert named("iht", iterations=[1, 2]).iterations == (1, 2)
    with pytest.raises(ValueError, match="fit must be one of 'pursuit', 'iht', got 'lasso'"):
        named("lasso")
    with pytest.raises(ValueError, match="fit 'pursuit' has no 'growth'; it has intercept, column_scales"):
        named("pursuit", growth=2)
