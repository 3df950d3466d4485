"""A study as text, CSV, a figure, a card for notebooks and a report of one HTML page."""

from __future__ import annotations

import csv
import html
import importlib.util
import math
import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fliphat.html import bullets, pairs, paragraph, table
from fliphat.html import card as html_card
from fliphat.lab.display import TextTable
from fliphat.lab.display.figure_style import LIGHT, LINES, STYLE, label_lines, shade, thousands, write_title
from fliphat.lab.tables.runs import Result
from fliphat.lab.tables.sentences import notes

if TYPE_CHECKING:
    from fliphat.lab.tables.study import TableStudy

_MARKS = {"random": "soft", "constant": "ink", "LinUCB": "orange"}
_LONGEST = 14


def draw(study: TableStudy, *, narrow: bool = False) -> Any:
    """Return the figure; narrow for the width of a telephone."""
    import matplotlib
    from matplotlib.figure import Figure

    shape, size = ((2, 1), (4.4, 7.6)) if narrow else ((1, 2), (9.2, 4.2))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        over_epsilon, over_time = figure.subplots(*shape)
        _against_epsilon(over_epsilon, study)
        _over_time(over_time, study)
        note = f"{study.source}: {study.rows:,} rows, {len(study.arms)} arms; delta = {study.delta:g}"
        write_title(figure, "", textwrap.fill(note, 60 if narrow else 160))
    return figure


def shown_epsilon(study: TableStudy) -> float | None:
    """Return the epsilon whose learning is drawn: the recommended one, or the largest."""
    if study.recommended is not None:
        return study.recommended.epsilon
    return max((one.epsilon for one in study.results if one.epsilon is not None), default=None)


def _named(study: TableStudy, policy: str) -> str:
    arm = textwrap.shorten(study.constant_arm, _LONGEST, placeholder="…") or study.constant_arm[:_LONGEST]
    return {"random": "random", "constant": f"always {arm}", "LinUCB": "no privacy"}.get(policy, policy)


def _colours(study: TableStudy) -> dict[str, str]:
    spare = iter(LINES)
    policies = dict.fromkeys(one.policy for one in study.results)
    return {policy: LIGHT[_MARKS.get(policy) or next(spare)] for policy in policies}


def _against_epsilon(axes: Any, study: TableStudy) -> None:
    ends = []
    epsilons = sorted({one.epsilon for one in study.results if one.epsilon is not None})
    span = (epsilons[0], epsilons[-1]) if len(epsilons) > 1 else (0.9, 1.1)
    for policy, colour in _colours(study).items():
        own = [one for one in study.results if one.policy == policy]
        if own[0].epsilon is None:
            # A line over all epsilons with its own band.
            own = [own[0], own[0]]
            axes.plot(span, [own[0].mean] * 2, "--", color=colour, linewidth=1.4)
            shade(axes, span, [own[0].low] * 2, [own[0].high] * 2, colour)
        else:
            own.sort(key=lambda one: one.epsilon or 0.0)
            x = [one.epsilon or 0.0 for one in own]
            axes.plot(x, [one.mean for one in own], "o-", color=colour)
            shade(axes, x, [one.low for one in own], [one.high for one in own], colour)
        ends.append((own[-1].mean, _named(study, policy), colour))
    if epsilons:
        axes.set_xscale("log")
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
    axes.set_xlabel("epsilon (smaller is more private)")
    axes.set_title("Mean reward a round", loc="left")
    label_lines(axes, ends)


def _over_time(axes: Any, study: TableStudy) -> None:
    colours, ends = _colours(study), []
    shown = shown_epsilon(study)
    for one in study.results:
        if one.epsilon in (None, shown):
            _curve(axes, one, colours[one.policy])
            ends.append((sum(one.curve[-3:]) / 3, _named(study, one.policy), colours[one.policy]))
    axes.set_xlabel("round")
    axes.set_title("While it learns" + ("" if shown is None else f", epsilon = {shown:g}"), loc="left")
    thousands(axes.xaxis)
    axes.locator_params(axis="x", nbins=5)
    label_lines(axes, ends)


