"""Noisy iterative hard thresholding in a regression: one fit, planned from public numbers alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fliphat import arguments
from fliphat.fit.iht import constants as defaults
from fliphat.fit.iht.plan import Budget, IhtPlan
from fliphat.privacy.calibration import calibrate
from fliphat.privacy.scales import HALF_RANGE, NoiseScales

__all__ = ["OneFit", "plan_one_fit"]


@dataclass(frozen=True, kw_only=True)
class OneFit:
    """What a regression's fit is about; nothing here comes from the rows, except how many there are.

    Steps are in units of ``1 / feature_scale**2``; None asks for a default.
    """

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
    warm: bool
    seed: int | None

    def plan(self, noise: NoiseScales, step_size: float) -> IhtPlan:
        """Return the plan with this noise."""
        return IhtPlan(
            budget=Budget(epsilon=self.epsilon, delta=float(self.delta), rounds_per_user=self.rows_per_user),
            noise=noise,
            episode=0,
            dim=self.dim,
            step_size=step_size,
            l1_radius=self.l1_radius,
            loss=self.loss,
            reward_clip=self.target_clip,
            warm=self.warm,
            shrink=False,
            seed=None if self.seed is None else (self.seed, 0),
        )

    @property
    def priced(self) -> dict[str, Any]:
        """What both calibrations take, besides iterations and step."""
        names = ("epsilon", "delta", "rows", "dim", "sparsity", "l1_radius")
        return {name: getattr(self, name) for name in names}

    def in_units(self, step_size: float) -> float:
        """Return a step as the kernel takes it."""
        return arguments.positive("step_size", step_size) * self.feature_scale**-2


def plan_one_fit(
    public: OneFit,
    *,
    clip: float,
    mechanism: str | None,
    value_noise: str | None,
    split: float | None,
) -> IhtPlan:
    """Plan a regression with proven noise."""
    budget: dict[str, Any] = {
        **public.priced,
        "clip": clip,
        "rounds_per_user": public.rows_per_user,
        "mechanism": "exponential" if mechanism is None else mechanism,
        "value_noise": value_noise,
        "split": split,
        # One fit: all rows of a user enter it.
        "fits": (),
    }
    iterations, step = public.iterations, public.step_size
    if iterations is None or step is None:
        single = calibrate(**budget, iterations=1, step_size=public.in_units(1.0))
        # Tiny tables count as three columns here and as two in the bandit.
        signal = defaults.detectable(single.pick_scale / HALF_RANGE, public.rows, max(public.dim, 3))
        steps = defaults.one_fit(signal, loss=public.loss, pure=single.delta == 0)
        iterations = steps.iterations if iterations is None else iterations
        step = steps.step_size if step is None else step
    step = public.in_units(step)
    return public.plan(calibrate(**budget, iterations=iterations, step_size=step), step)
