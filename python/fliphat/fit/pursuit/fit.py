"""Pursuit: what is public is not paid for again.

The columns of an estimate are public once released, so an episode picks only new ones, a few at a time,
and spends the rest of its budget on what is not known of the public ones. One episode, whose plan is fixed
when it opens:

1. in the first episode (in the second again, if they were far from what was told) sizes and means of whole
   rows: a Gaussian vector;
2. residuals at the public coefficients; integer sums of clipped gradients of all columns; p picks outside
   the public ones by the exponential mechanism, with a sign. A pick is public at once, so what it is likely
   to explain is taken off the residuals before the next one: a row's integers are bounded at any residuals,
   so that a pick costs the same;
3. one Gaussian vector on the intercept, the public and the new columns: gradients, second moments, the size
   of residuals, and what was earned;
4. public from here on: :mod:`fliphat.fit.pursuit` learns from these numbers and plans the next episode.

Steps 1 to 3 are :func:`release`, all of it in Rust (``rust/core/src/private/episode.rs``): no sum without
noise comes back to Python. Sums of rows that live elsewhere cross as bytes, which nothing here looks into.
Every release costs the privacy budget once more, on the same rows as well. What a fit is charged for is what
it does: all scales are read from one :class:`~fliphat.privacy.priced.PricedRelease`, which can't be built for
less than its price.

The **pilot**, where it is asked for, comes before all this: where rewards are, and how far apart. Some rounds
of their own, played uniformly, buy two picks of the exponential mechanism: about how far apart two rewards
are, on a geometric grid, and then the place where most rewards are, among multiples of that distance. Both
count what is near a candidate, so one reward moves a count by one. What was told, and near zero, is more
likely beforehand: a public weight of 1/(1 + j) for a candidate j octaves or steps away lets few rounds find
what is near and lets more of them find rewards a million distances away. The rows of a pilot are never
fitted.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fliphat import _native
from fliphat.fit.board import BOARD_SHARE, BOARD_WIDTH, Board
from fliphat.fit.known import SparseEstimate
from fliphat.fit.pursuit import constants as c
from fliphat.fit.pursuit.constants import LIMIT, PILOT_STEPS, RADIUS, Tuning, click_tuning, tuning
from fliphat.fit.pursuit.known import Given, KnownSparse, ReleasedMeans
from fliphat.fit.pursuit.learning import learn
from fliphat.fit.pursuit.plan import PursuitPlan, begin, centred, open_episode, priced_noise
from fliphat.fit.settings import Settings
from fliphat.kernels import _rows
from fliphat.kernels._fits import Noise, noise_of
from fliphat.privacy import composition
from fliphat.privacy.conversion import rho_from_epsilon
from fliphat.privacy.guarantee import Guarantee
from fliphat.privacy.priced import Claim, PickNoise, PricedRelease, VectorNoise, fit_scales

__all__ = [
    "PilotPlan",
    "PursuitFit",
    "RowSums",
    "Sums",
    "native_rows",
    "question",
    "release",
]


class PursuitFit:
    """Episodes whose length and picks follow what was found.

    `constants` are those of a bandit at its budget, if none are given. An episode is priced exactly where a
    person has one row and `accounting` is not "zcdp"; below ``delta = 1e-28`` always in zCDP.

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
        users = settings.rounds_per_user
        # Fits of a person's rows differ from episode to episode, and only zCDP adds up whatever they are.
        only_zcdp = users > 1 or settings.delta < composition.SMALLEST_DELTA
        self._accounting = "zcdp" if only_zcdp else accounting or "exact"
        if self._accounting == "exact":
            mu = composition.largest_factor(settings.epsilon, settings.delta, [composition.Gaussian(1.0)])
        else:
            mu = math.sqrt(2 * rho_from_epsilon(settings.epsilon, settings.delta)) / users
        self._claim = Claim(settings.epsilon, settings.delta, users, self._accounting)
        chosen = settings.constants if constants is None else constants
        if chosen is None:
            chosen = (click_tuning if settings.loss == "logistic" else tuning)(mu)
        units = settings.column_scales
        self._units = None if units is None else np.asarray(units, np.float64)
        scale = settings.reward_scale
        if settings.loss == "logistic":
            scale = min(scale, c.EVEN_ODDS)
        elif settings.reward_range is not None:
            scale = min(scale, (settings.reward_range[1] - settings.reward_range[0]) / 2)
        self.given = Given(
            dim=settings.dim,
            sparsity=settings.sparsity,
            mu=mu,
            context_scale=settings.context_scale,
            reward_scale=scale,
            intercept=settings.intercept,
            reward_range=(0.0, 1.0) if settings.loss == "logistic" else settings.reward_range,
            loss=settings.loss,
            first_rows=settings.first_episode,
            pilot=settings.pilot,
            constants=chosen,
            board=constants is None and accounting is None,
            guard=settings.guard,
        )
        self._begun = begin(self.given)
        # Written down with the other settings: a later version's default must not move this policy's.
        rows = settings.first_episode
        if rows is None:
            rows = math.ceil(self._begun.rows)
            self.given = dataclasses.replace(self.given, first_rows=rows)
            self._begun = begin(self.given)
        if settings.constants is None or settings.first_episode is None:
            kept = self.given.tuning if settings.constants is None else settings.constants
            self.settings = dataclasses.replace(settings, constants=kept, first_episode=rows)
        #: What was planned last, and from what: an episode is planned when it is sized, and when it opens.
        self._planned: tuple[KnownSparse, PursuitPlan | PilotPlan] | None = None

    def begin(self) -> KnownSparse:
        """Return what the caller said."""
        return self._begun

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
        if episode == 0 and self.given.pilot:
            return max(math.ceil(c.PILOT_ROUNDS / self.given.mu), c.PILOT_FEWEST)
        return math.ceil(self._begun.rows if episode == self.given.pilot else self._begun.shortest)

    def plan(self, episode: int, known: KnownSparse) -> PursuitPlan | PilotPlan:
        """Return the plan of the next episode."""
        if episode != known.episodes:
            raise ValueError(f"episode must be {known.episodes}, the next one, got {episode}")
        if self._planned is not None and self._planned[0] is known:
            return self._planned[1]
        plan: PursuitPlan | PilotPlan
        if episode == 0 and self.given.pilot:
            plan = self._pilot_plan()
        else:
            steps = open_episode(known, self.given)
            # Its shares of the budget, at the smallest scales that the claim allows.
            shares = tuple(steps.shares.items())
            release = priced_noise(self._claim, len(steps.whiten), steps.picks, shares)
            *before, last = release.noise
            picks = before[-1] if before else None
            plan = PursuitPlan(
                episode=episode,
                steps=steps,
                release=release,
                given=self.given,
                units=self._units,
                rows=steps.rows,
                row_parts=before[0].parts if before and isinstance(before[0], VectorNoise) else (),
                picks=picks if isinstance(picks, PickNoise) else None,
                parts=last.parts if isinstance(last, VectorNoise) else (),
            )
        self._planned = (known, plan)
        return plan

    def run(
        self,
        plan: PursuitPlan | PilotPlan,
        rows: Any,
        rewards: npt.NDArray[np.float64],
        present: npt.NDArray[np.bool_],
        known: KnownSparse,
    ) -> KnownSparse:
        """Fit an episode's rows with fresh noise; twice on the same rows costs the privacy budget twice."""
        if plan.episode != known.episodes:
            raise ValueError(f"plan must be that of episode {known.episodes}, got episode {plan.episode}")
        if rows.shape != (plan.rows, self.given.dim):
            shape = (plan.rows, self.given.dim)
            raise ValueError(f"rows must have the plan's shape {shape}, got {rows.shape}")
        if isinstance(plan, PilotPlan):
            return _run_pilot(plan, rewards, present, known, self.noise(plan.episode))
        return self.run_sums(plan, RowSums(rows, rewards, present), known)

    def run_sums(self, plan: PursuitPlan, private: RowSums | Sums, known: KnownSparse) -> KnownSparse:
        """Do what :meth:`run` does, bit for bit, over rows that live elsewhere."""
        if plan.episode != known.episodes:
            raise ValueError(f"plan must be that of episode {known.episodes}, got episode {plan.episode}")
        released = release(plan, private, known, self.noise(plan.episode))
        return learn(known, self.given, plan.steps, released)

    def facts(self, plan: PursuitPlan | PilotPlan, known: KnownSparse) -> dict[str, Any]:
        """Return what may be told about a finished fit."""
        if isinstance(plan, PilotPlan):  # it releases no estimate
            return {
                "episode": plan.episode,
                "rounds": plan.rows,
                "sparsity": 0,
                "iterations": 0,
                "step_size": 1.0,
                "warm": False,
                "noise_scale": 0.0,
                "smallest_coefficient": math.inf,
            }
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
            "noise_scale": value_noise / steps.constant,
            "smallest_coefficient": pick_noise * math.log(max(plan.given.dim, 2)) / steps.constant**2,
            "board": known.earned.last,
        }

    def guarantee(self, first: PricedRelease | None = None) -> Guarantee:
        """Return the claim of every episode's noise: that of the first says the same as any other."""
        settings, first = self.settings, first or self.plan(0, self.begin()).release
        exact = self._accounting == "exact"
        return Guarantee(
            epsilon=settings.epsilon,
            delta=settings.delta,
            # No episode passes it; what each costs after its scales are rounded differs by some millionths.
            rho=None if exact else Fraction(rho_from_epsilon(settings.epsilon, settings.delta)),
            setting="bandit",
            rounds_per_user=settings.rounds_per_user,
            mechanism="exponential",
            value_noise="rounded_gaussian",
            seeded=not self.noise(0).protects,
            release=first if exact else None,
            kinds=self.kinds if exact else None,
        )

    def kinds(self) -> list[list[composition.Event]]:
        """Return the events of every kind of episode that any release can lead to, a little enlarged.

        Episodes of as many picks with the same shares of the budget differ by how their scales are rounded.
        """
        t, given = self.given.tuning, self.given
        found = []
        for picks in range(min(int(max(1.0, t.most_picks * given.sparsity)), given.dim) + 1):
            for share in {t.pick_share, t.late_pick_share} if picks else {0.0}:
                for rows in ({}, {"rows": t.row_share}):
                    shares = {"picks": share, "moments": t.moment_share, "size": t.size_share, **rows}
                    if given.board:
                        shares["board"] = BOARD_SHARE
                    shares["gradient"] = 1 - sum(shares.values())
                    release = priced_noise(self._claim, 1 + picks, picks, tuple(shares.items()))
                    found.append([event.scaled(c.ROUNDED_APART) for event in release.events])
        if given.pilot:
            found.append(list(self._pilot_plan().release.events))
        return found

    def _pilot_plan(self) -> PilotPlan:
        """Return the plan of the pilot: replacing one row changes one distance and one place, each by 1."""
        settings = self.settings
        release = fit_scales(
            [PickNoise(PILOT_STEPS, 100 * PILOT_STEPS), PickNoise(PILOT_STEPS, 100 * PILOT_STEPS)],
            epsilon=settings.epsilon,
            delta=settings.delta,
            users=settings.rounds_per_user,
            accounting=self._accounting,
        )
        return PilotPlan(given=self.given, rows=self.least_rows(0), release=release)


