"""A plan as text, a card for notebooks, a picture and one HTML page."""

from __future__ import annotations

import html
import math
import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fliphat.html import bullets, paragraph, table
from fliphat.html import card as html_card
from fliphat.lab.display import TextTable

if TYPE_CHECKING:
    from fliphat.lab.planning.forecast import Plan

_HEADER = (
    "episode", "from round", "rounds", "columns picked", "noise", "finds sizes from", "then a round loses",
)  # fmt: skip
_EXPLAINED = (
    "noise: standard deviation of the privacy noise in a released coefficient.",
    "finds sizes from: coefficients of at least this size have been found at least three times in five.",
    "then a round loses: regret of a round that this episode's estimate plays, as a share of random play's.",
)
_WIDTH = 92


def write(made: Plan, out: Path, command: str = "") -> None:
    """Write a plan as a picture, or as a page if the file ends in .html."""
    from fliphat.lab.display.figure_style import save

    if out.suffix.lower() != ".html":
        save(draw(made), [out])
        return
    from fliphat.lab.display.page import page, picture

    again = "" if not command else f"<h2>Repeat it</h2><pre><code>{html.escape(command)}</code></pre>"
    body = f"""<header><h1>{html.escape(made.answer)}</h1>
<p class="soft">{html.escape(_what(made))}</p></header>
{picture(partial(draw, made), made.answer)}
{bullets(notes(made))}
<details><summary>Every episode</summary>{table(_HEADER, _rows(made))}
<p class="note">{html.escape(" ".join(_EXPLAINED))}</p></details>
<h2>What was assumed</h2>
{bullets(made.assumptions)}
<h2>What is protected</h2>
<p>{html.escape(made.guarantee)}</p>
{again}
"""
    out.write_text(page("fliphat: a plan", body), encoding="utf-8")


def answer(made: Plan) -> str:
    """Return from when on such a policy is worth it."""
    rounds, start, epsilon = made.settings["rounds"], made.learning_starts, made.settings["epsilon"]
    if start is None:
        return (
            f"With epsilon = {epsilon:g} a round does not come to lose less than half of what random play "
            f"loses within {rounds:,} rounds."
        )
    return (
        f"With epsilon = {epsilon:g} a round loses less than half of what random play loses from about round "
        f"{start:,} on."
    )


def notes(made: Plan) -> list[str]:
    """Return what else is true and worth knowing."""
    rounds, size = made.settings["rounds"], made.settings["coefficient"]
    start, half = made.learning_starts, made.with_half_epsilon
    told = []
    in_time = [one for one in made.episodes if one.released_before <= rounds]
    if not in_time:
        first = made.episodes[0].released_before
        told.append(f"The first estimate comes after {first - 1:,} rounds: until then play is random.")
    elif start is None and in_time[-1].smallest_coefficient > size:
        told.append(
            f"Coefficients of {size:g} are not found in time: more rounds or a larger epsilon would help."
        )
    elif start is not None:
        later = f"not within {rounds:,} rounds" if half is None else f"from about round {half:,} on"
        if half is not None and half < 1.1 * start:
            later = "about as soon"
        told.append(f"With epsilon = {made.settings['epsilon'] / 2:g}, half of it, {later}.")
    if not in_time:
        return told
    share = made.regret / made.random_regret
    told.append(f"Regret of {rounds:,} rounds: about {made.regret:,.0f}, {_percent(share)} of random play's.")
    low, high = made.regret_range
    return [*told, f"Runs differ: eight in ten are between {low:,.0f} and {high:,.0f}."]


def _what(made: Plan) -> str:
    numbers = made.settings
    return (
        f"{numbers['dim']:,} columns, at most {numbers['sparsity']} of them in an estimate; delta = "
        f"{numbers['delta']:g}; {numbers['rounds']:,} rounds. Worked out from public numbers alone: no "
        "data was seen."
    )


