"""How large the coefficients of the hardest instances are: the proof of Theorem "Lower Bound", step 4."""

from __future__ import annotations

import math

from fliphat import arguments

MAX_HORIZON = 2**62
MAX_DIM = 2**31 - 1


def hard_coefficient(
    *,
    horizon: int,
    dim: int,
    sparsity: int,
    epsilon: float | None = None,
    delta: float = 0.0,
    noise_scale: float = 1.0,
    packing_constant: float = 1.0,
) -> float:
    """Return r, the size of the coefficients of the hard instances (proof of Theorem "Lower Bound", step 4).

    With ``L = ln(d/s*)`` and contexts of variance ``1/ln d``:

    - without privacy, ``r^2 = sigma^2 L / (8 T)``;
    - pure, ``r = c sigma sqrt(s* ln d) L / (20 epsilon T)``;
    - delta > 0, ``r^2 = c sigma^2 L ln(d) / (16 rho T^2)``, with rho =
      ``20^(4/3) epsilon^2 / (4 ln(1/delta))``.

    Parameters
    ----------
    horizon, dim, sparsity : int
        T, d (at least 3) and s* < d.
    epsilon : float, optional
        None for the instance that is hard without privacy.
    delta : float, default 0.0
    noise_scale : float
        sigma.
    packing_constant : float
        c in ``ln M >= c s* ln(d/s*)``, which the paper leaves open.

    Returns
    -------
    float

    Examples
    --------
    >>> round(hard_coefficient(horizon=10_000, dim=400, sparsity=5), 4)
    0.0074
    """
    rounds, scale_log = hard_problem(horizon, dim, sparsity)
    # The variance of the contexts, 1/ln d, is at most 1 only from here on.
    arguments.integer("dim", dim, 3, MAX_DIM)
    sigma = arguments.positive("noise_scale", noise_scale)
    packing = arguments.positive("packing_constant", packing_constant)
    if epsilon is None:
        if checked_delta(delta) != 0:
            raise ValueError(f"delta must be 0 where epsilon is None, got {delta!r}")
        return sigma * math.sqrt(scale_log / (8 * rounds))
    epsilon, delta = checked_privacy(epsilon, delta)
    if delta == 0:
        return packing * sigma * math.sqrt(sparsity * math.log(dim)) * scale_log / (20 * epsilon * rounds)
    rho = 20 ** (4 / 3) * epsilon**2 / (4 * -math.log(delta))
    return sigma * math.sqrt(packing * scale_log * math.log(dim) / (16 * rho)) / rounds


def hard_problem(horizon: int, dim: int, sparsity: int) -> tuple[int, float]:
    """Return T and ``ln(d/s*)``."""
    horizon = arguments.integer("horizon", horizon, 1, MAX_HORIZON)
    dim = arguments.integer("dim", dim, 2, MAX_DIM)
    sparsity = arguments.integer("sparsity", sparsity, 1, dim - 1)
    return horizon, math.log(dim / sparsity)


def checked_delta(delta: float) -> float:
    """Return delta, at least 0 and below 1."""
    delta = arguments.real("delta", delta)
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be at least 0 and below 1, got {delta!r}")
    return delta


def checked_privacy(epsilon: float, delta: float) -> tuple[float, float]:
    """Return epsilon and delta of the lower bound's range."""
    epsilon, delta = arguments.positive("epsilon", epsilon), checked_delta(delta)
    if delta > 0 and epsilon**2 >= -math.log(delta):
        raise ValueError(
            f"epsilon must be below sqrt(ln(1/delta)) = {math.sqrt(-math.log(delta)):.4g} "
            f"for the theorem to apply, got {epsilon!r}"
        )
    return epsilon, delta
