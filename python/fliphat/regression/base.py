"""What both estimators share: from parameters and data to a private fit, and from a fit to scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fliphat import arguments, kernels
from fliphat.fit.iht import constants as defaults
from fliphat.fit.iht import run
from fliphat.fit.iht.one_fit import OneFit, plan_one_fit
from fliphat.fit.iht.plan import IhtPlan
from fliphat.fit.parts import PartsFit
from fliphat.fit.release import Noise
from fliphat.kernels._rows import vector
from fliphat.privacy.guarantee import Guarantee, state_guarantee
from fliphat.privacy.ledger import Ledger
from fliphat.privacy.priced import PricedRelease
from fliphat.privacy.scales import MAX_COUNT, MECHANISMS, VALUE_NOISES, NoiseScales
from fliphat.regression import data, solvers
from fliphat.regression.dask.arrays import DaskRows
from fliphat.regression.dask.fit import from_blocks
from fliphat.regression.dask.parts import parts_from_blocks
from fliphat.regression.sklearn_compat import BaseEstimator, NotFittedError

__all__ = ["LARGEST_SCALE", "SMALLEST_SCALE", "LinearEstimator", "refuse_unknown"]

_LARGEST_SEED = 2**64 - 1

#: Declared sizes in between leave their squares, and the units of steps and coefficients, normal floats.
SMALLEST_SCALE, LARGEST_SCALE = 1e-100, 1e100


class LinearEstimator(BaseEstimator):
    """A linear score fitted by one private release. `coef_`, `noise_` and `guarantee_` are public."""

    _loss: ClassVar[str]

    epsilon: float
    delta: float
    sparsity: int | None
    fit_intercept: bool
    feature_scale: float
    gradient_clip: float | None
    l1_radius: float | None
    iterations: int | None
    step_size: float | None
    mechanism: str | None
    value_noise: str | None
    split: float | None
    rows_per_user: int
    start: npt.ArrayLike | None
    random_state: int | None
    ledger: Ledger | None
    solver: str

    coef_: npt.NDArray[np.float64]
    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    n_iter_: int
    noise_: NoiseScales | tuple[PricedRelease, ...]
    guarantee_: Guarantee

    #: Noise of hard thresholding instead of its own: the audit's, which draws none.
    _noise: Noise | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _public_numbers(
        self, rows: int, features: int, *, score_scale: float, target_clip: float | None
    ) -> OneFit:
        """Check the parameters against the shape of the data; nothing else of the data is known here."""
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept must be True or False, got {type(self.fit_intercept).__name__}")
        dim = features + int(self.fit_intercept)
        feature_scale = arguments.within("feature_scale", self.feature_scale, SMALLEST_SCALE, LARGEST_SCALE)
        sparsity = min(defaults.REGRESSION_SPARSITY, dim) if self.sparsity is None else self.sparsity
        sparsity = arguments.integer("sparsity", sparsity, 1, dim)
        return OneFit(
            epsilon=arguments.positive("epsilon", self.epsilon),
            delta=self.delta,
            rows=rows,
            dim=dim,
            sparsity=sparsity,
            l1_radius=defaults.l1_radius(sparsity, feature_scale, score_scale)
            if self.l1_radius is None
            else arguments.positive("l1_radius", self.l1_radius),
            iterations=self.iterations,
            step_size=self.step_size,
            feature_scale=feature_scale,
            loss=self._loss,
            target_clip=target_clip,
            rows_per_user=arguments.integer("rows_per_user", self.rows_per_user, 1, MAX_COUNT),
            warm=self.start is not None,
            seed=None
            if self.random_state is None
            else arguments.integer("random_state", self.random_state, 0, _LARGEST_SEED),
        )

    def _plan_proven(self, public: OneFit, *, residual_scale: float) -> IhtPlan:
        """Plan a fit with proven noise."""
        clip = self.gradient_clip
        if clip is None:
            clip = defaults.regression_clip(public.feature_scale, residual_scale)
        return plan_one_fit(
            public,
            clip=arguments.positive("gradient_clip", clip),
            mechanism=self.mechanism,
            value_noise=self.value_noise,
            split=self.split,
        )

    def _plan_fit(
        self, public: OneFit, only_iht: Mapping[str, bool], *, residual_scale: float
    ) -> IhtPlan | PartsFit:
        """Plan a fit with proven noise by the solver asked for, or by the one that is right by default."""
        solver = solvers.choose(self.solver, public, only_iht, residual_scale=residual_scale)
        if solver != "iht":
            fit = solvers.plan_parts(
                public,
                intercept=bool(self.fit_intercept),
                residual_scale=residual_scale,
                accounting=None if self.ledger is None else "zcdp",
            )
            if solver == "pursuit" or solvers.better_in_parts(fit):
                return fit
        return self._plan_proven(public, residual_scale=residual_scale)

    def _only_iht(self) -> dict[str, bool]:
        """Arguments that hard thresholding has and pursuit has not, and whether they were given."""
        if self.mechanism is not None:
            arguments.choice("mechanism", self.mechanism, MECHANISMS)
        if self.value_noise is not None:
            arguments.choice("value_noise", self.value_noise, VALUE_NOISES)
        names = ("gradient_clip", "l1_radius", "iterations", "step_size", "split", "start")
        return {
            "delta=0": self.delta == 0,
            "mechanism='laplace'": self.mechanism == "laplace",
            **{f"value_noise={noise!r}": self.value_noise == noise for noise in ("gaussian", "laplace")},
            **{name: getattr(self, name) is not None for name in names},
        }

    def _release(self, X: Any, rows: Any, y: Any, plan: IhtPlan | PartsFit) -> float:
        """Run the plan, store what is public, and return the intercept."""
        if isinstance(plan, PartsFit):
            coefficients, intercept = self._release_parts(rows, y, plan)
        else:
            coefficients, intercept = self._release_one(rows, y, plan)
        self.coef_ = coefficients
        self.n_features_in_ = rows.shape[1]
        names = data.feature_names(X)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return intercept

    def _release_parts(self, rows: Any, y: Any, plan: PartsFit) -> tuple[npt.NDArray[np.float64], float]:
        guarantee = solvers.parts_guarantee(plan)
        if self.ledger is not None:
            assert guarantee.rho is not None  # zCDP is charged with a ledger
            guarantee = self.ledger.spend(guarantee.rho, guarantee)
        if isinstance(rows, DaskRows):
            known, releases = parts_from_blocks(plan, rows, y)
        else:
            known, releases = solvers.parts_from_rows(plan, rows, y)
        self.n_iter_ = plan.parts.count
        self.noise_ = releases
        self.guarantee_ = guarantee
        return known.estimate.to_dense(), known.intercept if self.fit_intercept else 0.0

    def _release_one(self, rows: Any, y: Any, plan: IhtPlan) -> tuple[npt.NDArray[np.float64], float]:
        # The claim is stated before the rows are read.
        guarantee = state_guarantee(plan.noise, setting="regression", seeded=plan.seed is not None)
        features = rows.shape[1]
        scale = float(self.feature_scale)
        start = self._start(features, scale)
        if self.ledger is not None:
            guarantee = self.ledger.spend(plan.noise, guarantee)
        if isinstance(rows, DaskRows):
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
        if self.start is None:
            return None
        if not self.fit_intercept:
            return vector("start", self.start, features, ", one value for each column of X")
        begin = vector(
            "start", self.start, features + 1, ", one value for each column of X and the intercept"
        )
        return np.append(begin[:-1], begin[-1] / scale)

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
