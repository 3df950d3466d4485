"""What a policy would have earned, from rounds that another policy logged.

A log holds, for each round, the arm that was shown, the probability with which it was shown, and the reward.
Four estimates of the mean reward of another policy, each with an interval:

==========================  ============================================  ===============================
function                    what it needs                                 bias
==========================  ============================================  ===============================
:func:`replay`              a learning policy, uniformly logged arms      none for the rounds that match
:func:`inverse_propensity`  probabilities of the logged arms              none
:func:`self_normalised`     the same                                      of order 1/n, smaller variance
:func:`doubly_robust`       the same, and contexts or predicted rewards   none, smallest variance
==========================  ============================================  ===============================

Nothing here is private: a log, and whatever is computed from it, belongs to the operator.

References
----------
L. Li, W. Chu, J. Langford, X. Wang (2011). Unbiased Offline Evaluation of Contextual-bandit-based News
Article Recommendation Algorithms. WSDM, arXiv:1003.5956.
M. Dudik, J. Langford, L. Li (2011). Doubly Robust Policy Evaluation and Learning. ICML, arXiv:1103.4601.
A. Swaminathan, T. Joachims (2015). The Self-Normalized Estimator for Counterfactual Learning. NeurIPS 28.
"""

from fliphat.evaluation.estimators import Value, doubly_robust, inverse_propensity, self_normalised
from fliphat.evaluation.log import Log
from fliphat.evaluation.replay import Replayed, replay

__all__ = [
    "Log",
    "Replayed",
    "Value",
    "doubly_robust",
    "inverse_propensity",
    "replay",
    "self_normalised",
]
