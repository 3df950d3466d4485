"""`fliphat bench`: the table of ratios."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fliphat import __version__, _native
from fliphat.lab.benchmark.races import Race, best_times, one_thread_blas, races
from fliphat.lab.display import Progress, TextTable

_HEADER = ("kernel", "size", "time", "x plain", "x plain, 2 thr", "x best NumPy", "of read bandwidth")


def show_ratios(repeats: int, *, as_json: bool) -> int:
    """Run every race and print what came out; 1 if one of them failed."""
    results: list[Result] = []
    all_races = list(races())
    try:
        with one_thread_blas(), Progress("racing", len(all_races)) as progress:
            for make in all_races:
                results.append(_result(make, repeats))
                progress.advance(1)
    except KeyboardInterrupt:
        print(f"\nstopped after {len(results)} of {len(all_races)} races, which follow", file=sys.stderr)
        _print(results, repeats, as_json=as_json)
        raise
    _print(results, repeats, as_json=as_json)
    return int(any(result.failure for result in results))


@dataclass(frozen=True)
class Result:
    """What came out of a race: the best times, or why there are none."""

    name: str
    size: str
    times: dict[str, float]
    failure: str | None = None


def _result(make: Callable[[], Race], repeats: int) -> Result:
    """Run one race. One that fails has a row that says so, and does not take the others with it."""
    name, size = getattr(make, "func", make).__name__.strip("_"), ""
    try:
        race = make()
        name, size = race.name, race.size
        return Result(name, size, best_times(race, repeats))
    except Exception as failure:  # whatever a kernel or twin raises
        return Result(name, size, {}, f"{type(failure).__name__}: {failure}")


def _print(results: list[Result], repeats: int, *, as_json: bool) -> None:
    if as_json:
        records = [
            {"kernel": result.name, "size": result.size, "seconds": result.times}
            | ({"failure": result.failure} if result.failure else {})
            for result in results
        ]
        print(json.dumps({"machine": _machine(), "races": records}, indent=2))
        return
    rows = [_row(result) for result in results]
    print(TextTable.fitting(_HEADER, rows, left=range(len(_HEADER)), markdown=True).text(rows))
    for result in results:
        if result.failure:
            print(f"{result.name}: {result.failure}", file=sys.stderr)
    print(f"\n{_machine()}; best of {repeats}, one thread unless said otherwise")


def _row(result: Result) -> tuple[str, ...]:
    times = result.times
    if result.failure:
        return (result.name, result.size, "failed", *[""] * (len(_HEADER) - 3))

    def ratio(slow: str, fast: str) -> str:
        return f"{times[slow] / times[fast]:.1f}" if slow in times and fast in times else ""

    bandwidth = ""
    if "read bandwidth" in times:
        bandwidth = f"{100 * times['read bandwidth'] / times['two threads']:.0f} %, 2 thr"
    return (
        result.name,
        result.size,
        f"{times['kernel'] * 1e3:.3g} ms",
        ratio("plain NumPy", "kernel"),
        ratio("plain NumPy", "two threads"),
        ratio("best NumPy", "kernel"),
        bandwidth,
    )


def _machine() -> str:
    return (
        f"fliphat {__version__}, NumPy {np.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()} with {_native.simd_levels()[-1]}, {os.cpu_count()} cores"
    )
