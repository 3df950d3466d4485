"""Private sparse regression and classification, with scikit-learn's conventions.

Each `fit` is one release under its own :class:`fliphat.privacy.guarantee.Guarantee`, in ``guarantee_``. Where
scikit-learn is installed the estimators inherit from its base classes; it is not needed.
"""

from fliphat.regression.classifier import PrivateSparseClassifier
from fliphat.regression.regressor import PrivateSparseRegressor

__all__ = ["PrivateSparseClassifier", "PrivateSparseRegressor"]
