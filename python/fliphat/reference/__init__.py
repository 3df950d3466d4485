"""NumPy twins of the kernels: what the kernels are tested against, and raced against in `benches`.

Each kernel has a plain twin of the same name, written as a good NumPy programmer would write it. Where NumPy
can do clearly better with more care, a second twin (`*_blocked`, `project_l1_michelot`) does.
Twins of noise (`gaussian_release`, `laplace`, `laplace_mechanism`, `peel`, `pick_columns`, `pursuit_release`)
are INSECURE: float noise from a seeded generator.
"""

from fliphat.reference._ball import ball_gradient, clipped_size, second_moments
from fliphat.reference._columns import pick_columns
from fliphat.reference._gaussian import gaussian_release
from fliphat.reference._gradient import clipped_gradient, clipped_gradient_blocked
from fliphat.reference._kalman import KalmanRule, KalmanStep, kalman_step
from fliphat.reference._laplace import laplace, laplace_mechanism
from fliphat.reference._lasso import lasso
from fliphat.reference._niht import iterative_hard_thresholding, niht
from fliphat.reference._peel import peel
from fliphat.reference._price import price
from fliphat.reference._project import project_l1, project_l1_michelot
from fliphat.reference._pursuit import pursuit_release
from fliphat.reference._relative import (
    gather_columns,
    relative_gradient,
    row_numbers,
    settled_sums,
    shifted_gradient,
    whitened_gradient,
)
from fliphat.reference._select import score, select_arms
from fliphat.reference._sigmoid import sigmoid

__all__ = [
    "KalmanRule",
    "KalmanStep",
    "ball_gradient",
    "clipped_gradient",
    "clipped_gradient_blocked",
    "clipped_size",
    "gather_columns",
    "gaussian_release",
    "iterative_hard_thresholding",
    "kalman_step",
    "laplace",
    "laplace_mechanism",
    "lasso",
    "niht",
    "peel",
    "pick_columns",
    "price",
    "project_l1",
    "project_l1_michelot",
    "pursuit_release",
    "relative_gradient",
    "row_numbers",
    "score",
    "second_moments",
    "select_arms",
    "settled_sums",
    "shifted_gradient",
    "sigmoid",
    "whitened_gradient",
]
