"""Finished runs in a file, one JSON line each, appended as they come."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from fliphat import __version__
from fliphat.lab.experiments.run.cells import KEY_FORMAT, Run


class ResultFile:
    """An append-only file of runs.

    A line is written whole and handed to the operating system before the next run is waited for. A crash can
    tear the last line only, and a torn line is dropped when the file is opened to resume.

    Parameters
    ----------
    path : path
    resume : bool
        True keeps the runs already in the file. False starts a new file; an old one is kept with the
        ending ``.old``, because it may have taken hours.

    Attributes
    ----------
    found : dict of str to tuple of float
        Cumulative regret of each run that was in the file, by key.
    costs : dict of str to pair of float or None
        Seconds and megabytes of those runs, where they were measured.

    Raises
    ------
    ValueError
        If the file to resume is damaged, or was written by another version: its runs would all be run again.
    """

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False) -> None:
        self.path = Path(path)
        self.found: dict[str, tuple[float, ...]] = {}
        self.costs: dict[str, tuple[float | None, float | None]] = {}
        if self.path.exists():
            if resume:
                self._load()
            else:
                os.replace(self.path, self.path.with_name(self.path.name + ".old"))
        self._file = open(self.path, "ab")  # noqa: SIM115 (closed in close)

    def _load(self) -> None:
        whole = 0
        with open(self.path, "rb") as lines:
            for line in lines:
                record = _record(line)
                if record is None:
                    break
                self._require_this_version(record)
                self.found[record["key"]] = tuple(record["regret"])
                self.costs[record["key"]] = (record.get("seconds"), record.get("megabytes"))
                whole += len(line)
            rest = lines.read()
        if rest:
            raise ValueError(f"{self.path} is damaged before its last line: remove it, or do not resume")
        os.truncate(self.path, whole)

    def _require_this_version(self, record: dict[str, Any]) -> None:
        """Refuse runs whose keys this version would not find, though they are there."""
        made_by = (record.get("format", 1), record.get("fliphat"))
        if made_by != (KEY_FORMAT, __version__):
            version, form = made_by[1] or "an earlier version", made_by[0]
            raise ValueError(
                f"{self.path} has runs of fliphat {version} (format {form}), this is {__version__} (format "
                f"{KEY_FORMAT}): resume with that version, or run without resuming, which keeps them as .old"
            )

    def forget(self, keys: Iterable[str]) -> None:
        """Let runs be run again; what they will have been is appended, and a file's last word counts."""
        for key in keys:
            self.found.pop(key, None)
            self.costs.pop(key, None)

    def add(self, run: Run) -> None:
        """Append one run."""
        self._file.write(json.dumps(run.to_dict()).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Bring everything to disk and close; twice is harmless."""
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def __enter__(self) -> ResultFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _record(line: bytes) -> dict[str, Any] | None:
    """Return a whole line's record, or None for a torn one."""
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(record, dict) and isinstance(record.get("regret"), list) and "key" in record
    return record if whole else None
