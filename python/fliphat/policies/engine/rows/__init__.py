"""Where an episode's chosen rows are kept: dense or sparse, in memory or in a nameless file. Private.

Dense rows go to a file if the whole episode would take more than the limit: a matter of public numbers.
Sparse rows move to one when the values stored so far would take more. That moment depends on the rows, and so
does the size of any file that holds them: both are the operator's to see, as the rows are. Everyone else
sees arms and estimates, whose bits are the same wherever rows are.
"""

from __future__ import annotations

from fliphat.policies.engine.rows.base import ChosenRows, Rounds, RowStore, SparseChosen
from fliphat.policies.engine.rows.memory import DenseRows, SparseRows, make_rows
from fliphat.policies.engine.rows.spill import SpilledRows

__all__ = [
    "ChosenRows",
    "DenseRows",
    "Rounds",
    "RowStore",
    "SparseChosen",
    "SparseRows",
    "SpilledRows",
    "make_rows",
]
