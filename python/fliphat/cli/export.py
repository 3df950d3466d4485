"""`fliphat export`: decisions with their rewards, for off-policy evaluation."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

ORDER: Final = 76


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    export = commands.add_parser(
        "export",
        help="decisions with their rewards, for off-policy evaluation",
        description="Reads what `fliphat serve --decision-log FILE` writes, also meanwhile, and prints a "
        "JSON line for each decision: what was offered, the arm, its probability, the reward. These are what "
        "people brought, without noise: the operator's data.",
        examples=["fliphat export decisions.jsonl", "fliphat export decisions.jsonl > evaluated.jsonl"],
    )
    export.add_argument("log", type=Path, metavar="FILE", help="a decision log")
    export.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import json

    from fliphat.serve.decisions import joined

    for one in joined(chosen.log):
        print(json.dumps(one))
    return 0
