"""What only one fit has: the types that users give as ``fit=``.

`Pursuit` is the default. `Iht` is noisy iterative hard thresholding, the paper's fit, with noise that is
proven. Each checks its own arguments when it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.fit.known import SparseEstimate
from fliphat.privacy.scales import MECHANISMS

__all__ = ["Iht", "PerEpisode", "Pursuit", "named"]

#: A number, a sequence of one number an episode (the last one repeats), or a function of a fit's rows n.
PerEpisode: TypeAlias = float | Sequence[float] | Callable[[int], float]

_MOST_ITERATIONS: Final = 10_000


@dataclass(frozen=True, kw_only=True)
class Pursuit:
    """Picks a few new columns an episode, and learns scales, correlations and the mean reward as it goes.

    Parameters
    ----------
    intercept : bool
        Whether rewards may have a mean other than 0.
    column_scales : array_like, shape (dim,), optional
        Public sizes of columns whose units differ; they are divided by them.

    Examples
    --------
    >>> from fliphat import FLIPHAT, Pursuit
    >>> FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=1e-2, fit=Pursuit(intercept=False))
    FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=0.01)
    """

    name: ClassVar[str] = "pursuit"
    intercept: bool = True
    column_scales: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        _require_bool("intercept", self.intercept)
        if self.column_scales is not None:
            object.__setattr__(self, "column_scales", _checked_column_scales(self.column_scales))


@dataclass(frozen=True, kw_only=True)
class Iht:
    """Noisy iterative hard thresholding, the paper's fit, with proven noise.

    It assumes contexts and rewards around zero, little correlation and scales that are about right.
    ``Iht(episodes="doubling", warm_start=False)`` has the paper's episodes and starts every fit at zero.
    The algorithms as printed are in :mod:`fliphat.paper`.

    Parameters
    ----------
    episodes : {"planned", "doubling"}
        "planned" plays a first episode uniformly; each one after is `growth` times longer. "doubling" is the
        paper's: 1, 2, 4, ... rounds.
    warm_start : bool
        Whether a fit starts from the estimate before it, once that is good enough. The paper starts from 0.
    growth : float, optional
        How many times longer a planned episode is than the one before, from 1 to 16.
    mechanism : {"exponential", "laplace"}
        How coordinates are picked; "laplace" is the paper's peeling.
    gradient_clip : float, optional
        Bound on each coordinate of a row's gradient; by default ``0.8 * context_scale * reward_scale``.
    reward_clip, l1_radius : float, optional
        Bounds on rewards (none by default) and on the estimate's l1 norm.
    iterations, step_size : number, sequence or function, optional
        M and eta: one number, one for each episode (the last one repeats), or a function of the fit's rows n.
    start : SparseEstimate or array_like, shape (dim,), optional
        An estimate to begin with: the first episode plays by it, and its fit starts there. It must be
        **public and not derived from the people of this policy**: from the literature, from another study, or
        released by a policy for other people. Nothing checks that, and the guarantee rests on it.

    Examples
    --------
    >>> from fliphat import FLIPHAT, Iht
    >>> policy = FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=1e-2, fit=Iht(episodes="doubling"))
    >>> policy.remaining
    1
    """

    name: ClassVar[str] = "iht"
    episodes: Literal["planned", "doubling"] = "planned"
    warm_start: bool = True
    growth: float | None = None
    mechanism: Literal["exponential", "laplace"] = "exponential"
    gradient_clip: float | None = None
    reward_clip: float | None = None
    l1_radius: float | None = None
    iterations: PerEpisode | None = None
    step_size: PerEpisode | None = None
    start: npt.ArrayLike | SparseEstimate | None = None

    def __post_init__(self) -> None:
        arguments.choice("episodes", self.episodes, ("planned", "doubling"))
        arguments.choice("mechanism", self.mechanism, MECHANISMS)
        _require_bool("warm_start", self.warm_start)
        if self.growth is not None:
            if self.episodes != "planned":
                raise ValueError("growth is only for episodes='planned': doubling episodes double")
            object.__setattr__(self, "growth", arguments.within("growth", self.growth, 1.0, 16.0))
        for bound in ("gradient_clip", "reward_clip", "l1_radius"):
            given = getattr(self, bound)
            if given is not None:
                object.__setattr__(self, bound, arguments.positive(bound, given))
        for name, check in (("iterations", checked_iterations), ("step_size", checked_step_size)):
            object.__setattr__(self, name, per_episode(name, getattr(self, name), check))
        if self.start is not None:
            if not self.warm_start:
                raise ValueError("start needs warm_start=True: other fits begin at 0")
            object.__setattr__(self, "start", _checked_start(self.start))


def named(name: str | None, **given: Any) -> Pursuit | Iht:
    """Return a fit's options from its name, as files and command lines give it.

    Examples
    --------
    >>> named("iht", growth=2).growth
    2.0
    """
    name = "pursuit" if name is None else arguments.choice("fit", name, ("pursuit", "iht"))
    made = {"pursuit": Pursuit, "iht": Iht}[name]
    known = [field.name for field in fields(made)]
    for argument in given:
        if argument not in known:
            raise ValueError(f"fit {name!r} has no {argument!r}; it has {', '.join(known)}")
    options: Pursuit | Iht = made(**given)
    return options


def checked_iterations(value: object) -> int:
    """Return M, from 0: no iteration computes and releases nothing."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return arguments.integer("iterations", value, 0, _MOST_ITERATIONS)


def checked_step_size(value: object) -> float:
    """Return eta, above 0."""
    return arguments.positive("step_size", value)


def per_episode(name: str, given: PerEpisode | None, check: Callable[[object], float]) -> PerEpisode | None:
    """Return one checked number, a tuple of them, or the function."""
    if given is None or callable(given):
        return given
    if isinstance(given, (list, tuple, np.ndarray)):
        if len(given) == 0:
            raise ValueError(f"{name} must have at least one number, got an empty sequence")
        return tuple(check(value) for value in given)
    return check(given)


def _require_bool(name: str, given: object) -> None:
    if not isinstance(given, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {type(given).__name__}")


def _checked_start(start: Any) -> SparseEstimate:
    """Return a public estimate, given as one or as coefficients."""
    dense = start.to_dense() if isinstance(start, SparseEstimate) else np.asarray(start)
    if dense.dtype.kind not in "fiub":
        raise TypeError(f"start must hold real numbers, got dtype {dense.dtype}")
    dense = dense.astype(np.float64)
    if dense.ndim != 1 or not np.isfinite(dense).all() or not dense.any():
        raise ValueError(
            f"start must be an estimate or an array of finite coefficients, not all of them 0, "
            f"got shape {dense.shape}"
        )
    return SparseEstimate.from_dense(dense)


def _checked_column_scales(given: Any) -> tuple[float, ...]:
    scales = np.asarray(given, np.float64)
    if scales.ndim != 1 or not len(scales):
        raise ValueError(f"column_scales must have one size for each column, got shape {scales.shape}")
    if not (np.isfinite(scales).all() and scales.min() >= 1e-30 and scales.max() <= 1e30):
        ends = f"{float(scales.min())!r} to {float(scales.max())!r}"
        raise ValueError(f"column_scales must be from 1e-30 to 1e30, got {ends}")
    return tuple(scales.tolist())
