"""The figures, one for each experiment, as PNG and SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fliphat.experiments.catalog import NO_PRIVACY, Experiment
from fliphat.experiments.findings import finding
from fliphat.experiments.style import (
    GREY,
    ORANGE,
    STYLE,
    epsilon_colours,
    label_lines,
    shade,
    thousands,
)
from fliphat.experiments.summary import Summary
from fliphat.experiments.table import at_the_end, published_for

__all__ = ["draw", "draw_to"]

_AXIS_NAMES = {"dim": "dimension $d$", "sparsity": "sparsity $s$ given to the policy", "arms": "arms $K$"}
# Ticks whose numbers would touch on a logarithmic axis.
_CROWDED = (1600, 2400, 2800, 3200, 3600, 50)
_DIAMOND: dict[str, Any] = {
    "marker": "D", "markersize": 7, "markerfacecolor": "white", "linestyle": "none", "zorder": 5
}  # fmt: skip
_PUBLISHED = "published; its privacy noise is too small for the proof"
_VARIANTS = {
    "paper constants": ("#CC79A7", "the paper's constants (not proven)"),
    "honest Laplace": ("#E69F00", "its Laplace peeling, proven"),
    "exponential mechanism": ("#56B4E9", "exponential mechanism, proven"),
    "planned episodes": ("#0072B2", "planned episodes, proven (default)"),
}
_BASELINES = {"random": "playing at random", "Lasso": "Lasso, no privacy", NO_PRIVACY: "no privacy"}
_BASELINE_COLOURS = {"random": GREY, "Lasso": ORANGE, NO_PRIVACY: "black"}
_MARGINS = {"0": ("#0072B2", "o"), "1": ("#009E73", "s"), "infinity": ("#D55E00", "^")}


def draw(experiment: Experiment, summaries: Sequence[Summary], stem: Path) -> list[Path]:
    """Draw an experiment's figure; the files written, ``stem`` with the endings of their formats."""
    paths = [stem.with_name(stem.name + ending) for ending in (".png", ".svg")]
    draw_to(experiment, summaries, paths)
    return paths


