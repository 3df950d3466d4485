"""One private release: public numbers are settled and their cost stated first, then the rows are read.

Data flows one way. :func:`plan_release` sees only public numbers and returns everything the fit will do, with
its guarantee; :meth:`Release.run` reads the rows and changes none of it. A fit over rows that live elsewhere
sums the clipped gradients where the rows are, and hands each iteration's sums to :meth:`Release.run_sums`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _check, _native
from fliphat.kernels import _niht
from fliphat.privacy.calibration import NoiseScales, calibrate
from fliphat.privacy.guarantee import Guarantee, state_guarantee
from fliphat.privacy.paper import PaperNoise, calibrate_paper, paper_iterations
from fliphat.regression._schedule import Schedule, default_schedule

__all__ = ["PublicNumbers", "Release", "plan_paper_release", "plan_release"]

#: The step of the published simulations.
_PAPER_STEP = 1e-4


@dataclass(frozen=True, kw_only=True)
class PublicNumbers:
    """What one fit is about; nothing here comes from the rows, except how many there are."""

    epsilon: float
    delta: float
    rows: int
    dim: int
    sparsity: int
    l1_radius: float
    iterations: int | None
    step_size: float | None
    feature_scale: float
    loss: str
    target_clip: float | None
    rows_per_user: int
    seed: int | None


@dataclass(frozen=True, kw_only=True)
class Release:
    """A fit that is fully decided: its noise, its claim, and the settings the kernel takes."""

    noise: NoiseScales | PaperNoise
    guarantee: Guarantee
    settings: dict[str, Any]
    seed: int | None

    def run(
        self, X: Any, y: npt.NDArray[np.float64], start: npt.NDArray[np.float64] | None
    ) -> npt.NDArray[np.float64]:
        """Read the rows, add the noise, and return the one estimate that is released."""
        door = None if self.seed is None else (self.seed, 0)
        if isinstance(self.noise, PaperNoise):
            return _niht.fit_paper(X, y, start=start, door=door, **self.settings)
        return _niht.fit(X, y, start=start, door=door, **self.settings)[-1]

    def run_sums(
        self,
        sums_at: Callable[[npt.NDArray[np.int64], npt.NDArray[np.float64]], npt.NDArray[np.int64]],
        rows: int,
        dim: int,
        start: npt.NDArray[np.float64] | None,
    ) -> npt.NDArray[np.float64]:
        """Do what `run` does, bit for bit, over rows elsewhere; `sums_at` returns the sums at an estimate."""
        if isinstance(self.noise, PaperNoise):
            raise ValueError(
                "calibration must be 'proven' for rows that live elsewhere: they come as integer sums"
            )
        door = None if self.seed is None else (self.seed, 0)
        settings = _niht.fit_settings(dim, **self.settings)
        return _native.niht_fit_sums(sums_at, np.zeros(dim) if start is None else start, rows, settings, door)


def plan_release(
    public: PublicNumbers,
    *,
    clip: float,
    mechanism: str | None,
    value_noise: str | None,
    split: float | None,
) -> Release:
    """Decide a fit with proven noise."""
    mechanism = "exponential" if mechanism is None else mechanism
    budget: dict[str, Any] = {
        "epsilon": public.epsilon,
        "delta": public.delta,
        "rows": public.rows,
        "dim": public.dim,
        "sparsity": public.sparsity,
        "l1_radius": public.l1_radius,
        "clip": clip,
        "rounds_per_user": public.rows_per_user,
        "mechanism": mechanism,
        "value_noise": value_noise,
        "split": split,
    }
    unit = public.feature_scale**-2
    iterations, step = public.iterations, public.step_size
    if iterations is None or step is None:
        single = calibrate(**budget, iterations=1, step_size=unit)
        planned = default_schedule(
            relative_noise=single.pick_gradient_noise / single.clip,
            dim=public.dim,
            loss=public.loss,
            pure=single.delta == 0,
        )
        iterations = planned.iterations if iterations is None else iterations
        step = planned.step_size if step is None else step
    step = _check.positive("step_size", step) * unit
    noise = calibrate(**budget, iterations=iterations, step_size=step)
    return Release(
        noise=noise,
        guarantee=state_guarantee(noise, setting="regression", seeded=public.seed is not None),
        settings={
            "sparsity": noise.sparsity,
            "iterations": noise.iterations,
            "step_size": step,
            "l1_radius": public.l1_radius,
            "clip": noise.clip,
            "pick_scale": noise.pick_scale,
            "value_scale": noise.value_scale,
            "mechanism": noise.mechanism,
            "value_noise": noise.value_noise,
            "loss": public.loss,
            "reward_clip": public.target_clip,
        },
        seed=public.seed,
    )


def plan_paper_release(public: PublicNumbers, *, feature_bound: float | None, stacklevel: int) -> Release:
    """Decide a fit as the paper prints it, which is not proven private; warns."""
    schedule = Schedule(
        # The published rule leaves small data sets without an iteration, which would release nothing.
        max(1, paper_iterations(public.rows, l1_radius=public.l1_radius))
        if public.iterations is None
        else public.iterations,
        _PAPER_STEP if public.step_size is None else public.step_size,
    )
    step = _check.positive("step_size", schedule.step_size) * public.feature_scale**-2
    noise = calibrate_paper(
        epsilon=public.epsilon,
        delta=public.delta,
        rows=public.rows,
        dim=public.dim,
        sparsity=public.sparsity,
        iterations=schedule.iterations,
        step_size=step,
        l1_radius=public.l1_radius,
        context_bound=feature_bound,
        reward_clip=public.target_clip,
    )
    guarantee = state_guarantee(
        noise, setting="regression", seeded=public.seed is not None, stacklevel=stacklevel
    )
    return Release(
        noise=noise,
        guarantee=guarantee,
        settings={
            "sparsity": noise.sparsity,
            "iterations": noise.iterations,
            "step_size": step,
            "l1_radius": noise.l1_radius,
            "reward_clip": noise.reward_clip,
            "noise_scale": noise.noise_scale,
        },
        seed=public.seed,
    )
