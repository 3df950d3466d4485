"""Results of a bench in a CSV that is kept: what is run again replaces its rows, and the rest stays."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

Row = dict[str, str]


class KeptRows:
    """Rows of text, one for each key.

    Parameters
    ----------
    path : Path
        Read if it is there.
    keys, values : sequence of str
        Columns that name a row, and those that it has.
    """

    def __init__(self, path: Path, keys: Sequence[str], values: Sequence[str]) -> None:
        self.path, self._keys, self._values = path, tuple(keys), tuple(values)
        self._rows: dict[tuple[str, ...], Row] = {}
        if path.exists():
            with open(path, encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    self._rows[tuple(row[key] for key in self._keys)] = row

    def put(self, **cells: str) -> None:
        """Add a row, in place of one with the same keys, and write the file."""
        self._rows[tuple(cells[key] for key in self._keys)] = cells
        with open(self.path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [*self._keys, *self._values], lineterminator="\n")
            writer.writeheader()
            writer.writerows(self._rows.values())

    def get(self, *keys: str) -> Row | None:
        """Return a row."""
        return self._rows.get(keys)

    def names(self, key: str) -> list[str]:
        """Return what a key can be, in the order of the file."""
        return list(dict.fromkeys(row[key] for row in self._rows.values()))
