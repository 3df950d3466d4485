"""The public numbers of a policy's fits, checked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from fliphat import arguments
from fliphat.fit import defaults, kept_tuning
from fliphat.fit.known import SparseEstimate
from fliphat.fit.tuning import Tuning
from fliphat.privacy.scales import MAX_COUNT, MECHANISMS, check_delta

__all__ = [
    "DEFAULT_FIT",
    "FITS",
    "EngineSettings",
    "PerEpisode",
    "Settings",
    "checked_iterations",
    "checked_step_size",
    "complete",
]

#: A number, a sequence of one number an episode (the last one repeats), or a function of a fit's rows n.
PerEpisode: TypeAlias = float | Sequence[float] | Callable[[int], float]

#: Names of fits.
FITS: Final = ("pursuit", "iht")

#: The fit where no argument asks for another.
DEFAULT_FIT: Final = "pursuit"

_LARGEST_DIM: Final = 2**31 - 1
_MOST_ITERATIONS: Final = 10_000
_FUNCTION: Final = "a function"


class EngineSettings(Protocol):
    """What an engine and its store ask of any policy's settings."""

    @property
    def dim(self) -> int:
        """Coordinates of a context."""

    @property
    def row_width(self) -> int:
        """Numbers of a row that is kept."""

    @property
    def dtype(self) -> str:
        """Type that rows and rewards are kept in."""

    @property
    def epsilon(self) -> float:
        """The claim."""

    @property
    def delta(self) -> float:
        """The claim."""

    @property
    def loss(self) -> str:
        """Which rewards can be used: any finite ones, or 0 and 1 for "logistic"."""

    @property
    def rounds_per_user(self) -> int:
        """Rounds of one user that are learned from."""

    @property
    def seed(self) -> int | None:
        """For simulation only."""

    @property
    def fit(self) -> str:
        """Name of the fit."""

    def exploration_in(self, episode: int) -> float:
        """Return the share of an episode's rounds that play a uniform arm."""

    def to_dict(self) -> dict[str, Any]:
        """Return a record for JSON, which a store compares when it is opened again."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Checked arguments of :class:`fliphat.FLIPHAT`; None where the defaults decide."""

    dim: int
    sparsity: int
    epsilon: float
    delta: float
    episodes: str
    warm_start: bool
    first_episode: int | None
    growth: float
    mechanism: str
    loss: str
    rounds_per_user: int
    context_scale: float
    reward_scale: float
    gradient_clip: float
    reward_clip: float | None
    l1_radius: float
    iterations: PerEpisode | None
    step_size: PerEpisode | None
    dtype: str
    seed: int | None
    fit: str = "iht"
    accounting: str = "exact"
    exploration: PerEpisode = 0.0
    intercept: bool = True
    reward_range: tuple[float, float] | None = None
    column_scales: tuple[float, ...] | None = None
    pilot: bool = False
    start_indices: tuple[int, ...] | None = None
    start_values: tuple[float, ...] | None = None
    #: Of pursuit: as resolved by the fit, those a store holds, or their name if it holds none.
    constants: Tuning | str | None = None

    @classmethod
    def checked(
        cls,
        *,
        dim: object,
        sparsity: object,
        epsilon: object,
        delta: float,
        episodes: str = "planned",
        warm_start: object = True,
        first_episode: object = None,
        growth: object = None,
        mechanism: str | None = None,
        loss: str = "squared",
        rounds_per_user: object = 1,
        context_scale: object = 1.0,
        reward_scale: object = 1.0,
        gradient_clip: object = None,
        reward_clip: object = None,
        l1_radius: object = None,
        iterations: PerEpisode | None = None,
        step_size: PerEpisode | None = None,
        dtype: object = "float32",
        seed: object = None,
        exploration: PerEpisode = 0.0,
        fit: str | None = None,
        intercept: object = True,
        reward_range: object = None,
        column_scales: object = None,
        start: object = None,
        default_fit: str = DEFAULT_FIT,
    ) -> Settings:
        """Return the arguments with defaults filled in; errors name the argument.

        `default_fit` is taken where neither `fit` nor an argument that only one fit has decides: pursuit, or
        what a store was made with.
        """
        dim = arguments.integer("dim", dim, 1, _LARGEST_DIM)
        sparsity = arguments.integer("sparsity", sparsity, 1, dim)
        arguments.choice("episodes", episodes, ("planned", "doubling"))
        arguments.choice("loss", loss, ("squared", "logistic"))
        fit = _checked_fit(
            fit,
            {
                "episodes='doubling'": episodes == "doubling",
                "delta=0": delta == 0,
                "mechanism='laplace'": mechanism == "laplace",
                "warm_start=False": not warm_start,
                "growth": growth is not None,
                "gradient_clip": gradient_clip is not None,
                "reward_clip": reward_clip is not None,
                "l1_radius": l1_radius is not None,
                "iterations": iterations is not None,
                "step_size": step_size is not None,
                "start": start is not None,
            },
            default_fit,
        )
        if mechanism is None:
            mechanism = "exponential"
        arguments.choice("mechanism", mechanism, MECHANISMS)
        if not isinstance(warm_start, (bool, np.bool_)):
            raise TypeError(f"warm_start must be True or False, got {type(warm_start).__name__}")
        if first_episode is not None:
            first_episode = arguments.integer("first_episode", first_episode, 1, MAX_COUNT)
            if episodes != "planned":
                raise ValueError(
                    "first_episode is only for episodes='planned': doubling episodes start with 1 round"
                )
        if growth is None:
            growth = defaults.growth(warm_start=bool(warm_start))
        elif episodes != "planned":
            raise ValueError("growth is only for episodes='planned': doubling episodes double")
        context_scale = arguments.positive("context_scale", context_scale)
        pilot = isinstance(reward_scale, str)
        if pilot:
            arguments.choice("reward_scale", reward_scale, ("estimate",))
            reward_scale = 1.0
        reward_scale = arguments.positive("reward_scale", reward_scale)
        if not isinstance(intercept, (bool, np.bool_)):
            raise TypeError(f"intercept must be True or False, got {type(intercept).__name__}")
        ours = {
            "reward_scale='estimate'": pilot,
            "intercept=False": not intercept,
            "reward_range": reward_range is not None,
            "column_scales": column_scales is not None,
        }
        for name, given in ours.items():
            if given and fit != "pursuit":
                raise ValueError(f"{name} is only for fit='pursuit', got fit={fit!r}")
        if pilot and loss == "logistic":
            raise ValueError("reward_scale must be a number with loss='logistic': rewards are 0 and 1")
        if start is not None and not warm_start:
            raise ValueError("start needs warm_start=True: other fits begin at 0")
        begin = None if start is None else _checked_start(start, dim)
        if seed is not None:
            seed = arguments.integer("seed", seed, 0, 2**64 - 1)
        return cls(
            dim=dim,
            sparsity=sparsity,
            epsilon=arguments.positive("epsilon", epsilon),
            delta=check_delta(delta),
            episodes=episodes,
            warm_start=bool(warm_start),
            first_episode=first_episode,
            growth=arguments.within("growth", growth, 1.0, 16.0),
            mechanism=mechanism,
            loss=loss,
            rounds_per_user=arguments.integer("rounds_per_user", rounds_per_user, 1, MAX_COUNT),
            context_scale=context_scale,
            reward_scale=reward_scale,
            gradient_clip=defaults.bandit_clip(context_scale, reward_scale)
            if gradient_clip is None
            else arguments.positive("gradient_clip", gradient_clip),
            reward_clip=None if reward_clip is None else arguments.positive("reward_clip", reward_clip),
            l1_radius=defaults.l1_radius(sparsity, context_scale, reward_scale * defaults.curvature(loss))
            if l1_radius is None
            else arguments.positive("l1_radius", l1_radius),
            iterations=_checked_per_episode("iterations", iterations, checked_iterations),
            step_size=_checked_per_episode("step_size", step_size, checked_step_size),
            dtype=checked_dtype(dtype),
            seed=seed,
            fit=fit,
            exploration=_checked_exploration(exploration),
            intercept=bool(intercept),
            reward_range=checked_range(reward_range),
            column_scales=_checked_column_scales(column_scales, dim),
            pilot=pilot,
            start_indices=None if begin is None else tuple(begin.indices.tolist()),
            start_values=None if begin is None else tuple(begin.values.tolist()),
        )

    @property
    def row_width(self) -> int:
        """Numbers of a row that is kept: the chosen arm's context."""
        return self.dim

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

    def to_dict(self) -> dict[str, Any]:
        """Return a record for JSON; functions can't be written and become a marker."""
        record = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("iterations", "step_size", "exploration"):
            if callable(record[name]):
                record[name] = _FUNCTION
        record["constants"] = kept_tuning.written(self.constants)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in record.items()}

    @classmethod
    def from_dict(cls, record: dict[str, Any], functions: dict[str, PerEpisode | None]) -> Settings:
        """Return the settings that :meth:`to_dict` wrote; `functions` replace the markers."""
        filled = complete(record)
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
        filled["constants"] = kept_tuning.read(filled["constants"])
        return cls(**filled)


