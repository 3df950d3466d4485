"""The command line. Each file of this folder without an underscore in front is a command.

A command has ``ORDER`` (its place in the help) and ``add(commands)``, which adds a parser with its arguments
and the function to run. Files are found by themselves. They import what does the work only when the command
runs, so that ``fliphat --help`` is quick.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType

from fliphat import __version__
from fliphat.cli._parser import Parser
from fliphat.cli._stop import stopped_soon

__all__ = ["main"]


def _refusals() -> tuple[type[Exception], ...]:
    """Return the errors whose words are for the user; found when there is one, as policies import slowly."""
    from fliphat.policies.types import StoreError

    return ValueError, OSError, StoreError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    chosen = _parser().parse_args(arguments)
    try:
        with stopped_soon():
            code = int(chosen.run(chosen))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough; nothing more may be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except _refusals() as error:
        print(f"fliphat: error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="fliphat",
        description="Private decisions on high-dimensional data.",
        examples=[
            "fliphat demo",
            "fliphat plan --dim 400 --sparsity 10 --epsilon 1 --delta 1e-6 --out plan.png",
            "fliphat reproduce regret-vs-time --quick --report",
        ],
    )
    parser.add_argument("--version", action="version", version=f"fliphat {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    for command in _commands():
        command.add(commands)
    return parser


def _commands() -> list[ModuleType]:
    """Return the modules of this folder that are commands, in the order of the help."""
    found = [
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
        if not module.name.startswith("_")
    ]
    return sorted(found, key=lambda module: int(module.ORDER))
