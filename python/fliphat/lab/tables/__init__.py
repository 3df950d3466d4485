"""From a table to a decision: which private policy would work on data like these, and at which epsilon.

:func:`simulate` reads a CSV or Parquet file or a DataFrame, turns it into a bandit and plays policies on it.
The table is read as it is and **not protected**: use a public one, or a pilot's whose people agreed to it.
"""

from fliphat.lab.tables.runs import Result
from fliphat.lab.tables.study import TableStudy, simulate

__all__ = ["Result", "TableStudy", "simulate"]
