"""`fliphat migrate`: bring a store of an earlier version up to date."""

from __future__ import annotations

import argparse
from typing import Any, Final

ORDER: Final = 90


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    migrate = commands.add_parser(
        "migrate",
        help="bring a store of an earlier version up to date",
        description="Writes a store in today's format, as opening it would. Saved files of every version are "
        "loaded as they are: they are checked and left alone.",
        examples=["fliphat migrate store", "fliphat migrate store --dry-run --json"],
    )
    migrate.add_argument(
        "store", metavar="STORE", help="a store's directory, postgresql://..., or a file that save wrote"
    )
    migrate.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    migrate.add_argument("--json", action="store_true", help="print what was done for a program to read")
    migrate.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import json

    from fliphat.policies.store.migrate import migrate_path
    from fliphat.policies.types import StoreError

    try:
        done = migrate_path(chosen.store, dry_run=chosen.dry_run)
    except StoreError as error:
        raise ValueError(str(error)) from None
    print(json.dumps(done) if chosen.json else done["told"])
    return 0
