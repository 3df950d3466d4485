"""Predicted rewards of every arm, each round's from rounds of other folds.

A prediction that had seen its own round's reward would pull the doubly robust estimate towards what happened;
with folds, prediction and correction are independent and the interval of a mean holds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fliphat.evaluation.log import Log

__all__ = ["predict_rewards"]

_FOLDS = 5


def predict_rewards(log: Log) -> npt.NDArray[np.float64]:
    """Return ridge predictions of shape (n, K) from the log's contexts.

    One context vector a round has coefficients of its own for each arm; one for each arm has common ones.
    Columns are centred and weighted by their spread in the training folds; the ridge is one row's worth.

    Raises
    ------
    ValueError
        If the log has no contexts.
    """
    if log.contexts is None:
        raise ValueError("log must have contexts to predict rewards from; give them, or `predicted`")
    # Rounds of one day may be alike, so folds take every fifth round instead of runs of them.
    fold = np.arange(len(log)) % _FOLDS
    predicted = np.zeros((len(log), log.arm_count))
    for left_out in range(_FOLDS):
        here = fold == left_out
        if not here.any():
            continue
        train = ~here if (~here).any() else here
        if log.contexts.ndim == 2:
            overall = float(log.rewards[train].mean())
            for arm in range(log.arm_count):
                rows = train & (log.arms == arm)
                model = _ridge(log.contexts[rows], log.rewards[rows], overall)
                predicted[here, arm] = _predict(model, log.contexts[here])
        else:
            chosen = log.contexts[np.flatnonzero(train), log.arms[train]]
            model = _ridge(chosen, log.rewards[train], 0.0)
            for arm in range(log.arm_count):
                predicted[here, arm] = _predict(model, log.contexts[here, arm])
    return predicted


_Model = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]


def _ridge(rows: npt.NDArray[np.floating], rewards: npt.NDArray[np.float64], empty: float) -> _Model:
    """Return centre, coefficients and mean reward; an arm that was never shown predicts `empty`."""
    if len(rows) == 0:
        return np.zeros(rows.shape[1]), np.zeros(rows.shape[1]), empty
    X = np.asarray(rows, np.float64)
    centre, spread = X.mean(axis=0), X.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    Z = (X - centre) / scale
    mean = float(rewards.mean())
    gram = Z.T @ Z + np.eye(Z.shape[1])
    return centre, np.linalg.solve(gram, Z.T @ (rewards - mean)) / scale, mean


def _predict(model: _Model, rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    centre, coefficients, mean = model
    return np.asarray((np.asarray(rows, np.float64) - centre) @ coefficients + mean)
