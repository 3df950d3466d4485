"""Experiments: any grid of policies, environments and seeds, on all cores or a cluster.

A :class:`Cell` is one policy on one environment, made from recipes that can be sent to other processes.
`sweep` runs cells for some seeds, streams every finished run to a file, and goes on where an interrupted
sweep stopped. `summarise` turns runs into means with 95 % intervals. The paper's experiments, by name, are in
:mod:`fliphat.experiments.catalog`; ``fliphat reproduce`` runs them and draws their figures.
"""

from fliphat.experiments import makers as makers  # gives environments their stable names
from fliphat.experiments.cells import Cell, Run, grid, run_cell
from fliphat.experiments.recipe import Recipe, stable_name
from fliphat.experiments.results import ResultFile
from fliphat.experiments.summary import Summary, summarise
from fliphat.experiments.sweep import sweep

__all__ = [
    "Cell",
    "Recipe",
    "ResultFile",
    "Run",
    "Summary",
    "grid",
    "run_cell",
    "stable_name",
    "summarise",
    "sweep",
]
