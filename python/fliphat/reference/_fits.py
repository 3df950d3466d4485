"""Twins of the kernels of this package's own fits: not public, and they may change at any time.

Those of noise (`pick_columns`, `episode`) are INSECURE: float noise from a seeded generator.
"""

from fliphat.reference._ball import arm_sums as arm_sums
from fliphat.reference._ball import ball_gradient as ball_gradient
from fliphat.reference._columns import pick_columns as pick_columns
from fliphat.reference._episode import episode as episode
from fliphat.reference._kalman import KalmanRule as KalmanRule
from fliphat.reference._kalman import KalmanStep as KalmanStep
from fliphat.reference._kalman import kalman_step as kalman_step
from fliphat.reference._relative import gather_columns as gather_columns
from fliphat.reference._relative import relative_gradient as relative_gradient
from fliphat.reference._relative import row_numbers as row_numbers
from fliphat.reference._relative import settled_sums as settled_sums
from fliphat.reference._relative import shifted_gradient as shifted_gradient
from fliphat.reference._totals import TotalPart as TotalPart
from fliphat.reference._totals import release_totals as release_totals
