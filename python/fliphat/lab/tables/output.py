"""A study as text, CSV, figure and a report of one HTML file."""

from __future__ import annotations

import csv
import html
import importlib.util
import math
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fliphat.lab.display import TextTable
from fliphat.lab.tables.results import Result
from fliphat.lab.tables.study import TableStudy, advice

__all__ = ["table_rows", "text", "write"]

_HEADER = ("policy", "epsilon", "reward", "95 %", "above constant", "learns by round")
_NAMES = {"constant": "best constant arm", "LinUCB": "LinUCB (not private)"}
_WIDTH = 92


def table_rows(study: TableStudy) -> list[tuple[str, ...]]:
    """Return a row of texts for each result, without the header."""
    return [_row(one) for one in study.results]


def _row(one: Result) -> tuple[str, ...]:
    above = ""
    if one.above_constant is not None:
        mean, low, high = one.above_constant
        above = f"{mean:+.3f}" + ("" if math.isnan(low) else f" +-{(high - low) / 2:.3f}")
    learns = ""
    if one.policy not in ("random", "constant"):
        learns = "not in time" if one.learns_from is None else f"{one.learns_from:,}"
    return (
        _NAMES.get(one.policy, one.policy),
        "" if one.epsilon is None else f"{one.epsilon:g}",
        f"{one.mean:.3f}",
        "" if math.isnan(one.low) else f"+-{one.mean - one.low:.3f}",
        above,
        learns,
    )


def text(study: TableStudy) -> str:
    """Return a study as a table and sentences."""
    rows = table_rows(study)
    lines = [
        *textwrap.wrap(_what(study), _WIDTH),
        "",
        TextTable.fitting(_HEADER, rows).text(rows),
        "",
        *(line for sentence in advice(study) for line in textwrap.wrap(sentence, _WIDTH)),
    ]
    best = study.recommended
    if best is not None:
        lines += ["", "Settings:", *_wrapped_call(study, best)]
    lines += ["", "Mind:"]
    for sentence in study.warnings:
        lines += textwrap.wrap(sentence, _WIDTH, initial_indent="- ", subsequent_indent="  ")
    return "\n".join(lines)


def _what(study: TableStudy) -> str:
    orders = [one.orders for one in study.results]
    repeats = str(min(orders)) if min(orders) == max(orders) else f"{min(orders)} to {max(orders)}"
    how = (
        "replayed from a log, rounds that match count" if study.logged else "each row once, reward 1 if right"
    )
    stopped = "" if study.complete else " Stopped early: these are the runs that were done."
    return (
        f"{study.source}: {study.rows:,} rows, {study.columns} features, {len(study.arms)} arms; {how}. Mean "
        f"reward over {repeats} random orders, with 95 % intervals; delta = {study.delta:g}.{stopped}"
    )


def call(study: TableStudy, one: Result) -> str:
    """Return the call that makes a private policy as it was played, seed aside."""
    numbers = study.settings[one.name]
    return f"{one.policy}({', '.join(f'{name}={value!r}' for name, value in numbers.items())})"


def _wrapped_call(study: TableStudy, one: Result) -> list[str]:
    return textwrap.wrap(call(study, one), _WIDTH - 2, initial_indent="  ", subsequent_indent="      ")


def write(study: TableStudy, folder: Path, command: str) -> list[Path]:
    """Write all files of a study; the paths, the report last."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "study.csv"]
    _write_csv(study, paths[0])
    if importlib.util.find_spec("matplotlib") is None:
        return paths
    pictures = [folder / "study.png", folder / "study.svg"]
    _draw(study, pictures, narrow=False)
    with tempfile.TemporaryDirectory() as scratch:
        narrow = Path(scratch) / "narrow.png"
        _draw(study, [narrow], narrow=True)
        page = _report(study, pictures[0], narrow, command)
    report = folder / "report.html"
    report.write_text(page, encoding="utf-8")
    return [*paths, *pictures, report]


def _write_csv(study: TableStudy, path: Path) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            (
                "policy",
                "epsilon",
                "orders",
                "rounds",
                "reward",
                "low_95",
                "high_95",
                "above_constant",
                "learns_by",
            )
        )
        for one in study.results:
            interval = ["" if math.isnan(end) else f"{end:.5f}" for end in (one.low, one.high)]
            above = "" if one.above_constant is None else f"{one.above_constant[0]:.5f}"
            epsilon = "" if one.epsilon is None else f"{one.epsilon:g}"
            start = "" if one.learns_from is None else one.learns_from
            writer.writerow(
                (one.policy, epsilon, one.orders, one.rounds, f"{one.mean:.5f}", *interval, above, start)
            )


def _headline(study: TableStudy) -> str:
    best = study.recommended
    if best is not None:
        return f"{best.policy} is worth it from epsilon = {best.epsilon:g} on"
    if any(one.epsilon is not None for one in study.results):
        return "No private policy clearly beats always showing one arm"
    return "Policies without privacy on this table"


def _report(study: TableStudy, wide: Path, narrow: Path, command: str) -> str:
    from fliphat.lab.display.page import page, pairs, picture, table, versions

    best = study.recommended
    sentences = "\n".join(f"<li>{html.escape(sentence)}</li>" for sentence in advice(study))
    minded = "\n".join(f"<li>{html.escape(sentence)}</li>" for sentence in study.warnings)
    take = "" if best is None else f"<h2>Settings</h2>\n<pre><code>{_code(study, best)}</code></pre>"
    again = "" if not command else f"<pre><code>{html.escape(command)}</code></pre>"
    body = f"""<header><h1>{html.escape(_headline(study))}</h1>