def _curve(axes: Any, one: Result, colour: str) -> None:
    parts = len(one.curve)
    x = [one.rounds * (part + 0.5) / parts for part in range(parts)]
    if one.policy in ("random", "constant"):
        axes.plot(x, [one.mean] * parts, "--", color=colour, linewidth=1.4)
        return
    axes.plot(x, one.curve, color=colour)
    # From the lowest to the highest order: a run that goes wrong is seen.
    axes.fill_between(
        x,
        [min(part) for part in zip(*one.curves, strict=True)],
        [max(part) for part in zip(*one.curves, strict=True)],
        color=colour,
        alpha=0.14,
        linewidth=0,
    )


_HEADER = ("policy", "epsilon", "reward", "95 %", "single orders", "above constant", "half learned by")
#: Columns of ``study.csv`` and of the data frame.
RECORD = (
    "policy", "epsilon", "orders", "rounds", "reward", "low_95", "high_95", "lowest_order", "highest_order",
    "above_constant", "above_low_95", "above_high_95", "half_learned_by",
)  # fmt: skip
_WIDTH = 92
_LISTED = 8


def table_rows(study: TableStudy) -> list[tuple[str, ...]]:
    """Return a row of texts for each result, without the header."""
    return [_row(study, one) for one in study.results]


def _row(study: TableStudy, one: Result) -> tuple[str, ...]:
    names = {
        "random": "random play",
        "constant": f"always {study.constant_arm}",
        "LinUCB": "LinUCB (not private)",
    }
    learns = ""
    if one.policy not in ("random", "constant"):
        learns = "not in time" if one.learns_from is None else f"round {one.learns_from:,}"
    return (
        names.get(one.policy, one.policy),
        "" if one.epsilon is None else f"{one.epsilon:g}",
        f"{one.mean:.3f}",
        "" if math.isnan(one.low) else f"+-{one.mean - one.low:.3f}",
        f"{min(one.means):.3f} to {max(one.means):.3f}",
        "" if one.above_constant is None else _with_half(*one.above_constant),
        learns,
    )


def _with_half(mean: float, low: float, high: float) -> str:
    return f"{mean:+.3f}" + ("" if math.isnan(low) else f" +-{(high - low) / 2:.3f}")


def text(study: TableStudy) -> str:
    """Return a study as its answer, a table and sentences."""
    rows = table_rows(study)
    lines = [
        *textwrap.wrap(study.answer, _WIDTH),
        "",
        *textwrap.wrap(_what(study), _WIDTH),
        "",
        TextTable.fitting(_HEADER, rows).text(rows),
        "",
        *(line for sentence in notes(study) for line in _bullet(sentence)),
    ]
    if study.recommended is not None:
        lines += ["", "Take this:", *textwrap.indent(_code(study, study.recommended), "  ").splitlines()]
    lines += ["", "Mind:", *(line for sentence in study.warnings for line in _bullet(sentence))]
    return "\n".join(lines)


def _bullet(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, _WIDTH, initial_indent="- ", subsequent_indent="  ")


def _what(study: TableStudy) -> str:
    """Return what was played, rounds first."""
    orders = [one.orders for one in study.results]
    repeats = str(min(orders)) if min(orders) == max(orders) else f"{min(orders)} to {max(orders)}"
    random = study.result("random")
    rounds = f"{random.rounds:,} rounds, each row once"
    if study.logged:
        rounds = (
            f"about {random.rounds:,} rounds a run out of {study.rows:,} logged rows (a round counts if the "
            f"policy shows the logged arm)"
        )
    shares = [f"{arm} {share:.0%}" for arm, share in zip(study.arms, study.shares, strict=True)]
    more = f" and {len(shares) - _LISTED} more" if len(shares) > _LISTED else ""
    kind = "shown" if study.logged else "best"
    return (
        f"{study.source}: {rounds}; {len(study.arms)} arms ({kind}: {', '.join(shares[:_LISTED])}{more}); "
        f"{len(study.encoder.columns):,} columns as {study.columns - 1:,} features. Mean reward over "
        f"{repeats} random orders, with 95 % intervals; delta = {study.delta:g}."
    )


