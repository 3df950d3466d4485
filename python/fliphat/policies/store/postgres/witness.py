"""A witness in a database: one row a policy, moved by a statement that names the row it replaces."""

from __future__ import annotations

from fliphat.policies.engine.witness import Record
from fliphat.policies.store.postgres.connections import Connection, Connections

__all__ = ["PostgresWitness"]

_TABLE = (
    b"CREATE TABLE IF NOT EXISTS fliphat_witness"
    b" (policy text PRIMARY KEY, releases bigint NOT NULL, mark text NOT NULL)"
)


def _database(connection: Connection, again: bool) -> object:
    """Return what tells a database from all others."""
    return connection.execute(b"SELECT current_database(), pg_postmaster_start_time()::text").fetchone()


class PostgresWitness:
    """The table ``fliphat_witness`` of a database that no backup of the store restores."""

    def __init__(self, url: str, store: str | None = None) -> None:
        self._connections = Connections(url)
        if store is not None:
            other = Connections(store)
            same = self._connections.run(_database) == other.run(_database)
            other.close()
            if same:
                self._connections.close()
                raise ValueError("witness must be in another database than its store, and on another server")

        def create(connection: Connection, again: bool) -> None:
            with connection.transaction():
                connection.execute(b"SELECT pg_advisory_xact_lock(hashtext('fliphat_witness'))")
                connection.execute(_TABLE)

        self._connections.run(create)

    def read(self, policy: str) -> Record | None:
        """See :class:`fliphat.policies.engine.witness.Witness`."""
        row = self._connections.run(
            lambda connection, again: connection.execute(
                b"SELECT releases, mark FROM fliphat_witness WHERE policy = %s", (policy,)
            ).fetchone()
        )
        return None if row is None else Record(*row)

    def move(self, policy: str, before: Record | None, after: Record) -> bool:
        """See :class:`fliphat.policies.engine.witness.Witness`."""

        def change(connection: Connection, again: bool) -> int:
            if before is None:
                done = connection.execute(
                    b"INSERT INTO fliphat_witness VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                    (policy, after.releases, after.mark),
                )
            else:
                done = connection.execute(
                    b"UPDATE fliphat_witness SET releases = %s, mark = %s"
                    b" WHERE policy = %s AND releases = %s AND mark = %s",
                    (after.releases, after.mark, policy, before.releases, before.mark),
                )
            return done.rowcount

        return self._connections.run(change) == 1

    def close(self) -> None:
        """See :class:`fliphat.policies.engine.witness.Witness`."""
        self._connections.close()
