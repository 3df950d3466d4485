"""Private sparse regression: noisy iterative hard thresholding."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments
from fliphat.kernels import _gradient, _rows, _units

_MOST_ITERATIONS = 10_000
_LARGEST_SCALE = _units.SCALE_LIMIT - 1


def niht(
    X: Any,
    y: npt.ArrayLike,
    *,
    sparsity: int,
    iterations: int,
    step_size: float,
    l1_radius: float,
    clip: float,
    epsilon: float | None = None,
    delta: float = 0.0,
    pick_scale: int | None = None,
    value_scale: int | None = None,
    start: npt.ArrayLike | None = None,
    mechanism: Literal["exponential", "laplace"] = "exponential",
    value_noise: Literal["rounded_gaussian", "gaussian", "laplace"] | None = None,
    loss: Literal["squared", "logistic"] = "squared",
    reward_clip: float | None = None,
    present: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> npt.NDArray[np.float64]:
    """Fit a sparse linear model privately, by noisy iterative hard thresholding.

    Each iteration sums clipped gradients in integers (:func:`clipped_gradient`), subtracts them from the
    current estimate on an integer lattice, keeps `sparsity` coordinates privately (:func:`peel`) and projects
    on the l1 ball (:func:`project_l1`). The number of rows ``n`` is public and counts rows without a reward.

    With `epsilon` and `delta` the whole fit, all iterates included, is (epsilon, delta)-DP in one row,
    whatever they hold: `clip`, in plain units, bounds what each may say, and needs no promise about X or y.

    With scales instead: replacing one row moves each integer by at most ``2**16``. With the exponential
    mechanism and Gaussian values the fit, all iterates included, is
    ``iterations * sparsity / 2 * 2**32 * (1 / pick_scale**2 + 1 / value_scale**2)``-zCDP;
    `fliphat.privacy.calibration.calibrate` finds the scales for a given epsilon and delta.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n, d), in C order, or SciPy CSR
        Never copied.
    y : array_like, shape (n,)
    sparsity : int
        Coordinates kept, from 1 to d.
    iterations : int
        Always all of them: stopping early would depend on the rows.
    step_size, l1_radius, clip : float
        Above 0. Public.
    epsilon, delta : float
        What the fit may cost; the budget is added up in zCDP (pure, for ``delta = 0``).
    pick_scale, value_scale : int
        Instead of `epsilon`: integer noise scales from 1 to ``2**40 - 1``, in steps of ``clip / 2**15``.
    start : array_like, shape (d,), optional
        Public start (zero, or an estimate already released), projected on the l1 ball.
    mechanism, value_noise : str
        See :func:`peel`.
    loss, reward_clip, present, threads
        See :func:`clipped_gradient`.

    Returns
    -------
    ndarray of float64, shape (d,)
        At most `sparsity` non-zero coordinates, l1 norm at most `l1_radius`.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import kernels
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20_000, 50))
    >>> y = X[:, 3] - X[:, 7] + 0.1 * rng.standard_normal(20_000)
    >>> public = dict(sparsity=2, iterations=2, step_size=1.0, l1_radius=3.0, clip=2.0)
    >>> theta = kernels.niht(X, y, **public, epsilon=1.0, delta=1e-5)
    >>> np.flatnonzero(theta)
    array([3, 7])

    References
    ----------
    S. Chakraborty, S. Roy, D. Basu, "FLIPHAT: Joint Differential Privacy for High Dimensional Sparse Linear
    Bandits", 2024 (algorithm N-IHT).
    """
    noise = noise_scales(
        iterations * sparsity, epsilon, delta, pick_scale, value_scale, mechanism, value_noise
    )
    return fit(
        X, y, sparsity=sparsity, iterations=iterations, step_size=step_size, l1_radius=l1_radius,
        clip=clip, pick_scale=noise.pick, value_scale=noise.value, start=start, mechanism=mechanism,
        value_noise=noise.value_noise, loss=loss, reward_clip=reward_clip, present=present,
        threads=threads,
    )[-1]  # fmt: skip


def noise_scales(
    picks: int,
    epsilon: float | None,
    delta: float,
    pick_scale: Any,
    value_scale: Any,
    mechanism: str,
    value_noise: str | None,
) -> _units.Scales:
    """Return the scales that were given, or those at which `picks` picks and values cost (epsilon, delta)."""
    if (epsilon is None) == (pick_scale is None or value_scale is None):
        raise ValueError("give epsilon and delta, or pick_scale and value_scale")
    if epsilon is None:
        return _units.Scales(pick_scale, value_scale, value_noise or "rounded_gaussian")
    claim: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "mechanism": mechanism}
    moved = 2 * _gradient.LIMIT
    return _units.scales_for(picks, sensitivity=moved, value_noise=value_noise, **claim)


def fit(
    X: Any,
    y: npt.ArrayLike,
    *,
    start: npt.ArrayLike | None = None,
    present: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
    noise: _native.SecureNoise | _native.SeededNoise | _native.RecordingNoise | None = None,
    **public: Any,
) -> list[npt.NDArray[np.float64]]:
    """Return every iterate of :func:`niht`; other `noise` is for simulations and the audit."""
    rows = _rows.matrix("X", X)
    n, d = rows.shape
    settings = fit_settings(d, **public)
    rewards = _rows.vector("y", y, n, ", one reward for each row of X")
    if start is None:
        start = np.zeros(d)
    begin = _rows.vector("start", start, d, ", one value for each column of X")
    more = settings, _rows.flags(present, n), _rows.thread_count(threads), noise
    iterates = _native.niht_fit(_rows.native(rows), rewards, begin, *more)
    dense = []
    for columns, values in iterates:
        theta = np.zeros(d)
        theta[columns] = values
        dense.append(theta)
    return dense


def fit_settings(
    d: int,
    *,
    sparsity: int,
    iterations: int,
    step_size: float,
    l1_radius: float,
    clip: float,
    pick_scale: int,
    value_scale: int,
    mechanism: str = "exponential",
    value_noise: str = "rounded_gaussian",
    loss: str = "squared",
    reward_clip: float | None = None,
    noiseless: bool = False,
) -> _native.FitSettings:
    """Check the public parameters of a fit in `d` dimensions; `noiseless` (for baselines) is not private."""
    return _native.FitSettings(
        sparsity=arguments.integer("sparsity", sparsity, 1, d),
        iterations=arguments.integer("iterations", iterations, 1, _MOST_ITERATIONS),
        step_size=arguments.positive("step_size", step_size),
        l1_radius=arguments.positive("l1_radius", l1_radius),
        clip=arguments.within("clip", clip, _gradient.SMALLEST_CLIP, _gradient.LARGEST_CLIP),
        reward_clip=np.inf if reward_clip is None else arguments.positive("reward_clip", reward_clip),
        loss=arguments.choice("loss", loss, ("squared", "logistic")),
        mechanism=arguments.choice("mechanism", mechanism, ("exponential", "laplace")),
        pick_scale=arguments.integer("pick_scale", pick_scale, 1, _LARGEST_SCALE),
        value_noise=arguments.choice("value_noise", value_noise, ("rounded_gaussian", "gaussian", "laplace")),
        value_scale=arguments.integer("value_scale", value_scale, 1, _LARGEST_SCALE),
        noiseless=noiseless,
    )
