"""FLIPHAT: a jointly differentially private sparse linear bandit.

| paper (algorithm FLIPHAT) | here |
|---|---|
| s, epsilon, delta, eta, C | `sparsity`, `epsilon`, `delta`, `step_size`, `l1_radius` |
| M_l, R_l | `iterations`, `reward_clip` |
| episode l, N_l | `episode`, its `rounds` in `history` |
| beta-hat_l, from episode l - 1 alone | `history[l - 1].estimate` |

With ``fit=Iht(episodes="doubling", warm_start=False)`` it has the paper's episodes and fit, with noise that
is proven. The algorithms as printed are in :mod:`fliphat.paper`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Hashable, Iterable
from typing import Any, Literal, Self

import numpy.typing as npt

from fliphat.fit import make_fit, read_settings
from fliphat.fit.dense import DenseSettings, named_settings
from fliphat.fit.dense.arms import ArmTable
from fliphat.fit.options import Iht, PerEpisode, Pursuit
from fliphat.fit.settings import EngineSettings, Settings
from fliphat.policies.engine.engine import Engine
from fliphat.policies.engine.rows.limits import DEFAULT_MEMORY_LIMIT, MemoryLimit
from fliphat.policies.named import NamedArms, arm_table, opened_named
from fliphat.policies.store.opening import kept_choices, opened_engine, recorded_settings
from fliphat.policies.store.options import Store, StoreLike, as_store
from fliphat.policies.types import SnapshotError

__all__ = ["FLIPHAT"]


class FLIPHAT(NamedArms):
    """Private sparse linear bandit: rounds in, arms out, one estimate an episode.

    In an episode every round plays the arm that scores best under one public estimate. When the episode is
    over, the next `select` fits a new estimate to its rounds alone, with noise, and forgets them. Nobody
    else's arms, and no estimate, then depend much on what any one person brought: see `guarantee`.

    Parameters
    ----------
    dim : int
        d, coordinates of a context.
    sparsity : int
        s, coordinates an estimate may have; a little above the number that matter.
    epsilon, delta : float
        The privacy budget, for the whole life of the policy. ``delta=0`` asks for pure privacy.
    arms : sequence of hashable, or int, optional
        Names of the arms, all different; a number K stands for ``0, ..., K - 1``. A round then brings one
        context of shape (dim,), every arm has coefficients of its own, and `add_arm` and `remove_arm` change
        the arms. Where noise on all columns would hide them for long, at most `sparsity` of them are used at
        a time: picked by what all arms together say of each. Without names a round brings a context for
        each arm, and all arms share coefficients, as in the paper.
    fit : Pursuit or Iht, optional
        :class:`~fliphat.Pursuit`, the default, is ours. :class:`~fliphat.Iht` is noisy iterative hard
        thresholding, the paper's fit. A store goes on with the fit it was made with.
    loss : {"squared", "logistic"}
        "logistic" for rewards 0 and 1, such as clicks.
    rounds_per_user : int
        k: rounds of one user that are protected together. With user ids in `select`, rounds of a user beyond
        k are played but not learned from; without, you promise that no user has more than k.
    context_scale, reward_scale : float
        Public guesses of the typical size of one context coordinate and of a reward. Pursuit corrects both
        from what it releases. ``reward_scale="estimate"`` buys centre and spread of the rewards with a first
        episode of its own, wherever they are.
    reward_range : (low, high), optional
        Public bounds of rewards, such as (0, 1): rare large ones are then not cut (pursuit).
    first_episode : int, optional
        Rounds of the first planned episode; by default long enough to see coefficients of typical size.
    exploration : number, sequence or function, default 0
        The public share of rounds, from 0 to 1, that play a uniform arm instead of a best one: one number,
        one for each episode (the last one repeats), or a function of the episode's number. With a share
        above 0 every arm has a chance, `Decision.probability`, that off-policy evaluation can divide by.
        Named arms are also explored by draws from what is known of them.
    guard : bool
        Whether uniform play, or the best constant arm, is played instead where `scoreboard` says that the
        policy earns less. It follows from what is released anyway, and costs no privacy. Not with ``Iht``.
    dtype : {"float32", "float64"}
        How chosen rows and rewards are kept.
    seed : int, optional
        For simulation only: nothing is private then, and `guarantee` says so.
    store : Store, path or URL, optional
        Where the policy is kept, and how: :class:`fliphat.Store`. A directory keeps it through crashes, a
        database, ``"postgresql://..."``, is played by any number of workers. It holds private rows.

    Notes
    -----
    All defaults are in one table, in :mod:`fliphat.fit.iht.constants`; they are functions of the arguments
    above and never of data. Calls from several threads are safe. Copies (`copy.deepcopy`, pickle) and forked
    children can be read but can't play.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import FLIPHAT
    >>> policy = FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=1e-2)
    >>> contexts = np.ones((3, 20), dtype=np.float32)
    >>> decision = policy.select(contexts)
    >>> policy.update(decision, 0.5)
    True
    >>> decision.arm in range(3), policy.guarantee.proven
    (True, True)

    Arms with names, and one context a round:

    >>> colours = ["red", "blue"]
    >>> policy = FLIPHAT(dim=5, sparsity=5, epsilon=1.0, delta=1e-6, arms=colours, reward_range=(0, 1))
    >>> policy.select(np.zeros(5)).arm in policy.arms
    True
    """

    _settings: Any

    def __init__(
        self,
        dim: int,
        sparsity: int,
        epsilon: float,
        delta: float,
        *,
        arms: Iterable[Hashable] | int | None = None,
        fit: Pursuit | Iht | None = None,
        loss: Literal["squared", "logistic"] = "squared",
        rounds_per_user: int = 1,
        first_episode: int | None = None,
        context_scale: float = 1.0,
        reward_scale: float | Literal["estimate"] = 1.0,
        reward_range: tuple[float, float] | None = None,
        exploration: PerEpisode = 0.0,
        guard: bool = True,
        dtype: npt.DTypeLike = "float32",
        seed: int | None = None,
        store: StoreLike = None,
    ) -> None:
        # A store goes on with the fit, the noise and the constants it was made with, whatever a new one would
        # get; that of another policy is refused by whoever opens it, and says what is wrong.
        place = as_store(store)
        given: dict[str, Any] = {
            "dim": dim,
            "sparsity": sparsity,
            "epsilon": epsilon,
            "delta": delta,
            "loss": loss,
            "rounds_per_user": rounds_per_user,
            "first_episode": first_episode,
            "context_scale": context_scale,
            "reward_scale": reward_scale,
            "reward_range": reward_range,
            "exploration": exploration,
            "guard": guard,
            "dtype": dtype,
            "seed": seed,
        }
        if arms is not None:
            if fit is not None:
                raise ValueError("fit must be left out with named arms: they have a fit of their own")
            table = arm_table(arms)
            self._begin_named(named_settings(arms=table.slots, **given), table, place)
            return
        kept = kept_choices(place)
        if fit is None and kept is not None and kept.fit == Iht.name:
            fit = Iht()
        checked = Settings.checked(fit=fit, **given)
        if kept is not None and kept.fit in (Pursuit.name, Iht.name):
            constants = kept.constants if checked.fit == kept.fit else None
            checked = dataclasses.replace(checked, accounting=kept.accounting, constants=constants)
        self._begin(opened_engine(make_fit(checked), place, policy="FLIPHAT"))

    @classmethod
    def open(
        cls,
        store: Store | str | os.PathLike[str],
        *,
        fit: Iht | None = None,
        exploration: PerEpisode | None = None,
    ) -> Self:
        """Go on with a store that exists, with the arguments it was made with.

        Parameters
        ----------
        store : Store, path or URL
        fit, exploration : optional
            Only if the policy was made with functions, which a store can't hold: `exploration`, or
            ``fit=Iht(iterations=..., step_size=...)``.

        Raises
        ------
        StoreError
            If there is no store, or it is damaged or in use.

        Examples
        --------
        >>> import tempfile
        >>> from fliphat import FLIPHAT
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=1e-2, store=directory).close()
        ...     with FLIPHAT.open(directory) as policy:
        ...         print(policy)
        FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=0.01)
        """
        functions = _functions(fit, exploration)
        place = as_store(store)
        policy = cls.__new__(cls)
        policy._begin(cls._engine_for(read_settings(recorded_settings(place), functions), place))
        return policy

    @classmethod
    def _engine_for(cls, settings: EngineSettings, store: Store) -> Engine:
        """Refuse another policy's settings."""
        if isinstance(settings, DenseSettings) and settings.sparsity is not None:
            return opened_named(settings, ArmTable(["an arm"]), store)
        if not isinstance(settings, Settings):
            raise SnapshotError(f"the file holds another policy, of fit {settings.fit!r}, not a FLIPHAT")
        return super()._engine_for(settings, store)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        fit: Iht | None = None,
        exploration: PerEpisode | None = None,
        memory_limit: MemoryLimit = DEFAULT_MEMORY_LIMIT,
    ) -> Self:
        """Go on with a saved policy, and remove its file: a policy has one live copy.

        Parameters
        ----------
        path : path
        fit, exploration : optional
            As in `open`.
        memory_limit : int or str, optional
            See :class:`fliphat.Store`.

        Raises
        ------
        SnapshotError
            If the file is damaged, truncated, from a newer version or was loaded before.
        """
        return cls._loaded(path, _functions(fit, exploration), memory_limit)

    def __repr__(self) -> str:
        s = self._settings
        if self._named:
            arms = len(self.arms)
            return f"FLIPHAT({arms} arms, dim={s.dim}, epsilon={s.epsilon}, delta={s.delta})"
        return f"FLIPHAT(dim={s.dim}, sparsity={s.sparsity}, epsilon={s.epsilon}, delta={s.delta})"


def _functions(fit: Iht | None, exploration: PerEpisode | None) -> dict[str, PerEpisode | None]:
    """Return what a file can't hold and the caller gives again."""
    fit = Iht() if fit is None else fit
    return {"iterations": fit.iterations, "step_size": fit.step_size, "exploration": exploration}
