"""Where a ledger's fits are written down: in memory, or in a file that several processes share.

A file is an SQLite database. A fit is one transaction: the fits so far are read, the new one is decided and
written, and all of it is on the disk when the transaction ends. So two runs of a script, or two processes at
once, never both spend what is there once, and a process that is killed has spent a fit or has not begun it.
No connection outlives a call: forked children and threads each open their own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeAlias

from fliphat import process
from fliphat.privacy.priced import Noise, noise_of, scales_of

__all__ = ["FileAccount", "MemoryAccount", "Spent"]

_FORMAT: Final = 1
#: Seconds that a fit waits for others that are being written down.
_PATIENCE: Final = 600.0

_TABLES: Final = """
CREATE TABLE terms (format INTEGER NOT NULL, terms TEXT NOT NULL);
CREATE TABLE fits (number INTEGER PRIMARY KEY, fit TEXT NOT NULL, digest TEXT NOT NULL);
"""


@dataclasses.dataclass(frozen=True)
class Spent:
    """One fit: its zCDP cost, its pure cost if it has one, its releases in order if they have a price."""

    rho: Fraction
    pure: Fraction | None
    noise: tuple[Noise, ...] | None
    seeded: bool
    rows_per_user: int

    def to_json(self) -> str:
        """Return the fit as text, without loss."""
        return json.dumps(
            {
                "rho": str(self.rho),
                "pure": None if self.pure is None else str(self.pure),
                "noise": None if self.noise is None else [scales_of(noise) for noise in self.noise],
                "seeded": self.seeded,
                "rows_per_user": self.rows_per_user,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Spent:
        """Return what `to_json` wrote."""
        record = json.loads(text)
        return cls(
            rho=Fraction(record["rho"]),
            pure=None if record["pure"] is None else Fraction(record["pure"]),
            noise=None if record["noise"] is None else tuple(map(noise_of, record["noise"])),
            seeded=record["seeded"],
            rows_per_user=record["rows_per_user"],
        )


#: Given the fits so far, returns the one that is added to them; whatever it raises leaves them as they were.
Decide: TypeAlias = Callable[[Sequence[Spent]], Spent]


class MemoryAccount:
    """Fits of one process: a forked child or a pickled copy can be read and adds none."""

    def __init__(self) -> None:
        self._fits: list[Spent] = []
        self._lock = threading.Lock()
        self._owner: object = (process.token, os.getpid())

    def fits(self) -> Sequence[Spent]:
        """Return them in order."""
        return tuple(self._fits)

    def add(self, decide: Decide) -> None:
        """Add the fit that `decide` returns."""
        # Asked before the lock, which a thread of the parent may have held when this child was forked.
        if self._owner != (process.token, os.getpid()):
            raise TypeError(
                "ledger is a copy, made by fork or by pickle for another process: what is spent there would "
                "not be counted here. Keep it in a file, Ledger(..., path=...), which processes share, or "
                "run the fits in the process that made it (n_jobs=1 or threads)"
            )
        with self._lock:
            self._fits.append(decide(self._fits))

    def __getstate__(self) -> dict[str, Any]:
        return {"_fits": list(self._fits)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._fits, self._lock, self._owner = state["_fits"], threading.Lock(), None


class FileAccount:
    """Fits of all processes that have opened the same file."""

    def __init__(self, path: str | os.PathLike[str], terms: dict[str, Any]) -> None:
        self.path = Path(path).absolute()
        self._terms = json.dumps(terms, sort_keys=True)
        if not self.path.exists():
            self._create()
        self.fits()

    def fits(self) -> Sequence[Spent]:
        """Return them in order; ValueError if the file is no ledger, is damaged, or has other terms."""
        with self._transaction("BEGIN") as connection:
            return self._read(connection)

    def add(self, decide: Decide) -> None:
        """Add the fit that `decide` returns; it is on the disk when this returns."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            fits = self._read(connection)
            text = decide(fits).to_json()
            before = connection.execute("SELECT digest FROM fits ORDER BY number DESC LIMIT 1").fetchone()
            digest = _digest(before[0] if before else self._terms, text)
            connection.execute("INSERT INTO fits VALUES (?, ?, ?)", (len(fits) + 1, text, digest))

    def _create(self) -> None:
        """Make the file in one step: it is whole or not there, and what another process made stays."""
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.{threading.get_ident()}")
        beside.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(beside, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=EXTRA")
            connection.executescript(f"BEGIN; {_TABLES}")
            connection.execute("INSERT INTO terms VALUES (?, ?)", (_FORMAT, self._terms))
            connection.execute("COMMIT")
        try:
            with contextlib.suppress(FileExistsError):
                os.link(beside, self.path)
        finally:
            beside.unlink()
        directory = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        # "rw": a file that is gone is an error and never a new, empty ledger.
        address = f"{self.path.as_uri()}?mode=rw"
        opened = sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)
        with contextlib.closing(opened) as connection:
            try:
                # "EXTRA": the commit is on the disk, its directory entry as well, when COMMIT returns.
                connection.execute("PRAGMA synchronous=EXTRA")
                connection.execute(begin)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                raise self._no_ledger() from None
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def _no_ledger(self) -> ValueError:
        return ValueError(f"path must be the file of a ledger, or new, got {str(self.path)!r}")

    def _read(self, connection: sqlite3.Connection) -> list[Spent]:
        try:
            ((version, terms),) = connection.execute("SELECT format, terms FROM terms").fetchall()
            rows = connection.execute("SELECT number, fit, digest FROM fits ORDER BY number").fetchall()
        except (sqlite3.DatabaseError, ValueError):
            raise self._no_ledger() from None
        if version != _FORMAT or terms != self._terms:
            raise ValueError(
                f"delta, epsilon and accounting must be those that the ledger at {str(self.path)!r} was made "
                f"with, {terms}, got {self._terms}"
            )
        before = terms
        for place, (number, text, digest) in enumerate(rows, start=1):
            before = _digest(before, text)
            if number != place or digest != before:
                raise ValueError(
                    f"the ledger at {str(self.path)!r} is damaged: fit {place} was changed or lost"
                )
        return [Spent.from_json(text) for _, text, _ in rows]


def _digest(before: str, text: str) -> str:
    return hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()
