"""Figures of experiments: panels side by side, the headline above, what was run below; PNG and SVG."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any, Final

from fliphat.lab.display.figure_style import (
    GREY,
    ORANGE,
    STYLE,
    epsilon_colours,
    label_lines,
    shade,
    thousands,
    write_title,
)
from fliphat.lab.experiments.experiment import PAPER, Experiment, at_the_end
from fliphat.lab.experiments.sweep import Summary

#: Policies without privacy: what figures call them, and their colours.
BASELINES: Final = {
    "random": ("playing at random", GREY),
    "Lasso": ("Lasso, no privacy", ORANGE),
    "no privacy": ("no privacy", "black"),
}
_DIAMOND: dict[str, Any] = {
    "marker": "D", "markersize": 7, "markerfacecolor": "white", "linestyle": "none", "zorder": 5
}  # fmt: skip
#: Figures that are less wide than this, in inches, are for telephones.
_PHONE: Final = 5.0
_PUBLISHED: Final = "published; its privacy noise is too small for the proof"


def draw_over_time(axes: Any, experiment: Experiment, summaries: Sequence[Summary]) -> None:
    """Draw cumulative regret against rounds, a curve for each cell, beside what was published."""
    colours = epsilon_colours([s.label("epsilon") for s in summaries if s.label("epsilon")])
    curves: dict[Any, list[Summary]] = {}
    for summary in summaries:
        curves.setdefault(summary.labels, []).append(summary)
    ends: list[Any] = []
    published: list[Any] = []
    beside: list[Any] = []
    for curve in curves.values():
        epsilon = curve[0].label("epsilon")
        if epsilon:
            name, colour = _epsilon(epsilon), colours[epsilon]
        else:
            name, colour = BASELINES[curve[0].label("policy")]
        x = [s.round for s in curve]
        if curve[0].label("policy") == PAPER:
            beside = axes.plot(x, [s.mean for s in curve], ":", color=colour, linewidth=1.4)
            continue
        last = draw_means(axes, x, curve, colour, linestyle="-" if epsilon else "--")
        ends.append((last, name, colour))
        height = experiment.published_beside(curve[-1])
        if height is not None:
            published.append((x[-1], height, colour))
    if beside:
        beside = axes.plot([], [], ":", color=GREY, label="the paper's algorithm and constants, same seeds")
    draw_published(axes, published, beside)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(experiment.cells[0].checkpoints[0], experiment.cells[0].rounds)
    axes.set_xlabel("round $t$")
    axes.set_ylabel("cumulative regret")
    thousands(axes.xaxis)
    thousands(axes.yaxis)
    label_lines(axes, ends)


def draw_against_axis(
    axes: Any,
    experiment: Experiment,
    summaries: Sequence[Summary],
    *,
    axis_name: str,
    beside_published: bool = True,
    crowded: Sequence[float] = (),
) -> None:
    """Draw the last round's regret against the experiment's axis, a curve for each epsilon.

    `axes`, `experiment`, `summaries`: as for every panel.
    `beside_published`: True draws published values and a logarithmic height, which they need; False a
    linear height.
    `crowded`: ticks to leave out, because their numbers would touch.
    """
    ends = at_the_end(summaries)
    colours = epsilon_colours([s.label("epsilon") for s in ends])
    labels = []
    published: list[tuple[float, float, Any]] = []
    for epsilon, colour in colours.items():
        curve = sorted_by(experiment.axis, (s for s in ends if s.label("epsilon") == epsilon))
        x = [s.label(experiment.axis) for s in curve]
        last = draw_means(axes, x, curve, colour, marker="o", markersize=4)
        labels.append((last, _epsilon(epsilon), colour))
        known = [(s.label(experiment.axis), experiment.published_beside(s)) for s in curve]
        points = [(place, height) for place, height in known if height is not None and beside_published]
        if points:
            axes.plot(*zip(*points, strict=True), ":", linewidth=1, color=colour)
        published.extend((place, height, colour) for place, height in points)
    draw_published(axes, published)
    axes.set_xscale("log")
    if beside_published:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0)
    ticks = sorted({s.label(experiment.axis) for s in ends})
    thousands(axes.xaxis)
    axes.set_xticks([tick for tick in ticks if tick not in crowded])
    axes.xaxis.minorticks_off()
    axes.set_xlabel(axis_name)
    axes.set_ylabel("cumulative regret")
    thousands(axes.yaxis)
    label_lines(axes, labels)


def draw_means(
    axes: Any,
    x: Sequence[float],
    curve: Sequence[Summary],
    colour: Any,
    *,
    divisor: float = 1.0,
    **line: Any,
) -> float:
    """Draw means with their intervals and return the last mean, all divided by `divisor`."""
    y = [s.mean / divisor for s in curve]
    axes.plot(x, y, color=colour, **line)
    high = [s.high / divisor for s in curve]
    # A log axis has no place for a bound at or below zero.
    smallest = 0.002 * min((value for value in high if value > 0), default=1.0)
    low = [s.low if math.isnan(s.low) else max(s.low / divisor, smallest) for s in curve]
    shade(axes, x, low, high, colour)
    return y[-1]


def draw_published(axes: Any, points: Sequence[tuple[float, float, Any]], beside: Sequence[Any] = ()) -> None:
    """Draw published values as diamonds, with a legend that says what is wrong with them."""
    for x, y, colour in points:
        axes.plot(x, y, color=colour, clip_on=False, **_DIAMOND)
    if points:
        legend(axes, [*axes.plot([], [], color=GREY, label=_PUBLISHED, **_DIAMOND), *beside])


def legend(axes: Any, handles: Any) -> None:
    """Put a legend above the axes, on the left, in short lines where the figure is for a telephone."""
    width = 38 if axes.figure.get_figwidth() < _PHONE else 200
    names = [textwrap.fill(str(one.get_label()), width) for one in handles]
    axes.legend(handles, names, loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=9)


def sorted_by(label: str, summaries: Any) -> list[Summary]:
    """Return summaries in ascending order of a label that is a number."""
    return sorted(summaries, key=lambda s: float(s.label(label)))


def _epsilon(value: float) -> str:
    return rf"$\varepsilon$ = {value:g}"


# Width in inches and letters a line of the title, for figures of one panel and of two.
_SIZES = {1: (7.6, 80), 2: (10.5, 110)}
_HEIGHT = 4.8
# The same for telephones: panels stand one above the other, and letters stay as large.
_NARROW, _NARROW_LETTERS, _NARROW_NOTE = (4.4, 4.3), 44, 62


def draw(experiment: Experiment, summaries: Sequence[Summary], *, narrow: bool = False) -> Any:
    """Return an experiment's figure; narrow for the width of a telephone."""
    import matplotlib
    from matplotlib.figure import Figure

    count = len(experiment.panels)
    width, letters = _SIZES[count]
    shape, size = (1, count), (width, _HEIGHT)
    if narrow:
        letters, shape, size = _NARROW_LETTERS, (count, 1), (_NARROW[0], count * _NARROW[1])
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(*shape, squeeze=False)
        # The last panel first: the order in which identifiers in the SVG are given.
        for panel, place in reversed(list(zip(experiment.panels, axes.flat, strict=True))):
            panel(place, experiment, summaries)
        counts = sorted({summary.repeats for summary in summaries})
        repeats = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        title = textwrap.fill(experiment.sentence(summaries), letters)
        note = (
            f"{experiment.name}: mean of {repeats} repeats with 95 % intervals; "
            rf"$\delta$ = {experiment.delta}, T = {experiment.cells[0].rounds:,}"
        )
        write_title(figure, title, textwrap.fill(note, _NARROW_NOTE) if narrow else note)
    return figure
