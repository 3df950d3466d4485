"""PrivateLinear: a jointly differentially private linear bandit in which every column may matter."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.fit import read_settings
from fliphat.fit.dense import ArmScores, Dense, DenseSettings
from fliphat.fit.dense.arms import ArmTable
from fliphat.fit.dense.settings import too_wide
from fliphat.fit.settings import EngineSettings
from fliphat.policies.engine.each import Single
from fliphat.policies.engine.engine import Engine
from fliphat.policies.engine.rows.limits import DEFAULT_MEMORY_LIMIT, MemoryLimit
from fliphat.policies.linear_rule import LinearRule
from fliphat.policies.live import LivePolicy
from fliphat.policies.store.opening import kept_choices, opened_engine, recorded_settings
from fliphat.policies.store.options import Store, StoreLike, as_store
from fliphat.policies.types import Decision, Decisions, SnapshotError, StoreError

__all__ = ["PrivateLinear"]

#: Rounds that hardly anybody has: contexts that would need more are too wide, whoever plays.
_MOST_ROUNDS: Final = 10**6


class PrivateLinear(LivePolicy):
    """Private linear bandit for short rows: all columns are used, and arms have names.

    In an episode every round is played by one public set of coefficients, drawn from what is known of them.
    When the episode is over, the next `select` releases sums over its rounds, with Gaussian noise, and
    forgets the rounds. Nobody else's arms, and nothing released, then depend much on what any one person
    brought: see `guarantee`. For thousands of columns of which few matter use :class:`fliphat.FLIPHAT`.

    Parameters
    ----------
    arms : sequence of hashable, or int
        Ids of the arms, all different; a number K stands for ``0, ..., K - 1``. To be kept in a store or a
        file they must be str, int or bytes.
    dim : int
        d, columns of a context.
    epsilon, delta : float
        The privacy budget, for the whole life of the policy; `delta` above 0.
    context_norm : float
        l2 norm that contexts have at most; longer ones are cut to it. Privacy does not depend on it. With
        columns scaled to -1..1, ``(dim / 3) ** 0.5`` is a good value.
    reward_range : (float, float)
        Rewards outside it are moved to its ends.
    model : {"disjoint", "shared"}
        "disjoint": a round brings one context, and every arm has coefficients of its own. "shared": a round
        brings a context for each arm, in the order of `arms`, and all arms share coefficients.
    exploration : float
        A round is played by coefficients drawn this many posterior standard deviations around their mean,
        one of 32 draws that are public for the whole episode; 0 plays the best arm. The posterior holds the
        noise that protects people, which alone makes arms vary, so much less than 1 is enough.
    rounds_per_user : int
        k, rounds of one user that are protected together and learned from.
    first_episode : int, optional
        Rounds of the first episode, which are played uniformly.
    growth : float
        How much longer each episode is than the one before.
    totals : bool
        Whether a release is of everybody so far, discounted: then exact sums, which are nobody's rows but
        hold everybody's, are kept between episodes. False forgets everything about an episode with its
        release, and has more noise.
    dtype : {"float32", "float64"}
        What rows and rewards are kept in.
    seed : int, optional
        For simulation only: nothing is proven then.
    store : Store, path or URL, optional
        Where the policy is kept, and how: :class:`fliphat.Store`.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import PrivateLinear
    >>> policy = PrivateLinear(["red", "blue"], dim=5, epsilon=1.0, delta=1e-3, context_norm=1.5)
    >>> decision = policy.select(np.zeros(5))
    >>> decision.arm in ("red", "blue"), policy.update(decision, 1.0), policy.guarantee.proven
    (True, True, True)
    >>> policy.add_arm("green")
    >>> policy.arms
    ('red', 'blue', 'green')
    """

    _settings: DenseSettings

    def __init__(
        self,
        arms: Iterable[Hashable] | int,
        dim: int,
        epsilon: float,
        delta: float,
        *,
        context_norm: float,
        reward_range: tuple[float, float] = (0, 1),
        model: Literal["disjoint", "shared"] = "disjoint",
        exploration: float = 0.1,
        rounds_per_user: int = 1,
        first_episode: int | None = None,
        growth: float = 1.15,
        totals: bool = True,
        dtype: npt.DTypeLike = "float32",
        seed: int | None = None,
        store: StoreLike = None,
    ) -> None:
        table = _table(arms)
        settings = DenseSettings.checked(
            dim=dim,
            arms=table.slots,
            epsilon=epsilon,
            delta=delta,
            context_norm=context_norm,
            reward_range=reward_range,
            model=model,
            exploration=exploration,
            rounds_per_user=rounds_per_user,
            first_episode=first_episode,
            growth=growth,
            totals=totals,
            dtype=dtype,
            seed=seed,
        )
        wide = too_wide(
            _MOST_ROUNDS,
            settings.dim,
            table.slots if settings.disjoint else 1,
            settings.epsilon,
            settings.delta,
            settings.rounds_per_user,
        )
        if wide is not None:
            warnings.warn(wide, stacklevel=2)
        place = as_store(store)
        if place.where is not None:
            table.to_record()  # refuses ids that a store can't hold, before there is one
            choices = kept_choices(place)
            if choices is not None and choices.fit == settings.fit:
                settings = dataclasses.replace(settings, constants=choices.constants)
        self._begin(_opened(settings, table, place))
        kept, asked = self.arms, table.playable
        if set(kept) != set(asked):
            self.close()
            raise StoreError(
                f"the store's arms are {kept[:10]!r}, got {asked[:10]!r}: give those, then add_arm or "
                f"remove_arm"
            )

    # Playing

    def select(self, contexts: Any, user: Any = None, key: Any = None, *, arms: None = None) -> Decision:  # type: ignore[override]
        """Play one round.

        Parameters
        ----------
        contexts : array_like, shape (dim,), or (K, dim) with ``model="shared"``, or SciPy CSR
            K is the number of `arms`. Kept as a copy, dense, cut to `context_norm`. A value that is NaN or
            infinite does not raise: the round is played uniformly and not learned from.
        user, key : str, int or bytes, optional
            See :meth:`fliphat.FLIPHAT.select`.
        arms : None
            The policy knows its arms.

        Returns
        -------
        Decision
            Its `arm` is an id.
        """
        _refuse_ids(arms)
        decision = super().select(contexts, user, key)
        arm: Any = self._ids[decision.arm]
        return decision._replace(arm=arm)

    def select_batch(  # type: ignore[override]
        self, contexts: Any, users: Sequence[Any] | None = None, *, arms: int | None = None
    ) -> Decisions:
        """Play several rounds at once.

        Parameters
        ----------
        contexts : array_like, shape (n, dim), or (n, K, dim) with ``model="shared"``, or SciPy CSR
            At most `remaining` rounds.
        users : sequence, optional
            One id for each round.
        arms : int, optional
            Must be the number of arms, if it is given.

        Returns
        -------
        Decisions
            `arms` are ids: an array of integers if all ids are, of objects otherwise.
        """
        _refuse_ids(None if isinstance(arms, int) else arms)
        decisions = super().select_batch(contexts, users, arms=arms)
        return dataclasses.replace(decisions, arms=self._id_array[decisions.arms])

    def _select_each(self, asked: Sequence[Single], results: list[Any]) -> None:
        try:
            super()._select_each(asked, results)
        finally:
            ids: Any = self._ids
            for place, one in enumerate(results):
                if isinstance(one, Decision):
                    results[place] = one._replace(arm=ids[one.arm])

    # Arms

    @property
    def arms(self) -> tuple[Hashable, ...]:
        """Ids of the arms that rounds play now."""
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
            assert isinstance(rule, LinearRule)
            engine.change_arms(lambda: change(rule.table))

    # Looking

    @property
    def coefficients(self) -> dict[Hashable, npt.NDArray[np.float64]]:
        """Released coefficients of ``(context, 1)`` of each arm, in units of a reward; public.

        A context is cut to its norm, and then to a ball that follows from what was released: for contexts
        that the latter does not cut, these are the scores. With ``model="shared"`` all arms have the same.
        """
        return self._coefficients(self._look().known)

    def _coefficients(self, known: Any) -> dict[Hashable, npt.NDArray[np.float64]]:
        low, high = self._settings.reward_range
        mapped = known.row_map(self._fit.scale)  # type: ignore[attr-defined]
        released = known.coefficients * (high - low)
        released[:, :-1] *= mapped.inverse
        released[:, -1] += (low + high) / 2 - released[:, :-1] @ mapped.center
        table = self._fit.table  # type: ignore[attr-defined]
        nothing = np.append(np.zeros(self._settings.dim), (low + high) / 2)
        found: dict[Hashable, npt.NDArray[np.float64]] = {}
        for slot in table.active:
            group = slot if self._settings.disjoint else 0
            found[table.ids[slot]] = released[group] if group < len(released) else nothing
        return found

    @property
    def arm_scores(self) -> tuple[ArmScores, ...]:
        """What each episode released of arms' rounds and rewards, in the order arms were first added; public.

        With ``model="shared"`` all arms are counted together.
        """
        scores: tuple[ArmScores, ...] = self._look().known.scores  # type: ignore[attr-defined]
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
        if self._engine is not None:
            self._fit.table.to_record()  # type: ignore[attr-defined]
        super().save(path)

    @classmethod
    def open(cls, store: Store | str | os.PathLike[str]) -> Self:
        """Go on with a store that exists, with the arguments it was made with and the arms it has now.

        Parameters
        ----------
        store : Store, path or URL

        Raises
        ------
        StoreError
            If there is no store, or it is damaged or in use.
        """
        place = as_store(store)
        policy = cls.__new__(cls)
        policy._begin(cls._engine_for(read_settings(recorded_settings(place), {}), place))
        return policy

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, memory_limit: MemoryLimit = DEFAULT_MEMORY_LIMIT) -> Self:
        """Go on with a saved policy, and remove its file: a policy has one live copy.

        Parameters
        ----------
        path : path
        memory_limit : int or str, optional
            See :class:`fliphat.Store`.
        """
        return cls._loaded(path, {}, memory_limit)

    @classmethod
    def _engine_for(cls, settings: EngineSettings, store: Store) -> Engine:
        return _opened(_dense(settings), ArmTable(["an arm"]), store)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"fit": self._fit}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._fit = state["fit"]

    def __repr__(self) -> str:
        s = self._settings
        return f"PrivateLinear({len(self.arms)} arms, dim={s.dim}, epsilon={s.epsilon}, delta={s.delta})"


def _refuse_ids(arms: object) -> None:
    if arms is not None:
        raise TypeError("arms must be left out: the policy knows its arms, see add_arm and remove_arm")


def _table(arms: Any) -> ArmTable:
    if isinstance(arms, (int, np.integer)) and not isinstance(arms, bool):
        return ArmTable(range(arguments.integer("arms", arms, 1, 2**20)))
    if isinstance(arms, (str, bytes)) or not isinstance(arms, Iterable):
        raise TypeError(f"arms must be a sequence of ids or a number of arms, got {type(arms).__name__}")
    return ArmTable(arms)


def _dense(settings: EngineSettings) -> DenseSettings:
    if not isinstance(settings, DenseSettings):
        raise SnapshotError(f"the file holds another policy, of fit {settings.fit!r}, not a PrivateLinear")
    return settings


def _opened(settings: DenseSettings, table: ArmTable, store: Store) -> Engine:
    fit = _fit(settings, table)
    return opened_engine(fit, store, policy="PrivateLinear", rule=LinearRule(fit))


def _fit(settings: DenseSettings, table: ArmTable) -> Dense:
    fit = Dense(settings)
    fit.use_arms(table)
    return fit