# The release


class Sums(Protocol):
    """Private integers of rows that live elsewhere, each eight bytes, the lowest first.

    Each method is called at most once, in this order; `further` after each pick but the last.
    """

    def numbers(self) -> bytes:
        """Return the sums of the three numbers of whole rows."""

    def candidates(self) -> bytes:
        """Return the sums that columns are picked by, one a column."""

    def further(self, columns: list[int], signs: list[int]) -> bytes:
        """Return the sums that the next column is picked by, after these."""

    def vector(self, columns: list[int], signs: list[int]) -> bytes:
        """Return what is released of the public and the picked columns.

        Gradients, second moments on and above the diagonal row after row, the residuals' size and, if it is
        asked for, what was earned.
        """


class RowSums(NamedTuple):
    """Rows of this process, rewards and which of them came. Private."""

    rows: Any
    rewards: npt.NDArray[np.float64]
    present: npt.NDArray[np.bool_]


def question(plan: PursuitPlan, known: KnownSparse) -> _native.PursuitQuestion:
    """Return all that the release of a plan asks of rows, with the noise that was priced for it. Public."""
    steps, picks, given = plan.steps, plan.picks, plan.given
    gradient, moments, size, *board = plan.parts
    return _native.PursuitQuestion(
        known.columns,
        known.theta,
        steps.shift,
        plan.units,
        (steps.constant, given.loss, given.reward_range, steps.pick_clip),
        (
            0 if picks is None else picks.count,
            1 if picks is None else picks.scale,
            given.tuning.signed,
            # The last one's sign is of use only as what its coefficient starts from.
            not steps.assumed or given.tuning.guess != 0,
            steps.assumed,
        ),
        steps.whiten,
        (steps.value_clip, RADIUS, RADIUS / steps.ball, steps.size_cap),
        (gradient.sigma, moments.sigma, size.sigma),
        (given.tuning.octaves, [part.sigma for part in plan.row_parts]) if plan.row_parts else None,
        (*steps.reward_range, board[0].sigma) if steps.reward_range else None,
    )


