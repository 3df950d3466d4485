"""Fast kernels, documented and validated; each has a NumPy twin of the same name in `fliphat.reference`.

Kernels release the interpreter while they work, and give the same bits for any number of threads, any
instruction set and any order of rows. Those that add noise take floats in plain units, with a sensitivity and
an epsilon, or integers with scales of noise.

What is in ``__all__`` is public. The other names are parts of this package's fits and may change at any time.
"""

from fliphat.kernels._ball import arm_sums as arm_sums
from fliphat.kernels._ball import ball_gradient as ball_gradient
from fliphat.kernels._ball import second_moments
from fliphat.kernels._columns import pick_columns as pick_columns
from fliphat.kernels._gaussian import gaussian_release
from fliphat.kernels._gradient import clipped_gradient
from fliphat.kernels._kalman import KalmanRule as KalmanRule
from fliphat.kernels._kalman import KalmanStep as KalmanStep
from fliphat.kernels._kalman import kalman_step as kalman_step
from fliphat.kernels._laplace import laplace, laplace_mechanism
from fliphat.kernels._lasso import lasso
from fliphat.kernels._niht import niht
from fliphat.kernels._peel import peel
from fliphat.kernels._price import price
from fliphat.kernels._project import project_l1
from fliphat.kernels._relative import gather_columns as gather_columns
from fliphat.kernels._relative import relative_gradient as relative_gradient
from fliphat.kernels._relative import row_numbers as row_numbers
from fliphat.kernels._relative import settled_sums as settled_sums
from fliphat.kernels._relative import shifted_gradient as shifted_gradient
from fliphat.kernels._select import score, select_arms
from fliphat.kernels._totals import TotalPart as TotalPart
from fliphat.kernels._totals import release_totals as release_totals

__all__ = [
    "clipped_gradient",
    "gaussian_release",
    "laplace",
    "laplace_mechanism",
    "lasso",
    "niht",
    "peel",
    "price",
    "project_l1",
    "score",
    "second_moments",
    "select_arms",
]
