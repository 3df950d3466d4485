"""Twin of the private regression, and the textbook's. Float noise: for comparison only, not private."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fliphat.kernels._niht import noise_scales
from fliphat.reference._gradient import clipped_gradient
from fliphat.reference._project import project_l1

Vector = npt.NDArray[np.float64]


def niht(
    X: Any,
    y: Vector,
    *,
    sparsity: int,
    iterations: int,
    step_size: float,
    l1_radius: float,
    clip: float,
    epsilon: float | None = None,
    delta: float = 0.0,
    pick_scale: float | None = None,
    value_scale: float | None = None,
    start: Vector | None = None,
    mechanism: Literal["exponential", "laplace"] = "exponential",
    value_noise: Literal["rounded_gaussian", "gaussian", "laplace"] | None = None,
    loss: Literal["squared", "logistic"] = "squared",
    reward_clip: float | None = None,
    present: npt.NDArray[np.bool_] | None = None,
    rng: np.random.Generator,
) -> Vector:
    """Fit by noisy iterative hard thresholding, with insecure float noise in lattice units."""
    n, d = X.shape
    scales = noise_scales(
        iterations * sparsity, epsilon, delta, pick_scale, value_scale, mechanism, value_noise
    )
    theta = np.zeros(d) if start is None else project_l1(start, l1_radius)
    for _ in range(iterations):
        sums, step = clipped_gradient(X, y, theta, clip, loss=loss, reward_clip=reward_clip, present=present)
        unit = step_size * step / n
        v = np.rint(theta / unit) - sums
        if mechanism == "exponential":
            # Adding Gumbel noise once and taking the largest s is s exponential mechanisms in turn.
            support = np.argpartition(-np.abs(v) - rng.gumbel(0, scales.pick, d), sparsity - 1)[:sparsity]
        else:
            left, support = np.abs(v), np.empty(sparsity, np.int64)
            for pick in range(sparsity):
                support[pick] = np.argmax(left + rng.laplace(0, scales.pick, d))
                left[support[pick]] = -np.inf
        draw = rng.laplace if scales.value_noise == "laplace" else rng.normal
        theta = np.zeros(d)
        theta[support] = unit * (v[support] + np.rint(draw(0, scales.value, sparsity)))
        theta = project_l1(theta, l1_radius)
    return theta


def iterative_hard_thresholding(
    X: npt.NDArray[Any], y: Vector, *, sparsity: int, iterations: int, step_size: float, l1_radius: float
) -> list[Vector]:
    """Return the iterates of the textbook's algorithm: no clipping, no lattice, no noise."""
    n, d = X.shape
    theta = np.zeros(d)
    iterates = []
    for _ in range(iterations):
        v = theta - step_size * (X.T @ (X @ theta - y)) / n
        support = np.argsort(-np.abs(v), kind="stable")[:sparsity]
        theta = np.zeros(d)
        theta[support] = v[support]
        theta = project_l1(theta, l1_radius)
        iterates.append(theta)
    return iterates
