"""What bodies must look like for the policy that is served: public facts, and nothing of its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fliphat.policies.live import LivePolicy

__all__ = ["Terms", "terms_of"]


@dataclass(frozen=True)
class Terms:
    """How a round's contexts look, and which arms there are.

    Attributes
    ----------
    policy : str
        The class that plays.
    dim : int
    dtype : str
        What contexts are kept in.
    depth : int
        Dimensions of one round's contexts: 2 for a row for each arm, 1 for one row for all arms.
    arms : tuple or None
        Ids of the arms that are played now; None where every round brings its arms.
    """

    policy: str
    dim: int
    dtype: str
    depth: int = 2
    arms: tuple[str | int, ...] | None = None

    @property
    def contexts(self) -> str:
        """The shape of one round's contexts, in words."""
        if self.depth == 1:
            return f"one list of {self.dim} numbers"
        arms = "each arm" if self.arms is None else "each arm, in the order of /arms"
        return f"a list of {self.dim} numbers for {arms}"


def terms_of(policy: LivePolicy, table: Any = None) -> Terms:
    """Return the terms of a policy; `table` is its table of arms, if it has one.

    Examples
    --------
    >>> from fliphat import FLIPHAT
    >>> terms_of(FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=1e-2)).contexts
    'a list of 20 numbers for each arm'
    """
    settings = policy._settings
    terms = Terms(type(policy).__name__, settings.dim, settings.dtype)
    if table is None:
        return terms
    if any(isinstance(arm, bytes) for arm in table.ids):
        raise ValueError("arms of a policy that is served must be str or int: JSON has no bytes")
    depth = 1 if settings.disjoint else 2
    return Terms(terms.policy, terms.dim, terms.dtype, depth, table.playable)
