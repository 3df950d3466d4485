"""The ledger of a store: settings, states of episodes, released estimates, counts of users, keys.

A small SQLite file, touched a few times an episode. Each connection lives for one transaction, so that no
connection can cross a fork, and each commit is on disk before it returns.

SQLite does not notice a changed byte in what it stores. So the ledger holds checksums of its own contents,
written with every change and compared when the store is opened: one of the small tables as they are, and for
users and keys the sum of a hash of each row, which a change of a few rows can follow.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from math import isnan
from pathlib import Path
from typing import Any, Final

from fliphat.policies.store import files
from fliphat.policies.types import StoreError

__all__ = [
    "CLAIMED",
    "COMMITTED",
    "OPEN",
    "PLAIN",
    "RELEASED",
    "VERSION",
    "WITH_ARM_IDS",
    "WITH_TIMES",
    "Ledger",
    "add_keys",
    "add_users",
    "checked_meta",
    "meta",
    "put",
    "reading",
]

VERSION: Final = 4
#: A new ledger is one that version 3 reads, until something is written to the store that it does not know.
PLAIN: Final = 3
#: Formats from which on a store may hold: when rows were played, and ids of arms in place of positions.
WITH_TIMES = WITH_ARM_IDS = 4

#: States of an episode: rows arrive; its fit was claimed; its estimate is durable; its rows are gone.
OPEN, CLAIMED, COMMITTED, RELEASED = "open", "claimed", "committed", "released"

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE episodes (
    episode INTEGER PRIMARY KEY, state TEXT NOT NULL, generation INTEGER NOT NULL,
    facts TEXT, indices BLOB, numbers BLOB
);
CREATE TABLE users (digest BLOB PRIMARY KEY, rounds INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE keys (
    digest BLOB PRIMARY KEY, id INTEGER NOT NULL, arm INTEGER NOT NULL, valid INTEGER NOT NULL,
    episode INTEGER NOT NULL, probability REAL
) WITHOUT ROWID;
"""

_USERS_SUM, _KEYS_SUM, _REST_SUM = "checksum of users", "checksum of keys", "checksum of the rest"
_SYNCHRONOUS = "EXTRA"  # the directory too; tests that do not stop the machine set it to OFF
_MODULUS: Final = 2**64
_NEW: Final = "ledger.new-"


class Ledger:
    """The file ``ledger.sqlite3`` of a store."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at_least = 0  # the version, as far as it is known

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give a connection whose changes are all on disk after the block, or none of them."""
        try:
            connection = sqlite3.connect(self._path, isolation_level=None, timeout=10)
        except sqlite3.Error as error:
            raise StoreError(f"the ledger can't be opened: {error}") from None
        try:
            # No write-ahead log: SQLite drops what is damaged or missing there, and a commit would be undone.
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                if connection.total_changes:
                    put(connection, _REST_SUM, _rest_sum(connection))
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise StoreError(f"the ledger can't be read or written: {error}") from None
        finally:
            connection.close()

    def create(self, meta: dict[str, str]) -> bool:
        """Create the ledger with its first open episode, unless it exists; True if it was created.

        It appears under its name whole or not at all: an empty one is always one that lost its contents.
        """
        if self._path.exists():
            return False
        new = self._path.with_name(_NEW + os.urandom(8).hex())
        # SQLite gives its own files the mode of this one.
        os.close(files.create_private(new, exclusive=True))
        try:
            with Ledger(new).transaction() as connection:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                for name, value in meta.items():
                    put(connection, name, value)
                for name in (_USERS_SUM, _KEYS_SUM):
                    put(connection, name, 0)
                connection.execute("INSERT INTO episodes VALUES (0, ?, 0, NULL, NULL, NULL)", (OPEN,))
            _rename_to_new(new, self._path)
        except FileExistsError:
            return False  # another policy was faster
        finally:
            for left in new.parent.glob(new.name + "*"):
                left.unlink(missing_ok=True)
        files.sync_directory(self._path.parent)
        return True

    def check(self) -> dict[str, str]:
        """Return the meta table of a ledger that is whole; the first version's gets its checksums now."""
        with _telling_damage(), self.transaction() as connection:
            known = checked_meta(connection)
            if int(known["version"]) < PLAIN:
                # Version 1 had no checksums, and neither it nor 2 knew how likely an arm was.
                users = _sum(connection.execute("SELECT * FROM users"))
                connection.execute("ALTER TABLE keys ADD COLUMN probability REAL")
                put(connection, "version", PLAIN)
                put(connection, _USERS_SUM, users)
                put(connection, _KEYS_SUM, _sum(connection.execute("SELECT * FROM keys")))
                known = meta(connection)
            return known

    def raise_version(self, version: int) -> None:
        """Write down that earlier versions than this can't read the store from now on."""
        if self._at_least >= version:
            return
        with self.transaction() as connection:
            found = int(meta(connection)["version"])
            if found < version:
                put(connection, "version", version)
        self._at_least = max(found, version)

    def peek(self, name: str) -> str | None:
        """Return one value of the meta table as it is on disk, without waiting for a writer."""
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=10)
        try:
            row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        finally:
            connection.close()
        return None if row is None else str(row[0])


