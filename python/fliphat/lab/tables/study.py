"""`simulate`: which private policy would work on this table, and at which epsilon."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from fliphat import arguments
from fliphat.lab.display import Progress
from fliphat.lab.experiments.run.executors import open_executor
from fliphat.lab.tables.bandit import MOST_ARMS, Logged, TableBandit, make_bandit
from fliphat.lab.tables.columns import Missing, Range
from fliphat.lab.tables.players import POLICIES, PRIVATE, Public, public_numbers
from fliphat.lab.tables.read import read_frame, read_table
from fliphat.lab.tables.results import Result, best_private, first_useful, result_of
from fliphat.lab.tables.runs import TableRun, play_order

__all__ = ["EPSILONS", "TableStudy", "simulate"]

EPSILONS: Final = (0.5, 1.0, 2.0, 10.0)


@dataclass(frozen=True, eq=False)
class TableStudy:
    """What the policies earned on a table; made by :func:`simulate`.

    Attributes
    ----------
    source : str
        The table.
    rows, columns : int
        People, and features made of the table's columns, with a constant one.
    arms : tuple of str
    logged : bool
        Whether rewards come from a log, by replay.
    results : tuple of Result
        One a policy and epsilon.
    delta : float
    warnings : tuple of str
        What was read off the table.
    complete : bool
        False if it was stopped before all orders were played.
    settings : dict
        The arguments of each private policy, by name and epsilon.
    ranges : dict
        By which range each numeric column was scaled.
    """

    source: str
    rows: int
    columns: int
    arms: tuple[str, ...]
    logged: bool
    results: tuple[Result, ...]
    delta: float
    warnings: tuple[str, ...]
    complete: bool
    settings: dict[str, dict[str, Any]]
    ranges: dict[str, Range]

    def result(self, policy: str, epsilon: float | None = None) -> Result:
        """Return one result."""
        for one in self.results:
            if (one.policy, one.epsilon) == (policy, epsilon):
                return one
        raise ValueError(f"there is no result of {policy!r} at epsilon {epsilon}")

    @property
    def recommended(self) -> Result | None:
        """The best private policy of the smallest epsilon that clearly beats a constant arm, or None."""
        return first_useful(self.results)

    def __str__(self) -> str:
        from fliphat.lab.tables.output import text

        return text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON; a missing interval is None."""
        record = {name: value for name, value in self.__dict__.items() if name != "results"}
        record["results"] = [
            {
                name: None if isinstance(value, float) and math.isnan(value) else value
                for name, value in asdict(one).items()
            }
            for one in self.results
        ]
        best = self.recommended
        record["recommended"] = None if best is None else {"policy": best.policy, "epsilon": best.epsilon}
        return record

    def write(self, folder: str | os.PathLike[str], *, command: str = "") -> list[Path]:
        """Write ``study.csv`` and, with matplotlib, ``study.png``, ``study.svg`` and ``report.html``.

        Parameters
        ----------
        folder : path
            Made if it is not there.
        command : str
            What to type to get the same again, for the report.

        Returns
        -------
        list of Path
            The files written.
        """
        from fliphat.lab.tables.output import write

        return write(self, Path(folder), command)


