"""`fliphat bench`: compare the kernels with NumPy on this machine."""

from __future__ import annotations

import argparse
from typing import Final

from fliphat.cli._parser import command, flag, option, positive

ORDER: Final = 50


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fliphat.lab.benchmark.table import show_ratios

    return show_ratios(chosen.repeats, as_json=chosen.json)


add: Final = command(
    run,
    "bench",
    "race the kernels against NumPy on this machine",
    "Times of every kernel beside plain and careful NumPy.",
    ["fliphat bench", "fliphat bench --repeats 20 --json > speed.json"],
    option("--repeats", "rounds of each race (%(default)s)", positive, 10),
    flag("--json", "print times in seconds for a program to read"),
)
