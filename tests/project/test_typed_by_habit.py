"""What people type by habit: completion, other libraries' names, a frame of one row, notebooks."""

import warnings

import numpy as np
import pytest

import fliphat
from fliphat.policies.health import HealthWarning


def policies():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fliphat.privacy.guarantee.PrivacyWarning)
        yield fliphat.FLIPHAT(dim=4, sparsity=2, epsilon=1.0, delta=1e-3, seed=1)
        yield fliphat.PrivateLinear(2, dim=4, epsilon=1.0, delta=1e-3, context_norm=1.0, seed=1)


def test_completion_shows_what_users_call_and_nothing_else():
    shown = dir(fliphat)
    assert {"FLIPHAT", "simulate", "plan", "contexts", "environments", "evaluation"} <= set(shown)
    assert not {"Any", "import_module", "TYPE_CHECKING"} & set(shown)
    assert all(getattr(fliphat, name) is not None for name in shown)
    assert fliphat.evaluation.replay and fliphat.contexts.Encoder


@pytest.mark.parametrize(
    ("habit", "hint"),
    [
        ("fit", "it has update(decision, reward), a round at a time"),
        ("learn", "it has update(decision, reward)"),
        ("predict", "it has select(contexts), which plays a round, and estimate"),
        ("pull", "it has select(contexts), whose Decision.arm is the arm to play"),
    ],
)
def test_names_of_other_libraries_are_answered(habit, hint):
    for policy in policies():
        with pytest.raises(AttributeError) as error:
            getattr(policy, habit)
        assert f"{type(policy).__name__!r} object has no attribute {habit!r}; {hint}" in str(error.value)
        with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
            _ = policy.nothing


def test_a_frame_of_one_row_is_one_context():
    pandas = pytest.importorskip("pandas")
    _, policy = policies()
    frame = pandas.DataFrame({"a": [0.1], "b": [0.2], "c": [0.3], "d": [0.4]})
    assert policy.select(frame).valid and policy.select(frame.iloc[0]).valid
    with pytest.raises(ValueError, match="must have the columns of the first DataFrame"):
        policy.select(frame[["a", "b", "c"]])


def test_policies_and_guarantees_show_themselves_in_notebooks():
    for policy in policies():
        shown = policy._repr_html_()
        assert type(policy).__name__ in shown and "fliphat-card" in shown and "<script" not in shown
        assert "not proven" in policy.guarantee._repr_html_()  # it has a seed
    # Colours are those of where it is shown: light or dark.
    assert "color:#" not in shown and "currentColor" in shown


def test_contexts_that_can_not_be_used_are_told_once_and_of_nobody():
    for policy in policies():
        contexts = np.full((2, 4) if isinstance(policy, fliphat.FLIPHAT) else 4, np.nan)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            policy.select(contexts, user="somebody")
            policy.select(contexts, user="somebody")
        assert told[0].category is HealthWarning and "played uniformly" in str(told[0].message)
        assert len(told) == 1 and "somebody" not in str(told[0].message)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            policy.select(np.zeros_like(contexts), user="other")


def test_a_delta_that_promises_nothing_is_told():
    numbers = {"dim": 4, "sparsity": 2, "epsilon": 1.0, "seed": 1}
    with pytest.warns(fliphat.privacy.guarantee.PrivacyWarning, match="delta = 0.5 is large"):
        fliphat.FLIPHAT(**numbers, delta=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fliphat.FLIPHAT(**numbers, delta=0.01)
