"""Fast kernels, documented and validated; each has a NumPy twin of the same name in `fliphat.reference`.

Kernels release the interpreter while they work, and give the same bits for any number of threads, any
instruction set and any order of rows.
"""

from fliphat.kernels._ball import ball_gradient, clipped_size, second_moments
from fliphat.kernels._columns import pick_columns
from fliphat.kernels._gaussian import gaussian_release
from fliphat.kernels._gradient import clipped_gradient
from fliphat.kernels._kalman import KalmanRule, KalmanStep, kalman_step
from fliphat.kernels._laplace import laplace, laplace_mechanism
from fliphat.kernels._lasso import lasso
from fliphat.kernels._niht import niht
from fliphat.kernels._peel import peel
from fliphat.kernels._price import price
from fliphat.kernels._project import project_l1
from fliphat.kernels._pursuit import pursuit_release
from fliphat.kernels._relative import (
    gather_columns,
    relative_gradient,
    row_numbers,
    settled_sums,
    shifted_gradient,
    whitened_gradient,
)
from fliphat.kernels._select import score, select_arms

__all__ = [
    "KalmanRule",
    "KalmanStep",
    "ball_gradient",
    "clipped_gradient",
    "clipped_size",
    "gather_columns",
    "gaussian_release",
    "kalman_step",
    "laplace",
    "laplace_mechanism",
    "lasso",
    "niht",
    "peel",
    "pick_columns",
    "price",
    "project_l1",
    "pursuit_release",
    "relative_gradient",
    "row_numbers",
    "score",
    "second_moments",
    "select_arms",
    "settled_sums",
    "shifted_gradient",
    "whitened_gradient",
]
