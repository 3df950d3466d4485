"""The parser of the command line, and a command as a table of its arguments."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

#: Adds one argument, or several, to a parser.
Arguments: TypeAlias = Callable[[Any], None]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose examples keep theirs."""

    def __init__(self, *, examples: Sequence[str] = (), **options: Any) -> None:
        epilog = "\n".join(["examples:", *(f"  {example}" for example in examples)])
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, epilog=epilog, **options)

    def error(self, message: str) -> NoReturn:
        """Say in one line what is wrong and which flag might have been meant, and leave with 2."""
        if message.startswith("unrecognized arguments: --"):
            wrong = message.split()[2].partition("=")[0]
            near = difflib.get_close_matches(wrong, self._flags(), 1)
            message += f"; did you mean {near[0]}?" if near else ""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")

    def _flags(self) -> list[str]:
        """Return the flags of the command that was typed, or of all of them."""
        every = {name: one for action in self._actions for name, one in dict(action.choices or {}).items()}
        typed = {name: one for name, one in every.items() if name in sys.argv}
        return [flag for one in (typed or every).values() for flag in one._option_string_actions]


def command(
    run: Callable[[argparse.Namespace], int],
    name: str,
    told: str,
    description: str,
    examples: Sequence[str],
    *given: Arguments,
) -> Callable[[Any], None]:
    """Return what adds a command, with its arguments, to those of a parser."""

    def add(commands: Any) -> None:
        parser = commands.add_parser(name, help=told, description=description, examples=examples)
        for one in given:
            one(parser)
        parser.set_defaults(run=run)

    return add


def option(spec: str, told: str, kind: Any = None, default: Any = None, **more: Any) -> Arguments:
    """Return an argument; `spec` has its names and how its value is called, such as ``--out -o FILE``."""
    words = spec.split()
    names = [word for word in words if word.startswith("-")] or words[:1]
    if len(words) > len(names):
        more["metavar"] = words[-1]
    return lambda parser: parser.add_argument(*names, help=told, **{"type": kind, "default": default} | more)


def flag(name: str, told: str) -> Arguments:
    """Return an argument that is there or not."""
    return lambda parser: parser.add_argument(name, action="store_true", help=told)


def group(title: str, *given: Arguments) -> Arguments:
    """Return arguments under a title of their own."""
    return lambda parser: _all(parser.add_argument_group(title), given)


def one_of(*given: Arguments) -> Arguments:
    """Return arguments of which one at most may be given."""
    return lambda parser: _all(parser.add_mutually_exclusive_group(), given)


def _all(parser: Any, given: Sequence[Arguments]) -> None:
    for one in given:
        one(parser)


def positive(text: str) -> int:
    """Return an argument as an integer of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number
