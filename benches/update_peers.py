"""Write the tables of docs/peers.md again, from docs/figures/table-1.csv.

::

    fliphat reproduce table-1 --out docs/figures                            # seven minutes on two cores
    fliphat reproduce table-1 --out docs/figures --resume --again FLIPHAT   # FLIPHAT's rows alone
    python benches/update_peers.py

The second command needs `table-1.jsonl` of the first, which is not kept in the repository.
`tests/project/test_peers_page.py` fails as long as this would change anything.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from fliphat.lab.experiments.catalog.table_1 import STEPS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "peers.md"
RESULTS = ROOT / "docs" / "figures" / "table-1.csv"

#: What the page calls the steps: more words than a figure has room for.
TOLD = {
    "Shariff-Sheffet, published": "tree, published noise and width",
    "Shariff-Sheffet, calibrated": "noise calibrated",
    "tree, greedy": "no bonus",
    "blocks, greedy": "blocks, no tree",
    "moment, cut at L R": "no X'X, products cut at L R",
    "moment": "products cut at 1.5 L",
    "moment + threshold": "the ten largest entries",
    "FLIPHAT, iht": "picks: FLIPHAT, `fit=Iht()`",
    "FLIPHAT, pursuit": "pursuit: FLIPHAT",
}

Row = dict[str, str]


def read() -> dict[tuple[str, str, str], Row]:
    """Return rows by policy, dimension and epsilon, both as written in the CSV."""
    with open(RESULTS, encoding="utf-8") as file:
        return {(row["policy"], row["dim"], row["epsilon"]): row for row in csv.DictReader(file)}


def share(rows: dict[tuple[str, str, str], Row], key: tuple[str, str, str]) -> str:
    """Return regret over that of random play, with its interval."""
    row, random = rows[key], float(rows["random", key[1], ""]["mean_regret"])
    mean, high = float(row["mean_regret"]), float(row["high_95"])
    told = [f"{value / random:.{3 if mean > 0.01 * random else 4}f}" for value in (mean, high - mean)]
    return " +- ".join(one.removeprefix("0") for one in told)


def cost(row: Row) -> tuple[str, str]:
    """Return seconds and megabytes of one run."""
    return f"{float(row['cpu_seconds']):.2f}".removeprefix("0"), f"{float(row['megabytes']):.0f}"


def steps() -> str:
    """Return the way from the tree to pursuit at epsilon = 1."""
    rows = read()
    lines = ["| step | d = 400 | d = 20 | seconds | MB |", "|---|---|---|---|---|"]
    for name in STEPS:
        small, large = (name, "20", "1.0"), (name, "400", "1.0")
        cells = [TOLD[name], share(rows, large), share(rows, small), *cost(rows[large])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def whole() -> str:
    """Return every row of the table: at both dimensions and both epsilons."""
    rows = read()
    lines = [
        "| policy | d = 20, eps 1 | eps 10 | d = 400, eps 1 | eps 10 | seconds | MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(name for name, _, _ in rows):
        if name == "random":
            continue
        cells = [name]
        for dim in ("20", "400"):
            own = [epsilon for epsilon in ("1.0", "10.0", "") if (name, dim, epsilon) in rows]
            found = [share(rows, (name, dim, epsilon)) for epsilon in own]
            cells += [*found, "", ""][:2]
        # One run's cost, at the larger dimension where it was run there.
        largest = max(
            (key for key in rows if key[0] == name), key=lambda key: (float(key[1]), -float(key[2] or 0))
        )
        cells += cost(rows[largest])
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines)


def updated(text: str) -> str:
    """Return the page with the numbers of the CSV."""
    for name, content in (("steps", steps()), ("table-1", whole())):
        block = rf"(<!-- {name}: benches/update_peers.py -->\n).*?(<!-- end -->)"
        text, count = re.subn(
            block, lambda found, new=content: f"{found[1]}{new}\n{found[2]}", text, flags=re.S
        )
        if count != 1:
            raise ValueError(f"docs/peers.md must have one block {name!r}, got {count}")
    return text


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
