"""The parser of the command line: errors in one line, and examples under every help."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

__all__ = ["Parser", "positive"]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose examples keep theirs."""

    def __init__(self, *, examples: Sequence[str] = (), **options: Any) -> None:
        epilog = "\n".join(["examples:", *(f"  {example}" for example in examples)])
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, epilog=epilog, **options)

    def error(self, message: str) -> NoReturn:
        """Say in one line what is wrong, and leave with 2."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def positive(text: str) -> int:
    """Return an argument as an integer of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number
