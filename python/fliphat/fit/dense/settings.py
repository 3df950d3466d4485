"""The public numbers of a dense policy, checked once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fliphat import arguments
from fliphat.fit.dense.constants import DenseTuning
from fliphat.fit.dense.known import DRAWS
from fliphat.fit.settings import EngineSettings, checked_dtype, checked_range, read_constants
from fliphat.privacy.priced import Part, VectorNoise, fit_scales
from fliphat.privacy.scales import MAX_COUNT, check_delta

__all__ = ["MODELS", "DenseSettings", "class_of", "fewest_rounds", "named_settings", "too_wide"]

MODELS: Final = ("disjoint", "shared")

#: Bytes that the public statistics of a policy may take.
_MOST_BYTES: Final = 4 * 10**9


@dataclass(frozen=True, kw_only=True)
class DenseSettings(EngineSettings):
    """Checked arguments of :class:`fliphat.PrivateLinear` or ``FLIPHAT(arms=...)``, without the arms."""

    context_norm: float
    reward_range: tuple[float, float]
    model: str
    exploration: float
    first_episode: int | None
    growth: float
    totals: bool
    guard: bool = True
    #: Columns that matter, as FLIPHAT was told; None of a PrivateLinear.
    sparsity: int | None = None
    #: Of rounds that play a uniform arm.
    uniform_share: float = 0.0
    #: Whether `reward_range` is where rewards are looked for first.
    learns_range: bool = False
    #: Whether few of all columns are public, and more are picked.
    grows: bool = False
    #: Size of a column that is not known yet.
    context_scale: float = 1.0
    fit: str = "dense"
    #: Rewards are numbers in a range; the engine asks.
    loss: str = "squared"
    #: As resolved by the fit, or those a store holds.
    constants: DenseTuning | None = None

    @classmethod
    def checked(
        cls,
        *,
        dim: object,
        arms: int,
        epsilon: object,
        delta: float,
        context_norm: object,
        reward_range: object = (0.0, 1.0),
        model: str = "disjoint",
        exploration: object = 0.1,
        rounds_per_user: object = 1,
        first_episode: object = None,
        growth: object = 1.15,
        totals: object = True,
        guard: object = True,
        sparsity: int | None = None,
        uniform_share: object = 0.0,
        learns_range: bool = False,
        grows: bool = False,
        context_scale: float = 1.0,
        dtype: object = "float32",
        seed: object = None,
    ) -> DenseSettings:
        """Return the arguments with defaults filled in; errors name the argument."""
        arguments.choice("model", model, MODELS)
        dim = arguments.integer("dim", dim, 1, 2**31 - 2)
        refuse_too_large(
            min(dim, sparsity) if grows and sparsity else dim, arms if model == "disjoint" else 1
        )
        if delta == 0:
            raise ValueError(
                "delta must be above 0, got 0: all columns are released with Gaussian noise, which is never "
                "pure DP. FLIPHAT(..., delta=0) has Laplace noise"
            )
        bounds = checked_range(reward_range)
        if bounds is None:
            raise TypeError("reward_range must be two numbers, (low, high), got None")
        return cls(
            dim=dim,
            epsilon=arguments.positive("epsilon", epsilon),
            delta=check_delta(delta),
            context_norm=arguments.within("context_norm", context_norm, 1e-30, 1e30),
            reward_range=bounds,
            model=model,
            exploration=arguments.within("exploration", exploration, 0.0, 10.0),
            rounds_per_user=arguments.integer("rounds_per_user", rounds_per_user, 1, MAX_COUNT),
            first_episode=None
            if first_episode is None
            else arguments.integer("first_episode", first_episode, 1, MAX_COUNT),
            growth=arguments.within("growth", growth, 1.0, 16.0),
            totals=arguments.flag("totals", totals),
            guard=arguments.flag("guard", guard),
            uniform_share=arguments.within("exploration", uniform_share, 0.0, 1.0),
            sparsity=None if sparsity is None else arguments.integer("sparsity", sparsity, 1, dim),
            learns_range=learns_range,
            grows=grows,
            context_scale=context_scale,
            dtype=checked_dtype(dtype),
            seed=None if seed is None else arguments.integer("seed", seed, 0, 2**64 - 1),
        )

    @property
    def policy(self) -> str:
        """Name of the class that has them."""
        return class_of({"fit": self.fit, "sparsity": self.sparsity})

    @property
    def row_width(self) -> int:
        """Numbers of a row that is kept: the context, and the slot of the arm that was played."""
        return self.dim + 1

    @property
    def disjoint(self) -> bool:
        """Whether every arm has coefficients of its own."""
        return self.model == "disjoint"

    @property
    def sparse_rows(self) -> bool:
        """Whether rows of sparse contexts stay sparse."""
        return self.grows

    @property
    def width(self) -> int:
        """Columns that are public at most."""
        return min(self.dim, self.sparsity) if self.grows and self.sparsity else self.dim

    def exploration_in(self, episode: int) -> float:
        """Return the share of rounds that play a uniform arm; others explore by sampled coefficients."""
        return self.uniform_share

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> DenseSettings:
        """Return the settings that :meth:`to_dict` wrote."""
        if "totals" not in record:
            raise ValueError(
                "the policy was made with the first rule of PrivateLinear, which is gone: go on with it in "
                "the version that made it"
            )
        constants = read_constants(record["constants"], DenseTuning)
        return cls(**record | {"reward_range": tuple(record["reward_range"]), "constants": constants})


def class_of(record: Mapping[str, Any]) -> str:
    """Return whose settings a record holds: FLIPHAT is told how many columns matter."""
    linear = record.get("fit") == "dense" and record.get("sparsity") is None
    return "PrivateLinear" if linear else "FLIPHAT"


#: Longest context, in contexts whose columns all have the stated size.
_LONGEST: Final = 1.5

#: Range of rewards to either side of 0, in their stated size, where no range is given.
_WIDEST: Final = 2.0


#: Rounds that noise on all columns would need, from which on few of them are picked. On made tables of 30 to
#: 300 columns, normal and one-hot, picks earned the same from about 600 on, and twice as much with many more.
_WIDE: Final = 600

#: Episodes of a support that grows: each is picked from, and learned from, on its own.
_GROWTH: Final = 1.5


def _grows(dim: int, arms: int, claim: Mapping[str, Any]) -> bool:
    """Return whether columns are picked: where noise on all of them would hide them for long."""
    epsilon, delta = arguments.positive("epsilon", claim["epsilon"]), check_delta(claim["delta"])
    users = arguments.integer("rounds_per_user", claim.get("rounds_per_user", 1), 1, MAX_COUNT)
    return delta > 0 and fewest_rounds(dim, arms, epsilon, delta, users) > _WIDE


def named_settings(
    *,
    dim: int,
    sparsity: object,
    loss: str,
    context_scale: object,
    reward_scale: object,
    reward_range: object,
    exploration: object,
    arms: int,
    **others: Any,
) -> DenseSettings:
    """Return the settings of ``FLIPHAT(arms=...)``, whose arguments say sizes where others are bounds."""
    arguments.choice("loss", loss, ("squared", "logistic"))
    dim = arguments.integer("dim", dim, 1, 2**31 - 2)
    scale = arguments.positive("context_scale", context_scale)
    if isinstance(reward_scale, str):
        raise ValueError("reward_scale must be a number with named arms; reward_range=(low, high) is better")
    if not isinstance(exploration, (int, float)):
        raise TypeError(f"exploration must be one share of rounds with named arms, got {exploration!r}")
    sparsity = arguments.integer("sparsity", sparsity, 1, dim)
    grows = 2 * sparsity <= dim and _grows(dim, arms, others)
    half = _WIDEST * arguments.positive("reward_scale", reward_scale)
    learns = reward_range is None and loss != "logistic"
    if loss == "logistic":
        reward_range = (0.0, 1.0)
    elif reward_range is None:
        reward_range = (-half, half)
    return DenseSettings.checked(
        dim=dim,
        arms=arms,
        context_norm=_LONGEST * scale * math.sqrt(dim),
        reward_range=reward_range,
        sparsity=sparsity,
        uniform_share=exploration,
        learns_range=learns,
        grows=grows,
        context_scale=scale,
        growth=_GROWTH if grows else 1.15,
        **others,
    )


def refuse_too_large(dim: int, groups: int) -> None:
    """Raise if second moments of all columns, for each group, would not fit into memory."""
    needed = 8 * (dim + 1) ** 2 * 12 + 16 * DRAWS * groups * (dim + 1)
    if needed > _MOST_BYTES:
        largest = math.isqrt(_MOST_BYTES // (8 * 12 + groups)) - 1
        raise ValueError(
            f"dim must be at most {largest} with {groups} sets of coefficients, got {dim}: second moments of "
            f"all pairs of columns would take {needed / 1e9:,.0f} GB. Use FLIPHAT without "
            f"arms=..., with a context for each arm: it looks at few columns"
        )


def fewest_rounds(dim: int, arms: int, epsilon: float, delta: float, rounds_per_user: int = 1) -> int:
    """Return from about how many rounds on contexts can be told from the noise on all their columns.

    What noise adds to a score is about ``d K / (mu n)`` for d columns, K arms and n rounds. On made tables of
    10 to 300 columns and 2 to 8 arms at most a sixth of what contexts are worth was earned with fewer rounds,
    and two thirds or more with ten times as many, whatever d, K and epsilon were.

    Examples
    --------
    >>> fewest_rounds(64, 10, epsilon=1.0, delta=1e-4), fewest_rounds(64, 10, epsilon=10.0, delta=1e-4)
    (6100, 870)
    """
    claim = fit_scales([VectorNoise(Part(2**56, 2**28))], epsilon=epsilon, delta=delta, users=rounds_per_user)
    (vector,) = claim.noise
    assert isinstance(vector, VectorNoise)
    rounds = 3 * dim * arms / math.sqrt(vector.mu_squared)
    return int(float(f"{rounds:.1e}"))


def too_wide(
    rounds: int,
    dim: int,
    arms: int,
    epsilon: float,
    delta: float,
    rounds_per_user: int = 1,
    other: str = ", or FLIPHAT if only few of them matter (it earns less where many do)",
) -> str | None:
    """Return what to say where contexts are too wide for so many rounds, and None where they are not.

    `other` is what can be done beside using fewer columns.
    """
    fewest = fewest_rounds(dim, arms, epsilon, delta, rounds_per_user)
    if rounds >= fewest:
        return None
    return (
        f"with {dim:,} columns and {arms:,} arms noise is on {dim * arms:,} coefficients, and at epsilon = "
        f"{epsilon:g} contexts can hardly be told from it before about {fewest:,} rounds: use fewer columns"
        f"{other}"
    )
