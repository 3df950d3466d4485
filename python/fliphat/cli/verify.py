"""`fliphat verify`: whether a store or a saved file is whole, and what damage would cost."""

from __future__ import annotations

import argparse
from typing import Final

from fliphat.cli._parser import command, flag, option

ORDER: Final = 80


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


add: Final = command(
    run,
    "verify",
    "whether a store or a saved file is whole, and what damage would cost",
    "Compares all sums, frames and counts; changes nothing. Exit code 1: damaged.",
    ["fliphat verify store", "fliphat verify postgresql://shop@db/policies --json"],
    option("store STORE", "a store's directory, postgresql://..., or a file that save wrote"),
    flag("--json", "print findings for a program to read"),
)
