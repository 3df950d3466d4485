"""Logged rounds, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Log"]

#: Rounds whose contexts are checked at once.
_PIECE = 4096


@dataclass(frozen=True, eq=False)
class Log:
    """Rounds that some policy played: contexts, arms shown, their probabilities, rewards.

    Parameters
    ----------
    arms : array_like of int, shape (n,)
        Positions of the arms shown, from 0.
    probabilities : array_like, shape (n,) or scalar
        With which chance the logging policy showed that arm, above 0 and at most 1. For uniform logging the
        scalar ``1 / K``.
    rewards : array_like, shape (n,)
        Finite.
    arm_count : int
        K, the arms a round offered.
    contexts : array_like, shape (n, d) or (n, K, d), optional
        One vector a round, or one for each arm.

    Raises
    ------
    ValueError
        If lengths differ or a column breaks its rule; the message names the column and how many rows break
        it, never a value.

    Examples
    --------
    >>> log = Log(arms=[0, 1, 1], probabilities=0.5, rewards=[1, 0, 1], arm_count=2)
    >>> len(log), log.probabilities
    (3, array([0.5, 0.5, 0.5]))
    """

    arms: npt.NDArray[np.int64]
    probabilities: npt.NDArray[np.float64]
    rewards: npt.NDArray[np.float64]
    arm_count: int
    contexts: npt.NDArray[Any] | None = None

    def __init__(
        self,
        arms: npt.ArrayLike,
        probabilities: npt.ArrayLike,
        rewards: npt.ArrayLike,
        arm_count: int,
        contexts: npt.ArrayLike | None = None,
    ) -> None:
        shown = np.asarray(arms)
        if shown.ndim != 1 or len(shown) == 0:
            raise ValueError(
                f"arms must have one entry a round and at least one round, got shape {shown.shape}"
            )
        if shown.dtype.kind not in "iu":
            raise TypeError(f"arms must be integers, the positions of arms from 0, got dtype {shown.dtype}")
        if isinstance(arm_count, bool) or not isinstance(arm_count, (int, np.integer)) or arm_count < 1:
            raise ValueError(f"arm_count must be an integer of at least 1, got {arm_count!r}")
        chances = (
            np.broadcast_to(_floats("probabilities", probabilities), shown.shape)
            if (np.ndim(probabilities) == 0)
            else _floats("probabilities", probabilities)
        )
        earned = _floats("rewards", rewards)
        for name, column in (("probabilities", chances), ("rewards", earned)):
            if column.shape != shown.shape:
                raise ValueError(
                    f"{name} must have one entry for each of {len(shown)} rounds, got shape {column.shape}"
                )
        _refuse("arms", "from 0 to arm_count - 1", ~((shown >= 0) & (shown < arm_count)))
        _refuse("probabilities", "above 0 and at most 1", ~((chances > 0) & (chances <= 1)))
        _refuse("rewards", "finite", ~np.isfinite(earned))
        object.__setattr__(self, "arms", np.ascontiguousarray(shown, np.int64))
        object.__setattr__(self, "probabilities", np.array(chances))
        object.__setattr__(self, "rewards", earned)
        object.__setattr__(self, "arm_count", int(arm_count))
        object.__setattr__(self, "contexts", None if contexts is None else self._checked_contexts(contexts))

    def __len__(self) -> int:
        return len(self.arms)

    def _checked_contexts(self, contexts: npt.ArrayLike) -> npt.NDArray[Any]:
        given = np.asarray(contexts)
        if given.dtype.kind in "iub":
            given = given.astype(np.float64)
        shapes = f"({len(self)}, d) or ({len(self)}, {self.arm_count}, d)"
        if given.dtype.kind != "f" or given.ndim not in (2, 3) or given.shape[0] != len(self):
            raise ValueError(
                f"contexts must be numbers of shape {shapes}, got {given.dtype} of shape {given.shape}"
            )
        if given.ndim == 3 and given.shape[1] != self.arm_count:
            raise ValueError(f"contexts must have shape {shapes}, got shape {given.shape}")
        # In pieces: flags for a whole large log would take a quarter of its own memory.
        usable = [
            np.isfinite(given[at : at + _PIECE]).all(axis=tuple(range(1, given.ndim)))
            for at in range(0, len(given), _PIECE)
        ]
        _refuse("contexts", "finite", ~np.concatenate(usable))
        return given

    def target(self, target: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the evaluated policy's probabilities, shape (n, K).

        Parameters
        ----------
        target : array_like of int, shape (n,), or of float, shape (n, K)
            The arm that it would show in each round, or the chance of each arm; chances sum to 1.
        """
        wanted = np.asarray(target)
        if wanted.ndim == 1 and wanted.dtype.kind in "iu":
            if wanted.shape != self.arms.shape:
                raise ValueError(
                    f"target must have one arm for each of {len(self)} rounds, got shape {wanted.shape}"
                )
            _refuse("target", "from 0 to arm_count - 1", ~((wanted >= 0) & (wanted < self.arm_count)))
            chances = np.zeros((len(self), self.arm_count))
            chances[np.arange(len(self)), wanted] = 1.0
            return chances
        if wanted.shape != (len(self), self.arm_count) or wanted.dtype.kind not in "fiu":
            raise ValueError(
                f"target must be arms of shape ({len(self)},) or probabilities of shape "
                f"({len(self)}, {self.arm_count}), got {wanted.dtype} of shape {wanted.shape}"
            )
        chances = wanted.astype(np.float64)
        sums = chances.sum(axis=1)
        _refuse(
            "target", "probabilities that sum to 1", ~((chances >= 0).all(axis=1) & (np.abs(sums - 1) < 1e-6))
        )
        return chances


def _floats(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers") from None


def _refuse(name: str, rule: str, bad: npt.NDArray[np.bool_]) -> None:
    if bad.any():
        raise ValueError(f"{name} must be {rule}; {int(bad.sum())} of {len(bad)} rounds are not")
