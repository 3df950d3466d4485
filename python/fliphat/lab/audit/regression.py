"""The regressor's case for the audit: its own fit of tiny data, and only what it shows."""

from __future__ import annotations

from fliphat._native import RecordingNoise
from fliphat.fit.iht.fit import IhtPlan
from fliphat.fit.options import Iht
from fliphat.lab.audit.cases import DIM, PUSH, ROWS, SPARSITY, Case, push_views, pushed_sides
from fliphat.lab.audit.replay import Recording, replaying
from fliphat.regression.regressor import PrivateSparseRegressor


def regressor_case() -> Case:
    """Return the case of a fitted `PrivateSparseRegressor`, whose coefficients are looked at."""
    epsilon, delta = 1.0, 0.01

    def record() -> Recording:
        fits = []
        for X, y in pushed_sides("squared"):
            model = PrivateSparseRegressor(
                epsilon=epsilon, delta=delta, sparsity=SPARSITY, solver=Iht(l1_radius=1e6)
            )
            noise = RecordingNoise()
            model._noise = noise
            model.fit(X, y)
            fits.append(noise.fits)
        # The scales only say what to look at: what is looked at was fitted with whatever `fit` chose.
        plan = model._plan(ROWS, DIM)
        assert isinstance(plan, IhtPlan)
        settings = plan.kernel_arguments
        unit = settings["step_size"] * settings["clip"] / (2**15 * ROWS)
        scales = (settings["pick_scale"], settings["value_scale"])
        views = push_views(1, *scales, unit, (ROWS - 1) * PUSH)
        return fits[0], fits[1], views

    return Case("PrivateSparseRegressor, its coefficients", epsilon, delta, replaying(record))
