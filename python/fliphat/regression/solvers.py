"""The two private fits of a regression, and which of them is taken.

| solver | what it does |
|---|---|
| `Pursuit` | rows dealt out to a few parts, each used once: :mod:`fliphat.regression.parts` |
| `Iht` | a fixed number of steps over all rows: :func:`plan_one_fit` |
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from fliphat import arguments
from fliphat.fit.iht import constants as defaults
from fliphat.fit.iht.fit import Budget, IhtPlan
from fliphat.fit.options import Iht, PerEpisode, Pursuit
from fliphat.fit.pursuit.constants import LOGISTIC_BUDGET, LOGISTIC_ROWS
from fliphat.fit.settings import Settings
from fliphat.privacy.calibration import calibrate
from fliphat.privacy.scales import HALF_RANGE, NoiseScales
from fliphat.regression.parts import PartsFit

__all__ = ["better_in_parts", "may_be_parts", "options_of_one_fit", "plan_one_fit", "plan_parts"]

#: Declared sizes in between leave the fourth powers that pursuit calculates with normal floats.
_SMALLEST_SIZE, _LARGEST_SIZE = 1e-30, 1e30


def plan_one_fit(public: Settings, rows: int, *, warm: bool) -> IhtPlan:
    """Plan a regression by hard thresholding, with proven noise.

    Steps are in units of ``1 / context_scale**2``; where there are none they follow from the noise.
    """

    def calibrated(iterations: int, step_size: float) -> NoiseScales:
        return calibrate(
            epsilon=public.epsilon,
            delta=public.delta,
            rows=rows,
            dim=public.dim,
            sparsity=public.sparsity,
            iterations=iterations,
            step_size=step_size,
            l1_radius=public.l1_radius,
            clip=public.gradient_clip,
            rounds_per_user=public.rounds_per_user,
            mechanism=public.mechanism,
            fits=(),  # one fit: all rows of a user enter it
        )

    def in_units(step_size: float) -> float:
        return arguments.positive("step_size", step_size) * public.context_scale**-2

    iterations, step = cast(int | None, public.iterations), cast(float | None, public.step_size)
    if iterations is None or step is None:
        single = calibrated(1, in_units(1.0))
        # Tiny tables count as three columns here and as two in the bandit.
        signal = defaults.detectable(single.pick_scale / HALF_RANGE, rows, max(public.dim, 3))
        steps = defaults.one_fit(signal, loss=public.loss, pure=single.delta == 0)
        iterations = steps.iterations if iterations is None else iterations
        step = steps.step_size if step is None else step
    step = in_units(step)
    return IhtPlan(
        budget=Budget(epsilon=public.epsilon, delta=public.delta, rounds_per_user=public.rounds_per_user),
        noise=calibrated(iterations, step),
        episode=0,
        dim=public.dim,
        step_size=step,
        l1_radius=public.l1_radius,
        loss=public.loss,
        reward_clip=public.reward_clip,
        warm=warm,
        shrink=False,
        seed=None if public.seed is None else (public.seed, 0),
    )


def options_of_one_fit(solver: Pursuit | Iht | None, rows: int, *, labels: bool) -> Iht:
    """Return hard thresholding's options with plain numbers; those that only a bandit has are refused."""
    if not (solver is None or isinstance(solver, (Pursuit, Iht))):
        raise TypeError(f"solver must be Pursuit(), Iht() or None, got {type(solver).__name__}")
    if isinstance(solver, Pursuit) and solver != Pursuit():
        raise ValueError("solver=Pursuit() has no options here: divide columns of X, set fit_intercept")
    usual = Iht()
    given = solver if isinstance(solver, Iht) else usual
    for name in ("episodes", "growth", "warm_start"):
        if getattr(given, name) != getattr(usual, name):
            raise ValueError(f"solver=Iht({name}=...) is for a bandit's episodes: a regression has one fit")
    if labels and given.reward_clip is not None:
        raise ValueError("solver=Iht(reward_clip=...) is for numbers: labels are 0 and 1")
    numbers: dict[str, Any] = {
        name: _of_one_fit(name, getattr(given, name), rows) for name in ("iterations", "step_size")
    }
    return replace(given, **numbers)


def _of_one_fit(name: str, given: PerEpisode | None, rows: int) -> float | None:
    if callable(given):
        return given(rows)
    if given is not None and not isinstance(given, (int, float)):
        raise ValueError(f"solver=Iht({name}=...) must be a number or a function of rows, got a sequence")
    return given


def may_be_parts(solver: Pursuit | Iht | None, delta: float, **sizes: float) -> bool:
    """Whether pursuit can take it: not pure privacy, and sizes that it calculates with."""
    if isinstance(solver, Iht):
        return False
    if solver is None:
        return delta != 0 and all(_SMALLEST_SIZE <= size <= _LARGEST_SIZE for size in sizes.values())
    if delta == 0:
        raise ValueError("solver must be Iht() or None with delta=0, got Pursuit()")
    for name, size in sizes.items():
        arguments.within(name, size, _SMALLEST_SIZE, _LARGEST_SIZE)
    return True


def better_in_parts(fit: PartsFit) -> bool:
    """Whether the default fits in parts: by the loss and public numbers alone, as measured on made tables."""
    if fit.pursuit.settings.loss == "squared":
        return True
    rows_of_each = fit.parts.rows / fit.pursuit.settings.sparsity
    return not fit.whole and fit.budget >= LOGISTIC_BUDGET and rows_of_each >= LOGISTIC_ROWS


def plan_parts(
    public: dict[str, Any], rows: int, features: int, *, intercept: bool, accounting: str | None
) -> PartsFit:
    """Plan a fit in parts, of settings that both fits share; the intercept is no column there."""
    sparsity = min(public["sparsity"], features)
    fit = Pursuit(intercept=intercept)
    settings = Settings.checked(**public | {"dim": features, "sparsity": sparsity, "fit": fit})
    return PartsFit(settings, rows, accounting=accounting)
