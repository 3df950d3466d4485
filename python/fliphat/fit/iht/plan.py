"""One fit, decided before its rows are read.

How many coordinates are picked, how often, for how many rows of one user, with which clip and which noise is
not written here: it is read from the noise object, which was calibrated for exactly that. So what a fit is
charged for and what it does cannot differ. A plan cannot be made with noise for another claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fliphat.privacy.scales import NoiseScales

__all__ = ["Budget", "EmptyPlan", "IhtPlan"]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What whoever owns the rows was promised; every plan's noise is checked against it."""

    epsilon: float
    delta: float
    rounds_per_user: int

    def require_noise(self, noise: NoiseScales) -> None:
        """Refuse noise that was calibrated for another claim."""
        if not isinstance(noise, NoiseScales):
            raise TypeError(f"noise must be NoiseScales, got {type(noise).__name__}")
        for name in ("epsilon", "delta", "rounds_per_user"):
            if getattr(noise, name) != getattr(self, name):
                raise ValueError(
                    f"noise must be calibrated for {name} = {getattr(self, name)!r}, "
                    f"got noise for {getattr(noise, name)!r}"
                )


@dataclass(frozen=True, kw_only=True)
class IhtPlan:
    """One fit by noisy iterative hard thresholding: everything it will do.

    Attributes
    ----------
    budget : Budget
    noise : NoiseScales
        Rows, picks, iterations, rows of one user, gradient clip and scales.
    episode : int
        Number of the episode, 0 for a regression.
    dim : int
    step_size : float
        eta.
    l1_radius : float
        C.
    loss : {"squared", "logistic"}
    reward_clip : float or None
        R.
    warm : bool
        Whether the fit starts from an estimate released before.
    shrink : bool
        Whether released values are then drawn towards zero; see :func:`fliphat.fit.iht.fit.shrunk`.
    seed : tuple of int, optional
        Seed and stream of the noise, for simulation only.
    """

    budget: Budget
    noise: NoiseScales
    episode: int
    dim: int
    step_size: float
    l1_radius: float
    loss: str
    reward_clip: float | None
    warm: bool
    shrink: bool
    seed: tuple[int, int] | None

    def __post_init__(self) -> None:
        self.budget.require_noise(self.noise)

    @property
    def rows(self) -> int:
        """Rows of the fit, with or without a reward."""
        return self.noise.rows

    @property
    def sparsity(self) -> int:
        """Coordinates that each iteration picks."""
        return self.noise.sparsity

    @property
    def iterations(self) -> int:
        """Iterations, always all of them."""
        return self.noise.iterations

    @property
    def stream(self) -> tuple[int | None, int]:
        """Seed, if there is one, and stream of the noise."""
        return (None, 0) if self.seed is None else self.seed

    @property
    def kernel_arguments(self) -> dict[str, Any]:
        """What :func:`fliphat.kernels.niht` takes besides rows, rewards and a start."""
        noise = self.noise
        return {
            "sparsity": noise.sparsity,
            "iterations": noise.iterations,
            "step_size": self.step_size,
            "l1_radius": self.l1_radius,
            "clip": noise.clip,
            "pick_scale": noise.pick_scale,
            "value_scale": noise.value_scale,
            "mechanism": noise.mechanism,
            "value_noise": noise.value_noise,
            "loss": self.loss,
            "reward_clip": self.reward_clip,
        }


@dataclass(frozen=True, kw_only=True)
class EmptyPlan:
    """An episode whose rows are not looked at: no iteration, no noise, nothing released.

    Attributes
    ----------
    episode, rows : int
    sparsity : int
        Coordinates that an iteration would have picked.
    step_size : float
    warm : bool
        Whether the estimate stays as it is; otherwise it is zero again.
    """

    episode: int
    rows: int
    sparsity: int
    step_size: float
    warm: bool

    @property
    def iterations(self) -> int:
        """None are run."""
        return 0
