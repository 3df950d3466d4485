"""The paper's bounds, tuning and conditions as functions, with what it leaves open as arguments.

Symbols: ``horizon`` T, ``dim`` d, ``arms`` K, ``sparsity`` s (the tuning parameter) or s* where only the
truth matters, ``true_sparsity`` s*, ``context_bound`` x_max, ``l1_radius`` b_max, ``noise_scale`` sigma,
``width`` Delta_*, ``alpha`` the margin exponent, ``upper_eigenvalue`` kappa-bar, ``lower_eigenvalue``
kappa-underbar.

Every bound is of the form "up to a constant": the numbers here are comparable with each other, and say how
regret scales, not how large it is. That constant, which the paper leaves open, is the argument ``constant``;
it hides sigma, K (``K^2 log K`` in the proof) and x_max where they are no arguments. Numbers for which a
theorem says nothing are refused: delta of an upper bound is above 0 and below 1/e, of a lower bound 0 or such
that ``epsilon^2 < ln(1/delta)``. Logarithms are natural unless said otherwise.

References
----------
"FLIPHAT: Joint Differential Privacy for High Dimensional Sparse Linear Bandits": Theorem "Lower Bound",
Proposition "Estimation Control for Episode l", Theorem "Regret bounds for FLIPHAT", and the appendix.
"""

from fliphat.lab.theory.bounds import (
    LowerBound,
    UpperBound,
    gap_in_proof,
    lower_bound_threshold,
    privacy_threshold,
    regret_lower_bound,
    regret_upper_bound,
)
from fliphat.lab.theory.eigenvalues import (
    ar1_sparse_eigenvalues,
    equicorrelated_sparse_eigenvalues,
    sparse_eigenvalues,
)
from fliphat.lab.theory.tuning import EstimationError, Tuning, arm_eigenvalues, estimation_error, tuning

__all__ = [
    "EstimationError",
    "LowerBound",
    "Tuning",
    "UpperBound",
    "ar1_sparse_eigenvalues",
    "arm_eigenvalues",
    "equicorrelated_sparse_eigenvalues",
    "estimation_error",
    "gap_in_proof",
    "lower_bound_threshold",
    "privacy_threshold",
    "regret_lower_bound",
    "regret_upper_bound",
    "sparse_eigenvalues",
    "tuning",
]