def simulate(
    table: Any,
    *,
    label: str | None = None,
    arm: str | None = None,
    reward: str | None = None,
    propensity: str | float | None = None,
    epsilons: Sequence[float] = EPSILONS,
    delta: float | None = None,
    policies: Sequence[str] = POLICIES,
    orders: int = 5,
    ranges: Mapping[str, Range] | None = None,
    reward_range: Range | None = None,
    categorical: Collection[str] = (),
    drop: Collection[str] = (),
    missing: Missing = "refuse",
    sparsity: int | None = None,
    rows: int | None = None,
    most_arms: int = MOST_ARMS,
    workers: int = 1,
    seed: int = 0,
) -> TableStudy:
    """Play policies on a public or pilot table, several orders of its rows and several epsilons.

    Each row is a person who comes once. With a `label`, the arms are its classes, and the right one earns 1.
    With a log, a policy meets the rounds in random order, and those whose logged arm it would have shown
    count; rounds are thinned first so that every arm was shown equally often.

    **The table itself is not protected by this.** Use one that is public, or whose people agreed to it.

    Parameters
    ----------
    table : path, DataFrame, pyarrow table or mapping of names to arrays
        A path to a CSV file with a header, or to a Parquet file (which needs pyarrow).
    label : str, optional
        The column whose classes are the arms.
    arm, reward : str, optional
        Columns of a log: the arm shown, and what it earned.
    propensity : str or float, optional
        The column with the chance of the arm shown; a number if it was the same for all, such as 1/K.
    epsilons : sequence of float
    delta : float, optional
        By default below half of one over the number of rows.
    policies : sequence of str
        Some of "random", "constant" (the best arm in hindsight), "LinUCB" (not private) and private ones.
    orders : int, default 5
        Random orders of the rows, each with noise of its own.
    ranges : mapping of str to (low, high), optional
        Public ranges of numeric columns; values beyond are cut. By default the table's own 1 and 99 % points,
        and the result says so.
    reward_range : (low, high), optional
        Public range of a log's rewards; by default the table's own.
    categorical : collection of str
        Numeric columns that are codes, to be one-hot.
    drop : collection of str
        Columns to leave out.
    missing : {"refuse", "drop", "indicate"}
        Where a value is missing: raise, leave the row out, or add a column that says so.
    sparsity : int, optional
        Of FLIPHAT; by default three for each arm and at least 8.
    rows : int, optional
        Use only the first so many rows.
    most_arms : int, default 50
    workers : int, default 1
        Processes; above 1, a script needs ``if __name__ == "__main__":``.
    seed : int, default 0

    Returns
    -------
    TableStudy
        After Ctrl-C of what was done, if at least one order was.

    Raises
    ------
    ValueError
        If the table or an argument can't be used; the message names the column and the fix.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> import fliphat
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> study = fliphat.simulate(X.assign(benign=y), label="benign", epsilons=[10.0], orders=2)
    >>> study.result("LinUCB").mean > study.result("constant").mean > study.result("random").mean
    True
    """
    epsilons = [arguments.positive("epsilons", epsilon) for epsilon in epsilons]
    orders = arguments.integer("orders", orders, 1, 10_000)
    workers = arguments.integer("workers", workers, 1, 1024)
    seed = arguments.integer("seed", seed, 0, 2**62)
    if rows is not None:
        rows = arguments.integer("rows", rows, 1, 2**40)
    for policy in policies:
        arguments.choice("policies", policy, POLICIES)
    if not epsilons and any(policy in PRIVATE for policy in policies):
        raise ValueError("epsilons must have at least one number for a private policy")
    path = Path(table) if isinstance(table, (str, os.PathLike)) else None
    read = read_frame(table, rows=rows) if path is None else read_table(path, rows=rows)
    bandit = make_bandit(
        read,
        label=label,
        arm=arm,
        reward=reward,
        propensity=propensity,
        ranges=dict(ranges or {}),
        reward_range=reward_range,
        categorical=categorical,
        drop=drop,
        missing=missing,
        most_arms=arguments.integer("most_arms", most_arms, 2, 10_000),
    )
    source = read.source
    del read, table
    public = public_numbers(bandit, delta, sparsity)
    cells: list[tuple[str, float | None]] = []
    for policy in sorted(set(policies), key=POLICIES.index):
        cells += [(policy, epsilon) for epsilon in epsilons] if policy in PRIVATE else [(policy, None)]
    settings = {
        f"{policy}, epsilon = {epsilon:g}": public.arguments(policy, epsilon)
        for policy, epsilon in cells
        if epsilon is not None
    }
    # All policies of an order before the next order: what an interrupted study leaves covers the whole grid.
    tasks = [(policy, epsilon, order) for order in range(orders) for policy, epsilon in cells]
    runs: list[TableRun] = []
    complete = True
    try:
        with open_executor(workers) as executor, Progress("playing", len(tasks)) as progress:
            for run in _finished(bandit, public, tasks, seed, executor):
                runs.append(run)
                progress.advance(1)
    except KeyboardInterrupt:
        complete = False
        if not runs:
            raise
    runs.sort(key=lambda run: run.order)
    results = []
    for policy, epsilon in cells:
        own = [run for run in runs if (run.policy, run.epsilon) == (policy, epsilon)]
        if own:
            results.append(result_of(own, runs))
    return TableStudy(
        source,
        len(bandit),
        public.columns,
        bandit.arms,
        isinstance(bandit.outcomes, Logged),
        tuple(results),
        public.delta,
        bandit.warnings,
        complete,
        settings,
        bandit.features.ranges,
    )


def _finished(
    bandit: TableBandit,
    public: Public,
    tasks: Sequence[tuple[str, float | None, int]],
    seed: int,
    executor: Executor | None,
) -> Iterator[TableRun]:
    if executor is None:
        for task in tasks:
            yield play_order(bandit, public, *task, seed)
        return
    futures = [executor.submit(play_order, bandit, public, *task, seed) for task in tasks]
    try:
        for future in as_completed(futures):
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def advice(study: TableStudy) -> list[str]:
    """Return in sentences which policy to take, at which epsilon, and what it will cost."""
    told = []
    marks = {one.policy: one for one in study.results if one.epsilon is None}
    epsilons = sorted({one.epsilon for one in study.results if one.epsilon is not None})
    constant = marks.get("constant")
    best = study.recommended
    if best is not None and best.above_constant is not None:
        told.append(
            f"From epsilon = {best.epsilon:g} on a private policy is clearly better than always showing one "
            f"arm: {best.policy} earns {best.mean:.3f} a round, {best.above_constant[0]:.3f} more."
        )
    elif epsilons and constant is not None:
        told.append(
            f"Up to epsilon = {epsilons[-1]:g} no private policy is clearly better than always showing one "
            f"arm ({constant.mean:.3f} a round). More people, fewer columns, or a larger epsilon would help."
        )
    for epsilon in epsilons:
        one = best_private(study.results, epsilon)
        assert one is not None
        start = (
            f"half of its gain reached by round {one.learns_from:,}"
            if one.learns_from is not None
            else f"not clearly better than random play within {one.rounds:,} rounds"
        )
        told.append(f"At epsilon = {epsilon:g} {one.policy} is best: {one.mean:.3f} a round, {start}.")
    if "LinUCB" in marks and epsilons:
        price = marks["LinUCB"].mean
        told.append(f"LinUCB, without privacy, earns {price:.3f}: the difference is the price of privacy.")
    return told
