"""`fliphat reproduce`: run the paper's experiments and draw their figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from fliphat.cli._parser import command, flag, option, positive

ORDER: Final = 30


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


add: Final = command(
    run,
    "reproduce",
    "run the paper's experiments and draw their figures",
    "Regret of the private policy against time, dimension, sparsity, arms and more.",
    [
        "fliphat reproduce all --quick --report",
        "fliphat reproduce regret-vs-time --out figures",
        "fliphat reproduce regret-vs-time --out figures --resume    # after Ctrl-C",
        "fliphat reproduce table-1 --out figures --resume --again FLIPHAT    # after a change to it",
    ],
    option("name NAME", "an experiment, or 'all' (a wrong name lists the right ones)"),
    option("--repeats", "runs of each policy (default: as published)", positive),
    flag("--quick", "few repeats and points, in seconds"),
    option("--workers", "processes (default: one a core)", positive),
    option("--dask ADDRESS", "a Dask scheduler, or 'local' for one made here"),
    option("--out DIR", "where files go (%(default)s)", default="fliphat-results"),
    flag("--report", "all in one file, DIR/report.html"),
    flag("--resume", "keep the runs that DIR already has"),
    option("--again POLICY", "with --resume: run policies with this in their name again"),
    flag("--json", "print results for a program to read"),
)
