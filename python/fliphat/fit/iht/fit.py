"""Noisy iterative hard thresholding: the plan of one fit, and a policy's fit an episode.

How many coordinates are picked, how often, for how many rows of one user, with which clip and which noise is
not written in a plan: it is read from the noise object, which was calibrated for exactly that. So what a fit
is charged for and what it does cannot differ, and a plan cannot be made with noise for another claim.

All of it is a function of public numbers: settings, the number of an episode, and what was released. Only
`IhtFit.run` is given rows, and hands them to :mod:`fliphat.fit.iht.run`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fliphat.fit.iht import constants as defaults
from fliphat.fit.iht import run
from fliphat.fit.known import KnownEstimate, SparseEstimate
from fliphat.fit.options import PerEpisode, checked_iterations, checked_step_size
from fliphat.fit.settings import Settings
from fliphat.privacy.calibration import calibrate
from fliphat.privacy.composition import Event
from fliphat.privacy.guarantee import Guarantee, state_guarantee
from fliphat.privacy.scales import HALF_RANGE, FitShape, NoiseScales, releases_of

__all__ = ["Budget", "EmptyPlan", "IhtFit", "IhtPlan", "shrunk"]

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What whoever owns the rows was promised; every plan's noise is checked against it."""

    epsilon: float
    delta: float
    rounds_per_user: int

    def require_noise(self, noise: NoiseScales) -> None:
        """Refuse noise that was calibrated for another claim."""
        if not isinstance(noise, NoiseScales):
            raise TypeError(f"noise must be NoiseScales, got {type(noise).__name__}")
        for name in ("epsilon", "delta", "rounds_per_user"):
            if getattr(noise, name) != getattr(self, name):
                raise ValueError(
                    f"noise must be calibrated for {name} = {getattr(self, name)!r}, "
                    f"got noise for {getattr(noise, name)!r}"
                )


@dataclass(frozen=True, kw_only=True)
class IhtPlan:
    """One fit by noisy iterative hard thresholding: everything it will do.

    `noise` has rows, picks, iterations, rows of one user, gradient clip and scales; `step_size` is eta,
    `l1_radius` C and `reward_clip` R. A `warm` fit starts from an estimate released before, and `shrink`
    draws released values towards zero (:func:`shrunk`). A regression's fit is episode 0; `seed`, with the
    stream of the noise, is for simulation only.
    """

    budget: Budget
    noise: NoiseScales
    episode: int
    dim: int
    step_size: float
    l1_radius: float
    loss: str
    reward_clip: float | None
    warm: bool
    shrink: bool
    seed: tuple[int, int] | None

    def __post_init__(self) -> None:
        self.budget.require_noise(self.noise)

    @property
    def rows(self) -> int:
        """Rows of the fit, with or without a reward."""
        return self.noise.rows

    @property
    def sparsity(self) -> int:
        """Coordinates that each iteration picks."""
        return self.noise.sparsity

    @property
    def iterations(self) -> int:
        """Iterations, always all of them."""
        return self.noise.iterations

    @property
    def stream(self) -> tuple[int | None, int]:
        """Seed, if there is one, and stream of the noise."""
        return (None, 0) if self.seed is None else self.seed

    @property
    def kernel_arguments(self) -> dict[str, Any]:
        """What :func:`fliphat.kernels.niht` takes besides rows, rewards and a start."""
        noise = self.noise
        return {
            "sparsity": noise.sparsity,
            "iterations": noise.iterations,
            "step_size": self.step_size,
            "l1_radius": self.l1_radius,
            "clip": noise.clip,
            "pick_scale": noise.pick_scale,
            "value_scale": noise.value_scale,
            "mechanism": noise.mechanism,
            "value_noise": noise.value_noise,
            "loss": self.loss,
            "reward_clip": self.reward_clip,
        }


@dataclass(frozen=True, kw_only=True)
class EmptyPlan:
    """An episode whose rows are not looked at: no iteration, no noise, nothing released.

    Where it is `warm` the estimate stays as it is; otherwise it is zero again.
    """

    episode: int
    rows: int
    sparsity: int
    step_size: float
    warm: bool

    @property
    def iterations(self) -> int:
        """None are run."""
        return 0