def _code(study: TableStudy, one: Result) -> str:
    """Return what makes a private policy and plays a round, as it was played here, seed aside."""
    arms, given = list(study.arms), dict(study.settings[one.name])
    numpy, person = "", "person"
    if one.policy == "FLIPHAT":
        # Each arm has columns of its own. Dense: of `Crossed` the policy says that arms should have names.
        numpy, person = (
            "import numpy as np\n\n",
            f"np.kron(np.eye({len(arms)}), np.append(1, person)), arms={arms!r}",
        )
    else:
        given["arms"] = arms
    imports = f"{numpy}from fliphat import {one.policy}\nfrom fliphat.contexts import Encoder"
    lines = "".join(f"    {name}={value!r},\n" for name, value in given.items())
    return (
        f'{imports}\n\nencoder = Encoder.from_json("encoder.json")\npolicy = {one.policy}(\n{lines})\n'
        f"person = encoder.encode(row)  # a dict with the table's columns\n"
        f"decision = policy.select({person})\npolicy.update(decision, reward)"
    )


def records(study: TableStudy) -> list[tuple[Any, ...]]:
    """Return a row for each result, with numbers."""
    none = (math.nan,) * 3
    return [
        (
            one.policy, one.epsilon, one.orders, one.rounds, one.mean, one.low, one.high, min(one.means),
            max(one.means), *(one.above_constant or none), one.learns_from,
        )
        for one in study.results
    ]  # fmt: skip


def card(study: TableStudy) -> str:
    """Return what a notebook shows."""
    told = bullets([*notes(study), *study.warnings])
    return html_card(study.answer, paragraph(_what(study)), table(_HEADER, table_rows(study)), told)


def write(study: TableStudy, folder: Path, command: str) -> list[Path]:
    """Write all files of a study; the paths, the report last."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "study.csv", folder / "encoder.json"]
    with open(paths[0], "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([RECORD, *([_cell(value) for value in row] for row in records(study))])
    study.encoder.to_json(paths[1])
    if importlib.util.find_spec("matplotlib") is None:
        return paths
    from fliphat.lab.display.figure_style import save

    pictures = [folder / "study.png", folder / "study.svg"]
    save(study.plot(), pictures)
    report = folder / "report.html"
    report.write_text(_report(study, command), encoding="utf-8")
    return [*paths, *pictures, report]


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _report(study: TableStudy, command: str) -> str:
    from fliphat.lab.display.page import page, picture, versions
    from fliphat.lab.tables.output import draw

    minded = ["People come once each, in random order, and are like those of the table.", *study.warnings[1:]]
    best = study.recommended
    take = (
        ""
        if best is None
        else f"<h2>Take this</h2>\n<pre><code>{html.escape(_code(study, best))}</code></pre>"
    )
    again = "" if not command else f"<pre><code>{html.escape(command)}</code></pre>"
    ranges = [(f"range of {name}", f"{low:g} to {high:g}") for name, (low, high) in study.ranges.items()]
    settings = [
        (name, ", ".join(f"{key}={value!r}" for key, value in numbers.items()))
        for name, numbers in study.settings.items()
    ]
    body = f"""<header><h1>{html.escape(study.answer)}</h1>
<p class="soft">{html.escape(_what(study))}</p></header>
{picture(partial(draw, study), study.answer)}
{bullets(notes(study))}
<div class="study">{table(_HEADER, table_rows(study))}</div>
<p class="note">Above constant: against always showing {html.escape(study.constant_arm)} in the same orders.
Single orders: the worst and the best run. Half learned by: half of the gain over random play is there.</p>
{take}
<section><h2>What was assumed</h2>
<blockquote>{html.escape(study.warnings[0])}</blockquote>
{bullets(minded)}
<details><summary>Arguments of every policy, ranges of columns, versions</summary><dl>
{pairs([*settings, *ranges, *versions()])}
</dl></details></section>
<section><h2>Repeat it</h2>{again}</section>
"""
    return page(f"fliphat: {study.source}", body)
