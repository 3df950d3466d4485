"""Estimates of a fixed policy's mean reward from a log.

Symbols: ``w_i`` the evaluated policy's chance of the logged arm over the logging policy's, ``r_i`` the
reward, ``q_i(a)`` a prediction of the reward of arm a.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fliphat.evaluation.log import Log
from fliphat.evaluation.outcome import predict_rewards
from fliphat.evaluation.value import Value, value_of_mean

__all__ = ["doubly_robust", "inverse_propensity", "self_normalised"]


def inverse_propensity(log: Log, target: npt.ArrayLike, *, confidence: float = 0.95) -> Value:
    """Return the mean of ``w_i r_i``: unbiased, with a large variance where the policies differ.

    Parameters
    ----------
    log : Log
    target : array_like
        The evaluated policy in the logged rounds: arms (n,) or probabilities (n, K); it must be a function of
        contexts alone, not of these rewards. See :func:`replay` for a policy that learns.
    confidence : float, default 0.95

    Returns
    -------
    Value

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

    Returns
    -------
    Value

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

    Returns
    -------
    Value

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
