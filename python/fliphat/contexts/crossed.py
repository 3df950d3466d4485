"""Contexts that say what they are made of, so that nobody builds a large matrix by hand.

Contexts of a round are a row for each arm. Often such a row is what is known about the person, weighed by
what is known about the arm: the products of all pairs. :class:`Crossed` holds the two parts. Only the columns
that the public estimate looks at, and the row of the arm that is played, are ever computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Crossed"]


class Crossed:
    """All products of a shared vector and the features of each arm.

    Column ``j * len(shared) + i`` of arm k is ``actions[k, j] * shared[i]``: the rows of
    ``np.kron(actions, shared)``. With one-hot actions, ``np.eye(K)``, that is the shared vector in a block of
    columns for each arm: a policy with named arms takes it, and learns it far better than one without.

    Parameters
    ----------
    shared : array_like, shape (p,), or (n, p) for n rounds
        What is known about the person: real numbers.
    actions : array_like, shape (K, q), or (n, K, q) for n rounds
        What is known about each arm; of shape (K, q) the same arms in all rounds.

    Attributes
    ----------
    dim : int
        ``p * q``: what the policy must have been made for.
    arms : int
        K.

    Examples
    --------
    >>> from fliphat import FLIPHAT
    >>> policy = FLIPHAT(dim=4, sparsity=2, epsilon=1.0, delta=1e-2)
    >>> decision = policy.select(Crossed([0.5, -1.0], [[1.0, 0.2], [1.0, 0.7], [1.0, -0.4]]))
    >>> decision.arm in range(3)
    True
    >>> Crossed([0.5, 1.0], np.eye(4)).to_dense()[0, 1].tolist()
    [0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, shared: Any, actions: Any) -> None:
        self.shared = _numbers("shared", shared, (1, 2))
        self.actions = _numbers("actions", actions, (2, 3))
        if self.actions.ndim == 3 and (self.shared.ndim, len(self.shared)) != (2, len(self.actions)):
            raise ValueError(
                f"shared must have one row for each of the {len(self.actions)} rounds that actions has, got "
                f"shape {self.shared.shape}"
            )
        self.is_batch = self.shared.ndim == 2
        self._person = np.atleast_2d(self.shared)

    @property
    def one_hot(self) -> bool:
        """Whether every arm has columns of its own, which is what ``FLIPHAT(arms=...)`` is for."""
        K = self.arms
        own = self.actions if self.actions.ndim == 2 else self.actions[0]
        return own.shape == (K, K) and K > 1 and bool(np.array_equal(own, np.eye(K)))

    @property
    def rounds(self) -> int:
        """How many rounds these are."""
        return len(self._person)

    @property
    def arms(self) -> int:
        """Arms of a round."""
        return int(self.actions.shape[-2])

    @property
    def dim(self) -> int:
        """Columns of a row."""
        return int(self.shared.shape[-1] * self.actions.shape[-1])

    def columns(self, wanted: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return some columns of all rows, shape (n * K, len(wanted))."""
        of_action, of_person = np.divmod(wanted, self.shared.shape[-1])
        found = self.actions[..., of_action] * self._person[:, None, of_person]
        return np.ascontiguousarray(found.reshape(self.rounds * self.arms, len(wanted)))

    def row(self, round_number: int, arm: int) -> npt.NDArray[Any]:
        """Return the whole row of one arm in one round."""
        actions = self.actions if self.actions.ndim == 2 else self.actions[round_number]
        row: npt.NDArray[Any] = np.multiply.outer(actions[arm], self._person[round_number])
        return row.reshape(-1)

    def usable(self) -> npt.NDArray[np.bool_]:
        """Return which rounds have only values that a row can hold: all finite in single precision.

        Without building rows: of finite parts, the largest product in size is that of the largest parts.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            people = np.abs(self._person).max(axis=1, initial=0)
            arms = np.abs(self.actions).max(axis=(-2, -1), initial=0)
            largest = (people * arms).astype(np.float32)
        usable: npt.NDArray[np.bool_] = np.isfinite(people) & np.isfinite(arms) & np.isfinite(largest)
        return usable

    def to_dense(self) -> npt.NDArray[Any]:
        """Return all rows, shape (n, K, dim): what this class saves."""
        rows = [self.row(i, arm) for i in range(self.rounds) for arm in range(self.arms)]
        return np.array(rows).reshape(self.rounds, self.arms, self.dim)


def _numbers(name: str, given: Any, dimensions: tuple[int, ...]) -> npt.NDArray[Any]:
    array = np.asarray(given)
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if array.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.ndim not in dimensions or 0 in array.shape:
        wanted = " or ".join(map(str, dimensions))
        raise ValueError(f"{name} must have {wanted} dimensions and be not empty, got shape {array.shape}")
    return array.copy()  # the caller may go on writing to its own
