"""Private sparse logistic regression for two classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fliphat.fit.iht import constants as defaults
from fliphat.fit.iht.plan import IhtPlan
from fliphat.fit.parts import PartsFit
from fliphat.privacy.ledger import Ledger
from fliphat.regression import data
from fliphat.regression.base import LinearEstimator, refuse_unknown
from fliphat.regression.dask import arrays
from fliphat.regression.labels import encode, two_classes
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
    epsilon : float
        Above 0.
    delta : float
        In ``[0, 1)``; well below one over the number of rows. 0 asks for pure differential privacy.
    sparsity : int, optional
        Coefficients kept at most; hard thresholding counts the intercept as one. By default 10, or all if
        there are fewer. If it is the number of columns, pursuit picks nothing and measures all of them.
    classes : pair of labels, optional
        The two labels, in any order. By default they are read from y, which makes the set of labels public:
        it is not covered by the guarantee, and a fit on rows of one class is refused. Give them whenever one
        row could decide whether a class appears at all.
    fit_intercept : bool
        Fit an intercept. For pursuit it is always there and never has to be picked. For hard thresholding it
        is one more coordinate: a column that holds `feature_scale`, clipped and picked like any other, which
        costs a copy of X. Without it, a row of zeros is a toss-up.
    feature_scale : float
        Typical size of a feature. Public: declare it, never measure it on these rows. A wrong one costs
        accuracy, not privacy.
    gradient_clip : float, optional
        Bound on each coordinate of one row's gradient; by default ``0.65 * feature_scale``.
    l1_radius : float, optional
        Bound on the sum of absolute coefficients (the intercept counts divided by `feature_scale`); by
        default ``4 * sqrt(sparsity) / feature_scale``.
    iterations : int, optional
        Steps, always all of them. By default from the shape of X and the noise, between 1 and 8.
    step_size : float, optional
        In units of ``1 / feature_scale**2``; by default 4, or 2 where noise dominates.
    mechanism : {"exponential", "laplace"}, optional
        How coordinates are picked; by default "exponential". See
        :func:`fliphat.privacy.calibration.calibrate`.
    value_noise : {"rounded_gaussian", "gaussian", "laplace"}, optional
        By default "rounded_gaussian", or "laplace" when ``delta = 0``. "gaussian" is the discrete Gaussian.
    split : float, optional
        Share of the budget spent on picks.
    rows_per_user : int
        Rows of one person that are protected together. That nobody has more is your promise.
    start : array_like, optional
        Public start, such as coefficients released earlier from other rows: one value a feature, followed by
        the intercept if one is fitted.
    random_state : int, optional
        Seed of the noise, **for simulation only**: then nothing is proven, and ``guarantee_`` says so.
    ledger : fliphat.privacy.Ledger, optional
        One account for all fits on the same people, such as those of a cross-validation: a fit is written
        down there before its rows are read, refused if it passes the ledger's budget, and ``guarantee_`` says
        what all fits together cost. Scores on private rows are not covered. A fit in parts is charged in zCDP
        there, and needs more noise for it.
    solver : {"auto", "pursuit", "iht"}
        "pursuit" deals the rows out to a few parts by their position, uses each row once, and spends the
        whole budget on every part; what earlier parts released plans the later ones. It takes correlated
        columns and corrects wrong scales. "iht" is noisy iterative hard thresholding over all rows. "auto" is
        pursuit where there are more columns than `sparsity` and rows enough (``100 * sparsity``, and about
        ``50 * sparsity`` over the budget of one Gaussian release), and hard thresholding otherwise, which has
        the better classes then. With more rows hard thresholding is still better where columns are
        independent or far more than `sparsity` of them matter, by .01 to .03 as measured; where they are
        correlated pursuit is, by .02 to .1, and nothing public tells these tables apart. Hard thresholding is
        also taken if an argument is given that only hard thresholding has: `gradient_clip`,
        `l1_radius`, `iterations`, `step_size`, `split`, `start`, ``mechanism="laplace"``, another
        `value_noise` or ``delta=0``. See Notes of :class:`PrivateSparseRegressor`.

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
        gradient_clip: float | None = None,
        l1_radius: float | None = None,
        iterations: int | None = None,
        step_size: float | None = None,
        mechanism: str | None = None,
        value_noise: str | None = None,
        split: float | None = None,
        rows_per_user: int = 1,
        start: npt.ArrayLike | None = None,
        random_state: int | None = None,
        ledger: Ledger | None = None,
        solver: str = "auto",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.sparsity = sparsity
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.feature_scale = feature_scale
        self.gradient_clip = gradient_clip
        self.l1_radius = l1_radius
        self.iterations = iterations
        self.step_size = step_size
        self.mechanism = mechanism
        self.value_noise = value_noise
        self.split = split
        self.rows_per_user = rows_per_user
        self.start = start
        self.random_state = random_state
        self.ledger = ledger
        self.solver = solver

    def fit(self, X: Any, y: Any, **refused: Any) -> Self:
        """Fit privately: one release.

        Parameters
        ----------
        X : array_like or SciPy sparse, shape (n_samples, n_features)
            float32 and float64 in C order, or canonical CSR, are copied a part at a time by pursuit, and by
            hard thresholding only if an intercept is fitted; anything else is converted. Or
            a dask array; see Notes of :class:`PrivateSparseRegressor`.
        y : array_like or dask array, shape (n_samples,)
            Two labels: integers, booleans or strings.

        Returns
        -------
        PrivateSparseClassifier
            Itself.
        """
        refuse_unknown("fit", refused)
        rows: Any
        target: Any
        if arrays.is_dask("X", X):
            rows = arrays.as_rows(X)
            target, classes = arrays.labels_and_classes(y, rows, self.classes)
        else:
            rows = data.as_rows(X)
            labels = data.one_dimensional(y, rows.shape[0], stacklevel=3)
            classes = two_classes(labels, self.classes)
            target = encode(labels, classes)
        plan = self._plan(*rows.shape)
        intercept = self._release(X, rows, target, plan)
        self.coef_ = self.coef_.reshape(1, -1)
        self.intercept_ = np.array([intercept])
        self.classes_ = classes
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

    def _plan(self, rows: int, features: int) -> IhtPlan | PartsFit:
        public = self._public_numbers(rows, features, score_scale=defaults.LOG_ODDS_SCALE, target_clip=None)
        return self._plan_fit(public, self._only_iht(), residual_scale=defaults.RESIDUAL_SCALE)