_LOST: Final = (
    "without it nobody knows which budget was promised and spent. Put it back as it was when the store was "
    "last used, with ledger.sqlite3-journal if there is one; if no round was ever played with this store, "
    "remove the directory and begin anew"
)


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection that changes nothing and sees one moment, also while a policy plays.

    A commit that a crash cut off is undone in a copy: undoing it in place is for whoever opens the store.
    """
    refuse_missing(path)
    with ExitStack() as kept:
        try:
            try:
                connection = _begin_to_read(path, kept)
            except sqlite3.OperationalError:
                left = [path.with_name(path.name + end) for end in ("-journal", "-wal")]
                copied = [file for file in left if file.exists()]
                if not copied and not _has_write_ahead_log(path):
                    raise
                copies = Path(kept.enter_context(tempfile.TemporaryDirectory()))
                for file in (path, *copied):
                    shutil.copyfile(file, copies / file.name)
                connection = _begin_to_read(copies / path.name, kept, mode="rw")
            yield connection
        except sqlite3.OperationalError as error:
            raise StoreError(f"the ledger can't be read: {error}") from None
        except sqlite3.Error:
            raise StoreError(f"the ledger {path.name!r} is damaged: {_LOST}") from None


def _begin_to_read(path: Path, kept: ExitStack, *, mode: str = "ro") -> sqlite3.Connection:
    if mode == "ro" and _has_write_ahead_log(path):
        raise sqlite3.OperationalError("reading a write-ahead log in place would write files beside it")
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    connection = kept.enter_context(closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10)))
    connection.execute("BEGIN")
    connection.execute("SELECT name FROM sqlite_master").fetchall()
    return connection


def _has_write_ahead_log(path: Path) -> bool:
    """Whether a ledger is in the mode of the first version's: SQLite's header says so in byte 18."""
    with open(path, "rb") as file:
        return file.read(19)[18:] == b"\2"


def checked_meta(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the meta table of a ledger that is whole, as far as its checksums tell; changes nothing."""
    with _telling_damage():
        return _checked_meta(connection)


@contextmanager
def _telling_damage() -> Iterator[None]:
    try:
        yield
    except (LookupError, TypeError, ValueError, OverflowError):
        raise StoreError(f"the ledger 'ledger.sqlite3' is damaged: {_LOST}") from None


def _checked_meta(connection: sqlite3.Connection) -> dict[str, str]:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is None:
        raise StoreError(f"the ledger 'ledger.sqlite3' is empty: {_LOST}")
    problems = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
    if problems != ["ok"]:
        raise StoreError(f"the ledger 'ledger.sqlite3' is damaged: {_LOST}")
    known = meta(connection)
    if int(known["version"]) > VERSION:
        raise StoreError(
            f"the store was written by a newer version (format {known['version']}, this one reads {VERSION})"
        )
    sums = {
        _USERS_SUM: str(_sum(connection.execute("SELECT * FROM users"))),
        _KEYS_SUM: str(_sum(connection.execute("SELECT * FROM keys"))),
        _REST_SUM: _rest_sum(connection),
    }
    first_version = int(known["version"]) == 1 and not sums.keys() & known.keys()
    if not first_version and any(known.get(name) != value for name, value in sums.items()):
        raise StoreError(f"the ledger 'ledger.sqlite3' is damaged, its checksums do not match: {_LOST}")
    return known


def refuse_missing(path: Path) -> None:
    """Raise if a store has lost its ledger: a new one would forget what was promised and spent."""
    if not path.exists() or path.stat().st_size == 0:
        raise StoreError(f"the ledger {path.name!r} is missing or empty: {_LOST}")


def remove_strays(directory: Path) -> None:
    """Unlink what a crash left of a ledger that was being created."""
    for stray in directory.glob(_NEW + "*"):
        stray.unlink(missing_ok=True)


def is_stray(name: str) -> bool:
    """Whether a file is what :func:`remove_strays` removes."""
    return name.startswith(_NEW)


def add_users(connection: sqlite3.Connection, rounds: Mapping[bytes, int]) -> None:
    """Add to the counts of users."""
    change, rows = 0, []
    for digest, count in rounds.items():
        found = connection.execute("SELECT rounds FROM users WHERE digest = ?", (digest,)).fetchone()
        before = found[0] if found else 0
        change += _hash((digest, before + count)) - (_hash((digest, before)) if found else 0)
        rows.append((digest, before + count))
    connection.executemany("INSERT OR REPLACE INTO users VALUES (?, ?)", rows)
    _add_to(connection, _USERS_SUM, change)


def add_keys(connection: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> None:
    """Add keys that were played, each with its decision."""
    listed = [
        (name, int(identity), int(arm), int(valid), int(episode), None if isnan(chance) else float(chance))
        for name, identity, arm, valid, episode, chance in rows
    ]
    connection.executemany("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?)", listed)
    _add_to(connection, _KEYS_SUM, _sum(listed))


def put(connection: sqlite3.Connection, name: str, value: Any) -> None:
    """Write one value of the meta table."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, str(value)))


def meta(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the meta table."""
    return dict(connection.execute("SELECT name, value FROM meta"))


def _hash(row: tuple[Any, ...]) -> int:
    return int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=8).digest(), "little")


def _sum(rows: Iterable[tuple[Any, ...]]) -> int:
    return sum(map(_hash, rows)) % _MODULUS


def _add_to(connection: sqlite3.Connection, name: str, change: int) -> None:
    (before,) = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    put(connection, name, (int(before) + change) % _MODULUS)


def _rest_sum(connection: sqlite3.Connection) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for row in connection.execute("SELECT * FROM episodes ORDER BY episode"):
        digest.update(repr(row).encode())
    for row in connection.execute("SELECT * FROM meta WHERE name != ? ORDER BY name", (_REST_SUM,)):
        digest.update(repr(row).encode())
    return digest.hexdigest()


def _rename_to_new(path: Path, target: Path) -> None:
    """Give a file another name, which must be new."""
    if os.name == "nt":
        path.rename(target)
        return
    os.link(path, target)
    with suppress(FileNotFoundError):
        path.unlink()
