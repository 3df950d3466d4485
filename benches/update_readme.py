"""Write the README's numbers again: regret, its shares of the rerun paper's, other libraries, the guarantee.

::

    fliphat bench --repeats 10 > benches/speed.txt    # of a wheel, nothing beside it
    python benches/update_readme.py          # from that, the CSV files in docs/figures, and the code
    python benches/update_readme.py --run    # run the experiments behind the table first, all repeats

`tests/project/test_readme.py` fails as long as this would change anything.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import real_data

from fliphat import FLIPHAT, cli

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BESIDE = ROOT / "docs" / "beside-others.md"
FIGURES = ROOT / "docs" / "figures"
RACES = ROOT / "docs" / "speed.md"
SPEED = ROOT / "benches" / "speed.txt"
#: The kernels that the algorithm rests on.
MISSION = ("peel laplace", "peel exponential", "clipped_gradient", "project_l1", "laplace")
EXPERIMENTS = ("regret-vs-time", "regret-vs-delta", "cost-of-proof")
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
ROUNDS = 20_000
SMALL_DELTA = 1e-6


def regret(name: str, column: str = "mean_regret", **labels: str | float) -> list[float]:
    """Return a policy's mean regret (or another column) after the last round, by epsilon."""
    found = {}
    with open(FIGURES / f"{name}.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            same = all(
                float(row[label]) == value if isinstance(value, float) else row[label] == value
                for label, value in labels.items()
            )
            if same and row["round"] == str(ROUNDS):
                found[float(row["epsilon"] or 0)] = float(row[column])
    return [found[epsilon] for epsilon in EPSILONS] if 0 not in found else [found[0]]


def table() -> str:
    """Return the README's table of regret."""
    names = " | ".join(f"{epsilon:g}" for epsilon in EPSILONS[1:])
    ours = regret("regret-vs-time", policy="FLIPHAT")
    rows = [
        f"| mean regret at T = {spaced(ROUNDS)} | eps {EPSILONS[0]:g} | {names} |",
        "|---" * (len(EPSILONS) + 1) + "|",
        row("the paper's algorithm and constants, run here, same seeds (protect nobody)", rerun()),
        row("the same as published, read off its figure", published()),
        row("**fliphat, proven, delta = 0.01**", ours, bold=True),
        row(
            "**fliphat, proven, delta = 1e-6**",
            regret("regret-vs-delta", policy="FLIPHAT", delta=SMALL_DELTA),
            bold=True,
        ),
        row(
            "fliphat with the paper's doubling episodes, delta = 0.01",
            regret("cost-of-proof", policy="exponential mechanism"),
        ),
        row("playing at random", regret("regret-vs-time", policy="random")),
    ]
    return "\n".join(rows)


def published() -> list[float]:
    """Return the published regret, by epsilon."""
    return regret("regret-vs-time", "published", policy="FLIPHAT")


def share() -> str:
    """Return our regret as a share of the rerun paper's, smallest to largest, in percent."""
    ours = regret("regret-vs-time", policy="FLIPHAT")
    shares = [100 * mine / theirs for mine, theirs in zip(ours, rerun(), strict=True)]
    return f"{min(shares):.0f} to {max(shares):.0f} %"


def rerun() -> list[float]:
    """Return the regret of the paper's own algorithm and constants, run on the same seeds."""
    return regret("regret-vs-time", policy="paper, rerun")


def rerun_over_published() -> str:
    """Return how many times larger our rerun of the paper is than what was published."""
    ratios = [again / once for again, once in zip(rerun(), published(), strict=True)]
    return f"{min(ratios):.1f} to {max(ratios):.1f} times"


def on_published_coefficients() -> str:
    """Return the rerun's regret on the one draw of coefficients that the published figure has."""
    again = regret("cost-of-proof", policy="paper constants, published coefficients")
    *first, last = (spaced(value) for value in again)
    return f"{', '.join(first)} and {last}"


