"""A progress bar with time left, on standard error and only if that is a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

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
