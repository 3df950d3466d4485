"""How a round's contexts become an arm and a row: what differs between policies that share an engine.

A rule checks the structure of contexts, says how many arms a round has, and makes a *chooser* from what is
public. The chooser is what plays: it writes the row that is kept and says which arm was chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat import _native
from fliphat.fit.known import Known
from fliphat.fit.pursuit.known import KnownSparse
from fliphat.policies.engine import inputs

if TYPE_CHECKING:
    from fliphat.policies.grown import GrownChooser
    from fliphat.policies.linear_rule import LinearChooser

__all__ = ["ArmRule", "ArmsOfRounds", "Chooser", "RowForEachArm"]

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)

#: Arms of each of several rounds: the same of all, or a number for each.
ArmsOfRounds: TypeAlias = int | npt.NDArray[np.int64]

#: What plays rounds by public numbers, in native code. An arm is ``-1 - arm`` where contexts can't be used;
#: its row is then zeros, as it is where `keep` is 0. What else is returned of a round is how likely its arm
#: was, as :func:`fliphat.policies.engine.exploring.probability` reads it.
Chooser: TypeAlias = "_native.Estimate | LinearChooser | GrownChooser"


class ArmRule(Protocol):
    """What an engine asks about arms."""

    def one_round(self, contexts: Any) -> tuple[inputs.Contexts, int]:
        """Return the contexts of one round, checked for structure, and its number of arms."""

    def many_rounds(self, contexts: Any, arms: int | None) -> tuple[inputs.Contexts, int, ArmsOfRounds]:
        """Return the contexts of several rounds as rows, how many rounds, and arms a round."""

    def chooser(self, known: Any) -> Chooser:
        """Return what plays while nothing more is known."""

    def of(self, fit: Any) -> ArmRule:
        """Return this rule for a copy of its fit, whose table of arms changes on its own."""

    def use(self, table: Any) -> None:
        """Go on with another table of arms; asked of a rule that has one."""

    def record(self) -> Any:
        """Return the rule's own state for JSON; public."""

    def recall(self, record: Any) -> None:
        """Set the state that `record` returned."""


class RowForEachArm:
    """Each round brings a row for each of its arms, and one sparse estimate scores them: FLIPHAT's rule."""

    def __init__(self, dim: int) -> None:
        self._dim = dim

    def one_round(self, contexts: Any) -> tuple[inputs.Contexts, int]:
        """Return contexts of shape (K, dim), and K."""
        if type(contexts) is np.ndarray:
            shape, dtype = contexts.shape, contexts.dtype
            if (
                len(shape) == 2
                and shape[1] == self._dim
                and shape[0]
                and (dtype is _FLOAT32 or dtype is _FLOAT64)
                and contexts.flags.carray
            ):
                return contexts, shape[0]  # the common case, without another look
        return inputs.one_round(contexts, self._dim)

    def many_rounds(self, contexts: Any, arms: int | None) -> tuple[inputs.Contexts, int, ArmsOfRounds]:
        """Return contexts of shape (n, K, dim) as rows, n, and K."""
        return inputs.many_rounds(contexts, self._dim, arms)

    def chooser(self, known: Known) -> Chooser:
        """Return the estimate, in native code; one of zeros, which plays uniformly, where the guard does."""
        estimate = known.estimate
        if isinstance(known, KnownSparse) and known.earned.fallback is not None:
            return _native.Estimate(estimate.indices[:0], estimate.values[:0], estimate.dim)
        return _native.Estimate(estimate.indices, estimate.values, estimate.dim)

    def of(self, fit: Any) -> RowForEachArm:
        """Return the rule itself: there is no state."""
        return self

    def use(self, table: Any) -> None:
        """Do nothing: rounds bring their arms."""

    def record(self) -> None:
        """Return None: there is no state."""

    def recall(self, record: Any) -> None:
        """Do nothing."""
