"""The Lasso from a Gram matrix. Not private: for baselines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _rows

_MOST_SWEEPS = 1_000_000


def lasso(
    gram: npt.NDArray[np.float64],
    correlations: npt.ArrayLike,
    penalty: float,
    *,
    start: npt.ArrayLike | None = None,
    tolerance: float = 1e-4,
    most_sweeps: int = 1000,
) -> npt.NDArray[np.float64]:
    """Minimise ``w'Gw/2 - c'w + penalty * sum(|w|)`` by coordinate descent. Not private.

    With ``G = X'X`` and ``c = X'y`` this is the Lasso ``sum((y - Xw)**2)/2 + penalty * sum(|w|)``, in time
    that does not depend on the number of rows. A start near the minimum saves most of the work.

    Parameters
    ----------
    gram : ndarray of float64, shape (d, d), in C order
        Symmetric and positive semidefinite. Never copied.
    correlations : array_like, shape (d,)
    penalty : float
        Above 0.
    start : array_like, shape (d,), optional
        Zero by default.
    tolerance : float
        How far the optimality conditions may be broken, in units of the penalty.
    most_sweeps : int
        Sweeps over all coordinates at most.

    Returns
    -------
    ndarray of float64, shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import kernels
    >>> kernels.lasso(np.diag([2.0, 4.0]), [3.0, 0.5], 1.0)
    array([1., 0.])

    References
    ----------
    J. Friedman, T. Hastie, R. Tibshirani, "Regularization Paths for Generalized Linear Models via Coordinate
    Descent", Journal of Statistical Software 33, 2010 ("covariance updates").
    """
    c = _rows.vector("correlations", correlations, None)
    _rows.nonempty("correlations", c.shape)
    matrix: Any = _rows.dense_rows("gram", gram, 2, copy=False)
    if matrix.dtype != np.float64:
        raise TypeError(f"gram must be float64, got {matrix.dtype}")
    if matrix.shape != (len(c), len(c)):
        raise ValueError(f"gram must have shape ({len(c)}, {len(c)}), got {matrix.shape}")
    begin = np.zeros(len(c)) if start is None else _rows.vector("start", start, len(c))
    return _native.lasso_fit(
        matrix,
        c,
        arguments.positive("penalty", penalty),
        begin,
        arguments.positive("tolerance", tolerance),
        arguments.integer("most_sweeps", most_sweeps, 1, _MOST_SWEEPS),
    )[0]
