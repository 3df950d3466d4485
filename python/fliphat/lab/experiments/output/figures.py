"""The frame of every figure: panels side by side, the headline above, what was run below; PNG and SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from fliphat.lab.display.figure_style import STYLE, write_title
from fliphat.lab.experiments.experiment import Experiment
from fliphat.lab.experiments.run.summary import Summary

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
