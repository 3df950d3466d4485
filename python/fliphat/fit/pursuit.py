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
3. public from here on: :mod:`fliphat.fit.model` learns from these numbers and plans the next episode.

What a fit is charged for is what it does: the scales of both draws are read from one
:class:`~fliphat.privacy.priced.PricedRelease`, which can't be built for less than its price.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from fliphat.fit import draw, kept_tuning, model, pilot, sums
from fliphat.fit.known import SparseEstimate
from fliphat.fit.model import KnownSparse
from fliphat.fit.settings import Settings
from fliphat.fit.tuning import Tuning, click_tuning, tuning
from fliphat.privacy import composition
from fliphat.privacy.conversion import rho_from_epsilon
from fliphat.privacy.guarantee import Guarantee
from fliphat.privacy.priced import Part, PickNoise, PricedRelease, VectorNoise
from fliphat.privacy.scales import ROW_SENSITIVITY

__all__ = ["Pursuit", "PursuitPlan", "RowSums", "Sums"]

#: Radius of the ball of the rows' integers whose second moments are added up. Rounding toward zero takes less
#: than a thousandth off a coordinate, and products of a hundred rows still fit 32 bits, which is fast.
RADIUS: Final = 2**12 - 1


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class PursuitPlan:
    """One episode's fit: everything it will do.

    Attributes
    ----------
    episode : int
    dim : int
    steps : model.Episode
        Rows, picks, clips and coordinates.
    release : PricedRelease
        Picks, then one vector: gradients, second moments above the diagonal, the residuals' size, and in the
        first episode, or where those are asked for again, three numbers of whole rows.
    signed : bool
        Whether a sign is picked with a column.
    octaves : float
        Range of a row's size in the first episode.
    told : model.Told
    units : ndarray, shape (dim,), or None
        Public sizes of columns.
    seed : int, optional
        For simulation only.
    """

    episode: int
    dim: int
    steps: model.Episode
    release: PricedRelease
    signed: bool
    octaves: float
    told: model.Told
    units: npt.NDArray[np.float64] | None
    seed: int | None

    @property
    def rows(self) -> int:
        """Rows of the fit, with or without a reward."""
        return self.steps.rows

    @property
    def picks(self) -> PickNoise | None:
        """Noise of the picks; None where every column is public already."""
        noise = self.release.noise[0]
        return noise if isinstance(noise, PickNoise) else None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Parts of the vector, in order."""
        noise = self.release.noise[-1]
        assert isinstance(noise, VectorNoise)
        return noise.parts


class Pursuit:
    """Episodes whose length and picks follow what was found.

    Parameters
    ----------
    settings : Settings
    constants : Tuning, optional
        Instead of those that a bandit has at its budget.
    accounting : {"exact", "zcdp"}, optional
        How an episode is priced; by default exactly where a person has one row.

    Examples
    --------
    >>> from fliphat import FLIPHAT
    >>> fit = FLIPHAT(dim=400, sparsity=10, epsilon=1.0, delta=0.01, fit="pursuit")._fit
    >>> plan = fit.plan(0, fit.begin())
    >>> plan.rows, plan.picks.count, plan.release.price <= 0.01
    (119, 1, True)
    """

    def __init__(
        self, settings: Settings, *, constants: Tuning | None = None, accounting: str | None = None
    ) -> None:
        self.settings = settings
        self._users = settings.rounds_per_user
        # Fits of a person's rows differ from episode to episode, and only zCDP adds up whatever they are.
        self._accounting = "zcdp" if self._users > 1 else accounting or "exact"
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
        self.told = model.Told(
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
        )
        if self.settings.constants is None:
            # Written down with the other settings, as the length below: a later version's must not move this
            # policy's. A store without a record of them goes on under the name of those it had.
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
        return kept_tuning.unrecorded(self._mu) if isinstance(kept, str) else kept

    def begin(self) -> KnownSparse:
        """Return what the caller said."""
        return model.begin(self.told)

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
        steps = model.open_episode(known, self.told)
        return PursuitPlan(
            episode=episode,
            dim=settings.dim,
            steps=steps,
            release=self._release(steps),
            signed=constants.signed,
            octaves=constants.octaves,
            told=self.told,
            units=self._units,
            seed=settings.seed,
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
            return pilot.run(plan, rewards, present, known)
        return self.run_sums(plan, RowSums(plan, rows, rewards, present, known), known)

    def run_sums(self, plan: PursuitPlan, private: Sums, known: KnownSparse) -> KnownSparse:
        """Do what :meth:`run` does, bit for bit, over rows that live elsewhere."""
        if plan.episode != known.episodes:
            raise ValueError(f"plan must be that of episode {known.episodes}, got episode {plan.episode}")
        return model.learn(known, self.told, plan.steps, release(plan, private, known))

    def facts(self, plan: PursuitPlan | pilot.PilotPlan, known: KnownSparse) -> dict[str, Any]:
        """Return what may be told about a finished fit."""
        if isinstance(plan, pilot.PilotPlan):
            return pilot.facts(plan)
        steps, n = plan.steps, plan.rows
        value_noise = plan.parts[0].sigma * steps.value_clip / sums.LIMIT / n
        pick_scale = 0 if plan.picks is None else plan.picks.scale
        pick_noise = pick_scale * steps.pick_clip / sums.LIMIT / n
        return {
            "episode": plan.episode,
            "rounds": n,
            "sparsity": steps.picks,
            "iterations": 1,
            "step_size": 1.0,
            "warm": plan.episode > 0,
            "noise_scale": value_noise / steps.one,
            "smallest_coefficient": pick_noise * math.log(max(plan.dim, 2)) / steps.one**2,
        }

    def guarantee(self, *, stacklevel: int = 2) -> Guarantee:
        """Return the claim of every episode's noise: that of the first says the same as any other."""
        settings, first = self.settings, self.plan(0, self.begin()).release
        exact = self._accounting == "exact"
        return Guarantee(
            epsilon=settings.epsilon,
            delta=settings.delta,
            rho=None if exact else first.rho,
            setting="bandit",
            rounds_per_user=settings.rounds_per_user,
            user_ids_checked=False,
            mechanism="exponential",
            value_noise="rounded_gaussian",
            calibration="proven",
            seeded=settings.seed is not None,
            noise_shortfall=None,
            release=first if exact else None,
        )

    def _release(self, steps: model.Episode) -> PricedRelease:
        """Return noise for an episode: its shares of the budget, at the smallest scales the claim allows."""
        share, m = steps.shares, len(steps.whiten)

        def part(sensitivity_squared: int, share_of_it: float) -> Part:
            return Part(sensitivity_squared, math.ceil(math.sqrt(sensitivity_squared / share_of_it)))

        parts = [
            part(m * ROW_SENSITIVITY**2, share["gradient"]),
            part(RADIUS**4, share["moments"]),
            part(sums.LIMIT**2, share["size"]),
        ]
        if "rows" in share:
            parts += [part((width * sums.LIMIT) ** 2, share["rows"] / 3) for width in (2, 2, 1)]
        noise: list[PickNoise | VectorNoise] = [VectorNoise(*parts)]
        if steps.picks:
            scale = math.ceil(ROW_SENSITIVITY * math.sqrt(steps.picks / share["picks"]))
            noise.insert(0, PickNoise(ROW_SENSITIVITY, scale, steps.picks))
        return draw.priced(noise, self.settings, self._accounting)


