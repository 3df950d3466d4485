"""Running all cells for all seeds, wherever there are cores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor

from fliphat.lab.display.progress import Progress
from fliphat.lab.experiments.run.cells import Cell, Run, run_cell
from fliphat.lab.experiments.run.executors import finished
from fliphat.lab.experiments.run.results import ResultFile


def sweep(
    cells: Sequence[Cell],
    seeds: Iterable[int],
    *,
    executor: Executor | None = None,
    results: ResultFile | None = None,
    task: str = "runs",
) -> list[Run]:
    """Run every cell for every seed.

    Parameters
    ----------
    cells : sequence of Cell
        With labels of their own.
    seeds : iterable of int
        One a repeat. All cells of a seed come before the next seed, so that what an interrupted sweep leaves
        covers the whole grid.
    executor : concurrent.futures.Executor, optional
        Any: of processes, or a cluster's, such as ``distributed.Client().get_executor()``. By default runs
        come one after the other in this process. :func:`fliphat.lab.experiments.open_executor` makes one
        that uses all cores.
    results : ResultFile, optional
        Where runs are written as they finish; runs that it already has are not run again.
    task : str
        What the progress bar says.

    Returns
    -------
    list of Run
        Ordered by seed, then cell: the same list for every executor.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C; what had finished is in `results`.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> from fliphat.lab.experiments import Recipe, grid, makers, summarise
    >>> cells = grid({"random": Recipe.of(makers.random)}, {"small": Recipe.of(SparseLinear, dim=20)}, 1000)
    >>> summary, = summarise(cells, sweep(cells, seeds=range(5)))
    >>> bool(summary.low < summary.mean < summary.high), summary.repeats
    (True, 5)
    """
    seeds = list(seeds)
    if len({cell.labels for cell in cells}) < len(cells):
        raise ValueError("cells must have labels of their own: two of them share theirs")
    if len(set(seeds)) < len(seeds):
        raise ValueError("seeds must differ: a repeated seed is the same run again")
    planned = [
        (cell, seed)
        for number, seed in enumerate(seeds)
        for cell in cells
        if cell.most_repeats is None or number < cell.most_repeats
    ]
    wanted = {cell.key(seed): (cell, seed) for cell, seed in planned}
    if len(wanted) < len(planned):
        raise ValueError("cells must differ in more than their labels: two of them are the same run")
    known = {} if results is None else results.found
    costs = {} if results is None else results.costs
    done = {
        key: Run(key, cell.labels, seed, known[key], *costs.get(key, (None, None)))
        for key, (cell, seed) in wanted.items()
        if key in known
    }
    missing = [(cell, seed) for key, (cell, seed) in wanted.items() if key not in done]
    with Progress(task, len(wanted)) as progress:
        progress.advance(len(done))
        for run in finished(run_cell, missing, executor):
            if results is not None:
                results.add(run)
            done[run.key] = run
            progress.advance(1)
    return [done[key] for key in wanted]
