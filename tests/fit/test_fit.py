"""The one private fit: what it is charged for is what it does, and nothing but its plan decides."""

import ast
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import fliphat
from flat_options import nested
from fliphat import FLIPHAT, Iht, PrivateSparseRegressor
from fliphat.fit import make_fit
from fliphat.fit.iht import fit as iht
from fliphat.fit.iht import run
from fliphat.fit.iht.fit import Budget, EmptyPlan, IhtFit, IhtPlan
from fliphat.fit.known import KnownEstimate, SparseEstimate
from fliphat.fit.settings import Settings
from fliphat.kernels import _niht
from fliphat.privacy import calibrate
from fliphat.privacy.scales import NoiseScales

DIM = 6
PUBLIC = {"dim": DIM, "sparsity": 3, "epsilon": 1.0, "delta": 0.01}


def fit_of(**changes):
    return FLIPHAT(**nested(PUBLIC | {"first_episode": 20, "seed": 5, "warm_start": True} | changes))._fit


def first_plan(**changes):
    fit = fit_of(**changes)
    return fit.plan(0, fit.begin())


# Charged and done


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"delta": 0.0},
        {"rounds_per_user": 4},
        {"iterations": lambda n: 7, "mechanism": "laplace"},
        {"warm_start": False, "gradient_clip": 0.3},
        {"loss": "logistic", "reward_clip": 0.5},
    ],
)
def test_the_kernel_is_told_what_the_noise_was_calibrated_for(changes, monkeypatch):
    told = []
    monkeypatch.setattr(
        _niht._native, "niht_fit", lambda rows, y, start, settings, *rest: told.append(settings)
    )
    made, real = [], _niht._native.FitSettings
    monkeypatch.setattr(_niht._native, "FitSettings", lambda **given: made.append(given) or real(**given))
    fit, known = fit_of(**changes), fit_of(**changes).begin()
    for episode in range(4):
        plan = fit.plan(episode, known)
        noise = plan.noise
        with pytest.raises(TypeError):  # the kernel was replaced and returns nothing
            fit.run(plan, np.zeros((plan.rows, DIM)), np.zeros(plan.rows), np.ones(plan.rows, bool), known)
        # The claim is the policy's own, and the noise, which proves its claim when made, is what runs.
        assert (noise.epsilon, noise.delta) == (1.0, changes.get("delta", 0.01))
        assert noise.rounds_per_user == changes.get("rounds_per_user", 1) and noise.rows == plan.rows
        for name in (
            "sparsity",
            "iterations",
            "clip",
            "pick_scale",
            "value_scale",
            "mechanism",
            "value_noise",
        ):
            assert made[-1][name] == getattr(noise, name), name
        assert made[-1]["noiseless"] is False
        if "iterations" in changes:
            assert noise.iterations == 7
        known = KnownEstimate(known.estimate, episode + 1)
    assert len(told) == len(made) == 4


def test_pure_privacy_runs_laplace_values_in_every_episode():
    fit = fit_of(delta=0.0, episodes="doubling", first_episode=None)
    plans = [fit.plan(episode, fit.begin()) for episode in range(12)]
    assert {plan.kernel_arguments["value_noise"] for plan in plans} == {"laplace"}
    # The control: noise with Gaussian values can't be part of such a plan, and can't claim delta = 0 itself.
    gaussian = fit_of().plan(0, fit_of().begin()).noise
    with pytest.raises(ValueError, match=r"noise must be calibrated for delta = 0\.0, got noise for 0\.01"):
        dataclasses.replace(plans[0], noise=gaussian)
    with pytest.raises(ValueError, match="no pure guarantee"):
        dataclasses.replace(gaussian, delta=0.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 1.5}, "epsilon = 1.0, got noise for 1.5"),
        ({"delta": 0.02}, "delta = 0.01, got noise for 0.02"),
        ({"rounds_per_user": 1}, "rounds_per_user = 3, got noise for 1"),
    ],
)
def test_a_plan_refuses_noise_for_another_claim(changes, message):
    plan = first_plan(rounds_per_user=3)
    numbers = {"epsilon": 1.0, "delta": 0.01, "rounds_per_user": 3} | changes
    other = calibrate(
        **numbers, rows=20, dim=DIM, sparsity=2, iterations=1, step_size=1.0, l1_radius=1.0, clip=1.0
    )
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(plan, noise=other)
    # Another number of picks is another fit, charged for it.
    fewer = calibrate(
        epsilon=1.0, delta=0.01, rounds_per_user=3, rows=20, dim=DIM, sparsity=1, iterations=2, step_size=1.0,
        l1_radius=1.0, clip=1.0,
    )  # fmt: skip
    replaced = dataclasses.replace(plan, noise=fewer)
    assert (replaced.sparsity, replaced.iterations) == (1, 2)
    assert replaced.kernel_arguments["pick_scale"] == fewer.pick_scale
    with pytest.raises(TypeError, match="noise must be NoiseScales, got float"):
        dataclasses.replace(plan, noise=1.0)


