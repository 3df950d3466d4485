"""`fliphat inspect`: what a store or a saved file says about its policy."""

from __future__ import annotations

import argparse
from typing import Final

from fliphat.cli._parser import command, flag, option

ORDER: Final = 70


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import json

    from fliphat.lab.display.terminal import store_lines
    from fliphat.policies.store.inspect import inspect_path
    from fliphat.privacy.guarantee import group_table

    facts = inspect_path(chosen.store, private=chosen.private)
    if facts["guarantee"] is not None:
        facts["guarantee"]["group"] = group_table(facts["guarantee"])
    print(json.dumps(facts) if chosen.json else "\n".join(store_lines(facts)))
    return 0


add: Final = command(
    run,
    "inspect",
    "what a store or a saved file says about its policy",
    "Public facts, episodes, health, guarantee, format; changes nothing, also while in use.",
    [
        "fliphat inspect store",
        "fliphat inspect postgresql://shop@db/policies --json",
        "fliphat inspect saved --private",
    ],
    option("store STORE", "a store's directory, postgresql://..., or a file that save wrote"),
    flag("--private", "add an operator's numbers: rewards, late and invalid rounds"),
    flag("--json", "print facts for a program to read"),
)
