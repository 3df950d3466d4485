"""Clipped gradients as exact integer sums."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _rows

#: A row moves a sum by at most this much; replacing one row moves it by at most twice this, ``2**16``.
LIMIT = 2**15

#: Clips between these leave every step and factor a normal float64.
SMALLEST_CLIP, LARGEST_CLIP = 1e-290, 1e290


def clipped_gradient(
    X: Any,
    y: npt.ArrayLike,
    theta: npt.ArrayLike,
    clip: float,
    *,
    reward_clip: float | None = None,
    loss: Literal["squared", "logistic"] = "squared",
    present: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> tuple[npt.NDArray[np.int64], float]:
    """Sum the rows' clipped gradients, in integers.

    Row ``i`` has the gradient ``x_i * r_i`` with ``r_i = x_i @ theta - y_i`` (squared loss) or
    ``sigmoid(x_i @ theta) - y_i`` (logistic). Each coordinate is clipped to ``[-clip, clip]``, expressed in
    steps of ``clip / 2**15``, and rounded to an integer. The integers are summed exactly: the result is the
    same for any number of threads, any order of rows, dense or CSR, and replacing one row by any other moves
    no sum by more than ``2**16``.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, d), in C order, or SciPy CSR
        Never copied. Rows are read once; sparse rows must have strictly increasing column numbers.
    y : array_like, shape (n,)
        Rewards; 0 or 1 for the logistic loss.
    theta : array_like, shape (d,)
        Public estimate. Only its non-zero coordinates are used for the residuals.
    clip : float
        Above 0: bound on each coordinate of a row's gradient.
    reward_clip : float, optional
        Rewards are first clipped to ``[-reward_clip, reward_clip]`` (squared loss).
    loss : {"squared", "logistic"}
    present : ndarray of bool, shape (n,), optional
        False marks a row without a reward. It counts as a row of zeros and is not read.
    threads : int, optional
        By default all cores, or one if the work is small. It never changes the result.

    Returns
    -------
    sums : ndarray of int64, shape (d,)
    step : float
        ``sums * step / n`` is the mean clipped gradient.

    Raises
    ------
    ValueError
        If a value, a reward or theta is not finite, a shape does not fit, or a sparse row is not canonical.
        Nothing is returned then, and no message contains a value of `X` or `y`.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import kernels
    >>> X = np.array([[1.0, -2.0], [0.5, 0.0]])
    >>> sums, step = kernels.clipped_gradient(X, [1.0, -1.0], [0.0, 0.0], clip=1.0)
    >>> sums, sums * step
    (array([-16384,  32768]), array([-0.5,  1. ]))
    """
    clip = arguments.within("clip", clip, SMALLEST_CLIP, LARGEST_CLIP)
    limit = np.inf if reward_clip is None else arguments.positive("reward_clip", reward_clip)
    arguments.choice("loss", loss, ("squared", "logistic"))
    threads = _rows.thread_count(threads)
    rows = _rows.matrix("X", X)
    n, d = rows.shape
    rewards = _rows.vector("y", y, n, ", one reward for each row of X")
    estimate = _rows.vector("theta", theta, d, ", one value for each column of X")
    flags = _rows.flags(present, n)
    sums = _native.clipped_sums(_rows.native(rows), rewards, estimate, clip, limit, loss, flags, threads)
    return sums, clip / LIMIT