class IhtFit:
    """Planned or doubling episodes, each fitted from zero or from the estimate before it.

    Examples
    --------
    >>> from fliphat import FLIPHAT, Iht
    >>> fit = FLIPHAT(dim=400, sparsity=10, epsilon=1.0, delta=0.01, fit=Iht())._fit
    >>> plan = fit.plan(0, fit.begin())
    >>> plan.rows, plan.sparsity, plan.iterations, plan.warm
    (241, 5, 1, False)
    """

    def __init__(self, settings: Settings) -> None:
        self._budget = Budget(
            epsilon=settings.epsilon, delta=settings.delta, rounds_per_user=settings.rounds_per_user
        )
        #: Noise of an episode, by its number.
        self.noise: Callable[[int], run.Noise] = functools.partial(run.noise_of, settings.seed)
        self._calibrated: dict[tuple[int, int, int, float], NoiseScales] = {}
        self.settings = settings
        few = defaults.first_picks(settings.sparsity)
        self._enough = defaults.enough_rows(self._noise_of_one_iteration(few), settings.dim)
        if settings.episodes == "planned" and settings.first_episode is None:
            # Written down with the other settings: a later version's default must not move this policy's.
            self.settings = dataclasses.replace(settings, first_episode=self._enough)
        self._lengths = [self.settings.first_episode or self._enough]

    def begin(self) -> KnownEstimate:
        """Return the estimate that the caller said is public, or the zero estimate."""
        return KnownEstimate(self.settings.start, 0)

    def recall(self, record: dict[str, Any]) -> KnownEstimate:
        """Return what `KnownEstimate.to_record` wrote."""
        return KnownEstimate.from_record(record)

    def recall_estimate(
        self, indices: npt.NDArray[np.int64], values: npt.NDArray[np.float64]
    ) -> SparseEstimate:
        """Return an estimate that was released."""
        return SparseEstimate(indices, values, self.settings.dim)

    def least_rows(self, episode: int) -> int:
        """Return the length of an episode, which does not depend on anything released."""
        if self.settings.episodes == "doubling":
            return 1 << episode
        while len(self._lengths) <= episode:
            self._lengths.append(math.ceil(self._lengths[-1] * self.settings.growth))
        return self._lengths[episode]

    def plan(self, episode: int, known: KnownEstimate) -> IhtPlan | EmptyPlan:
        """Return the plan of an episode; what is known changes the start of its fit and nothing else."""
        settings, rows = self.settings, self.least_rows(episode)
        sparsity, shrink = settings.sparsity, False
        if settings.warm_start:
            good = sum(self.least_rows(before) >= self._enough for before in range(episode))
            good += settings.start_indices is not None
            warm, shrink, sparsity = good > 0, True, defaults.picks(sparsity, good)
            steps = defaults.warm_fit(good, context_scale=settings.context_scale, loss=settings.loss)
        else:
            warm = False
            signal = defaults.detectable(self._noise_of_one_iteration(sparsity), rows, settings.dim)
            steps = defaults.cold_fit(signal, context_scale=settings.context_scale, loss=settings.loss)
        iterations = _at(settings.iterations, episode, rows, checked_iterations, steps.iterations)
        step_size = _at(settings.step_size, episode, rows, checked_step_size, steps.step_size)
        if iterations == 0:
            return EmptyPlan(episode=episode, rows=rows, sparsity=sparsity, step_size=step_size, warm=warm)
        return IhtPlan(
            budget=self._budget,
            noise=self._proven(rows, sparsity, iterations, step_size),
            episode=episode,
            dim=settings.dim,
            step_size=step_size,
            l1_radius=settings.l1_radius,
            loss=settings.loss,
            reward_clip=settings.reward_clip,
            warm=warm,
            shrink=shrink,
            seed=None if settings.seed is None else (settings.seed, episode),
        )

    def run(
        self,
        plan: IhtPlan | EmptyPlan,
        rows: Any,
        rewards: npt.NDArray[np.float64],
        present: npt.NDArray[np.bool_],
        known: KnownEstimate,
    ) -> KnownEstimate:
        """Fit an episode's rows with fresh noise; twice on the same rows costs the privacy budget twice."""
        if plan.episode != known.episodes:
            raise ValueError(f"plan must be that of episode {known.episodes}, got episode {plan.episode}")
        last = known.estimate
        if isinstance(plan, EmptyPlan):
            estimate = last if plan.warm else SparseEstimate.zero(last.dim)
        else:
            start = last.to_dense() if plan.warm else None
            noise = self.noise(plan.episode)
            theta = run.from_rows(plan, rows, rewards, present=present, start=start, noise=noise)
            if plan.shrink:
                theta = shrunk(theta, _value_noise(plan))
            estimate = SparseEstimate.from_dense(theta)
        return KnownEstimate(estimate, known.episodes + 1)

    def facts(self, plan: IhtPlan | EmptyPlan, known: KnownEstimate) -> dict[str, Any]:
        """Return what may be told about a finished fit: nothing but its plan."""
        settings = self.settings
        noise_scale, smallest = 0.0, math.inf
        if isinstance(plan, IhtPlan):
            noise_scale = _value_noise(plan)
            flatness = defaults.curvature(settings.loss) / settings.context_scale**2
            smallest = plan.noise.pick_gradient_noise * math.log(max(settings.dim, 2)) * flatness
        return {
            "episode": plan.episode,
            "rounds": plan.rows,
            "sparsity": plan.sparsity,
            "iterations": plan.iterations,
            "step_size": plan.step_size,
            "warm": plan.warm,
            "noise_scale": noise_scale,
            "smallest_coefficient": smallest,
        }

    def guarantee(self) -> Guarantee:
        """Return the claim of every episode's noise: that of the first says the same as any other."""
        plan = self.plan(0, self.begin())
        return state_guarantee(
            plan.noise
            if isinstance(plan, IhtPlan)
            else self._proven(plan.rows, plan.sparsity, 1, plan.step_size),
            setting="bandit",
            seeded=not self.noise(0).protects,
            kinds=self.kinds,
        )

    def kinds(self) -> list[list[Event]] | None:
        """Return the events of every kind of fit, as large as a user's rounds make them, if known."""
        shapes, users = self._kinds(), self.settings.rounds_per_user
        if shapes is None:
            return None
        found = []
        for picks, iterations in shapes:
            noise = self._proven(1, picks, iterations, 1.0)
            shape = FitShape(picks, iterations, noise.pick_scale, noise.value_scale)
            releases = releases_of(
                shape, mechanism=noise.mechanism, value_noise=noise.value_noise, rows=users
            )
            found.append([event for release in releases for event in release.events(1)])
        return found

    def _noise_of_one_iteration(self, picks: int) -> float:
        """Return the noise of a pick in clips times rows: the schedules' only measure of the budget."""
        return self._proven(1, picks, 1, 1.0).pick_scale / HALF_RANGE

    def _proven(self, rows: int, sparsity: int, iterations: int, step_size: float) -> NoiseScales:
        """Return noise within the budget, calibrated once for each fit."""
        settings, key = self.settings, (rows, sparsity, iterations, step_size)
        if key not in self._calibrated:
            self._calibrated[key] = calibrate(
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
                split=defaults.BANDIT_PICK_SHARE,
                fits=self._kinds(),
                # What has no exact price is calibrated by zCDP, and its guarantee says so.
                accounting="zcdp" if settings.accounting == "zcdp" else None,
            )
        return self._calibrated[key]

    def _kinds(self) -> list[tuple[int, int]] | None:
        """Return (picks, iterations) of all fits that rows of one user may enter; None if not known."""
        settings = self.settings
        if callable(settings.iterations):
            return None
        if settings.iterations is not None:
            given: Any = settings.iterations
            iterations = {int(m) for m in (given if isinstance(given, (tuple, list)) else [given]) if m}
        else:
            iterations = {1} if settings.warm_start else defaults.cold_iterations()
        picks = {settings.sparsity}
        if settings.warm_start:
            picks.add(defaults.first_picks(settings.sparsity))
        return [(count, m) for count in sorted(picks) for m in sorted(iterations)]


def shrunk(theta: npt.NDArray[np.float64], noise: float) -> npt.NDArray[np.float64]:
    """Draw values towards zero by what is noise in them, on average; post-processing of a release.

    If nothing stood out of the noise the estimate stays as it is: better than none.
    """
    found = np.flatnonzero(theta)
    kept = np.zeros_like(theta)
    kept[found] = theta[found] * np.maximum(0.0, 1 - np.minimum(noise / np.abs(theta[found]), 1.0) ** 2)
    return kept if kept.any() else theta


def _value_noise(plan: IhtPlan) -> float:
    """Return the noise of a released value, in units of a coefficient."""
    return plan.step_size * plan.noise.value_gradient_noise


def _at(
    given: PerEpisode | None, episode: int, rows: int, check: Callable[[object], _Number], default: _Number
) -> _Number:
    if given is None:
        return default
    if callable(given):
        return check(given(rows))
    if isinstance(given, (tuple, list)):
        return check(given[min(episode, len(given) - 1)])
    return check(given)
