"""The paper's table 1, run: private linear bandits on one ledger, and the way from the tree to pursuit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fliphat.lab.display.figure_style import GREY, epsilon_colours
from fliphat.lab.experiments import factories
from fliphat.lab.experiments.catalog._parts import DELTA, labels, linear, playing_at_random, private, repeats
from fliphat.lab.experiments.cells import Cell, Recipe
from fliphat.lab.experiments.experiment import Experiment, at_the_end
from fliphat.lab.experiments.sweep import Summary

_ROUNDS: Final = 20_000
_DIMS: Final = (20, 400)
_EPSILONS: Final = (1.0, 10.0)
#: Seeds that nothing was chosen by; the large dimension has half of them.
_FIRST_SEED: Final = 15_000
_REPEATS, _REPEATS_LARGE = 10, 5

_ROUND = "context and reward"
_CHOSEN = "chosen context and reward"
_SMALL = _DIMS[:1]


@dataclass(frozen=True)
class _Row:
    """A policy of the table: how to make it, and what is said of it."""

    name: str
    make: Callable[[float, int], Recipe]
    notion: str
    protects: str
    #: Dimensions at which it can be run.
    dims: tuple[int, ...] = _DIMS


def _peer(name: str, **options: Any) -> Callable[[float, int], Recipe]:
    def make(epsilon: float, dim: int) -> Recipe:
        return Recipe.of(factories.peer, name=name, epsilon=epsilon, delta=DELTA, **options)

    return make


def _adac(epsilon: float, dim: int) -> Recipe:
    # Its determinant is looked at in every round of the paper; that takes d^3 a look.
    return _peer("AdaCOFUL", check_every=16 if dim < 100 else 128)(epsilon, dim)


def _rayleigh(epsilon: float, dim: int) -> Recipe:
    leaf = 128 if dim < 100 else 512
    return _peer("RareSwitching", switching="rayleigh", horizon=_ROUNDS, leaf=leaf)(epsilon, dim)


def _sgd(epsilon: float, dim: int) -> Recipe:
    return Recipe.of(factories.peer, name="HanSGD", epsilon=epsilon)


def _ours(fit: str) -> Callable[[float, int], Recipe]:
    return lambda epsilon, dim: private(epsilon, fit=fit)


def _free(make: Callable[..., Any], **options: Any) -> Callable[[float, int], Recipe]:
    return lambda epsilon, dim: Recipe.of(make, **options)


_T: Final[dict[str, Any]] = {"horizon": _ROUNDS}
_PUBLISHED: Final[dict[str, Any]] = {"calibration": "paper", **_T}
_GREEDY: Final[dict[str, Any]] = {"optimistic": False}
#: Privacy, what it protects and, where not all can be run, dimensions.
_JOINT, _LOCAL, _KNOWN = ("joint", _ROUND), ("local", _CHOSEN), ("joint, known law", _ROUND)
_SHUFFLED: Final = ("joint, local", _CHOSEN, _SMALL)
_PRIVATE: Final = (
    _Row("Shariff-Sheffet, published", _peer("ShariffSheffet", **_PUBLISHED), *_JOINT),
    _Row("Shariff-Sheffet, calibrated", _peer("ShariffSheffet", **_T), *_JOINT),
    _Row("tree, greedy", _peer("ShariffSheffet", **_GREEDY, **_T), *_JOINT),
    _Row("rare switching, blocks", _peer("RareSwitching"), *_JOINT),
    _Row("rare switching, Rayleigh", _rayleigh, *_JOINT),
    _Row("blocks, greedy", _peer("RareSwitching", **_GREEDY), *_JOINT),
    _Row("AdaC-OFUL", _adac, "rewards only", "reward; contexts are public"),
    _Row("Zheng, published", _peer("ZhengLocal", **_PUBLISHED), *_LOCAL),
    _Row("Zheng, calibrated, greedy", _peer("ZhengLocal", **_GREEDY, **_T), *_LOCAL),
    _Row("Han LDP-OLS, calibrated", _peer("HanOLS"), *_LOCAL),
    _Row("Han LDP-SGD", _sgd, "local, delta 0", _CHOSEN),
    _Row("Chowdhury-Zhou, their code", _peer("ChowdhuryZhou", **_PUBLISHED), *_JOINT),
    _Row("Chowdhury-Zhou, calibrated", _peer("ChowdhuryZhou", **_T), *_JOINT),
    _Row("batches, greedy", _peer("ChowdhuryZhou", **_GREEDY, **_T), *_JOINT),
    _Row("Garcelon, published", _peer("GarcelonShuffle", **_PUBLISHED), *_SHUFFLED),
    _Row("Garcelon, calibrated", _peer("GarcelonShuffle", **_T), *_SHUFFLED),
    _Row("Garcelon, calibrated, greedy", _peer("GarcelonShuffle", **_GREEDY, **_T), *_SHUFFLED),
    _Row("Hanna, published", _peer("HannaElimination", **_PUBLISHED), *_KNOWN),
    _Row("Hanna, calibrated, no logarithms", _peer("HannaElimination", **_GREEDY, **_T), *_KNOWN),
    _Row("Frank-Wolfe, published", _peer("PrivateFrankWolfe", **_PUBLISHED), *_JOINT),
    _Row("Frank-Wolfe, calibrated", _peer("PrivateFrankWolfe", **_T), *_JOINT),
    _Row("moment, cut at L R", _peer("MomentGreedy", reward_scale=4.0), *_JOINT),
    _Row("moment", _peer("MomentGreedy"), *_JOINT),
    _Row("moment + threshold", _peer("MomentGreedy", sparsity=10), *_JOINT),
    _Row("FLIPHAT, iht", _ours("iht"), *_JOINT),
    _Row("FLIPHAT, pursuit", _ours("pursuit"), *_JOINT),
)

_ESTC: Final[dict[str, Any]] = {"sparsity": 5, **_T}
_NO_PRIVACY: Final = (
    _Row("LinUCB", _free(factories.linucb), "none", "nothing"),
    _Row("Lasso", _free(factories.lasso), "none", "nothing"),
    _Row("thresholded Lasso", _free(factories.thresholded_lasso), "none", "nothing"),
    _Row("explore then commit", _free(factories.explore_then_commit, **_ESTC), "none", "nothing"),
    _Row("doubly robust Lasso", _free(factories.doubly_robust_lasso), "none", "nothing"),
    _Row("random", lambda epsilon, dim: playing_at_random(), "perfect", "everything"),
)

#: What is not run, and why: policy, privacy, protects, d.
_LEFT_OUT: Final = (("Garcelon (80 600 bits a person)", "joint, local", _CHOSEN, "400"),)

_HEADER: Final = (
    "policy", "privacy", "protects", "d", "epsilon", "regret", "of random", "95 %", "runs", "CPU s", "MB",
)  # fmt: skip

#: The steps from the tree to pursuit: rows of the table, and what each changes.
STEPS: Final = {
    "Shariff-Sheffet, published": "tree, as published",
    "Shariff-Sheffet, calibrated": "its noise calibrated",
    "tree, greedy": "no bonus",
    "blocks, greedy": "blocks, no tree",
    "moment, cut at L R": "X'y alone",
    "moment": "products cut",
    "moment + threshold": "ten largest",
    "FLIPHAT, iht": "private picks",
    "FLIPHAT, pursuit": "pursuit",
}

#: What stands beside the steps, where it was run: how far privacy is from none.
_BESIDE: Final = "Lasso"


def _build(quick: bool) -> Experiment:
    dims, epsilons = (_DIMS[:1], _EPSILONS[:1]) if quick else (_DIMS, _EPSILONS)
    rows = [row for row in _PRIVATE if not quick or row.name in STEPS]
    cells = []
    for dim in dims:
        world = linear(dim=dim)
        few = _REPEATS_LARGE if dim > _DIMS[0] else None
        for row in (row for row in rows if dim in row.dims):
            for epsilon in epsilons:
                label = labels(row.name, dim=dim, epsilon=epsilon)
                recipe = row.make(epsilon, dim)
                cells.append(Cell(label, recipe, world, _ROUNDS, (_ROUNDS,), few, measured=True))
        for row in _NO_PRIVACY if not quick else _NO_PRIVACY[-1:]:
            label = labels(row.name, dim=dim)
            cells.append(Cell(label, row.make(math.inf, dim), world, _ROUNDS, (_ROUNDS,), few, measured=True))
    return Experiment(
        name="table-1",
        cells=tuple(cells),
        repeats=repeats(quick, _REPEATS),
        axis="epsilon",
        explained="The private bandits of the paper's table 1 on one ledger, beside FLIPHAT and bandits "
        "without privacy, at d = 20 and d = 400 (half the repeats).",
        headline=_headline,
        panels=tuple(_panel(dim) for dim in dims),
        first_seed=_FIRST_SEED,
        table=_table,
    )


def _shares(summaries: Sequence[Summary]) -> dict[tuple[str, float, float | None], float]:
    """Return mean regret over that of random play, by policy, dim and epsilon."""
    ends = at_the_end(summaries)
    random = {s.label("dim"): s.mean for s in ends if s.label("policy") == "random"}
    return {
        (s.label("policy"), s.label("dim"), s.label("epsilon")): s.mean / random[s.label("dim")] for s in ends
    }


def _headline(experiment: Experiment, summaries: Sequence[Summary]) -> str:
    shares = _shares(summaries)
    dim = max(key[1] for key in shares)
    steps = list(STEPS)
    first, last = (100 * shares[name, dim, _EPSILONS[0]] for name in (steps[0], steps[-1]))
    return (
        f"From the tree to pursuit, {first:.0f} % to {last:.1f} % of random play's regret "
        f"at d = {dim:g}, $\\varepsilon$ = {_EPSILONS[0]:g}"
    )


def _table(experiment: Experiment, summaries: Sequence[Summary]) -> list[list[str]]:
    said = {row.name: row for row in (*_PRIVATE, *_NO_PRIVACY)}
    shares = _shares(summaries)
    rows = [list(_HEADER)]
    for s in at_the_end(summaries):
        row = said[str(s.label("policy"))]
        share = shares[row.name, s.label("dim"), s.label("epsilon")]
        half = _half(s, share)
        rows.append(
            [
                row.name,
                row.notion,
                row.protects,
                f"{s.label('dim'):g}",
                "" if s.label("epsilon") is None else f"{s.label('epsilon'):g}",
                f"{s.mean:,.0f}",
                f"{share:.4f}",
                f"+-{half:.4f}" if half else "",
                str(s.repeats),
                "" if s.seconds is None else f"{s.seconds:.2f}",
                "" if s.megabytes is None else f"{s.megabytes:.0f}",
            ]
        )
    for name, notion, protects, dim in _LEFT_OUT:
        rows.append([name, notion, protects, dim, "", "not run", "", "", "", "", ""])
    return rows


def _panel(dim: int) -> Callable[[Any, Experiment, Sequence[Summary]], None]:
    def draw(axes: Any, experiment: Experiment, summaries: Sequence[Summary]) -> None:
        shares = _shares(summaries)
        ends = {(s.label("policy"), s.label("dim"), s.label("epsilon")): s for s in at_the_end(summaries)}
        epsilons = sorted({key[2] for key in shares if key[2] is not None})
        colours = epsilon_colours(epsilons)
        places = range(len(STEPS))
        for number, epsilon in enumerate(epsilons):
            means = [shares[name, dim, epsilon] for name in STEPS]
            halves = [_half(ends[name, dim, epsilon], shares[name, dim, epsilon]) for name in STEPS]
            # A logarithmic axis has no place for what reaches zero.
            below = [min(half, 0.9 * mean) for half, mean in zip(halves, means, strict=True)]
            axes.errorbar(
                means,
                places,
                xerr=[below, halves],
                color=colours[epsilon],
                elinewidth=1.2,
                marker="o",
                markersize=5,
                label=rf"$\varepsilon$ = {epsilon:g}",
            )
            # Regret falls with epsilon: the first line's numbers stand on its right, the last's on its left.
            right = number == 0
            for place, mean, half, low in zip(places, means, halves, below, strict=True):
                axes.annotate(
                    _percent(mean),
                    (mean + half if right else mean - low, place),
                    xytext=(6 if right else -6, 0),
                    textcoords="offset points",
                    ha="left" if right else "right",
                    va="center",
                    fontsize=8,
                    color=colours[epsilon],
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},
                    zorder=1.9,  # below the lines
                )
        if (_BESIDE, dim, None) in shares:
            # Not up to the legend.
            axes.axvline(shares[_BESIDE, dim, None], 0, 0.8, color=GREY, linestyle="--", linewidth=1.2)
            axes.annotate(
                f"{_BESIDE}, no privacy: {_percent(shares[_BESIDE, dim, None])}",
                (shares[_BESIDE, dim, None], 0.015),
                xycoords=("data", "axes fraction"),
                xytext=(4, 0),
                textcoords="offset points",
                fontsize=8,
                color=GREY,
            )
        axes.set_xscale("log")
        low, _ = axes.get_xlim()
        axes.set_xlim(low / 1.4, 2.5)
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        axes.set_yticks(list(places), list(STEPS.values()))
        axes.set_ylim(len(STEPS) - 0.2, -0.6)
        axes.set_xlabel(f"regret, playing at random is 100 %, d = {dim}")
        axes.legend(loc="upper left")

    return draw


def _half(summary: Summary, share: float) -> float:
    """Return half of a mean's 95 % interval, as a share of random play; a single run has none."""
    return 0.0 if math.isnan(summary.high) else (summary.high - summary.mean) * share / summary.mean


def _percent(share: float) -> str:
    """Return a share in percent, with two digits that count."""
    return f"{100 * share:.{0 if share >= 0.0995 else 1 if share >= 0.00995 else 2}f} %"


EXPERIMENTS: Final = {"table-1": (100, _build)}
