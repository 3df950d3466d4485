"""The dense fit's episodes: their lengths, parts and shares, and what is claimed."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.fit.board import BOARD_SHARE, Board, Earned
from fliphat.fit.dense import growing, parts
from fliphat.fit.dense import known as known_
from fliphat.fit.dense.arms import ArmTable
from fliphat.fit.dense.chain import FIRST_WEIGHT, Chain, Step, next_step
from fliphat.fit.dense.constants import DenseTuning
from fliphat.fit.dense.known import KnownGrown, KnownLinear
from fliphat.fit.dense.learning import arm_values, best_constant, learn
from fliphat.fit.dense.settings import DenseSettings, refuse_too_large
from fliphat.fit.known import SparseEstimate
from fliphat.kernels._fits import Noise, noise_of
from fliphat.privacy.guarantee import NO_PICKS, Guarantee
from fliphat.privacy.priced import Part, PickNoise, VectorNoise, fit_scales

__all__ = ["Dense", "DensePlan"]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class DensePlan:
    """One episode's fit: everything it will do.

    Attributes
    ----------
    episode, rows : int
    row_map : RowMap
        How rows become vectors.
    steps : dict of Step
        What is released, with its noise.
    square_radius : int
        Of the ball of squares.
    cap : Fraction
        Squared size of the one Gaussian that the policy's claim was priced for.
    kept : ndarray of int64, optional
        Where the support grows: places of the public columns that stay.
    picking : Picking, optional
        How more columns are picked.
    charged : PickNoise, optional
        The picks that the policy's claim was priced for.
    """

    episode: int
    rows: int
    row_map: parts.RowMap
    steps: dict[str, Step]
    square_radius: int
    cap: Fraction
    kept: npt.NDArray[np.int64] | None = None
    picking: parts.Picking | None = None
    charged: PickNoise | None = None

    def __post_init__(self) -> None:
        picking, charged = self.picking, self.charged
        if picking is not None and (
            charged is None or picking.picks > charged.count or picking.scale < charged.scale
        ):
            raise ValueError("picks must cost no more than those that the claim allows")
        if self.mu_squared > self.cap:
            raise ValueError(
                f"the noise costs mu^2 = {float(self.mu_squared):.6g}, but the claim allows "
                f"{float(self.cap):.6g}"
            )

    @property
    def mu_squared(self) -> Fraction:
        """What a row of this episode costs, in all releases it will ever be in."""
        moved = (
            (parts.sensitivity_squared(name, self.square_radius), step) for name, step in self.steps.items()
        )
        return sum((squared / step.variance for squared, step in moved), Fraction(0))


class Dense:
    """Episodes that grow by a public factor, each released as one Gaussian vector.

    Examples
    --------
    >>> from fliphat import PrivateLinear
    >>> fit = PrivateLinear(["a", "b"], dim=5, epsilon=1.0, delta=1e-3, context_norm=1.0)._fit
    >>> plan = fit.plan(0, fit.begin())
    >>> plan.rows, list(plan.steps), plan.mu_squared <= fit.cap
    (62, ['arms', 'board', 'columns'], True)
    """

    def __init__(self, settings: DenseSettings) -> None:
        if settings.constants is None:
            settings = dataclasses.replace(settings, constants=DenseTuning.of(settings.width))
        assert settings.constants is not None
        self.settings, self._constants = settings, settings.constants
        #: Noise of an episode, by its number.
        self.noise: Callable[[int], Noise] = functools.partial(noise_of, settings.seed)
        #: The table of arms as it is now: the one thing here that changes, publicly, between rounds.
        self.table = ArmTable(["an arm"])
        template: list[Any] = [VectorNoise(Part(2**56, 2**28))]
        if settings.grows:
            share, count = self._constants.pick_share, max(1, round(settings.width * self._constants.picks))
            left = VectorNoise(Part(2**56, math.ceil(2**38 / math.sqrt(1 - share))))
            template = [growing.pick_template(count, share, 10), left]
        self.claim = fit_scales(
            template,
            epsilon=settings.epsilon,
            delta=settings.delta,
            users=settings.rounds_per_user,
        )
        vector = self.claim.noise[-1]
        assert isinstance(vector, VectorNoise)
        #: Picks that a row may have paid for before.
        self.picks: PickNoise | None = next(
            (one for one in self.claim.noise if isinstance(one, PickNoise)), None
        )
        #: Squared size of the Gaussian that one row may cost.
        self.cap: Fraction = vector.mu_squared
        self.mu = math.sqrt(self.cap)

    @property
    def groups(self) -> int:
        """Sets of coefficients: one for each arm there ever was, or one for all."""
        return self.table.slots if self.settings.disjoint else 1

    @property
    def scale(self) -> float:
        """Multiplies contexts: one of the largest norm then has columns of size 1."""
        return math.sqrt(self.settings.dim) / self.settings.context_norm

    def use_arms(self, table: ArmTable) -> None:
        """Go on with another table of arms."""
        if self.settings.disjoint:
            refuse_too_large(self.settings.width, table.slots)
        self.table = table

    def begin(self) -> KnownLinear:
        """Return what is known before the first episode: nothing."""
        settings = self.settings
        if settings.grows:
            return KnownGrown.none(self.groups, self._constants, settings.reward_range)
        return known_.begin(settings.dim, self.groups, self._constants, settings.reward_range)

    def recall(self, record: dict[str, Any]) -> KnownLinear:
        """Return what `KnownLinear.to_record` wrote."""
        kind = KnownGrown if self.settings.grows else KnownLinear
        return kind.from_record(record, self._constants, self.settings.reward_range)

    def recall_estimate(
        self, indices: npt.NDArray[np.int64], values: npt.NDArray[np.float64]
    ) -> SparseEstimate:
        """Return coefficients that were released: every one of them is written down."""
        return SparseEstimate(indices, values, len(values))

    def least_rows(self, episode: int) -> int:
        """Return the length of an episode, which does not depend on anything released."""
        first = self.settings.first_episode
        if first is None:
            arms = self.table.initial if self.settings.disjoint else 1
            first = math.ceil(max(self._constants.first, self._constants.rounds_an_arm * arms / self.mu))
        for _ in range(episode):
            first = math.ceil(first * self.settings.growth)
        return first

    def plan(self, episode: int, known: KnownLinear) -> DensePlan:
        """Return the plan of the next episode."""
        if episode != known.episodes:
            raise ValueError(f"episode must be {known.episodes}, the next one, got {episode}")
        rows, picking, kept = self.least_rows(episode), None, None
        if isinstance(known, KnownGrown):
            kept, picking = self._picking(known)
            known = growing.grown(known, kept, np.full(picking.picks if picking else 0, growing.PICKED))
        dim = known.dim
        radius = parts.square_radius(dim, self._constants.square_ball)
        steps = {}
        for name, share in self._shares(known, rows).items():
            squared = parts.sensitivity_squared(name, radius)
            variance = math.ceil(squared / (Fraction(share) * self.cap))
            steps[name] = self._step(known, name, variance)
        return DensePlan(
            episode=episode,
            rows=rows,
            row_map=known.row_map(self.scale),
            steps=steps,
            square_radius=radius,
            cap=self.cap,
            kept=kept,
            picking=picking,
            charged=self.picks,
        )

    def _picking(self, known: KnownGrown) -> tuple[npt.NDArray[np.int64], parts.Picking | None]:
        """Return which columns stay, and how more of them are picked, if there is room."""
        assert self.picks is not None
        constants, width = self._constants, self.settings.width
        kept = growing.kept_columns(known, width, constants.least_evidence)
        count = min(self.picks.count, width - len(kept))
        if count == 0:
            return np.arange(known.dim), None
        ball = growing.grown(known, kept, np.full(count, growing.PICKED)).ball
        weights = growing.explained(known, kept, self.groups, ball)
        clip = growing.clip(known, self.settings.context_scale)
        return kept, parts.Picking(count, self.picks.scale, weights.ravel(), clip)

    def _shares(self, known: KnownLinear, rows: int) -> dict[str, float]:
        """Return the shares of the budget of an episode; what can't be seen yet gets none."""
        constants, found = self._constants, {"board": BOARD_SHARE}
        if isinstance(known, KnownGrown):
            found["moments"] = constants.support_moments
        elif not known.settled:
            found["columns"] = constants.column_share
        else:
            noise = known.ball**2 / (self.mu * math.sqrt(constants.moment_share) * (known.rows + rows))
            if noise <= constants.moment_noise or "moments" in known.chains:
                found |= {"moments": constants.moment_share, "squares": constants.square_share}
        # Rounded down: shares must not add up to more than 1.
        return {"arms": math.nextafter(1 - sum(found.values()), 0), **found}

    def _step(self, known: KnownLinear, name: str, variance: int) -> Step:
        """Return how a part is released: as a total that goes on once the map is settled."""
        if not (self.settings.totals and known.settled) or name == "board":
            return Step(Chain(), FIRST_WEIGHT, 0, variance)
        constants = self._constants
        first = (0.0, constants.second_discount, constants.third_discount, constants.fourth_discount)
        return next_step(known.chains.get(name, Chain()), variance, first, 1 / self.settings.growth)

    def run(
        self,
        plan: DensePlan,
        rows: Any,
        rewards: npt.NDArray[np.float64],
        present: npt.NDArray[np.bool_],
        known: KnownLinear,
    ) -> KnownLinear:
        """Fit an episode's rows on their own: totals begin anew with them."""
        return self.run_totals(plan, rows, rewards, present, known, None)[0]

    def run_totals(
        self,
        plan: DensePlan,
        rows: Any,
        rewards: npt.NDArray[np.float64],
        present: npt.NDArray[np.bool_],
        known: KnownLinear,
        secret: bytes | None,
    ) -> tuple[KnownLinear, bytes | None]:
        """Fit an episode's rows with fresh noise; twice on the same rows costs the privacy budget twice."""
        settings = self.settings
        if plan.episode != known.episodes:
            raise ValueError(f"plan must be that of episode {known.episodes}, got episode {plan.episode}")
        if rows.shape != (plan.rows, settings.row_width):
            shape = (plan.rows, settings.row_width)
            raise ValueError(f"rows must have the plan's shape {shape}, got {rows.shape}")
        slots = np.zeros(plan.rows, np.int64)
        if settings.disjoint:
            last = rows[:, [settings.dim]].toarray()[:, 0] if hasattr(rows, "indptr") else rows[:, -1]
            slots = np.asarray(last).astype(np.int64)
        steps, held = plan.steps, None
        if secret is not None and secret[:8] == plan.episode.to_bytes(8):
            held = secret[8:]
        else:
            # Without the totals of the last release those of this one begin anew, which is always sound.
            steps = {name: step.anew() for name, step in steps.items()}
        released, picked, after = parts.release(
            rows,
            slots,
            rewards,
            present,
            row_map=plan.row_map,
            groups=self.groups,
            reward_range=known.reward_range,
            steps=steps,
            radius=plan.square_radius,
            secret=held,
            noise=self.noise(plan.episode),
            columns=known.columns[plan.kept] if isinstance(known, KnownGrown) else None,
            picking=plan.picking,
        )
        found = released.pop("board")
        board = Board.of(plan.rows, known.reward_range, found.values, float(found.noise[0]))
        learned: KnownLinear
        if isinstance(known, KnownGrown):
            assert plan.kept is not None
            now = growing.grown(known, plan.kept, picked)
            learned = growing.learned(now, released, plan.rows, self.groups, board, settings.exploration)
        else:
            learned = learn(
                known,
                released,
                steps,
                plan.rows,
                self.groups,
                self.mu,
                settings.exploration,
                resized=board.cut_too_much,
            )
        learned = dataclasses.replace(learned, earned=self._earned(known, learned, board))
        better = self._better_range(learned)
        learned = learned if better is None else known_.expecting(learned, better)
        return learned, None if after is None else (plan.episode + 1).to_bytes(8) + after

    def _better_range(self, learned: KnownLinear) -> tuple[float, float] | None:
        """Return where rewards should be expected; the guard leaves a range that most are outside of."""
        settings, earned, expected = self.settings, learned.earned, learned.reward_range
        given = expected == settings.reward_range and not settings.learns_range
        if given and not (settings.guard and earned.mostly_outside):
            return None
        return earned.better_range(expected)

    def _earned(self, known: KnownLinear, learned: KnownLinear, board: Board) -> Earned:
        """Return what episodes earned, and what the guard makes of it."""
        settings, constant = self.settings, None
        if learned.fresh:  # rewards have changed
            return Earned(last=board)
        if settings.disjoint:
            constant = best_constant(arm_values(learned, settings.exploration), self.table.active)
        return known.earned.after(board, uniform=known.fresh, constant=constant, guard=settings.guard)

    def facts(self, plan: DensePlan, known: KnownLinear) -> dict[str, Any]:
        """Return what may be told about a finished fit."""
        step = plan.steps["arms"]
        unit = plan.row_map.ball / (2 * parts.RADIUS * parts.STEPS)
        noise = math.sqrt(step.noise_squared) / step.weight * unit / plan.rows
        return {
            "episode": plan.episode,
            "rounds": plan.rows,
            "sparsity": self.settings.width,
            "iterations": 1,
            "step_size": 1.0,
            "warm": plan.episode > 0,
            "noise_scale": noise,
            "smallest_coefficient": noise * max(self.groups, 1),
            "board": known.earned.last,
        }

    def guarantee(self) -> Guarantee:
        """Return the claim that every episode's noise supports."""
        settings = self.settings
        return Guarantee(
            epsilon=settings.epsilon,
            delta=settings.delta,
            rho=None,
            setting="bandit",
            rounds_per_user=settings.rounds_per_user,
            user_ids_checked=False,
            mechanism=NO_PICKS if self.picks is None else "exponential",
            value_noise="rounded_gaussian",
            calibration="proven",
            seeded=not self.noise(0).protects,
            noise_shortfall=None,
            release=self.claim,
        )
