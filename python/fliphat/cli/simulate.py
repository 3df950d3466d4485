"""`fliphat simulate`: which private policy would work on data like this table, and at which epsilon."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any, Final

from fliphat.cli._parser import positive

ORDER: Final = 15
#: Arguments that are called the same here and in :func:`fliphat.simulate`.
_HANDED_OVER: Final = (
    "label", "arm", "reward", "rewards", "delta", "orders", "reward_range", "categorical", "drop", "missing",
    "sparsity", "rows", "most_arms", "most_categories", "most_seconds", "seed",
)  # fmt: skip


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    simulate = commands.add_parser(
        "simulate",
        help="play policies on a public or pilot table",
        description="Would it work on my data, and at which epsilon? The table itself is not protected.",
        examples=[
            "fliphat simulate pilot.csv --label treatment",
            "fliphat simulate log.csv --arm shown --reward clicked --propensity chance --reward-range 0:1",
            "fliphat simulate pilot.csv.gz --label treatment --range age=18:90 --drop id --missing indicate",
            "fliphat simulate doses.csv --rewards low middle high --reward-range 0:100",
        ],
    )
    simulate.add_argument(
        "file", type=Path, metavar="FILE", help="a CSV file with a header (also .gz), or Parquet"
    )
    simulate.add_argument("--label", metavar="COLUMN", help="its classes are the arms; the right one earns 1")
    simulate.add_argument("--arm", metavar="COLUMN", help="of a log: the arm that was shown")
    simulate.add_argument("--reward", metavar="COLUMN", help="of a log: what it earned")
    simulate.add_argument(
        "--propensity",
        metavar="COLUMN",
        help="of a log: the chance of the arm shown, or one number such as 0.2",
    )
    simulate.add_argument(
        "--rewards", nargs="+", default=[], metavar="COLUMN", help="what each arm would earn, a column an arm"
    )
    simulate.add_argument(
        "--epsilon",
        "--epsilons",
        type=float,
        nargs="+",
        default=[0.5, 1.0, 2.0, 10.0],
        metavar="E",
        help="(0.5 1 2 10)",
    )
    simulate.add_argument("--delta", type=float, help="privacy slack (below half of one over the rows)")
    simulate.add_argument(
        "--policy", "--policies", nargs="+", metavar="NAME", help="these, random play and a constant arm only"
    )
    simulate.add_argument(
        "--orders", type=positive, default=5, help="random orders of the rows (%(default)s)"
    )
    simulate.add_argument(
        "--range",
        action="append",
        default=[],
        type=_named_range,
        metavar="COLUMN=LOW:HIGH",
        help="public range of a numeric column; may be repeated (the table's own)",
    )
    simulate.add_argument("--reward-range", type=_range, metavar="LOW:HIGH", help="of rewards")
    simulate.add_argument(
        "--categorical",
        nargs="+",
        action="extend",
        default=[],
        metavar="COLUMN",
        help="numbers that are codes",
    )
    simulate.add_argument(
        "--drop", nargs="+", action="extend", default=[], metavar="COLUMN", help="columns to leave out"
    )
    simulate.add_argument(
        "--missing",
        choices=("refuse", "drop", "indicate"),
        default="refuse",
        help="values: refuse, drop the row, or add a column that says so (%(default)s)",
    )
    simulate.add_argument("--sparsity", type=positive, help="of FLIPHAT (three for each arm, at least 8)")
    simulate.add_argument("--rows", type=positive, help="read only the first so many rows")
    simulate.add_argument("--most-arms", type=positive, default=50, help="classes allowed (%(default)s)")
    simulate.add_argument(
        "--most-categories", type=positive, default=50, help="different texts of a column (%(default)s)"
    )
    simulate.add_argument(
        "--most-seconds", type=float, default=120, help="skip a policy that would take longer (%(default)s)"
    )
    simulate.add_argument("--workers", type=positive, help="processes (one a core)")
    simulate.add_argument("--seed", type=int, default=0, help="of orders and noise (%(default)s)")
    simulate.add_argument(
        "--out",
        type=Path,
        default=Path("fliphat-simulate"),
        metavar="DIR",
        help="where files go (%(default)s)",
    )
    simulate.add_argument("--json", action="store_true", help="print the study for a program to read")
    simulate.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import json

    from fliphat.lab.experiments.run.executors import cores
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
