"""Instances whose hardness is known: the margin family, and the two-armed instances of the lower bound."""

from __future__ import annotations

import math
from typing import Any

from fliphat import arguments
from fliphat.environments.contexts import ContextDistribution, Independent
from fliphat.environments.linear import SparseLinear, sparse_truth

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


def margin_family(
    alpha: float,
    *,
    dim: int = 400,
    arms: int = 2,
    sparsity: int = 5,
    width: float = 1.0,
    horizon: int | None = None,
    constant: float = 1.0,
    contexts: ContextDistribution | None = None,
    noise_scale: float = 0.1,
    seed: int = 0,
    **options: Any,
) -> SparseLinear:
    """Return an environment that meets the paper's margin condition with equality.

    The condition (assumption "Margin condition") is ``P(gap <= h) <= (h/width)^alpha`` for h between
    ``constant * sqrt(ln(d)/T)`` and `width`, where gap is the best mean less the second best. Here one arm,
    uniformly at random, lies `gap` above all others, and

    - for 0 < alpha < infinity, ``P(gap <= h) = (h/width)^alpha``: gaps of ``width * U^(1/alpha)``;
    - for alpha = infinity, gap = width always;
    - for alpha = 0, gap = ``constant * sqrt(ln(d)/T)`` always, which makes the probability 1 over the whole
      range of h: as hard as the condition allows. It depends on the horizon T, as the paper's condition does.

    Contexts are drawn as usual, then each arm's is moved along beta to its prescribed mean; the first arm's
    original mean stays the middle, so rewards vary about as much for every alpha.

    Parameters
    ----------
    alpha : float
        At least 0; ``math.inf`` allowed.
    dim, arms, sparsity : int
        d, K (at least 2) and s* (at least 1).
    width : float
        Delta_*, the largest gap.
    horizon : int, optional
        T, needed for alpha = 0 and only there.
    constant : float
        A; the paper leaves it open.
    contexts, noise_scale, seed, **options
        As for :class:`SparseLinear`. Contexts are independent normal by default.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> means = np.sort(margin_family(math.inf, arms=3, seed=1).draw(10).means, axis=1)
    >>> bool(np.allclose(means[:, 2] - means[:, 1], 1.0, atol=1e-5))
    True
    """
    alpha = arguments.real("alpha", alpha)
    if not alpha >= 0:
        raise ValueError(f"alpha must be a number of at least 0, or math.inf, got {alpha!r}")
    arms = arguments.integer("arms", arms, 2, 2**20)
    dim = arguments.integer("dim", dim, 2, 2**31 - 1)
    sparsity = arguments.integer("sparsity", sparsity, 1, dim)
    width = arguments.positive("width", width)
    if (horizon is None) == (alpha == 0):
        raise ValueError(f"horizon must be given for alpha = 0 and only then, got alpha = {alpha!r}")
    margin: tuple[float, float | None] = (width, None if math.isinf(alpha) else alpha)
    if horizon is not None:
        rounds = arguments.integer("horizon", horizon, 1, 2**62)
        gap = arguments.positive("constant", constant) * math.sqrt(math.log(dim) / rounds)
        if gap > width:
            raise ValueError(
                f"horizon must be large enough for a gap of {gap:g} to be at most width = {width:g}"
            )
        margin = (gap, None)
    return SparseLinear(
        dim,
        arms,
        sparsity=sparsity,
        contexts=Independent() if contexts is None else contexts,
        noise_scale=noise_scale,
        seed=seed,
        _margin=margin,
        **options,
    )


def hard_instance(
    horizon: int,
    *,
    dim: int = 400,
    sparsity: int = 5,
    epsilon: float | None = None,
    delta: float = 0.0,
    noise_scale: float = 1.0,
    packing_constant: float = 1.0,
    seed: int = 0,
) -> SparseLinear:
    """Return one of the two-armed instances of the lower bound's proof (Theorem "Lower Bound", step 1).

    Two arms with contexts ``N(0, I/ln d)`` and s* coefficients of size r at random positions with random
    signs: so small that T rounds hardly suffice to find them. The paper takes beta from a packing of such
    vectors; a uniformly random one differs from most others in most positions just as well.

    Parameters
    ----------
    horizon : int
        T.
    dim, sparsity : int
        d and s*, with s* < d and d at least 3.
    epsilon : float, optional
        None gives the instance that is hard without privacy.
    delta : float
        0 gives the pure instance; above 0 needs epsilon.
    noise_scale : float
        sigma of the normal reward noise.
    packing_constant : float
        c in ``ln M >= c s* ln(d/s*)``; the paper leaves it open.
    seed : int

    Returns
    -------
    SparseLinear
        Its coefficients have the size :func:`fliphat.environments.hard.hard_coefficient`.

    Examples
    --------
    >>> env = hard_instance(10_000, dim=400, sparsity=5)
    >>> env.arms, abs(env.truth[1]).round(4)
    (2, array([0.0074, 0.0074, 0.0074, 0.0074, 0.0074]))
    """
    size = hard_coefficient(
        horizon=horizon,
        dim=dim,
        sparsity=sparsity,
        epsilon=epsilon,
        delta=delta,
        noise_scale=noise_scale,
        packing_constant=packing_constant,
    )
    return SparseLinear(
        dim,
        2,
        coefficients=sparse_truth(dim, sparsity, positions="random", low=size, high=size, seed=seed),
        contexts=Independent(),
        context_scale=1 / math.sqrt(math.log(dim)),
        noise_scale=noise_scale,
        seed=seed,
    )
