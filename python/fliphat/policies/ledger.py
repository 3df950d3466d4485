"""The ledger of a store: settings, states of episodes, released estimates, counts of users, keys.

A small SQLite file, touched a few times an episode. Each connection lives for one transaction, so that no
connection can cross a fork, and each commit is on disk before it returns.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from fliphat.policies import files
from fliphat.policies.errors import StoreError

__all__ = ["CLAIMED", "COMMITTED", "OPEN", "RELEASED", "VERSION", "Ledger", "meta", "put"]

VERSION: Final = 1

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
    episode INTEGER NOT NULL
) WITHOUT ROWID;
"""


class Ledger:
    """The file ``ledger.sqlite3`` of a store."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give a connection whose changes are all on disk after the block, or none of them."""
        try:
            connection = sqlite3.connect(self._path, isolation_level=None, timeout=10)
        except sqlite3.Error as error:
            raise StoreError(f"the ledger can't be opened: {error}") from None
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
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
        """Create the ledger with its first open episode, unless it exists; True if it was created."""
        # SQLite gives its own files the mode of this one.
        os.close(files.create_private(self._path))
        with self.transaction() as connection:
            found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
            if found:
                return False
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            for name, value in meta.items():
                put(connection, name, value)
            connection.execute("INSERT INTO episodes VALUES (0, ?, 0, NULL, NULL, NULL)", (OPEN,))
        return True


def put(connection: sqlite3.Connection, name: str, value: Any) -> None:
    """Write one value of the meta table."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, str(value)))


def meta(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the meta table."""
    return dict(connection.execute("SELECT name, value FROM meta"))
