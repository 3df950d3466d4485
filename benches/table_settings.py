"""What a scale does for FLIPHAT on tables: made ones and two from the wheel of ISLP, six orders each.

`fliphat simulate` gives FLIPHAT none; `benches/held_out_tables.py` reports it on other tables.
Run: python benches/table_settings.py  (about a minute; pip install --no-deps ISLP for the last two)
"""

import csv
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import numpy as np
import real_tables

import fliphat
from fliphat.lab.tables.players import StudyNumbers

PLAIN = StudyNumbers.arguments
VARIANTS = {
    "plain": {},
    "scale": {"context_scale": 0.5},
}


def tables():
    for name in real_tables.MADE:
        values, labels = real_tables.made(name, 101)
        yield name, {**{f"x{i}": column for i, column in enumerate(values.T)}, "label": labels}
    rng = np.random.default_rng(1)
    values = rng.normal(size=(5000, 40))
    score = 0.6 * values[:, 0] + 0.4 * values[:, 1] + rng.normal(size=5000)
    columns = {f"x{i}": column for i, column in enumerate(values.T)}
    yield "made: 6 % of one label", {**columns, "label": (score > np.quantile(score, 0.94)).astype(int)}
    islp = find_spec("ISLP")
    for file in ("Caravan.csv", "OJ.csv") if islp else ():
        with open(Path(islp.origin).parent / "data" / file, newline="") as opened:
            header, *rows = csv.reader(opened)
        columns = {
            name: np.array(column) for name, column in zip(header, zip(*rows, strict=True), strict=True)
        }
        labels = columns.pop("Purchase")
        numbers = {
            k: v.astype(float) for k, v in columns.items() if v[0].replace(".", "").lstrip("-").isdigit()
        }
        yield file, {**columns, **numbers, "label": labels}


def main():
    found = {name: [] for name in VARIANTS}
    for table, columns in tables():
        for name, extra in VARIANTS.items():

            def arguments(self, policy, epsilon, extra=extra):
                given = PLAIN(self, policy, epsilon)
                scaled = (
                    {"context_scale": extra["context_scale"] / self.arms**0.5}
                    if "context_scale" in extra
                    else {}
                )
                return given if policy != "FLIPHAT" else {**given, **extra, **scaled}

            with patch.object(StudyNumbers, "arguments", arguments):
                study = fliphat.simulate(
                    columns, label="label", policies=["FLIPHAT"], epsilons=[1.0, 10.0], orders=6
                )
            means = [study.result("FLIPHAT", epsilon).means for epsilon in (1.0, 10.0)]
            found[name].append([np.mean(means[0]), np.mean(means[1]), min(means[0]), min(means[1])])
            print(f"{table:28} {name:16}", *(f"{value:.3f}" for value in found[name][-1]), flush=True)
    for name, rows in found.items():
        print(f"{'mean of all tables':28} {name:16}", *(f"{value:.3f}" for value in np.mean(rows, axis=0)))


if __name__ == "__main__":
    main()
