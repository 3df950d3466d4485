"""Rows of people as contexts: by public ranges and categories, which are kept with the policy."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["MISSING_MARKS", "Encoder", "Range", "inner_range", "is_missing", "plain_text"]

Range: TypeAlias = tuple[float, float]
_Features: TypeAlias = npt.NDArray[np.float32]

#: Texts that mean that nothing is known.
MISSING_MARKS: Final = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "?", "<NA>"})
_FORMAT: Final = "fliphat encoder 1"


class Encoder:
    """Turns what is known about a person into a context with values from -1 to 1.

    A number with range (low, high) becomes ``2 (x - low) / (high - low) - 1``, cut to [-1, 1]. A category
    has a feature of 0 or 1 for each of its values. **Ranges and categories must be public**: given, or taken
    from a public table (:meth:`from_public`), never from people who are to be protected.

    Where a value is missing (None, NaN, an empty text, "NA" and the like) all features of its column are 0,
    and so they are where a category is not in the list: nobody is refused for a new one. Columns named in
    `missing` have one more feature, 1 in both cases.

    Parameters
    ----------
    columns : mapping of str to (low, high) or to a list of texts
        In the order of the features. A tuple of two numbers is a range, a list holds categories.
    missing : collection of str
        Columns with a feature that says that the value is not known.

    Attributes
    ----------
    columns : dict
    missing : tuple of str
    names : tuple of str
        Of the features.
    dim : int
        How many they are.
    norm : float
        Typical l2 norm of a context: `context_norm` of :class:`fliphat.PrivateLinear`.

    Examples
    --------
    >>> encoder = Encoder({"age": (20, 80), "ward": ["north", "south"]}, missing=["ward"])
    >>> encoder.names
    ('age', 'ward=north', 'ward=south', 'ward is not known')
    >>> encoder.encode({"age": 65, "ward": "south"}).tolist()
    [0.5, 0.0, 1.0, 0.0]
    >>> encoder.encode({"age": None, "ward": "east"}).tolist()
    [0.0, 0.0, 0.0, 1.0]
    >>> encoder.encode({"age": [20, 80], "ward": ["north", "north"]}).shape
    (2, 4)
    """

    def __init__(
        self, columns: Mapping[str, Range | Sequence[str]], *, missing: Collection[str] = ()
    ) -> None:
        self.columns: dict[str, Range | list[str]] = {}
        for name, known in columns.items():
            self.columns[str(name)] = _checked(str(name), known)
        unknown = [name for name in missing if name not in self.columns]
        if unknown or not self.columns:
            raise ValueError(f"columns must have at least one column and those of missing, got {unknown}")
        self.missing = tuple(name for name in self.columns if name in missing)

    @classmethod
    def from_public(
        cls,
        table: Any,
        columns: Sequence[str] | None = None,
        *,
        ranges: Mapping[str, Range] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
    ) -> Self:
        """Make an encoder from a **public** table: whoever is in it is not protected.

        Parameters
        ----------
        table : DataFrame or mapping of names to arrays
        columns : sequence of str, optional
            Those to use; all by default.
        ranges : mapping, optional
            Of some columns; by default the table's own 1 and 99 % points.
        categories : mapping, optional
            Of some columns; by default the values that the table has.
        """
        found: dict[str, Range | Sequence[str]] = {}
        absent = []
        for name in list(table) if columns is None else columns:
            values = _values(table, name)
            known = np.array([not is_missing(one) for one in values.tolist()], np.bool_)
            if not known.all():
                absent.append(name)
            if ranges is not None and name in ranges:
                found[name] = ranges[name]
            elif categories is not None and name in categories:
                found[name] = list(categories[name])
            elif values.dtype.kind in "iufb":
                found[name] = inner_range(values[known].astype(np.float64))
            else:
                found[name] = sorted({plain_text(one) for one in values[known].tolist()})
        return cls(found, missing=absent)

    @property
    def names(self) -> tuple[str, ...]:
        """What the features are called."""
        named: list[str] = []
        for name in self.columns:
            named += self._names_of(name)
        return tuple(named)

    @property
    def dim(self) -> int:
        """How many features a context has."""
        return len(self.names)

    @property
    def norm(self) -> float:
        """Typical l2 norm: a number spread over -1 to 1 has a mean square of a third, a category is 1."""
        numbers = sum(isinstance(known, tuple) for known in self.columns.values())
        return round(float(np.sqrt(numbers / 3 + len(self.columns) - numbers)), 3)

    def encode(self, rows: Any) -> _Features:
        """Return the context of a person, shape (dim,), or of several, shape (n, dim).

        Parameters
        ----------
        rows : mapping, row or DataFrame
            A mapping of names to values, or a sequence of values in the order of `columns`, is one person. A
            DataFrame, a mapping of names to arrays, a list of mappings or an array of shape (n, columns) is
            several. Columns that the encoder does not know are not looked at.

        Raises
        ------
        ValueError
            If a column is not there, or holds something else than numbers where it has a range; the message
            names the column and never a value.
        """
        if isinstance(rows, (list, tuple)) and rows and isinstance(rows[0], Mapping):
            rows = {name: [_one(row, name) for row in rows] for name in self.columns}
        if not hasattr(rows, "keys") and not hasattr(rows, "column_names"):
            rows = self._named(rows)
        given = {name: _values(rows, name) for name in self.columns}
        single = all(values.ndim == 0 for values in given.values())
        parts = [self.features(name, np.atleast_1d(values)) for name, values in given.items()]
        if len({len(part) for part in parts}) > 1:
            raise ValueError("columns must all have one length")
        made = np.ascontiguousarray(np.hstack(parts))
        return made[0] if single else made

    def features(self, name: str, values: npt.NDArray[Any]) -> _Features:
        """Return the features of one column, shape (n, its features)."""
        known = self.columns[name]
        if isinstance(known, tuple):
            numbers, absent = _as_numbers(name, values)
            low, high = known
            # In double precision, and cut before the product: no value is too large.
            scaled = 2 * (np.clip(numbers, low, high) - low) / (high - low) - 1
            found = np.where(absent, 0.0, scaled).astype(np.float32)[:, None]
        else:
            texts = np.array(["" if is_missing(one) else plain_text(one) for one in values.tolist()], object)
            found = np.asarray(texts[:, None] == np.array([*known, None], object)[:-1], np.float32)
            absent = np.asarray(~found.any(axis=1))
        if name in self.missing:
            found = np.hstack([found, absent[:, None].astype(np.float32)])
        return found

    def _names_of(self, name: str) -> list[str]:
        known = self.columns[name]
        named = [name] if isinstance(known, tuple) else [f"{name}={one}" for one in known]
        return [*named, f"{name} is not known"] if name in self.missing else named

    def _named(self, rows: Any) -> dict[str, Any]:
        values = np.asarray(rows, object)
        if values.ndim not in (1, 2) or values.shape[-1] != len(self.columns):
            raise ValueError(
                f"rows must be a mapping, a DataFrame or values of the {len(self.columns)} columns "
                f"{', '.join(self.columns)}, got shape {values.shape}"
            )
        return {name: values[..., at] for at, name in enumerate(self.columns)}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the encoder as JSON, and write it to a file if one is given."""
        columns = [{"name": name, ("range" if isinstance(known, tuple) else "categories"): known}
                   for name, known in self.columns.items()]  # fmt: skip
        text = json.dumps({"format": _FORMAT, "columns": columns, "missing": self.missing}, indent=1)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> Self:
        """Make the encoder that :meth:`to_json` described: from its text, or from a file."""
        text = str(source)
        if not text.lstrip().startswith("{"):
            text = Path(source).read_text(encoding="utf-8")
        record = json.loads(text)
        if not isinstance(record, dict) or record.get("format") != _FORMAT:
            raise ValueError(f"an encoder's JSON must have format {_FORMAT!r}")
        columns = {
            one["name"]: tuple(one["range"]) if "range" in one else list(one["categories"])
            for one in record["columns"]
        }
        return cls(columns, missing=record["missing"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Encoder):
            return NotImplemented
        return list(self.columns.items()) == list(other.columns.items()) and self.missing == other.missing

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        also = f", missing={list(self.missing)!r}" if self.missing else ""
        return f"Encoder({self.columns!r}{also})"


def inner_range(values: npt.NDArray[np.float64]) -> Range:
    """Return the 1 and 99 % points of public values; where these are one number, the smallest and largest."""
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return 0.0, 1.0
    low, high = np.quantile(values, (0.01, 0.99))
    if low == high:  # nearly constant: the few others are what there is to see
        low, high = values.min(), values.max()
    return float(low), float(high if low < high else low + 1)


def plain_text(value: Any) -> str:
    """Return a category as text; numbers that are whole have no point, whatever they are stored as."""
    if isinstance(value, (int, float, np.number)):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    return str(value).strip()


def is_missing(one: Any) -> bool:
    """Return whether a value says that nothing is known."""
    if isinstance(one, str):
        return one.strip() in MISSING_MARKS
    return (
        one is None or type(one).__name__ in ("NAType", "NaTType") or (isinstance(one, float) and one != one)
    )


def _checked(name: str, known: Any) -> Range | list[str]:
    if isinstance(known, tuple) and len(known) == 2 and not any(isinstance(end, str) for end in known):
        low, high = float(known[0]), float(known[1])
        if not (low < high and np.isfinite([low, high, high - low]).all()):
            raise ValueError(
                f"the range of {name!r} must be two finite numbers, low < high, got {low:g}, {high:g}"
            )
        return low, high
    levels = [plain_text(one) for one in known]
    if not levels or len(set(levels)) < len(levels) or any(level in MISSING_MARKS for level in levels):
        raise ValueError(
            f"categories of {name!r} must be different texts, at least one and none of them empty"
        )
    return levels


def _values(rows: Any, name: str) -> npt.NDArray[Any]:
    values = _one(rows, name)
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


def _one(row: Any, name: str) -> Any:
    try:
        return row[name]
    except (KeyError, IndexError):
        raise ValueError(f"column {name!r} is not there") from None


def _as_numbers(name: str, values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    try:
        if values.dtype.kind in "iufb":
            numbers = values.astype(np.float64)
        else:
            numbers = np.array(
                [np.nan if is_missing(one) else float(one) for one in values.tolist()], np.float64
            )
    except (TypeError, ValueError):
        raise ValueError(f"column {name!r} has a range and must hold numbers") from None
    absent = np.isnan(numbers)
    return np.where(absent, 0.0, numbers), absent
