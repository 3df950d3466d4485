"""What the noise costs, what it guarantees, and an audit that can fail."""

from fliphat.privacy.accounting import delta_from_rho, epsilon_from_rho, rho_from_epsilon
from fliphat.privacy.calibration import calibrate
from fliphat.privacy.guarantee import Guarantee, PrivacyWarning, state_guarantee
from fliphat.privacy.ledger import BudgetError, Ledger
from fliphat.privacy.scales import NoiseScales

__all__ = [
    "BudgetError",
    "Guarantee",
    "Ledger",
    "NoiseScales",
    "PrivacyWarning",
    "calibrate",
    "delta_from_rho",
    "epsilon_from_rho",
    "rho_from_epsilon",
    "state_guarantee",
]