def small_delta_costs() -> str:
    """Return how many times the regret is larger at the small delta."""
    ours = regret("regret-vs-time", policy="FLIPHAT")
    small = regret("regret-vs-delta", policy="FLIPHAT", delta=SMALL_DELTA)
    ratios = [more / less for more, less in zip(small, ours, strict=True)]
    return f"{min(ratios):.1f} to {max(ratios):.1f} times"


def guarantee() -> str:
    """Return the guarantee of the README's own policy as a quotation."""
    text = str(FLIPHAT(dim=400, sparsity=10, epsilon=1.0, delta=1e-6).guarantee)
    return "\n".join(f"> {line}" for line in textwrap.wrap(text, 118))


def libraries() -> str:
    """Return mean rewards beside other libraries, as `benches/real_data.py` kept them."""
    return real_data.rewards(real_data.open_kept(real_data.KEPT))


def races() -> list[list[str]]:
    """Return the cells of the table that `fliphat bench` printed, header first."""
    lines = [line for line in SPEED.read_text().splitlines() if line.startswith("| ") and "| ---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def gain(cells: Sequence[str]) -> float:
    """Return how many times faster than the best NumPy a kernel is."""
    return float(cells[races()[0].index("x best NumPy")])


def speed(chosen: Sequence[Sequence[str]] | None = None) -> str:
    """Return the table of races, all of them unless some are given."""
    header, *rows = races()
    table = [header, ["---"] * len(header), *(rows if chosen is None else chosen)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table)


def worst_and_best() -> str:
    """Return of each of the algorithm's kernels the sizes that win least and most over the best NumPy."""
    chosen: list[list[str]] = []
    for kernel in MISSION:
        own = sorted((cells for cells in races()[1:] if cells[0].startswith(kernel)), key=gain)
        chosen += own[:1] + own[1:][-1:]
    return speed(chosen)


def row(name: str, values: list[float], *, bold: bool = False) -> str:
    """Return a row of the table; what does not depend on epsilon stands in the first column alone."""
    cells = [f"**{spaced(value)}**" if bold else spaced(value) for value in values]
    cells += [""] * (len(EPSILONS) - len(cells))
    return f"| {name} | {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def spaced(value: float) -> str:
    """Return a whole number with a space between thousands."""
    return f"{round(value):,}".replace(",", " ")


def updated(text: str, blocks: Sequence[str] = ("regret", "guarantee", "speed")) -> str:
    """Return the README, or the page beside it, with today's numbers."""
    contents = {
        "regret": table,
        "libraries": libraries,
        "guarantee": guarantee,
        "speed": worst_and_best,
        "races": speed,
    }
    for name in blocks:
        content = contents[name]()
        block = rf"(<!-- {name}: benches/update_readme.py -->\n).*?(<!-- end -->)"
        text, count = re.subn(
            block, lambda found, new=content: f"{found[1]}{new}\n{found[2]}", text, flags=re.S
        )
        if count != 1:
            raise ValueError(f"there must be one block {name!r}, got {count}")
    text = re.sub(r"\d+ to \d+ %(?= of the regret of the paper's own)", share(), text)
    text = re.sub(r"[\d.]+ to [\d.]+ times(?= what was published)", rerun_over_published(), text)
    text = re.sub(r"(?<=rerun has )[\d ,and]+(?= there)", on_published_coefficients(), text)
    return re.sub(r"[\d.]+ to [\d.]+ times(?= the regret of delta = 0\.01)", small_delta_costs(), text)


def main() -> None:
    """Run what is asked for, and write the README."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", action="store_true", help="run the experiments first, into docs/figures")
    if parser.parse_args().run:
        for name in EXPERIMENTS:
            if cli.main(["reproduce", name, "--out", str(FIGURES)]):
                raise SystemExit(f"{name} failed")
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
    BESIDE.write_text(updated(BESIDE.read_text(encoding="utf-8"), ["libraries"]), encoding="utf-8")
    RACES.write_text(updated(RACES.read_text(encoding="utf-8"), ["races"]), encoding="utf-8")


if __name__ == "__main__":
    main()
