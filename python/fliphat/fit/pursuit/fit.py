"""Pursuit: what is public is not paid for again.

The columns of an estimate are public once released, so an episode picks only new ones, a few at a time,
and spends the rest of its budget on what is not known of the public ones. One episode, whose plan is fixed
when it opens:

1. residuals at the public coefficients; integer sums of clipped gradients of all columns; p picks outside
   the public ones by the exponential mechanism, with a sign. A pick is public at once, so what it is likely
   to explain is taken off the residuals before the next one: a row's integers are bounded at any residuals,
   so that a pick costs the same;
2. one Gaussian vector on the intercept, the public and the new columns: gradients, second moments, the size
   of residuals, and in the first episode the sizes and means of whole rows (in the second again, if they were
   far from what was told);
3. public from here on: :mod:`fliphat.fit.pursuit` learns from these numbers and plans the next episode.

What a fit is charged for is what it does: the scales of both draws are read from one
:class:`~fliphat.privacy.priced.PricedRelease`, which can't be built for less than its price.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.board import BOARD_SHARE
from fliphat.fit.known import SparseEstimate
from fliphat.fit.pursuit import pilot
from fliphat.fit.pursuit.constants import Tuning, click_tuning, tuning
from fliphat.fit.pursuit.known import Episode, KnownSparse, Told
from fliphat.fit.pursuit.learning import learn
from fliphat.fit.pursuit.opening import begin, open_episode
from fliphat.fit.pursuit.plan import LIMIT, PursuitPlan, priced_noise
from fliphat.fit.pursuit.release import RowSums, Sums, release
from fliphat.fit.release import Noise, noise_of
from fliphat.fit.settings import Settings
from fliphat.privacy import composition
from fliphat.privacy.conversion import rho_from_epsilon
from fliphat.privacy.guarantee import Guarantee
from fliphat.privacy.priced import Claim, PricedRelease

__all__ = ["PursuitFit"]

#: Rounded scales of episodes with the same shares are closer to each other than this.
_ROUNDED_APART: Final = 1.001


class PursuitFit:
    """Episodes whose length and picks follow what was found.

    Parameters
    ----------
    settings : Settings
    constants : Tuning, optional
        Instead of those that a bandit has at its budget.
    accounting : {"exact", "zcdp"}, optional
        How an episode is priced; by default exactly where a person has one row. Below ``delta = 1e-28``
        always in zCDP.

    Examples
    --------
    >>> from fliphat import FLIPHAT
    >>> fit = FLIPHAT(dim=400, sparsity=10, epsilon=1.0, delta=0.01)._fit
    >>> plan = fit.plan(0, fit.begin())
    >>> plan.rows, plan.picks.count, plan.release.price <= 0.01
    (119, 1, True)
    """

    def __init__(
        self, settings: Settings, *, constants: Tuning | None = None, accounting: str | None = None
    ) -> None:
        self.settings = settings
        #: Noise of an episode, by its number.
        self.noise: Callable[[int], Noise] = functools.partial(noise_of, settings.seed)
        self._users = settings.rounds_per_user
        # Fits of a person's rows differ from episode to episode, and only zCDP adds up whatever they are.
        only_zcdp = self._users > 1 or settings.delta < composition.SMALLEST_DELTA
        self._accounting = "zcdp" if only_zcdp else accounting or "exact"
        if self._accounting == "exact":
            self._mu = composition.largest_factor(
                settings.epsilon, settings.delta, [composition.Gaussian(1.0)]
            )
        else:
            self._mu = math.sqrt(2 * rho_from_epsilon(settings.epsilon, settings.delta)) / self._users
        units = settings.column_scales
        self._units = None if units is None else np.asarray(units, np.float64)
        scale = settings.reward_scale
        if settings.loss == "logistic":
            scale = min(scale, 0.5)
        elif settings.reward_range is not None:
            scale = min(scale, (settings.reward_range[1] - settings.reward_range[0]) / 2)
        self.told = Told(
            dim=settings.dim,
            sparsity=settings.sparsity,
            mu=self._mu,
            context_scale=settings.context_scale,
            reward_scale=scale,
            intercept=settings.intercept,
            reward_range=(0.0, 1.0) if settings.loss == "logistic" else settings.reward_range,
            loss=settings.loss,
            first_rows=settings.first_episode,
            pilot=settings.pilot,
            constants=self._resolved(constants),
            board=constants is None and accounting is None,
            guard=settings.guard,
        )
        if self.settings.constants is None:
            # Written down with the other settings, as the length below: a later version's must not move this
            # policy's.
            settings = self.settings = dataclasses.replace(settings, constants=self.told.tuning)
        if settings.first_episode is None:
            # Written down with the other settings: a later version's default must not move this policy's.
            rows = math.ceil(self.begin().rows)
            self.settings = dataclasses.replace(settings, first_episode=rows)
            self.told = dataclasses.replace(self.told, first_rows=rows)

    def _resolved(self, given: Tuning | None) -> Tuning:
        """Return the constants: those given, those of the policy's record, or this version's."""
        kept = self.settings.constants
        if given is not None:
            return given
        if kept is None:
            return (click_tuning if self.settings.loss == "logistic" else tuning)(self._mu)
        return kept

    def begin(self) -> KnownSparse:
        """Return what the caller said."""
        return begin(self.told)

    def recall(self, record: dict[str, Any]) -> KnownSparse:
        """Return what `KnownSparse.to_record` wrote."""
        return KnownSparse.from_record(record)

    def recall_estimate(
        self, indices: npt.NDArray[np.int64], values: npt.NDArray[np.float64]
    ) -> SparseEstimate:
        """Return an estimate that was released."""
        return SparseEstimate(indices, values, self.settings.dim)

    def least_rows(self, episode: int) -> int:
        """Return a length that an episode will have at least."""
        if episode == 0 and self.told.pilot:
            return pilot.length(self._mu)
        begin = self.begin()
        return math.ceil(begin.rows if episode == self.told.pilot else begin.shortest)

    def plan(self, episode: int, known: KnownSparse) -> PursuitPlan | pilot.PilotPlan:
        """Return the plan of the next episode."""
        settings, constants = self.settings, self.told.tuning
        if episode != known.episodes:
            raise ValueError(f"episode must be {known.episodes}, the next one, got {episode}")
        if episode == 0 and self.told.pilot:
            return pilot.plan(self.told, settings, self._accounting)
        steps = open_episode(known, self.told)
        return PursuitPlan(
            episode=episode,
            dim=settings.dim,
            steps=steps,
            release=self._release(steps),
            signed=constants.signed,
            octaves=constants.octaves,
            told=self.told,
            units=self._units,
        )

    def run(
        self,
        plan: PursuitPlan | pilot.PilotPlan,
        rows: Any,
        rewards: npt.NDArray[np.float64],
        present: npt.NDArray[np.bool_],
        known: KnownSparse,
    ) -> KnownSparse:
        """Fit an episode's rows with fresh noise; twice on the same rows costs the privacy budget twice."""
        if plan.episode != known.episodes:
            raise ValueError(f"plan must be that of episode {known.episodes}, got episode {plan.episode}")
        if rows.shape != (plan.rows, self.told.dim):
            shape = (plan.rows, self.told.dim)
            raise ValueError(f"rows must have the plan's shape {shape}, got {rows.shape}")
        if isinstance(plan, pilot.PilotPlan):
            return pilot.run(plan, rewards, present, known, self.noise(plan.episode))
        return self.run_sums(plan, RowSums(rows, rewards, present), known)

    def run_sums(self, plan: PursuitPlan, private: RowSums | Sums, known: KnownSparse) -> KnownSparse:
        """Do what :meth:`run` does, bit for bit, over rows that live elsewhere."""
        if plan.episode != known.episodes:
            raise ValueError(f"plan must be that of episode {known.episodes}, got episode {plan.episode}")
        released = release(plan, private, known, self.noise(plan.episode))
        return learn(known, self.told, plan.steps, released)

    def facts(self, plan: PursuitPlan | pilot.PilotPlan, known: KnownSparse) -> dict[str, Any]:
        """Return what may be told about a finished fit."""
        if isinstance(plan, pilot.PilotPlan):
            return pilot.facts(plan)
        steps, n = plan.steps, plan.rows
        value_noise = plan.parts[0].sigma * steps.value_clip / LIMIT / n
        pick_scale = 0 if plan.picks is None else plan.picks.scale
        pick_noise = pick_scale * steps.pick_clip / LIMIT / n
        return {
            "episode": plan.episode,
            "rounds": n,
            "sparsity": steps.picks,
            "iterations": 1,
            "step_size": 1.0,
            "warm": plan.episode > 0,
            "noise_scale": value_noise / steps.one,
            "smallest_coefficient": pick_noise * math.log(max(plan.dim, 2)) / steps.one**2,
            "board": known.earned.last,
        }

    def guarantee(self) -> Guarantee:
        """Return the claim of every episode's noise: that of the first says the same as any other."""
        settings, first = self.settings, self.plan(0, self.begin()).release
        exact = self._accounting == "exact"
        return Guarantee(
            epsilon=settings.epsilon,
            delta=settings.delta,
            # No episode passes it; what each costs after its scales are rounded differs by some millionths.
            rho=None if exact else Fraction(rho_from_epsilon(settings.epsilon, settings.delta)),
            setting="bandit",
            rounds_per_user=settings.rounds_per_user,
            user_ids_checked=False,
            mechanism="exponential",
            value_noise="rounded_gaussian",
            calibration="proven",
            seeded=not self.noise(0).protects,
            noise_shortfall=None,
            release=first if exact else None,
            kinds=self.kinds if exact else None,
        )

    def kinds(self) -> list[list[composition.Event]]:
        """Return the events of every kind of episode that any release can lead to, a little enlarged.

        Episodes of as many picks with the same shares of the budget differ by how their scales are rounded.
        """
        t, told = self.told.tuning, self.told
        found = []
        for picks in range(min(int(max(1.0, t.most_picks * told.sparsity)), told.dim) + 1):
            for share in {t.pick_share, t.late_pick_share} if picks else {0.0}:
                for rows in ({}, {"rows": t.row_share}):
                    shares = {"picks": share, "moments": t.moment_share, "size": t.size_share, **rows}
                    if told.board:
                        shares["board"] = BOARD_SHARE
                    shares["gradient"] = 1 - sum(shares.values())
                    release = priced_noise(self._claim, 1 + picks, picks, tuple(shares.items()))
                    found.append([event.scaled(_ROUNDED_APART) for event in release.events])
        if told.pilot:
            first = pilot.plan(told, self.settings, self._accounting).release
            found.append(list(first.events))
        return found

    @property
    def _claim(self) -> Claim:
        return Claim(self.settings.epsilon, self.settings.delta, self._users, self._accounting)

    def _release(self, steps: Episode) -> PricedRelease:
        """Return noise for an episode: its shares of the budget, at the smallest scales the claim allows."""
        return priced_noise(self._claim, len(steps.whiten), steps.picks, tuple(steps.shares.items()))
