"""`fliphat verify`: whether a store or a saved file is whole, and what damage would cost."""

from __future__ import annotations

import argparse
from typing import Any, Final

ORDER: Final = 80


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    verify = commands.add_parser(
        "verify",
        help="whether a store or a saved file is whole, and what damage would cost",
        description="Compares all sums, frames and counts; changes nothing. Exit code 1: damaged.",
        examples=["fliphat verify store", "fliphat verify postgresql://shop@db/policies --json"],
    )
    verify.add_argument(
        "store", metavar="STORE", help="a store's directory, postgresql://..., or a file that save wrote"
    )
    verify.add_argument("--json", action="store_true", help="print findings for a program to read")
    verify.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import dataclasses
    import json

    from fliphat.policies.store.inspect import verify_path

    verdict = verify_path(chosen.store)
    if chosen.json:
        print(json.dumps({"ok": verdict.ok} | dataclasses.asdict(verdict)))
    else:
        for line in verdict.checked:
            print(f"whole: {line}")
        for line in verdict.damage:
            print(f"DAMAGED: {line}")
    return 0 if verdict.ok else 1
