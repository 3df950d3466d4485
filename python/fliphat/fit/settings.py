"""The public numbers of a policy's fits, checked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias

import numpy as np

from fliphat import _check
from fliphat.fit import defaults
from fliphat.privacy.paper import paper_context_bound
from fliphat.privacy.scales import MAX_COUNT, MECHANISMS, check_delta

__all__ = ["FITS", "PerEpisode", "Settings", "checked_iterations", "checked_step_size", "complete"]

#: A number, a sequence of one number an episode (the last one repeats), or a function of a fit's rows n.
PerEpisode: TypeAlias = float | Sequence[float] | Callable[[int], float]

#: Names of fits.
FITS: Final = ("iht",)

_LARGEST_DIM: Final = 2**31 - 1
_MOST_ITERATIONS: Final = 10_000
_FUNCTION: Final = "a function"


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
    calibration: str
    mechanism: str
    loss: str
    rounds_per_user: int
    context_scale: float
    reward_scale: float
    gradient_clip: float
    reward_clip: float | None
    l1_radius: float
    context_bound: float | None
    iterations: PerEpisode | None
    step_size: PerEpisode | None
    dtype: str
    seed: int | None
    fit: str = "iht"
    accounting: str = "exact"
    exploration: PerEpisode = 0.0

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
        calibration: str = "proven",
        mechanism: str | None = None,
        loss: str = "squared",
        rounds_per_user: object = 1,
        context_scale: object = 1.0,
        reward_scale: object = 1.0,
        gradient_clip: object = None,
        reward_clip: object = None,
        l1_radius: object = None,
        context_bound: object = None,
        iterations: PerEpisode | None = None,
        step_size: PerEpisode | None = None,
        dtype: object = "float32",
        seed: object = None,
        fit: str = "iht",
        exploration: PerEpisode = 0.0,
    ) -> Settings:
        """Return the arguments with defaults filled in; errors name the argument."""
        dim = _check.integer("dim", dim, 1, _LARGEST_DIM)
        sparsity = _check.integer("sparsity", sparsity, 1, dim)
        _check.choice("episodes", episodes, ("planned", "doubling"))
        _check.choice("calibration", calibration, ("proven", "paper"))
        _check.choice("loss", loss, ("squared", "logistic"))
        _check.choice("fit", fit, FITS)
        paper = calibration == "paper"
        if mechanism is None:
            mechanism = "laplace" if paper else "exponential"
        _check.choice("mechanism", mechanism, MECHANISMS)
        if not isinstance(warm_start, (bool, np.bool_)):
            raise TypeError(f"warm_start must be True or False, got {type(warm_start).__name__}")
        if first_episode is not None:
            first_episode = _check.integer("first_episode", first_episode, 1, MAX_COUNT)
            if episodes != "planned":
                raise ValueError(
                    "first_episode is only for episodes='planned': doubling episodes start with 1 round"
                )
        if growth is None:
            growth = defaults.growth(warm_start=bool(warm_start) and not paper)
        elif episodes != "planned":
            raise ValueError("growth is only for episodes='planned': doubling episodes double")
        if paper:
            _paper_only_allows(mechanism, loss, gradient_clip)
            context_bound = (
                paper_context_bound(dim)
                if context_bound is None
                else _check.positive("context_bound", context_bound)
            )
        elif context_bound is not None:
            raise ValueError(
                "context_bound is only for calibration='paper': proven noise needs no bound on contexts"
            )
        context_scale = _check.positive("context_scale", context_scale)
        reward_scale = _check.positive("reward_scale", reward_scale)
        if seed is not None:
            seed = _check.integer("seed", seed, 0, 2**64 - 1)
        return cls(
            dim=dim,
            sparsity=sparsity,
            epsilon=_check.positive("epsilon", epsilon),
            delta=check_delta(delta),
            episodes=episodes,
            warm_start=bool(warm_start),
            first_episode=first_episode,
            growth=_check.within("growth", growth, 1.0, 16.0),
            calibration=calibration,
            mechanism=mechanism,
            loss=loss,
            rounds_per_user=_check.integer("rounds_per_user", rounds_per_user, 1, MAX_COUNT),
            context_scale=context_scale,
            reward_scale=reward_scale,
            gradient_clip=defaults.bandit_clip(context_scale, reward_scale)
            if gradient_clip is None
            else _check.positive("gradient_clip", gradient_clip),
            reward_clip=None if reward_clip is None else _check.positive("reward_clip", reward_clip),
            l1_radius=defaults.l1_radius(sparsity, context_scale, reward_scale * defaults.curvature(loss))
            if l1_radius is None
            else _check.positive("l1_radius", l1_radius),
            context_bound=context_bound,
            iterations=_checked_per_episode("iterations", iterations, checked_iterations),
            step_size=_checked_per_episode("step_size", step_size, checked_step_size),
            dtype=_checked_dtype(dtype),
            seed=seed,
            fit=fit,
            exploration=_checked_exploration(exploration),
        )

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
            elif isinstance(record[name], tuple):
                record[name] = list(record[name])
        return record

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
            if isinstance(filled[name], list):
                filled[name] = tuple(filled[name])
        return cls(**filled)


def complete(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of settings with what an earlier version did not write.

    Its only fit was "iht", and its noise followed from zCDP: its policies keep the noise they were made with.
    """
    return {"fit": "iht", "accounting": "zcdp", "exploration": 0.0} | record


def checked_iterations(value: object) -> int:
    """Return M, from 0: no iteration computes and releases nothing."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _check.integer("iterations", value, 0, _MOST_ITERATIONS)


def checked_step_size(value: object) -> float:
    """Return eta, above 0."""
    return _check.positive("step_size", value)


def checked_share(value: object) -> float:
    """Return a share of rounds, from 0 to 1."""
    return _check.within("exploration", value, 0.0, 1.0)


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


def _checked_dtype(dtype: object) -> str:
    try:
        name = np.dtype(dtype).name  # type: ignore[call-overload]
    except TypeError:
        name = ""
    if name not in ("float32", "float64"):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    return str(name)


def _paper_only_allows(mechanism: str, loss: str, gradient_clip: object) -> None:
    if mechanism != "laplace":
        raise ValueError(f"mechanism must be 'laplace' for calibration='paper', got {mechanism!r}")
    if loss != "squared":
        raise ValueError(f"loss must be 'squared' for calibration='paper', got {loss!r}")
    if gradient_clip is not None:
        raise ValueError("gradient_clip is only for calibration='proven': the paper clips no gradient")
