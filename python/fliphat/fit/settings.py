"""The public numbers of a policy's fits, checked once.

A policy goes on with the constants it was made with, whatever a later version would give a new one: its
lengths, picks and clips are then the same, and its store is not refused. So all constants, as resolved for
its budget, are written with its settings (`written_constants`). No claim of privacy depends on any of them:
an episode's noise is priced for the parts, the numbers of picks and the shares that its plan has, and its
scales are computed again, for the claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

import numpy as np

from fliphat import arguments
from fliphat.fit.iht import constants as defaults
from fliphat.fit.known import SparseEstimate
from fliphat.fit.options import Iht, PerEpisode, Pursuit, per_episode
from fliphat.fit.pursuit.constants import Tuning
from fliphat.privacy.scales import MAX_COUNT, check_delta

__all__ = ["EngineSettings", "Settings", "read_constants", "written_constants"]

_LARGEST_DIM: Final = 2**31 - 1
_FUNCTION: Final = "a function"


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """What an engine and its store ask of any policy's settings."""

    dim: int
    epsilon: float
    delta: float
    #: Which rewards can be used: any finite ones, or 0 and 1 for "logistic".
    loss: str
    #: Rounds of one user that are learned from.
    rounds_per_user: int
    #: Type that rows and rewards are kept in.
    dtype: str
    #: For simulation only.
    seed: int | None
    #: Name of the fit.
    fit: str
    accounting: str = "exact"

    @property
    def row_width(self) -> int:
        """Numbers of a row that is kept: the chosen arm's context."""
        return self.dim

    @property
    def sparse_rows(self) -> bool:
        """Whether rows of sparse contexts stay sparse."""
        return True

    def exploration_in(self, episode: int) -> float:
        """Return the share of an episode's rounds that play a uniform arm."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return a record for JSON, which a store compares; of a function it holds a marker."""
        record = {}
        for field in fields(self):
            value = getattr(self, field.name)
            record[field.name] = (
                list(value) if isinstance(value, tuple) else _FUNCTION if callable(value) else value
            )
        return record | {"constants": written_constants(record.get("constants"))}


