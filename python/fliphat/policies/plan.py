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
    sparsity: int
    iterations: int
    step_size: float
    warm: bool
    shrink: bool
    noise: NoiseScales | PaperNoise | None


class Planner:
    """Lengths and plans of all episodes, from settings alone."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # What one iteration costs in noise, whatever the rows: the schedules' only measure of the budget.
        few = schedule.first_picks(settings.sparsity)
        self._pick_noise = self._proven(1, settings.sparsity, 1, 1.0).pick_scale / HALF_RANGE
        self._enough = schedule.enough_rows(
            self._proven(1, few, 1, 1.0).pick_scale / HALF_RANGE, settings.dim
        )
        self._lengths = [self._first()]

    def length(self, episode: int) -> int:
        """Return the rounds of an episode."""
        if self.settings.episodes == "doubling":
            return 1 << episode
        while len(self._lengths) <= episode:
            self._lengths.append(math.ceil(self._lengths[-1] * self.settings.growth))
        return self._lengths[episode]

    def plan(self, episode: int) -> FitPlan:
        """Return the plan for the fit of `episode`'s rows."""
        settings, rows = self.settings, self.length(episode)
        sparsity, shrink = settings.sparsity, False
        if settings.calibration == "paper":
            warm = settings.warm_start and episode > 0
            default = schedule.paper_fit(rows, settings.l1_radius)
        elif settings.warm_start:
            good = sum(self.length(before) >= self._enough for before in range(episode))
            warm, shrink, sparsity = good > 0, True, schedule.picks(sparsity, good)
            default = schedule.warm_fit(good, context_scale=settings.context_scale, loss=settings.loss)
        else:
            warm = False
            signal = schedule.detectable(self._pick_noise, rows, settings.dim)
            default = schedule.cold_fit(signal, context_scale=settings.context_scale, loss=settings.loss)
        iterations = _at(settings.iterations, episode, rows, checked_iterations, default[0])
        step_size = _at(settings.step_size, episode, rows, checked_step_size, default[1])
        noise: NoiseScales | PaperNoise | None = None
        if iterations > 0:
            noise = self._noise(rows, sparsity, iterations, step_size)
        return FitPlan(episode, rows, sparsity, iterations, step_size, warm, shrink, noise)

    def statement_noise(self) -> NoiseScales | PaperNoise:
        """Return noise to state the guarantee with: it says the same for every episode."""
        plan = self.plan(0)
        return plan.noise or self._noise(plan.rows, plan.sparsity, 1, plan.step_size)

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
            sparsity=plan.sparsity,
            iterations=plan.iterations,
            step_size=plan.step_size,
            warm=plan.warm,
            noise_scale=noise_scale,
            smallest_coefficient=smallest,
            estimate=estimate,
        )

    def _first(self) -> int:
        return self.settings.first_episode or self._enough

    def _noise(self, rows: int, sparsity: int, iterations: int, step_size: float) -> NoiseScales | PaperNoise:
        settings = self.settings
        if settings.calibration == "proven":
            return self._proven(rows, sparsity, iterations, step_size)
        return calibrate_paper(
            epsilon=settings.epsilon,
            delta=settings.delta,
            rows=rows,
            dim=settings.dim,
            sparsity=sparsity,
            iterations=iterations,
            step_size=step_size,
            l1_radius=settings.l1_radius,
            context_bound=settings.context_bound,
            reward_clip=settings.reward_clip,
        )

    def _proven(self, rows: int, sparsity: int, iterations: int, step_size: float) -> NoiseScales:
        settings = self.settings
        return calibrate(
            epsilon=settings.epsilon,
            delta=settings.delta,
            rows=rows,
            dim=settings.dim,
            sparsity=sparsity,
            iterations=iterations,
            step_size=step_size,
            l1_radius=settings.l1_radius,
            clip=settings.gradient_clip,
            rounds_per_user=settings.rounds_per_user,
            mechanism=settings.mechanism,
            split=schedule.PICK_SHARE,
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
