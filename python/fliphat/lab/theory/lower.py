"""What no private policy can beat: Theorem "Lower Bound" and the instances of its proof."""

from __future__ import annotations

import math
from typing import NamedTuple

from fliphat import arguments
from fliphat.environments.hardness import checked_delta, checked_privacy, hard_problem


class LowerBound(NamedTuple):
    """The two terms of the lower bound on the minimax regret; the bound is the larger one.

    Attributes
    ----------
    private, non_private : float
    """

    private: float
    non_private: float

    @property
    def total(self) -> float:
        """The bound: the larger of the two terms."""
        return max(self)


def regret_lower_bound(
    *,
    horizon: int,
    dim: int,
    sparsity: int,
    epsilon: float,
    delta: float = 0.0,
    noise_scale: float = 1.0,
    constant: float = 1.0,
) -> LowerBound:
    """Return the lower bound on the minimax regret under (epsilon, delta)-joint-DP.

    With ``L = ln(d/s*)``: the non-private term is ``sqrt(s* T L)``; the private one is
    ``s* L^(3/2) / epsilon`` for delta = 0 and ``L sqrt(s* ln(1/delta)) / epsilon`` for delta > 0 (Theorem
    "Lower Bound").

    Notes
    -----
    The term for delta > 0 is the paper's claim; its proof has a gap (:func:`gap_in_proof`).

    Examples
    --------
    >>> bound = regret_lower_bound(horizon=20_000, dim=400, sparsity=5, epsilon=0.01)
    >>> round(bound.private), round(bound.non_private), round(bound.total)
    (4587, 662, 4587)
    """
    rounds, scale_log = hard_problem(horizon, dim, sparsity)
    epsilon, delta = checked_privacy(epsilon, delta)
    factor = arguments.positive("noise_scale", noise_scale) * arguments.positive("constant", constant)
    if delta == 0:
        private = sparsity * scale_log**1.5 / epsilon
    else:
        private = scale_log * math.sqrt(sparsity * -math.log(delta)) / epsilon
    return LowerBound(factor * private, factor * math.sqrt(sparsity * rounds * scale_log))


def gap_in_proof(*, epsilon: float, delta: float = 0.0) -> str | None:
    """Return why the private term of the lower bound is not proven as printed, or None where it is.

    The half for delta = 0 stands. The half for delta > 0 does not, for any epsilon that its theorem is about:
    the paragraph "Choice of rho" needs ``epsilon^2 >= ln(1/delta)``, the opposite of what the theorem assumes
    (below that, the root it bounds does not go to 0 with epsilon); and the lemma by which it passes from
    (epsilon, delta)-DP to zCDP asks for (epsilon(delta), delta)-DP at all delta at once, not at one pair.

    Examples
    --------
    >>> gap_in_proof(epsilon=1.0) is None
    True
    >>> print(gap_in_proof(epsilon=1.0, delta=0.01))
    the choice of rho needs epsilon^2 = 1 to be at least ln(1/delta) = 4.605; the theorem assumes it is below
    """
    epsilon, delta = checked_privacy(epsilon, delta)
    if delta == 0:
        return None
    return (
        f"the choice of rho needs epsilon^2 = {epsilon**2:.4g} to be at least ln(1/delta) = "
        f"{-math.log(delta):.4g}; the theorem assumes it is below"
    )


def lower_bound_threshold(*, horizon: int, dim: int, sparsity: int, delta: float = 0.0) -> float:
    """Return the epsilon below which the private term of the lower bound is the larger one.

    ``sqrt(s*) ln(d/s*) / sqrt(T)`` for delta = 0, ``sqrt(ln(d/s*) ln(1/delta) / T)`` for delta > 0
    (implication (ii) of Theorem "Lower Bound"); constants that the paper leaves open are taken as equal.

    Examples
    --------
    >>> round(lower_bound_threshold(horizon=20_000, dim=400, sparsity=5, delta=0.01), 4)
    0.0318
    """
    rounds, scale_log = hard_problem(horizon, dim, sparsity)
    delta = checked_delta(delta)
    if delta == 0:
        return math.sqrt(sparsity / rounds) * scale_log
    return math.sqrt(scale_log * -math.log(delta) / rounds)