@dataclass(frozen=True, kw_only=True)
class Settings(EngineSettings):
    """Checked arguments of :class:`fliphat.FLIPHAT`; None where the defaults decide."""

    sparsity: int
    first_episode: int | None
    context_scale: float
    reward_scale: float
    gradient_clip: float
    l1_radius: float
    episodes: str = "planned"
    warm_start: bool = True
    growth: float = defaults.growth(warm_start=True)
    mechanism: str = "exponential"
    reward_clip: float | None = None
    iterations: PerEpisode | None = None
    step_size: PerEpisode | None = None
    exploration: PerEpisode = 0.0
    intercept: bool = True
    reward_range: tuple[float, float] | None = None
    column_scales: tuple[float, ...] | None = None
    pilot: bool = False
    start_indices: tuple[int, ...] | None = None
    start_values: tuple[float, ...] | None = None
    #: Of pursuit: as resolved by the fit, those a store holds, or their name if it holds none.
    constants: Tuning | None = None
    guard: bool = False

    @classmethod
    def checked(
        cls,
        *,
        dim: object,
        sparsity: object,
        epsilon: object,
        delta: float,
        fit: Pursuit | Iht | None = None,
        loss: str = "squared",
        rounds_per_user: object = 1,
        first_episode: object = None,
        context_scale: object = 1.0,
        reward_scale: object = 1.0,
        reward_range: object = None,
        exploration: PerEpisode = 0.0,
        guard: object = True,
        dtype: object = "float32",
        seed: object = None,
    ) -> Settings:
        """Return the arguments with defaults filled in; errors name the argument."""
        dim = arguments.integer("dim", dim, 1, _LARGEST_DIM)
        sparsity = arguments.integer("sparsity", sparsity, 1, dim)
        arguments.choice("loss", loss, ("squared", "logistic"))
        fit = Pursuit() if fit is None else fit
        if not isinstance(fit, (Pursuit, Iht)):
            raise TypeError(f"fit must be Pursuit(...) or Iht(...), got {fit!r}")
        if delta == 0 and isinstance(fit, Pursuit):
            raise ValueError("delta=0 (pure privacy) needs fit=Iht(): pursuit releases Gaussian values")
        if first_episode is not None:
            first_episode = arguments.integer("first_episode", first_episode, 1, MAX_COUNT)
        context_scale = arguments.positive("context_scale", context_scale)
        pilot = isinstance(reward_scale, str)
        if pilot:
            arguments.choice("reward_scale", reward_scale, ("estimate",))
            if loss == "logistic":
                raise ValueError("reward_scale must be a number with loss='logistic': rewards are 0 and 1")
            reward_scale = 1.0
        reward_scale = arguments.positive("reward_scale", reward_scale)
        common = cls(
            dim=dim,
            sparsity=sparsity,
            epsilon=arguments.positive("epsilon", epsilon),
            delta=check_delta(delta),
            first_episode=first_episode,
            loss=loss,
            rounds_per_user=arguments.integer("rounds_per_user", rounds_per_user, 1, MAX_COUNT),
            context_scale=context_scale,
            reward_scale=reward_scale,
            gradient_clip=defaults.bandit_clip(context_scale, reward_scale),
            l1_radius=defaults.l1_radius(sparsity, context_scale, reward_scale * defaults.curvature(loss)),
            dtype=checked_dtype(dtype),
            seed=None if seed is None else arguments.integer("seed", seed, 0, 2**64 - 1),
            fit=fit.name,
            exploration=_checked_exploration(exploration),
            reward_range=checked_range(reward_range),
            pilot=pilot,
            guard=arguments.flag("guard", guard) and isinstance(fit, Pursuit),
        )
        return common._with_pursuit(fit) if isinstance(fit, Pursuit) else common._with_iht(fit)

    def _with_pursuit(self, fit: Pursuit) -> Settings:
        scales: Any = fit.column_scales
        if scales is not None and len(scales) != self.dim:
            raise ValueError(
                f"column_scales must have shape ({self.dim},), one size for each column, got {len(scales)}"
            )
        return replace(self, intercept=bool(fit.intercept), column_scales=scales)

    def _with_iht(self, fit: Iht) -> Settings:
        for name, given in (
            ("reward_scale='estimate'", self.pilot),
            ("reward_range", self.reward_range is not None),
        ):
            if given:
                raise ValueError(f"{name} is only for fit=Pursuit(), got fit=Iht()")
        if self.first_episode is not None and fit.episodes != "planned":
            raise ValueError(
                "first_episode is only for episodes='planned': doubling episodes start with 1 round"
            )
        start: Any = fit.start
        if start is not None and start.dim != self.dim:
            raise ValueError(f"start must have dim = {self.dim} coefficients, got {start.dim}")
        warm = bool(fit.warm_start)
        return replace(
            self,
            episodes=fit.episodes,
            warm_start=warm,
            growth=defaults.growth(warm_start=warm) if fit.growth is None else fit.growth,
            mechanism=fit.mechanism,
            gradient_clip=self.gradient_clip if fit.gradient_clip is None else fit.gradient_clip,
            reward_clip=fit.reward_clip,
            l1_radius=self.l1_radius if fit.l1_radius is None else fit.l1_radius,
            iterations=fit.iterations,
            step_size=fit.step_size,
            start_indices=None if start is None else tuple(start.indices.tolist()),
            start_values=None if start is None else tuple(start.values.tolist()),
        )

    @property
    def start(self) -> SparseEstimate:
        """The public estimate that the first episode plays by; all zeros if none was given."""
        if self.start_indices is None or self.start_values is None:
            return SparseEstimate.zero(self.dim)
        indices, values = np.array(self.start_indices, np.int64), np.array(self.start_values, np.float64)
        return SparseEstimate(indices, values, self.dim)

    def exploration_in(self, episode: int) -> float:
        """Return the share of an episode's rounds that play a uniform arm."""
        given = self.exploration
        if callable(given):
            return checked_share(given(episode))
        return given[min(episode, len(given) - 1)] if isinstance(given, tuple) else given  # type: ignore[return-value]

    @classmethod
    def from_dict(cls, record: dict[str, Any], functions: dict[str, PerEpisode | None]) -> Settings:
        """Return the settings that :meth:`to_dict` wrote; `functions` replace the markers."""
        filled = dict(record)
        for name, given in functions.items():
            if filled[name] != _FUNCTION:
                if given is not None:
                    raise ValueError(f"{name} is in the file already: leave it out")
            elif not callable(given):
                raise ValueError(f"{name} was a function, which a file can't hold: give the same one again")
            else:
                filled[name] = given
        for name, value in filled.items():
            if isinstance(value, list):
                filled[name] = tuple(value)
        filled["constants"] = read_constants(filled["constants"])
        return cls(**filled)


def checked_share(value: object) -> float:
    """Return a share of rounds, from 0 to 1."""
    return arguments.within("exploration", value, 0.0, 1.0)


def _checked_exploration(given: PerEpisode) -> PerEpisode:
    checked = per_episode("exploration", given, checked_share)
    if checked is None:
        raise TypeError("exploration must be a share, a sequence of shares or a function, got None")
    return checked


def checked_range(given: Any) -> tuple[float, float] | None:
    if given is None:
        return None
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        raise TypeError(f"reward_range must be two numbers, (low, high), got {given!r}") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(f"reward_range must be finite with low < high, got {given!r}")
    return low, high


def checked_dtype(dtype: object) -> str:
    try:
        name = np.dtype(dtype).name  # type: ignore[call-overload]
    except TypeError:
        name = ""
    if name not in ("float32", "float64"):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    return str(name)


def written_constants(constants: Any) -> dict[str, Any] | None:
    """Return constants, a dataclass, as a record for JSON, which keeps every bit of a float64."""
    return None if constants is None else asdict(constants)


def read_constants(record: Any, kind: Any = Tuning) -> Any:
    """Return what :func:`written_constants` wrote; a constant that did not exist yet has its default.

    A constant that is added to a rule must have a default that leaves the rule as it was without it.
    """
    if record is None:
        return None
    known = {field.name for field in fields(kind)}
    if not isinstance(record, Mapping) or not known.issuperset(record):
        raise ValueError(
            "constants must be a record of numbers that this version knows: a newer one wrote this policy"
        )
    return kind(**record)
