"""`fliphat export`: decisions with their rewards, for off-policy evaluation."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from fliphat.cli._parser import command, option

ORDER: Final = 76


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import json

    from fliphat.serve.decisions import joined

    for one in joined(chosen.log):
        print(json.dumps(one))
    return 0


add: Final = command(
    run,
    "export",
    "decisions with their rewards, for off-policy evaluation",
    "Reads what `fliphat serve --decision-log FILE` writes, also meanwhile, and prints a "
    "JSON line for each decision: what was offered, the arm, its probability, the reward. These are what "
    "people brought, without noise: the operator's data.",
    ["fliphat export decisions.jsonl", "fliphat export decisions.jsonl > evaluated.jsonl"],
    option("log FILE", "a decision log", Path),
)
