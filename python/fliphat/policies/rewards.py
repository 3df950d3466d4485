"""Rewards and the decisions they belong to, as callers hand them in. Messages never hold a reward."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat.kernels import _rows
from fliphat.policies.base import Decision, Decisions

__all__ = ["checked_reward", "identities", "identity", "usable_rewards"]


def checked_reward(reward: Any, loss: str) -> float:
    """Return a finite number, 0 or 1 for the logistic loss."""
    number = reward if type(reward) is float else _number(reward, loss)
    if not math.isfinite(number):
        raise ValueError("reward must be a finite number")
    if loss == "logistic" and number not in (0.0, 1.0):
        raise ValueError("reward must be 0 or 1 for loss='logistic'")
    return number


def usable_rewards(
    rewards: Any, count: int, loss: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return `count` numbers and which are such rewards; the others are contents, and do not raise.

    The numbers are a copy: another thread may write to the caller's array after they were looked at.
    """
    if isinstance(rewards, np.ndarray) and rewards.dtype != object:
        given = _rows.plain_array("rewards", rewards)
        if given.dtype == np.bool_ and loss != "logistic":
            raise TypeError("rewards must hold real numbers, got dtype bool")
        numbers = _rows.vector("rewards", given, count, ", one reward for each decision").copy()
    else:
        numbers = _numbers(rewards, count, loss)
    return numbers, np.isin(numbers, (0.0, 1.0)) if loss == "logistic" else np.isfinite(numbers)


def identity(decision: Any) -> int:
    """Return the id of a decision or of an id."""
    if isinstance(decision, Decision):
        return decision.id
    if isinstance(decision, bool) or not hasattr(decision, "__index__"):
        raise TypeError(f"decision must be a Decision or its id, got {type(decision).__name__}")
    return int(decision.__index__())


def identities(decisions: Any) -> list[int]:
    """Return the ids of several decisions."""
    if isinstance(decisions, Decisions):
        return [int(one) for one in decisions.ids.tolist()]
    if not isinstance(decisions, Iterable) or isinstance(decisions, (str, bytes, Decision)):
        raise TypeError(
            f"decisions must be Decisions or a sequence of Decision or ids, got {type(decisions).__name__}"
        )
    return [identity(one) for one in decisions]


def _numbers(rewards: Any, count: int, loss: str) -> npt.NDArray[np.float64]:
    """Return each element as a number, NaN for one that is none: it must not decide about the others."""
    if not isinstance(rewards, Sequence) or isinstance(rewards, (str, bytes)):
        rewards = _rows.plain_array("rewards", rewards)
        if rewards.ndim != 1:
            raise ValueError(
                f"rewards must have shape ({count},), one reward for each decision, got shape {rewards.shape}"
            )
    if len(rewards) != count:
        raise ValueError(
            f"rewards must have shape ({count},), one reward for each decision, got {len(rewards)} of them"
        )
    numbers = np.full(count, np.nan)
    for i, reward in enumerate(rewards):
        if type(reward) is float:
            numbers[i] = reward
        else:
            with contextlib.suppress(TypeError, ValueError):
                numbers[i] = _number(reward, loss)
    return numbers


def _number(reward: Any, loss: str) -> float:
    is_bool = isinstance(reward, (bool, np.bool_))
    if (is_bool and loss != "logistic") or not hasattr(reward, "__float__"):
        raise TypeError(f"reward must be a real number, got {type(reward).__name__}")
    number = math.nan
    # Raised outside the handler: Python's own message quotes the value, and would hang on as context.
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        number = float(reward)
    if math.isnan(number):
        raise ValueError("reward must be a finite number")
    return number
