"""PrivateLinear: a jointly differentially private linear bandit in which every column may matter."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from typing import Literal, Self

import numpy.typing as npt

from fliphat.fit import read_settings
from fliphat.fit.dense import DenseSettings
from fliphat.fit.dense.arms import ArmTable
from fliphat.fit.settings import EngineSettings
from fliphat.policies.engine.engine import Engine
from fliphat.policies.engine.rows.limits import DEFAULT_MEMORY_LIMIT, MemoryLimit
from fliphat.policies.named import NamedArms, arm_table, opened_named
from fliphat.policies.store.opening import recorded_settings
from fliphat.policies.store.options import Store, StoreLike, as_store
from fliphat.policies.types import SnapshotError

__all__ = ["PrivateLinear"]


class PrivateLinear(NamedArms):
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
        Rewards outside it are moved to its ends; where most are, the guard expects them elsewhere.
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
    totals : bool
        Whether a release is of everybody so far, discounted: then exact sums, which are nobody's rows but
        hold everybody's, are kept between episodes. False forgets everything about an episode with its
        release, and has more noise.
    guard : bool
        Whether the best constant arm, or uniform play, is played instead where `scoreboard` says that the
        policy earns less. It follows from what is released anyway, and costs no privacy.
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
    #: How much longer each episode is than the one before.
    _growth = 1.08

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
        totals: bool = True,
        guard: bool = True,
        dtype: npt.DTypeLike = "float32",
        seed: int | None = None,
        store: StoreLike = None,
    ) -> None:
        table = arm_table(arms)
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
            growth=self._growth,
            totals=totals,
            guard=guard,
            dtype=dtype,
            seed=seed,
        )
        self._begin_named(settings, table, as_store(store))

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
        if not isinstance(settings, DenseSettings) or settings.sparsity is not None:
            raise SnapshotError(
                f"the file holds another policy, of fit {settings.fit!r}, not a PrivateLinear"
            )
        return opened_named(settings, ArmTable(["an arm"]), store)

    def __repr__(self) -> str:
        s = self._settings
        return f"PrivateLinear({len(self.arms)} arms, dim={s.dim}, epsilon={s.epsilon}, delta={s.delta})"
