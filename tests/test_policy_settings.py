"""Arguments, their messages, and the one table of defaults."""

import math

import numpy as np
import pytest

from fliphat import FLIPHAT
from fliphat.policies import schedule
from fliphat.policies.plan import Planner
from fliphat.privacy import PrivacyWarning, calibrate, rho_from_epsilon

GOOD = {"dim": 400, "sparsity": 10, "epsilon": 1.0, "delta": 0.01}
BAD = [
    ({"dim": 0}, ValueError, "dim must be an integer from 1 to"),
    ({"dim": 4.0}, TypeError, "dim must be an integer, got float"),
    ({"sparsity": 401}, ValueError, "sparsity must be an integer from 1 to 400, got 401"),
    ({"epsilon": 0}, ValueError, "epsilon must be a finite number above 0"),
    ({"delta": 1.0}, ValueError, "delta must be at least 0 and below 1"),
    ({"episodes": "tripling"}, ValueError, "episodes must be one of 'planned', 'doubling'"),
    ({"warm_start": 1}, TypeError, "warm_start must be True or False, got int"),
    ({"first_episode": 0}, ValueError, "first_episode must be an integer from 1"),
    (
        {"first_episode": 5, "episodes": "doubling"},
        ValueError,
        "first_episode is only for episodes='planned'",
    ),
    ({"calibration": "hoped"}, ValueError, "calibration must be one of 'proven', 'paper'"),
    ({"mechanism": "gaussian"}, ValueError, "mechanism must be one of 'exponential', 'laplace'"),
    ({"loss": "hinge"}, ValueError, "loss must be one of 'squared', 'logistic'"),
    ({"rounds_per_user": 0}, ValueError, "rounds_per_user must be an integer from 1"),
    ({"context_scale": -1}, ValueError, "context_scale must be a finite number above 0"),
    ({"reward_scale": np.inf}, ValueError, "reward_scale must be a finite number above 0"),
    ({"gradient_clip": 0}, ValueError, "gradient_clip must be a finite number above 0"),
    ({"reward_clip": "1"}, TypeError, "reward_clip must be a real number, got str"),
    ({"l1_radius": 0}, ValueError, "l1_radius must be a finite number above 0"),
    ({"context_bound": 3.0}, ValueError, "context_bound is only for calibration='paper'"),
    ({"iterations": -1}, ValueError, "iterations must be an integer from 0"),
    ({"iterations": 1.5}, TypeError, "iterations must be an integer, got float"),
    ({"iterations": []}, ValueError, "iterations must have at least one number"),
    ({"step_size": [1.0, 0.0]}, ValueError, "step_size must be a finite number above 0"),
    ({"dtype": "float16"}, ValueError, "dtype must be float32 or float64, got 'float16'"),
    ({"dtype": "nonsense"}, ValueError, "dtype must be float32 or float64, got 'nonsense'"),
    ({"seed": -1}, ValueError, "seed must be an integer from 0"),
    ({"durability": "none"}, ValueError, "durability must be one of 'full', 'batch'"),
    ({"calibration": "paper", "mechanism": "exponential"}, ValueError, "mechanism must be 'laplace' for"),
    (
        {"calibration": "paper", "loss": "logistic"},
        ValueError,
        "loss must be 'squared' for calibration='paper'",
    ),
    (
        {"calibration": "paper", "gradient_clip": 1.0},
        ValueError,
        "gradient_clip is only for calibration='proven'",
    ),
    ({"calibration": "paper", "delta": 0.0}, ValueError, "delta must be above 0"),
    ({"step_size": 1e-300, "gradient_clip": 1e-200}, ValueError, r"step_size \* clip"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_messages_name_the_argument_and_its_rule(change, error, message):
    with pytest.raises(error, match=message):
        FLIPHAT(**GOOD | change)


def test_the_table_of_defaults():
    s = FLIPHAT(**GOOD, context_scale=2.0, reward_scale=3.0)._settings
    assert s.gradient_clip == pytest.approx(1.3 * 6) and s.l1_radius == pytest.approx(2 * math.sqrt(10) * 1.5)
    assert (s.episodes, s.warm_start, s.mechanism, s.loss, s.dtype) == (
        "planned", True, "exponential", "squared", "float32",
    )  # fmt: skip
    assert s.reward_clip is None and s.rounds_per_user == 1
    assert FLIPHAT(**GOOD, loss="logistic")._settings.l1_radius == pytest.approx(8 * math.sqrt(10))
    with pytest.warns(PrivacyWarning):
        s = FLIPHAT(**GOOD, calibration="paper")._settings
    assert s.mechanism == "laplace" and s.context_bound == pytest.approx(math.sqrt(2 * math.log(400)))


def prototype(q):
    """The prototype's schedule at d = 400, s = 10: cold M and eta."""
    return (1, 0.5) if q < 220 else (2, 1.0) if q < 1200 else (3, 1.0)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 10.0])