def draw_to(experiment: Experiment, summaries: Sequence[Summary], paths: Sequence[Path]) -> None:
    """Draw an experiment's figure to files whose endings name their formats."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot

    with matplotlib.rc_context(STYLE):
        two = experiment.axis == "dim"
        figure, panels = pyplot.subplots(
            1, 2 if two else 1, figsize=(10.5 if two else 7.6, 4.8), layout="constrained", squeeze=False
        )
        axes = panels[0][-1]
        if experiment.axis == "round":
            _curves(axes, experiment, summaries)
        elif experiment.name == "privacy-vs-hardness":
            _hardness(axes, summaries)
        elif experiment.name == "cost-of-proof":
            _proof(axes, experiment, summaries)
        else:
            _sweep(axes, experiment, summaries, beside_published=True)
        if two:  # what is published needs an axis on which straight lines in log d are no longer straight
            _sweep(panels[0][0], experiment, summaries, beside_published=False)
        repeats = min(summary.repeats for summary in summaries)
        title = textwrap.fill(finding(experiment, summaries), 110 if two else 80)
        figure.suptitle(title, x=0.012, ha="left", fontsize=12, fontweight="bold")
        figure.supxlabel(
            f"{experiment.name}: mean of {repeats} repeats with 95 % intervals; "
            rf"$\delta$ = 0.01, T = {experiment.cells[0].rounds:,}",
            fontsize=8,
            color=GREY,
            x=0.012,
            ha="left",
        )
        for path in paths:
            undated = {"Software": None} if path.suffix == ".png" else {"Date": None}
            figure.savefig(path, metadata=undated if path.suffix in (".png", ".svg") else None)
        pyplot.close(figure)


def _epsilon(value: float) -> str:
    return rf"$\varepsilon$ = {value:g}"


def _curves(axes: Any, experiment: Experiment, summaries: Sequence[Summary]) -> None:
    colours = epsilon_colours([s.label("epsilon") for s in summaries if s.label("epsilon")])
    curves: dict[Any, list[Summary]] = {}
    for summary in summaries:
        curves.setdefault(summary.labels, []).append(summary)
    ends, published = [], []
    for curve in curves.values():
        epsilon, policy = curve[0].label("epsilon"), curve[0].label("policy")
        colour = (
            colours[epsilon]
            if epsilon
            else GREY
            if policy == "random"
            else ORANGE
            if policy == "Lasso"
            else "black"
        )
        x, y = [s.round for s in curve], [s.mean for s in curve]
        axes.plot(x, y, color=colour, linestyle="-" if epsilon else "--")
        shade(axes, x, [s.low for s in curve], [s.high for s in curve], colour)
        ends.append((y[-1], _epsilon(epsilon) if epsilon else _BASELINES[policy], colour))
        height = published_for(experiment, curve[-1])
        if height is not None:
            published.append((x[-1], height, colour))
    _published(axes, published)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(experiment.cells[0].checkpoints[0], experiment.cells[0].rounds)
    axes.set_xlabel("round $t$")
    axes.set_ylabel("cumulative regret")
    thousands(axes.xaxis)
    thousands(axes.yaxis)
    label_lines(axes, ends)


def _published(axes: Any, points: Sequence[tuple[float, float, Any]]) -> None:
    for x, y, colour in points:
        axes.plot(x, y, color=colour, clip_on=False, **_DIAMOND)
    if points:
        _legend(axes, axes.plot([], [], color=GREY, label=_PUBLISHED, **_DIAMOND))


def _legend(axes: Any, handles: Any) -> None:
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=9)


def _sweep(
    axes: Any, experiment: Experiment, summaries: Sequence[Summary], *, beside_published: bool
) -> None:
    ends = at_the_end(summaries)
    colours = epsilon_colours([s.label("epsilon") for s in ends])
    labels = []
    published: list[tuple[float, float, Any]] = []
    for epsilon, colour in colours.items():
        curve = sorted(
            (s for s in ends if s.label("epsilon") == epsilon), key=lambda s: float(s.label(experiment.axis))
        )
        x, y = [s.label(experiment.axis) for s in curve], [s.mean for s in curve]
        axes.plot(x, y, "o-", markersize=4, color=colour)
        shade(axes, x, [s.low for s in curve], [s.high for s in curve], colour)
        labels.append((y[-1], _epsilon(epsilon), colour))
        known = [(s.label(experiment.axis), published_for(experiment, s)) for s in curve]
        points = [(place, height) for place, height in known if height is not None and beside_published]
        if points:
            axes.plot(*zip(*points, strict=True), ":", linewidth=1, color=colour)
        published.extend((place, height, colour) for place, height in points)
    _published(axes, published)
    axes.set_xscale("log")
    if beside_published:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0)
    ticks = sorted({s.label(experiment.axis) for s in ends})
    thousands(axes.xaxis)
    axes.set_xticks([tick for tick in ticks if tick not in _CROWDED])
    axes.xaxis.minorticks_off()
    axes.set_xlabel(_AXIS_NAMES[experiment.axis])
    axes.set_ylabel("cumulative regret")
    thousands(axes.yaxis)
    label_lines(axes, labels)


def _hardness(axes: Any, summaries: Sequence[Summary]) -> None:
    ends = at_the_end(summaries)
    floor = {s.label("alpha"): s.mean for s in ends if s.label("policy") == NO_PRIVACY}
    labels = []
    for alpha, base in floor.items():
        colour, marker = _MARGINS[alpha]
        curve = sorted(
            (s for s in ends if s.label("policy") == "FLIPHAT" and s.label("alpha") == alpha),
            key=lambda s: float(s.label("epsilon")),
        )
        x, y = [s.label("epsilon") for s in curve], [s.mean / base for s in curve]
        axes.plot(x, y, marker=marker, markersize=5, color=colour)
        shade(axes, x, [s.low / base for s in curve], [s.high / base for s in curve], colour)
        sign = r"\infty" if alpha == "infinity" else alpha
        labels.append((y[-1], rf"margin $\alpha = {sign}$", colour))
        random = next(s for s in ends if s.label("policy") == "random" and s.label("alpha") == alpha)
        axes.axhline(random.mean / base, color=colour, linestyle=":", linewidth=1)
    axes.axhline(2, color=GREY, linewidth=1)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    thousands(axes.xaxis)
    thousands(axes.yaxis)
    axes.set_xlabel(r"privacy budget $\varepsilon$")
    axes.set_ylabel("regret / regret without privacy")
    labels.append((1.0, "no privacy", "black"))
    label_lines(axes, labels)
    axes.text(0.01, 2.06, "twice", transform=axes.get_yaxis_transform(), fontsize=8, color=GREY)
    _legend(axes, axes.plot([], [], ":", color=GREY, linewidth=1, label=_BASELINES["random"]))


def _proof(axes: Any, experiment: Experiment, summaries: Sequence[Summary]) -> None:
    ends = at_the_end(summaries)
    labels, published = [], []
    for policy, (colour, name) in _VARIANTS.items():
        curve = sorted(
            (s for s in ends if s.label("policy") == policy), key=lambda s: float(s.label("epsilon"))
        )
        x, y = [s.label("epsilon") for s in curve], [s.mean for s in curve]
        style = "--" if policy == "paper constants" else "-"
        axes.plot(x, y, "o", linestyle=style, markersize=5, color=colour)
        shade(axes, x, [s.low for s in curve], [s.high for s in curve], colour)
        labels.append((y[-1], name, colour))
        if policy == "paper constants":
            for summary in curve:
                height = published_for(experiment, summary)
                if height is not None:
                    published.append((summary.label("epsilon"), height, colour))
    for policy, colour in (("random", GREY), (NO_PRIVACY, "black")):
        level = next(s.mean for s in ends if s.label("policy") == policy)
        axes.axhline(level, color=colour, linestyle=":", linewidth=1.2)
        labels.append((level, _BASELINES["random"] if policy == "random" else "no noise, no privacy", colour))
    _published(axes, published)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sorted({s.label("epsilon") for s in ends if s.label("epsilon")}))
    axes.xaxis.minorticks_off()
    thousands(axes.xaxis)
    thousands(axes.yaxis)
    axes.set_xlabel(r"privacy budget $\varepsilon$")
    axes.set_ylabel("cumulative regret")
    label_lines(axes, labels)
