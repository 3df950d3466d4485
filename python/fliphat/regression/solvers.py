"""The two private fits of a regression, and which of them is taken.

| solver | what it does |
|---|---|
| "pursuit" | rows dealt out to a few parts, each used once: :mod:`fliphat.fit.parts` |
| "iht" | a fixed number of steps over all rows: :mod:`fliphat.fit.iht.one_fit` |
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat import Pursuit, arguments
from fliphat.fit.iht.one_fit import OneFit
from fliphat.fit.parts import PartsFit
from fliphat.fit.pursuit.known import KnownSparse
from fliphat.fit.pursuit.plan import PursuitPlan
from fliphat.fit.pursuit.release import RowSums
from fliphat.fit.settings import Settings
from fliphat.privacy.conversion import rho_from_epsilon
from fliphat.privacy.guarantee import NO_PICKS, Guarantee
from fliphat.privacy.priced import PricedRelease

__all__ = ["SOLVERS", "better_in_parts", "choose", "parts_from_rows", "parts_guarantee", "plan_parts"]

SOLVERS: Final = ("auto", "pursuit", "iht")

#: Declared sizes in between leave the fourth powers that pursuit calculates with normal floats.
_SMALLEST_SIZE, _LARGEST_SIZE = 1e-30, 1e30


#: Labels say less than numbers: with fewer rows times mu, or fewer rows, for each column that may be kept,
#: hard thresholding has the better classes.
_LOGISTIC_BUDGET: Final = 50.0
_LOGISTIC_ROWS: Final = 100


def choose(solver: str, public: OneFit, only_iht: Mapping[str, bool], *, residual_scale: float) -> str:
    """Return "auto", "pursuit" or "iht": what was asked for, or the only one that has what was given.

    Parameters
    ----------
    only_iht : mapping of str to bool
        Arguments that pursuit does not have, and whether they were given.
    """
    arguments.choice("solver", solver, SOLVERS)
    given = [name for name, is_given in only_iht.items() if is_given]
    sizes = {"feature_scale": public.feature_scale, "target_scale": residual_scale}
    beyond = [name for name, size in sizes.items() if not _SMALLEST_SIZE <= size <= _LARGEST_SIZE]
    if solver == "pursuit":
        if given:
            raise ValueError(f"solver must be 'iht' or 'auto' with {given[0]}, got 'pursuit'")
        for name in beyond:
            arguments.within(name, sizes[name], _SMALLEST_SIZE, _LARGEST_SIZE)
    return "iht" if given or beyond else solver


def better_in_parts(fit: PartsFit) -> bool:
    """Whether "auto" fits in parts: by the loss and public numbers alone, as measured on made tables."""
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
