"""Experiments: any grid of policies, environments and seeds, on all cores or a cluster.

A :class:`Cell` is one policy on one environment, made from recipes that can be sent to other processes.
`sweep` runs cells for some seeds, streams every finished run to a file, and goes on where an interrupted
sweep stopped. `summarise` turns runs into means with 95 % intervals. The paper's experiments, by name, are in
:mod:`fliphat.lab.experiments.catalog`; ``fliphat reproduce`` runs them and draws their figures.

Three rooms: `run` (cells, sweeps, results), `output` (tables, figures, the report) and `catalog`, in which
each experiment is one file.
"""

# Importing the factories also gives the environments their stable names.
from fliphat.lab.experiments.run import factories as makers  # noqa: F401 (the name of the first version)
from fliphat.lab.experiments.run.cells import Cell, Run, grid, run_cell
from fliphat.lab.experiments.run.executors import open_executor
from fliphat.lab.experiments.run.recipe import Recipe, stable_name
from fliphat.lab.experiments.run.results import ResultFile
from fliphat.lab.experiments.run.summary import Summary, summarise
from fliphat.lab.experiments.run.sweep import sweep

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