def test_a_plan_has_no_numbers_of_its_own_that_the_noise_was_calibrated_for():
    own = {field.name for field in dataclasses.fields(IhtPlan)}
    proven = {field.name for field in dataclasses.fields(NoiseScales)}
    assert not own & proven and "noise" in own
    assert {field.name for field in dataclasses.fields(Budget)} < proven


def test_the_regression_charges_for_what_it_does():
    model = PrivateSparseRegressor(2.0, 0.0, 3, rows_per_user=2, solver=Iht(iterations=5))
    plan = model._plan(40, DIM)
    assert isinstance(plan, IhtPlan) and plan.noise.rounds_per_user == 2 and plan.noise.rows == 40
    assert plan.kernel_arguments["iterations"] == plan.noise.iterations == 5
    assert plan.kernel_arguments["value_noise"] == "laplace"


# Nothing but the plan decides


def test_what_is_released_depends_on_rewards_only_through_the_sums():
    """Rows of zeros have the same sums whoever's reward came: the same seed must give the same bits."""
    for changes in ({}, {"warm_start": False}, {"delta": 0.0}):
        fit = fit_of(**changes)
        known, rows = fit.begin(), fit.least_rows(0)
        plan, rng, seen = fit.plan(0, known), np.random.default_rng(0), []
        for share in (0.0, 0.0, 0.05, 0.5, 0.99, 1.0):
            present = rng.random(rows) < share
            rewards = np.where(present, rng.standard_normal(rows), 0.0)
            after = fit.run(plan, np.zeros((rows, DIM)), rewards, present, known)
            seen.append(after.estimate.to_dense().tolist())
            assert after.episodes == 1 and fit.facts(plan, after) == fit.facts(plan, known)
        assert seen == [seen[0]] * len(seen) and any(seen[0])
    # The control: rows that are not zero tell the two apart.
    X, y = np.ones((rows, DIM)), np.full(rows, 1e6)
    none = fit.run(plan, X, np.zeros(rows), np.zeros(rows, bool), known)
    assert fit.run(plan, X, y, np.ones(rows, bool), known).estimate.to_dense().tolist() != seen[0]
    assert none.estimate.to_dense().tolist() == seen[0]


def test_plans_are_functions_of_settings_episode_and_what_is_known():
    fit = fit_of()
    other = KnownEstimate(SparseEstimate.from_dense([1.0] + [0.0] * (DIM - 1)), 3)
    for episode in range(6):
        assert fit.plan(episode, fit.begin()) == fit.plan(episode, other) == fit_of().plan(episode, other)
        assert fit.plan(episode, fit.begin()).rows == fit.least_rows(episode)
    with pytest.raises(dataclasses.FrozenInstanceError):
        fit.plan(0, other).step_size = 1.0