<p class="soft">{html.escape(_what(study))}</p></header>
<blockquote><strong>{html.escape(study.warnings[0])}</strong></blockquote>
<ul>
{sentences}
</ul>
{picture(wide, narrow, _headline(study))}
{table(_HEADER, table_rows(study))}
<p class="note">Above constant: against the arm that is best in hindsight when always shown, in the same
orders. Learns by round: half of the gain over random play is reached. Intervals are for the luck of orders
and noise and for the rows being a sample of people.</p>
{take}
<section><h2>Mind</h2><ul>
{minded}
</ul></section>
<section><h2>All settings</h2><details><summary>Arguments of every policy, ranges of columns</summary><dl>
{pairs((name, _plain(numbers)) for name, numbers in study.settings.items())}
{pairs((f"range of {name}", f"{low:g} to {high:g}") for name, (low, high) in study.ranges.items())}
</dl></details></section>
<section><h2>Run it again</h2>{again}
<dl>
{pairs([("arms", ", ".join(study.arms)), *versions()])}
</dl></section>
"""
    return page(f"fliphat: {study.source}", body)


def _code(study: TableStudy, one: Result) -> str:
    lines = [f"    {name}={value!r},\n" for name, value in study.settings[one.name].items()]
    return html.escape(f"{one.policy}(\n{''.join(lines)})")


def _plain(numbers: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in numbers.items())


def _draw(study: TableStudy, paths: Sequence[Path], *, narrow: bool) -> None:
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot

    from fliphat.lab.display.figure_style import STYLE, write_title

    shape, size = ((2, 1), (4.4, 8.2)) if narrow else ((1, 2), (11.0, 4.6))
    with matplotlib.rc_context(STYLE):
        figure, axes = pyplot.subplots(*shape, figsize=size, layout="constrained")
        _panel_of_epsilons(axes[0], study)
        _panel_of_rounds(axes[1], study)
        note = f"{study.source}: {study.rows:,} rows, {len(study.arms)} arms; delta = {study.delta:g}"
        title = textwrap.fill(_headline(study), 40 if narrow else 110)
        write_title(figure, title, textwrap.fill(note, 56 if narrow else 160))
        for path in paths:
            undated = {"Software": None} if path.suffix == ".png" else {"Date": None}
            figure.savefig(path, metadata=undated)
        pyplot.close(figure)


def _colours(study: TableStudy) -> dict[str, str]:
    from fliphat.lab.display.figure_style import GREY, ORANGE

    fixed = {"random": GREY, "constant": "#000000", "LinUCB": ORANGE}
    # From the palette of Okabe and Ito, as the others.
    spare = iter(("#0072B2", "#009E73", "#CC79A7", "#E69F00"))
    return {one.policy: fixed.get(one.policy) or next(spare) for one in _once(study.results)}


def _once(results: Sequence[Result]) -> list[Result]:
    return list({one.policy: one for one in results}.values())


def _panel_of_epsilons(axes: Any, study: TableStudy) -> None:
    from fliphat.lab.display.figure_style import label_lines, shade

    colours, ends = _colours(study), []
    for policy, colour in colours.items():
        own = [one for one in study.results if one.policy == policy]
        if own[0].epsilon is None:
            axes.axhline(own[0].mean, color=colour, linestyle="--", linewidth=1.2)
            ends.append((own[0].mean, policy, colour))
            continue
        own.sort(key=lambda one: one.epsilon or 0.0)
        x = [one.epsilon for one in own]
        axes.plot(x, [one.mean for one in own], "o-", color=colour)
        shade(axes, x, [one.low for one in own], [one.high for one in own], colour)  # type: ignore[arg-type]
        ends.append((own[-1].mean, policy, colour))
    epsilons = sorted({one.epsilon for one in study.results if one.epsilon is not None})
    if epsilons:
        axes.set_xscale("log")
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
    axes.set_xlabel(r"$\varepsilon$")
    axes.set_ylabel("mean reward a round")
    label_lines(axes, ends)


def _panel_of_rounds(axes: Any, study: TableStudy) -> None:
    from fliphat.lab.display.figure_style import label_lines, thousands

    colours, ends = _colours(study), []
    best = study.recommended
    epsilons = [one.epsilon for one in study.results if one.epsilon is not None]
    shown = best.epsilon if best is not None else max(epsilons, default=None)
    for one in study.results:
        if one.epsilon not in (None, shown):
            continue
        parts = len(one.curve)
        x = [one.rounds * (part + 0.5) / parts for part in range(parts)]
        dashed = "--" if one.policy in ("random", "constant") else "-"
        axes.plot(x, one.curve, dashed, color=colours[one.policy], linewidth=1.2 if dashed == "--" else 1.8)
        ends.append((sum(one.curve[-3:]) / 3, one.policy, colours[one.policy]))
    axes.set_xlabel("round" if shown is None else rf"round ($\varepsilon$ = {shown:g})")
    axes.set_ylabel("mean reward in twentieths of the run")
    thousands(axes.xaxis)
    label_lines(axes, ends)
