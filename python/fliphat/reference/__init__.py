"""NumPy twins of the kernels: what the kernels are tested against, and raced against in `benches`.

Each kernel has a plain twin of the same name, written as a good NumPy programmer would write it. Where NumPy
can do clearly better with more care, a second twin (`*_blocked`, `project_l1_michelot`) does.
Twins of noise (`gaussian_release`, `laplace`, `laplace_mechanism`, `peel`, `pick_columns`, `episode`)
are INSECURE: float noise from a seeded generator.
"""

from fliphat.reference._ball import arm_sums as arm_sums
from fliphat.reference._ball import ball_gradient as ball_gradient
from fliphat.reference._ball import second_moments
from fliphat.reference._columns import pick_columns as pick_columns
from fliphat.reference._episode import episode as episode
from fliphat.reference._gaussian import gaussian_release
from fliphat.reference._gradient import clipped_gradient, clipped_gradient_blocked
from fliphat.reference._kalman import KalmanRule as KalmanRule
from fliphat.reference._kalman import KalmanStep as KalmanStep
from fliphat.reference._kalman import kalman_step as kalman_step
from fliphat.reference._laplace import laplace, laplace_mechanism
from fliphat.reference._lasso import lasso
from fliphat.reference._niht import iterative_hard_thresholding, niht
from fliphat.reference._peel import peel
from fliphat.reference._price import price
from fliphat.reference._project import project_l1, project_l1_michelot
from fliphat.reference._relative import gather_columns as gather_columns
from fliphat.reference._relative import relative_gradient as relative_gradient
from fliphat.reference._relative import row_numbers as row_numbers
from fliphat.reference._relative import settled_sums as settled_sums
from fliphat.reference._relative import shifted_gradient as shifted_gradient
from fliphat.reference._select import score, select_arms
from fliphat.reference._sigmoid import sigmoid
from fliphat.reference._totals import TotalPart as TotalPart
from fliphat.reference._totals import release_totals as release_totals

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