class Sums(Protocol):
    """An episode's private sums: all that the noise is added to. Each is asked for once."""

    def candidates(self) -> npt.NDArray[np.int64]:
        """Return the sums that columns are picked by, one a column."""

    def further(self, columns: npt.NDArray[np.int64], signs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the sums that the next column is picked by, after these of the same episode."""

    def vector(self, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return what is released of the public and the picked columns.

        Gradients, second moments on and above the diagonal, the residuals' size and, where they are released,
        three numbers of whole rows.
        """


class RowSums:
    """The sums of rows in this process. Private.

    Parameters
    ----------
    plan : PursuitPlan
    rows : ndarray or CSR, shape (n, plan.dim)
        The episode's rows, or some of them: the sums of several such parts are added.
    rewards, present : ndarray, shape (n,)
    known : KnownSparse
        What the plan was made from.
    threads : int, optional
        By default all cores, or one if the work is small. It never changes the result.
    """

    def __init__(
        self,
        plan: PursuitPlan,
        rows: Any,
        rewards: npt.NDArray[np.float64],
        present: npt.NDArray[np.bool_],
        known: KnownSparse,
        *,
        threads: int | None = None,
    ) -> None:
        self._plan, self._rows, self._present, self._known = plan, rows, present, known
        self._rewards, self._threads = rewards, threads
        self._support = np.empty((rows.shape[0], 1 + len(known.columns)))
        self._left: npt.NDArray[np.float64] | None = None

    def candidates(self) -> npt.NDArray[np.int64]:
        """Return the sums of all columns; replacing one row moves each by at most ``2 * LIMIT``."""
        steps, told = self._plan.steps, self._plan.told
        public = sums.Public(
            columns=self._known.columns,
            theta=self._known.theta,
            one=steps.one,
            shift=steps.shift,
            units=self._plan.units,
            loss="logistic" if told.loss == "logistic" else "squared",
            reward_range=told.reward_range,
        )
        scores, self._left = sums.candidate_sums(
            self._rows,
            self._rewards,
            self._present,
            public,
            steps.pick_clip,
            self._support,
            threads=self._threads,
        )
        return scores

    def further(self, columns: npt.NDArray[np.int64], signs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the sums of all columns at residuals less what these picks may explain.

        Replacing one row moves each by at most ``2 * LIMIT``, whatever was picked.
        """
        if self._left is None:
            self.candidates()
        assert self._left is not None
        steps = self._plan.steps
        found, _ = sums.further_sums(
            self._rows,
            columns,
            signs,
            self._support,
            self._left,
            self._present,
            one=steps.one,
            taken=steps.taken,
            shift=steps.shift,
            clip=steps.pick_clip,
            units=self._plan.units,
            threads=self._threads,
        )
        return found

    def vector(self, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the vector's sums, each with the sensitivity that the plan's parts say."""
        if self._left is None:
            self.candidates()
        assert self._left is not None
        plan, present, threads = self._plan, self._present, self._threads
        steps = plan.steps
        gradient, moments, size = sums.settled_sums(
            self._rows,
            columns,
            self._support,
            self._left,
            present,
            whiten=steps.whiten,
            clip=steps.value_clip,
            radius=RADIUS,
            ball=steps.ball,
            cap=steps.size_cap,
            units=plan.units,
            threads=threads,
        )
        whole: tuple[int, ...] = ()
        if "rows" in steps.shares:
            whole = sums.row_numbers(
                self._rows, present, steps.one, plan.octaves, plan.units, threads=threads
            )
        return np.concatenate([gradient, moments[_upper(len(gradient))], np.array([size, *whole], np.int64)])


def release(plan: PursuitPlan, private: Sums, known: KnownSparse) -> model.Released:
    """Release an episode's numbers: private sums go in, noisy means come out."""
    steps, n, units = plan.steps, plan.rows, plan.units
    noise = draw.seeded(plan.seed, plan.episode)
    columns = signs = np.zeros(0, np.int64)
    if plan.picks is not None:
        columns, signs = _picked(plan, plan.picks, private, known, noise)
    m = len(steps.whiten)
    upper, cut = _upper(m), m + m * (m + 1) // 2
    sigma_gradient, sigma_moments, sigma_size, *sigma_rows = (part.sigma for part in plan.parts)
    sigmas = np.full(cut + 1 + len(sigma_rows), sigma_moments, np.int64)
    sigmas[:m] = sigma_gradient
    # The diagonal's noise must be at least sqrt(2) times that above it: the sensitivity B^4 counts on it.
    sigmas[m:cut][_on_diagonal(m)] = math.isqrt(2 * sigma_moments**2) + 1
    sigmas[cut:] = [sigma_size, *sigma_rows]
    values = private.vector(columns)
    released = noise.vector(values, sigmas) / n
    scale = RADIUS / steps.ball
    gradient_step, size_step = steps.value_clip / sums.LIMIT, steps.size_cap / sums.LIMIT
    symmetric = np.empty((m, m))
    symmetric[upper] = symmetric.T[upper] = released[m:cut] / scale**2
    rows = rows_noise = None
    if sigma_rows:
        row_steps = np.array([plan.octaves, 1.0, 1.0]) / sums.LIMIT
        rows = tuple(released[cut + 1 :] * row_steps)
        rows_noise = tuple(np.array(sigma_rows) * row_steps / n)
    return model.Released(
        columns=columns,
        units=np.ones(len(columns)) if units is None else units[columns],
        signs=signs,
        gradient=released[:m] * gradient_step,
        gradient_noise=sigma_gradient * gradient_step / n,
        moments=symmetric,
        moment_noise=sigma_moments / scale**2 / n,
        size=float(released[cut] * size_step),
        size_noise=sigma_size * size_step / n,
        rows=rows,
        rows_noise=rows_noise,
    )


def _picked(
    plan: PursuitPlan, charged: PickNoise, private: Sums, known: KnownSparse, noise: draw.Drawn
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pick as many columns as were charged for, all by the same sums or each by what the others leave."""
    scores = private.candidates()
    if not plan.steps.taken:
        return noise.picks(scores, charged, excluded=known.columns, signed=plan.signed)
    one = dataclasses.replace(charged, count=1)
    columns = signs = np.zeros(0, np.int64)
    for pick in range(charged.count):
        if pick:
            scores = private.further(columns, signs)
        # The last pick's sign has its price, and is of use only as what coefficients start from.
        signed = pick + 1 < charged.count or plan.told.tuning.guess != 0
        excluded = np.concatenate([known.columns, columns])
        column, sign = noise.picks(scores, one, excluded=excluded, signed=signed)
        columns, signs = np.concatenate([columns, column]), np.concatenate([signs, sign])
    return columns, signs


@functools.cache
def _on_diagonal(m: int) -> npt.NDArray[np.intp]:
    """Return where the diagonal is among the entries of :func:`_upper`."""
    above, right = _upper(m)
    return np.flatnonzero(above == right)


@functools.cache
def _upper(m: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return rows and columns of the entries of a square from its diagonal up."""
    return np.triu_indices(m)
