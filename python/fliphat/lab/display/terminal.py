"""What a terminal shows of a result: aligned tables, progress of a long task, a store in words."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from types import TracebackType
from typing import Any


class TextTable:
    """Columns of fixed widths, given a line at a time, so that rows can be printed as they come.

    A column is at least as wide as its name. Those in `left` are aligned on the left; the others are numbers.
    """

    def __init__(
        self,
        names: Sequence[str],
        widths: Sequence[int],
        *,
        left: Collection[int] = (0,),
        markdown: bool = False,
    ) -> None:
        self.names = tuple(names)
        self._widths = [max(width, len(name)) for width, name in zip(widths, names, strict=True)]
        self._left, self._markdown = frozenset(left), markdown

    @classmethod
    def fitting(
        cls,
        names: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        left: Collection[int] = (0,),
        markdown: bool = False,
    ) -> TextTable:
        """Return a table as wide as its widest cells."""
        widths = [max([0, *(len(row[i]) for row in rows)]) for i in range(len(names))]
        return cls(names, widths, left=left, markdown=markdown)

    def heading(self) -> str:
        """Return the header and the rule under it, on two lines."""
        return f"{self.line(self.names)}\n{self.line(['-' * width for width in self._widths])}"

    def line(self, row: Sequence[str]) -> str:
        """Return one row."""
        cells = [
            cell.ljust(width) if i in self._left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, self._widths, strict=True))
        ]
        return f"| {' | '.join(cells)} |" if self._markdown else "  ".join(cells).rstrip()

    def text(self, rows: Sequence[Sequence[str]]) -> str:
        """Return the header and all rows."""
        return "\n".join([self.heading(), *(self.line(row) for row in rows)])


_WIDTH = 24
_SECONDS_BETWEEN = 0.1


class Progress:
    """Shows how far a task is; silent where nobody looks."""

    def __init__(self, task: str, total: int) -> None:
        self._task, self._total, self._done = task, max(total, 1), 0
        self._started = self._shown = time.monotonic()
        self._visible = sys.stderr.isatty()

    def advance(self, amount: int) -> None:
        """Count `amount` more as done."""
        self._done += amount
        now = time.monotonic()
        if self._visible and now - self._shown >= _SECONDS_BETWEEN:
            self._shown = now
            share = min(self._done / self._total, 1.0)
            left = (now - self._started) * (1 - share) / share if share else 0.0
            bar = "#" * round(_WIDTH * share)
            line = f"{self._task} [{bar:<{_WIDTH}}] {share:4.0%}, {_clock(left)} left"
            print(f"\r{line}\033[K", end="", file=sys.stderr, flush=True)

    def hide(self) -> None:
        """Show nothing: something else on the screen tells how far the task is."""
        self._visible = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._visible:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


#: Arms that are named in the line about them.
_MOST_ARMS = 20
_COLUMNS = ("episode", "rounds", "columns picked", "noise", "in the estimate")


def store_lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that tell what :func:`fliphat.policies.store.inspect.inspect_path` found."""
    settings = facts["settings"]
    versions = ", ".join(f"{name} {value}" for name, value in facts["format"].items() if name != "current")
    yield f"{facts['kind']} of format {versions}"
    if "in_use" in facts:
        told = {True: "in use by a policy", False: "not in use", None: "whether it is in use is not known"}
        yield told[facts["in_use"]]
    if facts.get("witnessed"):
        yield "played with a witness"
    if facts.get("handed_over"):
        yield f"handed over to the file {facts['handed_over']!r}: the policy goes on there"
    sparsity = f", sparsity {settings['sparsity']}" if "sparsity" in settings else ""
    yield (
        f"{facts['policy']}: dim {settings['dim']}{sparsity}, epsilon {settings['epsilon']:g}, "
        f"delta {settings['delta']:g}, fit {settings['fit']}, loss {settings['loss']}, "
        f"rounds_per_user {settings['rounds_per_user']}"
    )
    if kept := settings.get("constants"):  # hard thresholding has none of its own
        yield f"constants of its fit: {len(kept)} recorded, kept whatever a later version's are"
    if facts["arms"] is not None:
        named = ", ".join(str(arm) for arm in facts["arms"][:_MOST_ARMS])
        more = len(facts["arms"]) - _MOST_ARMS
        yield f"arms {named}" + (f" and {more} more" if more > 0 else "")
    yield f"episode {facts['episode']} is {facts['state']}; {facts['rounds']} rounds played"
    if facts["guarantee"] is None:
        yield f"not known without running its functions: {facts['not_known_because']}"
    else:
        yield f"{facts['remaining']} rounds until the estimate changes"
        yield from _history(facts["history"])
        if facts["scoreboard"]["recent"] is not None:
            yield "scoreboard: mean reward of a round, with 95 %"
            yield from ("  " + line for line in facts["scoreboard"]["text"].splitlines())
        yield "health: " + facts["health_text"].replace("\n", "; ")
        yield facts["guarantee"]["text"]
        if group := facts["guarantee"].get("group"):
            shown = "; ".join(f"{rounds} rounds {_up(epsilon)}" for rounds, epsilon in group)
            yield f"epsilon of several rounds together, at the same delta, as others see them: {shown}"
    if "private" in facts:
        numbers = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in facts["private"].items())
        yield f"PRIVATE, not to be passed on: {numbers}"


def _up(epsilon: float) -> str:
    """Return a number of three digits that is not below it."""
    digits = 2 - math.floor(math.log10(epsilon)) if epsilon > 0 else 2
    return f"{math.ceil(epsilon * 10**digits - 1e-9) / 10**digits:g}"


def _history(history: list[dict[str, Any]]) -> Iterator[str]:
    if not history:
        return
    rows = [
        (
            str(one["episode"]),
            str(one["rounds"]),
            str(one["sparsity"]),
            "-" if one["noise_scale"] is None else f"{one['noise_scale']:.3g}",
            str(len(one["indices"])),
        )
        for one in history
    ]
    yield TextTable.fitting(_COLUMNS, rows).text(rows)
