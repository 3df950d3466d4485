"""`fliphat plan`: the table and the picture of what to expect."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from fliphat.lab.display import TextTable
from fliphat.lab.display.figure_style import check_picture
from fliphat.lab.planning.forecast import Plan, plan

_HEADER = ("episode", "from round", "rounds", "picks", "noise", "finds from", "regret after")


def show_plan(*, out: Path | None, as_json: bool, **numbers: Any) -> int:
    """Work out a plan, print it, and draw it if asked to."""
    if out is not None:
        check_picture(out)
    made = plan(**numbers)
    print(json.dumps(made.to_dict(), indent=2) if as_json else text(made))
    if out is not None:
        draw(made, out)
        if not as_json:
            print(f"\n{out}")
    return 0


def text(made: Plan) -> str:
    """Return a plan as a table and sentences."""
    rows = [
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
    lines = [
        TextTable.fitting(_HEADER, rows, left=()).text(rows),
        "",
        "noise: standard deviation of the privacy noise in a released coefficient.",
        "finds from: coefficients of at least this size have been found at least three times in five.",
        "regret after: of a round that this episode's estimate plays, as a share of random play's.",
        "",
        *_sentences(made),
    ]
    return "\n".join(lines)


def _sentences(made: Plan) -> list[str]:
    rounds, size = made.settings["rounds"], made.settings["coefficient"]
    epsilon = made.settings["epsilon"]
    start, half = made.learning_starts, made.with_half_epsilon
    if start is None:
        told = [
            f"Coefficients of {size:g} are not found within {rounds:,} rounds: more rounds or a larger",
            "epsilon would help, and so would scales that are not larger than the data's.",
        ]
    else:
        later = f"not within {rounds:,} rounds"
        if half is not None:
            later = f"from about {half:,}, {half / start:.1f} times as late"
        told = [
            f"From about round {start:,} on, a round costs less than half of one played at random;",
            f"with epsilon = {epsilon / 2:g} {later}.",
        ]
    share = made.regret / made.random_regret
    told.append(f"Regret of {rounds:,} rounds: about {made.regret:,.0f}, {_percent(share)} of random play's.")
    if made.regret_range is not None:
        low, high = made.regret_range
        told.append(f"Runs differ: eight in ten are between {low:,.0f} and {high:,.0f}.")
    return [*told, "", "This assumes:", *(f"- {sentence}" for sentence in made.assumptions)]


def _size(coefficient: float) -> str:
    return "none" if math.isinf(coefficient) else _significant(coefficient)


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.095 else "under 0.1%" if share < 0.001 else f"{share:.1%}"


def _significant(number: float) -> str:
    """Return a number with two significant digits and never as a bare 0.

    Examples
    --------
    >>> _significant(0.0957), _significant(0.000748), _significant(12.3), _significant(3e-9)
    ('0.096', '0.00075', '12', '3.0e-09')
    """
    if not 1e-5 <= abs(number) < 1e6:
        return f"{number:.1e}"
    digits = max(0, 1 - math.floor(math.log10(abs(number))))
    return f"{number:,.{digits}f}"


def draw(made: Plan, out: Path) -> None:
    """Draw a round's regret over that of random play against rounds, for half, all and twice the epsilon."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot
    from matplotlib.ticker import PercentFormatter

    from fliphat.lab.display.figure_style import (
        ORANGE,
        STYLE,
        epsilon_colours,
        label_lines,
        thousands,
        write_title,
    )

    epsilon, rounds = made.settings["epsilon"], made.settings["rounds"]
    colours = epsilon_colours([epsilon / 2, epsilon, 2 * epsilon])
    with matplotlib.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(7.6, 4.6), layout="constrained")
        ends, first = [], rounds
        for level, colour in colours.items():
            other = made if level == epsilon else plan(**{**made.settings, "epsilon": level})
            steps = [(e.released_before, e.regret_share) for e in other.episodes]
            steps = [(at, share) for at, share in steps if at <= rounds]
            if not steps:
                continue
            x, y = [at for at, _ in steps], [share for _, share in steps]
            axes.plot(x, y, ".-", color=colour)
            ends.append((y[-1], rf"$\varepsilon$ = {level:g}", colour))
            first = min(first, x[0])
            if other.learning_starts is not None:
                axes.plot(other.learning_starts, 0.5, "o", color=colour, markersize=7, zorder=4)
        axes.axhline(0.5, color=ORANGE, linestyle="--", linewidth=1.2)
        ends.append((0.5, "half", ORANGE))
        axes.set_xscale("log")
        axes.set_xlim(first / 1.3, rounds)
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel("round $t$")
        axes.set_ylabel("regret of a round, of random play's")
        thousands(axes.xaxis)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        label_lines(axes, ends)
        start = made.learning_starts
        title = (
            f"Not found within {rounds:,} rounds"
            if start is None
            else f"Learning starts at about round {start:,}"
        )
        write_title(
            figure,
            title,
            rf"d = {made.settings['dim']:,}, s = {made.settings['sparsity']}, "
            rf"coefficients of {made.settings['coefficient']:g}, "
            rf"$\delta$ = {made.settings['delta']:g}; worked out from public numbers alone",
        )
        figure.savefig(out)
        pyplot.close(figure)
