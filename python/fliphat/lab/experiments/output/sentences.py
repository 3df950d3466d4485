"""Parts of the sentences that say what an experiment shows, computed from its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from fliphat.lab.experiments.experiment import Experiment
from fliphat.lab.experiments.output.table import at_the_end
from fliphat.lab.experiments.run.summary import Summary

#: The label of the private policy.
PRIVATE = "FLIPHAT"

#: The label of the paper's own algorithm and constants, run again.
PAPER = "paper, rerun"


def means(summaries: Sequence[Summary], axis: str) -> dict[float, dict[float, float]]:
    """Return FLIPHAT's mean regret at the end, by epsilon and then by the label `axis`."""
    curves: dict[float, dict[float, float]] = {}
    for summary in at_the_end(summaries):
        if summary.label("policy") == PRIVATE:
            curves.setdefault(summary.label("epsilon"), {})[summary.label(axis)] = summary.mean
    return curves


def ends_of_axis(experiment: Experiment) -> tuple[float, float]:
    """Return the smallest and the largest value on an experiment's axis."""
    numbers = [float(dict(cell.labels)[experiment.axis]) for cell in experiment.cells]
    return min(numbers), max(numbers)


def growth(experiment: Experiment, summaries: Sequence[Summary], thing: str) -> str:
    """Return what the largest value of an experiment's axis costs against the smallest."""
    first, last = ends_of_axis(experiment)
    ratios = [curve[last] / curve[first] for curve in means(summaries, experiment.axis).values()]
    return f"{last / first:g} times the {thing} cost {span(ratios, '.1f')} times the regret"


def span(values: Sequence[float], style: str) -> str:
    """Return "low to high", or one number if both read the same."""
    low, high = format(min(values), style), format(max(values), style)
    return low if low == high else f"{low} to {high}"


def plain_words(sentence: str) -> str:
    r"""Return a figure's title without its formulas' markup."""
    for markup, word in (
        ("$\\varepsilon$", "epsilon"),
        ("$\\alpha$", "alpha"),
        ("$\\delta$", "delta"),
        ("$\\infty$", "infinity"),
    ):
        sentence = sentence.replace(markup, word)
    return sentence
