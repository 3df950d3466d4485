"""Kernels of this package's own fits: not public, and they may change at any time."""

from fliphat.kernels._ball import arm_sums as arm_sums
from fliphat.kernels._ball import ball_gradient as ball_gradient
from fliphat.kernels._columns import pick_columns as pick_columns
from fliphat.kernels._kalman import KalmanRule as KalmanRule
from fliphat.kernels._kalman import KalmanStep as KalmanStep
from fliphat.kernels._kalman import kalman_step as kalman_step
from fliphat.kernels._relative import relative_gradient as relative_gradient
from fliphat.kernels._relative import row_numbers as row_numbers
from fliphat.kernels._relative import settled_sums as settled_sums
from fliphat.kernels._relative import shifted_gradient as shifted_gradient
from fliphat.kernels._totals import TotalPart as TotalPart
from fliphat.kernels._totals import release_totals as release_totals