def _rows(made: Plan) -> list[tuple[str, ...]]:
    return [
        (
            str(episode.episode),
            f"{episode.first_round:,}",
            f"{episode.rounds:,}",
            str(episode.picks),
            _significant(episode.noise),
            _size(episode.smallest_coefficient),
            _percent(episode.regret_share),
        )
        for episode in made.episodes
    ]


def text(made: Plan) -> str:
    """Return a plan as its answer, a table and sentences."""
    rows = _rows(made)
    lines = [
        *textwrap.wrap(made.answer, _WIDTH),
        *(line for sentence in notes(made) for line in textwrap.wrap(sentence, _WIDTH)),
        "",
        TextTable.fitting(_HEADER, rows, left=()).text(rows),
        "",
        *_EXPLAINED,
        "",
        "This assumes:",
        *(f"- {sentence}" for sentence in made.assumptions),
    ]
    return "\n".join(lines)


def card(made: Plan) -> str:
    """Return what a notebook shows."""
    told = "".join(paragraph(sentence) for sentence in (_what(made), *notes(made)))
    assumed = f"This assumes:{bullets(made.assumptions)}"
    return html_card(made.answer, told, table(_HEADER, _rows(made)), assumed)


def _size(coefficient: float) -> str:
    return "none" if math.isinf(coefficient) else _significant(coefficient)


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.095 else "under 0.1%" if share < 0.001 else f"{share:.1%}"


def _significant(number: float) -> str:
    """Return a number with two significant digits and never as a bare 0."""
    if not 1e-5 <= abs(number) < 1e6:
        return f"{number:.1e}"
    digits = max(0, 1 - math.floor(math.log10(abs(number))))
    return f"{number:,.{digits}f}"


def draw(made: Plan, *, narrow: bool = False) -> Any:
    """Return the figure: what a round loses over time, with its band, and from when on that is half."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter, PercentFormatter

    from fliphat.lab.display.figure_style import (
        GREY,
        LIGHT,
        ORANGE,
        STYLE,
        label_lines,
        shade,
        thousands,
        write_title,
    )

    epsilon, rounds = made.settings["epsilon"], made.settings["rounds"]
    steps = [one for one in made.episodes if one.released_before <= rounds]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.4, 4.2) if narrow else (8.4, 4.2), layout="constrained")
        axes = figure.subplots()
        x = [one.released_before for one in steps]
        ends = [(1.0, "random play", GREY), (0.5, "half of it", ORANGE)]
        if steps:
            colour = LIGHT["blue"]
            course = {one.released_before: one.regret_share for one in steps}
            if made.learning_starts is not None:
                # Other courses than the middling one may bring it to a half between two of its episodes.
                course.setdefault(made.learning_starts, 0.5)
            axes.plot(*zip(*sorted(course.items()), strict=True), color=colour)
            axes.plot(x, [one.regret_share for one in steps], "o", color=colour, markersize=4)
            low, high = zip(*(one.regret_band for one in steps), strict=True)
            shade(axes, x, low, high, colour)
            ends.append((steps[-1].regret_share, f"epsilon = {epsilon:g}", colour))
        for level, _, colour in ends[:2]:
            axes.axhline(level, color=colour, linestyle="--", linewidth=1.4)
        if not steps:
            axes.text(0.5, 0.7, notes(made)[0], transform=axes.transAxes, ha="center", fontsize=9)
        if made.learning_starts is not None:
            axes.plot(made.learning_starts, 0.5, "o", color=ORANGE, markersize=8, zorder=4)
        axes.set_xscale("log")
        axes.set_xlim(min([rounds / 2, *x]) / 1.3, rounds)
        axes.set_ylim(0.0, 1.05)
        axes.set_xlabel("round")
        axes.set_title(
            f"What a round loses, epsilon = {epsilon:g} (band: eight runs in ten)",
            loc="left",
            fontsize=9 if narrow else 11,
        )
        few = rounds < 50 * min([rounds, *x])  # then powers of ten alone would leave an axis without numbers
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        thousands(axes.xaxis)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        label_lines(axes, ends)
        write_title(figure, "", textwrap.fill(_what(made), 60 if narrow else 120))
    return figure
