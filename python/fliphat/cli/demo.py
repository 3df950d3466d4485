"""`fliphat demo`: see what it does."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from fliphat.cli._parser import positive

ORDER: Final = 10


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    demo = commands.add_parser(
        "demo",
        help="see what it does, in about ten seconds",
        description="Regret of the private policy at several epsilons, between random play and no privacy.",
        examples=["fliphat demo", "fliphat demo --repeats 10 --out regret.png", "fliphat demo --json"],
    )
    demo.add_argument("--repeats", type=positive, default=5, help="runs of each policy (%(default)s)")
    demo.add_argument(
        "--out", default="fliphat-demo.png", type=Path, metavar="FILE", help="the figure (%(default)s)"
    )
    demo.add_argument("--json", action="store_true", help="print results for a program to read")
    demo.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fliphat.lab.experiments.demo import show_demo

    return show_demo(chosen.repeats, out=chosen.out, as_json=chosen.json)
