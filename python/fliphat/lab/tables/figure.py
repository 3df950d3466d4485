"""The figure of a study: reward against epsilon, and how it was learned over time."""

from __future__ import annotations

import textwrap
from typing import Any

from fliphat.lab.display.figure_style import STYLE, label_lines, shade, thousands, write_title
from fliphat.lab.display.palette import LIGHT, LINES
from fliphat.lab.tables.results import Result
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
