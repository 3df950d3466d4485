"""What both estimators share: from parameters and data to a private fit, and from a fit to scores."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fliphat import arguments, kernels
from fliphat.fit.iht import constants as defaults
from fliphat.fit.iht import run
from fliphat.fit.iht.fit import IhtPlan
from fliphat.fit.known import SparseEstimate
from fliphat.fit.options import Iht, Pursuit
from fliphat.fit.settings import Settings
from fliphat.kernels._fits import Noise
from fliphat.kernels._rows import vector
from fliphat.privacy.guarantee import Guarantee, PrivacyWarning, state_guarantee
from fliphat.privacy.ledger import Ledger
from fliphat.privacy.priced import PricedRelease
from fliphat.privacy.scales import MAX_COUNT, NoiseScales
from fliphat.regression import data, parts, solvers
from fliphat.regression.dask import arrays
from fliphat.regression.dask.fit import from_blocks, parts_from_blocks
from fliphat.regression.parts import PartsFit
from fliphat.regression.sklearn_compat import BaseEstimator, NotFittedError

__all__ = ["LARGEST_SCALE", "SMALLEST_SCALE", "LinearEstimator", "refuse_unknown"]

_LARGEST_SEED = 2**64 - 1

#: Declared sizes in between leave their squares, and the units of steps and coefficients, normal floats.
SMALLEST_SCALE, LARGEST_SCALE = 1e-100, 1e100

#: Released residuals, or a released intercept, of so many declared sizes of a target are worth a warning:
#: without an intercept, which most likely is missing then, and with one.
_FAR_WITHOUT_INTERCEPT, _FAR_WITH_INTERCEPT = 4.0, 10.0

#: With fewer rows times mu for each column that may be kept, released sizes are mostly noise.
_TELLING_BUDGET = 60.0


class LinearEstimator(BaseEstimator):
    """A linear score fitted by one private release. `coef_`, `noise_` and `guarantee_` are public."""

    _loss: ClassVar[str]

    epsilon: float
    delta: float
    sparsity: int | None
    fit_intercept: bool
    feature_scale: float
    rows_per_user: int
    random_state: int | None
    ledger: Ledger | None
    solver: Pursuit | Iht | None

    coef_: npt.NDArray[np.float64]
    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    n_iter_: int
    noise_: NoiseScales | tuple[PricedRelease, ...]
    guarantee_: Guarantee

    #: Noise of hard thresholding instead of its own: the audit's, which draws none.
    _noise: Noise | None = None

    #: Whether scikit-learn made this one from another, and whether somebody was told what that costs.
    _is_clone: bool = False
    _told_of_clones: ClassVar[bool] = False

    def _keep(self, parameters: dict[str, Any]) -> None:
        """Keep the parameters of a constructor as they are: scikit-learn asks for it."""
        vars(self).update({name: value for name, value in parameters.items() if name != "self"})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        copy._is_clone = True
        return copy

    def _target(self, y: Any, rows: Any) -> tuple[Any, Any]:
        """Return the targets of `rows`, and the classes if there are any."""
        raise NotImplementedError

    def _scales(self) -> tuple[float, float]:
        """Return the declared sizes of a score and of a residual."""
        raise NotImplementedError

    def _fit(self, X: Any, y: Any) -> tuple[float, Any]:
        """Check, plan, release, and store what is public; return the intercept and the classes."""
        rows = arrays.as_rows(X) if arrays.is_dask("X", X) else data.as_rows(X)
        target, classes = self._target(y, rows)
        plan = self._plan(*rows.shape)
        self._warn_of_clones()
        if isinstance(plan, PartsFit):
            coefficients, intercept = self._release_parts(rows, target, plan)
        else:
            coefficients, intercept = self._release_one(rows, target, plan)
        self.coef_ = coefficients
        self.n_features_in_ = rows.shape[1]
        names = data.feature_names(X)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return intercept, classes

    def _plan(self, rows: int, features: int) -> IhtPlan | PartsFit:
        """Plan a fit with proven noise from the parameters and the shape of the data alone."""
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept must be True or False, got {type(self.fit_intercept).__name__}")
        score_scale, residual_scale = self._scales()
        iht = solvers.options_of_one_fit(self.solver, rows, labels=self._loss == "logistic")
        dim, intercept = features + int(self.fit_intercept), bool(self.fit_intercept)
        feature_scale = arguments.within("feature_scale", self.feature_scale, SMALLEST_SCALE, LARGEST_SCALE)
        sparsity = min(defaults.REGRESSION_SPARSITY, dim) if self.sparsity is None else self.sparsity
        sparsity = arguments.integer("sparsity", sparsity, 1, dim)
        seed = self.random_state
        public: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "sparsity": sparsity,
            "loss": self._loss,
            "rounds_per_user": arguments.integer("rows_per_user", self.rows_per_user, 1, MAX_COUNT),
            "context_scale": feature_scale,
            "reward_scale": residual_scale,
            "dtype": "float64",
            "seed": None if seed is None else arguments.integer("random_state", seed, 0, _LARGEST_SEED),
        }
        radius, clip = iht.l1_radius, iht.gradient_clip
        if radius is None:
            radius = defaults.l1_radius(sparsity, feature_scale, score_scale)
        if clip is None:
            clip = defaults.regression_clip(feature_scale, residual_scale)
        # A start has one value for each column of X, and is read when there are rows.
        options = replace(iht, start=None, l1_radius=radius, gradient_clip=clip)
        one_fit = Settings.checked(**public, dim=dim, fit=options)
        sizes = {"feature_scale": feature_scale, "target_scale": residual_scale}
        if solvers.may_be_parts(self.solver, one_fit.delta, **sizes):
            accounting = None if self.ledger is None else "zcdp"
            fit = solvers.plan_parts(public, rows, features, intercept=intercept, accounting=accounting)
            if isinstance(self.solver, Pursuit) or solvers.better_in_parts(fit):
                return fit
        return solvers.plan_one_fit(one_fit, rows, warm=iht.start is not None)

    def _release_parts(self, rows: Any, y: Any, plan: PartsFit) -> tuple[npt.NDArray[np.float64], float]:
        guarantee = parts.parts_guarantee(plan)
        if self.ledger is not None:
            assert guarantee.rho is not None  # zCDP is charged with a ledger
            guarantee = self.ledger.spend(guarantee.rho, guarantee)
        if isinstance(rows, arrays.DaskRows):
            known, releases = parts_from_blocks(plan, rows, y)
        else:
            known, releases = parts.parts_from_rows(plan, rows, y)
        self.n_iter_ = plan.parts.count
        self.noise_ = releases
        self.guarantee_ = guarantee
        if self._loss == "squared" and plan.budget >= _TELLING_BUDGET:
            self._warn_if_far(known.intercept, known.residual_size)
        return known.estimate.to_dense(), known.intercept if self.fit_intercept else 0.0

    def _release_one(self, rows: Any, y: Any, plan: IhtPlan) -> tuple[npt.NDArray[np.float64], float]:
        # The claim is stated before the rows are read.
        guarantee = state_guarantee(plan.noise, setting="regression", seeded=plan.seed is not None)
        features = rows.shape[1]
        scale = float(self.feature_scale)
        start = self._start(features, scale)
        if self.ledger is not None:
            guarantee = self.ledger.spend(plan.noise, guarantee)
        if isinstance(rows, arrays.DaskRows):
            theta = from_blocks(plan, rows, y, start, scale if self.fit_intercept else None)
        else:
            if self.fit_intercept:
                rows = data.with_constant(rows, scale)
            theta = run.from_rows(plan, rows, y, start=start, noise=self._noise)
        self.n_iter_ = plan.iterations
        self.noise_ = plan.noise
        self.guarantee_ = guarantee
        return theta[:features].copy(), float(theta[features]) * scale if self.fit_intercept else 0.0

    def _start(self, features: int, scale: float) -> npt.NDArray[np.float64] | None:
        if not isinstance(self.solver, Iht) or self.solver.start is None:
            return None
        given = self.solver.start
        dense = given.to_dense() if isinstance(given, SparseEstimate) else given
        if not self.fit_intercept:
            return vector("start", dense, features, ", one value for each column of X")
        begin = vector("start", dense, features + 1, ", one value for each column of X and the intercept")
        return np.append(begin[:-1], begin[-1] / scale)

    def _warn_if_far(self, intercept: float, residual_size: float) -> None:
        """Warn where released numbers say that targets are not what was declared. Nothing else is read."""
        declared = self._scales()[1]
        found = max(abs(intercept), residual_size)
        if found > declared * (_FAR_WITH_INTERCEPT if self.fit_intercept else _FAR_WITHOUT_INTERCEPT):
            where = f"an intercept of about {intercept:.3g} and residuals" if intercept else "residuals"
            advice = "" if self.fit_intercept else "; fit_intercept=True fits where they lie"
            warnings.warn(
                f"what was released has {where} of about {residual_size:.3g}, and target_scale declares "
                f"{declared:g}: targets may be far from 0 or in other units, and the fit may be poor. "
                f"Declare target_scale, or subtract a public number from y{advice}",
                UserWarning,
                stacklevel=5,
            )

    def _warn_of_clones(self) -> None:
        """Say once in a process that searches and cross-validations release once a fit."""
        if not self._is_clone or self.ledger is not None or self.random_state is not None:
            return
        if not LinearEstimator._told_of_clones:
            LinearEstimator._told_of_clones = True
            warnings.warn(
                "scikit-learn fits copies of this estimator: in a grid search or a cross-validation every "
                "fit is a release of its own, and guarantee_ is about one of them. "
                "ledger=fliphat.privacy.Ledger(delta=...) adds all of them up",
                PrivacyWarning,
                stacklevel=4,
            )

    def _scores(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the linear part of the score of each row; public if the rows are."""
        if not hasattr(self, "coef_"):
            raise NotFittedError(f"this {type(self).__name__} must be fitted first: call fit(X, y)")
        self._require_same_names(X)
        rows = data.as_rows(X)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return kernels.score(rows, self.coef_.reshape(-1))

    def _require_same_names(self, X: Any) -> None:
        """Refuse named columns in another order than in fit; names are public, and matrices have none."""
        names = data.feature_names(X)
        known = getattr(self, "feature_names_in_", None)
        if names is None or known is None or list(names) == list(known):
            return
        unseen, missing = sorted(set(names) - set(known)), sorted(set(known) - set(names))
        message = "The feature names should match those that were passed during fit.\n"
        if unseen:
            message += "Feature names unseen at fit time:\n" + _listed(unseen)
        if missing:
            message += "Feature names seen at fit time, yet now missing:\n" + _listed(missing)
        if not unseen and not missing:
            message += "Feature names must be in the same order as they were in fit.\n"
        raise ValueError(message)


def refuse_unknown(method: str, given: dict[str, Any]) -> None:
    """Refuse keyword arguments that a fit does not take; weights of rows with the reason."""
    for name in given:
        if name == "sample_weight":
            raise TypeError(
                "sample_weight is not supported: a row of weight w would move the integer sums w times as "
                "far as the noise was calibrated for, and weights taken from the data would not be public. "
                "Repeat rows and raise rows_per_user to the largest number of repeats"
            )
        raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")


def _listed(names: list[str]) -> str:
    shown = [*names[:5], "..."] if len(names) > 5 else names
    return "".join(f"- {name}\n" for name in shown)
