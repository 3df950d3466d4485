"""The two private fits of a regression, and which of them is taken.

| solver | what it does |
|---|---|
| `Pursuit` | rows dealt out to a few parts, each used once: :mod:`fliphat.fit.parts` |
| `Iht` | a fixed number of steps over all rows: :mod:`fliphat.fit.iht.one_fit` |
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.fit.iht.one_fit import OneFit
from fliphat.fit.options import Iht, PerEpisode, Pursuit
from fliphat.fit.parts import PartsFit
from fliphat.fit.pursuit.known import KnownSparse
from fliphat.fit.pursuit.plan import PursuitPlan
from fliphat.fit.pursuit.release import RowSums
from fliphat.fit.settings import Settings
from fliphat.privacy.conversion import rho_from_epsilon
from fliphat.privacy.guarantee import NO_PICKS, Guarantee
from fliphat.privacy.priced import PricedRelease

__all__ = [
    "better_in_parts",
    "may_be_parts",
    "options_of_one_fit",
    "parts_from_rows",
    "parts_guarantee",
    "plan_parts",
]

#: Declared sizes in between leave the fourth powers that pursuit calculates with normal floats.
_SMALLEST_SIZE, _LARGEST_SIZE = 1e-30, 1e30


#: Labels say less than numbers: with fewer rows times mu, or fewer rows, for each column that may be kept,
#: hard thresholding has the better classes.
_LOGISTIC_BUDGET: Final = 50.0
_LOGISTIC_ROWS: Final = 100


def options_of_one_fit(solver: Pursuit | Iht | None, rows: int, *, labels: bool) -> Iht:
    """Return hard thresholding's options with plain numbers; those that only a bandit has are refused."""
    if not (solver is None or isinstance(solver, (Pursuit, Iht))):
        raise TypeError(f"solver must be Pursuit(), Iht() or None, got {type(solver).__name__}")
    if isinstance(solver, Pursuit) and solver != Pursuit():
        raise ValueError("solver=Pursuit() has no options here: divide columns of X, set fit_intercept")
    given = solver if isinstance(solver, Iht) else Iht()
    for name in ("episodes", "growth", "warm_start"):
        if getattr(given, name) != getattr(Iht(), name):
            raise ValueError(f"solver=Iht({name}=...) is for a bandit's episodes: a regression has one fit")
    if labels and given.reward_clip is not None:
        raise ValueError("solver=Iht(reward_clip=...) is for numbers: labels are 0 and 1")
    numbers: dict[str, Any] = {
        name: _of_one_fit(name, getattr(given, name), rows) for name in ("iterations", "step_size")
    }
    return dataclasses.replace(given, **numbers)


def _of_one_fit(name: str, given: PerEpisode | None, rows: int) -> float | None:
    if callable(given):
        return given(rows)
    if given is not None and not isinstance(given, (int, float)):
        raise ValueError(f"solver=Iht({name}=...) must be a number or a function of rows, got a sequence")
    return given


def may_be_parts(solver: Pursuit | Iht | None, public: OneFit, residual_scale: float) -> bool:
    """Whether pursuit can take it: not pure privacy, and sizes that it calculates with."""
    if isinstance(solver, Iht):
        return False
    sizes = {"feature_scale": public.feature_scale, "target_scale": residual_scale}
    if solver is None:
        return public.delta != 0 and all(_SMALLEST_SIZE <= size <= _LARGEST_SIZE for size in sizes.values())
    if public.delta == 0:
        raise ValueError("solver must be Iht() or None with delta=0, got Pursuit()")
    for name, size in sizes.items():
        arguments.within(name, size, _SMALLEST_SIZE, _LARGEST_SIZE)
    return True


def better_in_parts(fit: PartsFit) -> bool:
    """Whether the default fits in parts: by the loss and public numbers alone, as measured on made tables."""
    if fit.pursuit.settings.loss == "squared":
        return True
    rows_of_each = fit.parts.rows / fit.pursuit.settings.sparsity
    return not fit.whole and fit.budget >= _LOGISTIC_BUDGET and rows_of_each >= _LOGISTIC_ROWS


def plan_parts(public: OneFit, *, intercept: bool, residual_scale: float, accounting: str | None) -> PartsFit:
    """Plan a fit in parts; the intercept is no column there."""
    features = public.dim - int(intercept)
    settings = Settings.checked(
        dim=features,
        sparsity=min(public.sparsity, features),
        epsilon=public.epsilon,
        delta=public.delta,
        loss=public.loss,
        rounds_per_user=public.rows_per_user,
        context_scale=public.feature_scale,
        reward_scale=residual_scale,
        fit=Pursuit(intercept=intercept),
        dtype="float64",
        seed=public.seed,
    )
    return PartsFit(settings, public.rows, accounting=accounting)


def parts_guarantee(fit: PartsFit) -> Guarantee:
    """Return the claim of a fit in parts: a row is in one of them, and each is within the whole claim."""
    settings = fit.pursuit.settings
    first = fit.plan(0, fit.begin())[1].release
    exact = first.accounting == "exact"
    rho = None if exact else Fraction(rho_from_epsilon(settings.epsilon, settings.delta))
    return Guarantee(
        epsilon=settings.epsilon,
        delta=settings.delta,
        rho=rho,
        setting="regression",
        rounds_per_user=settings.rounds_per_user,
        user_ids_checked=False,
        mechanism=NO_PICKS if fit.whole else "exponential",
        value_noise="rounded_gaussian",
        calibration="proven",
        seeded=settings.seed is not None,
        noise_shortfall=None,
        release=first if exact else None,
        kinds=fit.pursuit.kinds if exact else None,
    )


def parts_from_rows(
    fit: PartsFit, rows: Any, target: npt.NDArray[np.float64]
) -> tuple[KnownSparse, tuple[PricedRelease, ...]]:
    """Fit rows in this process."""
    part_of = fit.parts.of(0, rows.shape[0])

    def sums_of(part: int, plan: PursuitPlan, known: KnownSparse) -> RowSums:
        at = np.flatnonzero(part_of == part)
        return RowSums(rows[at], target[at], np.ones(len(at), np.bool_))

    return fit.run(sums_of)
