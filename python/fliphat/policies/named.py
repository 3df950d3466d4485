"""Policies that know their arms by name: one context a round, and coefficients of each arm.

What :class:`fliphat.PrivateLinear` and ``FLIPHAT(arms=...)`` share: they differ in their arguments.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.contexts.crossed import Crossed
from fliphat.fit.dense import ArmScores, Dense, DenseSettings
from fliphat.fit.dense.arms import ArmTable
from fliphat.fit.dense.settings import refuse_too_large, too_wide
from fliphat.policies.engine.each import Single
from fliphat.policies.engine.engine import Engine
from fliphat.policies.health import HealthWarning
from fliphat.policies.linear_rule import LinearRule
from fliphat.policies.live import LivePolicy
from fliphat.policies.store.opening import kept_choices, opened_engine
from fliphat.policies.store.options import Store
from fliphat.policies.types import Decision, Decisions, StoreError

__all__ = ["NamedArms", "arm_table", "opened_named"]

#: Rounds that hardly anybody has: contexts that would need more are too wide, whoever plays.
_MOST_ROUNDS: Final = 10**6

#: What can be done about contexts that are too wide, beside using fewer columns.
_OTHERWISE: Final = {
    "PrivateLinear": ", or FLIPHAT(arms=[...]) if only few of them matter",
    "FLIPHAT": ", or a smaller sparsity if only few of them matter",
}


class NamedArms(LivePolicy):
    """A policy that may have a table of arms; one without plays whatever arms a round brings."""

    _told_of_names = False

    @property
    def _named(self) -> bool:
        return isinstance(self._fit, Dense)

    def _begin_named(self, settings: DenseSettings, table: ArmTable, place: Store) -> None:
        """Begin, or go on with a store that has the same arms."""
        told = settings.epsilon, settings.delta, settings.rounds_per_user
        wide = too_wide(
            _MOST_ROUNDS,
            settings.width,
            table.slots if settings.disjoint else 1,
            *told,
            other=_OTHERWISE["FLIPHAT" if settings.sparsity else "PrivateLinear"],
        )
        if wide is not None:
            warnings.warn(wide, stacklevel=3)
        if place.where is not None:
            table.to_record()  # refuses ids that a store can't hold, before there is one
            choices = kept_choices(place)
            if choices is not None and choices.fit == settings.fit:
                settings = dataclasses.replace(settings, constants=choices.constants)
        self._begin(opened_named(settings, table, place))
        kept, asked = self.arms, table.playable
        if set(kept) != set(asked):
            self.close()
            raise StoreError(
                f"the store's arms are {kept[:10]!r}, got {asked[:10]!r}: give those, then add_arm or "
                f"remove_arm"
            )

    # Playing; LivePolicy's docstrings speak of named arms, too.

    def select(  # noqa: D102
        self, contexts: Any, user: Any = None, key: Any = None, *, arms: Sequence[Any] | None = None
    ) -> Decision:
        if not self._named:
            self._warn_of_one_hot(contexts)
            return super().select(contexts, user, key, arms=arms)
        _refuse_ids(arms)
        decision = super().select(contexts, user, key)
        arm: Any = self._ids[decision.arm]
        return decision._replace(arm=arm)

    def select_batch(  # noqa: D102
        self, contexts: Any, users: Sequence[Any] | None = None, *, arms: int | Sequence[Any] | None = None
    ) -> Decisions:
        if not self._named:
            self._warn_of_one_hot(contexts)
            return super().select_batch(contexts, users, arms=arms)
        _refuse_ids(None if isinstance(arms, int) else arms)
        decisions = super().select_batch(contexts, users, arms=arms)
        return dataclasses.replace(decisions, arms=self._id_array[decisions.arms])

    def _warn_of_one_hot(self, contexts: Any) -> None:
        """Say once that arms told apart by name alone have a better way; what arms are is public."""
        if self._told_of_names or not isinstance(contexts, Crossed) or self._settings.fit != "pursuit":
            return
        self._told_of_names = True
        if contexts.one_hot:
            warnings.warn(
                "every arm of these contexts has columns of its own: make the policy with arms=[...], which "
                "learns such arms far better (from ten arms on this one may play as at random)",
                HealthWarning,
                stacklevel=3,
            )

    def _select_each(self, asked: Sequence[Single], results: list[Any]) -> None:
        try:
            super()._select_each(asked, results)
        finally:
            ids: Any = self._ids if self._named else None
            for place, one in enumerate(results):
                if ids is not None and isinstance(one, Decision):
                    results[place] = one._replace(arm=ids[one.arm])

    # Arms

    @property
    def arms(self) -> tuple[Hashable, ...]:
        """Ids of the arms that rounds play now; none where rounds bring their arms."""
        if not self._named:
            return ()
        self._look()  # other workers of a database may have changed them
        return self._fit.table.playable  # type: ignore[attr-defined, no-any-return]

    def add_arm(self, arm: Hashable) -> None:
        """Let rounds play one more arm, from the next on; one that was removed goes on as it was.

        That arms come and go is public. In a store it is durable when this returns.

        Parameters
        ----------
        arm : hashable
            A new id.
        """
        self._change(lambda table: table.with_arm(arm))

    def remove_arm(self, arm: Hashable) -> None:
        """Play an arm no more, from the next round on; rewards of rounds that played it still count.

        Parameters
        ----------
        arm : hashable
            One of `arms`, and not the last.
        """
        self._change(lambda table: table.without(arm))

    def _change(self, change: Any) -> None:
        with self._playing() as engine:
            rule = engine.rule
            if not isinstance(rule, LinearRule):
                raise TypeError(
                    "rounds of this policy bring their arms: make it with arms=[...] to name them"
                )

            def changed() -> ArmTable:
                table: ArmTable = change(rule.table)
                if self._settings.disjoint:  # before the store goes on with them
                    refuse_too_large(self._settings.width, table.slots)
                return table

            engine.change_arms(changed)

    # Looking

    @property
    def coefficients(self) -> dict[Hashable, npt.NDArray[np.float64]]:
        """Released coefficients of ``(context, 1)`` of each arm, in units of a reward; public.

        A context is cut to its norm, and then to a ball that follows from what was released: for contexts
        that the latter does not cut, these are the scores. With ``model="shared"`` all arms have the same.
        """
        known = self._look().known
        return self._coefficients(known) if self._named else {}

    def _coefficients(self, known: Any) -> dict[Hashable, npt.NDArray[np.float64]]:
        low, high = known.reward_range
        mapped = known.row_map(self._fit.scale)  # type: ignore[attr-defined]
        released = known.coefficients * (high - low)
        released[:, :-1] *= mapped.inverse
        released[:, -1] += (low + high) / 2 - released[:, :-1] @ mapped.center
        table = self._fit.table  # type: ignore[attr-defined]
        if self._settings.grows:
            whole = np.zeros((len(released), self._settings.dim + 1))
            whole[:, np.append(known.columns, self._settings.dim)] = released
            released = whole
        nothing = np.append(np.zeros(self._settings.dim), (low + high) / 2)
        found: dict[Hashable, npt.NDArray[np.float64]] = {}
        for slot in table.active:
            group = slot if self._settings.disjoint else 0
            found[table.ids[slot]] = released[group] if group < len(released) else nothing
        return found

    @property
    def arm_scores(self) -> tuple[ArmScores, ...]:
        """What each episode released of arms' rounds and rewards, in the order arms were first added; public.

        With ``model="shared"`` all arms are counted together. Where no `reward_range` was given, episodes
        before rewards were first found are left out.
        """
        if not self._named:
            return ()
        known: Any = self._look().known
        scores: tuple[ArmScores, ...] = known.scores[known.began :]
        return scores

    @property
    def _ids(self) -> list[Hashable]:
        ids: list[Hashable] = self._fit.table.ids  # type: ignore[attr-defined]
        return ids

    @property
    def _id_array(self) -> npt.NDArray[Any]:
        ids = self._ids
        if all(type(one) is int and -(2**63) <= one < 2**63 for one in ids):
            return np.array(ids, np.int64)
        array = np.empty(len(ids), object)
        array[:] = ids
        return array

    # Keeping

    def save(self, path: str | os.PathLike[str]) -> None:
        """Hand the policy over to a new file, readable by its owner alone; this object can't go on.

        The file holds private rows. `load` consumes it. Arms must be str, int or bytes.
        """
        if self._engine is not None and self._named:
            self._fit.table.to_record()  # type: ignore[attr-defined]
        super().save(path)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"fit": self._fit}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._fit = state["fit"]


def _refuse_ids(arms: object) -> None:
    if arms is not None:
        raise TypeError("arms must be left out: the policy knows its arms, see add_arm and remove_arm")


def arm_table(arms: Any) -> ArmTable:
    """Return a table of the arms that a caller named, or counted."""
    if isinstance(arms, (int, np.integer)) and not isinstance(arms, bool):
        return ArmTable(range(arguments.integer("arms", arms, 1, 2**20)))
    if isinstance(arms, (str, bytes)) or not isinstance(arms, Iterable):
        raise TypeError(f"arms must be a sequence of ids or a number of arms, got {type(arms).__name__}")
    return ArmTable(arms)


def opened_named(settings: DenseSettings, table: ArmTable, store: Store) -> Engine:
    """Return an engine for a table of arms, or for that of its store."""
    fit = Dense(settings)
    fit.use_arms(table)
    return opened_engine(fit, store, policy=settings.policy, rule=LinearRule(fit))
