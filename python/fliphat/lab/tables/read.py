"""A file or a DataFrame as columns: numbers, categories or dates. Errors name the column and a fix."""

from __future__ import annotations

import bz2
import csv
import difflib
import gzip
import importlib
import lzma
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from fliphat.contexts.encoder import MISSING_MARKS, is_missing

#: What a file may have without ``rows=``; more than that is read into memory by mistake.
MOST_BYTES: Final = 10**9
#: Cells of a Parquet file or a frame, for the same reason.
MOST_CELLS: Final = 2 * 10**8

_CHUNK = 8192
_MISSING_BYTES: Final = np.array(sorted(text.encode() for text in MISSING_MARKS))
_ROW_NUMBERS: Final = "\0 row numbers"
_PACKED: Final[dict[str, Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass(frozen=True)
class Numbers:
    """A column of numbers; NaN where one is missing."""

    values: npt.NDArray[np.float64]

    def missing(self) -> npt.NDArray[np.bool_]:
        """Return which rows have no value."""
        return np.isnan(self.values)

    def take(self, rows: npt.NDArray[Any]) -> Numbers:
        """Return some of the rows."""
        return Numbers(self.values[rows])


@dataclass(frozen=True)
class Category:
    """A column of texts: distinct ones in sorted order, and which of them a row has; -1 if missing."""

    levels: tuple[str, ...]
    codes: npt.NDArray[np.int64]

    def missing(self) -> npt.NDArray[np.bool_]:
        """Return which rows have no value."""
        return np.asarray(self.codes < 0)

    def take(self, rows: npt.NDArray[Any]) -> Category:
        """Return some of the rows."""
        return Category(self.levels, self.codes[rows])


@dataclass(frozen=True)
class Dates:
    """A column of dates or times, which nothing here can use as they are."""

    rows: int

    def missing(self) -> npt.NDArray[np.bool_]:
        """Return that no row has a value to use."""
        return np.ones(self.rows, np.bool_)

    def take(self, rows: npt.NDArray[Any]) -> Dates:
        """Return some of the rows."""
        return Dates(int(np.arange(self.rows)[rows].size))


Column: TypeAlias = Numbers | Category | Dates


@dataclass(frozen=True)
class Table:
    """Columns of one length, by name."""

    #: What it was read from, for messages.
    source: str
    columns: dict[str, Column]

    def __len__(self) -> int:
        column = next(iter(self.columns.values()))
        return column.rows if isinstance(column, Dates) else len(column.missing())

    def __getitem__(self, name: str) -> Column:
        if name not in self.columns:
            raise ValueError(self.without(name))
        return self.columns[name]

    def without(self, name: str) -> str:
        """Return that there is no such column, and which one might have been meant."""
        plain = {other.casefold(): other for other in self.columns}
        folded = name.casefold()
        near = [plain[one] for one in difflib.get_close_matches(folded, list(plain), 3, 0.6)]
        near = near or [other for one, other in plain.items() if folded and folded in one][:3]
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {listed(self.columns)}"
        return f"{self.source} has no column {name!r}; {hint}"

    def take(self, rows: npt.NDArray[Any]) -> Table:
        """Return some of the rows."""
        return Table(self.source, {name: column.take(rows) for name, column in self.columns.items()})


def read_table(path: Path, *, rows: int | None = None) -> Table:
    """Read a CSV or Parquet file.

    `path`: parquet if it ends in .parquet or .pq, which needs pyarrow; otherwise text with a header line,
    in UTF-8, separated by commas, semicolons or tabs, whichever the header has most of. It may be packed:
    .csv.gz, .csv.bz2, .csv.xz. Beside semicolons a comma may be the decimal point. A first column without a
    name, as data frames write their row numbers, is not read.
    `rows`: read only the first so many rows: also of a file that is larger than memory.
    """
    size = path.stat().st_size
    if size == 0:
        raise ValueError(
            f"{path.name} is empty: it needs a header line with names, and a row for each person"
        )
    if path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path, rows)
    if rows is None and size > MOST_BYTES:
        raise _too_large(path.name, f"{size / 1e9:.1f} GB", f"{MOST_BYTES / 1e9:g} GB")
    unpacked = _PACKED.get(path.suffix.lower(), open)
    with unpacked(path, "rt", newline="", encoding="utf-8-sig") as file:
        try:
            return _read_csv(path.name, file, rows)
        except (EOFError, lzma.LZMAError, gzip.BadGzipFile):
            raise ValueError(f"{path.name} must be a whole packed file, and is none: pack it again") from None
        except UnicodeDecodeError:
            raise ValueError(
                f"{path.name} must be text in UTF-8; save it as 'CSV UTF-8', or as Parquet"
            ) from None
        except csv.Error as error:
            raise ValueError(f"{path.name} must be a CSV file: {error}") from None


def read_frame(frame: Any, *, rows: int | None = None) -> Table:
    """Take the columns of a DataFrame (pandas, Polars), a pyarrow table, or a mapping of names to arrays."""
    source = f"the {type(frame).__name__}"
    if isinstance(frame, Mapping):
        names: list[Any] = list(frame)
    elif hasattr(frame, "column_names"):
        names = list(frame.column_names)
    elif hasattr(frame, "columns"):
        names = list(frame.columns)
    else:
        raise TypeError(
            f"table must be a path, a DataFrame or a mapping of columns, got {type(frame).__name__}"
        )
    _check_names(source, [str(name) for name in names])
    columns = {}
    for name in names:
        values = frame[name]
        if hasattr(values, "to_numpy"):
            values = values.to_numpy()
        columns[str(name)] = _column(np.asarray(values)[:rows])
    lengths = {name: len(column.missing()) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns of {source} must have one length, got {lengths}")
    return _with_rows(Table(source, columns))


def _read_csv(source: str, file: Iterable[str], rows: int | None) -> Table:
    lines = iter(file)
    header = next(lines, "")
    # A separator inside quotes is part of a name.
    names, separator = max(
        ((next(csv.reader([header], delimiter=mark), []), mark) for mark in ",;\t"),
        key=lambda found: len(found[0]),
    )
    names = [name.strip() for name in names]
    if len(names) > 1 and names[0] == "":  # a column of row numbers, as data frames write it
        names[0] = _ROW_NUMBERS
    _check_names(source, names)
    reader = csv.reader(lines, delimiter=separator)
    chunks: list[list[npt.NDArray[np.bytes_]]] = [[] for _ in names]
    wanted: Iterator[list[str]] = (row for row in reader if row)
    if rows is not None:
        wanted = islice(wanted, rows)
    done = 0
    while chunk := list(islice(wanted, _CHUNK)):
        for at, row in enumerate(chunk):
            if len(row) != len(names):
                raise ValueError(
                    f"row {done + at + 1} of {source} has {len(row)} values and the header {len(names)} "
                    f"names; a separator inside a text needs quotes around it"
                )
        for kept, column in zip(chunks, zip(*chunk, strict=True), strict=True):
            kept.append(np.array([text.strip().encode() for text in column], np.bytes_))
        done += len(chunk)
    if not done:
        raise ValueError(f"{source} has a header and no rows: it needs a row for each person")
    # A column's chunks are let go as soon as it is read.
    comma = separator == ";"
    columns = {name: _from_bytes(np.concatenate(chunks[i]), comma) for i, name in enumerate(names)}
    columns.pop(_ROW_NUMBERS, None)
    return Table(source, columns)


def _read_parquet(path: Path, rows: int | None) -> Table:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
        pyarrow = importlib.import_module("pyarrow")
    except ImportError:
        raise ValueError("a Parquet file needs pyarrow: pip install 'fliphat[tables]'") from None
    try:
        file = parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid:
        raise ValueError(f"{path.name} must be a Parquet file, and is not one") from None
    cells = file.metadata.num_rows * file.metadata.num_columns
    if rows is None and cells > MOST_CELLS:
        raise _too_large(path.name, f"{cells:,} cells", f"{MOST_CELLS:,}")
    _check_names(path.name, list(file.schema_arrow.names))
    if rows is None:
        table = file.read()
    else:
        batches, found = [], 0
        for batch in file.iter_batches(_CHUNK):
            batches.append(batch.slice(0, rows - found))
            found += len(batches[-1])
            if found >= rows:
                break
        table = pyarrow.Table.from_batches(batches, file.schema_arrow)
    columns = {name: _column(table.column(name).to_numpy()) for name in table.column_names}
    return _with_rows(Table(path.name, columns))


def _too_large(name: str, size: str, most: str) -> ValueError:
    return ValueError(
        f"{name} has {size}, more than the {most} that are read at once: give rows (--rows 100000) to read "
        f"the first ones only, if their order is random; otherwise draw some first (shuf -n 100000)"
    )


def _check_names(source: str, names: Sequence[str]) -> None:
    if not names or not any(names):
        raise ValueError(f"{source} must begin with a header line that names its columns")
    if "" in names:
        raise ValueError(f"column {names.index('') + 1} of {source} has no name: give it one")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{source} has more than one column {twice[0]!r}: rename or remove all but one")


def _with_rows(table: Table) -> Table:
    if len(table) == 0:
        raise ValueError(f"{table.source} has columns and no rows: it needs a row for each person")
    return table


def _from_bytes(texts: npt.NDArray[np.bytes_], decimal_comma: bool) -> Column:
    missing = np.isin(texts, _MISSING_BYTES)
    try:
        points = np.char.replace(texts, b",", b".") if decimal_comma else texts
        numbers = np.where(missing, b"nan", points).astype(np.float64)
    except ValueError:
        found, codes = np.unique(texts, return_inverse=True)
        levels = [level.decode() for level in found.tolist()]
        return _category(levels, codes.reshape(-1))
    return Numbers(numbers)


def _column(values: npt.NDArray[Any]) -> Column:
    """Return an array of whatever kind as a column."""
    if values.dtype.kind in "iufb":
        return Numbers(values.astype(np.float64))
    if values.dtype.kind in "Mm":
        return Dates(len(values))
    given = values.tolist()
    here = [one for one in given if not is_missing(one)]
    if all(hasattr(one, "__float__") and not isinstance(one, str) for one in here):
        return Numbers(np.array([np.nan if is_missing(one) else float(one) for one in given], np.float64))
    if here and all(hasattr(one, "isoformat") for one in here):
        return Dates(len(values))
    texts = np.array(["" if is_missing(one) else str(one).strip() for one in given])
    found, codes = np.unique(texts, return_inverse=True)
    return _category(found.tolist(), codes.reshape(-1))


def _category(levels: Sequence[str], codes: npt.NDArray[np.int64]) -> Category:
    """Return a category without the levels that mean that nothing is known."""
    kept = [level for level in levels if level not in MISSING_MARKS]
    place = {level: at for at, level in enumerate(kept)}
    new = np.array([place.get(level, -1) for level in levels], np.int64)
    return Category(tuple(kept), new[codes])


def listed(names: Iterable[str]) -> str:
    """Return names for a sentence, not too many."""
    every = list(names)
    return ", ".join(map(repr, every[:12])) + (f" and {len(every) - 12} more" if len(every) > 12 else "")
