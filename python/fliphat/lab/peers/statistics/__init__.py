"""Noisy sums of rows: rows -> integers -> sums -> noise -> public.

| file | what it holds |
|---|---|
| `moments` | what is summed: each row cut to an l2 ball, in integers, and how far one row can move the sum |
| `rules` | when a sum is released and how releases are put together: `Blocks`, `Batches`, `Tree`, `Local` |
| `noise` | the draw, and what it costs: scales for a claim, and the claim that given scales support |

A rule says in how many noisy sums one row takes part; the statistic says how far a row moves one of them.
Both are public numbers, and their product is all that the price needs (:func:`price`).
"""

from fliphat.lab.peers.statistics.moments import GramAndMoment, Moments, SecondMoments, Statistic
from fliphat.lab.peers.statistics.noise import Noise, bought, price
from fliphat.lab.peers.statistics.rules import Batches, Blocks, Local, ReleasedSums, Rule, Tree

__all__ = [
    "Batches",
    "Blocks",
    "GramAndMoment",
    "Local",
    "Moments",
    "Noise",
    "ReleasedSums",
    "Rule",
    "SecondMoments",
    "Statistic",
    "Tree",
    "bought",
    "price",
]
