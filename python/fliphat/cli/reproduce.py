"""`fliphat reproduce`: run the paper's experiments and draw their figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from fliphat.cli._parser import positive

ORDER: Final = 30


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    reproduce = commands.add_parser(
        "reproduce",
        help="run the paper's experiments and draw their figures",
        description="Regret of the private policy against time, dimension, sparsity, arms and more.",
        examples=[
            "fliphat reproduce all --quick --report",
            "fliphat reproduce regret-vs-time --out figures",
            "fliphat reproduce regret-vs-time --out figures --resume    # after Ctrl-C",
            "fliphat reproduce table-1 --out figures --resume --again FLIPHAT    # after a change to it",
        ],
    )
    reproduce.add_argument(
        "name", metavar="NAME", help="an experiment, or 'all' (a wrong name lists the right ones)"
    )
    reproduce.add_argument("--repeats", type=positive, help="runs of each policy (default: as published)")
    reproduce.add_argument("--quick", action="store_true", help="few repeats and points, in seconds")
    reproduce.add_argument("--workers", type=positive, help="processes (default: one a core)")
    reproduce.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler, or 'local' for one made here")
    reproduce.add_argument(
        "--out", default="fliphat-results", metavar="DIR", help="where files go (%(default)s)"
    )
    reproduce.add_argument("--report", action="store_true", help="all in one file, DIR/report.html")
    reproduce.add_argument("--resume", action="store_true", help="keep the runs that DIR already has")
    reproduce.add_argument(
        "--again", metavar="POLICY", help="with --resume: run policies with this in their name again"
    )
    reproduce.add_argument("--json", action="store_true", help="print results for a program to read")
    reproduce.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fliphat.lab.experiments.reproduce import reproduce

    return reproduce(
        chosen.name,
        out=Path(chosen.out),
        repeats=chosen.repeats,
        quick=chosen.quick,
        workers=chosen.workers,
        dask=chosen.dask,
        resume=chosen.resume,
        again=chosen.again,
        as_json=chosen.json,
        report=chosen.report,
    )