def test_at_the_prototypes_size_the_schedule_is_the_prototypes(epsilon):
    rho = rho_from_epsilon(epsilon, 0.01)
    planner = Planner(FLIPHAT(**GOOD | {"epsilon": epsilon}, warm_start=False)._settings)
    assert planner.length(0) == pytest.approx(140 / math.sqrt(rho), rel=0.05)
    for episode in range(12):
        plan = planner.plan(episode)
        q = plan.rows * math.sqrt(rho)
        if min(abs(math.log(q / 220)), abs(math.log(q / 1200))) > 0.02:
            assert (plan.iterations, plan.step_size) == prototype(q)


def test_warm_fits_take_one_iteration_fewer_once_the_last_estimate_is_good():
    cold = Planner(FLIPHAT(**GOOD, warm_start=False)._settings)
    warm = Planner(FLIPHAT(**GOOD)._settings)
    assert not warm.plan(0).warm and warm.plan(0) == cold.plan(0)
    assert not warm.plan(1).warm  # the first estimate is found just above the noise
    for episode in range(2, 8):
        ours, theirs = warm.plan(episode), cold.plan(episode)
        assert ours.warm and ours.iterations == max(1, theirs.iterations - 1) and ours.step_size == 1.0


def test_noise_is_what_calibration_says_and_grows_with_rounds_per_user():
    for k in (1, 4):
        planner = Planner(FLIPHAT(**GOOD, rounds_per_user=k, first_episode=1000)._settings)
        plan = planner.plan(0)
        assert plan.noise == calibrate(
            epsilon=1.0, delta=0.01, rows=1000, dim=400, sparsity=10, iterations=plan.iterations,
            step_size=plan.step_size, l1_radius=2 * math.sqrt(10), clip=1.3, rounds_per_user=k,
        )  # fmt: skip
    assert Planner(FLIPHAT(**GOOD, rounds_per_user=4)._settings).length(0) > 3.9 * schedule.first_episode(
        2 * math.sqrt(10 / rho_from_epsilon(1.0, 0.01)), 400
    )


def test_first_episodes_are_sane_over_a_wide_range():
    for dim, sparsity in ((1, 1), (2, 1), (100, 100), (509_256, 20), (2**31 - 1, 5)):
        for epsilon, delta in ((0.1, 1e-6), (1.0, 0.0), (100.0, 0.5)):
            planner = Planner(FLIPHAT(dim=dim, sparsity=sparsity, epsilon=epsilon, delta=delta)._settings)
            assert 10 <= planner.length(0) < 2**40
            assert planner.plan(0).iterations >= 1


def test_schedules_may_be_numbers_sequences_or_functions():
    for given, expected in ((2, [2, 2, 2, 2]), ([1, 3], [1, 3, 3, 3]), (lambda n: n // 4, [1, 2, 4, 8])):
        planner = Planner(FLIPHAT(**GOOD, first_episode=4, iterations=given)._settings)
        assert [planner.plan(episode).iterations for episode in range(4)] == expected
    planner = Planner(FLIPHAT(**GOOD, first_episode=4, step_size=lambda n: 1 / n)._settings)
    assert [planner.plan(episode).step_size for episode in range(3)] == [1 / 4, 1 / 8, 1 / 16]
    with pytest.raises(ValueError, match="iterations must be an integer from 0"):
        FLIPHAT(**GOOD, iterations=lambda n: -n)


def test_history_tells_public_facts():
    policy = FLIPHAT(**GOOD, first_episode=100, context_scale=2.0)
    for _ in range(2):
        policy.select_batch(np.ones((policy.remaining, 1, 400), np.float32))
    policy.select(np.ones((1, 400)))
    first, second = policy.history
    assert (first.episode, first.first_round, first.rounds) == (0, 1, 100)
    assert (second.episode, second.first_round, second.rounds) == (1, 101, 200)
    noise = Planner(policy._settings).plan(0).noise
    assert first.noise_scale == first.step_size * noise.value_gradient_noise
    assert first.smallest_coefficient == pytest.approx(noise.pick_gradient_noise * math.log(400) / 4)
    assert len(first.estimate.indices) <= 10 and first.estimate.dim == 400
    assert "estimate" not in repr(first)


def test_pure_privacy_is_possible():
    policy = FLIPHAT(dim=5, sparsity=1, epsilon=1.0, delta=0.0, first_episode=3)
    policy.select_batch(np.ones((3, 2, 5))), policy.select(np.ones((2, 5)))
    assert policy.guarantee.proven and policy.guarantee.value_noise == "laplace"
    assert "pure joint differential privacy" in str(policy.guarantee)
