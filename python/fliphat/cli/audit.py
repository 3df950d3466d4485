"""`fliphat audit`: try to refute the privacy claims, from runs alone."""

from __future__ import annotations

import argparse
import warnings
from typing import Final

from fliphat.cli._parser import command, flag, one_of, option, positive

ORDER: Final = 40


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fliphat.lab.audit.table import FULL_RUNS, QUICK_RUNS, show_audit
    from fliphat.policies.health import HealthWarning

    runs = chosen.runs or (FULL_RUNS if chosen.full else QUICK_RUNS)
    with warnings.catch_warnings():
        # Audited policies play extreme rows, from which there is nothing to learn.
        warnings.simplefilter("ignore", HealthWarning)
        return show_audit(runs, only=chosen.case, seed=chosen.seed, as_json=chosen.json)


add: Final = command(
    run,
    "audit",
    "try to refute the privacy claims, from runs alone",
    "Lower bounds on epsilon for every mechanism, and for broken ones that must be caught.",
    ["fliphat audit --quick", "fliphat audit --runs 10000000 --case niht --json"],
    one_of(
        flag("--quick", "5 * 10^5 runs a case, under a minute (the default)"),
        flag("--full", "5 * 10^6 runs a case, ten minutes"),
        option("--runs", "runs a case", positive),
    ),
    option("--case", "only cases whose name contains this"),
    option("--seed", "repeatable noise (default: the noise people get)", int),
    flag("--json", "print findings for a program to read"),
)
