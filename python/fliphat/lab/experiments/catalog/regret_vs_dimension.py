"""Regret against the number of coordinates: the paper's third figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from fliphat.lab.experiments.catalog._parts import EPSILONS, at_end, labels, linear, private, repeats
from fliphat.lab.experiments.experiment import Experiment
from fliphat.lab.experiments.output.panels import draw_against_axis
from fliphat.lab.experiments.output.sentences import growth, means, span
from fliphat.lab.experiments.run.summary import Summary

NAME: Final = "regret-vs-dimension"
ORDER: Final = 30

# Means of 50 repeats, by dimension; columns: epsilon 0.5, 1, 2, 5.
_PUBLISHED: Final = {
    400: (9944.2, 5490.8, 2850.5, 1252.5),
    800: (11375.7, 6807.0, 3523.4, 1546.4),
    1200: (11763.6, 7602.7, 4009.1, 1645.8),
    1600: (12484.0, 8756.7, 4535.2, 1862.1),
    2000: (12696.9, 9022.6, 4571.9, 1920.1),
    2400: (12846.3, 9347.9, 4770.4, 2024.5),
    2800: (13101.7, 9653.2, 4894.5, 2124.1),
    3200: (13296.3, 10274.3, 5296.6, 2213.5),
    3600: (13411.9, 10351.4, 5265.0, 2151.7),
    4000: (13242.5, 10061.1, 5217.3, 2191.2),
}


def build(quick: bool) -> Experiment:
    """Return the experiment."""
    dims = (400, 1200, 4000) if quick else tuple(range(400, 4001, 400))
    draw = partial(draw_against_axis, axis_name="dimension $d$", crowded=(1600, 2400, 2800, 3200, 3600))
    return Experiment(
        name=NAME,
        cells=tuple(
            at_end(labels("FLIPHAT", epsilon=epsilon, dim=dim), private(epsilon), linear(dim=dim), 10_000)
            for dim in dims
            for epsilon in EPSILONS[:4]
        ),
        repeats=repeats(quick, 50),
        axis="dim",
        explained="Regret when contexts have more coordinates, of which the same few matter.",
        headline=_headline,
        # What is published needs an axis on which straight lines in log d are no longer straight.
        panels=(partial(draw, beside_published=False), draw),
        published=_published,
    )


def _published(labels: Mapping[str, str | float]) -> float | None:
    row = _PUBLISHED.get(int(labels.get("dim", 0)), ())
    return dict(zip(EPSILONS, row, strict=False)).get(float(labels.get("epsilon", 0.0)))


def _headline(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    fits = [100 * _straightness(curve) for curve in means(summaries, "dim").values()]
    cost = growth(experiment, summaries, "dimensions")
    return f"{cost}; a line in log d explains {span(fits, '.0f')} % of it"


def _straightness(curve: dict[float, float]) -> float:
    """Return R squared of a line through regret against log d."""
    return float(np.corrcoef(np.log(list(curve)), list(curve.values()))[0, 1] ** 2)
