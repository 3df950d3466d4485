"""All columns at once: the fit of :class:`fliphat.PrivateLinear`.

With rows of small l2 norm a Gaussian on all columns costs no more than picks, and nothing has to be sparse.
An episode releases one vector: for each arm the sum of its rows times their rewards and how many they were,
means and sizes of columns until they are known well, by which later rows are moved and scaled, and the second
moments of all rows together where they will be larger than their noise, or with rows enough those of each arm
(:mod:`fliphat.fit.dense_sums`). Everything after it is public (:mod:`fliphat.fit.dense_model`).

A claim is priced once, for one Gaussian vector of a size mu and `rounds_per_user` rows of one person; an
episode's plan can't be made unless its vector is at most that large. A person's rows that are spread over
several episodes are covered too: a smaller Gaussian shift is smaller in convex order, so the worst case of
the menu of episodes is the one that was priced.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.fit import dense_model, dense_sums, draw
from fliphat.fit.arms import ArmTable
from fliphat.fit.dense_link import LINKS
from fliphat.fit.dense_model import KnownLinear
from fliphat.fit.dense_settings import DenseSettings, refuse_too_large
from fliphat.fit.dense_tuning import UNRECORDED_DENSE, DenseTuning
from fliphat.fit.known import SparseEstimate
from fliphat.privacy.guarantee import NO_PICKS, Guarantee
from fliphat.privacy.priced import Part, PricedRelease, VectorNoise, fit_scales

__all__ = ["Dense", "DensePlan"]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class DensePlan:
    """One episode's fit: everything it will do.

    Attributes
    ----------
    episode, rows : int
    row_map : dense_sums.RowMap
        How rows become vectors.
    parts : dict of Part
        What is released, with its noise.
    claim : PricedRelease
        The one Gaussian vector that the policy's claim was priced for.
    seed : int, optional
        For simulation only.
    """

    episode: int
    rows: int
    row_map: dense_sums.RowMap
    parts: dict[str, Part]
    claim: PricedRelease
    seed: int | None

    def __post_init__(self) -> None:
        dense_sums.require_within(self.parts, self.claim)


class Dense:
    """Episodes that grow by a public factor, each released as one Gaussian vector.

    Examples
    --------
    >>> from fliphat import PrivateLinear
    >>> fit = PrivateLinear(["a", "b"], dim=5, epsilon=1.0, delta=1e-3, context_norm=1.0)._fit
    >>> plan = fit.plan(0, fit.begin())
    >>> plan.rows, list(plan.parts), float(VectorNoise(*plan.parts.values()).mu_squared) <= fit.mu**2
    (103, ['gradient', 'columns'], True)
    """

    def __init__(self, settings: DenseSettings) -> None:
        constants = settings.constants
        if constants is None:
            constants = DenseTuning()
            settings = dataclasses.replace(settings, constants=constants)
        self.settings = settings
        self._constants = UNRECORDED_DENSE if isinstance(constants, str) else constants
        #: The table of arms as it is now: the one thing here that changes, publicly, between rounds.
        self.table = ArmTable(["an arm"])
        users = settings.rounds_per_user
        self.claim = fit_scales(
            [VectorNoise(Part(2**56, 2**28))],
            epsilon=settings.epsilon,
            delta=settings.delta,
            users=users,
        )
        (vector,) = self.claim.noise
        assert isinstance(vector, VectorNoise)
        #: Squared size of the Gaussian vector that an episode may release.
        self.cap: Fraction = vector.mu_squared
        self.mu = math.sqrt(self.cap)

    @property
    def groups(self) -> int:
        """Sets of coefficients: one for each arm there ever was, or one for all."""
        return self.table.slots if self.settings.disjoint else 1

    def use_arms(self, table: ArmTable) -> None:
        """Go on with another table of arms."""
        if self.settings.disjoint:
            refuse_too_large(self.settings.dim, table.slots)
        self.table = table

    def begin(self) -> KnownLinear:
        """Return what is known before the first episode: nothing."""
        return dense_model.begin(self.settings.dim, self.groups, self._constants)

    def recall(self, record: dict[str, Any]) -> KnownLinear:
        """Return what `KnownLinear.to_record` wrote."""
        return KnownLinear.from_record(record, self._constants)

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
            first = dense_model.first_rows(arms, self.mu, self._constants)
        for _ in range(episode):
            first = math.ceil(first * self.settings.growth)
        return first

    def plan(self, episode: int, known: KnownLinear) -> DensePlan:
        """Return the plan of the next episode."""
        if episode != known.episodes:
            raise ValueError(f"episode must be {known.episodes}, the next one, got {episode}")
        rows = self.least_rows(episode)
        row_map = dense_model.row_map(known, self._scale)
        shares = dense_model.shares(known, rows, row_map, self.mu)
        return DensePlan(
            episode=episode,
            rows=rows,
            row_map=row_map,
            parts=dense_sums.noise_for(shares, self.cap),
            claim=self.claim,
            seed=self.settings.seed,
        )

    def run(
        self,
        plan: DensePlan,
        rows: Any,
        rewards: npt.NDArray[np.float64],
        present: npt.NDArray[np.bool_],
        known: KnownLinear,
    ) -> KnownLinear:
        """Fit an episode's rows with fresh noise; twice on the same rows costs the privacy budget twice."""
        settings = self.settings
        if plan.episode != known.episodes:
            raise ValueError(f"plan must be that of episode {known.episodes}, got episode {plan.episode}")
        if rows.shape != (plan.rows, settings.row_width):
            shape = (plan.rows, settings.row_width)
            raise ValueError(f"rows must have the plan's shape {shape}, got {rows.shape}")
        low, high = settings.reward_range
        slots = (
            np.asarray(rows[:, -1]).astype(np.int64) if settings.disjoint else np.zeros(len(rows), np.int64)
        )
        sums = dense_sums.integer_sums(
            rows[:, :-1],
            slots,
            (rewards - (low + high) / 2) / (high - low),
            present,
            row_map=plan.row_map,
            groups=self.groups,
            parts=tuple(plan.parts),
        )
        released = dense_sums.release(sums, plan.parts, draw.seeded(plan.seed, plan.episode), plan.row_map)
        return dense_model.learn(
            known,
            released,
            plan.row_map,
            plan.rows,
            self._scale,
            self.table.active,
            settings.exploration,
            LINKS[settings.loss],
        )

    def facts(self, plan: DensePlan, known: KnownLinear) -> dict[str, Any]:
        """Return what may be told about a finished fit."""
        noise = plan.parts["gradient"].sigma * plan.row_map.ball / (2 * dense_sums.RADIUS * plan.rows)
        return {
            "episode": plan.episode,
            "rounds": plan.rows,
            "sparsity": self.settings.dim,
            "iterations": 1,
            "step_size": 1.0,
            "warm": plan.episode > 0,
            "noise_scale": noise,
            "smallest_coefficient": noise * max(self.groups, 1) / LINKS[self.settings.loss].unit,
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
            mechanism=NO_PICKS,
            value_noise="rounded_gaussian",
            calibration="proven",
            seeded=settings.seed is not None,
            noise_shortfall=None,
            release=self.claim,
        )

    @property
    def _scale(self) -> float:
        """Multiplies contexts: one of the largest norm then has columns of size 1."""
        return math.sqrt(self.settings.dim) / self.settings.context_norm
