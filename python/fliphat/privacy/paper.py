"""The noise the paper prints, to reproduce its figures. It is **not** proven private.

Symbols: ``context_bound`` x_max, ``l1_radius`` b_max, ``reward_clip`` R, ``rows`` n, ``dim`` d,
``sparsity`` s, ``iterations`` M, ``step_size`` eta, ``noise_scale`` xi, printed sensitivity lambda.

N-IHT hands Peeling the budget ``(epsilon/M, delta/M)`` and the sensitivity ``lambda = eta B/n`` with ``B =
R + x_max b_max``; Peeling adds Laplace noise of scale ``xi = lambda 2 sqrt(3 s ln(M/delta)) M/epsilon``.

Why it falls short. For the loss the paper states, ``(y - x'theta)^2``, one row's gradient has coordinates
``2 x_j (x'theta - y)``, as large as ``2 x_max (R + x_max b_max) = 2 x_max B`` in size. Replacing the row
can turn one extreme into the other: ``theta - eta * gradient`` moves by up to ``4 x_max eta B/n``, which is
``4 x_max`` times lambda (``2 x_max`` times for half the squared loss). And the bound itself is only
assumed: the published simulations draw unbounded Gaussian contexts and clip none, so no finite factor is
enough.

References
----------
"FLIPHAT: Joint Differential Privacy for High Dimensional Sparse Linear Bandits": algorithms N-IHT, FLIPHAT,
Peeling.
C. Dwork, W. Su, L. Zhang (2021). Differentially Private False Discovery Rate Control. Journal of Privacy and
Confidentiality, doi:10.29012/jpc.755 (peeling).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fliphat import arguments
from fliphat.privacy.scales import MAX_COUNT

__all__ = ["PaperNoise", "calibrate_paper", "paper_context_bound", "paper_iterations", "paper_reward_clip"]


@dataclass(frozen=True, kw_only=True)
class PaperNoise:
    """The printed Laplace scale of one fit, and by how much it falls short.

    Attributes
    ----------
    epsilon, delta : float
        What the paper claims for this noise; not proven.
    noise_scale : float
        xi, in units of the coefficients.
    sensitivity : float
        lambda, the printed sensitivity, in units of the coefficients.
    context_bound, reward_clip, l1_radius : float
        x_max, R and b_max.
    rows, sparsity, iterations : int
        n, s and M.
    """

    epsilon: float
    delta: float
    noise_scale: float
    sensitivity: float
    context_bound: float
    reward_clip: float
    l1_radius: float
    rows: int
    sparsity: int
    iterations: int

    @property
    def calibration(self) -> str:
        """The name of this calibration: ``"paper"``."""
        return "paper"

    @property
    def mechanism(self) -> str:
        """Report-noisy-max with (real-valued) Laplace noise."""
        return "laplace"

    @property
    def value_noise(self) -> str:
        """Real-valued Laplace noise."""
        return "laplace"

    @property
    def shortfall(self) -> float:
        """Honest sensitivity over printed sensitivity for the stated loss, at least: ``4 x_max``."""
        return 4 * self.context_bound


def calibrate_paper(
    *,
    epsilon: float,
    delta: float,
    rows: int,
    dim: int,
    sparsity: int,
    iterations: int,
    step_size: float,
    l1_radius: float,
    context_bound: float | None = None,
    reward_clip: float | None = None,
) -> PaperNoise:
    """Return the Laplace scale as printed: ``(eta B/n) * 2 sqrt(3 s ln(M/delta)) * M/epsilon``.

    Not proven: see the top of this module. Anything that runs with it must state so
    (:func:`fliphat.privacy.guarantee.state_guarantee` warns).

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        Above 0 and below 1: the formula has no pure case.
    rows, dim, sparsity, iterations : int
        n, d, s and M. M = 0 (see :func:`paper_iterations`) releases nothing and has no noise to calibrate.
    step_size, l1_radius : float
        eta and b_max.
    context_bound : float, optional
        x_max; by default ``sqrt(2 ln d)``, as in the published simulations.
    reward_clip : float, optional
        R; by default :func:`paper_reward_clip`.

    Returns
    -------
    PaperNoise

    Examples
    --------
    >>> noise = calibrate_paper(epsilon=1.0, delta=0.01, rows=1024, dim=400, sparsity=10, iterations=1,
    ...                         step_size=1e-4, l1_radius=4.0)
    >>> round(noise.noise_scale / noise.sensitivity, 1), round(noise.shortfall, 1)
    (23.5, 13.8)
    """
    epsilon = arguments.positive("epsilon", epsilon)
    delta = arguments.real("delta", delta)
    if not 0 < delta < 1:
        raise ValueError(f"delta must be above 0 and below 1 for the paper's formula, got {delta!r}")
    rows = arguments.integer("rows", rows, 1, MAX_COUNT)
    dim = arguments.integer("dim", dim, 1, MAX_COUNT)
    sparsity = arguments.integer("sparsity", sparsity, 1, dim)
    iterations = arguments.integer("iterations", iterations, 1, MAX_COUNT)
    step_size = arguments.positive("step_size", step_size)
    l1_radius = arguments.positive("l1_radius", l1_radius)
    if context_bound is None:
        context_bound = paper_context_bound(dim)
    context_bound = arguments.positive("context_bound", context_bound)
    if reward_clip is None:
        reward_clip = paper_reward_clip(rows, context_bound=context_bound, l1_radius=l1_radius)
    reward_clip = arguments.positive("reward_clip", reward_clip)

    sensitivity = step_size * (reward_clip + context_bound * l1_radius) / rows
    noise_scale = (
        sensitivity * 2 * math.sqrt(3 * sparsity * math.log(iterations / delta)) * iterations / epsilon
    )
    return PaperNoise(
        epsilon=epsilon,
        delta=delta,
        noise_scale=arguments.positive("noise_scale", noise_scale),
        sensitivity=sensitivity,
        context_bound=context_bound,
        reward_clip=reward_clip,
        l1_radius=l1_radius,
        rows=rows,
        sparsity=sparsity,
        iterations=iterations,
    )


def paper_context_bound(dim: int) -> float:
    """Return x_max of the published simulations, ``sqrt(2 ln d)``; needs ``d >= 2``.

    Examples
    --------
    >>> round(paper_context_bound(400), 2)
    3.46
    """
    return math.sqrt(2 * math.log(arguments.integer("dim", dim, 2, MAX_COUNT)))


def paper_iterations(rows: int, *, l1_radius: float, factor: float = 0.16) -> int:
    """Return M of the published simulations, ``floor(factor * ln(1 + n b_max^2))``.

    The text prints a factor of 1.6; the figures ran 0.16 (0.15 for the dimension sweep). Zero leaves the
    estimate at 0.

    Examples
    --------
    >>> paper_iterations(1024, l1_radius=4.0), paper_iterations(8, l1_radius=4.0)
    (1, 0)
    """
    rows = arguments.integer("rows", rows, 1, MAX_COUNT)
    l1_radius = arguments.positive("l1_radius", l1_radius)
    return math.floor(arguments.positive("factor", factor) * math.log1p(rows * l1_radius * l1_radius))


def paper_reward_clip(rows: int, *, context_bound: float, l1_radius: float) -> float:
    """Return R of the published simulations, ``x_max b_max + sqrt(2 ln(1 + n))`` (reward noise taken as 1).

    Examples
    --------
    >>> round(paper_reward_clip(1024, context_bound=3.46, l1_radius=4.0), 2)
    17.56
    """
    rows = arguments.integer("rows", rows, 1, MAX_COUNT)
    bound = arguments.positive("context_bound", context_bound) * arguments.positive("l1_radius", l1_radius)
    return bound + math.sqrt(2 * math.log1p(rows))
