"""All public columns at once: the fit of :class:`fliphat.PrivateLinear` and of ``FLIPHAT(arms=...)``.

With rows of small l2 norm a Gaussian on all columns costs no more than picks, and nothing has to be sparse.
An episode releases one vector: for each arm the sums of its rows times their rewards, of rewards and of rows,
and how many they were; means and sizes of columns until they are known well; then second moments of
everybody, and squares of each arm's rows. Once the map of rows is settled these are *totals* of everybody so
far, discounted, with fresh noise each time, at the price of one Gaussian for the whole
life of a row. Where few of many columns matter, they are picked first.

| file | what it holds |
|---|---|
| `constants`, `settings` | numbers of the rule, and arguments, checked once |
| `parts` | private sums, by how much one row moves them, and their release |
| `chain` | what later releases may do with rows of earlier ones: checks in exact integers |
| `known` | what was released, added with the best weights: public |
| `columns`, `learning` | the map of rows, and one posterior from totals: public |
| `growing` | a support that starts empty and grows by picks: public |
| `fit` | lengths, shares, plans and the claim |
"""

from fliphat.fit.dense.constants import DenseTuning
from fliphat.fit.dense.fit import Dense, DensePlan
from fliphat.fit.dense.known import DRAWS, ArmScores, KnownGrown, KnownLinear
from fliphat.fit.dense.settings import DenseSettings, class_of, named_settings

__all__ = [
    "DRAWS",
    "ArmScores",
    "Dense",
    "DensePlan",
    "DenseSettings",
    "DenseTuning",
    "KnownGrown",
    "KnownLinear",
    "class_of",
    "named_settings",
]
