"""`fliphat audit`: try to refute the privacy claims, from runs alone."""

from __future__ import annotations

import argparse
import warnings
from typing import Any, Final

from fliphat.cli._parser import positive

ORDER: Final = 40


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    audit = commands.add_parser(
        "audit",
        help="try to refute the privacy claims, from runs alone",
        description="Lower bounds on epsilon for every mechanism, and for broken ones that must be caught.",
        examples=["fliphat audit --quick", "fliphat audit --runs 10000000 --case niht --json"],
    )
    size = audit.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", action="store_true", help="5 * 10^5 runs a case, under a minute (the default)"
    )
    size.add_argument("--full", action="store_true", help="5 * 10^6 runs a case, ten minutes")
    size.add_argument("--runs", type=positive, help="runs a case")
    audit.add_argument("--case", help="only cases whose name contains this")
    audit.add_argument("--seed", type=int, help="repeatable noise (default: the noise people get)")
    audit.add_argument("--json", action="store_true", help="print findings for a program to read")
    audit.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fliphat.lab.audit.table import FULL_RUNS, QUICK_RUNS, show_audit
    from fliphat.policies.health import HealthWarning

    runs = chosen.runs or (FULL_RUNS if chosen.full else QUICK_RUNS)
    with warnings.catch_warnings():
        # Audited policies play extreme rows, from which there is nothing to learn.
        warnings.simplefilter("ignore", HealthWarning)
        return show_audit(runs, only=chosen.case, seed=chosen.seed, as_json=chosen.json)