def release(plan: PursuitPlan, private: RowSums | Sums, known: KnownSparse, noise: Noise) -> ReleasedMeans:
    """Release an episode of pursuit."""
    asked = question(plan, known)
    if isinstance(private, RowSums):
        rows, rewards, present = private
        given = rows if isinstance(rows, np.ndarray) else native_rows(rows)
        numbers, columns, signs, vector = _native.release_rows(
            asked, given, np.ascontiguousarray(rewards, np.float64), present.view(np.uint8), noise
        )
    else:
        numbers, columns, signs, vector = _native.release_sums(asked, private, noise)
    steps, n, units = plan.steps, plan.rows, plan.units
    m, scale = len(steps.whiten), RADIUS / steps.ball
    gradient, moments, size, *board = plan.parts
    gradient_step, size_step = steps.value_clip / LIMIT, steps.size_cap / LIMIT
    row_numbers = row_noise = None
    if plan.row_parts:
        row_steps = np.array([plan.given.tuning.octaves, 1.0, 1.0]) / LIMIT / n
        row_numbers = tuple((numbers * row_steps).tolist())
        row_noise = tuple((np.array([part.sigma for part in plan.row_parts]) * row_steps).tolist())
    earned = None
    if steps.reward_range:
        vector, last = vector[:-BOARD_WIDTH], vector[-BOARD_WIDTH:]
        earned = Board.of(n, steps.reward_range, last, board[0].sigma)
    means = vector / n
    return ReleasedMeans(
        columns=columns,
        units=np.ones(len(columns)) if units is None else units[columns],
        signs=signs,
        gradient=means[:m] * gradient_step,
        gradient_noise=gradient.sigma * gradient_step / n,
        moments=means[_square(m)] / scale**2,
        moment_noise=moments.sigma / scale**2 / n,
        size=float(means[-1] * size_step),
        size_noise=size.sigma * size_step / n,
        rows=row_numbers,
        rows_noise=row_noise,
        board=earned,
    )


