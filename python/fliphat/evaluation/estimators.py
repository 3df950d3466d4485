"""Estimates of a fixed policy's mean reward from a log, with intervals.

Symbols: ``w_i`` the evaluated policy's chance of the logged arm over the logging policy's, ``r_i`` the
reward, ``q_i(a)`` a prediction of the reward of arm a.

Each round's prediction is made from rounds of other folds: one that had seen its own round's reward would
pull the doubly robust estimate towards what happened; with folds, prediction and correction are independent
and the interval of a mean holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from fliphat import arguments
from fliphat.evaluation.log import Log

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


@dataclass(frozen=True, kw_only=True)
class Value:
    """An estimate of a policy's mean reward a round.

    Attributes
    ----------
    method : str
        The function that made it.
    mean : float
    standard_error : float
    low, high : float
        Ends of the interval.
    confidence : float
        How often such an interval holds the truth, for many rounds.
    rounds : int
        Logged rounds.
    effective_rounds : float
        Rounds that the weights amount to: ``(sum w)^2 / sum w^2``. When it is a small part of `rounds`, the
        evaluated policy plays what the log rarely shows, and the interval is too short to be trusted.

    Examples
    --------
    >>> print(value_of_mean("mean", np.array([0.0, 1.0, 1.0, 0.0]), 4.0, 0.95))
    0.5000, 95 % interval -0.0658 to 1.0658 (mean of 4 rounds worth 4)
    """

    method: str
    mean: float
    standard_error: float
    low: float
    high: float
    confidence: float
    rounds: int
    effective_rounds: float

    def __str__(self) -> str:
        return (
            f"{self.mean:.4f}, {100 * self.confidence:g} % interval {self.low:.4f} to {self.high:.4f} "
            f"({self.method} of {self.rounds} rounds worth {self.effective_rounds:.0f})"
        )


def value_of_mean(
    method: str, contributions: npt.NDArray[np.float64], effective_rounds: float, confidence: float
) -> Value:
    """Return the mean of independent contributions, with the normal interval of a mean."""
    confidence = arguments.real("confidence", confidence)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, got {confidence!r}")
    rounds = len(contributions)
    mean = float(contributions.mean())
    # One round says nothing about its own spread.
    error = float(contributions.std(ddof=1)) / math.sqrt(rounds) if rounds > 1 else math.inf
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    return Value(
        method=method,
        mean=mean,
        standard_error=error,
        low=mean - reach,
        high=mean + reach,
        confidence=confidence,
        rounds=rounds,
        effective_rounds=effective_rounds,
    )


def inverse_propensity(log: Log, target: npt.ArrayLike, *, confidence: float = 0.95) -> Value:
    """Return the mean of ``w_i r_i``: unbiased, with a large variance where the policies differ.

    Parameters
    ----------
    log : Log
    target : array_like
        The evaluated policy in the logged rounds: arms (n,) or probabilities (n, K); it must be a function of
        contexts alone, not of these rewards. See :func:`replay` for a policy that learns.
    confidence : float, default 0.95

    Examples
    --------
    >>> log = Log(arms=[0, 1, 0, 1], probabilities=0.5, rewards=[1, 0, 1, 0], arm_count=2)
    >>> inverse_propensity(log, [0, 0, 0, 0]).mean
    1.0
    """
    weights = _weights(log, log.target(target))
    return value_of_mean("inverse propensity", weights * log.rewards, _effective(weights), confidence)


def self_normalised(log: Log, target: npt.ArrayLike, *, confidence: float = 0.95) -> Value:
    """Return ``sum w_i r_i / sum w_i``: slightly biased, and never outside the range of the rewards.

    The interval is the delta method's, from the residuals ``w_i (r_i - mean)``.

    Parameters
    ----------
    log, target, confidence
        As in :func:`inverse_propensity`.

    Raises
    ------
    ValueError
        If the log never shows an arm that the evaluated policy plays.

    Examples
    --------
    >>> log = Log(arms=[0, 1, 0], probabilities=[0.5, 0.5, 0.25], rewards=[1, 0, 0], arm_count=2)
    >>> round(self_normalised(log, [0, 0, 0]).mean, 4)
    0.3333
    """
    weights = _weights(log, log.target(target))
    total = weights.sum()
    if total == 0:
        raise ValueError("target must play an arm that the log shows in at least one round; it never does")
    mean = float(weights @ log.rewards / total)
    # Linearised around the ratio: contributions with the right mean and the right variance.
    contributions = mean + weights * (log.rewards - mean) / weights.mean()
    return value_of_mean("self-normalised", contributions, _effective(weights), confidence)


def doubly_robust(
    log: Log,
    target: npt.ArrayLike,
    *,
    predicted: npt.ArrayLike | None = None,
    confidence: float = 0.95,
) -> Value:
    """Return the mean of ``sum_a pi_i(a) q_i(a) + w_i (r_i - q_i(a_i))``.

    Unbiased if either the probabilities or the predictions are right; where predictions are good, little is
    left for the weights to amplify.

    Parameters
    ----------
    log, target, confidence
        As in :func:`inverse_propensity`.
    predicted : array_like, shape (n, K), optional
        Predicted reward of every arm, each round's from other rounds. By default a ridge regression on the
        log's contexts, fitted on the other folds of the log (five of them).

    Examples
    --------
    >>> log = Log(arms=[0, 1, 0, 1], probabilities=0.5, rewards=[1, 0, 1, 0], arm_count=2)
    >>> doubly_robust(log, [0, 0, 0, 0], predicted=[[1.0, 0.0]] * 4).standard_error
    0.0
    """
    chances = log.target(target)
    if predicted is None:
        rewards = predict_rewards(log)
    else:
        rewards = np.asarray(predicted, np.float64)
        if rewards.shape != chances.shape or not np.isfinite(rewards).all():
            raise ValueError(
                f"predicted must be finite numbers of shape {chances.shape}, got shape {rewards.shape}"
            )
    weights = _weights(log, chances)
    logged = rewards[np.arange(len(log)), log.arms]
    contributions = (chances * rewards).sum(axis=1) + weights * (log.rewards - logged)
    return value_of_mean("doubly robust", contributions, _effective(weights), confidence)


def _weights(log: Log, chances: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(chances[np.arange(len(log)), log.arms] / log.probabilities, np.float64)


def _effective(weights: npt.NDArray[np.float64]) -> float:
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares else 0.0
