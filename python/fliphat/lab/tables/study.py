"""`simulate`: which private policy would work on this table, and at which epsilon."""

from __future__ import annotations

import importlib
import json
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from fliphat import arguments
from fliphat.contexts.encoder import Encoder, Range
from fliphat.fit.dense.settings import too_wide
from fliphat.lab.display import Progress
from fliphat.lab.experiments.executors import finished, open_executor
from fliphat.lab.tables import output
from fliphat.lab.tables.bandit import MOST_ARMS, Logged, make_bandit
from fliphat.lab.tables.columns import MOST_LEVELS, Missing
from fliphat.lab.tables.players import POLICIES, PRIVATE, StudyNumbers, public_numbers, seconds
from fliphat.lab.tables.read import read_frame, read_table
from fliphat.lab.tables.runs import Result, TableRun, best_arm, first_useful, play_order, result_of
from fliphat.lab.tables.sentences import answer, is_thin

EPSILONS: Final = (0.5, 1.0, 2.0, 10.0)
MOST_SECONDS: Final = 120.0


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
    shares : tuple of float
        Of each arm: of how many rows it is the label or the best; of a log, how often it was shown.
    constant_arm : str
        The arm that earns most when always shown, in hindsight.
    logged : bool
        Whether rewards come from a log, by replay.
    results : tuple of Result
        One a policy and epsilon.
    delta : float
    warnings : tuple of str
        What was read off the table.
    skipped : tuple of str
        Which policies were not played, and why.
    complete : bool
        False if it was stopped before all orders were played.
    settings : dict
        The arguments of each private policy, by name and epsilon.
    encoder : fliphat.contexts.Encoder
        Turns people into the contexts that were played, without the constant.
    """

    source: str
    rows: int
    columns: int
    arms: tuple[str, ...]
    shares: tuple[float, ...]
    constant_arm: str
    logged: bool
    results: tuple[Result, ...]
    delta: float
    warnings: tuple[str, ...]
    skipped: tuple[str, ...]
    complete: bool
    settings: dict[str, dict[str, Any]]
    encoder: Encoder

    def find(self, policy: str, epsilon: float | None = None) -> Result | None:
        """Return one result, or None if it was not played."""
        same = [one for one in self.results if (one.policy, one.epsilon) == (policy, epsilon)]
        return same[0] if same else None

    def result(self, policy: str, epsilon: float | None = None) -> Result:
        """Return one result."""
        found = self.find(policy, epsilon)
        if found is None:
            raise ValueError(f"there is no result of {policy!r} at epsilon {epsilon}")
        return found

    @property
    def ranges(self) -> dict[str, Range]:
        """By which range each numeric column was scaled."""
        return {name: known for name, known in self.encoder.columns.items() if isinstance(known, tuple)}

    @property
    def recommended(self) -> Result | None:
        """The best private policy of the smallest epsilon that clearly beats a constant arm, or None."""
        return None if is_thin(self) else first_useful(self.results)

    @property
    def answer(self) -> str:
        """Whether a private policy is worth it here, in one sentence."""
        return answer(self)

    def __str__(self) -> str:
        return output.text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON; a missing interval is None."""
        record = {name: value for name, value in self.__dict__.items() if name != "results"}
        record["ranges"] = self.ranges
        record["answer"], record["encoder"] = self.answer, json.loads(self.encoder.to_json())
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

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each policy and epsilon."""
        pandas = importlib.import_module("pandas")  # an extra: nothing else may need it
        return pandas.DataFrame(output.records(self), columns=list(output.RECORD))

    def plot(self) -> Any:
        """Return a matplotlib figure: reward against epsilon, and learning over time."""
        return output.draw(self)

    def _repr_html_(self) -> str:
        return output.card(self)

    def write(self, folder: str | os.PathLike[str], *, command: str = "") -> list[Path]:
        """Write ``study.csv``, ``encoder.json`` and, with matplotlib, figures and ``report.html``.

        The folder is made if it is not there. The report says what `command` to type to get the same again.
        Returned are the files written, the report last.
        """
        return output.write(self, Path(folder), command)


def simulate(
    table: Any,
    *,
    label: str | None = None,
    arm: str | None = None,
    reward: str | None = None,
    propensity: str | float | None = None,
    rewards: Sequence[str] = (),
    epsilons: Sequence[float] = EPSILONS,
    delta: float | None = None,
    policies: Sequence[str] | None = None,
    orders: int = 5,
    ranges: Mapping[str, Range] | None = None,
    reward_range: Range | None = None,
    categorical: Collection[str] = (),
    drop: Collection[str] = (),
    missing: Missing = "refuse",
    sparsity: int | None = None,
    rows: int | None = None,
    most_arms: int = MOST_ARMS,
    most_categories: int = MOST_LEVELS,
    most_seconds: float = MOST_SECONDS,
    workers: int = 1,
    seed: int = 0,
) -> TableStudy:
    """Play policies on a public or pilot table, several orders of its rows and several epsilons.

    Each row is a person who comes once. With a `label`, the arms are its classes, and the right one earns 1.
    With `rewards`, each of these columns is an arm and says what it would earn. With a log, a policy meets
    the rounds in random order, and those whose logged arm it would have shown count; rounds are thinned first
    so that every arm was shown equally often.

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
    rewards : sequence of str, optional
        Columns with what each arm would earn in a row, an arm each: measured, or by a model of the trial.
    epsilons : sequence of float
    delta : float, optional
        By default below half of one over the number of rows.
    policies : sequence of str
        Some of "LinUCB" (not private) and private ones. "random" and "constant" (the best arm in hindsight)
        are always played: what the others earn says nothing without them.
    orders : int, default 5
        Random orders of the rows, each with noise of its own.
    ranges : mapping of str to (low, high), optional
        Public ranges of numeric columns; values beyond are cut. By default the table's own 1 and 99 % points,
        and the result says so.
    reward_range : (low, high), optional
        Public range of rewards, unless they are a label's; by default the table's own.
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
    most_arms, most_categories : int, default 50
        More classes of the label, or texts of a column, are refused.
    most_seconds : float, default 120
        A policy whose runs would take longer together, estimated from the table's sizes, is skipped and the
        study says so; one that `policies` names is played anyhow.
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
        If the table or an argument can't be used; the message names all such columns and the fix of each.

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
    named = tuple(POLICIES if policies is None else policies)
    for policy in named:
        arguments.choice("policies", policy, POLICIES)
    if not epsilons and any(policy in PRIVATE for policy in named):
        raise ValueError("epsilons must have at least one number for a private policy")
    path = Path(table) if isinstance(table, (str, os.PathLike)) else None
    read = read_frame(table, rows=rows) if path is None else read_table(path, rows=rows)
    bandit = make_bandit(
        read,
        label=label,
        arm=arm,
        reward=reward,
        propensity=propensity,
        rewards=rewards,
        ranges=ranges,
        reward_range=reward_range,
        categorical=categorical,
        drop=drop,
        missing=missing,
        most_arms=arguments.integer("most_arms", most_arms, 2, 10_000),
        most_categories=arguments.integer("most_categories", most_categories, 2, 100_000),
    )
    source = read.source
    del read, table
    public = public_numbers(bandit, delta, sparsity)
    cells: list[tuple[str, float | None]] = []
    skipped, cost = [], {}
    for policy in sorted({"random", "constant", *named}, key=POLICIES.index):
        every: list[float | None] = list(epsilons) if policy in PRIVATE else [None]
        cost[policy] = seconds(policy, len(bandit), public.arms, public.columns)
        whole = cost[policy] * orders * len(every) / workers
        if policies is None and whole > arguments.positive("most_seconds", most_seconds):
            skipped.append(_skipped(policy, public, whole))
        else:
            cells += [(policy, epsilon) for epsilon in every]
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
        # The bar counts milliseconds, so that a slow policy is not taken for a quick one.
        total = sum(_milliseconds(cost[policy]) for policy, _, _ in tasks)
        with open_executor(workers) as executor, Progress("playing", total) as progress:
            calls = [(bandit, public, *task, seed) for task in tasks]
            for run in finished(play_order, calls, executor):
                runs.append(run)
                progress.advance(_milliseconds(cost[run.policy]))
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
    assert bandit.features.encoder is not None
    return TableStudy(
        source=source,
        rows=len(bandit),
        columns=public.columns,
        arms=bandit.arms,
        shares=tuple(float(share) for share in bandit.shares),
        constant_arm=bandit.arms[best_arm(bandit)],
        logged=isinstance(bandit.outcomes, Logged),
        results=tuple(results),
        delta=public.delta,
        warnings=(*bandit.warnings, *_too_wide(public, results)),
        skipped=tuple(skipped),
        complete=complete,
        settings=settings,
        encoder=bandit.features.encoder,
    )


def _too_wide(public: StudyNumbers, results: Sequence[Result]) -> Iterator[str]:
    """Yield what to say of PrivateLinear where the rounds are too few for the columns, and it shows."""
    said = None
    for one in sorted(results, key=lambda one: one.epsilon or 0.0):
        learned = one.above_constant is not None and one.above_constant[1] > 0
        if one.policy == "PrivateLinear" and one.epsilon is not None and not learned:
            said = too_wide(one.rounds, public.columns - 1, public.arms, one.epsilon, public.delta) or said
    if said is not None:
        # What it advises instead was played as well, and the table shows how that fared.
        yield f"PrivateLinear: {said.partition(':')[0]}."


def _milliseconds(estimated: float) -> int:
    return max(1, round(1000 * estimated))


def _skipped(policy: str, public: StudyNumbers, whole: float) -> str:
    instead = " FLIPHAT chooses columns by itself." if policy == "PrivateLinear" else ""
    sizes = f"{public.columns - 1:,} features and {public.arms} arms"
    return (
        f"{policy} was not played: with {sizes} its runs would take about "
        f"{whole / 60:,.0f} minutes; name it (--policy {policy}) to play it all the same.{instead}"
    )
