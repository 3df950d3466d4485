"""`fliphat bench`: compare the kernels with NumPy on this machine."""

from __future__ import annotations

import argparse
from typing import Any, Final

from fliphat.cli._parser import positive

ORDER: Final = 50


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    bench = commands.add_parser(
        "bench",
        help="race the kernels against NumPy on this machine",
        description="Times of every kernel beside plain and careful NumPy.",
        examples=["fliphat bench", "fliphat bench --repeats 20 --json > speed.json"],
    )
    bench.add_argument("--repeats", type=positive, default=10, help="rounds of each race (%(default)s)")
    bench.add_argument("--json", action="store_true", help="print times in seconds for a program to read")
    bench.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fliphat.lab.benchmark.table import show_ratios

    return show_ratios(chosen.repeats, as_json=chosen.json)
