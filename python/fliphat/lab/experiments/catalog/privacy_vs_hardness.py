"""From which epsilon on the difficulty of the problem decides the regret, and not privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from fliphat.environments import margin_family
from fliphat.lab.display.figure_style import GREY, label_lines, thousands
from fliphat.lab.experiments.catalog._parts import (
    NO_PRIVACY,
    at_end,
    labels,
    no_privacy,
    playing_at_random,
    private,
    repeats,
)
from fliphat.lab.experiments.cells import Recipe
from fliphat.lab.experiments.experiment import PRIVATE, Experiment, at_the_end
from fliphat.lab.experiments.figures import BASELINES, draw_means, legend, sorted_by
from fliphat.lab.experiments.sweep import Summary

_ROUNDS: Final = 20_000
# Margins of the problem: exponent, horizon, colour and marker.
_MARGINS: Final[dict[str, tuple[float, int | None, str, str]]] = {
    "0": (0.0, _ROUNDS, "#0072B2", "o"),
    "1": (1.0, None, "#009E73", "s"),
    "infinity": (math.inf, None, "#D55E00", "^"),
}


def _build(quick: bool) -> Experiment:
    epsilons = (0.5, 2.0, 8.0) if quick else (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    cells = []
    for label, (alpha, horizon, _, _) in _MARGINS.items():
        world = Recipe.of(margin_family, alpha=alpha, dim=400, arms=2, sparsity=5, horizon=horizon)
        for epsilon in epsilons:
            named = labels("FLIPHAT", epsilon=epsilon, alpha=label)
            cells.append(at_end(named, private(epsilon, fit="iht"), world, _ROUNDS))
        cells.append(at_end(labels(NO_PRIVACY, alpha=label), no_privacy(), world, _ROUNDS))
        cells.append(at_end(labels("random", alpha=label), playing_at_random(), world, _ROUNDS))
    return Experiment(
        name="privacy-vs-hardness",
        cells=tuple(cells),
        repeats=repeats(quick, 50),
        axis="epsilon",
        explained="From which epsilon on the difficulty of the problem decides, and not privacy.",
        headline=_headline,
        panels=(_draw,),
    )


def privacy_dominates_below(summaries: Sequence[Summary]) -> dict[str, str]:
    """Return, by margin, the epsilon at which the regret falls to twice that without privacy.

    Between two epsilons it is interpolated on logarithmic axes; beyond the ones run it is a bound.
    """
    ends = at_the_end(summaries)
    found = {}
    for alpha, base in _without_privacy(ends).items():
        curve = sorted((s.label("epsilon"), s.mean / base) for s in _private_at(ends, alpha))
        found[alpha] = _crossing(curve, 2.0)
    return found


def _without_privacy(ends: Sequence[Summary]) -> dict[str, float]:
    return {s.label("alpha"): s.mean for s in ends if s.label("policy") == NO_PRIVACY}


def _private_at(ends: Sequence[Summary], alpha: str) -> list[Summary]:
    return [s for s in ends if s.label("policy") == PRIVATE and s.label("alpha") == alpha]


def _crossing(curve: list[tuple[float, float]], level: float) -> str:
    if curve[-1][1] > level:
        return f"over {curve[-1][0]:g}"
    above = [i for i, (_, ratio) in enumerate(curve) if ratio > level]
    if not above:
        return f"under {curve[0][0]:g}"
    (x0, y0), (x1, y1) = curve[above[-1]], curve[above[-1] + 1]
    share = math.log(y0 / level) / math.log(y0 / y1)
    return f"{x0 * (x1 / x0) ** share:.2g}"


def _headline(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    signs = {"infinity": "$\\infty$"}
    parts = [
        f"{epsilon} for $\\alpha$ = {signs.get(alpha, alpha)}"
        for alpha, epsilon in privacy_dominates_below(summaries).items()
    ]
    return "Privacy doubles the regret at an $\\varepsilon$ of " + ", ".join(parts)


def _draw(axes: Any, experiment: Experiment, summaries: Sequence[Summary]) -> None:
    ends = at_the_end(summaries)
    names = []
    for alpha, base in _without_privacy(ends).items():
        _, _, colour, marker = _MARGINS[alpha]
        curve = sorted_by("epsilon", _private_at(ends, alpha))
        x = [s.label("epsilon") for s in curve]
        last = draw_means(axes, x, curve, colour, divisor=base, marker=marker, markersize=5)
        sign = r"\infty" if alpha == "infinity" else alpha
        names.append((last, rf"margin $\alpha = {sign}$", colour))
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
    names.append((1.0, "no privacy", "black"))
    label_lines(axes, names)
    axes.text(0.01, 2.06, "twice", transform=axes.get_yaxis_transform(), fontsize=8, color=GREY)
    legend(axes, axes.plot([], [], ":", color=GREY, linewidth=1, label=BASELINES["random"][0]))


EXPERIMENTS: Final = {"privacy-vs-hardness": (60, _build)}
