"""The regressor's case for the audit: its own plan for tiny data, and only what it shows."""

from __future__ import annotations

from fliphat import _native
from fliphat.kernels import _niht
from fliphat.privacy.audit.bounds import Counts
from fliphat.privacy.audit.cases import DIM, PUSH, ROWS, SPARSITY, Case, push_views, pushed_sides
from fliphat.regression._regressor import PrivateSparseRegressor

__all__ = ["regressor_case"]


def regressor_case() -> Case:
    """Return the case of a fitted `PrivateSparseRegressor`, whose coefficients are looked at."""
    epsilon, delta = 1.0, 0.01
    model = PrivateSparseRegressor(epsilon=epsilon, delta=delta, sparsity=SPARSITY, l1_radius=1e6)
    settings = model._plan(ROWS, DIM).kernel_arguments
    native = _niht.fit_settings(DIM, **settings)
    slots = settings["iterations"]
    unit = settings["step_size"] * settings["clip"] / (2**15 * ROWS)
    views = push_views(slots, settings["pick_scale"], settings["value_scale"], unit, (ROWS - 1) * PUSH)
    for picks, _, _, _, _ in views:
        picks[:-1] = 0.0  # only the last iterate is shown
    sides = pushed_sides("squared")

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        return _native.audit_niht(sides, native, False, views, runs, threads, seed)

    return Case("PrivateSparseRegressor, its coefficients", epsilon, delta, count)
