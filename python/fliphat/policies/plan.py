"""The plan of a fit: its iterations, step and noise, from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fliphat.policies import schedule
from fliphat.policies.facts import EpisodeFacts, SparseEstimate
from fliphat.policies.settings import Schedule, Settings, checked_iterations, checked_step_size
from fliphat.privacy.calibration import calibrate
from fliphat.privacy.paper import PaperNoise, calibrate_paper
from fliphat.privacy.scales import HALF_RANGE, NoiseScales

__all__ = ["FitPlan", "Planner"]

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class FitPlan:
    """How the rows of one episode will be fitted; ``noise`` is None if nothing is computed from them."""

    episode: int
    rows: int
    iterations: int
    step_size: float
    warm: bool
    noise: NoiseScales | PaperNoise | None


class Planner:
    """Lengths and plans of all episodes, from settings alone."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # What one iteration costs in noise, whatever the rows: the schedules' only measure of the budget.
        one = self._proven(1, 1, 1.0)
        self._pick_noise = one.pick_scale / HALF_RANGE

    def length(self, episode: int) -> int:
        """Return the rounds of an episode."""
        return self._first() << episode

    def plan(self, episode: int) -> FitPlan:
        """Return the plan for the fit of `episode`'s rows."""
        settings, rows = self.settings, self.length(episode)
        warm = settings.warm_start and episode > 0 and self._useful(episode - 1)
        if settings.calibration == "paper":
            default = schedule.paper_iterations_and_step(rows, settings.l1_radius)
        else:
            default = schedule.iterations_and_step(
                self._signal(rows), warm=warm, context_scale=settings.context_scale, loss=settings.loss
            )
        iterations = _at(settings.iterations, episode, rows, checked_iterations, default[0])
        step_size = _at(settings.step_size, episode, rows, checked_step_size, default[1])
        noise: NoiseScales | PaperNoise | None = None
        if iterations > 0:
            noise = self._noise(rows, iterations, step_size)
        return FitPlan(episode, rows, iterations, step_size, warm, noise)

    def statement_noise(self) -> NoiseScales | PaperNoise:
        """Return noise to state the guarantee with: it says the same for every episode."""
        plan = self.plan(0)
        return plan.noise or self._noise(plan.rows, 1, plan.step_size)

    def facts(self, plan: FitPlan, first_round: int, estimate: SparseEstimate) -> EpisodeFacts:
        """Return what may be told about a finished fit."""
        settings = self.settings
        log_dim = math.log(max(settings.dim, 2))
        flatness = schedule.curvature(settings.loss) / settings.context_scale**2
        if plan.noise is None:
            noise_scale, smallest = 0.0, math.inf
        elif isinstance(plan.noise, PaperNoise):
            noise_scale = plan.noise.noise_scale
            # The paper's gradient is that of the full square, twice ours.
            smallest = noise_scale / (2 * plan.step_size) * log_dim * flatness
        else:
            noise_scale = plan.step_size * plan.noise.value_gradient_noise
            smallest = plan.noise.pick_gradient_noise * log_dim * flatness
        return EpisodeFacts(
            episode=plan.episode,
            first_round=first_round,
            rounds=plan.rows,
            iterations=plan.iterations,
            step_size=plan.step_size,
            warm=plan.warm,
            noise_scale=noise_scale,
            smallest_coefficient=smallest,
            estimate=estimate,
        )

    def _first(self) -> int:
        if self.settings.episodes == "doubling":
            return 1
        if self.settings.first_episode is not None:
            return self.settings.first_episode
        return schedule.first_episode(self._pick_noise, self.settings.dim)

    def _signal(self, rows: int) -> float:
        return schedule.detectable(self._pick_noise, rows, self.settings.dim)

    def _useful(self, episode: int) -> bool:
        if self.settings.calibration == "paper":
            return True
        return schedule.start_is_useful(self._signal(self.length(episode)))

    def _noise(self, rows: int, iterations: int, step_size: float) -> NoiseScales | PaperNoise:
        settings = self.settings
        if settings.calibration == "proven":
            return self._proven(rows, iterations, step_size)
        return calibrate_paper(
            epsilon=settings.epsilon,
            delta=settings.delta,
            rows=rows,
            dim=settings.dim,
            sparsity=settings.sparsity,
            iterations=iterations,
            step_size=step_size,
            l1_radius=settings.l1_radius,
            context_bound=settings.context_bound,
            reward_clip=settings.reward_clip,
        )

    def _proven(self, rows: int, iterations: int, step_size: float) -> NoiseScales:
        settings = self.settings
        return calibrate(
            epsilon=settings.epsilon,
            delta=settings.delta,
            rows=rows,
            dim=settings.dim,
            sparsity=settings.sparsity,
            iterations=iterations,
            step_size=step_size,
            l1_radius=settings.l1_radius,
            clip=settings.gradient_clip,
            rounds_per_user=settings.rounds_per_user,
            mechanism=settings.mechanism,
        )


def _at(
    given: Schedule | None, episode: int, rows: int, check: Callable[[object], _Number], default: _Number
) -> _Number:
    if given is None:
        return default
    if callable(given):
        return check(given(rows))
    if isinstance(given, (tuple, list)):
        return check(given[min(episode, len(given) - 1)])
    return check(given)
