"""NumPy twins of the kernels: what the kernels are tested against, and raced against in `benches`.

Each kernel has a plain twin of the same name, written as a good NumPy programmer would write it. Where NumPy
can do clearly better with more care, a second twin (`*_blocked`, `project_l1_michelot`) does.
Twins of noise (`gaussian_release`, `laplace`, `laplace_mechanism`, `peel`) are
INSECURE: float noise from a seeded generator.
"""

from fliphat.reference._ball import second_moments
from fliphat.reference._gaussian import gaussian_release
from fliphat.reference._gradient import clipped_gradient, clipped_gradient_blocked
from fliphat.reference._laplace import laplace, laplace_mechanism
from fliphat.reference._lasso import lasso
from fliphat.reference._niht import iterative_hard_thresholding, niht
from fliphat.reference._peel import peel
from fliphat.reference._price import price
from fliphat.reference._project import project_l1, project_l1_michelot
from fliphat.reference._select import score, select_arms
from fliphat.reference._sigmoid import sigmoid

__all__ = [
    "clipped_gradient",
    "clipped_gradient_blocked",
    "gaussian_release",
    "iterative_hard_thresholding",
    "laplace",
    "laplace_mechanism",
    "lasso",
    "niht",
    "peel",
    "price",
    "project_l1",
    "project_l1_michelot",
    "score",
    "second_moments",
    "select_arms",
    "sigmoid",
]
