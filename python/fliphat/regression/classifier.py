"""Private sparse logistic regression for two classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fliphat.fit.iht import constants as defaults
from fliphat.fit.options import Iht, Pursuit
from fliphat.privacy.ledger import Ledger
from fliphat.regression import data
from fliphat.regression.dask import arrays
from fliphat.regression.linear_estimator import LinearEstimator, refuse_unknown
from fliphat.regression.sklearn_compat import ClassifierMixin

__all__ = ["PrivateSparseClassifier"]


class PrivateSparseClassifier(ClassifierMixin, LinearEstimator):
    """Sparse logistic regression for two classes, with differential privacy for each row.

    The fit is pursuit over a public split of the rows, or noisy iterative hard thresholding
    (:func:`fliphat.kernels.niht`) over all of them, on the logistic loss: see `solver`. As in
    :class:`PrivateSparseRegressor`, nothing public is estimated from the rows, **every fit is a release**
    and the costs of several add up, ``guarantee_`` and ``noise_`` are frozen records of one fit, and
    `predict`, `predict_proba` and `score` are as private as the rows they are given.

    Parameters
    ----------
    epsilon, delta, sparsity, fit_intercept, feature_scale, rows_per_user, random_state, ledger
        As in :class:`PrivateSparseRegressor`. Without an intercept a row of zeros is a toss-up.
    classes : pair of labels, optional
        The two labels, in any order. By default they are read from y, which makes the set of labels public:
        it is not covered by the guarantee, and a fit on rows of one class is refused. Give them whenever one
        row could decide whether a class appears at all.
    solver : Pursuit or Iht, optional
        As in :class:`PrivateSparseRegressor`. By default pursuit where there are more columns than `sparsity`
        and rows enough (``100 * sparsity``, and about ``50 * sparsity`` over the budget of one Gaussian
        release), and hard thresholding otherwise, which has the better classes then. With more rows hard
        thresholding is still better where columns are independent or far more than `sparsity` of them
        matter, by .01 to .03 as measured; where they are correlated pursuit is, by .02 to .1, and nothing
        public tells these tables apart. Its defaults here: ``gradient_clip`` ``0.65 * feature_scale``,
        ``l1_radius`` ``4 * sqrt(sparsity) / feature_scale``, 1 to 8 ``iterations``, ``step_size`` 4, or 2
        where noise dominates; labels have no ``reward_clip``.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        Sorted, as scikit-learn's are; scores and coefficients speak for the second.
    coef_ : ndarray of float64, shape (1, n_features)
        At most `sparsity` are not zero.
    intercept_ : ndarray of float64, shape (1,)
    guarantee_ : fliphat.privacy.guarantee.Guarantee
        What this fit protects, how strongly, and whether it is proven.
    noise_ : tuple of PricedRelease, or NoiseScales
        The noise it was fitted with: of each part, or of hard thresholding.
    n_iter_ : int
        Parts, or iterations.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had column names, all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import PrivateSparseClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20_000, 50))
    >>> y = np.where(X[:, 3] - X[:, 7] + 0.3 * rng.logistic(size=20_000) > 0, "ill", "well")
    >>> model = PrivateSparseClassifier(1.0, 1e-6, sparsity=2, classes=("ill", "well")).fit(X, y)
    >>> np.flatnonzero(model.coef_), model.guarantee_.proven
    (array([3, 7]), True)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    _loss = "logistic"

    classes: Any
    classes_: npt.NDArray[Any]
    intercept_: npt.NDArray[np.float64]

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        sparsity: int | None = None,
        *,
        classes: Any = None,
        fit_intercept: bool = False,
        feature_scale: float = 1.0,
        rows_per_user: int = 1,
        random_state: int | None = None,
        ledger: Ledger | None = None,
        solver: Pursuit | Iht | None = None,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any, **refused: Any) -> Self:
        """Fit privately: one release.

        Parameters
        ----------
        X : array_like, SciPy sparse or dask array, shape (n_samples, n_features)
            As in :meth:`PrivateSparseRegressor.fit`.
        y : array_like or dask array, shape (n_samples,)
            Two labels: integers, booleans or strings.

        Returns
        -------
        PrivateSparseClassifier
            Itself.
        """
        refuse_unknown("fit", refused)
        intercept, self.classes_ = self._fit(X, y)
        self.coef_ = self.coef_.reshape(1, -1)
        self.intercept_ = np.array([intercept])
        return self

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the log-odds of the second class for each row.

        Parameters
        ----------
        X : array_like or SciPy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples,)
        """
        return self._scores(X) + float(self.intercept_[0])

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probability of each class for each row.

        Parameters
        ----------
        X : array_like or SciPy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        log_odds = self.decision_function(X)
        # Both from the log-odds: one minus a probability would lose the small one's digits.
        against = np.column_stack([log_odds, -log_odds])
        probabilities: npt.NDArray[np.float64] = np.exp(-np.logaddexp(0.0, against))
        return probabilities

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array_like or SciPy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples,)
        """
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(np.intp)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # With a privacy budget, the small data sets of scikit-learn's checks are mostly noise.
        tags.classifier_tags.poor_score = True
        return tags

    def _target(self, y: Any, rows: Any) -> tuple[Any, npt.NDArray[Any]]:
        if isinstance(rows, arrays.DaskRows):
            return arrays.labels_and_classes(y, rows, self.classes)
        labels = data.one_dimensional(y, rows.shape[0], stacklevel=5)
        classes = data.two_classes(labels, self.classes)
        return data.encode(labels, classes), classes

    def _scales(self) -> tuple[float, float]:
        return defaults.LOG_ODDS_SCALE, defaults.RESIDUAL_SCALE
