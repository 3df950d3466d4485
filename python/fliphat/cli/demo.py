"""`fliphat demo`: see what it does."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from fliphat.cli._parser import command, flag, option, positive

ORDER: Final = 10


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fliphat.lab.experiments.demo import show_demo

    return show_demo(chosen.repeats, out=chosen.out, as_json=chosen.json)


add: Final = command(
    run,
    "demo",
    "see what it does, in about ten seconds",
    "Regret of the private policy at several epsilons, between random play and no privacy.",
    ["fliphat demo", "fliphat demo --repeats 10 --out regret.png", "fliphat demo --json"],
    option("--repeats", "runs of each policy (%(default)s)", positive, 5),
    option("--out FILE", "the figure (%(default)s)", Path, "fliphat-demo.png"),
    flag("--json", "print results for a program to read"),
)
