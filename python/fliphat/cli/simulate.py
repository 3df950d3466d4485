"""`fliphat simulate`: which private policy would work on data like this table, and at which epsilon."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Final

from fliphat.cli._parser import command, flag, option, positive

ORDER: Final = 15
#: Arguments that are called the same here and in :func:`fliphat.simulate`.
_HANDED_OVER: Final = (
    "label", "arm", "reward", "rewards", "delta", "orders", "reward_range", "categorical", "drop", "missing",
    "sparsity", "rows", "most_arms", "most_categories", "most_seconds", "seed",
)  # fmt: skip


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import json

    from fliphat.lab.experiments.executors import cores
    from fliphat.lab.tables import simulate
    from fliphat.lab.tables.columns import TableProblems

    if chosen.out.exists() and not chosen.out.is_dir():
        raise ValueError(f"--out must be a directory, got {str(chosen.out)!r}")
    changed = {
        "propensity": _number_or_name(chosen.propensity),
        "epsilons": chosen.epsilon,
        "policies": chosen.policy,
        "ranges": dict(chosen.range),
        "workers": chosen.workers or cores(),
    }
    try:
        study = simulate(chosen.file, **{name: getattr(chosen, name) for name in _HANDED_OVER}, **changed)
    except TableProblems as problems:
        if problems.flags:
            again = shlex.join(["fliphat", *sys.argv[1:], *problems.flags])
            raise ValueError(f"{problems}\nCopy this:\n  {again}") from None
        raise
    paths = study.write(chosen.out, command=shlex.join(["fliphat", *sys.argv[1:]]))
    print(json.dumps(study.to_dict(), indent=2) if chosen.json else study)
    if not chosen.json:
        print(f"\n{paths[-1]}")
        if paths[-1].suffix != ".html":
            print("No figure or report: those need matplotlib. pip install 'fliphat[experiments]'")
    if not study.complete:
        done = min(one.orders for one in study.results)
        print(f"stopped after {done} of {chosen.orders} orders; what was done is kept", file=sys.stderr)
        return 130
    return 0


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be LOW:HIGH, two numbers, got {text!r}") from None
    return low, high


def _named_range(text: str) -> tuple[str, tuple[float, float]]:
    name, equals, numbers = text.rpartition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"must be COLUMN=LOW:HIGH, got {text!r}")
    return name, _range(numbers)


def _number_or_name(given: str | None) -> str | float | None:
    try:
        return None if given is None else float(given)
    except ValueError:
        return given


add: Final = command(
    run,
    "simulate",
    "play policies on a public or pilot table",
    "Would it work on my data, and at which epsilon? The table itself is not protected.",
    [
        "fliphat simulate pilot.csv --label treatment",
        "fliphat simulate log.csv --arm shown --reward clicked --propensity chance --reward-range 0:1",
        "fliphat simulate pilot.csv.gz --label treatment --range age=18:90 --drop id --missing indicate",
        "fliphat simulate doses.csv --rewards low middle high --reward-range 0:100",
    ],
    option("file FILE", "a CSV file with a header (also .gz), or Parquet", Path),
    option("--label COLUMN", "its classes are the arms; the right one earns 1"),
    option("--arm COLUMN", "of a log: the arm that was shown"),
    option("--reward COLUMN", "of a log: what it earned"),
    option("--propensity COLUMN", "of a log: the chance of the arm shown, or one number such as 0.2"),
    option("--rewards COLUMN", "what each arm would earn, a column an arm", nargs="+", default=[]),
    option("--epsilon --epsilons E", "(0.5 1 2 10)", float, nargs="+", default=[0.5, 1.0, 2.0, 10.0]),
    option("--delta", "privacy slack (below half of one over the rows)", float),
    option("--policy --policies NAME", "these, random play and a constant arm only", nargs="+"),
    option("--orders", "random orders of the rows (%(default)s)", positive, 5),
    option(
        "--range COLUMN=LOW:HIGH",
        "public range of a numeric column; may be repeated (the table's own)",
        _named_range,
        action="append",
        default=[],
    ),
    option("--reward-range LOW:HIGH", "of rewards", _range),
    option("--categorical COLUMN", "numbers that are codes", nargs="+", action="extend", default=[]),
    option("--drop COLUMN", "columns to leave out", nargs="+", action="extend", default=[]),
    option(
        "--missing",
        "values: refuse, drop the row, or add a column that says so (%(default)s)",
        choices=("refuse", "drop", "indicate"),
        default="refuse",
    ),
    option("--sparsity", "of FLIPHAT (three for each arm, at least 8)", positive),
    option("--rows", "read only the first so many rows", positive),
    option("--most-arms", "classes allowed (%(default)s)", positive, 50),
    option("--most-categories", "different texts of a column (%(default)s)", positive, 50),
    option("--most-seconds", "skip a policy that would take longer (%(default)s)", float, 120),
    option("--workers", "processes (one a core)", positive),
    option("--seed", "of orders and noise (%(default)s)", int, 0),
    option("--out DIR", "where files go (%(default)s)", Path, Path("fliphat-simulate")),
    flag("--json", "print the study for a program to read"),
)