def native_rows(rows: Any) -> Any:
    """Return rows as native functions take them."""
    return rows if isinstance(rows, np.ndarray) else _rows.native(_rows.sparse_rows("rows", rows))


@functools.lru_cache(maxsize=256)
def _square(m: int) -> npt.NDArray[np.intp]:
    """Return the places in the vector of a square's second moments."""
    above, right = np.triu_indices(m)
    square = np.empty((m, m), np.intp)
    square[above, right] = square[right, above] = m + np.arange(len(above))
    return square


# The pilot


@dataclasses.dataclass(frozen=True, kw_only=True)
class PilotPlan:
    """Everything a pilot will do."""

    given: Given
    rows: int
    release: PricedRelease
    episode: int = 0


def _run_pilot(
    plan: PilotPlan,
    rewards: npt.NDArray[np.float64],
    present: npt.NDArray[np.bool_],
    known: KnownSparse,
    noise: Noise,
) -> KnownSparse:
    """Release centre and spread of the rewards, and return what is known then."""
    points = np.arange(-c.PILOT_OCTAVES * c.PILOT_QUARTERS, c.PILOT_OCTAVES * c.PILOT_QUARTERS + 1)
    octaves = points / c.PILOT_QUARTERS
    distances = plan.given.reward_scale * 2.0**octaves
    first, second = (pick.scale for pick in plan.release.noise if isinstance(pick, PickNoise))
    at, place = _native.release_pilot(
        rewards,
        present.view(np.uint8),
        distances,
        np.log1p(np.abs(octaves)),
        c.PILOT_NEAR,
        (c.PILOT_PLACES, PILOT_STEPS),
        (first, second),
        noise,
    )
    distance = float(distances[at])
    found = centred(known, plan.given, place * c.PILOT_STEP * distance, distance / c.PILOT_DISTANCE)
    return dataclasses.replace(found, episodes=known.episodes + 1)