def complete(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of settings with what an earlier version did not write.

    The first version's only fit was "iht", and its noise followed from zCDP: its policies keep the noise they
    were made with. Later ones did not write the constants of other fits, whose name is filled in.
    """
    unrecorded = kept_tuning.UNRECORDED if record.get("fit") in ("pursuit", "dense") else None
    new = {
        "intercept": True,
        "reward_range": None,
        "column_scales": None,
        "pilot": False,
        "exploration": 0.0,
        "start_indices": None,
        "start_values": None,
        "constants": unrecorded,
    }
    kept = {name: value for name, value in record.items() if name not in ("calibration", "context_bound")}
    return {"fit": "iht", "accounting": "zcdp"} | new | kept


def _checked_start(start: object, dim: int) -> SparseEstimate:
    """Return a public estimate, given as one or as `dim` coefficients."""
    dense = start.to_dense() if isinstance(start, SparseEstimate) else np.asarray(start)
    if dense.dtype.kind not in "fiub":
        raise TypeError(f"start must hold real numbers, got dtype {dense.dtype}")
    dense = dense.astype(np.float64)
    if dense.shape != (dim,) or not np.isfinite(dense).all() or not dense.any():
        raise ValueError(
            f"start must be an estimate or an array of dim = {dim} finite coefficients, not all of them 0, "
            f"got shape {dense.shape}"
        )
    return SparseEstimate.from_dense(dense)


def checked_iterations(value: object) -> int:
    """Return M, from 0: no iteration computes and releases nothing."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return arguments.integer("iterations", value, 0, _MOST_ITERATIONS)


def checked_step_size(value: object) -> float:
    """Return eta, above 0."""
    return arguments.positive("step_size", value)


def checked_share(value: object) -> float:
    """Return a share of rounds, from 0 to 1."""
    return arguments.within("exploration", value, 0.0, 1.0)


def _checked_exploration(given: PerEpisode) -> PerEpisode:
    checked = _checked_per_episode("exploration", given, checked_share)
    if checked is None:
        raise TypeError("exploration must be a share, a sequence of shares or a function, got None")
    return checked


def _checked_per_episode(
    name: str, given: PerEpisode | None, check: Callable[[object], float]
) -> PerEpisode | None:
    if given is None or callable(given):
        return given
    if isinstance(given, (list, tuple, np.ndarray)):
        if len(given) == 0:
            raise ValueError(f"{name} must have at least one number, got an empty sequence")
        return tuple(check(value) for value in given)
    return check(given)


def _checked_fit(fit: str | None, only_iht: dict[str, bool], default: str) -> str:
    """Return the fit: hard thresholding where an argument is given that only it has."""
    given = [name for name, is_given in only_iht.items() if is_given]
    if fit is None:
        return "iht" if given else default
    arguments.choice("fit", fit, FITS)
    if fit == "pursuit" and given:
        raise ValueError(f"fit must be 'iht' with {given[0]}, got 'pursuit'")
    return fit


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


def _checked_column_scales(given: Any, dim: int) -> tuple[float, ...] | None:
    if given is None:
        return None
    scales = np.asarray(given, np.float64)
    if scales.shape != (dim,):
        raise ValueError(
            f"column_scales must have shape ({dim},), one size for each column, got shape {scales.shape}"
        )
    if not (np.isfinite(scales).all() and scales.min() >= 1e-30 and scales.max() <= 1e30):
        ends = f"{float(scales.min())!r} to {float(scales.max())!r}"
        raise ValueError(f"column_scales must be from 1e-30 to 1e30, got {ends}")
    return tuple(scales.tolist())


def checked_dtype(dtype: object) -> str:
    try:
        name = np.dtype(dtype).name  # type: ignore[call-overload]
    except TypeError:
        name = ""
    if name not in ("float32", "float64"):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    return str(name)