def test_a_plan_is_run_on_its_own_episode_its_own_shape_and_its_own_start():
    fit = fit_of()
    known, plan = fit.begin(), fit.plan(1, fit.begin())
    rows = np.zeros((plan.rows, DIM))
    given = (rows, np.zeros(plan.rows), np.ones(plan.rows, bool))
    with pytest.raises(ValueError, match="plan must be that of episode 0, got episode 1"):
        fit.run(plan, *given, known)
    known = KnownEstimate(known.estimate, 1)
    with pytest.raises(ValueError, match="rows must have the plan's shape"):
        fit.run(plan, rows[1:], *given[1:], known)
    for start in (None, np.zeros(DIM)):
        if (start is None) == plan.warm:
            with pytest.raises(ValueError, match=r"start must (not )?be given"):
                run.from_rows(plan, *given[:2], start=start)


def test_no_iteration_reads_nothing():
    fit = fit_of(iterations=0)
    plan = fit.plan(0, fit.begin())
    assert isinstance(plan, EmptyPlan) and plan.rows == 20
    assert not fit.run(plan, None, None, None, fit.begin()).estimate.to_dense().any()
    warm = KnownEstimate(SparseEstimate.from_dense(np.arange(DIM)), 1)
    assert (
        fit.run(dataclasses.replace(plan, episode=1, warm=True), None, None, None, warm).estimate
        is warm.estimate
    )


# What is known


def test_what_is_known_survives_json_to_the_last_bit():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.standard_normal(50), [5e-324, -1.7976931348623157e308, 0.1, 1 / 3]])
    known = KnownEstimate(SparseEstimate(np.arange(54), values, 2**31 - 1), 7)
    back = fit_of().recall(json.loads(json.dumps(known.to_record())))
    assert back.estimate.values.tobytes() == values.tobytes() and back.episodes == 7
    assert back.estimate.indices.tobytes() == known.estimate.indices.tobytes()
    assert back.estimate.dim == 2**31 - 1 and back.estimate.indices.dtype == np.int64


def test_settings_name_the_fit():
    assert FLIPHAT(**PUBLIC)._settings.to_dict()["fit"] == "pursuit"
    policy = FLIPHAT(**PUBLIC, fit=Iht())
    record = json.loads(json.dumps(policy._settings.to_dict()))
    assert record["fit"] == "iht" and isinstance(policy._fit, IhtFit)
    again = Settings.from_dict(record, {"iterations": None, "step_size": None})
    assert again == policy._settings and make_fit(again).settings == again


def test_a_policy_is_made_with_two_calibrations(monkeypatch):
    calls = []
    monkeypatch.setattr(iht, "calibrate", lambda **given: calls.append(given) or calibrate(**given))
    FLIPHAT(**PUBLIC, fit=Iht())
    # One without rows, which says how long the first episode is, and one for the fit of that episode.
    assert [call["rows"] for call in calls] == [1, fit_of(first_episode=None).least_rows(0)]


# The room


def imported_rooms(path):
    """The rooms of the package that a module imports, wherever in it."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "fliphat":
            names += [f"fliphat.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module)
    return {name.split(".")[1] for name in names if name.startswith("fliphat.")}


def test_the_room_calls_only_rooms_to_its_left():
    package = Path(fliphat.__file__).parent
    allowed = {"fit", "privacy", "kernels", "_native", "arguments"}
    for path in (package / "fit").glob("*.py"):
        assert imported_rooms(path) <= allowed, path.name
    # The control: the policies call rooms that the fit may not.
    assert not imported_rooms(package / "policies" / "fliphat.py") <= allowed


def test_what_plans_a_fit_calls_no_kernel():
    planning = ("fit/known", "fit/settings", "fit/iht/constants", "fit/iht/fit", "fit/pursuit/plan")
    for name in (*planning, "fit/pursuit/known", "regression/solvers"):
        path = Path(fliphat.__file__).parent / f"{name}.py"
        assert not imported_rooms(path) & {"kernels", "_native"}, name
    assert imported_rooms(Path(fliphat.__file__).parent / "fit" / "iht" / "run.py") >= {"kernels"}
