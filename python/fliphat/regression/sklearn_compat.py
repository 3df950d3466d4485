"""scikit-learn's base classes where it is installed, and small stand-ins where it is not.

The stand-ins have what the estimators promise without scikit-learn: `get_params`, `set_params`, `repr` and
`score`. This module is the only one that imports scikit-learn, and importing `fliphat` does not import it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

__all__ = ["BaseEstimator", "ClassifierMixin", "DataConversionWarning", "NotFittedError", "RegressorMixin"]


class PlainEstimator:
    """Parameters are the arguments of ``__init__``, stored under their own names."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        names = list(inspect.signature(type(self)).parameters)
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; what was already fitted does not change."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ValueError(
                    f"{name!r} must be a parameter of {type(self).__name__}: {', '.join(sorted(known))}"
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name].default and repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        raise AttributeError("tags are scikit-learn's, which was not installed when fliphat was imported")

    def __sklearn_clone__(self) -> Any:
        return type(self)(**self.get_params())


class PlainRegressor:
    """Scores by the share of variance explained."""

    if TYPE_CHECKING:

        def predict(self, X: Any) -> npt.NDArray[np.float64]: ...

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of the predictions."""
        truth = np.asarray(y, dtype=np.float64)
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        missed = np.sum(weight * (truth - self.predict(X)) ** 2)
        spread = np.sum(weight * (truth - np.average(truth, weights=weight)) ** 2)
        if spread == 0:
            return float(missed == 0)
        return float(1 - missed / spread)


class PlainClassifier:
    """Scores by the share of rows classified correctly."""

    if TYPE_CHECKING:

        def predict(self, X: Any) -> npt.NDArray[Any]: ...

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of the predictions."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))


class PlainNotFittedError(ValueError, AttributeError):
    """The estimator must be fitted first."""


if TYPE_CHECKING:
    BaseEstimator = PlainEstimator
    RegressorMixin = PlainRegressor
    ClassifierMixin = PlainClassifier
    NotFittedError = PlainNotFittedError
    DataConversionWarning = UserWarning
else:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
        from sklearn.exceptions import DataConversionWarning, NotFittedError
    except ImportError:
        BaseEstimator, RegressorMixin, ClassifierMixin = PlainEstimator, PlainRegressor, PlainClassifier
        NotFittedError, DataConversionWarning = PlainNotFittedError, UserWarning
