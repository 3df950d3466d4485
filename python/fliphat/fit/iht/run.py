"""The release of a plan by hard thresholding: private rows go in, one public estimate comes out.

Every call is a release. Running one plan twice on the same rows costs its budget twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fliphat import _native
from fliphat.kernels import _niht
from fliphat.kernels._fits import Noise, noise_of

if TYPE_CHECKING:
    from fliphat.fit.iht.fit import IhtPlan

__all__ = ["Noise", "from_rows", "from_sums", "noise_of"]


def from_rows(
    plan: IhtPlan,
    rows: Any,
    rewards: npt.NDArray[np.float64],
    *,
    present: npt.NDArray[np.bool_] | None = None,
    start: npt.NDArray[np.float64] | None,
    noise: Noise | None = None,
) -> npt.NDArray[np.float64]:
    """Return the estimate that a plan releases from rows in this process.

    A row that is not `present` counts as one of zeros; a warm plan needs a public `start`.
    """
    _require_start(plan, start)
    if rows.shape != (plan.rows, plan.dim):
        raise ValueError(f"rows must have the plan's shape {(plan.rows, plan.dim)}, got {rows.shape}")
    noise = noise_of(*plan.stream) if noise is None else noise
    return _niht.fit(rows, rewards, start=start, present=present, noise=noise, **plan.kernel_arguments)[-1]


def from_sums(
    plan: IhtPlan,
    sums_at: Callable[[npt.NDArray[np.int64], npt.NDArray[np.float64]], bytes],
    *,
    start: npt.NDArray[np.float64] | None,
) -> npt.NDArray[np.float64]:
    """Do what :func:`from_rows` does, bit for bit, over rows that live elsewhere.

    `sums_at` returns the integer sums of all rows' clipped gradients at an estimate, given as columns and
    values, each as eight bytes. It is called once an iteration.
    """
    _require_start(plan, start)
    begin = np.zeros(plan.dim) if start is None else start
    settings = _niht.fit_settings(plan.dim, **plan.kernel_arguments)
    return _native.niht_fit_sums(sums_at, begin, plan.rows, settings, noise_of(*plan.stream))


def _require_start(plan: IhtPlan, start: npt.NDArray[np.float64] | None) -> None:
    if plan.warm != (start is not None):
        raise ValueError(f"start must {'' if plan.warm else 'not '}be given for this plan")
