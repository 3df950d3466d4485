"""Experiments: any grid of policies, environments and seeds, on all cores or a cluster.

A :class:`Cell` is one policy on one environment, made from recipes that can be sent to other processes.
`sweep` runs cells for some seeds, streams every finished run to a file, and goes on where an interrupted
sweep stopped. `summarise` turns runs into means with 95 % intervals. The paper's experiments, by name, are in
:mod:`fliphat.lab.experiments.catalog`; ``fliphat reproduce`` runs them and draws their figures.

`cells`, `sweep`, `executors` and `factories` run; `experiment`, `figures` and `report` say and draw what came
out; in `catalog` each experiment is one file.
"""

# Importing the factories also gives the environments their stable names.
from fliphat.lab.experiments import factories as makers  # noqa: F401 (the name of the first version)
from fliphat.lab.experiments.cells import Cell, Recipe, Run, grid, run_cell, stable_name
from fliphat.lab.experiments.executors import open_executor
from fliphat.lab.experiments.sweep import ResultFile, Summary, summarise, sweep

__all__ = [
    "Cell",
    "Recipe",
    "ResultFile",
    "Run",
    "Summary",
    "grid",
    "open_executor",
    "run_cell",
    "stable_name",
    "summarise",
    "sweep",
]
