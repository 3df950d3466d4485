"""The proposition's tuning of an episode, and the estimation error it gives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from fliphat import arguments
from fliphat.environments.hard import MAX_DIM, MAX_HORIZON


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Parameters of one episode's fit.

    Attributes
    ----------
    reward_clip : float
        ``R = x_max b_max + sigma sqrt(2 ln N)``.
    iterations : int
        ``M = 28 kappa ln(b_max^2 N)``, rounded up and at least 1.
    step_size : float
        ``eta = 1/(2 kappa-bar)``.
    l1_radius : float
        ``C = b_max``.
    sparsity : int
        ``s = constant * kappa^2 s*``, rounded up.
    condition : float
        ``kappa``, the ratio of the sparse eigenvalues.
    """

    reward_clip: float
    iterations: int
    step_size: float
    l1_radius: float
    sparsity: int
    condition: float


def tuning(
    *,
    rows: int,
    true_sparsity: int,
    context_bound: float,
    l1_radius: float,
    noise_scale: float,
    upper_eigenvalue: float,
    lower_eigenvalue: float,
    constant: float = 1.0,
) -> Tuning:
    """Return the tuning of Proposition "Estimation Control for Episode l".

    Notes
    -----
    Written for theory. The 28 kappa ln N iterations it asks for divide the privacy budget far too often in
    practice: the published simulations ran one.

    Examples
    --------
    >>> fit = tuning(rows=1024, true_sparsity=5, context_bound=3.46, l1_radius=4.0, noise_scale=0.1,
    ...              upper_eigenvalue=1.2, lower_eigenvalue=0.8)
    >>> fit.iterations, round(fit.reward_clip, 2), round(fit.step_size, 3), fit.sparsity
    (408, 14.21, 0.417, 12)
    """
    rows = arguments.integer("rows", rows, 1, MAX_HORIZON)
    true_sparsity = arguments.integer("true_sparsity", true_sparsity, 1, MAX_DIM)
    x_max, b_max = (
        arguments.positive("context_bound", context_bound),
        arguments.positive("l1_radius", l1_radius),
    )
    sigma = arguments.within("noise_scale", noise_scale, 0.0, 1e300)
    condition = _condition(upper_eigenvalue, lower_eigenvalue)
    return Tuning(
        reward_clip=x_max * b_max + sigma * math.sqrt(2 * math.log(rows)),
        iterations=max(1, math.ceil(28 * condition * math.log(b_max**2 * rows))),
        step_size=1 / (2 * upper_eigenvalue),
        l1_radius=b_max,
        sparsity=math.ceil(arguments.positive("constant", constant) * condition**2 * true_sparsity),
        condition=condition,
    )


class EstimationError(NamedTuple):
    """The two terms of the bound on the squared estimation error.

    Attributes
    ----------
    non_private, private : float
    """

    non_private: float
    private: float

    @property
    def total(self) -> float:
        """Their sum."""
        return sum(self)


def estimation_error(
    *,
    rows: int,
    dim: int,
    sparsity: int,
    true_sparsity: int,
    epsilon: float,
    delta: float,
    noise_scale: float,
    upper_eigenvalue: float,
    lower_eigenvalue: float,
    constant: float = 1.0,
) -> EstimationError:
    """Return the bound on ``||estimate - beta*||_2^2`` after an episode of N rows.

    Proposition "Estimation Control for Episode l", with kappa the ratio of the eigenvalues::

        non-private = sigma^2 kappa^2 (s + s*) ln(d) / (lower^2 N)
        private     = sigma^2 kappa^2 (s ln d)^2 ln(ln(N)/delta) ln(N)^3 / (N epsilon)^2

    Examples
    --------
    >>> error = estimation_error(rows=4096, dim=400, sparsity=10, true_sparsity=5, epsilon=1.0, delta=0.01,
    ...                          noise_scale=0.1, upper_eigenvalue=1.2, lower_eigenvalue=0.8)
    >>> round(error.non_private, 6), round(error.private, 6)
    (0.000771, 0.018627)
    """
    rows = arguments.integer("rows", rows, 3, MAX_HORIZON)
    dim = arguments.integer("dim", dim, 2, MAX_DIM)
    sparsity = arguments.integer("sparsity", sparsity, 1, dim)
    true_sparsity = arguments.integer("true_sparsity", true_sparsity, 1, dim)
    epsilon, delta = arguments.positive("epsilon", epsilon), arguments.real("delta", delta)
    if not 0 < delta < 1:
        raise ValueError(f"delta must be above 0 and below 1, got {delta!r}")
    condition = _condition(upper_eigenvalue, lower_eigenvalue)
    factor = (
        arguments.positive("constant", constant)
        * (arguments.positive("noise_scale", noise_scale) * condition) ** 2
    )
    episodes = math.log(rows)
    private = (
        (sparsity * math.log(dim)) ** 2 * math.log(episodes / delta) * episodes**3 / (rows * epsilon) ** 2
    )
    statistical = (sparsity + true_sparsity) * math.log(dim) / (lower_eigenvalue**2 * rows)
    return EstimationError(factor * statistical, factor * private)


def arm_eigenvalues(arms: int, *, constant: float = 1.0) -> tuple[float, float]:
    """Return the order of the sparse eigenvalues of greedily chosen rows: ``ln K`` and ``1/K``.

    From Theorem "Regret bounds for FLIPHAT": choosing among K arms inflates the largest and deflates the
    smallest.

    Examples
    --------
    >>> [round(bound, 3) for bound in arm_eigenvalues(3)]
    [1.099, 0.333]
    """
    arms = arguments.integer("arms", arms, 2, MAX_DIM)
    constant = arguments.positive("constant", constant)
    return constant * math.log(arms), constant / arms


def _condition(upper: float, lower: float) -> float:
    upper, lower = (
        arguments.positive("upper_eigenvalue", upper),
        arguments.positive("lower_eigenvalue", lower),
    )
    if lower > upper:
        raise ValueError(f"lower_eigenvalue must be at most upper_eigenvalue = {upper:g}, got {lower!r}")
    return upper / lower
