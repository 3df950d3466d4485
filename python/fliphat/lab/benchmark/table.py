"""`fliphat bench`: the table of ratios."""

from __future__ import annotations

import json
import os
import platform
import sys

import numpy as np

from fliphat import __version__, _native
from fliphat.lab.benchmark.races import Race, best_times, races
from fliphat.lab.display import Progress, TextTable

_HEADER = ("kernel", "size", "time", "x plain", "x plain, 2 thr", "x best NumPy", "of read bandwidth")


def show_ratios(repeats: int, *, as_json: bool) -> int:
    """Run every race and print what came out."""
    results: list[tuple[Race, dict[str, float]]] = []
    all_races = list(races())
    try:
        with Progress("racing", len(all_races)) as progress:
            for make in all_races:
                race = make()
                results.append((race, best_times(race, repeats)))
                progress.advance(1)
    except KeyboardInterrupt:
        print(f"\nstopped after {len(results)} of {len(all_races)} races, which follow", file=sys.stderr)
        _print(results, repeats, as_json=as_json)
        raise
    _print(results, repeats, as_json=as_json)
    return 0


def _print(results: list[tuple[Race, dict[str, float]]], repeats: int, *, as_json: bool) -> None:
    if as_json:
        records = [{"kernel": race.name, "size": race.size, "seconds": times} for race, times in results]
        print(json.dumps({"machine": _machine(), "races": records}, indent=2))
        return
    rows = [_row(race, times) for race, times in results]
    print(TextTable.fitting(_HEADER, rows, left=range(len(_HEADER)), markdown=True).text(rows))
    print(f"\n{_machine()}; best of {repeats}, one thread unless said otherwise")


def _row(race: Race, times: dict[str, float]) -> tuple[str, ...]:
    def ratio(slow: str, fast: str) -> str:
        return f"{times[slow] / times[fast]:.1f}" if slow in times and fast in times else ""

    bandwidth = ""
    if "read bandwidth" in times:
        bandwidth = f"{100 * times['read bandwidth'] / times['two threads']:.0f} %, 2 thr"
    return (
        race.name,
        race.size,
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
