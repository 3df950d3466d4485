"""What each experiment shows, in a sentence computed from its numbers: the titles of the figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fliphat.experiments.catalog import NO_PRIVACY, Experiment
from fliphat.experiments.summary import Summary
from fliphat.experiments.table import at_the_end, published_for

__all__ = ["finding", "means", "privacy_dominates_below"]

_PRIVATE = "FLIPHAT"


def finding(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    """Return the finding; what the numbers say, whatever they are.

    Examples
    --------
    >>> from fliphat.experiments import Summary
    >>> from fliphat.experiments.catalog import experiment
    >>> labels = (("policy", "FLIPHAT"), ("epsilon", 1.0))
    >>> ends = [Summary((*labels, ("arms", k)), 10_000, 2, 100.0 * k, 0.0, 0.0) for k in (2, 6, 24)]
    >>> finding(experiment("regret-vs-arms", quick=True), ends)
    '12 times the arms cost 12.0 times the regret'
    """
    if experiment.name == "regret-vs-time":
        ratios = []
        for summary in at_the_end(summaries):
            published = published_for(experiment, summary)
            if published is not None and summary.label("policy") == _PRIVATE:
                ratios.append(summary.mean / published)
        return f"Proven privacy at {_span([100 * r for r in ratios], '.0f')} % of the published regret"
    if experiment.name == "regret-vs-time-uniform":
        return f"Sublinear: the second half of the rounds adds {_late_share(summaries)} % of the regret"
    if experiment.axis in ("dim", "arms"):
        thing = {"dim": "dimensions", "arms": "arms"}[experiment.axis]
        first, last = _ends(experiment)
        growth = [curve[last] / curve[first] for curve in means(summaries, experiment.axis).values()]
        cost = f"{last / first:g} times the {thing} cost {_span(growth, '.1f')} times the regret"
        if experiment.axis == "arms":
            return cost
        fits = [_straightness(curve) for curve in means(summaries, "dim").values()]
        return f"{cost}; a line in log d explains {_span([100 * fit for fit in fits], '.0f')} % of it"
    if experiment.axis == "sparsity":
        _, last = _ends(experiment)
        growth = [curve[last] / curve[10] for curve in means(summaries, "sparsity").values()]
        best = [min(curve, key=lambda s: curve[s]) for curve in means(summaries, "sparsity").values()]
        cost = f"s = {last:g} costs {_span(growth, '.1f')} times the regret"
        return f"Best at s = {_span(best, 'g')}, where s* = 10; {cost}"
    if experiment.name == "privacy-vs-hardness":
        below = privacy_dominates_below(summaries)
        parts = [f"{value} for $\\alpha$ = {_sign(alpha)}" for alpha, value in below.items()]
        return "Privacy doubles the regret at an $\\varepsilon$ of " + ", ".join(parts)
    ends = {(s.label("policy"), s.label("epsilon")): s.mean for s in at_the_end(summaries)}
    ratios = [
        ends["planned episodes", epsilon] / ends["paper constants", epsilon]
        for policy, epsilon in ends
        if policy == "planned episodes"
    ]
    share = _span([100 * ratio for ratio in ratios], ".0f")
    return f"With proof, {share} % of the regret that the paper's constants give"


def means(summaries: Sequence[Summary], axis: str) -> dict[float, dict[float, float]]:
    """Return FLIPHAT's mean regret at the end, by epsilon and then by the label `axis`."""
    curves: dict[float, dict[float, float]] = {}
    for summary in at_the_end(summaries):
        if summary.label("policy") == _PRIVATE:
            curves.setdefault(summary.label("epsilon"), {})[summary.label(axis)] = summary.mean
    return curves


def privacy_dominates_below(summaries: Sequence[Summary]) -> dict[str, str]:
    """Return, by margin, the epsilon at which the regret falls to twice that without privacy.

    Between two epsilons it is interpolated on logarithmic axes; beyond the ones run it is a bound.
    """
    ends = at_the_end(summaries)
    floor = {s.label("alpha"): s.mean for s in ends if s.label("policy") == NO_PRIVACY}
    found = {}
    for alpha in floor:
        curve = sorted(
            (s.label("epsilon"), s.mean / floor[alpha])
            for s in ends
            if s.label("policy") == _PRIVATE and s.label("alpha") == alpha
        )
        found[alpha] = _crossing(curve, 2.0)
    return found


def _crossing(curve: list[tuple[float, float]], level: float) -> str:
    if curve[-1][1] > level:
        return f"over {curve[-1][0]:g}"
    above = [i for i, (_, ratio) in enumerate(curve) if ratio > level]
    if not above:
        return f"under {curve[0][0]:g}"
    (x0, y0), (x1, y1) = curve[above[-1]], curve[above[-1] + 1]
    share = math.log(y0 / level) / math.log(y0 / y1)
    return f"{x0 * (x1 / x0) ** share:.2g}"


def _late_share(summaries: Sequence[Summary]) -> str:
    curves: dict[Any, dict[int, float]] = {}
    for summary in summaries:
        if summary.label("policy") == _PRIVATE:
            curves.setdefault(summary.labels, {})[summary.round] = summary.mean
    shares = [100 * (1 - curve[max(curve) // 2] / curve[max(curve)]) for curve in curves.values()]
    return _span(shares, ".0f")


def _straightness(curve: dict[float, float]) -> float:
    """Return R squared of a line through regret against log d."""
    return float(np.corrcoef(np.log(list(curve)), list(curve.values()))[0, 1] ** 2)


def _ends(experiment: Experiment) -> tuple[float, float]:
    values = [dict(cell.labels)[experiment.axis] for cell in experiment.cells]
    numbers = [float(value) for value in values]
    return min(numbers), max(numbers)


def _span(values: Sequence[float], style: str) -> str:
    low, high = format(min(values), style), format(max(values), style)
    return low if low == high else f"{low} to {high}"


def _sign(alpha: str) -> str:
    return "$\\infty$" if alpha == "infinity" else alpha
