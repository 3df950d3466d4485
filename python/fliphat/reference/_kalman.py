"""Twin of the step that a fit learns by. Equal to the kernel up to the rounding of floats."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fliphat.kernels._kalman import KalmanRule, KalmanStep

__all__ = ["KalmanRule", "KalmanStep", "kalman_step"]

_Floats = npt.NDArray[np.float64]


def kalman_step(
    theta: npt.ArrayLike,
    covariance: npt.ArrayLike,
    moments: npt.ArrayLike,
    precision: npt.ArrayLike,
    gradient: npt.ArrayLike,
    fresh: npt.ArrayLike,
    start: npt.ArrayLike,
    *,
    whiten: npt.ArrayLike,
    typical: npt.ArrayLike,
    rule: KalmanRule,
    most: int,
) -> KalmanStep:
    """Learn coefficients and second moments from what was released of them."""
    before, new = np.asarray(theta, float), np.asarray(start, float)
    known, m = len(before), len(before) + len(new)
    unit = np.ones(m)
    unit[0] = rule.one
    units = np.outer(unit, unit)
    # Second moments: what was known and what is new, by their precisions.
    joined, sure = np.zeros((m, m)), np.zeros((m, m))
    joined[:known, :known], sure[:known, :known] = moments, precision
    joined = (joined * units * sure + np.asarray(fresh, float) * rule.weight) / (sure + rule.weight)
    sure = sure + rule.weight
    joined[0, 0] = rule.one**2
    trust = rule.spread / (rule.spread + 1 / np.maximum(sure, rule.faint) + rule.sampling)
    trust[0, 0] = 1.0
    H = raised(trust * joined + (1 - trust) * np.asarray(typical, float), rule.smallest)
    # A Kalman step.
    P = np.diag(np.full(m, rule.doubt))
    P[:known, :known] = covariance
    P[:known, :known] /= units[:known, :known]
    now = np.concatenate([before, np.zeros(len(new))]) / unit
    prior = np.concatenate([now[:known], new])
    F = rule.gain * np.asarray(whiten, float) @ H
    gain = np.linalg.solve(F @ P @ F.T + rule.noise * np.eye(m), F @ P).T
    after = prior + gain @ (np.asarray(gradient, float) - F @ (prior - now))
    P = P - gain @ F @ P
    drift = np.full(m, rule.drift)
    drift[0] = rule.drift_of_one
    P = (P + P.T) / 2 + np.diag(drift)
    # Columns that do not stand out of their own uncertainty go, and all beyond the largest.
    deviation, size = np.sqrt(np.maximum(np.diag(P), 0)), np.abs(after)
    keep = size >= rule.prune * deviation
    keep[0] = True
    if m > 1:
        keep[1 + np.argmax(size[1:])] = True
    keep[1:] &= np.argsort(np.argsort(-(size * keep)[1:], kind="stable"), kind="stable") < most
    found = int((keep & (size >= rule.stand_out * deviation))[known:].sum())
    moved = np.where(keep, after, 0.0) - now
    kept = np.flatnonzero(keep)
    square = np.ix_(kept, kept)
    return KalmanStep(
        keep=keep,
        found=found,
        theta=(after * unit)[kept],
        covariance=(P * units)[square],
        moments=(joined / units)[square],
        precision=sure[square],
        explained=float(moved @ H @ moved),
        unknown=float(np.sum(P * H)),
    )


def raised(H: _Floats, smallest: float) -> _Floats:
    """Return the symmetric part of a matrix with eigenvalues below `smallest` raised to it."""
    eigenvalues, vectors = np.linalg.eigh((H + H.T) / 2)
    positive: _Floats = (vectors * np.maximum(eigenvalues, smallest)) @ vectors.T
    return positive
