"""Private sparse linear regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.fit.options import Iht, Pursuit
from fliphat.privacy.ledger import Ledger
from fliphat.regression import data
from fliphat.regression.dask import arrays
from fliphat.regression.linear_estimator import LARGEST_SCALE, SMALLEST_SCALE, LinearEstimator, refuse_unknown
from fliphat.regression.sklearn_compat import RegressorMixin

__all__ = ["PrivateSparseRegressor"]


class PrivateSparseRegressor(RegressorMixin, LinearEstimator):
    """Sparse linear regression with differential privacy for each row.

    The fit is pursuit over a public split of the rows, or noisy iterative hard thresholding
    (:func:`fliphat.kernels.niht`) over all of them: see `solver`. Both sum clipped gradients exactly, pick a
    few columns privately and add noise to their values. Nothing public is read off the rows: scales, clips
    and lengths are declared, or follow from declared and from released numbers and the shape of X.

    **Every fit is a release.** ``guarantee_`` is about one fit. Fitting again on the same rows, also in a
    grid search, in cross-validation or after `set_params`, is another release with its own guarantee, and
    their costs add up, which `ledger` does. ``guarantee_`` and ``noise_`` are
    frozen records of what was run: changing parameters later does not change them. `predict` and `score`
    read the rows they are given without any noise: what they return is as private as those rows.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        In ``[0, 1)``; well below one over the number of rows. 0 asks for pure differential privacy.
    sparsity : int, optional
        Coefficients kept at most; hard thresholding counts the intercept as one. By default 10, or all if
        there are fewer. If it is the number of columns, pursuit picks nothing and measures all of them.
    fit_intercept : bool
        Fit an intercept. For pursuit it is always there and never has to be picked. For hard thresholding it
        is one more coordinate: a column that holds `feature_scale`, clipped and picked like any other, which
        costs a copy of X. Without it, centre targets by a public number.
    feature_scale, target_scale : float
        Typical size of a feature and of a target. Public: declare them, never measure them on these rows (a
        ``StandardScaler`` fitted on them does). Wrong ones cost accuracy, not privacy; pursuit corrects them,
        and warns where what it released is many times `target_scale`.
    rows_per_user : int
        Rows of one person that are protected together. That nobody has more is your promise.
    random_state : int, optional
        Seed of the noise, **for simulation only**: then nothing is proven, and ``guarantee_`` says so. By
        default noise comes from the operating system.
    ledger : fliphat.privacy.Ledger, optional
        One account for all fits on the same people, such as those of a cross-validation: a fit is written
        down there before its rows are read, refused if it passes the ledger's budget, and ``guarantee_`` says
        what all fits together cost. Scores on private rows are not covered. A fit in parts is charged in zCDP
        there, and needs more noise for it.
    solver : Pursuit or Iht, optional
        :class:`fliphat.Pursuit` deals the rows out to a few parts by their position, uses each row once, and
        spends the whole budget on every part; what earlier parts released plans the later ones. It takes
        correlated columns and corrects wrong scales. :class:`fliphat.Iht` is noisy iterative hard
        thresholding over all rows, with its own options: ``gradient_clip`` (by default
        ``1.3 * feature_scale * target_scale``), ``reward_clip`` (of targets), ``l1_radius`` (the intercept
        counts divided by `feature_scale`; by default ``2 * sqrt(sparsity) * target_scale / feature_scale``),
        ``iterations`` (1 to 16 by default), ``step_size`` (in units of ``1 / feature_scale**2``),
        ``mechanism`` and ``start`` (public; one value a feature, then the intercept if one is fitted). By
        default pursuit, or hard thresholding when ``delta = 0``. See Notes.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        At most `sparsity` are not zero.
    intercept_ : float
        0 without `fit_intercept`.
    guarantee_ : fliphat.privacy.guarantee.Guarantee
        What this fit protects, how strongly, and whether it is proven.
    noise_ : tuple of PricedRelease, or NoiseScales
        The noise it was fitted with: of each part, or of hard thresholding.
    n_iter_ : int
        Parts, or iterations.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had column names, all strings.

    Notes
    -----
    Rows are protected, their number is not. X and y must be finite, and a fit that refuses them says so to
    whoever calls it: check data before, outside of what is released.

    **Parts.** Which part a row is in follows from its position and from how many rows there are, and from
    nothing a row holds. The order of rows therefore changes the result, and rows that are sorted make parts
    that are alike all the same. Replacing a row changes what one part releases; whatever else changes is
    computed from that release (F10 in ``docs/privacy.md``). Few rows or a small budget make one or two parts,
    many rows eight.

    **Which solver.** Measured on made tables (``docs/reproduction.md``): where columns are correlated pursuit
    is far better. Hard thresholding is better where they are independent, the declared scales are right and
    the budget is small (epsilon times rows below about 1 000). Nothing public tells these tables apart.

    **Dask.** X may be a dask array cut along its rows (float32 or float64 NumPy blocks, or SciPy CSR blocks),
    and y a dask array as well. Rows then stay with the workers, and the fit has the same bits as on one
    machine, whatever the chunks and whichever workers are lost on the way. The noise is drawn in the process
    that calls `fit`, never in a Dask task. A fit that fails leaves the estimator as it was. If it fails
    before its first sums are there it has spent nothing; if later, a note of the exception says so. Workers,
    scheduler, dashboard and logs hold private data and belong to whoever holds X. What to set on a cluster
    is in ``docs/scale.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import PrivateSparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20_000, 50))
    >>> y = X[:, 3] - X[:, 7] + 0.1 * rng.standard_normal(20_000)
    >>> model = PrivateSparseRegressor(epsilon=1.0, delta=1e-6, sparsity=2).fit(X, y)
    >>> np.flatnonzero(model.coef_), model.guarantee_.proven
    (array([3, 7]), True)
    >>> bool(model.score(X, y) > 0.9)
    True

    Correlated columns, which hard thresholding does not take:

    >>> X = 0.7 * (X + rng.standard_normal((20_000, 1)))
    >>> y = X[:, 3] - X[:, 7] + 0.1 * rng.standard_normal(20_000)
    >>> from fliphat import Iht
    >>> one = PrivateSparseRegressor(epsilon=1.0, delta=1e-6).fit(X, y)
    >>> other = PrivateSparseRegressor(epsilon=1.0, delta=1e-6, solver=Iht()).fit(X, y)
    >>> bool(one.score(X, y) > 0.9), bool(other.score(X, y) > 0.9)
    (True, False)
    """

    _loss = "squared"

    target_scale: float
    intercept_: float

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        sparsity: int | None = None,
        *,
        fit_intercept: bool = False,
        feature_scale: float = 1.0,
        target_scale: float = 1.0,
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
        X : array_like or SciPy sparse, shape (n_samples, n_features)
            float32 and float64 in C order, or canonical CSR, are copied a part at a time by pursuit, and by
            hard thresholding only if an intercept is fitted; anything else is converted. Or
            a dask array; see Notes of :class:`PrivateSparseRegressor`.
        y : array_like or dask array, shape (n_samples,)

        Returns
        -------
        PrivateSparseRegressor
            Itself.
        """
        refuse_unknown("fit", refused)
        self.intercept_, _ = self._fit(X, y)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Predict the target of each row.

        Parameters
        ----------
        X : array_like or SciPy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples,)
        """
        return self._scores(X) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # With a privacy budget, the small data sets of scikit-learn's checks are mostly noise.
        tags.regressor_tags.poor_score = True
        return tags

    def _target(self, y: Any, rows: Any) -> tuple[Any, None]:
        if isinstance(rows, arrays.DaskRows):
            return arrays.as_target(y, rows), None
        return data.as_target(y, rows.shape[0], stacklevel=6), None

    def _scales(self) -> tuple[float, float]:
        scale = arguments.within("target_scale", self.target_scale, SMALLEST_SCALE, LARGEST_SCALE)
        return scale, scale
